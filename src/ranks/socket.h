/* TCP connections between ranks, with probes that notice within seconds when a host is out of
 * reach. */
#ifndef BASIN_RANKS_SOCKET_H
#define BASIN_RANKS_SOCKET_H

#include "ranks/lifeline.h"

/* On every address of this host; `address` says which there are, and holds a fresh token. */
basin_status basin_socket_listen(int *listener, basin_lifeline_address *address,
                                 basin_error *error);
/* To the first address that answers. */
basin_status basin_socket_connect(int *connection, const basin_lifeline_address *address,
                                  basin_error *error);
/* The next that connects and sends `bytes` bytes; -1: it sent fewer. Waits a minute at most. */
basin_status basin_socket_accept(int *connection, void *data, size_t bytes, int listener,
                                 basin_error *error);
/* All of them, or false after half a minute. */
bool basin_socket_receive(int connection, void *data, size_t bytes);

#endif
