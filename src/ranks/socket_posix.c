/* TCP connections; see socket.h. */
#define _GNU_SOURCE
#include "ranks/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 3000, ACCEPT_MS = 60000, RECEIVE_MS = 30000 };

/* Dead after two seconds of silence and three probes without an answer, a second apart. */
static void probe(int socket) {
    static const struct {
        int level, name, value;
    } option[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},         {IPPROTO_TCP, TCP_KEEPIDLE, 2},
                  {IPPROTO_TCP, TCP_KEEPINTVL, 1},       {IPPROTO_TCP, TCP_KEEPCNT, 3},
                  {IPPROTO_TCP, TCP_USER_TIMEOUT, 5000}, {IPPROTO_TCP, TCP_NODELAY, 1}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        setsockopt(socket, option[i].level, option[i].name, &option[i].value,
                   sizeof option[i].value);
}

/* ---- listening ---- */

static bool can_be_reached(const struct ifaddrs *interface) {
    const struct sockaddr *a = interface->ifa_addr;
    if (!a || !(interface->ifa_flags & IFF_UP)) return false;
    if (a->sa_family == AF_INET) return true;
    if (a->sa_family != AF_INET6) return false;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)a;
    return !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && !IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static int add_addresses(basin_lifeline_address *address, int count, const struct ifaddrs *all,
                         bool loopback) {
    for (const struct ifaddrs *i = all; i && count < BASIN_LIFELINE_ADDRESSES; i = i->ifa_next) {
        if (!can_be_reached(i) || !(i->ifa_flags & IFF_LOOPBACK) == loopback) continue;
        socklen_t size = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                           : sizeof(struct sockaddr_in6);
        if (!getnameinfo(i->ifa_addr, size, address->host[count], BASIN_HOST_TEXT, NULL, 0,
                         NI_NUMERICHOST))
            count++;
    }
    return count;
}

/* The loopback last: to another host it is that host itself. */
static void list_addresses(basin_lifeline_address *address) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all)) return;
    int count = add_addresses(address, 0, all, false);
    add_addresses(address, count, all, true);
    freeifaddrs(all);
}

/* Both families where the system has both. */
static int bind_any(int family) {
    int s = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (s < 0) return -1;
    if (family == AF_INET6) setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const struct sockaddr *to = family == AF_INET6 ? (const struct sockaddr *)(const void *)&six
                                                   : (const struct sockaddr *)(const void *)&four;
    if (bind(s, to, family == AF_INET6 ? sizeof six : sizeof four) || listen(s, SOMAXCONN)) {
        close(s);
        return -1;
    }
    return s;
}

static int port_of(int socket) {
    struct sockaddr_in6 found = {0}; /* its port stands where IPv4's does */
    socklen_t size = sizeof found;
    if (getsockname(socket, (struct sockaddr *)(void *)&found, &size)) return 0;
    return ntohs(found.sin6_port);
}

basin_status basin_socket_listen(int *listener, basin_lifeline_address *address,
                                 basin_error *error) {
    *address = (basin_lifeline_address){0};
    *listener = bind_any(AF_INET6);
    if (*listener < 0) *listener = bind_any(AF_INET);
    address->port = *listener < 0 ? 0 : port_of(*listener);
    if (!address->port)
        return basin_fail(error, BASIN_IO, "rank 0 cannot listen: %s", strerror(errno));
    list_addresses(address);
    if (getrandom(address->token, sizeof address->token, 0) != (ssize_t)sizeof address->token)
        return basin_fail(error, BASIN_IO, "no random bytes: %s", strerror(errno));
    return BASIN_OK;
}

/* ---- connecting ---- */

/* Whether a connection that was begun is there in time; errno says why not. */
static bool is_established(int socket) {
    int code = 0;
    socklen_t size = sizeof code;
    if (poll(&(struct pollfd){.fd = socket, .events = POLLOUT}, 1, CONNECT_MS) != 1) {
        errno = ETIMEDOUT;
        return false;
    }
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size);
    errno = code;
    return code == 0;
}

static int connect_to(const char *host, int port) {
    char service[16];
    struct addrinfo *found,
        hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &found)) return -1;
    int s = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = s >= 0 && (!connect(s, found->ai_addr, found->ai_addrlen) ||
                           (errno == EINPROGRESS && is_established(s)));
    freeaddrinfo(found);
    if (good) {
        probe(s);
        return s;
    }
    int why = errno;
    if (s >= 0) close(s);
    errno = why;
    return -1;
}

basin_status basin_socket_connect(int *connection, const basin_lifeline_address *address,
                                  basin_error *error) {
    char tried[256] = "";
    *connection = -1;
    for (int i = 0; i < BASIN_LIFELINE_ADDRESSES && address->host[i][0]; i++) {
        *connection = connect_to(address->host[i], address->port);
        if (*connection >= 0) return BASIN_OK;
        size_t used = strlen(tried);
        snprintf(tried + used, sizeof tried - used, "%s%s (%s)", used ? ", " : "", address->host[i],
                 strerror(errno));
    }
    return basin_fail(error, BASIN_IO, "rank 0 cannot be reached at %s, port %d",
                      tried[0] ? tried : "any address", (int)address->port);
}

/* ---- letting in ---- */

bool basin_socket_receive(int connection, void *data, size_t bytes) {
    char *to = data;
    while (bytes) {
        struct pollfd ready = {.fd = connection, .events = POLLIN};
        ssize_t got = poll(&ready, 1, RECEIVE_MS) == 1 ? recv(connection, to, bytes, 0) : -1;
        if (got <= 0) return false;
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}

basin_status basin_socket_accept(int *connection, void *data, size_t bytes, int listener,
                                 basin_error *error) {
    *connection = -1;
    if (poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, ACCEPT_MS) != 1)
        return basin_fail(error, BASIN_IO, "a rank did not connect within %d s", ACCEPT_MS / 1000);
    int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (s < 0) return BASIN_OK;
    if (basin_socket_receive(s, data, bytes)) {
        probe(s);
        *connection = s;
    } else
        close(s);
    return BASIN_OK;
}
