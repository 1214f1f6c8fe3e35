/* Crops of pictures (backend/device.h), two kernels per batch. The first resizes a tile of outputs:
 * down the columns into shared memory, then along the rows. The second takes a block per picture:
 * the mean that contrast turns about, then jitter and normalisation in place.
 *
 * Every sum is taken in the order of picture/resize.c and picture/augment.c, and this file is
 * compiled without fused multiply-adds: the values are the host's, bit for bit. Bytes: a batch of
 * 256 crops of 224 reads about 40 MB of pixels and moves 4 * 154 MB of values. */
#include <math.h>
#include <new>

#include "backend/cuda/inside.h"

enum {
    TILE_ROWS = 16,
    TILE_COLUMNS = 32,
    THREADS = 256,
    JITTER_THREADS = 1024,
    LANES = 16,            /* of augment.c's plane_sum */
    CHUNK = LANES * 64,    /* summed in float before they meet in double */
    SHARED_WANTED = 40960, /* bytes; more only where one row needs it */
};

struct basin_cuda_crops {
    void *record, *sum, *stage; /* device memory */
    size_t record_bytes, sum_bytes, stage_bytes;
};

/* ---- resizing ---- */

struct stretch {
    double begin, length; /* in the source */
    int count, full, from;
};

struct reached {
    int low, high; /* source pixels low .. high - 1, counted from floor(begin) */
    double centre;
};

static __device__ reached reach(const stretch &s, int i) {
    reached r;
    double fraction = s.begin - floor(s.begin), scale = s.length / (double)s.full;
    double support = scale > 1 ? scale : 1;
    int base = (int)floor(s.begin), end = (int)ceil(fraction + s.length);
    r.centre = fraction + ((double)(s.from + i) + 0.5) * scale;
    r.low = (int)floor(r.centre - support + 0.5);
    r.high = (int)floor(r.centre + support + 0.5);
    if (r.low < 0) r.low = 0;
    if (r.low + base < 0) r.low = -base;
    if (r.high > end) r.high = end;
    if (r.high + base > s.count) r.high = s.count - base;
    if (r.high <= r.low) r.high = r.low + 1;
    return r;
}

/* The weights of output i and the first pixel they belong to. */
static __device__ void weigh(float *weight, int *first, int *taps, const stretch &s, int i) {
    double scale = s.length / (double)s.full, support = scale > 1 ? scale : 1, sum = 0;
    reached r = reach(s, i);
    for (int j = r.low; j < r.high; j++)
        sum += fmax(0.0, 1 - fabs((double)j + 0.5 - r.centre) / support);
    for (int j = r.low; j < r.high; j++) {
        double w = fmax(0.0, 1 - fabs((double)j + 0.5 - r.centre) / support);
        weight[j - r.low] = sum > 0 ? (float)(w / sum) : 1.0f;
    }
    *first = r.low + (int)floor(s.begin);
    *taps = r.high - r.low;
}

/* Where a value lies: [N, (c, patch, patch)], or [c, size, size] as one patch. */
struct layout {
    int size, patch, channels;
    __device__ int at(int c, int y, int x) const {
        int across = size / patch, n = y / patch * across + x / patch;
        return (n * channels + c) * patch * patch + y % patch * patch + x % patch;
    }
    /* the same for the k-th pixel in the order of memory */
    __device__ int at(int c, int k) const {
        int area = patch * patch;
        return (k / area * channels + c) * area + k % area;
    }
};

struct resize_shape {
    layout to;
    int taps_y, taps_x; /* room for weights */
    int span;           /* room for source columns of a tile */
    int group;          /* rows that share the memory at a time */
};

/* One tile: picture blockIdx.x, rows and columns by blockIdx.y and .z. */
static __global__ void __launch_bounds__(THREADS)
    resize_kernel(float *out, const basin_crop *crops, resize_shape shape) {
    extern __shared__ float shared[];
    __shared__ int first_y[TILE_ROWS], taps_y[TILE_ROWS];
    __shared__ int first_x[TILE_COLUMNS], taps_x[TILE_COLUMNS];
    const basin_crop &c = crops[blockIdx.x];
    float *weight_y = shared, *weight_x = weight_y + TILE_ROWS * shape.taps_y;
    float *row = weight_x + TILE_COLUMNS * shape.taps_x;
    int size = shape.to.size, top = blockIdx.y * TILE_ROWS, start = blockIdx.z * TILE_COLUMNS;
    int rows = min(TILE_ROWS, size - top), columns = min(TILE_COLUMNS, size - start);
    int thread = threadIdx.x;
    if (thread < columns) {
        stretch s = {c.box_x, c.box_width, c.width, c.full_width, c.from_x};
        weigh(weight_x + thread * shape.taps_x, &first_x[thread], &taps_x[thread], s,
              start + thread);
    } else if (thread >= TILE_COLUMNS && thread < TILE_COLUMNS + rows) {
        stretch s = {c.box_y, c.box_height, c.height, c.full_height, c.from_y};
        int i = thread - TILE_COLUMNS;
        weigh(weight_y + i * shape.taps_y, &first_y[i], &taps_y[i], s, top + i);
    }
    __syncthreads();
    int channels = c.channels, left = first_x[0];
    int count = (first_x[columns - 1] + taps_x[columns - 1] - left) * channels;
    int64_t stride = (int64_t)c.width * channels;
    int planes = max(channels, shape.to.channels);
    out += (int64_t)blockIdx.x * shape.to.channels * size * size;
    for (int g = 0; g < rows; g += shape.group) {
        int many = min(shape.group, rows - g);
        for (int e = thread; e < many * count; e += THREADS) {
            int r = g + e / count, i = e % count;
            const uint8_t *from = c.pixel + first_y[r] * stride + left * channels + i;
            const float *weight = weight_y + r * shape.taps_y;
            float sum = weight[0] * (float)from[0];
            for (int k = 1; k < taps_y[r]; k++) sum += weight[k] * (float)from[k * stride];
            row[e] = sum;
        }
        __syncthreads();
        for (int e = thread; e < many * columns; e += THREADS) {
            int r = e / columns, i = e % columns, x = start + i;
            const float *from = row + r * count + (first_x[i] - left) * channels;
            const float *weight = weight_x + i * shape.taps_x;
            if (c.mirror) x = size - 1 - x;
            for (int p = 0; p < planes; p++) {
                int channel = channels == 3 ? p : 0;
                float sum = weight[0] * from[channel];
                for (int k = 1; k < taps_x[i]; k++) sum += weight[k] * from[k * channels + channel];
                out[shape.to.at(p, top + g + r, x)] = sum;
            }
        }
        __syncthreads();
    }
}

/* ---- jitter and normalisation ---- */

struct jitter_shape {
    layout from, to;
    float factor[3], offset[3];
    float *sum; /* [count, 3, lanes of all chunks] */
};

struct pixel {
    float v[3];
};

/* What was drawn for a picture, in the order in which it is done. */
struct jitter {
    int which[3];
    float by[3];
    int colours;
};

static __device__ jitter jitter_of(const basin_crop &crop, int channels) {
    jitter j;
    for (int i = 0; i < 3; i++) {
        j.which[i] = crop.order[i];
        j.by[i] = crop.factor[crop.order[i]];
    }
    j.colours = max(channels, crop.channels);
    return j;
}

static __device__ float clip(float value) {
    value = value < 0 ? 0 : value;
    return value > 255 ? 255 : value;
}

/* Brightness 0, contrast 1 or saturation 2 of one pixel. */
static __device__ void change(pixel &p, int which, float f, float mean, int colours) {
    if (f == 1 || (which == 2 && colours != 3)) return;
    float offset = which == 1 ? (1 - f) * mean : 0;
    if (which == 2) offset = (1 - f) * (0.299f * p.v[0] + 0.587f * p.v[1] + 0.114f * p.v[2]);
    BASIN_UNROLL (c, 3) p.v[c] = clip(f * p.v[c] + offset);
}

static __device__ pixel load(const float *values, int at, int step, int colours) {
    pixel p;
    BASIN_UNROLL (c, 3) p.v[c] = c < colours ? values[at + c * step] : 0;
    return p;
}

/* Pixel k as contrast finds it: what comes before in the order is done. */
static __device__ pixel before(const float *values, const jitter &j, const layout &from, int k) {
    pixel p =
        load(values, from.at(0, k / from.size, k % from.size), from.patch * from.patch, j.colours);
    if (j.which[0] != 1) {
        change(p, j.which[0], j.by[0], 0, j.colours);
        if (j.which[1] != 1) change(p, j.which[1], j.by[1], 0, j.colours);
    }
    return p;
}

/* The mean grey, summed as plane_sum of augment.c does; all threads get it. */
static __device__ float mean_grey(const float *values, const jitter &j, const layout &from,
                                  float *sum) {
    __shared__ double total[3];
    int area = from.size * from.size, chunks = (area + CHUNK - 1) / CHUNK, lanes = chunks * LANES;
    for (int at = threadIdx.x; at < lanes; at += JITTER_THREADS) {
        int begin = at / LANES * CHUNK, lane = at % LANES;
        int steps = min(CHUNK, area - begin) / LANES;
        pixel part = {{0, 0, 0}};
        for (int s = 0; s < steps; s++) {
            pixel p = before(values, j, from, begin + s * LANES + lane);
            BASIN_UNROLL (c, 3) part.v[c] += p.v[c];
        }
        BASIN_UNROLL (c, 3) sum[c * lanes + at] = part.v[c];
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        int c = threadIdx.x;
        double all = 0;
        for (int at = 0; at < lanes; at += LANES)
            for (int lane = 0; lane < LANES; lane++) all += (double)sum[c * lanes + at + lane];
        for (int k = area / LANES * LANES; k < area; k++) {
            pixel p = before(values, j, from, k);
            all += (double)(c == 0 ? p.v[0] : c == 1 ? p.v[1] : p.v[2]);
        }
        total[c] = all;
    }
    __syncthreads();
    double all = total[0];
    if (j.colours == 3) all = 0.299 * all + 0.587 * total[1] + 0.114 * total[2];
    return (float)(all / (double)area);
}

/* `to` may be `from`, where they are laid out alike. */
static __global__ void __launch_bounds__(JITTER_THREADS)
    jitter_kernel(float *to, const float *from, const basin_crop *crops, jitter_shape shape) {
    int area = shape.to.size * shape.to.size, channels = shape.to.channels;
    int lanes = (area + CHUNK - 1) / CHUNK * LANES, step = shape.to.patch * shape.to.patch;
    const jitter j = jitter_of(crops[blockIdx.x], channels);
    bool contrast = crops[blockIdx.x].factor[1] != 1;
    from += (int64_t)blockIdx.x * shape.from.channels * area;
    to += (int64_t)blockIdx.x * channels * area;
    float mean = 0;
    if (contrast)
        mean = mean_grey(from, j, shape.from, shape.sum + (int64_t)blockIdx.x * 3 * lanes);
    for (int k = threadIdx.x; k < area; k += JITTER_THREADS) {
        pixel p = load(from, shape.from.at(0, k), step, j.colours);
        BASIN_UNROLL (i, 3) change(p, j.which[i], j.by[i], mean, j.colours);
        if (channels < j.colours) p.v[0] = 0.299f * p.v[0] + 0.587f * p.v[1] + 0.114f * p.v[2];
        int at = shape.to.at(0, k);
        BASIN_UNROLL (c, 3)
            if (c < channels) to[at + c * step] = p.v[c] * shape.factor[c] + shape.offset[c];
    }
}

/* ---- a batch ---- */

/* Grows device memory that only the stream uses. */
static void *room(basin_cuda *cuda, void **memory, size_t *bytes, size_t wanted) {
    if (*bytes >= wanted) return *memory;
    BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
    if (*memory) cudaFree(*memory);
    *memory = NULL, *bytes = 0;
    if (!BASIN_CUDA_TRY(cuda, cudaMalloc(memory, wanted))) return *memory = NULL;
    *bytes = wanted;
    return *memory;
}

/* A tile's memory besides what the kernel declares. */
static size_t shared_most(const basin_cuda *cuda) { return cuda->shared_limit - 4096; }

static basin_cuda_crops *crops_of(basin_cuda *cuda) {
    if (cuda->crops) return cuda->crops;
    cuda->crops = new (std::nothrow) basin_cuda_crops();
    if (!cuda->crops)
        basin_cuda_fail(cuda, cudaErrorMemoryAllocation, "crops", __FILE__, __LINE__);
    else
        BASIN_CUDA_TRY(cuda, cudaFuncSetAttribute(resize_kernel,
                                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  (int)shared_most(cuda)));
    return cuda->crops;
}

void basin_cuda_crops_free(basin_cuda *cuda) {
    if (!cuda->crops) return;
    if (cuda->crops->record) cudaFree(cuda->crops->record);
    if (cuda->crops->sum) cudaFree(cuda->crops->sum);
    if (cuda->crops->stage) cudaFree(cuda->crops->stage);
    delete cuda->crops;
    cuda->crops = NULL;
}

/* The largest reduction among the crops decides what a tile needs. */
static size_t resize_plan(resize_shape *shape, const basin_crop_batch *batch) {
    double down = 1, along = 1;
    for (int64_t i = 0; i < batch->count; i++) {
        const basin_crop *c = &batch->crop[i];
        down = fmax(down, c->box_height / c->full_height);
        along = fmax(along, c->box_width / c->full_width);
    }
    shape->taps_y = (int)ceil(2 * down) + 2;
    shape->taps_x = (int)ceil(2 * along) + 2;
    shape->span = (int)ceil((TILE_COLUMNS - 1) * along) + shape->taps_x + 2;
    size_t weights = TILE_ROWS * (size_t)shape->taps_y + TILE_COLUMNS * (size_t)shape->taps_x;
    size_t row = 3 * (size_t)shape->span, fits = SHARED_WANTED / sizeof(float);
    size_t group = fits > weights + row ? (fits - weights) / row : 1;
    shape->group = group < TILE_ROWS ? (int)group : TILE_ROWS;
    return (weights + (size_t)shape->group * row) * sizeof(float);
}

static bool any_colour(const basin_crop_batch *batch) {
    for (int64_t i = 0; i < batch->count; i++)
        if (batch->crop[i].channels == 3) return true;
    return false;
}

void basin_cuda_crop(basin_backend *backend, float *values, const basin_crop_batch *batch) {
    basin_cuda *cuda = (basin_cuda *)backend;
    basin_cuda_crops *crops = crops_of(cuda);
    if (!crops || batch->count == 0) return;
    size_t count = (size_t)batch->count, area = (size_t)(batch->size * batch->size);
    size_t bytes = count * sizeof(basin_crop), lanes = (area + CHUNK - 1) / CHUNK * LANES;
    int size = (int)batch->size, patch = batch->patch ? (int)batch->patch : size;
    jitter_shape jitter = {};
    resize_shape resize = {};
    jitter.from = jitter.to = {size, patch, batch->channels};
    float *stage = values;
    if (batch->channels == 1 && any_colour(batch)) { /* grey comes last: three planes before */
        jitter.from.channels = 3;
        stage = (float *)room(cuda, &crops->stage, &crops->stage_bytes,
                              count * 3 * area * sizeof(float));
    }
    resize.to = jitter.from;
    void *record = room(cuda, &crops->record, &crops->record_bytes, bytes);
    jitter.sum =
        (float *)room(cuda, &crops->sum, &crops->sum_bytes, count * 3 * lanes * sizeof(float));
    if (!stage || !record || !jitter.sum) return;
    for (int c = 0; c < 3; c++)
        jitter.factor[c] = batch->factor[c], jitter.offset[c] = batch->offset[c];
    basin_cuda_copy_in(backend, record, batch->crop, bytes);
    basin_cuda_deliver(cuda);
    size_t shared = resize_plan(&resize, batch);
    if (shared > shared_most(cuda)) {
        basin_cuda_fail(cuda, cudaErrorInvalidValue, "a crop reduced too much", __FILE__, __LINE__);
        return;
    }
    dim3 tiles((unsigned)count, (unsigned)basin_cuda_ceil(size, TILE_ROWS),
               (unsigned)basin_cuda_ceil(size, TILE_COLUMNS));
    resize_kernel<<<tiles, THREADS, shared, cuda->stream>>>(stage, (const basin_crop *)record,
                                                            resize);
    BASIN_CUDA_LAUNCHED(cuda, "crop resize");
    jitter_kernel<<<(unsigned)count, JITTER_THREADS, 0, cuda->stream>>>(
        values, stage, (const basin_crop *)record, jitter);
    BASIN_CUDA_LAUNCHED(cuda, "crop jitter");
}

/* ---- memory of the host that the device reads ---- */

void *basin_cuda_alloc_host(basin_backend *, size_t bytes) {
    void *memory = NULL;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocMapped) == cudaSuccess) return memory;
    cudaGetLastError();
    return NULL;
}

void basin_cuda_free_host(basin_backend *backend, void *memory) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (!memory) return;
    BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
    BASIN_CUDA_TRY(cuda, cudaFreeHost(memory));
}
