/* Associative memory: five letters are stored, then recalled from corrupted ones.
 *
 * One layer of neurons (tanh) and one synapse, a dense associative memory
 *     E(g) = -1/beta log of the sum over letters of exp(beta xi . g),
 * whose rows xi are the letters themselves. Nothing is trained: each letter is an energy minimum,
 * and a picture with a quarter of its pixels flipped falls into the nearest. */
#include "letters.h"
#include "must.h"

/* Letters with 12 of 49 pixels flipped, each at random places of its own. */
static void corrupt(double *pixel /* [LETTERS, PIXELS] */) {
    for (int n = 0; n < LETTERS; n++) {
        int64_t order[PIXELS];
        basin_random_permutation(order, PIXELS, 1, (uint64_t)n);
        for (int i = 0; i < 12; i++) pixel[n * PIXELS + order[i]] *= -1;
    }
}

int main(void) {
    basin_backend *backend;
    basin_store *store;
    must(basin_backend_open(&backend, NULL, &error));
    must(basin_store_new(&store, backend, &error));

    basin_graph *graph = basin_graph_new();
    basin_ham *ham = graph ? basin_ham_new(graph) : NULL;
    if (!ham) return 1;
    basin_ham_layer(ham, &(basin_layer){.name = "pixels",
                                        .shape = BASIN_SHAPE(PIXELS),
                                        .lagrangian = {.name = "tanh"}});
    basin_ham_synapse(ham, &(basin_synapse){.name = "memory",
                                            .kind = BASIN_SYNAPSE_MEMORY,
                                            .units = LETTERS,
                                            .hidden = {.name = "softmax"}});
    basin_ham_connect(ham, "memory", "pixels");

    double letter[LETTERS * PIXELS], start[LETTERS * PIXELS];
    for (int n = 0; n < LETTERS; n++) letter_draw(letter + n * PIXELS, n);
    for (int n = 0; n < LETTERS; n++) letter_draw(start + n * PIXELS, n);
    corrupt(start);
    basin_tensor xi = basin_tensor_borrow(letter, BASIN_F64, BASIN_SHAPE(LETTERS, PIXELS));
    basin_tensor x = basin_tensor_borrow(start, BASIN_F64, BASIN_SHAPE(LETTERS, PIXELS));
    must(basin_store_write(store, "memory.xi", &xi, &error));

    basin_descent_result result;
    basin_ham_spec spec = {.steps = 40, .dt = 0.25};
    basin_stop stop = {.tolerance = 1e-3};
    basin_descent *descent;
    must(basin_ham_descent_new(&descent, ham, store, LETTERS, &spec, &stop, &error));
    must(basin_descent_run(descent, &result, &x, &error));
    basin_descent_free(descent);

    printf("corrupted:\n");
    letter_print(start, LETTERS);
    printf("\nrecalled after %d steps, energy %.1f, then %.1f:\n", result.steps,
           basin_descent_total(&result, 0), basin_descent_total(&result, result.steps));
    letter_print(result.g[0].data, LETTERS);
    for (int n = 0; n < LETTERS; n++) {
        int wrong = 0;
        for (int i = n * PIXELS; i < (n + 1) * PIXELS; i++)
            wrong += (basin_tensor_at(&result.g[0], i) > 0) != (letter[i] > 0);
        printf("%c: %d pixels wrong\n", letter_name[n], wrong);
    }

    basin_descent_result_free(&result);
    basin_ham_free(ham);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return 0;
}
