/* HTTP by libmicrohttpd, which is opened at run time: the few functions that are needed are
 * declared here, so that building needs no header of it. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/library.h"
#include "tasks/nodes/serve/server.h"

/* ---- libmicrohttpd ---- */

typedef int on_request(void *server, void *connection, const char *path, const char *method,
                       const char *version, const char *data, size_t *size, void **request);

#define FUNCTIONS(X)                                                                               \
    X(void *, MHD_start_daemon,                                                                    \
      (unsigned flags, uint16_t port, void *policy, void *policy_state, on_request *handler,       \
       void *state, ...))                                                                          \
    X(int, MHD_quiesce_daemon, (void *daemon))                                                     \
    X(void, MHD_stop_daemon, (void *daemon))                                                       \
    X(int, MHD_lookup_connection_value_n,                                                          \
      (void *connection, int kind, const char *key, size_t key_size, const char **value,           \
       size_t *size))                                                                              \
    X(const int *, MHD_get_connection_info, (void *connection, int which, ...))                    \
    X(void *, MHD_create_response_from_buffer, (size_t size, void *data, int mode))                \
    X(int, MHD_add_response_header, (void *response, const char *key, const char *value))          \
    X(int, MHD_queue_response, (void *connection, unsigned status, void *response))                \
    X(void, MHD_destroy_response, (void *response))
#define FIELD(type, name, arguments) type(*name) arguments;
#define NAME(type, name, arguments) {#name, NULL},

static struct { FUNCTIONS(FIELD) } mhd;
static const basin_library_function expected[] = {FUNCTIONS(NAME){0}};

/* Constants of its interface, that of libmicrohttpd.so.12: results, kinds of values, of
 * information and of memory, flags, options. */
enum { NO, YES };
enum { HEADERS = 1, ARGUMENTS = 8, CONNECTION_FD = 6, MUST_FREE = 1, MUST_COPY = 2 };
enum { ENDED_BY_TIMEOUT = 2, CONNECTION_BEGINS = 0 };
enum { THREAD_EACH = 4, INTERNAL_THREAD = 8, POLL = 64, ITC = 1024, TURBO = 4096 };
enum { END, MEMORY_LIMIT, CONNECTION_LIMIT, CONNECTION_TIMEOUT, NOTIFY_COMPLETED };
enum { LISTEN_SOCKET = 12, NOTIFY_CONNECTION = 27 };

const char *basin_request_value(const basin_request *r, bool header, const char *key,
                                size_t *length) {
    const char *value = NULL;
    mhd.MHD_lookup_connection_value_n(r->connection, header ? HEADERS : ARGUMENTS, key, strlen(key),
                                      &value, length);
    return value;
}

/* ---- a request comes and goes ---- */

static int send_answer(basin_request *r) {
    static const char fallback[] = "{\"error\":\"out of memory\",\"status\":503}\n";
    char *text = r->answer.file ? basin_memory_file_close(&r->answer) : NULL;
    if (!text) r->status = 503;
    r->bytes = text ? strlen(text) : sizeof fallback - 1;
    void *response = mhd.MHD_create_response_from_buffer(
        r->bytes, text ? text : (char *)(uintptr_t)fallback, text ? MUST_FREE : MUST_COPY);
    if (!response) free(text);
    bool metrics = r->route == METRICS && r->status == 200;
    const char *header[][2] = {
        {"Content-Type", metrics ? "text/plain; version=0.0.4" : "application/json"},
        {"X-Request-Id", r->name},
        {"Cache-Control", "no-store"},
        {"Allow", r->status == 405 ? basin_routes[r->route].methods : NULL},
        {"WWW-Authenticate", r->status == 401 ? "Bearer" : NULL},
        {"Retry-After", r->status == 503 ? "1" : NULL},
        {"Connection", r->status == 503 || r->server->stopping ? "close" : NULL}};
    for (size_t i = 0; response && i < sizeof header / sizeof *header; i++)
        if (header[i][1]) mhd.MHD_add_response_header(response, header[i][0], header[i][1]);
    int queued =
        response ? mhd.MHD_queue_response(r->connection, (unsigned)r->status, response) : NO;
    if (response) mhd.MHD_destroy_response(response);
    r->answered = true;
    r->done = basin_clock();
    return queued;
}

/* A body that does not come, or does not end: the answer is written past libmicrohttpd, which takes
 * none while a body arrives, and the connection is closed. */
static int send_at_once(basin_request *r, int status, const char *why) {
    char text[500];
    const int *fd = mhd.MHD_get_connection_info(r->connection, CONNECTION_FD);
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %d Refused\r\nContent-Type: application/json\r\n"
                          "Connection: close\r\n\r\n"
                          "{\"error\":\"%s\",\"status\":%d,\"request\":\"%s\"}\n",
                          status, why, status, r->name);
    r->status = status;
    r->answered = true;
    r->done = basin_clock();
    if (fd && send(*fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        r->bytes = (size_t)length;
    return NO;
}

static int begin_request(void **request, basin_server *s, void *connection, const char *path,
                         const char *method) {
    basin_request *r = *request = calloc(1, sizeof *r);
    if (!r) return NO;
    r->server = s;
    r->connection = connection;
    while (r->route < OTHER && strcmp(basin_routes[r->route].path, path) != 0) r->route++;
    r->begun = basin_clock();
    r->post = !strcmp(method, "POST");
    r->get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    snprintf(r->name, sizeof r->name, "%llx-%lld", (unsigned long long)s->meters.started,
             ++s->count);
    s->active++;
    bool crowded = s->meters.connections > s->o->connections;
    if (!crowded && (!s->stopping || r->route == HEALTH)) return YES;
    basin_request_fail(r, 503, crowded ? "too many connections" : "the server is stopping");
    return send_answer(r);
}

/* A body that is too long is read to its end and dropped, since many clients look for the answer
 * only then; one that is much too long is not. */
static int take_body(basin_request *r, const char *data, size_t *size) {
    enum { MUCH = 8 };
    size_t max = (size_t)r->server->o->max_body, length = r->length + *size;
    if (basin_clock() - r->begun > r->server->o->timeout)
        return send_at_once(r, 408, "the body did not arrive in time");
    if (length > MUCH * max) return send_at_once(r, 413, "the body is too long");
    if (length <= max && length > r->capacity) {
        size_t capacity = length < max / 2 ? 2 * length : max;
        char *grown = realloc(r->body, capacity);
        if (!grown) return send_at_once(r, 503, "out of memory");
        r->body = grown;
        r->capacity = capacity;
    }
    if (length <= max) memcpy(r->body + r->length, data, *size);
    r->length = length;
    *size = 0;
    return YES;
}

static int take_request(void *server, void *connection, const char *path, const char *method,
                        const char *version, const char *data, size_t *size, void **request) {
    basin_request *r = *request;
    (void)version;
    if (!r) return begin_request(request, server, connection, path, method);
    if (r->answered) return YES;
    if (*size) return take_body(r, data, size);
    basin_request_answer(r);
    return send_answer(r);
}

static void end_request(void *server, void *connection, void **request, int how) {
    basin_server *s = server;
    basin_request *r = *request;
    (void)connection;
    if (!r) return;
    if (how == ENDED_BY_TIMEOUT && !r->answered)
        send_at_once(r, 408, "the body did not arrive in time");
    if (!r->answered) r->status = 499, r->done = basin_clock(); /* it went away */
    basin_request_log(r);
    BASIN_FREE(r->body, r);
    *request = NULL;
    s->active--;
}

static void count_connection(void *server, void *connection, void **state, int how) {
    basin_server *s = server;
    (void)connection, (void)state;
    s->meters.connections += how == CONNECTION_BEGINS ? 1 : -1;
}

/* ---- where it listens ---- */

/* A socket of mode 0600. What a killed server left is replaced; one that answers is not. */
static basin_status listen_unix(int *fd, const char *path, basin_error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path || (!lstat(path, &status) && !S_ISSOCK(status.st_mode)))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: is too long for a socket, or is not a socket", path);
    memcpy(address.sun_path, path, length + 1);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0 && !connect(*fd, (struct sockaddr *)&address, sizeof address))
        return basin_fail(error, BASIN_IO, "%s: another server listens there", path);
    unlink(path);
    mode_t mask = umask(0177);
    int bound = bind(*fd, (struct sockaddr *)&address, sizeof address);
    umask(mask);
    return bound ? basin_fail_errno(path, "listen", error) : BASIN_OK;
}

static bool is_loopback(const struct sockaddr *a) {
    return a->sa_family == AF_INET6
               ? IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr)
               : ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
}

/* "HOST:PORT", "[::1]:8470". */
static basin_status listen_tcp(int *fd, const basin_server *s, basin_error *error) {
    const char *where = s->o->listen, *colon = strrchr(where, ':');
    char host[256];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool bracket = where[0] == '[' && colon > where && colon[-1] == ']';
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    if (colon == where || !digits || colon[1 + digits] || strtol(colon + 1, NULL, 10) > 65535)
        return basin_fail(error, BASIN_BAD_VALUE, "listen %s: needs HOST:PORT, the port a number",
                          where);
    snprintf(host, sizeof host, "%.*s", (int)(colon - where) - 2 * bracket, where + bracket);
    int problem = getaddrinfo(host, colon + 1, &hints, &found), on = 1;
    if (problem)
        return basin_fail(error, BASIN_BAD_VALUE, "listen %s: %s", where, gai_strerror(problem));
    basin_status status = BASIN_OK;
    if (!is_loopback(found->ai_addr) && !*s->token)
        status = basin_fail(error, BASIN_BAD_VALUE,
                            "listen %s: others can reach this address, needs a token; without one, "
                            "127.0.0.1:PORT or a socket",
                            where);
    if (!status) *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!status && (setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
                    bind(*fd, found->ai_addr, found->ai_addrlen)))
        status = basin_fail_errno(where, "listen", error);
    freeaddrinfo(found);
    return status;
}

/* One line, in a file that others cannot read. */
static basin_status read_token(basin_server *s, basin_error *error) {
    const char *path = s->o->token;
    struct stat status;
    if (!path) return BASIN_OK;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &status) || !fgets(s->token, sizeof s->token, file))
        s->token[0] = 0;
    bool more = file && fgetc(file) != EOF;
    if (!file) return basin_fail_errno(path, "open", error);
    fclose(file);
    s->token[strcspn(s->token, "\r\n")] = 0;
    if (status.st_mode & 077)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: has mode %04o, needs 0600: others may read the token", path,
                          (unsigned)status.st_mode & 07777);
    if (strlen(s->token) >= 16 && !more) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: needs one line of 16 to 250 bytes, the token",
                      path);
}

/* ---- the life of the server ---- */

static basin_status open_log(basin_server *s, basin_error *error) {
    const char *path = s->o->log;
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    s->log = path ? open(path, flags, 0640) : dup(STDOUT_FILENO);
    return s->log < 0 ? basin_fail_errno(path ? path : "stdout", "open the log", error) : BASIN_OK;
}

static sigset_t awaited(void) {
    sigset_t signals;
    const int number[] = {SIGTERM, SIGINT, SIGHUP};
    sigemptyset(&signals);
    for (int i = 0; i < 3; i++) sigaddset(&signals, number[i]);
    return signals;
}

void basin_serve_prepare(void) {
    sigset_t signals = awaited();
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

/* Serves until a signal; then what has begun is answered. */
static void attend(basin_server *s, void *daemon) {
    sigset_t signals = awaited();
    int number = 0;
    basin_error error; /* which the reload has printed */
    while (sigwait(&signals, &number) || number == SIGHUP)
        if (number == SIGHUP) basin_server_reload(s, &error);
    s->o->say("basin: stopping");
    s->stopping = true;
    int fd = mhd.MHD_quiesce_daemon(daemon);
    double end = basin_clock() + 2 * s->o->timeout;
    while (s->active > 0 && basin_clock() < end) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        if (!sigpending(&signals) &&
            (sigismember(&signals, SIGTERM) || sigismember(&signals, SIGINT)))
            _exit(1); /* a second signal */
    }
    if (fd >= 0) close(fd);
}

static void announce(const basin_server *s, int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char port[16] = "";
    const char *where = s->o->socket ? s->o->socket : s->o->listen;
    if (!s->o->socket && !getsockname(fd, (struct sockaddr *)&address, &size))
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    s->o->say("basin: serving on %s%.*s%s: model %s, %lld accounts, %lld additions in %s%s",
              *port ? "http://" : "",
              (int)(*port ? strrchr(where, ':') + 1 - where : (ptrdiff_t)strlen(where)), where,
              port, s->now->id, (long long)basin_nodes_live_count(s->now->live).nodes,
              (long long)s->journal->records, s->journal->path,
              s->o->read_only ? ", read-only" : "");
}

static basin_status run(basin_server *s, int fd, basin_error *error) {
    if (listen(fd, 1024) || fcntl(fd, F_SETFL, O_NONBLOCK))
        return basin_fail_errno(s->o->socket ? s->o->socket : s->o->listen, "listen", error);
    void *daemon = mhd.MHD_start_daemon(
        THREAD_EACH | INTERNAL_THREAD | POLL | ITC | TURBO, 0, NULL, NULL, take_request, s,
        LISTEN_SOCKET, fd, CONNECTION_LIMIT, (unsigned)s->o->connections + 64, CONNECTION_TIMEOUT,
        (unsigned)(s->o->timeout + 0.999), NOTIFY_COMPLETED, end_request, s, NOTIFY_CONNECTION,
        count_connection, s, END);
    if (!daemon) return basin_fail_errno("libmicrohttpd", "start", error);
    announce(s, fd);
    attend(s, daemon);
    mhd.MHD_stop_daemon(daemon);
    return s->o->read_only ? BASIN_OK : basin_journal_sync(s->journal, error);
}

basin_status basin_serve(const basin_serving *o, basin_error *error) {
    basin_server *s BASIN_FREE_AT_EXIT = NULL;
    int fd = -1;
    BASIN_TRY(basin_library_load(&mhd, BASIN_LIBRARY_MICROHTTPD, expected, error));
    BASIN_TRY(BASIN_NEW(&s, 1, "a server", error));
    s->o = o;
    s->log = -1;
    s->meters.started = time(NULL);
    basin_status status = read_token(s, error);
    if (!status)
        status = o->socket ? listen_unix(&fd, o->socket, error) : listen_tcp(&fd, s, error);
    bool bound = !status;
    if (!status) status = open_log(s, error);
    if (!status) {
        status = basin_server_open(s, error);
        if (!status) status = run(s, fd, error);
        basin_server_close(s);
    }
    if (o->socket && bound) unlink(o->socket);
    if (s->log >= 0) close(s->log);
    return status;
}
