/* Random draws: element i of the stream attr.stream under the seed the operand holds, as
 * basin/random.h defines them; the bits are those of src/base/philox.c. This file is compiled with
 * --fmad=false: each +, -, *, / and sqrt of a normal is rounded once, as there. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"

enum { THREADS = 256 };

static __device__ void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint32_t a_high = __umulhi(0xD2511F53u, c[0]), a_low = 0xD2511F53u * c[0];
        uint32_t b_high = __umulhi(0xCD9E8D57u, c[2]), b_low = 0xCD9E8D57u * c[2];
        uint32_t c1 = c[1], c3 = c[3];
        c[0] = b_high ^ c1 ^ k0;
        c[1] = b_low;
        c[2] = a_high ^ c3 ^ k1;
        c[3] = a_low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* ln((word + 1) / 2^32). */
static __device__ double log_of(uint32_t word) {
    double k = (double)word + 1.0;
    long long bits = __double_as_longlong(k);
    double exponent = (double)(int32_t)(bits >> 52) - (1023 + 32);
    double m = __longlong_as_double((bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL);
    double big = m > 1.4142135623730951 ? 1.0 : 0.0;
    m = m * (1.0 - 0.5 * big);
    double t = (m - 1.0) / (m + 1.0), z = t * t, sum = 1.0 / 23;
    sum = sum * z + 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    sum = sum * z + 1.0;
    return (exponent + big) * 0.6931471805599453 + 2.0 * t * sum;
}

/* Cosine and sine of 2 pi word / 2^32. */
static __device__ void cos_sin_of(double *cosine, double *sine, uint32_t word) {
    uint32_t quarter = (word + 0x20000000u) >> 30;
    double angle = (double)(int32_t)(word - (quarter << 30)) * 1.4629180792671596e-9;
    double z = angle * angle;
    double s = 1.0 / 355687428096000, c = -1.0 / 6402373705728000;
    s = s * z - 1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = s * z * angle + angle;
    c = c * z + 1.0 / 20922789888000;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 0.5;
    c = c * z + 1.0;
    double first = quarter & 1 ? s : c, second = quarter & 1 ? c : s;
    *cosine = quarter == 1 || quarter == 2 ? -first : first;
    *sine = quarter >= 2 ? -second : second;
}

static __device__ void normals_of(float *even, float *odd, uint32_t a, uint32_t b) {
    double radius = sqrt(-2.0 * log_of(a)), cosine, sine;
    cos_sin_of(&cosine, &sine, b);
    *even = (float)(radius * cosine);
    *odd = (float)(radius * sine);
}

/* A thread makes the four elements of one call of Philox. */
static __global__ void draw(basin_sink out, const uint32_t *seed, uint32_t stream, int64_t count,
                            bool normal) {
    int64_t calls = (count + 3) / 4;
    for (int64_t call = (int64_t)blockIdx.x * THREADS + threadIdx.x; call < calls;
         call += (int64_t)gridDim.x * THREADS) {
        uint32_t word[4] = {(uint32_t)call, (uint32_t)(call >> 32), stream, 0};
        float value[4];
        philox(word, seed[0], seed[1]);
        if (normal) {
            normals_of(&value[0], &value[1], word[0], word[1]);
            normals_of(&value[2], &value[3], word[2], word[3]);
        } else
#pragma unroll
            for (int i = 0; i < 4; i++) value[i] = (float)(word[i] >> 8) * 0x1p-24f;
        if (4 * call + 4 <= count)
            basin_write<4>(out, 4 * call, value);
        else
            for (int i = 0; i < 4 && 4 * call + i < count; i++)
                basin_write_one(out, 4 * call + i, value[i]);
    }
}

void basin_cuda_random(const basin_cuda_frame *frame) {
    const basin_shape *shape = &frame->call->out[0].shape;
    int64_t count = basin_shape_product(shape, 0, shape->rank);
    if (count == 0) return;
    draw<<<basin_cuda_grid(frame->cuda, (count + 3) / 4, THREADS), THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), (const uint32_t *)frame->in[0], frame->call->attr.stream, count,
        frame->call->op == BASIN_OP_NORMAL);
    BASIN_CUDA_LAUNCHED(frame->cuda, "random draws");
}
