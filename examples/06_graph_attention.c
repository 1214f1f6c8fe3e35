/* Attention on a graph: tokens see their neighbours only.
 *
 *     0 - 1        3 - 4        5
 *      \ /
 *       2
 *
 * Edges become pairs (query, key) in CSR form, and the same energy attention runs over them. Memory
 * grows with the edges. Node 5 has no neighbour: it adds no energy and feels no force. */
#include <math.h>

#include "must.h"

enum { NODES = 6, D = 8, EDGES = 4 };

int main(int argc, char **argv) {
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph = basin_graph_new();
    if (!graph) return 1;
    must(basin_backend_open(&backend, &(basin_compute){.backend = argc > 1 ? argv[1] : "cpu"},
                            &error));
    must(basin_store_new(&store, backend, &error));

    const int32_t edge[EDGES][2] = {{0, 1}, {1, 2}, {2, 0}, {3, 4}};
    basin_pairs pairs;
    must(basin_pairs_new(&pairs, NODES, NODES, edge[0], EDGES, BASIN_PAIRS_BOTH_WAYS, &error));
    for (int q = 0; q < NODES; q++) {
        printf("node %d sees", q);
        for (int32_t p = pairs.row[q]; p < pairs.row[q + 1]; p++) printf(" %d", pairs.key[p]);
        printf("%s\n", pairs.row[q] == pairs.row[q + 1] ? " nobody" : "");
    }

    /* Attention alone: without the Hopfield network nothing but neighbours moves a token. */
    basin_params params;
    basin_block block;
    basin_block_config config = {.dim = D,
                                 .heads = 2,
                                 .head_dim = 4,
                                 .no_hopfield = true,
                                 .init_query = {BASIN_INIT_NORMAL, 0.5}};
    basin_params_begin(&params, graph);
    must(basin_block_declare(&block, &params, "", &config));
    must(basin_params_init(&params, store, 3, &error));

    basin_pattern pattern = basin_pairs_declare(graph, "edges", NODES, NODES, pairs.pairs);
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent *descent;
    basin_descent_spec spec = {.steps = 5, .alpha = 0.1};
    must(basin_descent_new(&descent, store, &energy, graph, BASIN_SHAPE(NODES, D), &spec, NULL,
                           &error));
    must(basin_pairs_write(basin_descent_plan(descent), &pattern, &pairs, &error));

    double token[NODES * D];
    basin_random_fill_normal_f64(token, 4, 0, 0, NODES * D);
    basin_tensor tokens = basin_tensor_borrow(token, BASIN_F64, BASIN_SHAPE(NODES, D));
    basin_descent_result result;
    must(basin_descent_run(descent, &result, &tokens, &error));

    for (int t = 0; t <= result.steps; t++)
        printf("step %d  energy %.2f\n", t, basin_descent_total(&result, t));
    for (int n = 0; n < NODES; n++) {
        double square = 0;
        for (int i = n * D; i < (n + 1) * D; i++)
            square += pow(basin_tensor_at(result.x, i) - token[i], 2);
        printf("node %d moved by %.3f\n", n, sqrt(square));
    }

    basin_descent_result_free(&result);
    basin_descent_free(descent);
    basin_params_free(&params);
    basin_pairs_free(&pairs);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return 0;
}
