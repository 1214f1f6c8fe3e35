/* Device memory, and copies into and out of it. What goes in is copied into pinned memory. Small
 * pieces wait there, and one kernel puts all of them in their places before the stream does
 * anything else. Large ones travel on a second stream while the first computes.
 */
#include <new>
#include <string.h>
#include <time.h>

#include "engine/backend/cuda/inside.h"

/* A batch of 256 pictures of the paper's size is five large pieces; none should wait. */
enum { PARCELS = 3, PIECES = 32, LARGE_SLOTS = 6 };
static const size_t SMALL = (size_t)1 << 20, PIECE = (size_t)32 << 20;
static const size_t PARCEL = SMALL + SMALL; /* bytes of small pieces that go together */

/* One large piece under way. */
struct slot {
    void *host, *room; /* pinned, and on the device */
    size_t host_bytes, room_bytes;
    cudaEvent_t left;    /* the pinned memory may be written again */
    cudaEvent_t fetched; /* the buffer may be written again */
};

struct piece {
    char *to;
    uint32_t from, bytes; /* within the parcel */
};
struct pieces {
    piece list[PIECES];
};

/* Small pieces that go together. */
struct parcel {
    char *host, *seen; /* pinned, as the host and as the device see it; NULL before the first use */
    size_t used;
    int count;
    pieces piece;
    cudaEvent_t left; /* the pinned memory may be written again */
};

struct basin_cuda_staging {
    parcel small[PARCELS];
    slot large[LARGE_SLOTS];
    unsigned next_small, next_large;
    void *back; /* pinned: small results on their way out */
    size_t back_bytes;
    cudaStream_t copies;
    cudaEvent_t reached; /* what wait() looks at; NULL: it spins */
};

static void slot_new(basin_cuda *cuda, slot *s) {
    BASIN_CUDA_TRY(cuda, cudaEventCreateWithFlags(&s->left, cudaEventDisableTiming));
    BASIN_CUDA_TRY(cuda, cudaEventCreateWithFlags(&s->fetched, cudaEventDisableTiming));
}

static void slot_free(slot *s) {
    if (s->host) cudaFreeHost(s->host);
    if (s->room) cudaFree(s->room);
    if (s->left) cudaEventDestroy(s->left);
    if (s->fetched) cudaEventDestroy(s->fetched);
}

static void parcel_free(parcel *p) {
    if (p->host) cudaFreeHost(p->host);
    if (p->left) cudaEventDestroy(p->left);
}

/* A thread that waits for its stream spins, which is the fastest. Where several share a device,
 * and so the cores, it would take the time that others need to fill their batches: it looks now and
 * then and sleeps. Events on which the driver sleeps took a fifth longer with thirty threads. */
static bool wait_for(basin_cuda *cuda, cudaEvent_t event) {
    const struct timespec pause = {0, 50000};
    if (!cuda->staging->reached) return BASIN_CUDA_TRY(cuda, cudaEventSynchronize(event));
    cudaError_t code;
    while ((code = cudaEventQuery(event)) == cudaErrorNotReady) nanosleep(&pause, NULL);
    return BASIN_CUDA_TRY(cuda, code);
}

bool basin_cuda_wait(basin_cuda *cuda) {
    cudaEvent_t reached = cuda->staging ? cuda->staging->reached : NULL;
    if (!reached) return BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
    return BASIN_CUDA_TRY(cuda, cudaEventRecord(reached, cuda->stream)) && wait_for(cuda, reached);
}

void basin_cuda_staging_new(basin_cuda *cuda, bool shares) {
    basin_cuda_staging *s = cuda->staging = new (std::nothrow) basin_cuda_staging();
    if (!s) {
        basin_cuda_fail(cuda, cudaErrorMemoryAllocation, "staging", __FILE__, __LINE__);
        return;
    }
    if (shares) BASIN_CUDA_TRY(cuda, cudaEventCreateWithFlags(&s->reached, cudaEventDisableTiming));
    BASIN_CUDA_TRY(cuda, cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
    for (int i = 0; i < LARGE_SLOTS; i++) slot_new(cuda, &s->large[i]);
    for (int i = 0; i < PARCELS; i++)
        BASIN_CUDA_TRY(cuda, cudaEventCreateWithFlags(&s->small[i].left, cudaEventDisableTiming));
}

void basin_cuda_staging_free(basin_cuda *cuda) {
    basin_cuda_staging *s = cuda->staging;
    if (!s) return;
    if (s->copies) cudaStreamSynchronize(s->copies);
    for (int i = 0; i < PARCELS; i++) parcel_free(&s->small[i]);
    for (int i = 0; i < LARGE_SLOTS; i++) slot_free(&s->large[i]);
    if (s->back) cudaFreeHost(s->back);
    if (s->copies) cudaStreamDestroy(s->copies);
    if (s->reached) cudaEventDestroy(s->reached);
    delete s;
    cuda->staging = NULL;
}

/* ---- small pieces ---- */

/* A row of blocks a piece; both ends of a piece are mostly aligned. */
static __global__ void deliver(const char *parcel, const __grid_constant__ pieces all) {
    piece p = all.list[blockIdx.y];
    const char *from = parcel + p.from;
    uint32_t first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    uint32_t whole = (uintptr_t)p.to % sizeof(uint4) ? 0 : p.bytes / (uint32_t)sizeof(uint4);
    for (uint32_t i = first; i < whole; i += step) ((uint4 *)p.to)[i] = ((const uint4 *)from)[i];
    for (uint32_t i = whole * (uint32_t)sizeof(uint4) + first; i < p.bytes; i += step)
        p.to[i] = from[i];
}

void basin_cuda_deliver(basin_cuda *cuda) {
    enum { BLOCKS = 32, THREADS = 256 };
    basin_cuda_staging *s = cuda->staging;
    parcel *p = s ? &s->small[s->next_small % PARCELS] : NULL;
    if (!p || !p->count) return;
    deliver<<<dim3(BLOCKS, (unsigned)p->count), THREADS, 0, cuda->stream>>>(p->seen, p->piece);
    BASIN_CUDA_LAUNCHED(cuda, "deliver");
    BASIN_CUDA_TRY(cuda, cudaEventRecord(p->left, cuda->stream));
    p->used = 0, p->count = 0;
    s->next_small++;
}

/* Whether two pieces of the parcel go to the same place: one kernel puts both, in no order. */
static bool goes_to(const parcel *p, const char *to, size_t bytes) {
    for (int i = 0; i < p->count; i++) {
        const piece *there = &p->piece.list[i];
        if (there->to < to + bytes && to < there->to + there->bytes) return true;
    }
    return false;
}

/* The parcel that the next piece goes into, free to be written; NULL where there is no memory. */
static parcel *parcel_for(basin_cuda *cuda, const char *to, size_t bytes) {
    basin_cuda_staging *s = cuda->staging;
    parcel *p = &s->small[s->next_small % PARCELS];
    if (p->count == PIECES || p->used + bytes > PARCEL || goes_to(p, to, bytes)) {
        basin_cuda_deliver(cuda);
        p = &s->small[s->next_small % PARCELS];
    }
    if (!p->host) {
        basin_cuda_gate gate(cuda);
        if (BASIN_CUDA_TRY(cuda, cudaHostAlloc((void **)&p->host, PARCEL, cudaHostAllocMapped)))
            BASIN_CUDA_TRY(cuda, cudaHostGetDevicePointer((void **)&p->seen, p->host, 0));
    }
    if (p->count == 0) wait_for(cuda, p->left);
    return p->host && p->seen ? p : NULL;
}

static void add_small(basin_cuda *cuda, void *device, const void *host, size_t bytes) {
    parcel *p = parcel_for(cuda, (const char *)device, bytes);
    if (!p) return;
    memcpy(p->host + p->used, host, bytes);
    p->piece.list[p->count++] = {(char *)device, (uint32_t)p->used, (uint32_t)bytes};
    p->used += (bytes + 63) / 64 * 64;
}

/* ---- memory ---- */

void *basin_cuda_alloc(basin_backend *backend, size_t bytes) {
    void *memory = NULL;
    basin_cuda_gate gate((basin_cuda *)backend);
    if (cudaMalloc(&memory, bytes < 256 ? 256 : bytes) == cudaSuccess) return memory;
    cudaGetLastError(); /* reported by the caller, who knows what it was for */
    return NULL;
}

void basin_cuda_free(basin_backend *backend, void *memory) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (!memory) return;
    basin_cuda_deliver(cuda);
    basin_cuda_wait(cuda);
    basin_cuda_gate gate(cuda);
    basin_cuda_graphs_forget(cuda, memory);
    BASIN_CUDA_TRY(cuda, cudaFree(memory));
}

size_t basin_cuda_free_bytes(const basin_backend *) {
    size_t unused = 0, total = 0;
    return cudaMemGetInfo(&unused, &total) == cudaSuccess ? unused : 0;
}

/* ---- large pieces ---- */

/* Lets pinned memory have at least `bytes`; the old content is lost. */
static cudaError_t grow(basin_cuda *cuda, void **pinned, size_t *there, size_t bytes) {
    if (*there >= bytes) return cudaSuccess;
    basin_cuda_gate gate(cuda);
    if (*pinned) cudaFreeHost(*pinned);
    *pinned = NULL, *there = 0;
    size_t requested = bytes < 65536 ? 65536 : bytes;
    cudaError_t code = cudaHostAlloc(pinned, requested, cudaHostAllocDefault);
    if (code == cudaSuccess) *there = requested;
    return code;
}

/* Pinned memory of the slot for `bytes`, free to be written; NULL where there is none. */
static void *slot_host(basin_cuda *cuda, slot *s, size_t bytes) {
    if (!wait_for(cuda, s->left)) return NULL;
    return BASIN_CUDA_TRY(cuda, grow(cuda, &s->host, &s->host_bytes, bytes)) ? s->host : NULL;
}

/* The slot's room on the device; NULL where there is none, which is not an error. */
static void *slot_room(basin_cuda *cuda, slot *s, size_t bytes) {
    if (s->room_bytes >= bytes) return s->room;
    wait_for(cuda, s->fetched);
    basin_cuda_gate gate(cuda);
    if (s->room) cudaFree(s->room);
    s->room = NULL, s->room_bytes = 0;
    if (cudaMalloc(&s->room, bytes) != cudaSuccess) {
        cudaGetLastError();
        s->room = NULL;
        return NULL;
    }
    s->room_bytes = bytes;
    return s->room;
}

/* The slots take turns: the one that was used longest ago. */
static void copy_large(basin_cuda *cuda, void *device, const void *host, size_t bytes) {
    basin_cuda_staging *staging = cuda->staging;
    slot *s = &staging->large[staging->next_large++ % LARGE_SLOTS];
    void *pinned = slot_host(cuda, s, bytes);
    if (!pinned) return;
    memcpy(pinned, host, bytes);
    void *room = slot_room(cuda, s, bytes);
    if (!room) {
        BASIN_CUDA_TRY(
            cuda, cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, cuda->stream));
        BASIN_CUDA_TRY(cuda, cudaEventRecord(s->left, cuda->stream));
        return;
    }
    BASIN_CUDA_TRY(cuda, cudaStreamWaitEvent(staging->copies, s->fetched, 0));
    BASIN_CUDA_TRY(cuda,
                   cudaMemcpyAsync(room, pinned, bytes, cudaMemcpyHostToDevice, staging->copies));
    BASIN_CUDA_TRY(cuda, cudaEventRecord(s->left, staging->copies));
    BASIN_CUDA_TRY(cuda, cudaStreamWaitEvent(cuda->stream, s->left, 0));
    BASIN_CUDA_TRY(cuda,
                   cudaMemcpyAsync(device, room, bytes, cudaMemcpyDeviceToDevice, cuda->stream));
    BASIN_CUDA_TRY(cuda, cudaEventRecord(s->fetched, cuda->stream));
}

void basin_cuda_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (bytes == 0) return;
    if (bytes <= SMALL) {
        add_small(cuda, device, host, bytes);
        return;
    }
    basin_cuda_deliver(cuda);
    for (size_t at = 0; at < bytes; at += PIECE)
        copy_large(cuda, (char *)device + at, (const char *)host + at,
                   bytes - at < PIECE ? bytes - at : PIECE);
}

/* ---- the way out ---- */

/* `bytes` bytes of pinned memory, or NULL. A copy to pageable memory would hold a driver lock until
 * the stream gets there, and block every other thread. */
static void *back_room(basin_cuda *cuda, size_t bytes) {
    basin_cuda_staging *s = cuda->staging;
    if (!s || bytes > SMALL) return NULL;
    if (grow(cuda, &s->back, &s->back_bytes, bytes) == cudaSuccess) return s->back;
    cudaGetLastError();
    return NULL;
}

void basin_cuda_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (bytes == 0) return;
    basin_cuda_deliver(cuda);
    void *pinned = back_room(cuda, bytes);
    BASIN_CUDA_TRY(cuda, cudaMemcpyAsync(pinned ? pinned : host, device, bytes,
                                         cudaMemcpyDeviceToHost, cuda->stream));
    basin_cuda_wait(cuda);
    if (pinned) memcpy(host, pinned, bytes);
}

void basin_cuda_fill_zero(basin_backend *backend, void *device, size_t bytes) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (!bytes) return;
    basin_cuda_deliver(cuda);
    BASIN_CUDA_TRY(cuda, cudaMemsetAsync(device, 0, bytes, cuda->stream));
}
