/* Explanations: what features and neighbours move a logit by, which must add up to its distance
 * from a typical node's. */
#include <math.h>
#include <string.h>

#include "tasks/nodes/fraud.h"
#include "tasks/nodes/net.h"

/* ---- sums ---- */

static fraud_scene scene_new(int64_t nodes, int relations, bool directed, bool teacher) {
    needs_xgboost();
    fraud_scene s = fraud_scene_of(fraud_new(nodes, 3, relations, directed));
    s.settings.members = 1, s.settings.trees = 2, s.settings.labels = true,
    s.settings.teacher = teacher, s.settings.calibrate = "isotonic", s.settings.epochs = 20;
    s.model = fraud_train(s.network, s.part, &s.settings, &s.training);
    return s;
}

static basin_nodes_explanation *explained(const fraud_scene *s, int64_t node) {
    basin_nodes_explanation *e;
    assert_ok(basin_nodes_explain(&e, s->model, s->network, &node, 1, NULL, &failure));
    return e;
}

/* Both lists tell the whole distance, each node's by itself. */
static void assert_adds_up(const basin_nodes_explanation *e, double within) {
    double features = e->rest, neighbours = e->own + e->rest;
    double distance = e->logit - e->typical_logit;
    for (int64_t i = 0; i < e->features; i++) features += e->feature[i].share;
    for (int64_t i = 0; i < e->neighbours; i++) neighbours += e->neighbour[i].push;
    assert_float_equal(features, neighbours, 1e-6 * (1 + fabs(distance)));
    assert_true(fabs(features + e->missed - distance) < 1e-9 * (1 + fabs(distance)));
    double told = distance - e->rest; /* what was integrated */
    assert_true(fabs(features - distance) < within * fmax(fabs(told), 1));
}

TEST(lists_add_up_for_any_share) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(200, 1, false, true);
    for (int k = 0; k < 3; k++) { /* trees alone, both, the network alone */
        double probability[200];
        s.model->ensemble.share = 0.5 * k;
        assert_ok(basin_nodes_predict(probability, s.model, s.network, NULL, &failure));
        for (int64_t node = 0; node < 40; node += 13) {
            basin_nodes_explanation *e = explained(&s, node);
            assert_adds_up(e, k ? 0.03 : 1e-9);
            assert_float_equal(e->probability, probability[node], 1e-9);
            double back = basin_nodes_calibrated(s.model, 1 / (1 + exp(-e->logit)));
            assert_float_equal(back, e->probability, 1e-6);
            if (k == 0) assert_float_equal(e->rest, 0, 1e-5); /* trees see all that they see */
            basin_nodes_explanation_free(e);
        }
    }
}

TEST(lists_add_up_on_directed_graphs_and_relations) {
    for (int k = 0; k < 2; k++) {
        fraud_scene s = scene_new(200, k == 1 ? 2 : 1, k == 0, false);
        s.model->ensemble.share = 0.7;
        basin_nodes_explanation *e = explained(&s, 5);
        assert_adds_up(e, 0.03);
        assert_true(e->has_attention);
        basin_nodes_explanation_free(e);
        fraud_scene_free(&s);
    }
}

static void sharpen(const fraud_scene *s, const char *name) {
    const basin_tensor *w = basin_bundle_find(s->model->member[0], name);
    for (int64_t i = 0; i < basin_shape_count(w->shape); i++) ((float *)w->data)[i] *= 1000;
}

/* On the way from a typical node, attention that is hard turns at single points; a layer norm as
 * large as this turns everywhere, and what is missed is said. */
TEST(lists_add_up_where_the_logit_turns_quickly) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(200, 1, false, false);
    s.model->ensemble.share = 1;
    for (int k = 0; k < 2; k++) {
        sharpen(&s, k ? "gamma" : "wq");
        for (int64_t node = 0; node < 40; node += 8) {
            basin_nodes_explanation *e = explained(&s, node);
            assert_adds_up(e, k ? INFINITY : 0.03);
            basin_nodes_explanation_free(e);
        }
    }
}

/* A small graph is looked at as a whole: nothing comes from further away. */
TEST(nothing_is_left_where_all_is_near) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(60, 1, false, false);
    s.model->ensemble.share = 1;
    basin_nodes_explanation *e = explained(&s, 3);
    assert_true(fabs(e->rest) < 0.02 * fmax(1, fabs(e->logit - e->typical_logit)));
    basin_nodes_explanation_free(e);
}

/* ---- many at once ---- */

TEST(many_are_told_as_one_is) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(300, 1, false, false);
    const int64_t node[] = {7, 3, 250};
    basin_nodes_explanation *many[3], *one;
    s.model->ensemble.share = 0.5;
    assert_ok(basin_nodes_explain(
        many, s.model, s.network, node, 3,
        &(basin_nodes_explain_options){.probability = NULL, .brief = true}, &failure));
    for (int i = 0; i < 3; i++) {
        one = explained(&s, node[i]);
        assert_int_equal(many[i]->node, node[i]);
        assert_int_equal(many[i]->rank, one->rank);
        assert_false(many[i]->has_attention);
        assert_true(one->has_attention && one->has_energy);
        assert_float_equal(many[i]->own, one->own, 0.03);
        assert_float_equal(many[i]->rest, one->rest, 1e-3);
        assert_adds_up(many[i], 0.03);
        basin_nodes_explanation_free(one);
        basin_nodes_explanation_free(many[i]);
    }
    const int64_t wrong[] = {1, 300};
    assert_failure(
        basin_nodes_explain(many, s.model, s.network, wrong, 2,
                            &(basin_nodes_explain_options){.probability = NULL, .brief = true},
                            &failure),
        BASIN_BAD_VALUE, "node 300, expected 0 to 299");
}

/* Values are those of the table, means those over neighbours. */
TEST(values_are_the_tables) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(200, 1, false, false);
    const basin_relation *r = &s.network->relation[0];
    double mean = 0, count = (double)(r->row[10] - r->row[9]), degree = 0;
    for (int64_t i = r->row[9]; i < r->row[10]; i++) {
        mean += (double)s.network->feature[r->col[i] * FRAUD_FEATURES + 2] / count;
        degree = count;
    }
    basin_nodes_explanation *e = explained(&s, 9);
    for (int64_t i = 0; i < e->features; i++) {
        const basin_nodes_feature *f = &e->feature[i];
        if (f->column == 2 && f->hop == 0)
            assert_float_equal(f->value, s.network->feature[9 * FRAUD_FEATURES + 2], 1e-6);
        if (f->column == 2 && f->hop == 1) assert_float_equal(f->value, mean, 1e-5);
        if (f->column == FRAUD_FEATURES && f->hop == 0) assert_float_equal(f->value, degree, 1e-3);
    }
    basin_nodes_explanation_free(e);
}
