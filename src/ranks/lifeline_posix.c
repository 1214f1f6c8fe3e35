/* The thread that listens, and what it passes on; see lifeline.h. */
#include "ranks/lifeline.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ranks/socket.h"

/* Seconds until somebody who has not noticed is called, and until anybody is. */
static const double GRACE = 0.5, GRACE_ALL = 6;
enum { HELLO, FAILED, LOST, BYE };

typedef struct packet {
    int32_t kind, rank, status;
    char text[BASIN_ERROR_TEXT];
} packet;

typedef struct hello {
    int32_t rank;
    char token[16];
} hello;

/* The connection to a rank, or to rank 0. */
typedef struct peer {
    int socket; /* -1: none */
    bool left;  /* it said good-bye */
    packet packet;
    size_t got; /* bytes of it */
} peer;

struct basin_lifeline {
    basin_lifeline_spec spec;
    int listener;
    peer *peer; /* [peers]: of rank 0 all others, by rank; of the others rank 0 */
    struct pollfd *poll;
    int64_t peers;
    int wake[2]; /* a pipe: something for the thread to see */
    pthread_t thread;
    bool running;
    atomic_bool broken, noticed, stop;
    pthread_mutex_t lock; /* over `why` and over what is sent */
    packet why;
};

/* ---- sending ---- */

/* A packet is small, and these connections are otherwise idle: it fits their buffers. */
static void send_packet(peer *to, const packet *p) {
    if (to->socket >= 0 && send(to->socket, p, sizeof *p, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

static void send_all(basin_lifeline *l, const packet *p, int64_t except) {
    pthread_mutex_lock(&l->lock);
    for (int64_t i = 0; i < l->peers; i++)
        if (i != except) send_packet(&l->peer[i], p);
    pthread_mutex_unlock(&l->lock);
}

/* ---- noticing ---- */

/* The first failure is kept, and rank 0 passes it on. */
static void note(basin_lifeline *l, const packet *p, int64_t from) {
    pthread_mutex_lock(&l->lock);
    bool first = !atomic_load(&l->broken);
    if (first) l->why = *p;
    l->why.text[BASIN_ERROR_TEXT - 1] = 0;
    atomic_store(&l->broken, true);
    pthread_mutex_unlock(&l->lock);
    if (first && l->spec.rank == 0) send_all(l, p, from);
}

static int64_t rank_of(const basin_lifeline *l, int64_t i) { return l->spec.rank == 0 ? i + 1 : 0; }

static void note_loss(basin_lifeline *l, int64_t i) {
    int64_t rank = rank_of(l, i);
    packet p = {.kind = LOST, .rank = (int32_t)rank, .status = BASIN_IO};
    snprintf(p.text, sizeof p.text,
             "rank %lld on %s was lost: its process has died, or its host is out of reach",
             (long long)rank, l->spec.hosts[rank]);
    note(l, &p, i);
}

static void close_peer(peer *p) {
    if (p->socket >= 0) close(p->socket);
    p->socket = -1;
}

static void take_packet(basin_lifeline *l, int64_t i) {
    peer *p = &l->peer[i];
    p->got = 0;
    if (p->packet.kind == BYE) p->left = true;
    if (p->packet.kind == FAILED || p->packet.kind == LOST) note(l, &p->packet, i);
}

static void listen_to(basin_lifeline *l, int64_t i) {
    peer *p = &l->peer[i];
    ssize_t got =
        recv(p->socket, (char *)&p->packet + p->got, sizeof p->packet - p->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        if (!p->left) note_loss(l, i);
        close_peer(p);
        return;
    }
    p->got += (size_t)got;
    if (p->got == sizeof p->packet) take_packet(l, i);
}

/* ---- the thread ---- */

static void wait_for_news(basin_lifeline *l, int milliseconds) {
    nfds_t count = 0;
    l->poll[count++] = (struct pollfd){.fd = l->wake[0], .events = POLLIN};
    for (int64_t i = 0; i < l->peers; i++)
        l->poll[count++] = (struct pollfd){.fd = l->peer[i].socket, .events = POLLIN};
    if (poll(l->poll, count, milliseconds) <= 0) return;
    for (int64_t i = 0; i < l->peers; i++)
        if (l->poll[i + 1].revents && l->peer[i].socket >= 0) listen_to(l, i);
}

static void *watch(void *context) {
    basin_lifeline *l = context;
    while (!atomic_load(&l->stop) && !atomic_load(&l->broken)) wait_for_news(l, -1);
    double since = basin_clock();
    bool called = false;
    while (!atomic_load(&l->stop) && !called) {
        double waited = basin_clock() - since;
        called = waited > GRACE_ALL || (waited > GRACE && !atomic_load(&l->noticed));
        if (called && l->spec.options.lost)
            l->spec.options.lost(l->spec.options.context, l->why.text);
        if (!called) poll(&(struct pollfd){.fd = l->wake[0], .events = POLLIN}, 1, 100);
    }
    return NULL;
}

static void wake(basin_lifeline *l) {
    if (write(l->wake[1], "", 1) < 0) return; /* full: the thread is awake already */
}

/* ---- beginning and end ---- */

basin_status basin_lifeline_new(basin_lifeline **line, basin_lifeline_address *address,
                                const basin_lifeline_spec *spec, basin_error *error) {
    basin_lifeline *l = calloc(1, sizeof *l);
    *line = l;
    if (!l) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for ranks");
    l->spec = *spec;
    l->listener = l->wake[0] = l->wake[1] = -1;
    l->peers = spec->rank == 0 ? spec->count - 1 : 1;
    l->peer = basin_array_new((size_t)l->peers + 1, sizeof *l->peer);
    l->poll = basin_array_new((size_t)l->peers + 1, sizeof *l->poll);
    pthread_mutex_init(&l->lock, NULL);
    if (!l->peer || !l->poll) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for ranks");
    for (int64_t i = 0; i < l->peers; i++) l->peer[i] = (peer){.socket = -1};
    if (pipe(l->wake)) return basin_fail(error, BASIN_IO, "no pipe: %s", strerror(errno));
    if (spec->rank == 0) return basin_socket_listen(&l->listener, address, error);
    return BASIN_OK;
}

basin_status basin_lifeline_connect(basin_lifeline *line, const basin_lifeline_address *address,
                                    basin_error *error) {
    if (line->spec.rank == 0) return BASIN_OK;
    peer *p = &line->peer[0];
    basin_status status = basin_socket_connect(&p->socket, address, error);
    if (status) return status;
    hello h = {.rank = (int32_t)line->spec.rank};
    memcpy(h.token, address->token, sizeof h.token);
    if (send(p->socket, &h, sizeof h, MSG_NOSIGNAL) == (ssize_t)sizeof h) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "rank 0 cannot be told of a rank: %s", strerror(errno));
}

/* Strangers are turned away. */
static basin_status let_in(basin_lifeline *l, const basin_lifeline_address *address, bool *in,
                           basin_error *error) {
    hello h;
    int socket;
    *in = false;
    basin_status status = basin_socket_accept(&socket, &h, sizeof h, l->listener, error);
    if (status || socket < 0) return status;
    bool known = memcmp(h.token, address->token, sizeof h.token) == 0 && h.rank > 0 &&
                 h.rank <= l->peers && l->peer[h.rank - 1].socket < 0;
    if (known)
        l->peer[h.rank - 1].socket = socket;
    else
        close(socket);
    *in = known;
    return BASIN_OK;
}

/* Rank 0 greets, so that nobody holds a stranger's line. */
static basin_status greet(basin_lifeline *l, basin_error *error) {
    packet p = {.kind = HELLO};
    if (l->spec.rank == 0) {
        send_all(l, &p, -1);
        return BASIN_OK;
    }
    p.kind = BYE;
    if (basin_socket_receive(l->peer[0].socket, &p, sizeof p) && p.kind == HELLO) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "rank 0 does not answer on its line");
}

basin_status basin_lifeline_start(basin_lifeline *line, const basin_lifeline_address *address,
                                  basin_error *error) {
    basin_status status = BASIN_OK;
    int64_t missing = line->spec.rank == 0 ? line->peers : 0;
    while (missing && !status) {
        bool in;
        status = let_in(line, address, &in, error);
        missing -= in;
    }
    if (line->listener >= 0) close(line->listener);
    line->listener = -1;
    if (!status) status = greet(line, error);
    if (status) return status;
    if (pthread_create(&line->thread, NULL, watch, line))
        return basin_fail(error, BASIN_NO_MEMORY, "no thread to watch over ranks");
    line->running = true;
    return BASIN_OK;
}

/* A launcher ends all ranks as soon as one has failed: rank 0, which tells users of it, goes first.
 */
static void await_rank_0(basin_lifeline *l) {
    enum { MILLISECONDS = 8000 };
    char rest[sizeof(packet)];
    double since = basin_clock();
    int socket = l->peer[0].socket, left = MILLISECONDS;
    while (socket >= 0 && left > 0 &&
           poll(&(struct pollfd){.fd = socket, .events = POLLIN}, 1, left) == 1 &&
           recv(socket, rest, sizeof rest, MSG_DONTWAIT) > 0)
        left = MILLISECONDS - (int)(1000 * (basin_clock() - since));
}

void basin_lifeline_free(basin_lifeline *line) {
    if (!line) return;
    packet bye = {.kind = BYE, .rank = (int32_t)line->spec.rank};
    if (line->running) {
        if (!atomic_load(&line->broken)) send_all(line, &bye, -1);
        atomic_store(&line->stop, true);
        wake(line);
        pthread_join(line->thread, NULL);
        if (atomic_load(&line->broken) && line->spec.rank) await_rank_0(line);
    }
    for (int64_t i = 0; i < line->peers && line->peer; i++) close_peer(&line->peer[i]);
    if (line->listener >= 0) close(line->listener);
    for (int i = 0; i < 2; i++)
        if (line->wake[i] >= 0) close(line->wake[i]);
    pthread_mutex_destroy(&line->lock);
    free(line->peer);
    free(line->poll);
    free(line);
}

/* ---- asking and telling ---- */

bool basin_lifeline_broken(const basin_lifeline *line) {
    return line && atomic_load_explicit(&line->broken, memory_order_relaxed);
}

basin_status basin_lifeline_why(basin_lifeline *line, basin_error *error) {
    atomic_store(&line->noticed, true);
    pthread_mutex_lock(&line->lock);
    packet why = line->why;
    pthread_mutex_unlock(&line->lock);
    return basin_fail(error, (basin_status)why.status, "%s", why.text);
}

bool basin_lifeline_headless(basin_lifeline *line) {
    if (!basin_lifeline_broken(line)) return false;
    pthread_mutex_lock(&line->lock);
    bool headless = line->why.kind == LOST && line->why.rank == 0;
    pthread_mutex_unlock(&line->lock);
    return headless;
}

/* A failure that all have agreed on names its rank already. */
static bool names_a_rank(const char *text) {
    int used = 0;
    return sscanf(text, "rank %*d on %n", &used) == 0 && used > 0;
}

void basin_lifeline_fail(basin_lifeline *line, const basin_error *error) {
    int64_t rank = line->spec.rank;
    packet p = {.kind = FAILED, .rank = (int32_t)rank, .status = (int32_t)error->status};
    if (names_a_rank(error->text))
        snprintf(p.text, sizeof p.text, "%s", error->text);
    else
        snprintf(p.text, sizeof p.text, "rank %lld on %s: %.400s", (long long)rank,
                 line->spec.hosts[rank], error->text);
    atomic_store(&line->noticed, true);
    if (atomic_load(&line->broken)) return;
    note(line, &p, -1);
    if (rank != 0) send_all(line, &p, -1);
    wake(line);
}
