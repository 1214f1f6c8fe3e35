/* Device memory, and the way of numbers in and out of it. What goes in is first copied into pinned
 * memory, so the caller's may change at once. Small things then travel on the stream itself. Large
 * ones travel on a stream of their own into a waiting room on the device while the stream computes,
 * and the stream fetches them from there in its turn: a batch arrives during the step before. */
#include <new>
#include <string.h>

#include "backend/cuda/inside.h"

/* A batch of graphs is a dozen small pieces, one of 256 pictures of the paper's size five large
 * ones, and none should wait for the step before. */
enum { SMALL_SLOTS = 32, LARGE_SLOTS = 6 };
static const size_t SMALL = (size_t)1 << 20, PIECE = (size_t)32 << 20;

/* One piece under way. */
struct slot {
    void *host, *room; /* pinned, and on the device */
    size_t host_bytes, room_bytes;
    cudaEvent_t left;    /* the pinned memory may be written again */
    cudaEvent_t fetched; /* the room may be written again */
};

struct basin_cuda_staging {
    slot small[SMALL_SLOTS], large[LARGE_SLOTS];
    unsigned next_small, next_large;
    cudaStream_t copies;
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

void basin_cuda_staging_new(basin_cuda *cuda) {
    basin_cuda_staging *s = cuda->staging = new (std::nothrow) basin_cuda_staging();
    if (!s) {
        basin_cuda_fail(cuda, cudaErrorMemoryAllocation, "staging", __FILE__, __LINE__);
        return;
    }
    BASIN_CUDA_TRY(cuda, cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
    for (int i = 0; i < SMALL_SLOTS; i++) slot_new(cuda, &s->small[i]);
    for (int i = 0; i < LARGE_SLOTS; i++) slot_new(cuda, &s->large[i]);
}

void basin_cuda_staging_free(basin_cuda *cuda) {
    basin_cuda_staging *s = cuda->staging;
    if (!s) return;
    if (s->copies) cudaStreamSynchronize(s->copies);
    for (int i = 0; i < SMALL_SLOTS; i++) slot_free(&s->small[i]);
    for (int i = 0; i < LARGE_SLOTS; i++) slot_free(&s->large[i]);
    if (s->copies) cudaStreamDestroy(s->copies);
    delete s;
    cuda->staging = NULL;
}

void *basin_cuda_alloc(basin_backend *backend, size_t bytes) {
    void *memory = NULL;
    (void)backend;
    if (cudaMalloc(&memory, bytes < 256 ? 256 : bytes) == cudaSuccess) return memory;
    cudaGetLastError(); /* reported by the caller, who knows what it was for */
    return NULL;
}

void basin_cuda_free(basin_backend *backend, void *memory) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (!memory) return;
    BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
    basin_cuda_graphs_forget(cuda, memory);
    BASIN_CUDA_TRY(cuda, cudaFree(memory));
}

size_t basin_cuda_free_bytes(basin_backend *backend) {
    size_t unused = 0, total = 0;
    (void)backend;
    return cudaMemGetInfo(&unused, &total) == cudaSuccess ? unused : 0;
}

/* Pinned memory of the slot for `bytes`, free to be written; NULL where there is none. */
static void *slot_host(basin_cuda *cuda, slot *s, size_t bytes) {
    if (!BASIN_CUDA_TRY(cuda, cudaEventSynchronize(s->left))) return NULL;
    if (s->host_bytes >= bytes) return s->host;
    if (s->host) cudaFreeHost(s->host);
    s->host = NULL, s->host_bytes = 0;
    size_t wanted = bytes < 65536 ? 65536 : bytes;
    if (!BASIN_CUDA_TRY(cuda, cudaHostAlloc(&s->host, wanted, cudaHostAllocDefault))) return NULL;
    s->host_bytes = wanted;
    return s->host;
}

/* The slot's room on the device; NULL where there is none, which is no fault. */
static void *slot_room(basin_cuda *cuda, slot *s, size_t bytes) {
    if (s->room_bytes >= bytes) return s->room;
    BASIN_CUDA_TRY(cuda, cudaEventSynchronize(s->fetched));
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
static slot *slot_next(basin_cuda_staging *s, size_t bytes) {
    if (bytes > SMALL) return &s->large[s->next_large++ % LARGE_SLOTS];
    return &s->small[s->next_small++ % SMALL_SLOTS];
}

static void copy_piece(basin_cuda *cuda, void *device, const void *host, size_t bytes) {
    basin_cuda_staging *staging = cuda->staging;
    slot *s = slot_next(staging, bytes);
    void *pinned = slot_host(cuda, s, bytes);
    if (!pinned) return;
    memcpy(pinned, host, bytes);
    void *room = bytes > SMALL ? slot_room(cuda, s, bytes) : NULL;
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
    for (size_t at = 0; at < bytes; at += PIECE)
        copy_piece(cuda, (char *)device + at, (const char *)host + at,
                   bytes - at < PIECE ? bytes - at : PIECE);
}

void basin_cuda_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (bytes == 0) return;
    BASIN_CUDA_TRY(cuda,
                   cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda->stream));
    BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
}

void basin_cuda_fill_zero(basin_backend *backend, void *device, size_t bytes) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (bytes) BASIN_CUDA_TRY(cuda, cudaMemsetAsync(device, 0, bytes, cuda->stream));
}
