/* Passwords in the addresses of databases: postgresql://user:PASSWORD@host/name?password=PASSWORD.
 * Messages show *** in their place. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "data/database/engine.h"

typedef struct secret {
    const char *at;
    size_t length;
} secret;

/* Where names, passwords and hosts stand; NULL in what has no password. */
static const char *authority_of(const char *address) {
    const char *scheme = strstr(address, "://");
    return scheme && !strncasecmp(address, "postgres", 8) ? scheme + 3 : NULL;
}

/* The value of the first parameter from `at` on, a mark ? or &, that is called password or so. */
static bool find_parameter(secret *s, const char *at) {
    while (*at) {
        const char *end = at + 1 + strcspn(at + 1, "&");
        const char *value = memchr(at, '=', (size_t)(end - at));
        if (value && value - at >= 9 && !strncasecmp(value - 8, "password", 8)) {
            *s = (secret){value + 1, (size_t)(end - value - 1)};
            return true;
        }
        at = end;
    }
    return false;
}

/* The next password of the address; the first one behind {0}. */
static bool next_secret(secret *s, const char *address) {
    const char *begin = authority_of(address);
    if (!begin) return false;
    const char *at = strchr(begin, '@');
    const char *colon = at ? memchr(begin, ':', (size_t)(at - begin)) : NULL;
    if (!s->at && colon) {
        *s = (secret){colon + 1, (size_t)(at - colon - 1)};
        return true;
    }
    const char *from = s->at ? s->at + s->length : begin;
    return find_parameter(s, from + strcspn(from, s->at && *from == '&' ? "&" : "?"));
}

/* A password with an @, / or ? that is not written as %40, %2F or %3F ends too early, and what is
 * left of it would be taken, and shown, as something else. */
static basin_status check_marks(const char *address, basin_error *error) {
    const char *begin = authority_of(address);
    if (!begin) return BASIN_OK;
    const char *at = strchr(begin, '@'), *last = strrchr(begin, '@');
    if (at == last && (!at || at < begin + strcspn(begin, "/?#"))) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the address of a PostgreSQL database holds '@' where none is expected; in "
                      "names and passwords, @ is written %%40, / %%2F, ? %%3F and : %%3A");
}

basin_status basin_database_mask(char **name, const char *address, basin_error *error) {
    size_t length = 0;
    const char *from = address;
    secret s = {0};
    *name = NULL;
    basin_status status = check_marks(address, error);
    if (status) return status;
    char *text = malloc(2 * strlen(address) + 8);
    if (!text) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to open a database");
    for (; next_secret(&s, address); from = s.at + s.length) {
        memcpy(text + length, from, (size_t)(s.at - from));
        length += (size_t)(s.at - from);
        memcpy(text + length, "***", 3);
        length += 3;
    }
    memcpy(text + length, from, strlen(from) + 1);
    *name = text;
    return BASIN_OK;
}

/* libpq repeats an address that it cannot read. */
void basin_database_hide(char *message, const char *address) {
    for (secret s = {0}; next_secret(&s, address);)
        for (char *at = message; s.length && *at;)
            if (strncmp(at, s.at, s.length) != 0)
                at++;
            else
                memset(at, '*', s.length), at += s.length;
}
