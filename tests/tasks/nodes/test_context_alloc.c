/* Detection in context when memory is short: reading, storing, a changed label, scores of this and
 * another network; an error each time, and nothing leaks. */
#include "support/alloc_fail.h"
#include "tasks/nodes/context/context.h"
#include "tasks/nodes/fraud.h"

#define CASE BASIN_SOURCE "/tests/golden/context/context.safetensors"
enum { N = 30, F = 3 };

typedef struct scene {
    basin_network *network, *other;
    basin_backend *backend;
} scene;

static basin_status use(basin_context *context, const scene *s) {
    double p[N];
    basin_status status = basin_context_read(context, s->network, 0, NULL);
    if (!status) status = basin_context_store(context, &(basin_context_options){.labels = 6}, NULL);
    if (!status) status = basin_context_predict(p, context, (const int64_t[]){20, 21}, 2, NULL);
    if (!status)
        status = basin_context_label(context, (const int64_t[]){20}, (const int32_t[]){1}, 1, NULL);
    if (!status) status = basin_context_predict_network(p, context, s->other, NULL);
    return status;
}

static basin_status run(void *context) {
    const scene *s = context;
    basin_context *c = NULL;
    basin_status status = basin_context_open(&c, CASE, s->backend, NULL);
    if (!status) status = use(c, s);
    basin_context_close(c);
    return status;
}

TEST(a_context) {
    float x[N * F];
    int32_t label[N], end[2 * N];
    char id[N][8];
    const char *name[N];
    scene s = {0};
    basin_random_fill_normal(x, 1, 0, 0, N * F);
    for (int i = 0; i < N; i++) {
        label[i] = i < 20 ? i % 4 == 0 : -1;
        end[2 * i] = i, end[2 * i + 1] = (7 * i + 3) % N;
        name[i] = id[i];
        snprintf(id[i], sizeof id[i], "n%d", N - i); /* an order to restore */
    }
    basin_edges edges = {end, end + 1, BASIN_I32, 2, N};
    basin_network_arrays arrays = {.nodes = N,
                                   .features = F,
                                   .feature = x,
                                   .label = label,
                                   .relations = 1,
                                   .edges = &edges,
                                   .id = name};
    assert_ok(basin_network_from_arrays(&s.network, &arrays, NULL, &failure));
    x[0]++;
    assert_ok(basin_network_from_arrays(&s.other, &arrays, NULL, &failure));
    assert_ok(basin_backend_open(&s.backend, &(basin_compute){.threads = 1}, &failure));
    assert_true(alloc_fail_sample(run, &s, 60) > 100);
    basin_backend_close(s.backend);
    basin_network_close(s.network);
    basin_network_close(s.other);
}

int main(void) { return tests_run(NULL, NULL); }
