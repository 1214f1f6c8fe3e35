/* HTTP by libmicrohttpd, which is opened at run time: the few functions that are needed are
 * declared here, so that building needs no header of it. Listening, requests as they come and go,
 * and the life of the server. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/number.h"
#include "serve/server.h"

/* ---- libmicrohttpd ---- */

typedef int on_request(void *server, void *connection, const char *path, const char *method,
                       const char *version, const char *data, size_t *size, void **request);
typedef int on_value(void *context, int kind, const char *key, size_t key_size, const char *value,
                     size_t size);

#define FUNCTIONS(X)                                                                               \
    X(void *, MHD_start_daemon,                                                                    \
      (unsigned flags, uint16_t port, void *policy, void *policy_state, on_request *handler,       \
       void *state, ...))                                                                          \
    X(int, MHD_quiesce_daemon, (void *daemon))                                                     \
    X(void, MHD_stop_daemon, (void *daemon))                                                       \
    X(int, MHD_get_connection_values_n,                                                            \
      (void *connection, int kind, on_value *take, void *context))                                 \
    X(const char *, MHD_lookup_connection_value, (void *connection, int kind, const char *key))    \
    X(const int *, MHD_get_connection_info, (void *connection, int which, ...))                    \
    X(void *, MHD_create_response_from_buffer, (size_t size, void *data, int mode))                \
    X(int, MHD_add_response_header, (void *response, const char *key, const char *value))          \
    X(int, MHD_queue_response, (void *connection, unsigned status, void *response))                \
    X(void, MHD_destroy_response, (void *response))                                                \
    X(void, MHD_suspend_connection, (void *connection))                                            \
    X(void, MHD_resume_connection, (void *connection))
#define FIELD(type, name, arguments) type(*name) arguments;
#define NAME(type, name, arguments) {#name, NULL},

static struct { FUNCTIONS(FIELD) } mhd;
static const basin_library_function wanted[] = {FUNCTIONS(NAME){0}};

/* Constants of its interface (libmicrohttpd.so.12). */
enum { NO, YES };
enum { HEADERS = 1, ARGUMENTS = 8 };   /* kinds of values */
enum { CONNECTION_FD = 6 };            /* of MHD_get_connection_info */
enum { MUST_FREE = 1, MUST_COPY = 2 }; /* of responses */
enum { ENDED_BY_TIMEOUT = 2, CONNECTION_BEGINS = 0 };
enum { INTERNAL_THREAD = 8, EPOLL = 512, ITC = 1024, TURBO = 4096, SUSPEND = 8192 }; /* flags */
enum { END, MEMORY_LIMIT, CONNECTION_LIMIT, CONNECTION_TIMEOUT, NOTIFY_COMPLETED };  /* options */
enum { LISTEN_SOCKET = 12, THREAD_POOL_SIZE = 14, NOTIFY_CONNECTION = 27 };

/* ---- a request comes and goes ---- */

typedef struct taking {
    basin_argument_take *take;
    void *context;
    basin_error *error;
    basin_status status;
} taking;

static int take_value(void *context, int kind, const char *key, size_t key_size, const char *value,
                      size_t size) {
    taking *t = context;
    (void)kind, (void)key_size;
    t->status = t->take(t->context, key, value, size, t->error);
    return t->status ? NO : YES;
}

basin_status basin_request_arguments(basin_request *r, basin_argument_take *take, void *context,
                                     basin_error *error) {
    taking t = {take, context, error, BASIN_OK};
    mhd.MHD_get_connection_values_n(r->connection, ARGUMENTS, take_value, &t);
    return t.status;
}

const char *basin_request_header(basin_request *r, const char *key) {
    return mhd.MHD_lookup_connection_value(r->connection, HEADERS, key);
}

void basin_request_suspend(basin_request *r, basin_request **list) {
    r->stage = BASIN_WAITING;
    r->next = *list;
    *list = r;
    mhd.MHD_suspend_connection(r->connection);
}

void basin_request_resume(basin_request *list, basin_status status, const basin_error *problem) {
    while (list) {
        basin_request *next = list->next; /* it may be gone when it has been resumed */
        list->waited = status;
        if (status) list->problem = *problem;
        mhd.MHD_resume_connection(list->connection);
        list = next;
    }
}

/* Queues the answer, which libmicrohttpd frees. */
static int send_answer(basin_request *r) {
    static const char fallback[] = "{\"error\":\"out of memory\",\"status\":503}\n";
    char *text = r->answer.file ? basin_memory_file_close(&r->answer) : NULL;
    bool closes = r->status == 503 || atomic_load(&r->server->stopping);
    r->answer.file = NULL;
    if (!text) r->status = 503;
    r->bytes = text ? strlen(text) : sizeof fallback - 1;
    void *response = mhd.MHD_create_response_from_buffer(
        r->bytes, text ? text : (char *)(uintptr_t)fallback, text ? MUST_FREE : MUST_COPY);
    if (!response) {
        free(text);
        return NO;
    }
    mhd.MHD_add_response_header(response, "Content-Type",
                                r->route == BASIN_ROUTE_METRICS && r->status == 200
                                    ? "text/plain; version=0.0.4"
                                    : "application/json");
    mhd.MHD_add_response_header(response, "X-Request-Id", r->name);
    mhd.MHD_add_response_header(response, "Cache-Control", "no-store");
    if (r->allow) mhd.MHD_add_response_header(response, "Allow", r->allow);
    if (r->status == 401) mhd.MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (r->status == 503) mhd.MHD_add_response_header(response, "Retry-After", "1");
    if (closes) mhd.MHD_add_response_header(response, "Connection", "close");
    int queued = mhd.MHD_queue_response(r->connection, (unsigned)r->status, response);
    mhd.MHD_destroy_response(response);
    r->stage = BASIN_ANSWERED;
    r->done = basin_clock();
    return queued;
}

/* A body that does not come: the answer is written past libmicrohttpd, which closes the connection.
 */
static void send_late(basin_request *r) {
    char text[600];
    const int *fd = mhd.MHD_get_connection_info(r->connection, CONNECTION_FD);
    int length = snprintf(NULL, 0, "{\"error\":\"the body did not arrive within %g s\"}\n",
                          r->server->o->timeout);
    length = snprintf(text, sizeof text,
                      "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\n"
                      "Connection: close\r\nX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n"
                      "{\"error\":\"the body did not arrive within %g s\"}\n",
                      r->name, length, r->server->o->timeout);
    r->status = 408;
    r->stage = BASIN_ANSWERED;
    r->done = basin_clock();
    if (fd && send(*fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        r->bytes = (size_t)length;
}

/* The caller's name for the request, where it is short and plain; else one of our own. */
static void give_name(basin_request *r) {
    static atomic_ullong count;
    const char *given = basin_request_header(r, "X-Request-Id");
    size_t length = given ? strlen(given) : 0, plain = 0;
    while (plain < length && given[plain] > ' ' && given[plain] < 127) plain++;
    if (length && length < sizeof r->name && plain == length)
        memcpy(r->name, given, length + 1);
    else
        snprintf(r->name, sizeof r->name, "%llx-%llx", (unsigned long long)r->server->started,
                 atomic_fetch_add(&count, 1) + 1);
}

/* A body that is too long is read to its end and dropped, since many clients look for the answer
 * only then; one that is much too long is not. */
enum { SWALLOWED = 8 };

static int begin_request(basin_request **request, basin_server *s, void *connection,
                         const char *path, const char *method) {
    basin_request *r = calloc(1, sizeof *r);
    if (!r) return NO;
    *request = r;
    r->server = s;
    r->connection = connection;
    r->route = basin_route_find(path);
    r->begun = basin_clock();
    snprintf(r->method, sizeof r->method, "%s", strcmp(method, "HEAD") != 0 ? method : "GET");
    give_name(r);
    atomic_fetch_add(&s->active, 1);
    const char *length = basin_request_header(r, "Content-Length");
    bool crowded = atomic_load(&s->connections) > s->o->connections;
    if (crowded || (atomic_load(&s->stopping) && r->route != BASIN_ROUTE_HEALTH))
        basin_request_fail(r, 503, crowded ? "too many connections" : "the server is stopping");
    else if (length && strtod(length, NULL) > SWALLOWED * (double)s->o->max_body)
        basin_request_fail(r, 413, "the body is %.20s bytes long, at most %lld are accepted",
                           length, (long long)s->o->max_body);
    else
        return YES;
    return send_answer(r);
}

static int take_body(basin_request *r, const char *data, size_t *size) {
    size_t most = (size_t)r->server->o->max_body, length = r->length + *size;
    if (basin_clock() - r->begun > r->server->o->timeout) {
        send_late(r);
        return NO;
    }
    if (length <= most && length > r->capacity) {
        size_t capacity = length < 4096 ? 4096 : length < most / 2 ? 2 * length : most;
        char *grown = realloc(r->body, capacity);
        if (!grown) return NO;
        r->body = grown;
        r->capacity = capacity;
    }
    if (length <= most) memcpy(r->body + r->length, data, *size);
    if (length > SWALLOWED * most) return NO;
    r->length = length;
    *size = 0;
    return YES;
}

static int take_request(void *server, void *connection, const char *path, const char *method,
                        const char *version, const char *data, size_t *size, void **request) {
    basin_request *r = *request;
    (void)version;
    if (!r) return begin_request((basin_request **)request, server, connection, path, method);
    if (r->stage == BASIN_ANSWERED) return YES;
    if (*size) return take_body(r, data, size);
    bool resumed = r->stage == BASIN_WAITING;
    basin_request_answer(r);
    return r->stage == BASIN_WAITING && !resumed ? YES : send_answer(r);
}

static void end_request(void *server, void *connection, void **request, int how) {
    basin_server *s = server;
    basin_request *r = *request;
    (void)connection;
    if (!r) return;
    if (how == ENDED_BY_TIMEOUT && r->stage == BASIN_READING) send_late(r);
    if (r->stage != BASIN_ANSWERED) { /* the client went away */
        r->status = 499;
        r->done = basin_clock();
    }
    basin_request_count(r);
    basin_request_log(r);
    free(r->body);
    free(r);
    *request = NULL;
    atomic_fetch_sub(&s->active, 1);
}

static void count_connection(void *server, void *connection, void **state, int how) {
    basin_server *s = server;
    (void)connection, (void)state;
    atomic_fetch_add(&s->connections, how == CONNECTION_BEGINS ? 1 : -1);
}

/* ---- where it listens ---- */

static basin_status fail_system(const char *where, const char *what, basin_error *error) {
    return basin_fail(error, BASIN_IO, "%s: cannot %s: %s", where, what, strerror(errno));
}

/* A socket of mode 0600. What a killed server left is replaced; one that answers is not. */
static basin_status listen_unix(int *fd, const char *path, basin_error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: a socket's path is at most %zu bytes long",
                          path, sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0) return fail_system(path, "make a socket", error);
    if (!lstat(path, &status)) {
        if (!S_ISSOCK(status.st_mode))
            return basin_fail(error, BASIN_BAD_VALUE, "%s: is there, and is no socket", path);
        if (!connect(*fd, (struct sockaddr *)&address, sizeof address))
            return basin_fail(error, BASIN_IO, "%s: another server listens there", path);
        unlink(path);
    }
    mode_t mask = umask(0177);
    int bound = bind(*fd, (struct sockaddr *)&address, sizeof address);
    umask(mask);
    return bound ? fail_system(path, "listen", error) : BASIN_OK;
}

static bool is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    return address->sa_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

/* "HOST:PORT", "[::1]:8470". */
static basin_status listen_tcp(int *fd, const basin_server *s, basin_error *error) {
    const char *where = s->o->listen, *colon = strrchr(where, ':');
    char host[256];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    bool bracket = where[0] == '[' && colon > where && colon[-1] == ']';
    if (!colon || !colon[1] || (!bracket && memchr(where, ':', (size_t)(colon - where))))
        return basin_fail(error, BASIN_BAD_VALUE, "listen %s: needs HOST:PORT", where);
    snprintf(host, sizeof host, "%.*s", (int)(colon - where) - 2 * bracket, where + bracket);
    int problem = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &found);
    if (problem)
        return basin_fail(error, BASIN_BAD_VALUE, "listen %s: %s", where, gai_strerror(problem));
    basin_status status = BASIN_OK;
    if (!is_loopback(found->ai_addr) && !*s->token)
        status = basin_fail(error, BASIN_BAD_VALUE,
                            "listen %s: others can reach this address, needs a token; "
                            "without one, 127.0.0.1:PORT or a socket",
                            where);
    int on = 1;
    if (!status) {
        *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
            bind(*fd, found->ai_addr, found->ai_addrlen))
            status = fail_system(where, "listen", error);
    }
    freeaddrinfo(found);
    return status;
}

static basin_status begin_listening(int *fd, const basin_server *s, basin_error *error) {
    const char *path = s->o->socket;
    BASIN_TRY(path ? listen_unix(fd, path, error) : listen_tcp(fd, s, error));
    if (listen(*fd, 1024) || fcntl(*fd, F_SETFL, O_NONBLOCK))
        return fail_system(path ? path : s->o->listen, "listen", error);
    return BASIN_OK;
}

/* One line, in a file that others cannot read. */
static basin_status read_token(basin_server *s, basin_error *error) {
    const char *path = s->o->token;
    struct stat status;
    if (!path) return BASIN_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status)) {
        if (fd >= 0) close(fd);
        return fail_system(path, "open", error);
    }
    ssize_t length = read(fd, s->token, sizeof s->token - 1);
    close(fd);
    if (!S_ISREG(status.st_mode) || (status.st_mode & 077))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: has mode %04o, needs 0600: others may read the token", path,
                          (unsigned)status.st_mode & 07777);
    s->token[length > 0 ? length : 0] = 0;
    size_t used = strcspn(s->token, "\r\n");
    if (strspn(s->token + used, "\r\n") != strlen(s->token + used) || used < 16 || used > 250)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: needs one line of 16 to 250 bytes, the token", path);
    s->token[used] = 0;
    return BASIN_OK;
}

/* ---- the life of the server ---- */

static basin_status open_log(basin_server *s, basin_error *error) {
    const char *path = s->o->log;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640)
                  : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return fail_system(path ? path : "standard output", "open the log", error);
    if (s->log < 0) {
        s->log = fd;
        return BASIN_OK;
    }
    dup2(fd, s->log);
    close(fd);
    return BASIN_OK;
}

/* SIGHUP, or requests that wait for it. */
static void reload(basin_server *s) {
    basin_error error = {0};
    pthread_mutex_lock(&s->lock);
    basin_request *list = s->to_reload;
    s->to_reload = NULL;
    pthread_mutex_unlock(&s->lock);
    if (s->o->log && open_log(s, &error)) s->o->say("basin: %s", error.text);
    basin_status status = basin_server_reload(s, &error);
    if (status)
        s->o->say("basin: the model was not reloaded: %s", error.text);
    else
        s->o->say("basin: model %s", s->now->id);
    basin_request_resume(list, status, &error);
}

static void wait_for_requests(basin_server *s) {
    double end = basin_clock() + 2 * s->o->timeout;
    while (atomic_load(&s->active) > 0 && basin_clock() < end) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        if (s->to_reload) reload(s); /* suspended ones must go on */
    }
}

static sigset_t awaited(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    return signals;
}

/* Serves until a signal; then what has begun is answered. */
static void attend(basin_server *s, void *daemon) {
    sigset_t signals = awaited();
    int number = 0;
    while (sigwait(&signals, &number) || number == SIGHUP)
        if (number == SIGHUP) reload(s);
    s->o->say("basin: stopping on %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* a second one ends the program */
    atomic_store(&s->stopping, true);
    int fd = mhd.MHD_quiesce_daemon(daemon);
    wait_for_requests(s);
    if (fd >= 0) close(fd);
}

static void announce(const basin_server *s, int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char where[512] = "", port[16] = "";
    if (s->o->socket) {
        snprintf(where, sizeof where, "the socket %s", s->o->socket);
    } else if (!getsockname(fd, (struct sockaddr *)&address, &size) &&
               !getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof port,
                            NI_NUMERICSERV)) {
        snprintf(where, sizeof where, "http://%.*s:%s",
                 (int)(strrchr(s->o->listen, ':') - s->o->listen), s->o->listen, port);
    }
    basin_nodes_live_counts counts = basin_nodes_live_count(s->now->live);
    s->o->say("basin: serving on %s: model %s, %lld accounts, %lld additions%s%s", where,
              s->now->id, (long long)counts.nodes, (long long)s->journal->records,
              s->o->read_only ? ", read-only" : " in ", s->o->read_only ? "" : s->journal->path);
}

static basin_status run(basin_server *s, int fd, basin_error *error) {
    pthread_t committer;
    if (pthread_create(&committer, NULL, basin_server_commit, s))
        return basin_fail(error, BASIN_NO_MEMORY, "cannot start a thread");
    void *daemon = mhd.MHD_start_daemon(
        INTERNAL_THREAD | EPOLL | ITC | TURBO | SUSPEND, 0, NULL, NULL, take_request, s,
        LISTEN_SOCKET, fd, THREAD_POOL_SIZE, (unsigned)s->o->threads, CONNECTION_LIMIT,
        (unsigned)s->o->connections + 64, CONNECTION_TIMEOUT, (unsigned)(s->o->timeout + 0.999),
        NOTIFY_COMPLETED, end_request, s, NOTIFY_CONNECTION, count_connection, s, END);
    if (daemon) {
        announce(s, fd);
        attend(s, daemon);
    }
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(committer, NULL);
    if (!daemon) return fail_system("libmicrohttpd", "start", error);
    mhd.MHD_stop_daemon(daemon);
    return s->o->read_only ? BASIN_OK : basin_journal_sync(s->journal, error);
}

void basin_serve_prepare(void) {
    sigset_t signals = awaited();
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

basin_status basin_serve(const basin_serving *o, basin_error *error) {
    basin_server *s BASIN_FREE_AT_EXIT = NULL;
    struct timeval now;
    int fd = -1;
    BASIN_TRY(basin_library_load(&mhd, BASIN_LIBRARY_MICROHTTPD, wanted, error));
    BASIN_TRY(BASIN_NEW(&s, 1, "a server", error));
    gettimeofday(&now, NULL);
    s->started = (double)now.tv_sec;
    basin_status status = basin_server_open(s, o, error);
    if (!status) status = read_token(s, error);
    if (!status) status = open_log(s, error);
    if (!status) status = begin_listening(&fd, s, error);
    if (!status) {
        status = run(s, fd, error);
        if (o->socket) unlink(o->socket);
        fd = -1;
    }
    if (fd >= 0) close(fd);
    if (s->log >= 0) close(s->log);
    basin_server_close(s);
    return status;
}
