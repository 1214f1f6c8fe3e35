/* The order of the rows of a table has no effect: the same accounts and transfers, shuffled, are
 * split, trained on, scored, cut, explained and added to with the same bits. */
#include <math.h>
#include <string.h>

#include "tasks/nodes/fraud.h"
#include "tasks/nodes/near.h"
#include "tasks/nodes/network/parts/parts.h"

enum { ACCOUNTS = 150, TRANSFERS = 450, LINE = 96 };

typedef struct rows {
    char head[LINE], line[TRANSFERS][LINE];
    int count;
} rows;

static const char *const kind[] = {"wire", "cash", "card"};

/* Amounts of cents, whose sums depend on their order; equal times; gaps; three relations. */
static void make_rows(rows *nodes, rows *edges, int first, int last, int transfers, bool related) {
    nodes->count = edges->count = 0;
    sprintf(nodes->head, "id,age,city,income,label\n");
    sprintf(edges->head, "source,target,amount,time,kind%s\n", related ? ",relation" : "");
    for (int i = first; i < last; i++) {
        char *line = nodes->line[nodes->count++];
        line += sprintf(line, "acct-%d,%.3f,%s,", i * 7, 20 + 40 * coin(3, 1, i), kind[i % 3]);
        if (i % 11) line += sprintf(line, "%.3f", basin_random_normal_at(3, 2, (uint64_t)i));
        sprintf(line, ",%d\n", i % 6 == 0);
    }
    for (int e = first; e < first + transfers; e++) {
        int a = e % last, b = (int)(coin(5, 3, e / 3) * last);
        char *line = edges->line[edges->count++];
        line += sprintf(line, "acct-%d,acct-%d,%.2f,%d,%s", a % 40 * 7, b * 7,
                        1 + 100 * coin(5, 4, e) + 900 * (a % 6 == 0), 1 + (int)(9 * coin(5, 5, e)),
                        kind[(int)(3 * coin(5, 6, e))]);
        sprintf(line, related ? ",%s\n" : "\n", kind[(e + 2) % 3]);
    }
}

/* Rows as a table, shuffled where `seed` is not 0. */
static char *print_rows(const rows *r, uint64_t seed) {
    char *text = calloc((size_t)r->count + 1, LINE), *to = text;
    int64_t order[TRANSFERS];
    basin_random random = basin_random_start(seed, 1, 0);
    for (int64_t i = 0; i < r->count; i++) order[i] = i;
    if (seed) basin_random_shuffle(order, (size_t)r->count, &random);
    to += sprintf(to, "%s", r->head);
    for (int i = 0; i < r->count; i++) to += sprintf(to, "%s", r->line[order[i]]);
    return text;
}

static basin_network *read_rows(const rows *nodes, const rows *edges, uint64_t seed,
                                const basin_network_options *options) {
    basin_network *network;
    char *text[2] = {print_rows(nodes, seed), print_rows(edges, seed ? seed + 1 : 0)};
    const char *path[] = {"accounts", "transfers"};
    basin_table_options table = {.text = (const char *const *)text};
    basin_network_options how = *options;
    how.table = &table, how.missing = BASIN_MISSING_MEAN, how.unite = true;
    assert_ok(basin_network_open(&network, path, 2, &how, &failure));
    free(text[0]), free(text[1]);
    return network;
}

static double *predict(const basin_nodes_model *model, const basin_network *network) {
    double *p = calloc((size_t)network->nodes, sizeof *p);
    assert_ok(basin_nodes_predict(p, model, network, NULL, &failure));
    return p;
}

/* Numbers of nodes of two networks, compared by id. */
static void assert_same_by_id(const double *x, const basin_network *a, const double *y,
                              const basin_network *b) {
    char text[BASIN_MAX_NODE];
    assert_int_equal(a->nodes, b->nodes);
    for (int64_t i = 0; i < a->nodes; i++) {
        const char *id = basin_network_id(a, i, text);
        double other = y[basin_network_find(b, id)];
        if (x[i] != other) fail_msg("node %s has %.17g, shuffled %.17g", id, x[i], other);
    }
}

static void assert_same_parts(const fraud_scene *a, const fraud_scene *b) {
    char text[BASIN_MAX_NODE];
    for (int64_t i = 0; i < a->network->nodes; i++)
        assert_int_equal(
            a->part[i],
            b->part[basin_network_find(b->network, basin_network_id(a->network, i, text))]);
}

/* Every ninth account and the new ones, after additions that come in another order. */
static void check_live(const fraud_scene *a, const basin_network *shuffled, bool related) {
    rows *more = calloc(2, sizeof *more);
    basin_nodes_live *live[2];
    basin_nodes_live_options options = {.cap_nodes = 4000, .cap_edges = 1000000};
    make_rows(&more[0], &more[1], ACCOUNTS, ACCOUNTS + 12, 40, related);
    sprintf(more[0].line[3], "acct-21b,30,wire,1,\n"); /* among those that are there */
    for (int k = 0; k < 2; k++) {
        char *nodes = print_rows(&more[0], k ? 5 : 0), *edges = print_rows(&more[1], k ? 6 : 0);
        assert_ok(basin_nodes_live_open(&live[k], a->model, k ? shuffled : a->network, &options,
                                        &failure));
        assert_ok(basin_nodes_live_add(live[k], nodes, edges, &failure));
        free(nodes), free(edges);
    }
    basin_network_options added = {.base = shuffled};
    basin_network *whole = read_rows(&more[0], &more[1], 9, &added);
    double *p = predict(a->model, whole);
    for (int64_t i = 0; i < whole->nodes; i += i < ACCOUNTS - 9 ? 9 : 1) {
        char text[BASIN_MAX_NODE], name[64];
        const char *id = basin_network_id(whole, i, text);
        basin_nodes_live_score s[2];
        for (int k = 0; k < 2; k++)
            assert_ok(basin_nodes_live_predict(&s[k], live[k], &id, 1, &failure));
        assert_true(!s[0].capped && s[0].probability == p[i] && s[1].probability == p[i]);
        if (i < ACCOUNTS) assert_int_equal(s[1].node, i);
        assert_string_equal(basin_nodes_live_id(live[1], s[1].node, name, sizeof name), id);
    }
    for (int k = 0; k < 2; k++) basin_nodes_live_close(live[k]);
    basin_network_close(whole);
    free(p), free(more);
}

static void check_explained(const fraud_scene *a, const basin_network *shuffled) {
    basin_nodes_explanation *why[2];
    char text[2][BASIN_MAX_NODE];
    for (int k = 0; k < 2; k++) {
        const basin_network *n = k ? shuffled : a->network;
        int64_t node = basin_network_find(n, "acct-42");
        assert_ok(basin_nodes_explain(&why[k], a->model, n, &node, 1, NULL, &failure));
        assert_int_equal(why[k]->node, node);
    }
    assert_true(why[0]->probability == why[1]->probability && why[0]->logit == why[1]->logit);
    assert_int_equal(why[0]->neighbours, why[1]->neighbours);
    for (int64_t i = 0; i < why[0]->neighbours; i++) {
        assert_true(why[0]->neighbour[i].push == why[1]->neighbour[i].push);
        assert_string_equal(basin_network_id(a->network, why[0]->neighbour[i].node, text[0]),
                            basin_network_id(shuffled, why[1]->neighbour[i].node, text[1]));
    }
    for (int64_t i = 0; i < why[0]->features; i++)
        assert_true(why[0]->feature[i].share == why[1]->feature[i].share);
    for (int k = 0; k < 2; k++) basin_nodes_explanation_free(why[k]);
}

/* A model without facts, on a graph in three parts. */
static void check_parts(const fraud_scene *a, basin_network *shuffled) {
    double *p[2];
    basin_parts *parts[2];
    for (int k = 0; k < 2; k++) {
        basin_cut_spec spec = {.parts = 3};
        assert_ok(basin_parts_cut(&parts[k], k ? shuffled : a->network, &spec, NULL, &failure));
        assert_ok(basin_parts_name_nodes(parts[k], &failure));
        p[k] = predict(a->model, basin_parts_face(parts[k]));
    }
    assert_same_by_id(p[0], basin_parts_face(parts[0]), p[1], basin_parts_face(parts[1]));
    for (int k = 0; k < 2; k++) basin_parts_close(parts[k]), free(p[k]);
}

static void check(bool related, bool directed, int64_t trees, const char *facts,
                  const char *sampling) {
    rows *table = calloc(2, sizeof *table);
    basin_network_options options = {.directed = directed};
    fraud_scene scene[2];
    make_rows(&table[0], &table[1], 0, ACCOUNTS, TRANSFERS, related);
    for (int k = 0; k < 2; k++) {
        fraud_scene *s = &scene[k];
        *s = fraud_scene_of(read_rows(&table[0], &table[1], k ? 7 : 0, &options));
        if (!strcmp(facts, "none")) basin_network_forget_facts(s->network);
        s->settings.epochs = 6, s->settings.hops = 2, s->settings.facts = facts;
        s->settings.trees = trees, s->settings.labels = s->settings.teacher = trees > 0;
        s->settings.sampling = sampling, s->settings.fanout = 2;
        s->settings.calibrate = trees ? "auto" : "none";
        s->model = fraud_train(s->network, s->part, &s->settings, &s->training);
    }
    assert_null(scene[0].network->order);
    assert_non_null(scene[1].network->order);
    assert_same_parts(&scene[0], &scene[1]);
    assert_same_members(scene[0].model, scene[1].model);
    assert_same_by_id(scene[0].model->score, scene[0].network, scene[1].model->score,
                      scene[1].network);
    double *x = predict(scene[0].model, scene[0].network);
    double *y = predict(scene[0].model, scene[1].network);
    assert_same_by_id(x, scene[0].network, y, scene[1].network);
    check_explained(&scene[0], scene[1].network);
    if (!strcmp(facts, "none"))
        check_parts(&scene[0], scene[1].network);
    else
        check_live(&scene[0], scene[1].network, related);
    free(x), free(y), free(table);
    for (int k = 0; k < 2; k++) fraud_scene_free(&scene[k]);
}

static void shuffled_tables_give_the_same_bits(void **state) {
    (void)state;
    check(false, false, 0, "both", "full");
    check(false, false, 0, "both", "neighbours");
    check(true, false, 0, "features", "neighbours");
    check(false, true, 0, "both", "subgraph");
    check(false, false, 0, "none", "full");
    if (!basin_trees_available(NULL)) check(false, false, 4, "both", "neighbours");
}

static void ids_are_ordered_as_people_do(void **state) {
    static const char *const id[] = {"", "1", "2", "10", "010", "a", "a2", "a10", "a10b", "b"};
    (void)state;
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 10; k++) {
            int found = basin_id_compare(id[i], id[k]);
            bool zeros = (i == 3 && k == 4) || (i == 4 && k == 3); /* one before the other */
            assert_true(zeros ? found != 0 : (found > 0) - (found < 0) == (i > k) - (i < k));
        }
    assert_int_equal(basin_id_compare(id[3], id[4]) > 0, basin_id_compare(id[4], id[3]) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffled_tables_give_the_same_bits),
        cmocka_unit_test(ids_are_ordered_as_people_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
