/* Numbers of several processes on their GPUs: sums by our kernels, so that their order is known,
 * and messages by NCCL, whose library is opened when processes join. */
#include <new>
#include <string.h>

#include "engine/backend/cuda/inside.h"

extern "C" {
#include "base/library.h"
}

/* ---- NCCL, declared here ---- */

struct nccl_id {
    char bytes[BASIN_COLLECTIVE_ID];
};
typedef void *nccl_comm;
enum { NCCL_FLOAT = 7 };

struct basin_cuda_nccl {
    int (*get_id)(nccl_id *id);
    int (*init)(nccl_comm *comm, int count, nccl_id id, int rank);
    int (*destroy)(nccl_comm comm);
    int (*begin)(void);
    int (*end)(void);
    int (*send)(const void *data, size_t count, int type, int rank, nccl_comm comm, cudaStream_t);
    int (*receive)(void *data, size_t count, int type, int rank, nccl_comm comm, cudaStream_t);
    const char *(*error)(int code);
    nccl_comm comm;
};

template <typename F> static bool find(F *function, void *library, const char *name) {
    void *symbol = basin_library_symbol(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static basin_status open_library(basin_cuda_state *cuda, basin_error *error) {
    if (cuda->nccl) return BASIN_OK;
    void *library = basin_library_open("libnccl.so.2"); /* stays open */
    if (!library)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "NCCL, needed for ranks with a GPU each, cannot be used: %.300s",
                          basin_library_why());
    basin_cuda_nccl *c = new (std::nothrow) basin_cuda_nccl();
    if (!c) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for NCCL");
    bool whole = find(&c->get_id, library, "ncclGetUniqueId") &&
                 find(&c->init, library, "ncclCommInitRank") &&
                 find(&c->destroy, library, "ncclCommDestroy") &&
                 find(&c->begin, library, "ncclGroupStart") &&
                 find(&c->end, library, "ncclGroupEnd") && find(&c->send, library, "ncclSend") &&
                 find(&c->receive, library, "ncclRecv") &&
                 find(&c->error, library, "ncclGetErrorString");
    if (whole) {
        cuda->nccl = c;
        return BASIN_OK;
    }
    delete c;
    return basin_fail(error, BASIN_UNSUPPORTED, "NCCL lacks a function; expected 2.7 or later");
}

static basin_status nccl_status(const basin_cuda_state *cuda, int code, const char *what,
                                basin_error *error) {
    if (!code) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "NCCL cannot %s: %s", what, cuda->nccl->error(code));
}

/* ---- sums ---- */

enum { THREADS = 256 };

static __global__ void add_kernel(float *to, const float *from, int64_t count) {
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) to[i] += from[i];
}

static __global__ void scale_kernel(float *to, const float *from, float factor, int64_t count) {
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) to[i] = from[i] * factor;
}

static float *alloc(basin_backend *backend, int64_t count) {
    if (count < 0 || (uint64_t)count > SIZE_MAX / sizeof(float)) return NULL;
    return (float *)basin_cuda_alloc(backend, (size_t)count * sizeof(float));
}

static void release(basin_backend *backend, float *array) { basin_cuda_free(backend, array); }

static void add(basin_backend *backend, float *to, const float *from, int64_t count) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (!count) return;
    basin_cuda_deliver(cuda);
    add_kernel<<<(unsigned)basin_cuda_ceil(count, THREADS), THREADS, 0, cuda->stream>>>(to, from,
                                                                                        count);
    BASIN_CUDA_LAUNCHED(cuda, "add");
}

static void scale(basin_backend *backend, float *to, const float *from, float factor,
                  int64_t count) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (!count) return;
    basin_cuda_deliver(cuda);
    scale_kernel<<<(unsigned)basin_cuda_ceil(count, THREADS), THREADS, 0, cuda->stream>>>(
        to, from, factor, count);
    BASIN_CUDA_LAUNCHED(cuda, "scale");
}

/* ---- processes ---- */

static void name(basin_backend *backend, char text[BASIN_COLLECTIVE_NAME]) {
    basin_cuda_state *cuda = (basin_cuda_state *)backend;
    cudaDeviceProp properties;
    memset(text, 0, BASIN_COLLECTIVE_NAME);
    if (BASIN_CUDA_TRY(cuda, cudaGetDeviceProperties(&properties, cuda->device)))
        memcpy(text, &properties.uuid, sizeof properties.uuid);
}

static basin_status invite(basin_backend *backend, char id[BASIN_COLLECTIVE_ID],
                           basin_error *error) {
    basin_cuda_state *cuda = (basin_cuda_state *)backend;
    nccl_id made;
    basin_status status = open_library(cuda, error);
    if (!status) status = nccl_status(cuda, cuda->nccl->get_id(&made), "begin", error);
    if (!status) memcpy(id, made.bytes, sizeof made.bytes);
    return status;
}

static basin_status join(basin_backend *backend, const char id[BASIN_COLLECTIVE_ID], int rank,
                         int count, basin_error *error) {
    basin_cuda_state *cuda = (basin_cuda_state *)backend;
    nccl_id theirs;
    memcpy(theirs.bytes, id, sizeof theirs.bytes);
    basin_status status = open_library(cuda, error);
    if (status) return status;
    return nccl_status(cuda, cuda->nccl->init(&cuda->nccl->comm, count, theirs, rank), "join",
                       error);
}

static basin_status exchange(basin_backend *backend, const basin_collective_part *send,
                             int64_t sends, const basin_collective_part *receive, int64_t receives,
                             basin_error *error) {
    basin_cuda_state *cuda = (basin_cuda_state *)backend;
    basin_cuda_nccl *c = cuda->nccl;
    basin_cuda_deliver(cuda);
    int code = c->begin();
    for (int64_t i = 0; i < sends && !code; i++)
        if (send[i].count)
            code = c->send(send[i].data, (size_t)send[i].count, NCCL_FLOAT, send[i].rank, c->comm,
                           cuda->stream);
    for (int64_t i = 0; i < receives && !code; i++)
        if (receive[i].count)
            code = c->receive(receive[i].data, (size_t)receive[i].count, NCCL_FLOAT,
                              receive[i].rank, c->comm, cuda->stream);
    int ended = c->end();
    return nccl_status(cuda, code ? code : ended, "exchange", error);
}

void basin_cuda_nccl_free(basin_cuda *cuda) {
    basin_cuda_nccl *nccl = ((basin_cuda_state *)cuda)->nccl;
    if (nccl && nccl->comm) nccl->destroy(nccl->comm);
    delete nccl;
}

const basin_collective basin_cuda_collectives = {
    sizeof(basin_collective), alloc, release, add, scale, name, invite, join, exchange};
