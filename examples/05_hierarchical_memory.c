/* Hierarchical memory: one network answers in every direction.
 *
 *     picture (49 neurons) --looks-- name (5) --kind-- family (2: vowel, consonant)
 *
 * Synapses are energies -g1 W g2, so each layer hears from both its neighbours: names recognise
 * pictures and draw them. What is known is clamped, what is not settles into a minimum around it.
 * Four questions make one batch:
 *   0  a corrupted S: which letter is it?
 *   1  the name N: what does it look like?
 *   2  the pixels that A and N have in common, and that it is a vowel
 *   3  the same pixels, and that it is a consonant */
#include "letters.h"
#include "must.h"

enum { PICTURE, NAME, FAMILY, LAYERS, QUESTIONS = 4, FAMILIES = 2 };
enum { A = 1, S = 2, I = 3, N = 4 };
static const int64_t width[LAYERS] = {PIXELS, LETTERS, FAMILIES};
static const char *const layer_name[LAYERS] = {"picture", "name", "family"};
static const char *const family_name[FAMILIES] = {"vowel", "consonant"};

typedef struct questions {
    double x[LAYERS][QUESTIONS * PIXELS];    /* [QUESTIONS, width] first states */
    double mask[LAYERS][QUESTIONS * PIXELS]; /* 1: free, 0: clamped */
} questions;

static void clamp(questions *q, int layer, int question, int64_t neuron, double state) {
    int64_t i = question * width[layer] + neuron;
    q->x[layer][i] = state;
    q->mask[layer][i] = 0;
}

/* One neuron of a softmax layer on, the others off. */
static void choose(questions *q, int layer, int question, int which) {
    for (int i = 0; i < width[layer]; i++) clamp(q, layer, question, i, i == which ? 10 : 0);
}

static void ask(questions *q, const double *letter /* [LETTERS, PIXELS] */) {
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < QUESTIONS * width[l]; i++) q->x[l][i] = 0, q->mask[l][i] = 1;
    int64_t order[PIXELS];
    basin_random_permutation(order, PIXELS, 2, 0);
    for (int i = 0; i < PIXELS; i++)
        clamp(q, PICTURE, 0, order[i], (i < 12 ? -1 : 1) * letter[S * PIXELS + order[i]]);
    choose(q, NAME, 1, N);
    for (int i = 0; i < PIXELS; i++) {
        if (letter[A * PIXELS + i] != letter[N * PIXELS + i]) continue;
        clamp(q, PICTURE, 2, i, letter[A * PIXELS + i]);
        clamp(q, PICTURE, 3, i, letter[A * PIXELS + i]);
    }
    choose(q, FAMILY, 2, 0);
    choose(q, FAMILY, 3, 1);
}

static basin_ham *build(basin_graph *graph) {
    basin_ham *ham = basin_ham_new(graph);
    if (!ham) return NULL;
    basin_lagrangian lagrangian[LAYERS] = {
        {.name = "tanh", .beta = basin_scalar(graph, 4)}, {.name = "softmax"}, {.name = "softmax"}};
    for (int l = 0; l < LAYERS; l++)
        basin_ham_layer(ham, &(basin_layer){.name = layer_name[l],
                                            .shape = BASIN_SHAPE(width[l]),
                                            .lagrangian = lagrangian[l]});
    basin_ham_synapse(ham, &(basin_synapse){.name = "looks", .kind = BASIN_SYNAPSE_LINEAR});
    basin_ham_synapse(ham, &(basin_synapse){.name = "kind", .kind = BASIN_SYNAPSE_LINEAR});
    basin_ham_connect(ham, "looks", "picture, name");
    basin_ham_connect(ham, "kind", "name, family");
    return ham;
}

/* looks [PIXELS, LETTERS] are the letters, kind [LETTERS, FAMILIES] says which is a vowel. */
static void write_weights(basin_store *store, const double *letter /* [LETTERS, PIXELS] */) {
    double looks[PIXELS * LETTERS], kind[LETTERS * FAMILIES];
    for (int n = 0; n < LETTERS; n++) {
        bool vowel = n == A || n == I;
        for (int i = 0; i < PIXELS; i++) looks[i * LETTERS + n] = 0.5 * letter[n * PIXELS + i];
        kind[n * FAMILIES] = vowel ? 3 : 0;
        kind[n * FAMILIES + 1] = vowel ? 0 : 3;
    }
    basin_tensor w = basin_tensor_borrow(looks, BASIN_F64, BASIN_SHAPE(PIXELS, LETTERS));
    must(basin_store_write(store, "looks.w", &w, &error));
    w = basin_tensor_borrow(kind, BASIN_F64, BASIN_SHAPE(LETTERS, FAMILIES));
    must(basin_store_write(store, "kind.w", &w, &error));
}

static int strongest(const basin_tensor *g, int question) {
    int64_t n = g->shape.dim[1];
    int best = 0;
    for (int i = 1; i < n; i++)
        if (basin_tensor_at(g, question * n + i) > basin_tensor_at(g, question * n + best))
            best = i;
    return best;
}

/* To one decimal, without a sign before zero. */
static double rounded(double number) { return number > -0.05 && number < 0.05 ? 0 : number; }

static void print_answers(const basin_ham *ham, const basin_descent_result *result) {
    printf("\npictures at the end:\n");
    letter_print(result->g[PICTURE].data, QUESTIONS);
    for (int q = 0; q < QUESTIONS; q++)
        printf("%d: %c, a %s\n", q, letter_name[strongest(&result->g[NAME], q)],
               family_name[strongest(&result->g[FAMILY], q)]);
    printf("\nenergy tree, all questions    first   last\n");
    for (int p = 0; p < result->terms; p++) {
        double sum[2] = {0, 0};
        for (int q = 0; q < QUESTIONS; q++) {
            sum[0] += result->energy[p * QUESTIONS + q];
            sum[1] += result->energy[(result->steps * result->terms + p) * QUESTIONS + q];
        }
        printf("  %-24s  %7.1f %7.1f\n", basin_ham_term_name(ham, p), rounded(sum[0]),
               rounded(sum[1]));
    }
}

int main(void) {
    basin_backend *backend;
    basin_store *store;
    must(basin_backend_open(&backend, NULL, &error));
    must(basin_store_new(&store, backend, &error));
    basin_graph *graph = basin_graph_new();
    basin_ham *ham = graph ? build(graph) : NULL;
    if (!ham) return 1;

    double letter[LETTERS * PIXELS];
    for (int n = 0; n < LETTERS; n++) letter_draw(letter + n * PIXELS, n);
    write_weights(store, letter);
    questions q;
    ask(&q, letter);

    basin_expr mask[LAYERS];
    basin_tensor x[LAYERS];
    for (int l = 0; l < LAYERS; l++) {
        basin_shape shape = BASIN_SHAPE(QUESTIONS, width[l]);
        mask[l] = basin_input(graph, (const char *[]){"mask0", "mask1", "mask2"}[l], shape);
        x[l] = basin_tensor_borrow(q.x[l], BASIN_F64, shape);
    }
    basin_ham_spec spec = {.steps = 200, .dt = 0.2, .mask = mask};
    basin_stop stop = {.tolerance = 1e-3};
    basin_descent *descent;
    basin_descent_result result;
    must(basin_ham_descent_new(&descent, ham, store, QUESTIONS, &spec, &stop, &error));
    for (int l = 0; l < LAYERS; l++) {
        basin_tensor m = basin_tensor_borrow(q.mask[l], BASIN_F64, x[l].shape);
        must(basin_plan_write(basin_descent_plan(descent), mask[l], &m, &error));
    }
    must(basin_descent_run(descent, &result, x, &error));

    printf("pictures as given (? is unknown):\n");
    letter_print(q.x[PICTURE], QUESTIONS);
    print_answers(ham, &result);
    printf("energy %.1f, then %.1f after %d steps\n", basin_descent_total(&result, 0),
           basin_descent_total(&result, result.steps), result.steps);

    basin_descent_result_free(&result);
    basin_descent_free(descent);
    basin_ham_free(ham);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return 0;
}
