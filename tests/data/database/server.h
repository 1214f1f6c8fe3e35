/* A PostgreSQL server for tests, from Debian's package: started in a folder of its own, reached by
 * a socket in it, and ended with the test; by itself after some minutes in any case. */
#ifndef TESTS_DATA_DATABASE_SERVER_H
#define TESTS_DATA_DATABASE_SERVER_H

#include <glob.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/library.h"

#define SERVER_PASSWORD "s3cret-word"

typedef struct server {
    char folder[64];   /* made by mkdtemp */
    char programs[64]; /* folder of initdb and postgres; empty: absent */
    const char *as;    /* what runs them: a server refuses to be run by root */
} server;

static inline int server_shell(const server *s, const char *format, ...) {
    char command[500], line[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(line, sizeof line, "cd '%s' && { %s; } >>log 2>&1", s->folder, command);
    return system(line);
}

/* The newest version that is installed. */
static inline void server_find(server *s) {
    glob_t found = {0};
    if (!glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found)) {
        const char *path = found.gl_pathv[found.gl_pathc - 1];
        snprintf(s->programs, sizeof s->programs, "%.*s", (int)(strlen(path) - strlen("/postgres")),
                 path);
    }
    globfree(&found);
}

static inline int server_begin(server *s) {
    const struct passwd *user = getuid() ? NULL : getpwnam("postgres");
    if (user && chown(s->folder, user->pw_uid, user->pw_gid)) return -1;
    s->as = user ? "runuser -u postgres --" : "";
    if (server_shell(s,
                     "%s %s/initdb -D data -U basin -A trust --no-sync -E UTF8 --locale=C && "
                     "sed -i '1i local all locked scram-sha-256' data/pg_hba.conf",
                     s->as, s->programs))
        return -1;
    return server_shell(s,
                        "timeout 300 %s %s/postgres -D '%s/data' -k '%s' "
                        "-c listen_addresses= -c fsync=off -c timezone=UTC "
                        "-c log_min_messages=panic & "
                        "for i in $(seq 100); do %s/pg_isready -q -h '%s' && exit 0; "
                        "sleep 0.1; done; exit 1",
                        s->as, s->programs, s->folder, s->folder, s->programs, s->folder);
}

static inline void server_print_log(const server *s) {
    char command[200];
    snprintf(command, sizeof command, "cat '%s/log' >&2", s->folder);
    (void)!system(command);
}

static inline void server_stop(server *s) {
    char command[200];
    if (*s->programs)
        (void)server_shell(s, "%s %s/pg_ctl -D data -m immediate -w stop", s->as, s->programs);
    snprintf(command, sizeof command, "rm -rf '%s'", s->folder);
    (void)!system(command);
}

/* Where Debian's package or libpq is absent there are no programs, and no server. */
static inline int server_start(server *s) {
    static const basin_library_function none[] = {{0}};
    void *functions = NULL;
    basin_error error;
    *s = (server){.folder = "/tmp/basin-server-XXXXXX", .as = ""};
    if (!mkdtemp(s->folder)) return -1;
    server_find(s);
    if (basin_library_load(&functions, BASIN_LIBRARY_PQ, none, &error)) *s->programs = 0;
    if (!*s->programs || !server_begin(s)) return 0;
    server_print_log(s);
    server_stop(s);
    return -1;
}

static inline void server_or_skip(const server *s) {
    if (*s->programs) return;
    print_message(
        "skipped: PostgreSQL is absent: Debian's packages postgresql and libpq5 have it\n");
    skip();
}

/* The role basin needs no password and ignores this one; a role called locked would need one. */
static inline const char *server_address(const server *s) {
    static char text[200];
    snprintf(text, sizeof text, "postgresql://basin:" SERVER_PASSWORD "@/postgres?host=%s",
             s->folder);
    return text;
}

/* Runs statements, of which the last may give rows. */
static inline void server_run(const char *address, const char *sql) {
    static const basin_library_function name[] = {{.name = "PQconnectdb"},
                                                  {.name = "PQexec"},
                                                  {.name = "PQresultStatus"},
                                                  {.name = "PQclear"},
                                                  {.name = "PQfinish"},
                                                  {.name = "PQerrorMessage"},
                                                  {0}};
    struct {
        void *(*connect)(const char *address);
        void *(*exec)(void *connection, const char *sql);
        int (*status)(const void *result);
        void (*clear)(void *result);
        void (*finish)(void *connection);
        const char *(*message)(const void *connection);
    } pq;
    assert_int_equal(basin_library_load(&pq, BASIN_LIBRARY_PQ, name, NULL), BASIN_OK);
    void *connection = pq.connect(address), *result = pq.exec(connection, sql);
    int status = pq.status(result);
    if (status != 1 && status != 2) fail_msg("%s", pq.message(connection));
    pq.clear(result);
    pq.finish(connection);
}

#endif
