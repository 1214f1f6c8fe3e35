/* The optimiser's state divided among ranks (ZeRO stage 1): each parameter has one rank that keeps
 * its moments, moves it by the gradient that all know, and gives it to the others. The numbers are
 * those of a rank that moves all. See shards.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/plan.h"
#include "train/shards/shards.h"

static int64_t count_of(const basin_params *params, size_t i) {
    return basin_shape_count(basin_expr_shape(params->param[i].state));
}

/* ---- who keeps what ---- */

/* The largest parameter that nobody has yet; -1: all are dealt. */
static int64_t largest_left(const basin_params *params, const int32_t *owner) {
    int64_t found = -1;
    for (size_t i = 0; i < params->count; i++)
        if (owner[i] < 0 && (found < 0 || count_of(params, i) > count_of(params, (size_t)found)))
            found = (int64_t)i;
    return found;
}

/* Each to the rank that has least. */
static void deal(int32_t *owner, int64_t *load /* [ranks], zeros */, const basin_params *params,
                 int64_t ranks) {
    for (size_t i = 0; i < params->count; i++) owner[i] = -1;
    for (int64_t next; (next = largest_left(params, owner)) >= 0;) {
        int64_t least = 0;
        for (int64_t r = 1; r < ranks; r++)
            if (load[r] < load[least]) least = r;
        owner[next] = (int32_t)least;
        load[least] += count_of(params, (size_t)next);
    }
}

basin_status basin_shards_divide(basin_shards *shards, const basin_params *params,
                                 basin_error *error) {
    int64_t ranks = basin_ranks_count(shards->ranks), self = basin_ranks_rank(shards->ranks);
    int64_t *load = calloc((size_t)ranks, sizeof *load);
    shards->owner = basin_array_new(params->count, sizeof *shards->owner);
    shards->own = basin_array_new(params->count, sizeof *shards->own);
    bool good = load && shards->owner && shards->own;
    if (good) deal(shards->owner, load, params, ranks);
    for (size_t i = 0; i < params->count && good; i++) shards->own[i] = shards->owner[i] == self;
    shards->params = params;
    free(load);
    return good ? BASIN_OK
                : basin_fail(error, BASIN_NO_MEMORY,
                             "out of memory to divide the optimiser's state");
}

/* ---- weights to all ---- */

/* Bytes of a number of the store. */
static basin_status width_of(size_t *width, const basin_shards *shards, basin_store *store,
                             basin_error *error) {
    basin_tensor tensor;
    basin_status status =
        basin_store_read(store, basin_expr_name(shards->params->param[0].state), &tensor, error);
    if (status) return status;
    *width = basin_dtype_size(tensor.dtype);
    basin_tensor_free(&tensor);
    return BASIN_OK;
}

/* What leaves and arrives, parameter by parameter; returns how many parts leave. */
static int64_t list_parts(basin_ranks_part *send, basin_ranks_part *receive, int64_t *receives,
                          const basin_shards *shards, basin_store *store, size_t width) {
    int64_t ranks = basin_ranks_count(shards->ranks), self = basin_ranks_rank(shards->ranks);
    int64_t sends = 0;
    *receives = 0;
    for (size_t i = 0; i < shards->params->count; i++) {
        const char *name = basin_expr_name(shards->params->param[i].state);
        basin_ranks_part part = {basin_store_memory(store, name, true),
                                 (size_t)count_of(shards->params, i) * width, shards->owner[i]};
        if (!shards->own[i]) receive[(*receives)++] = part;
        for (int64_t r = 0; r < ranks && shards->own[i]; r++) {
            part.rank = r;
            if (r != self) send[sends++] = part;
        }
    }
    return sends;
}

basin_status basin_shards_spread(basin_shards *shards, basin_store *store, basin_error *error) {
    size_t count = shards->params->count, ranks = (size_t)basin_ranks_count(shards->ranks);
    basin_ranks_part *send = basin_array_new(count * ranks, sizeof *send);
    basin_ranks_part *receive = basin_array_new(count, sizeof *receive);
    basin_ranks_memory device = basin_shards_device_memory(&shards->device);
    basin_status status = send && receive
                              ? BASIN_OK
                              : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a message");
    if (!status && !shards->width) status = width_of(&shards->width, shards, store, error);
    if (!status) {
        int64_t receives,
            sends = list_parts(send, receive, &receives, shards, store, shards->width);
        status = shards->device.table
                     ? device.exchange(device.context, send, sends, receive, receives, error)
                     : basin_ranks_exchange(shards->ranks, send, sends, receive, receives, error);
    }
    free(send), free(receive);
    return status;
}
