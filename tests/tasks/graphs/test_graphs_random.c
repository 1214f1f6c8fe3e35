/* Random pairs of nodes beside the edges: which are drawn, what is known of them, predictions over
 * several draws. */
#include <math.h>

#include "base/pairs.h"
#include "basin/plan.h"
#include "support/folder.h"
#include "tasks/graphs/graph_world.h"
#include "tasks/graphs/set/tiny_tu.h"

enum { GRAPHS = 12, WALKS = 3, EPOCHS = 40 };

typedef struct scene {
    basin_graphset set;
    basin_graphs_input input;
    basin_backend *backend;
    basin_graphs_model *model;
    int64_t *all;
} scene;

static basin_graphs_settings settings_of(int64_t pairs) {
    basin_graphs_settings s = world_settings();
    s.edge_walks = WALKS, s.random_pairs = pairs, s.adjacency = "bias";
    return s;
}

/* A set as a model with `pairs` random pairs per node sees it, and its first weights. */
static void scene_open(scene *s, basin_graphs_target target, int64_t pairs, int threads) {
    basin_graphs_settings settings = settings_of(pairs);
    int64_t *all = s->all = basin_graphs_range(0, GRAPHS);
    s->input = (basin_graphs_input){0};
    world_new(&s->set, target, GRAPHS, 4, NULL);
    assert_ok(basin_graphs_input_begin(&s->input, &settings, &s->set, 0, GRAPHS, &failure));
    assert_ok(basin_graphs_input_place(&s->input, &settings, 0, GRAPHS, &failure));
    assert_ok(basin_backend_open(&s->backend, &(basin_compute){.threads = threads}, &failure));
    assert_ok(basin_graphs_model_new(&s->model, &settings, &s->input.set, all, GRAPHS, s->backend,
                                     &failure));
    assert_ok(basin_params_init(&s->model->params, s->model->store, 3, &failure));
}

static void scene_close(scene *s) {
    basin_graphs_close(s->model);
    basin_backend_close(s->backend);
    basin_graphs_input_free(&s->input);
    basin_graphset_free(&s->set);
    free(s->all);
}

static void fill(basin_graphset_batch *b, const scene *s, const int64_t *graph, int64_t count,
                 bool training, uint64_t epoch) {
    assert_ok(basin_graphset_batch_fill(b, &s->input.set, &s->model->encoding, &s->input.positions,
                                        graph, count, training, 5, epoch, &failure));
}

static bool has_edge(const basin_graphset *set, int64_t g, int32_t a, int32_t b) {
    for (int64_t e = set->edge_start[g]; e < set->edge_start[g + 1]; e++)
        if (set->edge[2 * e] == a && set->edge[2 * e + 1] == b) return true;
    return false;
}

static int64_t drawn_of(const basin_graphset_batch *b, int64_t pair) {
    return b->edge_feature[(pair + 1) * b->edge_features - 1] == 1;
}

static int64_t count_drawn(const basin_graphset_batch *b) {
    int64_t count = 0;
    for (int64_t i = 0; i < b->pairs.pairs; i++) count += drawn_of(b, i);
    return count;
}

/* Both ways, ascending, marked, only where there is no edge; all edges stay, and nodes are what
 * they are without drawn pairs. */
TEST(beside_the_edges) {
    BASIN_AT_EXIT(scene_close) scene s, plain;
    BASIN_AT_EXIT(basin_graphset_batch_free) basin_graphset_batch b = {0}, without = {0};
    scene_open(&s, BASIN_GRAPHS_CLASSES, 2, 1);
    scene_open(&plain, BASIN_GRAPHS_CLASSES, 0, 1);
    int64_t F = plain.model->encoding.features;
    fill(&without, &plain, plain.all, GRAPHS, true, 1);
    assert_int_equal(s.model->encoding.features, F);
    assert_int_equal(s.model->encoding.edge_features, plain.model->encoding.edge_features + 1);
    double drawn = 0, expected = 0;
    for (int64_t g = 0; g < GRAPHS; g++) expected += basin_graphset_drawn(&s.input.set, g) * EPOCHS;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        fill(&b, &s, s.all, GRAPHS, true, (uint64_t)epoch);
        int64_t plain_pair = 0;
        drawn += (double)count_drawn(&b);
        assert_int_equal(b.pairs.pairs, without.pairs.pairs + count_drawn(&b));
        assert_memory_equal(b.feature, without.feature, (size_t)(b.nodes * F) * sizeof(float));
        for (int64_t g = 0; g < GRAPHS; g++) {
            int32_t first = b.first[g], end = (int32_t)(g + 1 < GRAPHS ? b.first[g + 1] : b.tokens);
            for (int32_t q = first; q < end; q++)
                for (int64_t i = b.pairs.row[q]; i < b.pairs.row[q + 1]; i++) {
                    int32_t k = b.pairs.key[i];
                    int64_t back = basin_pairs_find(&b.pairs, k, q);
                    assert_true(back >= 0 && drawn_of(&b, back) == drawn_of(&b, i));
                    assert_true(i == b.pairs.row[q] || b.pairs.key[i - 1] < k);
                    bool edge = q == first || k == first ||
                                has_edge(&s.set, g, q - first - 1, k - first - 1);
                    assert_true(k >= first && k < end && edge == !drawn_of(&b, i));
                    const float *own = b.edge_feature + i * b.edge_features;
                    int64_t P = without.edge_features;
                    if (edge) /* is what it is without drawn pairs */
                        assert_memory_equal(own, without.edge_feature + plain_pair++ * P,
                                            (size_t)P * sizeof *own);
                }
        }
    }
    assert_true(expected > 20 * EPOCHS && fabs(drawn / expected - 1) < 0.1);
    assert_memory_equal(s.input.positions.value, plain.input.positions.value,
                        (size_t)(s.input.positions.tokens * s.input.positions.width) * 4);
    int64_t print[2][GRAPHS];
    for (int i = 0; i < 2; i++)
        assert_ok(
            basin_graphset_prints(print[i], i ? &s.input.set : &s.set, s.all, GRAPHS, &failure));
    assert_memory_equal(print[0], print[1], sizeof print[0]);
}

/* Nodes have the sums of their edges, whose features are as they are without drawn pairs. */
TEST_WITH(sums_of_edges, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    basin_random_pairs *r = NULL;
    basin_graphset_encoding e;
    int64_t features = 0;
    basin_encoding_spec spec = {.edge_sums = true, .degrees = 4};
    float feature[2][200] = {{0}};
    const int64_t all[] = {0, 1, 2};
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_ok(basin_random_pairs_new(&r, &set, 1, 0, 1, 0, 3, &failure));
    for (int i = 0; i < 2; i++) {
        set.random = i ? r : NULL;
        assert_ok(basin_graphset_encoding_new(&e, &set, all, 3, &spec, &failure));
        if (!i) features = e.features;
        assert_true(e.edge_sums && e.drawn == i && e.features == features && features < 50);
        basin_graphset_features(feature[i], &set, &e, 1);
        basin_graphset_encoding_free(&e);
    }
    assert_memory_equal(feature[0], feature[1], sizeof feature[0]);
    basin_random_pairs_free(r);
}

/* The same pairs of a graph whatever else is in the batch; others in another epoch or draw. In use
 * they are the same for one graph at two places. */
TEST(drawn_anew) {
    BASIN_AT_EXIT(scene_close) scene s;
    BASIN_AT_EXIT(basin_graphset_batch_free) basin_graphset_batch b = {0}, own = {0}, next = {0};
    scene_open(&s, BASIN_GRAPHS_CLASSES, 1, 1);
    for (int training = 0; training < 2; training++) {
        int64_t last = GRAPHS - 1;
        fill(&b, &s, s.all, GRAPHS, training, 1);
        fill(&own, &s, &last, 1, training, 1);
        int64_t first = b.first[last], from = b.pairs.row[first];
        assert_int_equal(own.pairs.pairs, b.pairs.pairs - from);
        for (int64_t i = 0; i < own.pairs.pairs; i++)
            assert_int_equal(own.pairs.key[i], b.pairs.key[from + i] - first);
        fill(&next, &s, s.all, GRAPHS, training, 2);
        bool same = next.pairs.pairs == b.pairs.pairs;
        for (int64_t i = 0; same && i < b.pairs.pairs; i++)
            same = b.pairs.key[i] == next.pairs.key[i];
        assert_false(same);
    }
    int64_t big = 2, place = 1;
    for (int64_t g = big + 1; g < GRAPHS; g++)
        if (basin_graphset_listed(&s.input.set, g) > basin_graphset_listed(&s.input.set, big))
            big = g;
    basin_graphset copy = s.input.set; /* with that graph at another place */
    basin_random_pairs pairs = *copy.random;
    basin_positions none = {0};
    copy.node_start += big - place, copy.edge_start += big - place, pairs.start += big - place;
    copy.random = &pairs;
    assert_ok(basin_graphset_batch_fill(&next, &copy, &s.model->encoding, &none, &place, 1, false,
                                        5, 1, &failure));
    fill(&own, &s, &big, 1, false, 1);
    assert_true(count_drawn(&own) > 0);
    assert_int_equal(own.pairs.pairs, next.pairs.pairs);
    assert_memory_equal(own.pairs.key, next.pairs.key, (size_t)own.pairs.pairs * sizeof(int32_t));
}

/* Walks between nodes of small and large graphs are P^t E / d, by powers of P. */
TEST(walks_between_nodes) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    basin_random_pairs *r = NULL;
    enum { MOST = 120, MEAN = 4, WIDE = MOST * MOST };
    static double p[WIDE], one[WIDE], next[WIDE], degree[MOST];
    block_graphs(&set, 5);
    assert_ok(basin_random_pairs_new(&r, &set, MEAN, WALKS, 1, 1, 4, &failure));
    assert_int_equal(r->start[1], 0);
    for (int64_t g = 1; g < 5; g++) {
        int64_t n = basin_graphset_nodes(&set, g), listed = r->start[g + 1] - r->start[g];
        double edges = (double)(set.edge_start[g + 1] - set.edge_start[g]);
        bool all = n <= 64;
        assert_true(all ? listed == n * (n - 1) - (int64_t)edges : listed > 2 * MEAN * n);
        assert_true(all || listed <= 4 * MEAN * n + 2 * n);
        for (int64_t i = 0; i < n * n; i++) one[i] = has_edge(&set, g, (int)(i / n), (int)(i % n));
        for (int64_t i = 0; i < n; i++) {
            degree[i] = 0;
            for (int64_t j = 0; j < n; j++) degree[i] += one[i * n + j];
            for (int64_t j = 0; j < n; j++) one[i * n + j] /= degree[i];
        }
        memcpy(p, one, sizeof p);
        for (int t = 0; t < WALKS; t++) {
            for (int64_t i = 0; i < n * n; i++) {
                next[i] = 0;
                for (int64_t k = 0; k < n; k++) next[i] += p[i / n * n + k] * one[k * n + i % n];
            }
            memcpy(p, next, sizeof p);
            for (int64_t e = r->start[g]; e < r->start[g + 1]; e++) {
                const int32_t *ends = r->pair + 2 * e;
                double walk = p[ends[0] * n + ends[1]] * edges / degree[ends[1]];
                assert_true(fabs((double)r->walk[e * WALKS + t] - walk) < 1e-5 * (1 + walk));
                assert_true(e == r->start[g] || ends[0] > ends[-2] || ends[1] > ends[-1]);
                assert_true(ends[0] != ends[1] && one[ends[0] * n + ends[1]] == 0);
            }
        }
    }
    basin_random_pairs_free(r);
}

/* The walks of drawn pairs have mean 0 and deviation 1; nothing else is known of these. */
TEST(standardised) {
    BASIN_AT_EXIT(scene_close) scene s;
    BASIN_AT_EXIT(basin_graphset_batch_free) basin_graphset_batch b = {0};
    scene_open(&s, BASIN_GRAPHS_CLASSES, 100, 1); /* all pairs */
    fill(&b, &s, s.all, GRAPHS, true, 0);
    double sum[WALKS] = {0}, squares[WALKS] = {0}, count = (double)count_drawn(&b);
    assert_int_equal((int64_t)count, s.input.random->start[GRAPHS]);
    for (int64_t i = 0; i < b.pairs.pairs; i++) {
        const float *at = b.edge_feature + i * b.edge_features;
        if (!drawn_of(&b, i)) continue;
        for (int c = 0; c < WALKS; c++)
            sum[c] += (double)at[c], squares[c] += (double)(at[c] * at[c]);
        for (int64_t c = WALKS; c < b.edge_features - 1; c++) assert_true(at[c] == 0);
    }
    for (int c = 0; c < WALKS; c++)
        assert_true(fabs(sum[c] / count) < 1e-4 && fabs(squares[c] / count - 1) < 1e-3);
}

/* Outputs of graphs over `draws` (0: those of the settings), or of draw `only`; free them. */
static float *outputs(scene *s, const int64_t *graph, int64_t count, int64_t draws, int64_t only) {
    basin_graphs_plans plans;
    float *output;
    basin_graphs_plans_begin(&plans, s->model, &s->input.set, graph, count, NULL);
    plans.draws = draws;
    if (only < 0) {
        assert_ok(basin_graphs_outputs(&output, &plans, &s->input, graph, count, &failure));
    } else {
        output = calloc((size_t)(count * s->model->outputs), sizeof *output);
        plans.draw = only;
        assert_ok(basin_graphs_plans_score(&plans, output, &s->input, graph, count, &failure));
    }
    basin_graphs_plans_free(&plans);
    return output;
}

/* Means of values, and of probabilities. */
TEST(averages_draws) {
    for (int target = 0; target < 3; target += 2) {
        BASIN_AT_EXIT(scene_close) scene s;
        double sum[2 * GRAPHS] = {0}, moved = 0;
        scene_open(&s, (basin_graphs_target)target, 2, 1);
        s.model->settings.random_draws = 3;
        int64_t C = s.model->outputs;
        BASIN_FREE_AT_EXIT float *mean = outputs(&s, s.all, GRAPHS, 0, -1);
        BASIN_FREE_AT_EXIT float *two = outputs(&s, s.all, GRAPHS, 2, -1);
        for (int draw = 0; draw < 3; draw++) {
            BASIN_FREE_AT_EXIT float *one = outputs(&s, s.all, GRAPHS, 0, draw);
            basin_graphs_likelihoods(one, one, GRAPHS, s.model);
            for (int64_t i = 0; i < GRAPHS * C; i++) sum[i] += (double)one[i] / 3;
        }
        for (int64_t i = 0; i < GRAPHS * C; i++) {
            double found = target ? (double)mean[i] : exp((double)mean[i]);
            assert_true(fabs(found - sum[i]) < 1e-5 * (1 + fabs(sum[i])));
            moved = fmax(moved, fabs((double)(mean[i] - two[i])));
        }
        assert_true(moved > 1e-5);
    }
}

/* The same predictions in any batch, by any number of threads. */
TEST(predicts_the_same) {
    BASIN_AT_EXIT(scene_close) scene s, threads;
    scene_open(&s, BASIN_GRAPHS_VALUES, 2, 1);
    scene_open(&threads, BASIN_GRAPHS_VALUES, 2, 3);
    BASIN_FREE_AT_EXIT float *all = outputs(&s, s.all, GRAPHS, 0, -1);
    BASIN_FREE_AT_EXIT float *again = outputs(&threads, s.all, GRAPHS, 0, -1);
    assert_memory_equal(all, again, GRAPHS * sizeof *all);
    for (int64_t g = 0; g < GRAPHS; g++) {
        BASIN_FREE_AT_EXIT float *one = outputs(&s, &g, 1, 0, -1);
        assert_true(fabsf(*one - all[g]) < 1e-6f * (1 + fabsf(all[g])));
    }
}

/* Plans have room for the pairs that are drawn, not for all that could be. */
TEST(plans_for_drawn_pairs) {
    BASIN_AT_EXIT(basin_graphs_plans_free) basin_graphs_plans plans;
    BASIN_AT_EXIT(scene_close) scene s;
    BASIN_AT_EXIT(basin_graphset_batch_free) basin_graphset_batch b = {0};
    double drawn = 0, edges = 0;
    scene_open(&s, BASIN_GRAPHS_CLASSES, 1, 1);
    s.model->settings.batch = GRAPHS;
    for (int64_t g = 0; g < GRAPHS; g++) {
        drawn += basin_graphset_drawn(&s.input.set, g);
        edges += (double)basin_graphset_pairs(&s.input.set, g);
    }
    basin_graphs_plans_begin(&plans, s.model, &s.input.set, s.all, GRAPHS, NULL);
    assert_true(fabs(plans.need[1].mean - edges - drawn) < 1);
}

/* A model learns, and its file keeps the setting. */
TEST_WITH(model_files, folder_new, folder_remove) {
    world_scene s;
    basin_graphs_model *again;
    basin_graphs_settings settings = settings_of(2);
    char path[300];
    float first[2 * GRAPHS], second[2 * GRAPHS];
    settings.random_draws = 3;
    world_train(&s, BASIN_GRAPHS_CLASSES, GRAPHS, &settings);
    basin_graphs_data data = {.set = &s.set};
    snprintf(path, sizeof path, "%s/model.safetensors", (const char *)*state);
    assert_ok(basin_graphs_write(path, s.model, &failure));
    assert_ok(basin_graphs_open(&again, path, s.backend, &failure));
    assert_true(again->encoding.drawn && again->settings.random_pairs == 2);
    assert_int_equal(again->settings.random_draws, 3);
    assert_ok(world_predict(first, NULL, s.model, &data, &failure));
    assert_ok(world_predict(second, NULL, again, &data, &failure));
    assert_memory_equal(first, second, sizeof first);
    again->settings.random_draws = 1;
    assert_ok(world_predict(second, NULL, again, &data, &failure));
    assert_memory_not_equal(first, second, sizeof first);
    again->settings.random_pairs = 0;
    assert_failure(world_predict(second, NULL, again, &data, &failure), BASIN_BAD_VALUE,
                   "random_pairs is 0; the model was made with random pairs");
    basin_graphs_close(again);
    world_close(&s);
}

/* For every draw a descent goes down the energy of the edges and the drawn pairs. */
TEST(goes_down_the_energy) {
    enum { STEPS = 6, TERMS = 3 };
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES, 2, 1);
    basin_graph_net_config config = basin_graphs_model_config(s.model, NULL);
    for (uint64_t draw = 0; draw < 3; draw++) {
        BASIN_AT_EXIT(basin_graphset_batch_free) basin_graphset_batch b = {0};
        basin_graph_net net;
        basin_graph_net_batch batch;
        basin_params params;
        basin_plan *plan;
        basin_expr trace[(STEPS + 1) * TERMS], output[STEPS + 2], x;
        basin_graph *graph = basin_graph_new();
        fill(&b, &s, s.all, GRAPHS, false, draw);
        assert_true(count_drawn(&b) > 0);
        basin_params_begin(&params, graph);
        assert_ok(basin_graph_net_declare(&net, &params, &config));
        basin_graph_net_inputs(&batch, &net, graph, b.graphs, b.nodes, b.pairs.pairs);
        x = basin_input(graph, "x", BASIN_SHAPE(b.tokens, config.block.dim));
        basin_block_graph_inputs extra = {.facts = batch.edge_features,
                                          .features = batch.edge_features,
                                          .strength = batch.strength,
                                          .owner = batch.owner,
                                          .share = batch.share};
        basin_block_bound bound = {
            .block = &net.block[0], .pattern = &batch.pattern, .graph = &extra};
        basin_energy energy = basin_block_energy(&bound);
        assert_int_equal(energy.terms, TERMS);
        basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1};
        output[STEPS + 1] = basin_descend(&energy, x, &spec, trace);
        for (int t = 0; t <= STEPS; t++) {
            output[t] = basin_sum_all(trace[t * TERMS]);
            for (int k = 1; k < TERMS; k++)
                output[t] = basin_add(output[t], basin_sum_all(trace[t * TERMS + k]));
        }
        basin_plan_spec all = {.output = output, .outputs = STEPS + 2};
        assert_ok(basin_plan_new(&plan, s.model->store, &all, &failure));
        BASIN_FREE_AT_EXIT float *start = calloc((size_t)(b.tokens * config.block.dim), 4);
        for (int64_t i = 0; i < b.tokens * config.block.dim; i++)
            start[i] = basin_random_uniform_at(9, draw, (uint64_t)i) - 0.5f;
        const struct {
            basin_expr to;
            void *from;
        } input[] = {
            {x, start}, {batch.edge_features, b.edge_feature}, {batch.strength, b.strength}};
        for (int i = 0; i < 3; i++) {
            basin_tensor t =
                basin_tensor_borrow(input[i].from, BASIN_F32, basin_expr_shape(input[i].to));
            assert_ok(basin_plan_write(plan, input[i].to, &t, &failure));
        }
        assert_ok(basin_pairs_write(plan, &batch.pattern, &b.pairs, &failure));
        assert_ok(basin_plan_run(plan, &failure));
        double before = INFINITY;
        for (int t = 0; t <= STEPS; t++) {
            double now;
            assert_ok(basin_plan_read_scalar(&now, plan, output[t], &failure));
            if (!(now < before)) fail_msg("step %d: %.9g after %.9g", t, now, before);
            before = now;
        }
        basin_plan_free(plan);
        basin_params_free(&params);
        basin_graph_free(graph);
    }
}
