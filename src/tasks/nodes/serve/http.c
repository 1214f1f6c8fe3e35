#define _GNU_SOURCE /* accept4 */
/* HTTP by libmicrohttpd, which is opened at run time: the few functions that are needed are
 * declared here, so that building needs no header of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/library.h"
#include "tasks/nodes/serve/server.h"

/* ---- libmicrohttpd ---- */

typedef int on_request(void *connection, void *its, const char *path, const char *method,
                       const char *version, const char *data, size_t *size, void **unused);
typedef int on_argument(void *arguments, int kind, const char *key, const char *value);

#define FUNCTIONS(X)                                                                               \
    X(void *, MHD_start_daemon,                                                                    \
      (unsigned flags, uint16_t port, void *policy, void *policy_state, on_request *handler,       \
       void *state, ...))                                                                          \
    X(int, MHD_add_connection, (void *daemon, int fd, const struct sockaddr *, socklen_t size))    \
    X(int, MHD_run_wait, (void *daemon, int32_t milliseconds))                                     \
    X(void, MHD_stop_daemon, (void *daemon))                                                       \
    X(int, MHD_lookup_connection_value_n,                                                          \
      (void *connection, int kind, const char *key, size_t key_size, const char **value,           \
       size_t *size))                                                                              \
    X(int, MHD_get_connection_values, (void *connection, int kind, on_argument *take, void *into)) \
    X(void *, MHD_create_response_from_buffer, (size_t size, void *data, int mode))                \
    X(int, MHD_add_response_header, (void *response, const char *key, const char *value))          \
    X(int, MHD_queue_response, (void *connection, unsigned status, void *response))                \
    X(void, MHD_destroy_response, (void *response))
#define FIELD(type, name, arguments) type(*name) arguments;
#define NAME(type, name, arguments) {#name, NULL},

static struct { FUNCTIONS(FIELD) } mhd;
static const basin_library_function expected[] = {FUNCTIONS(NAME){0}};

/* Constants of its interface, that of libmicrohttpd.so.12: results, kinds of values and of memory,
 * what became of a connection, flags, options. */
enum { NO, YES };
enum { HEADERS = 1, ARGUMENTS = 8, MUST_FREE = 1, MUST_COPY = 2, CONNECTION_ENDS = 1 };
enum { ERROR_LOG = 1, NO_LISTEN_SOCKET = 256, EPOLL = 512, TURBO = 4096 };
enum { END, NOTIFY_COMPLETED = 4, URI_LOG = 7, LOGGER = 13, NOTIFY_CONNECTION = 27, STRICT = 29 };

/* ---- answers ---- */

/* Each connection has a thread and a daemon of libmicrohttpd, so that limits of time are ours and
 * an error of libmicrohttpd belongs to a connection. It is in the server's list, under its lock. */
struct basin_connection {
    basin_connection *next, **place; /* in the list */
    basin_server *server;
    basin_request *request; /* what is read or answered; NULL: a head is awaited */
    void *daemon;
    int fd;             /* another name of the socket, which libmicrohttpd closes */
    bool ended;         /* by libmicrohttpd; after an answer, */
    bool answered;      /* or for another reason */
    atomic_bool closed; /* by us */
    bool waiting;       /* for a head, so that it may be closed; for the first one: */
    bool fresh;
    bool crowded;         /* more than --connections have requests: for /health */
    _Atomic double since; /* when that began, or a body, or an answer */
    char local[INET6_ADDRSTRLEN];
};

static basin_request *request_new(basin_connection *c) {
    basin_request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->server = c->server;
    r->route = OTHER;
    r->begun = basin_clock();
    snprintf(r->name, sizeof r->name, "%llx-%lld", (unsigned long long)c->server->meters.started,
             ++c->server->count);
    c->server->active++;
    return c->request = r;
}

static void request_free(basin_connection *c) {
    basin_request *r = c->request;
    if (!r) return;
    if (!r->answered) r->status = 499, r->done = basin_clock(); /* it went away */
    basin_request_log(r);
    if (r->answer.file) free(basin_memory_file_close(&r->answer));
    cJSON_Delete(r->arguments);
    BASIN_FREE(r->body, r);
    c->request = NULL;
    c->server->active--;
}

/* The answer's text, and a fallback where memory is short. */
static char *take_text(basin_connection *c) {
    basin_request *r = c->request;
    char *text = r->answer.file ? basin_memory_file_close(&r->answer) : NULL;
    r->answer.file = NULL;
    if (!text) r->status = 503;
    r->answered = true;
    r->done = basin_clock();
    c->since = r->done;
    return text;
}
static const char fallback[] = "{\"error\":\"out of memory\",\"status\":503}\n";

static int send_answer(basin_connection *c, void *connection) {
    basin_request *r = c->request;
    char *text = take_text(c);
    r->bytes = text ? strlen(text) : sizeof fallback - 1;
    void *response = mhd.MHD_create_response_from_buffer(
        r->bytes, text ? text : (char *)(uintptr_t)fallback, text ? MUST_FREE : MUST_COPY);
    if (!response) free(text);
    bool metrics = r->route == METRICS && r->status == 200;
    const char *header[][2] = {
        {"Content-Type", metrics ? "text/plain; version=0.0.4" : "application/json"},
        {"X-Request-Id", r->name},
        {"X-Content-Type-Options", "nosniff"},
        {"Cache-Control", "no-store"},
        {"Allow", r->status == 405 ? basin_routes[r->route].methods : NULL},
        {"WWW-Authenticate", r->status == 401 ? "Bearer" : NULL},
        {"Retry-After", r->status == 503 ? "1" : NULL},
        {"Connection", c->crowded || r->status == 503 || r->server->stopping ? "close" : NULL}};
    for (size_t i = 0; response && i < sizeof header / sizeof *header; i++)
        if (header[i][1]) mhd.MHD_add_response_header(response, header[i][0], header[i][1]);
    int queued = response ? mhd.MHD_queue_response(connection, (unsigned)r->status, response) : NO;
    if (response) mhd.MHD_destroy_response(response);
    return queued;
}

/* Where libmicrohttpd takes no answer, since the head or the body is wrong or does not end, it is
 * written past it, and the connection is closed. */
static int send_at_once(basin_connection *c, int status, const char *why) {
    char head[300];
    basin_request *r = c->request ? c->request : request_new(c);
    if (!r || r->answered) return NO;
    r->journal = r->server->meters.records;
    basin_server_look(r->server, r->model);
    basin_request_fail(r, status, "%s", why);
    BASIN_FREE_AT_EXIT char *owned = take_text(c);
    const char *text = owned ? owned : fallback;
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %d Refused\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\nX-Request-Id: %s\r\nConnection: close\r\n\r\n",
                          status, strlen(text), r->name);
    if (send(c->fd, head, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) == length &&
        send(c->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        r->bytes = strlen(text);
    shutdown(c->fd, SHUT_WR); /* libmicrohttpd's own page goes nowhere */
    c->closed = true;
    return NO;
}

/* What libmicrohttpd would answer by a page of HTML. */
static void take_error(void *connection, const char *format, va_list args) {
    static const char known[] = "Error processing request (HTTP response code is %u";
    if (strncmp(format, known, sizeof known - 1) != 0) return;
    int status = (int)va_arg(args, unsigned);
    send_at_once(connection, status,
                 status == 413   ? "the body is too long"
                 : status == 414 ? "the path is too long"
                 : status == 431 ? "the head is longer than 32 KiB"
                 : status == 505 ? "needs HTTP/1.1 or HTTP/1.0"
                 : status >= 500 ? "the request could not be read"
                                 : "is not an HTTP request with a Host");
}

/* ---- a request comes and goes ---- */

static const char *header_of(void *connection, const char *key) {
    const char *value = NULL;
    mhd.MHD_lookup_connection_value_n(connection, HEADERS, key, strlen(key), &value, NULL);
    return value;
}

/* Its first line is there. */
static void *take_line(void *its, const char *uri, void *connection) {
    basin_connection *c = its;
    (void)connection;
    request_free(c);
    basin_request *r = request_new(c);
    const char *zero = strstr(uri, "%00");
    if (r) r->begins = true, r->cut = zero && zero < uri + strcspn(uri, "?");
    return NULL;
}

/* Its head is whole; false: the connection was closed meanwhile. Those that wait for a head do not
 * keep others out. */
static bool begin_request(basin_connection *c) {
    basin_server *s = c->server;
    long long begun = 0;
    pthread_mutex_lock(&s->listing);
    bool here = !c->closed;
    c->waiting = false;
    for (basin_connection *o = s->first; o; o = o->next) begun += !o->waiting;
    c->crowded = begun > s->o->connections;
    pthread_mutex_unlock(&s->listing);
    c->since = basin_clock();
    return here;
}

static int add_argument(void *request, int kind, const char *key, const char *value) {
    (void)kind;
    basin_request_argument(request, key, value);
    return YES;
}

static int read_head(basin_connection *c, void *connection, const char *path, const char *method) {
    basin_request *r = c->request;
    basin_server *s = c->server;
    const char *id = NULL;
    size_t length = 0;
    if (!begin_request(c)) return NO;
    r->route = basin_route_find(r->cut ? "" : path);
    r->post = !strcmp(method, "POST");
    r->get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    r->authorization = header_of(connection, "Authorization");
    r->type = header_of(connection, "Content-Type");
    r->host = header_of(connection, "Host");
    r->origin = header_of(connection, "Origin");
    r->local = c->local;
    r->arguments = cJSON_CreateObject();
    mhd.MHD_get_connection_values(connection, ARGUMENTS, add_argument, r);
    mhd.MHD_lookup_connection_value_n(connection, ARGUMENTS, "id", 2, &id, &length);
    r->zero = id && strlen(id) != length;
    bool spared = r->route == HEALTH;
    if (spared || (!c->crowded && !s->stopping)) return YES;
    basin_request_fail(r, 503, c->crowded ? "too many connections" : "the server is stopping");
    return send_answer(c, connection);
}

/* A body that is too long is read to its end and dropped, since many clients look for the answer
 * only then; one that is much too long is not. */
static int take_body(basin_connection *c, const char *data, size_t *size) {
    enum { MUCH = 8 };
    basin_request *r = c->request;
    size_t max = (size_t)r->server->o->max_body, length = r->length + *size;
    if (length > MUCH * max) return send_at_once(c, 413, "the body is too long");
    if (length <= max && length > r->capacity) {
        size_t capacity = length < max / 2 ? 2 * length : max;
        char *grown = realloc(r->body, capacity);
        if (!grown) return send_at_once(c, 503, "out of memory");
        r->body = grown;
        r->capacity = capacity;
    }
    if (length <= max) memcpy(r->body + r->length, data, *size);
    r->length = length;
    *size = 0;
    return YES;
}

static int take_request(void *its, void *connection, const char *path, const char *method,
                        const char *version, const char *data, size_t *size, void **unused) {
    basin_connection *c = its;
    basin_request *r = c->request;
    (void)version, (void)unused;
    if (!r) return NO; /* out of memory */
    if (r->begins) {
        r->begins = false;
        return read_head(c, connection, path, method);
    }
    if (r->answered) return YES;
    if (*size) return take_body(c, data, size);
    basin_request_answer(r);
    return send_answer(c, connection);
}

static void end_request(void *its, void *connection, void **unused, int how) {
    basin_connection *c = its;
    (void)connection, (void)unused, (void)how;
    request_free(c);
    pthread_mutex_lock(&c->server->listing);
    c->waiting = true;
    c->fresh = false;
    c->answered = true;
    c->since = basin_clock();
    pthread_mutex_unlock(&c->server->listing);
}

static void note_end(void *its, void *connection, void **state, int how) {
    (void)connection, (void)state;
    if (how == CONNECTION_ENDS) ((basin_connection *)its)->ended = true;
}

/* ---- connections ---- */

enum { SPARE = 64 }; /* beyond --connections */

/* The address where it came in, in numbers; "" for a socket of the machine. */
static void print_local(char text[INET6_ADDRSTRLEN], int fd) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) || address.ss_family == AF_UNIX ||
        getnameinfo((struct sockaddr *)&address, size, text, INET6_ADDRSTRLEN, NULL, 0,
                    NI_NUMERICHOST))
        *text = 0;
}

/* NULL where there are too many, or no memory. */
static basin_connection *connection_new(basin_server *s, int fd) {
    long long count = ++s->meters.connections;
    basin_connection *c = count <= s->o->connections + SPARE ? malloc(sizeof *c) : NULL;
    if (!c) return NULL;
    *c = (basin_connection){.server = s,
                            .fd = fd,
                            .waiting = true,
                            .fresh = true,
                            .since = basin_clock(),
                            .place = &s->first};
    print_local(c->local, fd);
    pthread_mutex_lock(&s->listing);
    c->next = s->first;
    if (c->next) c->next->place = &c->next;
    s->first = c;
    pthread_mutex_unlock(&s->listing);
    return c;
}

static void connection_free(basin_connection *c) {
    basin_server *s = c->server;
    pthread_mutex_lock(&s->listing);
    if (c->next) c->next->place = c->place;
    *c->place = c->next;
    pthread_mutex_unlock(&s->listing);
    close(c->fd);
    free(c);
    s->meters.connections--;
}

/* Each of three things has --timeout seconds: a head, a body, the sending of an answer. */
static bool is_late(basin_connection *c) {
    const basin_request *r = c->request;
    if (basin_clock() - c->since < c->server->o->timeout) return false;
    if (c->waiting && (r || c->fresh)) send_at_once(c, 408, "the head did not arrive in time");
    if (!c->waiting && r && !r->answered) send_at_once(c, 408, "the body did not arrive in time");
    return true;
}

static bool is_gone(const basin_connection *c) {
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Reads what was sent and not read, so that closing does not take the answer away. */
static void linger(const basin_connection *c) {
    enum { TIMES = 64, MILLISECONDS = 5 };
    char dropped[4096];
    struct pollfd end = {.fd = c->fd, .events = POLLIN};
    shutdown(c->fd, SHUT_WR);
    for (int i = 0; i < TIMES && poll(&end, 1, MILLISECONDS) >= 0; i++)
        if (end.revents && recv(c->fd, dropped, sizeof dropped, MSG_DONTWAIT) <= 0) return;
}

static void *serve_connection(void *its) {
    basin_connection *c = its;
    basin_server *s = c->server;
    int fd = dup(c->fd), step = (int)(1000 * s->o->timeout / 8) + 1;
    c->daemon = mhd.MHD_start_daemon(ERROR_LOG | NO_LISTEN_SOCKET | EPOLL | TURBO, 0, NULL, NULL,
                                     take_request, c, LOGGER, take_error, c, NOTIFY_COMPLETED,
                                     end_request, c, URI_LOG, take_line, c, NOTIFY_CONNECTION,
                                     note_end, c, STRICT, 1, END);
    bool served = c->daemon && fd >= 0 && mhd.MHD_add_connection(c->daemon, fd, NULL, 0);
    while (served && !c->ended && !c->closed && !is_late(c)) {
        c->answered = false;
        served = mhd.MHD_run_wait(c->daemon, step < 1000 ? step : 1000);
    }
    if (c->ended && !c->answered && !c->closed && !is_gone(c))
        send_at_once(c, 400, "is not an HTTP request");
    if (c->closed) linger(c);
    if (c->daemon) mhd.MHD_stop_daemon(c->daemon);
    request_free(c);
    connection_free(c);
    return NULL;
}

/* Closes connections that have waited for a head for so many seconds: the one that has waited
 * longest, or all. */
static void close_waiting(basin_server *s, double seconds, bool all) {
    basin_connection *oldest = NULL;
    double before = basin_clock() - seconds;
    pthread_mutex_lock(&s->listing);
    for (basin_connection *c = s->first; c; c = c->next) {
        if (!c->waiting || c->closed || c->since > before) continue;
        if (all) shutdown(c->fd, SHUT_RDWR);
        if (!oldest || c->since < oldest->since) oldest = c;
    }
    if (oldest) {
        oldest->closed = true;
        shutdown(oldest->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->listing);
}

/* Says so, and reads what was sent first, without which closing would take the answer away. */
static void refuse(basin_server *s, int fd) {
    static const char refusal[] = "HTTP/1.1 503 Refused\r\nContent-Type: application/json\r\n"
                                  "Connection: close\r\n\r\n"
                                  "{\"error\":\"too many connections\",\"status\":503}\n";
    char dropped[4096];
    s->meters.refused_connections++;
    send(fd, refusal, sizeof refusal - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    (void)!recv(fd, dropped, sizeof dropped, MSG_DONTWAIT);
}

/* Some more than --connections are taken, as many of them may only wait. When they are in use,
 * those that only wait make room: at first slow ones, then any; on a busy machine their threads
 * need time to end. */
static void open_connection(basin_server *s, int fd) {
    enum { MILLISECONDS = 500 };
    pthread_t thread;
    long long over = s->meters.connections - s->o->connections;
    if (over >= 0) close_waiting(s, over < SPARE / 2 ? 1 : 0, false);
    for (int i = 0; i < MILLISECONDS && over >= SPARE; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        over = s->meters.connections - s->o->connections;
    }
    basin_connection *c = connection_new(s, fd);
    if (c && !pthread_create(&thread, NULL, serve_connection, c)) {
        pthread_detach(thread);
        return;
    }
    refuse(s, fd);
    if (c) {
        connection_free(c);
        return;
    }
    close(fd);
    s->meters.connections--;
}

/* Until the socket is shut down. */
static void *take_connections(void *server) {
    basin_server *s = server;
    while (!s->stopping) {
        int fd = accept4(s->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            open_connection(s, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            close_waiting(s, 0, false);
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
    }
    return NULL;
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
        return basin_fail(error, BASIN_BAD_VALUE,
                          "listen %s: needs HOST:PORT, a port of at most 65535", where);
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
    struct rlimit files; /* a connection takes three */
    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Until there are none; a second signal ends the program. */
static void await(const atomic_llong *count, double seconds) {
    sigset_t pending;
    double end = basin_clock() + seconds;
    while (*count > 0 && basin_clock() < end) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        if (!sigpending(&pending) &&
            (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT)))
            _exit(1);
    }
}

/* Serves until a signal; then what has begun is answered. */
static void attend(basin_server *s, pthread_t taker) {
    sigset_t signals = awaited();
    int number = 0;
    basin_error error; /* which the reload has printed */
    while (sigwait(&signals, &number) || number == SIGHUP)
        if (number == SIGHUP) basin_server_reload(s, &error);
    s->o->say("basin: stopping");
    s->stopping = true;
    shutdown(s->socket, SHUT_RDWR);
    pthread_join(taker, NULL);
    await(&s->active, 2 * s->o->timeout);
    close_waiting(s, 0, true);
    await(&s->meters.connections, INFINITY);
}

/* As one JSON object on standard output; `port` is "" for a Unix socket. */
static void announce_json(basin_server *s, const char *host, const char *port) {
    basin_nodes_live_counts counts = basin_server_look(s, NULL);
    basin_json json = basin_json_begin_line(stdout);
    basin_json_text(&json, *port ? "address" : "socket", *port ? host : s->o->socket);
    if (*port) basin_json_integer(&json, "port", strtol(port, NULL, 10));
    basin_json_text(&json, "model", s->now->id);
    basin_json_integer(&json, "accounts", counts.nodes);
    basin_json_integer(&json, "edges", counts.edges);
    basin_json_text(&json, "journal_file", s->journal->path);
    basin_json_integer(&json, "journal", s->journal->records);
    basin_json_boolean(&json, "read_only", s->o->read_only);
    basin_json_end(&json);
    fflush(stdout);
}

static void announce(basin_server *s) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "", port[16] = "";
    const char *where = s->o->socket ? s->o->socket : s->o->listen;
    if (!s->o->socket && !getsockname(s->socket, (struct sockaddr *)&address, &size))
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    if (s->o->json) {
        announce_json(s, host, port);
        return;
    }
    s->o->say("basin: serving on %s%.*s%s: model %s, %lld accounts, %lld additions in %s%s",
              *port ? "http://" : "",
              (int)(*port ? strrchr(where, ':') + 1 - where : (ptrdiff_t)strlen(where)), where,
              port, s->now->id, (long long)basin_server_look(s, NULL).nodes,
              (long long)s->journal->records, s->journal->path,
              s->o->read_only ? ", read-only" : "");
}

static basin_status run(basin_server *s, basin_error *error) {
    pthread_t taker;
    bool listens = !listen(s->socket, 1024);
    if (listens) announce(s); /* before a request can have the model replaced */
    if (!listens || pthread_create(&taker, NULL, take_connections, s))
        return basin_fail_errno(s->o->socket ? s->o->socket : s->o->listen, "listen", error);
    attend(s, taker);
    return s->o->read_only ? BASIN_OK : basin_journal_sync(s->journal, error);
}

basin_status basin_serve(const basin_serving *o, basin_error *error) {
    basin_server *s BASIN_FREE_AT_EXIT = NULL;
    BASIN_TRY(basin_library_load(&mhd, BASIN_LIBRARY_MICROHTTPD, expected, error));
    BASIN_TRY(BASIN_NEW(&s, 1, "a server", error));
    s->o = o;
    s->log = s->socket = -1;
    pthread_mutex_init(&s->listing, NULL);
    s->meters.started = time(NULL);
    basin_status status = read_token(s, error);
    if (!status)
        status = o->socket ? listen_unix(&s->socket, o->socket, error)
                           : listen_tcp(&s->socket, s, error);
    bool bound = !status;
    if (!status) status = open_log(s, error);
    if (!status) {
        status = basin_server_open(s, error);
        if (!status) status = run(s, error);
        basin_server_close(s, !status);
    }
    if (o->socket && bound) unlink(o->socket);
    if (s->log >= 0) close(s->log);
    if (s->socket >= 0) close(s->socket);
    return status;
}
