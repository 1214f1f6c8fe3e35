/* Descent: tokens fall down the energy of the paper's block.
 *
 * The block is attention plus a Hopfield network over layer-normalised tokens g; each step is
 * x <- x - alpha dE/dg. Every term of the energy is recorded before every step. */
#include "must.h"

int main(int argc, char **argv) {
    enum { N = 16, D = 32 };
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph = basin_graph_new();
    if (!graph) return 1;
    must(basin_backend_open(&backend, &(basin_compute){.backend = argc > 1 ? argv[1] : "cpu"},
                            &error));
    must(basin_store_new(&store, backend, &error));

    /* The block's parameters are declared once, then drawn from a seed into the store. */
    basin_params params;
    basin_block block;
    basin_block_config config = {.dim = D,
                                 .heads = 2,
                                 .head_dim = 16,
                                 .memories = 64,
                                 .init_query = {BASIN_INIT_NORMAL, 0.2},
                                 .init_memory = {BASIN_INIT_NORMAL, 0.2}};
    basin_params_begin(&params, graph);
    must(basin_block_declare(&block, &params, "", &config));
    must(basin_params_init(&params, store, 7, &error));
    printf("a block of %lld parameters\n", (long long)basin_params_total(&params));

    /* The block among all pairs of different tokens is an energy, and an energy descends. */
    basin_block_bound bound = {.block = &block, .pattern = &BASIN_OTHER_PAIRS};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 12, .alpha = 0.05};
    basin_descent *descent;
    must(
        basin_descent_new(&descent, store, &energy, graph, BASIN_SHAPE(N, D), &spec, NULL, &error));

    basin_tensor tokens;
    basin_descent_result result;
    must(basin_tensor_new(&tokens, BASIN_F32, BASIN_SHAPE(N, D), &error));
    basin_random_fill_normal(tokens.data, 1, 0, 0, N * D);
    must(basin_descent_run(descent, &result, &tokens, &error));

    printf("step    energy  %9s  %9s   largest move of g\n", energy.term[0].name,
           energy.term[1].name);
    for (int t = 0; t <= result.steps; t++) {
        const double *term = result.energy + t * result.terms;
        printf("%4d  %8.1f  %9.1f  %9.1f", t, basin_descent_total(&result, t), term[0], term[1]);
        if (t < result.steps) printf("   %.3f", result.change[t]);
        printf("\n");
    }

    basin_descent_result_free(&result);
    basin_tensor_free(&tokens);
    basin_descent_free(descent);
    basin_params_free(&params);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return 0;
}
