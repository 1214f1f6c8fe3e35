/* bfloat16 operands on a host, whose kernels compute in float: copied into the workspace before the
 * call, and results back behind it. */
#include <string.h>

#include "eager/eager.h"

static int64_t query_count(const basin_eager_attention *at) {
    return at->batch * at->queries * at->heads * at->width;
}
static int64_t key_count(const basin_eager_attention *at) {
    return at->batch * at->keys * at->heads * at->width;
}

/* Floats of one operand, rounded up to 64 bytes. */
static size_t float_bytes(int64_t count) { return ((size_t)count * sizeof(float) + 63) / 64 * 64; }

size_t basin_eager_wide_bytes(const basin_eager_attention *at) {
    const void *like_q[] = {at->q, at->a, at->dq, at->gq},
               *like_k[] = {at->k, at->b, at->dk, at->gk};
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        if (like_q[i]) bytes += float_bytes(query_count(at));
        if (like_k[i]) bytes += float_bytes(key_count(at));
    }
    return bytes;
}

static void widen(float *to, const uint16_t *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* Ties to even; a NaN stays one. */
static void narrow(uint16_t *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
        to[i] = (uint16_t)(nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

/* The next copy in the room; NULL where the operand is absent. */
static void *take(char **room, const void *operand, int64_t count) {
    void *place = operand ? *room : NULL;
    if (operand) *room += float_bytes(count);
    return place;
}

static const void *take_wide(char **room, const void *operand, int64_t count) {
    void *place = take(room, operand, count);
    if (place) widen(place, operand, count);
    return place;
}

basin_eager_attention basin_eager_widen(const basin_eager_attention *at, void *room) {
    basin_eager_attention wide = *at;
    int64_t queries = query_count(at), keys = key_count(at);
    char *next = room;
    wide.dtype = BASIN_F32;
    wide.q = take_wide(&next, at->q, queries);
    wide.a = take_wide(&next, at->a, queries);
    wide.k = take_wide(&next, at->k, keys);
    wide.b = take_wide(&next, at->b, keys);
    wide.dq = take(&next, at->dq, queries), wide.gq = take(&next, at->gq, queries);
    wide.dk = take(&next, at->dk, keys), wide.gk = take(&next, at->gk, keys);
    return wide;
}

void basin_eager_narrow(const basin_eager_attention *at, const basin_eager_attention *wide) {
    int64_t queries = query_count(at), keys = key_count(at);
    if (at->dq) narrow(at->dq, wide->dq, queries);
    if (at->gq) narrow(at->gq, wide->gq, queries);
    if (at->dk) narrow(at->dk, wide->dk, keys);
    if (at->gk) narrow(at->gk, wide->gk, keys);
}
