/* Numbers in texts; see number.h. */
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool basin_integer_read(int64_t *value, const char **text) {
    char *end;
    errno = 0;
    long long number = strtoll(*text, &end, 10);
    if (end == *text || errno) return false;
    *value = number;
    *text = end;
    return true;
}

/* ---- of any locale ---- */

/* What stands for the decimal point, or NULL where that does. */
static const char *foreign_point(void) {
    const char *point = localeconv()->decimal_point;
    return !*point || !strcmp(point, ".") ? NULL : point;
}

/* The part of the text that can be a number, with the locale's mark in place of the point: what
 * the locale would read on, 1,5, ends there. A text of more digits is none. */
double basin_real_read(const char *text, char **end) {
    const char *point = foreign_point();
    char copy[1100], *stop;
    if (!point) return strtod(text, end);
    size_t blanks = strspn(text, " \t\n\v\f\r");
    size_t length = strspn(text + blanks, "+-.0123456789abcdefinptxyABCDEFINPTXY");
    const char *number = text + blanks, *dot = memchr(number, '.', length);
    size_t mark = strlen(point), before = dot ? (size_t)(dot - number) : length;
    *copy = 0;
    if (length + mark < sizeof copy)
        snprintf(copy, sizeof copy, "%.*s%s%.*s", (int)before, number, dot ? point : "",
                 dot ? (int)(length - before - 1) : 0, dot ? dot + 1 : "");
    double value = strtod(copy, &stop);
    size_t used = (size_t)(stop - copy);
    if (used > before) used -= mark - 1;
    if (end) *end = (char *)(uintptr_t)(used ? number + used : text);
    return value;
}

void basin_real_print(char *text, size_t size, int digits, double value) {
    const char *point = foreign_point();
    snprintf(text, size, "%.*g", digits, value);
    char *at = point ? strstr(text, point) : NULL;
    if (!at) return;
    *at = '.';
    memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
}

/* The locale that was in use; 0 where it writes points already, or there is no memory for another.
 */
locale_t basin_numbers_begin(void) {
    if (!foreign_point()) return (locale_t)0;
    locale_t own = duplocale(uselocale((locale_t)0));
    locale_t plain = own ? newlocale(LC_NUMERIC_MASK, "C", own) : own;
    if (own && !plain) freelocale(own);
    return plain ? uselocale(plain) : plain;
}

void basin_numbers_end(locale_t *before) {
    if (*before) freelocale(uselocale(*before));
}
