/* Detectors that read what edges carry: a signal that only the energy of pairs can use, one that
 * only totals show; the full graph, samples and streams agree; files and tables in another order
 * give the same scores; what cannot be is an error. */
#include <math.h>
#include <string.h>

#include "support/folder.h"
#include "tasks/nodes/fraud.h"
#include "tasks/nodes/net.h"
#include "tasks/nodes/network/network.h"

enum { NODES = 400, DEGREE = 6 };

/* Of each node's neighbours two sent large amounts. It is anomalous where those two are of one kind
 * (in `hidden`), or (else) where the amounts themselves are large. */
static void write_tables(FILE *nodes, FILE *edges, bool hidden, bool moved) {
    static double x[NODES], large[NODES];
    for (int i = 0; i < NODES; i++)
        x[i] = basin_random_normal_at(3, 1, (uint64_t)i), large[i] = coin(3, 4, i) < 0.3 ? 9 : 0;
    fputs(moved ? "kind,amount,src,dst,time\n" : "src,dst,time,kind,amount\n", edges);
    fputs("id,x,label\n", nodes);
    for (int i = 0; i < NODES; i++) {
        double sum = 0;
        for (int k = 0; k < DEGREE; k++) {
            int j = (int)(coin(3, 2, i * DEGREE + k) * NODES);
            double amount =
                (k < 2 && hidden ? 1000 : 1) + coin(3, 3, i * DEGREE + k) + (hidden ? 0 : large[i]);
            if (k < 2) sum += x[j];
            const char *kind = k % 2 ? "card" : "wire";
            if (moved)
                fprintf(edges, "%s,%g,%d,%d,%d\n", kind, amount, j, i, k);
            else
                fprintf(edges, "%d,%d,%d,%s,%g\n", j, i, k, kind, amount);
        }
        fprintf(nodes, "%d,%g,%d\n", i, x[i], hidden ? sum > 0 : large[i] > 0);
    }
}

static basin_network *open_tables(void **state, bool hidden, bool moved,
                                  const basin_network_options *options) {
    const char *const file[] = {folder_path(state, "nodes.csv"), folder_path(state, "edges.csv")};
    FILE *nodes = fopen(file[0], "w"), *edges = fopen(file[1], "w");
    basin_network *network;
    assert_true(nodes && edges);
    write_tables(nodes, edges, hidden, moved);
    fclose(nodes);
    fclose(edges);
    assert_ok(basin_network_open(&network, file, 2, options, &failure));
    return network;
}

static const basin_network_options one_way = {.directed = true};

static double auroc(const basin_network *network, const uint8_t *part,
                    const basin_nodes_settings *settings, const basin_training_options *training) {
    basin_nodes_model *model = fraud_train(network, part, settings, training);
    double reached =
        basin_score_get(basin_nodes_get_info(model)->reached[BASIN_SPLIT_TEST], "auroc");
    basin_nodes_close(model);
    return reached;
}

/* Who sent much matters: the means over neighbours do not tell, nor do totals. */
TEST(the_energy_reads_facts) {
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, true, false, &one_way));
    double reached[3];
    static const char *const use[] = {"none", "features", "energy"};
    s.settings.epochs = 60, s.settings.hops = 0, s.settings.evaluate = 10;
    s.settings.directions = "come";
    for (int i = 0; i < 3; i++) {
        s.settings.facts = use[i];
        reached[i] = auroc(s.network, s.part, &s.settings, &s.training);
    }
    if (!(reached[2] > reached[0] + 0.08 && reached[2] > reached[1] + 0.08))
        fail_msg("AUROC %g without facts, %g with totals, %g in the energy", reached[0], reached[1],
                 reached[2]);
}

TEST(totals_are_features) {
    needs_xgboost();
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, false, false, NULL));
    s.settings.epochs = 20, s.settings.hops = 0, s.settings.facts = "none",
    s.settings.evaluate = 10;
    double without = auroc(s.network, s.part, &s.settings, &s.training);
    s.settings.facts = "features";
    double with = auroc(s.network, s.part, &s.settings, &s.training);
    s.settings.trees = 1, s.settings.epochs = 1;
    double trees = auroc(s.network, s.part, &s.settings, &s.training);
    if (!(without < 0.65 && with > 0.9 && trees > 0.9))
        fail_msg("AUROC %g without totals, %g with them, %g of trees", without, with, trees);
}

/* The full graph, a stream, the same from a file, and from a table in another order. */
static void scores_agree(void **state, const basin_network_options *options, bool loops) {
    char *path = folder_path(state, "model.safetensors");
    static double full[NODES], other[NODES];
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, true, false, options));
    basin_nodes_model *back;
    s.settings.epochs = 4, s.settings.blocks = 2, s.settings.steps = 2, s.settings.facts = "both";
    s.settings.members = 2, s.settings.self_loops = loops ? "add" : "drop";
    BASIN_AT_EXIT(free_model)
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training);
    assert_ok(basin_nodes_predict(full, model, s.network, NULL, &failure));
    basin_nodes_predict_options least = {.stream = true};
    assert_ok(basin_nodes_predict(other, model, s.network, &least, &failure));
    for (int i = 0; i < NODES; i++) assert_true(fabs(full[i] - other[i]) < 2e-5);
    assert_ok(basin_nodes_write(path, model, &failure));
    assert_ok(basin_nodes_open(&back, "anomaly", path, s.training.backend, &failure));
    basin_network_options as = {.schema = basin_nodes_get_info(back)->schema, .unite = true};
    BASIN_AT_EXIT(free_network) basin_network *moved = open_tables(state, true, true, &as);
    assert_ok(basin_nodes_predict(other, back, moved, NULL, &failure));
    assert_memory_equal(full, other, sizeof full);
    basin_network_forget_facts(moved);
    assert_int_equal(basin_nodes_predict(other, back, moved, NULL, &failure), BASIN_BAD_VALUE);
    basin_nodes_close(back);
}

TEST(directed_scores_agree) { scores_agree(state, &one_way, false); }

TEST(undirected_scores_agree) { scores_agree(state, NULL, true); }

TEST(relations_agree) {
    const basin_network_options by_kind = {.table = &(basin_table_options){.edge_type = "kind"},
                                           .unite = true};
    scores_agree(state, &by_kind, false);
}

/* Samples learn what the full graph teaches. */
TEST(samples_carry_facts) {
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, true, false, &one_way));
    double reached[2];
    s.settings.hops = 0, s.settings.fraction = 1, s.settings.batch = 64, s.settings.epochs = 15;
    s.settings.sampling = "neighbours", s.settings.evaluate = 5, s.settings.directions = "come";
    for (int with = 0; with < 2; with++) {
        s.settings.facts = with ? "energy" : "none";
        reached[with] = auroc(s.network, s.part, &s.settings, &s.training);
    }
    if (!(reached[1] > reached[0] + 0.04))
        fail_msg("AUROC %g without facts, %g with them", reached[0], reached[1]);
}

/* Both lists of an explanation without rest: what features, facts and neighbours are told to move.
 */
static void assert_adds_up(const basin_nodes_explanation *why) {
    double sum = 0, through = why->own, moved = why->logit - why->typical_logit - why->rest;
    for (int64_t i = 0; i < why->features; i++) sum += why->feature[i].share;
    for (int64_t i = 0; i < why->neighbours; i++) through += why->neighbour[i].push;
    double room = 0.05 * fmax(fabs(moved), 1);
    if (!(fabs(sum - moved) < room && fabs(through - moved) < room))
        fail_msg("node %lld: moved by %g; features add up to %g, neighbours to %g",
                 (long long)why->node, moved, sum, through);
}

/* Reasons know the columns; of the network's own they still add up. */
TEST(explanations_go_on) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    BASIN_AT_EXIT(free_network) basin_network *network = open_tables(state, true, false, &one_way);
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    basin_nodes_explanation *why;
    settings.epochs = 5, settings.facts = "both";
    for (int trees = 0; trees < 2; trees++) {
        settings.trees = trees;
        basin_nodes_model *model = fraud_train(network, part, &settings, &training);
        assert_ok(basin_nodes_explain(&why, model, network, &(int64_t){3}, 1, NULL, &failure));
        double shares = 0;
        for (int64_t i = 0; i < why->neighbours; i++) shares += why->neighbour[i].share;
        assert_adds_up(why);
        assert_true(trees || why->has_attention); /* trees may take the network's whole share */
        if (why->has_attention) assert_true(fabs(shares - 1) < 1e-3);
        int64_t facts = 0;
        for (int64_t i = 0; i < why->features; i++) facts += why->feature[i].fact >= 0;
        assert_true(facts > 0);
        basin_nodes_explanation_free(why);
        basin_nodes_close(model);
    }
}

/* Facts that bias the scores of pairs have their part, with the totals of edges as values: of a
 * node that got large amounts, amounts. */
TEST(facts_in_the_energy_are_reasons) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    for (int directed = 0; directed < 2; directed++) {
        basin_network *network = open_tables(state, true, false, directed ? &one_way : NULL);
        uint8_t *part = fraud_split(network);
        double amounts = 0, others = 0;
        settings.epochs = 60, settings.hops = 0, settings.evaluate = 10, settings.facts = "energy";
        settings.self_loops = directed ? "drop" : "add";
        basin_nodes_model *model = fraud_train(network, part, &settings, &training);
        for (int64_t node = 0; node < 8; node++) {
            basin_nodes_explanation *why;
            assert_ok(
                basin_nodes_explain(&why, model, network, &(int64_t){node}, 1, NULL, &failure));
            assert_adds_up(why);
            for (int64_t i = 0; i < why->features; i++) {
                const basin_nodes_feature *f = &why->feature[i];
                char name[BASIN_MAX_REASON];
                if (f->fact < 0) continue;
                basin_nodes_reason_name(name, network, f);
                bool amount = strstr(name, "amount") != NULL;
                *(amount ? &amounts : &others) += fabs(f->share);
                assert_true((f->hop == 0) == (isfinite(f->value) != 0));
                if (!f->hop && !strncmp(name, "amount sum of edges that come", 29))
                    assert_true(f->value > 2000 && f->typical > 1000 && f->typical < 4000);
            }
            basin_nodes_explanation_free(why);
        }
        if (!(amounts > 0.5 && amounts > others))
            fail_msg("amounts move %g, other facts %g", amounts, others);
        basin_nodes_close(model);
        basin_network_close(network);
        free(part);
    }
}

static const basin_nodes_drift_column *drift_of(const basin_nodes_drift *drift, const char *name) {
    for (int64_t i = 0; i < drift->columns; i++)
        if (!strcmp(drift->column[i].name, name)) return &drift->column[i];
    fail_msg("no drift of '%s'", name);
    return NULL;
}

/* Amounts that grow a hundredfold show, before and after the model was a file; counts do not. */
TEST(drift_sees_edges) {
    char *path = folder_path(state, "m.safetensors");
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, true, false, &one_way));
    basin_nodes_drift *drift;
    basin_nodes_model *back;
    s.settings.epochs = 2, s.settings.facts = "both";
    BASIN_AT_EXIT(free_model)
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training);
    assert_ok(basin_nodes_drift_new(&drift, model, s.network, 0, &failure));
    assert_int_equal(drift_of(drift, "amount mean of edges")->level, 0);
    assert_int_equal(drift->large + drift->some, 0);
    basin_nodes_drift_free(drift);
    assert_ok(basin_nodes_write(path, model, &failure));
    assert_ok(basin_nodes_open(&back, "anomaly", path, s.training.backend, &failure));
    for (int64_t e = 0; e < s.network->relation[0].edges; e++)
        for (int i = 4; i < 6; i++)
            s.network->relation[0].fact[e * s.network->facts.count + i] *= 100; /* sum and last */
    assert_ok(basin_nodes_drift_new(&drift, back, s.network, 0, &failure));
    const basin_nodes_drift_column *amount = drift_of(drift, "amount mean of edges");
    assert_int_equal(amount->level, 2);
    assert_true(amount->now > 50 * amount->then && amount->then > 0.5);
    assert_int_equal(drift_of(drift, "count of edges")->level, 0);
    assert_int_equal(drift_of(drift, "kind=card of edges")->level, 0);
    assert_int_equal(drift->large, 3);
    basin_nodes_drift_free(drift);
    basin_nodes_close(back);
}

TEST(names_of_columns) {
    BASIN_AT_EXIT(free_network) basin_network *network = open_tables(state, true, false, &one_way);
    static const char *const wanted[] = {
        "count",       "time age",    "kind=card",        "kind=wire",     "amount sum",
        "amount mean", "amount last", "time first age",   "most in a day", "most in a week",
        "amount max",  "amount min",  "amount deviation", "amount round"};
    enum { BASIC = 7, EXTREMES = 7 };
    char text[BASIN_FACT_TEXT], name[BASIN_FACT_TEXT];
    assert_int_equal(basin_facts_width(&network->facts), BASIC);
    assert_int_equal(basin_node_facts_width(network, 1, true), 2 * (BASIC + EXTREMES));
    for (int i = 0; i < 2 * (BASIC + EXTREMES); i++) {
        int rest = i - 2 * BASIC;
        const char *own = wanted[rest < 0 ? i % BASIC : BASIC + rest % EXTREMES];
        bool comes = rest < 0 ? i < BASIC : rest < EXTREMES;
        basin_nodes_fact_name(text, network, i);
        snprintf(name, sizeof name, "%s of edges that %s", own, comes ? "come" : "go");
        assert_string_equal(text, name);
    }
    float column[BASIC];
    /* Two rows, the last at time 4 of 5: count, last, first, kinds, sum, last, extremes. */
    const float fact[] = {2, 4, 3, 1, 1, 6, 5, 5, 1, 26, 2};
    basin_facts_columns(column, &network->facts, fact);
    const double value[] = {log1p(2), log1p(1), 0.5, 0.5, log1p(6), log1p(3), log1p(5)};
    for (int i = 0; i < BASIC; i++) {
        double own = i == 2 || i == 3 ? value[i] : expm1(value[i]);
        assert_true(fabs((double)column[i] - value[i]) < 1e-6);
        assert_true(fabs(basin_facts_value(network, i, value[i]) - own) < 1e-9);
    }
}

/* Payees count as payers do: in explanations, degrees and totals. */
TEST(edges_are_seen_both_ways) {
    needs_xgboost();
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, true, false, &one_way));
    const basin_relation *come = &s.network->relation[0];
    const int64_t node = 7;
    basin_nodes_explanation *why;
    int64_t payers = 0, payees = 0, seen = 0;
    char text[BASIN_MAX_REASON], all[8192] = "";
    s.settings.epochs = 2, s.settings.trees = 4;
    s.model = fraud_train(s.network, s.part, &s.settings, &s.training);
    assert_string_equal(s.model->settings.directions, "both");
    assert_ok(basin_nodes_explain(&why, s.model, s.network, &node, 1, NULL, &failure));
    for (int64_t i = 0; i < s.network->nodes; i++) {
        if (i == node) continue;
        bool pays = basin_relation_find(come, node, (int32_t)i) >= 0;
        bool paid = basin_relation_find(come, i, (int32_t)node) >= 0, there = false;
        for (int64_t k = 0; k < why->neighbours; k++) there |= why->neighbour[k].node == i;
        assert_int_equal(there, pays || paid);
        payers += pays, payees += paid, seen += there;
    }
    assert_true(payers > 0 && payees > 0 && seen > payers && seen > payees);
    for (int64_t i = 0; i < why->features; i++) {
        size_t at = strlen(all);
        const basin_nodes_feature *f = &why->feature[i];
        if (f->hop) continue;
        snprintf(all + at, sizeof all - at, "%s %g\n", basin_nodes_reason_name(text, s.network, f),
                 f->value);
    }
    static const char *const degree[] = {"number of neighbours",     "number of in-neighbours",
                                         "number of out-neighbours", "count of edges that come",
                                         "count of edges that go",   "count of edges"};
    const int64_t count[] = {seen, payers, payees};
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof text, "%s %lld\n", degree[i], i < 3 ? (long long)count[i] : 0);
        if (i >= 3) text[strlen(degree[i]) + 1] = 0;
        if (!strstr(all, text)) fail_msg("'%s' is not in\n%s", text, all);
    }
    basin_nodes_explanation_free(why);
}

/* What a person would compute of a node's rows: two payers, one of them twice, and days apart. */
TEST(extremes_of_edges) {
    static const char edges[] = "source,target,amount,time\n"
                                "b,a,1500,10\nc,a,10.25,20\nb,a,30.5,12\na,c,7,25\n";
    basin_csv_source source = {.path = "edges", .data = edges, .size = sizeof edges - 1};
    BASIN_AT_EXIT(free_network) basin_network *network = NULL;
    const double amount[] = {1500, 10.25, 30.5}, mean = (1500 + 10.25 + 30.5) / 3;
    double squares = 0;
    const int first = 0;
    (void)state;
    for (int i = 0; i < 3; i++) squares += (amount[i] - mean) * (amount[i] - mean) / 3;
    assert_ok(basin_network_csv_read(&network, &source, 1, &one_way, &failure));
    assert_ok(basin_network_finish(network, &one_way, &failure));
    int64_t width = basin_node_facts_width(network, 1, true), a = basin_network_find(network, "a");
    /* Those that come: max, min, deviation, round; first age, a day, a week. */
    const double expected[] = {1500, 10.25, sqrt(squares), 1.0 / 3, 25 - 10, 1, 1};
    const char *const name[] = {"amount max",    "amount min",     "amount deviation",
                                "amount round",  "time first age", "most in a day",
                                "most in a week"};
    BASIN_FREE_AT_EXIT float *x = calloc((size_t)(width * network->nodes), sizeof *x);
    assert_non_null(x);
    assert_ok(basin_node_facts_fill(x, width, network, &first, 1, true, &failure));
    for (int i = 0; i < 7; i++) {
        char text[BASIN_FACT_TEXT], full[BASIN_FACT_TEXT];
        int64_t column = 0;
        snprintf(full, sizeof full, "%s of edges that come", name[i]);
        do basin_nodes_fact_name(text, network, column);
        while (strcmp(text, full) != 0 && ++column < width);
        assert_true(column < width);
        double found = basin_facts_value(network, column, (double)x[a * width + column]);
        if (fabs(found - expected[i]) > 1e-4 * (1 + expected[i]))
            fail_msg("%s is %g, expected %g", full, found, expected[i]);
    }
}

/* As a graph in parts has them. */
TEST(facts_may_be_forgotten_where_none_are_read) {
    BASIN_AT_EXIT(fraud_scene_free)
    fraud_scene s = fraud_scene_of(open_tables(state, true, false, &one_way));
    double *before = calloc((size_t)s.network->nodes, sizeof *before), *after;
    assert_non_null(before);
    after = calloc((size_t)s.network->nodes, sizeof *after);
    assert_non_null(after);
    s.settings.epochs = 2, s.settings.facts = "none";
    basin_nodes_model *deaf = fraud_train(s.network, s.part, &s.settings, &s.training);
    s.settings.facts = "both";
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training);
    assert_ok(basin_nodes_predict(before, deaf, s.network, NULL, &failure));
    basin_network_forget_facts(s.network);
    assert_ok(basin_nodes_predict(after, deaf, s.network, NULL, &failure));
    assert_memory_equal(before, after, (size_t)s.network->nodes * sizeof *before);
    assert_failure(basin_nodes_predict(after, model, s.network, NULL, &failure), BASIN_BAD_VALUE,
                   "edges carry 0 facts; the detector was trained with 11");
    basin_nodes_close(deaf);
    basin_nodes_close(model);
    free(before), free(after);
}

TEST(refuses_what_cannot_be) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(100, 5, 1, false));
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    s.settings.facts = "both";
    assert_failure(
        fraud_try(&model, &outcome, s.network, s.part, &s.settings, &s.training, &failure),
        BASIN_BAD_VALUE, "facts is both and its edges carry nothing");
    s.settings.form = "published";
    assert_failure(
        fraud_try(&model, &outcome, s.network, s.part, &s.settings, &s.training, &failure),
        BASIN_BAD_VALUE, "facts both with form published");
}

int main(void) { return tests_run(folder_new, folder_remove); }
