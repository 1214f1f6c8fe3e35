/* The two products around a ReLU on a CUDA device, in bfloat16: h = relu(A B'), which writes a mask
 * of bits, and d = alpha C B' where h is above 0, which reads it; against plain loops in double.
 * Sizes that fill no tile, results among the columns of wider matrices, sizes and forms that the
 * kernels for it do not take. Each pair runs three times (call by call, captured, replayed), and h
 * once without the mask. Skipped where there is no device. `time [M [N [K [STRIDE]]]]` as
 * arguments: no tests; how long the two take, and the ReLU without a mask. */
#include <math.h>

#include "base/clock.h"
#include "engine/backend/kernel.h"
#include "support/cuda.h"

typedef struct sizes {
    int64_t m, n, k;
    int64_t more_a, more_b, more_d; /* columns of the wider matrices beside these */
    bool plain_b;                   /* B is [k, n] */
    double alpha;
} sizes;

enum { WORKSPACE, A, B, C, H, D, BITS, BLOCKS };

/* Two calls, h and d, on blocks of their own. */
typedef struct pair {
    sizes s;
    int64_t row[BLOCKS], rows[BLOCKS]; /* columns of the matrix that each is, or is part of */
    uint16_t *host[BLOCKS];
    void *block[BLOCKS];
    basin_instruction relu[2], masked[6];
    basin_program program[2];
    basin_call call[2];
} pair;

static double widen(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, 4);
    return (double)value;
}

static size_t bytes_of(const pair *p, int which) {
    int64_t words = (p->s.m + 63) / 64 * 64 * (p->s.n / 32);
    return which == BITS ? (size_t)words * 4 : (size_t)(p->rows[which] * p->row[which]) * 2;
}

/* Numbers in [-1, 1), and all bits set in results. */
static void fill(pair *p, int which) {
    size_t bytes = bytes_of(p, which);
    uint64_t state = (uint64_t)which * 77 + (uint64_t)p->s.m;
    p->host[which] = malloc(bytes + 1);
    p->block[which] = cuda->table->alloc(cuda, bytes + 1);
    assert_non_null(p->host[which]);
    assert_non_null(p->block[which]);
    memset(p->host[which], 0xff, bytes);
    for (size_t i = 0; i < bytes / 2 && which <= C; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float x = (float)(state >> 40) / 8388608.0f - 1.0f;
        memcpy(&p->host[which][i], (char *)&x + 2, 2);
    }
    cuda->table->copy_in(cuda, p->block[which], p->host[which], bytes);
}

static basin_operand operand(const pair *p, int which, int64_t rows, int64_t columns) {
    return (basin_operand){.block = which,
                           .kind = BASIN_NARROW,
                           .shape = BASIN_SHAPE(rows, columns),
                           .stride = p->row[which] == columns ? 0 : p->row[which]};
}

static void make_programs(pair *p) {
    const basin_instruction relu[] = {{.op = BASIN_INSTRUCTION_TILE},
                                      {.op = BASIN_OP_RELU, .to = 1}};
    const basin_instruction masked[] = {
        {.op = BASIN_INSTRUCTION_TILE},
        {.op = BASIN_INSTRUCTION_LOAD, .to = 1},
        {.op = BASIN_OP_STEP, .to = 2, .a = 1},
        {.op = BASIN_INSTRUCTION_IMMEDIATE, .to = 3, .value = p->s.alpha},
        {.op = BASIN_OP_MUL, .to = 4, .b = 3},
        {.op = BASIN_OP_MUL, .to = 5, .a = 2, .b = 4}};
    memcpy(p->relu, relu, sizeof relu);
    memcpy(p->masked, masked, sizeof masked);
    for (int i = 0; i < 2; i++)
        p->program[i] = (basin_program){.instructions = i ? 6 : 2,
                                        .registers = i ? 6 : 2,
                                        .stores = 1,
                                        .instruction = i ? p->masked : p->relu,
                                        .store = {i ? 5 : 1},
                                        .domain = BASIN_SHAPE(1, p->s.m, p->s.n),
                                        .stride = {{p->s.m * p->s.n, p->s.n, 1}}};
}

static void pair_new(pair *p, sizes s) {
    *p = (pair){.s = s};
    int64_t rows_b = s.plain_b ? s.k : s.n, columns_b = s.plain_b ? s.n : s.k;
    int64_t row[BLOCKS] = {[A] = s.k + s.more_a,
                           [B] = columns_b + s.more_b,
                           [C] = s.k + s.more_b,
                           [H] = s.n + s.more_d,
                           [D] = s.n + s.more_d};
    memcpy(p->row, row, sizeof row);
    for (int i = A; i < BITS; i++) p->rows[i] = i == B ? rows_b : s.m;
    for (int i = A; i < BLOCKS; i++) fill(p, i);
    make_programs(p);
    for (int i = 0; i < 2; i++) {
        p->call[i] = (basin_call){.op = BASIN_OP_MATMUL, .program = &p->program[i], .ins = 2};
        p->call[i].attr.transpose_b = !s.plain_b;
        p->call[i].in[0] = operand(p, i ? C : A, s.m, s.k);
        p->call[i].in[1] = operand(p, B, rows_b, columns_b);
        p->call[i].out[0] = operand(p, i ? D : H, s.m, s.n);
        p->call[i].outs = 1;
    }
    basin_operand bits = {
        .block = BITS, .kind = BASIN_INDEX, .shape = BASIN_SHAPE((s.m + 63) / 64 * 64, s.n / 32)};
    p->call[0].out[p->call[0].outs++] = bits;
    p->call[1].in[p->call[1].ins++] = bits;
    size_t most = 0;
    for (int i = 0; i < 2; i++) {
        p->call[i].workspace_bytes = cuda->table->workspace(cuda, &p->call[i]);
        if (p->call[i].workspace_bytes > most) most = p->call[i].workspace_bytes;
    }
    p->block[WORKSPACE] = cuda->table->alloc(cuda, most + 1);
    assert_non_null(p->block[WORKSPACE]);
}

static void pair_free(pair *p) {
    for (int i = 0; i < BLOCKS; i++) cuda->table->free(cuda, p->block[i]), free(p->host[i]);
}

static void wait_for(const pair *p) {
    basin_error error = {0};
    if (cuda->table->wait(cuda, &error) != BASIN_OK)
        fail_msg("m %lld, n %lld, k %lld: %s", (long long)p->s.m, (long long)p->s.n,
                 (long long)p->s.k, error.text);
}

static double product_at(const pair *p, int left, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < p->s.k; l++)
        sum += widen(p->host[left][i * p->row[left] + l]) *
               widen(p->host[B][p->s.plain_b ? l * p->row[B] + j : j * p->row[B] + l]);
    return sum;
}

static void check_number(const pair *p, const char *what, int64_t i, int64_t j, double found,
                         double wanted) {
    double allowed = 0.004 * fabs(wanted) + 1e-6 * (double)p->s.k;
    if (fabs(found - wanted) <= allowed) return;
    fail_msg(
        "m %lld, n %lld, k %lld, strides %lld, %lld, %lld: %s[%lld, %lld] is %.9g, expected %.9g",
        (long long)p->s.m, (long long)p->s.n, (long long)p->s.k, (long long)p->row[A],
        (long long)p->row[B], (long long)p->row[H], what, (long long)i, (long long)j, found,
        wanted);
}

/* Every `step`-th row, the first and the last of all. */
static void check(const pair *p, int64_t step) {
    for (int64_t i = 0; i < p->s.m;
         i = i + step < p->s.m || i == p->s.m - 1 ? i + step : p->s.m - 1)
        for (int64_t j = 0; j < p->s.n; j++) {
            double h = widen(p->host[H][i * p->row[H] + j]);
            double d = widen(p->host[D][i * p->row[D] + j]), raw = product_at(p, A, i, j);
            check_number(p, "h", i, j, h, raw > 0 ? raw : 0);
            check_number(p, "d", i, j, d, h > 0 ? p->s.alpha * product_at(p, C, i, j) : 0);
        }
    for (int which = H; which <= D; which++)
        for (int64_t i = 0; i < p->s.m; i++)
            for (int64_t j = p->s.n; j < p->row[which]; j++)
                if (p->host[which][i * p->row[which] + j] != 0xffff)
                    fail_msg("row %lld: column %lld, beside the result's %lld, was written",
                             (long long)i, (long long)j, (long long)p->s.n);
}

/* h without the mask: the same bits, and none are written where those of the mask would be. */
static void check_plain(pair *p) {
    basin_call relu = p->call[0];
    size_t bytes = bytes_of(p, H), words = bytes_of(p, BITS);
    uint16_t *with = malloc(bytes);
    assert_non_null(with);
    memcpy(with, p->host[H], bytes);
    relu.outs = 1;
    for (int which = H; which <= BITS; which += BITS - H) {
        memset(p->host[which], 0xff, bytes_of(p, which));
        cuda->table->copy_in(cuda, p->block[which], p->host[which], bytes_of(p, which));
    }
    cuda->table->run(cuda, &relu, 1, p->block);
    cuda->table->copy_out(cuda, p->host[H], p->block[H], bytes);
    cuda->table->copy_out(cuda, p->host[BITS], p->block[BITS], words);
    wait_for(p);
    bool touched = false;
    for (size_t i = 0; i < words / 2; i++) touched = touched || p->host[BITS][i] != 0xffff;
    if (touched || memcmp(with, p->host[H], bytes) != 0)
        fail_msg("m %lld, n %lld, k %lld: without the mask, %s", (long long)p->s.m,
                 (long long)p->s.n, (long long)p->s.k, touched ? "bits are written" : "other bits");
    free(with);
}

static void try_pair(sizes s, int64_t step) {
    pair p;
    pair_new(&p, s);
    for (int run = 0; run < 3; run++) {
        uint16_t *before[2] = {NULL, NULL};
        for (int which = H; which <= BITS; which++) {
            size_t bytes = bytes_of(&p, which);
            if (run > 0 && which <= D) {
                before[which - H] = malloc(bytes);
                assert_non_null(before[which - H]);
                memcpy(before[which - H], p.host[which], bytes);
            }
            memset(p.host[which], 0xff, bytes);
            cuda->table->copy_in(cuda, p.block[which], p.host[which], bytes);
        }
        cuda->table->run(cuda, p.call, 2, p.block);
        for (int which = H; which <= D; which++)
            cuda->table->copy_out(cuda, p.host[which], p.block[which], bytes_of(&p, which));
        wait_for(&p);
        for (int which = H; which <= D && run > 0; which++) {
            if (memcmp(before[which - H], p.host[which], bytes_of(&p, which)) != 0)
                fail_msg("m %lld, n %lld, k %lld: other bits in run %d", (long long)s.m,
                         (long long)s.n, (long long)s.k, run + 1);
            free(before[which - H]);
        }
        if (run == 0) check(&p, step);
    }
    check_plain(&p);
    pair_free(&p);
}

TEST(test_small) {
    const int64_t m[] = {1, 63, 64, 65, 127, 128, 129, 200, 257, 385, 513, 1000};
    const int64_t n[] = {64, 320, 384, 640}, k[] = {8, 16, 64, 72, 136, 200};
    const double alpha[] = {1, 0.3, -0.25};
    for (int i = 0; i < 24; i++) {
        int64_t more = i % 4 * 8;
        try_pair((sizes){m[i % 12], n[i * 3 % 4], k[i * 5 % 6], more, 2 * more, 3 * more, false,
                         alpha[i % 3]},
                 7);
    }
}

TEST(test_other_forms) {
    try_pair((sizes){100, 128, 64, 0, 0, 0, true, 0.5}, 3);
    try_pair((sizes){130, 256, 12, 0, 0, 0, false, 2}, 3);
    try_pair((sizes){130, 128, 72, 0, 0, 24, true, 2}, 3);
}

TEST(test_large) {
    try_pair((sizes){50176, 3072, 768, 0, 0, 1536, false, 0.1}, 4096);
    try_pair((sizes){12545, 3072, 768, 0, 0, 0, false, 1}, 2048);
}

/* ---- timing ---- */

enum { CALLS = 20, ROUNDS = 9 };

static double milliseconds(const pair *p, const basin_call list[CALLS]) {
    double began = basin_clock();
    cuda->table->run(cuda, list, CALLS, p->block);
    wait_for(p);
    return 1e3 * (basin_clock() - began) / CALLS;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_all(int64_t m, int64_t n, int64_t k, int64_t stride) {
    pair p;
    pair_new(&p, (sizes){m, n, k, 0, 0, stride - n, false, 0.1});
    static basin_call list[3][CALLS];
    basin_call relu = p.call[0];
    relu.outs = 1;
    double floor = 2e3 * (double)m * (double)n * (double)k / 790e12;
    const basin_call *call[] = {&relu, &p.call[0], &p.call[1]};
    const char *const name[] = {"relu", "relu and its mask", "masked"};
    double time[3][ROUNDS];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < CALLS; j++) list[i][j] = *call[i];
    for (int round = -3; round < ROUNDS; round++)
        for (int i = 0; i < 3; i++) { /* in turn: clocks fall as the device warms */
            double passed = milliseconds(&p, list[i]);
            if (round >= 0) time[i][round] = passed;
        }
    for (int i = 0; i < 3; i++) {
        qsort(time[i], ROUNDS, sizeof time[i][0], compare);
        printf("%-18s %.3f ms (%.3f to %.3f), %.2f of the floor\n", name[i], time[i][ROUNDS / 2],
               time[i][0], time[i][ROUNDS - 1], time[i][ROUNDS / 2] / floor);
    }
    pair_free(&p);
}

int main(int argc, char **argv) {
    cuda_open();
    int64_t size[4] = {50176, 3072, 768, 4608};
    for (int i = 2; i < argc && i < 6; i++) size[i - 2] = strtoll(argv[i], NULL, 10);
    if (argc < 2 || strcmp(argv[1], "time")) return cuda_close(tests_run(NULL, NULL));
    time_all(size[0], size[1], size[2], size[3] < size[1] ? size[1] : size[3]);
    return cuda_close(0);
}
