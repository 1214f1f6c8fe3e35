/* Sums over shards on devices; see device.h. */
#include "train/shards/device.h"

#include <stdlib.h>
#include <string.h>

#include "backend/device.h"
#include "base/try.h"

/* ---- who has which device ---- */

/* NCCL refuses two ranks on one device. */
static basin_status all_apart(bool *apart, basin_shards_device *d, basin_error *error) {
    int64_t count = basin_ranks_count(d->ranks);
    char mine[BASIN_COLLECTIVE_NAME], (*all)[BASIN_COLLECTIVE_NAME];
    BASIN_TRY(BASIN_NEW_RAW(&all, count, "ranks", error));
    d->table->name(d->backend, mine);
    basin_status status = basin_ranks_gather(d->ranks, all, mine, sizeof mine, error);
    *apart = true;
    for (int64_t i = 0; i < count && !status; i++)
        for (int64_t k = 0; k < i; k++)
            if (!memcmp(all[i], all[k], sizeof all[i])) *apart = false;
    free(all);
    return status;
}

/* Where NCCL is absent on any rank, none uses it. */
static basin_status join(basin_shards_device *d, basin_error *error) {
    char id[BASIN_COLLECTIVE_ID] = "";
    int64_t count = basin_ranks_count(d->ranks), rank = basin_ranks_rank(d->ranks);
    bool absent = d->table->invite(d->backend, id, error) != BASIN_OK;
    basin_status status = basin_ranks_any(d->ranks, &absent, error);
    if (status || absent) return status;
    status = basin_ranks_broadcast(d->ranks, id, sizeof id, 0, error);
    if (!status) status = d->table->join(d->backend, id, (int)rank, (int)count, error);
    status = basin_ranks_agree(d->ranks, status, error);
    d->direct = !status;
    return status;
}

basin_status basin_shards_device_begin(basin_shards_device *device, const char **how,
                                       basin_ranks *ranks, basin_backend *backend,
                                       basin_error *error) {
    bool apart;
    *how = "";
    *device = (basin_shards_device){.ranks = ranks, .backend = backend};
    device->table = basin_backend_collective(backend);
    if (!device->table || basin_ranks_count(ranks) == 1) return BASIN_OK;
    basin_status status = all_apart(&apart, device, error);
    if (!status && apart) status = join(device, error);
    *how = device->direct ? "gradients travel from GPU to GPU, by NCCL"
           : apart        ? "gradients travel through the host's memory: NCCL is absent"
                          : "gradients travel through the host's memory: ranks share a GPU";
    return status;
}

void basin_shards_device_end(basin_shards_device *device) {
    free(device->room);
    *device = (basin_shards_device){0};
}

/* ---- memory ---- */

static float *device_alloc(void *context, int64_t count) {
    const basin_shards_device *d = context;
    size_t bytes;
    if (!basin_size_multiply(&bytes, (size_t)count, sizeof(float))) return NULL;
    return basin_device_alloc(d->backend, bytes);
}

static void device_free(void *context, float *array) {
    basin_device_free(((const basin_shards_device *)context)->backend, array);
}

static void device_add(void *context, float *to, const float *from, int64_t count) {
    const basin_shards_device *d = context;
    d->table->add(d->backend, to, from, count);
}

/* ---- messages ---- */

/* What a rank sends to itself, in order. */
static void copy_own(const basin_shards_device *d, const basin_ranks_part *send, int64_t sends,
                     const basin_ranks_part *receive, int64_t receives) {
    int64_t self = basin_ranks_rank(d->ranks), to = 0;
    for (int64_t i = 0; i < sends; i++) {
        if (send[i].rank != self) continue;
        while (to < receives && receive[to].rank != self) to++;
        if (to == receives) return;
        d->table->copy(d->backend, receive[to].data, send[i].data,
                       (int64_t)(send[i].bytes / sizeof(float)));
        to++;
    }
}

/* Those for others, in the words of the backend; returns how many. */
static int64_t translate(basin_collective_part *to, const basin_ranks_part *part, int64_t parts,
                         int64_t self) {
    int64_t count = 0;
    for (int64_t i = 0; i < parts; i++)
        if (part[i].rank != self)
            to[count++] = (basin_collective_part){
                part[i].data, (int64_t)(part[i].bytes / sizeof(float)), (int32_t)part[i].rank};
    return count;
}

static basin_status exchange_direct(const basin_shards_device *d, const basin_ranks_part *send,
                                    int64_t sends, const basin_ranks_part *receive,
                                    int64_t receives, basin_error *error) {
    int64_t self = basin_ranks_rank(d->ranks);
    basin_collective_part *part = basin_array_new((size_t)(sends + receives) + 1, sizeof *part);
    if (!part) return basin_fail_memory(error, "a message");
    int64_t out = translate(part, send, sends, self);
    int64_t in = translate(part + out, receive, receives, self);
    basin_status status = d->table->exchange(d->backend, part, out, part + out, in, error);
    free(part);
    return status;
}

static size_t total(const basin_ranks_part *part, int64_t parts) {
    size_t bytes = 0;
    for (int64_t i = 0; i < parts; i++) bytes += part[i].bytes;
    return bytes;
}

static basin_status reserve(basin_shards_device *d, size_t bytes, basin_error *error) {
    if (bytes <= d->bytes) return BASIN_OK;
    free(d->room);
    d->room = malloc(bytes);
    d->bytes = d->room ? bytes : 0;
    return d->room ? BASIN_OK : basin_fail_memory(error, "a message");
}

/* The same parts with places in the room, from `at` on. */
static char *place(basin_ranks_part *to, const basin_ranks_part *part, int64_t parts, char *at) {
    for (int64_t i = 0; i < parts; i++) {
        to[i] = (basin_ranks_part){at, part[i].bytes, part[i].rank};
        at += part[i].bytes;
    }
    return at;
}

static basin_status exchange_by_host(basin_shards_device *d, const basin_ranks_part *send,
                                     int64_t sends, const basin_ranks_part *receive,
                                     int64_t receives, basin_error *error) {
    int64_t self = basin_ranks_rank(d->ranks);
    basin_status status = reserve(d, total(send, sends) + total(receive, receives), error);
    basin_ranks_part *part = basin_array_new((size_t)(sends + receives) + 1, sizeof *part);
    if (!status && !part) status = basin_fail_memory(error, "a message");
    if (!status) place(part + sends, receive, receives, place(part, send, sends, d->room));
    for (int64_t i = 0; i < sends && !status; i++)
        if (send[i].rank != self && send[i].bytes)
            status =
                basin_device_copy_out(d->backend, part[i].data, send[i].data, send[i].bytes, error);
    if (!status)
        status = basin_ranks_exchange(d->ranks, part, sends, part + sends, receives, error);
    for (int64_t i = 0; i < receives && !status; i++)
        if (receive[i].rank != self && receive[i].bytes)
            basin_device_copy_in(d->backend, receive[i].data, part[sends + i].data,
                                 receive[i].bytes);
    free(part);
    return status;
}

static basin_status device_exchange(void *context, const basin_ranks_part *send, int64_t sends,
                                    const basin_ranks_part *receive, int64_t receives,
                                    basin_error *error) {
    basin_shards_device *d = context;
    copy_own(d, send, sends, receive, receives);
    return d->direct ? exchange_direct(d, send, sends, receive, receives, error)
                     : exchange_by_host(d, send, sends, receive, receives, error);
}

basin_ranks_memory basin_shards_device_memory(basin_shards_device *device) {
    return (basin_ranks_memory){device, device_alloc, device_free, device_add, device_exchange};
}
