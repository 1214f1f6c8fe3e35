/* Reasons; see reasons.h. */
#include "cli/reasons/reasons.h"

#include <stdio.h>

#include "cli/table.h"

const char *basin_story_label(const basin_story *s, int64_t node, char text[BASIN_NODE_TEXT]) {
    int32_t label = s->network->label ? s->network->label[node] : -1;
    if (label < 0) return "-";
    if (s->classes) return basin_network_class(s->network, label, text);
    return label ? "anomalous" : "normal";
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- tables ---- */

static bool print_neighbours(const basin_story *s) {
    const basin_anomaly_explanation *e = s->e;
    char id[BASIN_NODE_TEXT], label[BASIN_NODE_TEXT];
    int64_t count = least(e->neighbours, s->neighbours);
    double all = 0;
    for (int64_t i = 0; i < e->neighbours; i++) all += e->neighbour[i].push;
    printf(
        "of the logit's distance of %+.3f from a typical node's, %+.3f comes from the node itself, "
        "%+.3f through neighbours, %+.3f from further away\n",
        e->logit - e->typical_logit, e->own, all, e->rest);
    printf("neighbours that move its logit most (of %lld):\n", (long long)e->neighbours);
    if (!count) return true;
    static const char *const heading[] = {"node",     "attention", "returned",
                                          "moves by", "score",     "label"};
    basin_table rows = {.layout = e->has_attention ? "lrrrrl" : "lrrl"};
    for (int i = 0; i < 6; i++)
        if (e->has_attention || (i != 1 && i != 2)) basin_table_add(&rows, "%s", heading[i]);
    for (int64_t i = 0; i < count; i++) {
        const basin_anomaly_neighbour *n = &e->neighbour[i];
        basin_table_add(&rows, "%s", basin_network_id(s->network, n->node, id));
        if (e->has_attention) basin_table_add(&rows, "%.4f", n->share);
        if (e->has_attention) basin_table_add(&rows, "%.4f", n->returned);
        basin_table_add(&rows, "%+.4f", n->push);
        basin_table_add(&rows, "%.4f", n->probability);
        basin_table_add(&rows, "%s", basin_story_label(s, n->node, label));
    }
    return basin_table_print(&rows, stdout, 2);
}

static bool print_features(const basin_story *s) {
    const basin_anomaly_explanation *e = s->e;
    char text[BASIN_REASON_TEXT], value[BASIN_VALUE_TEXT];
    int64_t count = least(e->features, s->features);
    printf("features that move its logit from %.3f (a typical node's, here) to %.3f:\n",
           e->typical_logit, e->logit);
    if (!count) return true;
    static const char *const heading[] = {"feature", "moves by", "value", "typical"};
    basin_table rows = {.layout = "lrrr"};
    for (int i = 0; i < 4; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int64_t i = 0; i < count; i++) {
        const basin_anomaly_feature *f = &e->feature[i];
        basin_table_add(&rows, "%s", basin_anomaly_reason_name(text, s->network, f));
        basin_table_add(&rows, "%+.4f", f->share);
        basin_table_add(&rows, "%s",
                        basin_schema_value(value, s->schema, f->column, f->value, f->hop));
        basin_table_add(&rows, "%s",
                        basin_schema_value(value, s->schema, f->column, f->typical, f->hop));
    }
    return basin_table_print(&rows, stdout, 2);
}

bool basin_story_print(const basin_story *story) {
    bool neighbours = print_neighbours(story), features = print_features(story);
    return neighbours && features;
}

/* ---- JSON ---- */

static void put_neighbours(basin_json *json, const basin_story *s) {
    const basin_anomaly_explanation *e = s->e;
    char id[BASIN_NODE_TEXT], label[BASIN_NODE_TEXT];
    basin_json_array(json, "neighbours");
    for (int64_t i = 0; i < least(e->neighbours, s->neighbours); i++) {
        const basin_anomaly_neighbour *n = &e->neighbour[i];
        basin_json_object(json, NULL);
        basin_json_text(json, "node", basin_network_id(s->network, n->node, id));
        basin_json_number(json, "moves", n->push);
        if (e->has_attention) {
            basin_json_number(json, "attention", n->share);
            basin_json_number(json, "returned", n->returned);
        }
        basin_json_number(json, "probability", n->probability);
        basin_json_text(json, "label", basin_story_label(s, n->node, label));
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void put_features(basin_json *json, const basin_story *s) {
    char name[BASIN_REASON_TEXT], text[BASIN_VALUE_TEXT];
    basin_json_array(json, "features");
    for (int64_t i = 0; i < least(s->e->features, s->features); i++) {
        const basin_anomaly_feature *f = &s->e->feature[i];
        basin_json_object(json, NULL);
        basin_json_text(json, "feature", basin_anomaly_reason_name(name, s->network, f));
        basin_json_integer(json, "column", f->column);
        basin_json_integer(json, "hop", f->hop);
        basin_json_number(json, "moves", f->share);
        basin_json_number(json, "value", f->value);
        basin_json_number(json, "typical", f->typical);
        basin_json_text(json, "shown",
                        basin_schema_value(text, s->schema, f->column, f->value, f->hop));
        basin_json_end(json);
    }
    basin_json_end(json);
}

void basin_story_put(basin_json *json, const basin_story *story) {
    basin_json_number(json, "logit", story->e->logit);
    basin_json_number(json, "typical_logit", story->e->typical_logit);
    basin_json_number(json, "own", story->e->own);
    basin_json_number(json, "rest", story->e->rest);
    put_neighbours(json, story);
    put_features(json, story);
}
