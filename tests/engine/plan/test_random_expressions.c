/* Random graphs with several outputs, updates, gradients and regions of recomputation: the plain
 * plan on the reference backend judges fusion, layout and the fast backend. With arguments FIRST
 * COUNT it runs those graphs instead of the usual few hundred. */
#include "engine/backend/kernel.h"
#include "engine/plan/random_graphs.h"

static uint64_t first = 0, count = 160;

enum { JUDGE, SHAKEN, FUSED, RECOMPUTED, CHAINED, INLINED, FAST, THREADS, SINGLE, VARIANTS };

static variant variants[VARIANTS] = {
    [JUDGE] = {"ref", 1, BASIN_FUSE_OFF, false, false, NULL},
    [SHAKEN] = {"ref", 1, BASIN_FUSE_OFF, false, true, NULL},
    [FUSED] = {"ref", 1, BASIN_FUSE_ON, false, false, NULL},
    [RECOMPUTED] = {"ref", 1, BASIN_FUSE_ON, true, false, NULL},
    [CHAINED] = {"ref", 1, BASIN_FUSE_ON, false, false, NULL}, /* see main */
    [INLINED] = {"ref", 1, BASIN_FUSE_ON, true, false, NULL},  /* the same */
    [FAST] = {"cpu", 1, BASIN_FUSE_ON, true, false, NULL},
    [THREADS] = {"cpu", 3, BASIN_FUSE_ON, true, false, NULL},
    [SINGLE] = {"cpu", 2, BASIN_FUSE_OFF, false, false, NULL},
};

static void check_graph(uint64_t seed) {
    bool rough = seed % 2;
    numbers n[VARIANTS];
    for (int i = 0; i < VARIANTS; i++) n[i] = run_variant(seed, rough, &variants[i]);
    compare(seed, "fused", &n[FUSED], &n[JUDGE], 1e-11, NULL);
    compare(seed, "recomputed", &n[RECOMPUTED], &n[JUDGE], 1e-11, NULL);
    compare(seed, "chained", &n[CHAINED], &n[JUDGE], 1e-11, NULL);
    compare(seed, "inlined", &n[INLINED], &n[JUDGE], 1e-11, NULL);
    if (!rough) compare(seed, "cpu", &n[FAST], &n[JUDGE], 5e-3, &n[SHAKEN]);
    if (!rough) compare(seed, "cpu without fusion", &n[SINGLE], &n[JUDGE], 5e-3, &n[SHAKEN]);
    assert_int_equal(n[FAST].values, n[THREADS].values);
    if (memcmp(n[FAST].value, n[THREADS].value, n[FAST].values * sizeof(double)) != 0)
        fail_msg("graph %llu: three threads differ from one", (unsigned long long)seed);
    for (int i = 0; i < VARIANTS; i++) free(n[i].value);
}

TEST(test_random_graphs) {
    for (uint64_t i = 0; i < count; i++) check_graph(first + i);
}

static basin_status nothing_failed(basin_backend *backend, basin_error *error) {
    (void)backend, (void)error;
    return BASIN_OK;
}

int main(int argc, char **argv) {
    if (argc > 2) first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    /* plans as for narrow storage, but with no product large enough to round its factors */
    basin_backend *chained;
    basin_compute compute = {.backend = "ref", .storage = BASIN_BF16, .narrow_min = INFINITY};
    if (basin_backend_open(&chained, &compute, NULL)) return 1;
    variants[CHAINED].open = chained;
    /* plans as for a device, where functions of any kind are computed again by their readers */
    basin_backend *device;
    if (basin_backend_open(&device, &(basin_compute){.backend = "ref", .threads = 1}, NULL))
        return 1;
    const basin_backend_table *own = device->table;
    basin_backend_table table = *own;
    table.check = nothing_failed;
    device->table = &table;
    variants[INLINED].open = device;
    int failures = tests_run(NULL, NULL);
    basin_backend_close(chained);
    device->table = own;
    basin_backend_close(device);
    return failures;
}
