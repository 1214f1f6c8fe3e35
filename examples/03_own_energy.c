/* An energy of your own, E(g) = -sum of J[i] cos(g[i + 1] - g[i]) - sum of cos(g[i] - seen[i]):
 * rotors on a chain turn towards their neighbours and what was seen. Trained through eight steps of
 * descent to clean noisy angles, J finds out that a chain is two halves of one angle each. */
#include "must.h"

enum { BATCH = 64, N = 10 };

static basin_expr bonds(const void *j, basin_expr g) { /* j [N - 1] -> [BATCH] */
    basin_expr turn = basin_sub(basin_slice(g, 1, 1, N - 1), basin_slice(g, 1, 0, N - 1));
    return basin_neg(basin_sum(basin_mul(j, basin_cos(turn)), 1, 1));
}

static basin_expr seen(const void *angle, basin_expr g) { /* angle [BATCH, N] -> [BATCH] */
    return basin_neg(basin_sum(basin_cos(basin_sub(g, angle)), 1, 1));
}

int main(int argc, char **argv) {
    basin_graph *graph = basin_graph_new();
    basin_expr seed = basin_index(graph, "seed", BASIN_SHAPE(2)); /* new data in each run */
    basin_expr half = basin_scale(basin_uniform(seed, BASIN_SHAPE(BATCH, 2, 1)), 6.2832);
    basin_expr both = basin_broadcast_to(half, BASIN_SHAPE(BATCH, 2, N / 2));
    basin_expr truth = basin_reshape(both, BASIN_SHAPE(BATCH, N));
    basin_expr noise = basin_scale(basin_normal(seed, BASIN_SHAPE(BATCH, N)), 0.6);
    basin_params params;
    basin_params_begin(&params, graph);
    basin_expr j = basin_param_add(&params, "", "j", BASIN_SHAPE(N - 1), (basin_init){0});
    basin_expr noisy = basin_add(truth, noise);
    basin_energy energy = {BASIN_TERMS({"bonds", bonds, j}, {"seen", seen, noisy})};
    basin_descent_spec spec = {.steps = 8, .alpha = 0.3};
    basin_expr end = basin_descend(&energy, noisy, &spec, NULL);
    basin_expr loss = basin_mean_all(basin_offset(basin_neg(basin_cos(basin_sub(end, truth))), 1));

    basin_backend *backend;
    basin_store *store;
    basin_trainer *trainer;
    must(basin_backend_open(&backend, &(basin_compute){.backend = argc > 1 ? argv[1] : "cpu"},
                            &error));
    must(basin_store_new(&store, backend, &error));
    must(basin_params_init(&params, store, 0, &error));
    basin_trainer_spec training = {.optimizer = BASIN_OPTIMIZER_DEFAULT,
                                   .schedule = {.last = 0.02}};
    training.schedule.peak = training.schedule.last; /* the same rate for every step */
    must(basin_trainer_new(&trainer, store, &params, loss, &training, &error));
    for (int32_t t = 1; t <= 401; t++) {
        basin_tensor number = basin_tensor_borrow((int32_t[]){t, 0}, BASIN_I32, BASIN_SHAPE(2));
        must(basin_plan_write(basin_trainer_plan(trainer), seed, &number, &error));
        double now;
        must(basin_trainer_step(&now, trainer, &error));
        if (t % 100 == 1) printf("step %3d  loss %.3f\n", t, now);
    }
    basin_tensor found;
    must(basin_store_get(&found, store, "j", &error));
    for (int i = 0; i < N - 1; i++) printf("J[%d] %4.1f\n", i, basin_tensor_at(&found, i));
    basin_tensor_free(&found);
    basin_trainer_free(trainer);
    basin_params_free(&params);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return 0;
}
