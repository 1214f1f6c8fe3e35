/* basin anomaly explain and report, basin node explain, and what the commands of nodes share; see
 * nodes.h. */
#include "cli/nodes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sort.h"
#include "io/file.h"
#include "view/svg.h"

/* ---- models and networks ---- */

basin_status basin_goal_check(const char *goal, basin_error *error) {
    double none;
    return goal ? basin_nodes_threshold_for(&none, NULL, goal, NULL, 0, error) : BASIN_OK;
}

bool basin_args_classes(basin_args *args) {
    args->network.unite = true;
    return args->network.classes = !strncmp(args->command->name, "node", 4);
}

basin_status basin_nodes_model_open(basin_nodes_use *use, basin_args *args, const char *model,
                                    basin_error *error) {
    bool classes = basin_args_classes(args);
    BASIN_TRY(basin_session_open(args, error));
    use->work = (basin_nodes_work){.watch = &args->watch.watch,
                                   .memory = (size_t)(args->memory * (double)(1 << 30))};
    if (!model) return BASIN_OK;
    BASIN_TRY(
        basin_nodes_open(&use->model, classes ? "node" : "anomaly", model, args->compute, error));
    use->info = basin_nodes_get_info(use->model);
    return BASIN_OK;
}

basin_status basin_nodes_use_open(basin_nodes_use *use, basin_args *args, const char *model,
                                  int first, basin_error *error) {
    BASIN_TRY(basin_nodes_model_open(use, args, model, error));
    return basin_args_network(&use->network, args, use->info ? use->info->schema : NULL,
                              args->operands - first, args->operand + first, error);
}

basin_status basin_nodes_probabilities(double *probability, const basin_nodes_use *use,
                                       const basin_network *network, const basin_args *args,
                                       uint64_t seed, basin_error *error) {
    bool stopped;
    if (use->model) return basin_nodes_score(probability, use->model, network, &use->work, error);
    BASIN_TRY(basin_nodes_unsupervised(probability, &stopped, network, seed, args->compute,
                                       &use->work, error));
    return stopped ? basin_fail(error, BASIN_BAD_VALUE, "stopped; nothing is kept") : BASIN_OK;
}

void basin_nodes_use_close(basin_nodes_use *use) {
    basin_network_free(use->network);
    basin_nodes_close(use->model);
}

/* ---- printing ---- */

void basin_record_reliability(basin_record *r, const basin_reliability *reliability,
                              const char *title) {
    basin_record_section(r, "reliability");
    basin_record_number(r, ".ece", "%g", reliability->ece);
    basin_record_table(r, "bins", title);
    for (int k = 0; k < BASIN_RELIABILITY_BINS; k++) {
        if (!reliability->bin[k].count) continue;
        basin_record_row(r);
        basin_record_number(r, "from|probability from", "%.1f", (double)k / BASIN_RELIABILITY_BINS);
        basin_record_integer(r, "nodes", reliability->bin[k].count);
        basin_record_number(r, "predicted", "%.3f", reliability->bin[k].predicted);
        basin_record_number(r, "observed", "%.3f", reliability->bin[k].observed);
    }
    basin_record_end(r);
    basin_record_number(r, "|expected calibration error", "%.4f", reliability->ece);
    basin_record_end(r);
}

const char *basin_story_label(const basin_story *s, int64_t node, char text[BASIN_NODE_TEXT]) {
    int32_t label = s->network->label ? s->network->label[node] : -1;
    if (label < 0) return "-";
    if (s->classes) return basin_network_class(s->network, label, text);
    return label ? "anomalous" : "normal";
}

static void put_neighbours(basin_record *r, const basin_story *s) {
    const basin_nodes_explanation *e = s->e;
    char id[BASIN_NODE_TEXT], label[BASIN_NODE_TEXT], title[100];
    snprintf(title, sizeof title,
             "neighbours that move its logit most (of %lld):", (long long)e->neighbours);
    basin_record_table(r, "neighbours", title);
    for (int64_t i = 0; i < basin_int_min(e->neighbours, s->neighbours); i++) {
        const basin_nodes_neighbour *n = &e->neighbour[i];
        basin_record_row(r);
        basin_record_text(r, "node", basin_network_id(s->network, n->node, id));
        basin_record_number(r, "moves|moves by", "%+.4f", n->push);
        if (e->has_attention) {
            basin_record_number(r, "attention", "%.4f", n->share);
            basin_record_number(r, "returned", "%.4f", n->returned);
        }
        basin_record_number(r, "probability|score", "%.4f", n->probability);
        basin_record_text(r, "label", basin_story_label(s, n->node, label));
    }
    basin_record_end(r);
}

static void put_features(basin_record *r, const basin_story *s) {
    char name[BASIN_REASON_TEXT], value[BASIN_VALUE_TEXT], title[200];
    snprintf(title, sizeof title,
             "features that move its logit from %.3f (a typical node's, here) to %.3f:",
             s->e->typical_logit, s->e->logit);
    basin_record_table(r, "features", title);
    for (int64_t i = 0; i < basin_int_min(s->e->features, s->features); i++) {
        const basin_nodes_feature *f = &s->e->feature[i];
        basin_record_row(r);
        basin_record_text(r, "feature", basin_nodes_reason_name(name, s->network, f));
        basin_record_integer(r, ".column", f->column);
        basin_record_integer(r, ".hop", f->hop);
        basin_record_number(r, "moves|moves by", "%+.4f", f->share);
        basin_record_number(r, ".value", "%g", f->value);
        basin_record_number(r, ".typical", "%g", f->typical);
        basin_record_text(r, "shown|value",
                          basin_schema_value(value, s->schema, f->column, f->value, f->hop));
        basin_record_text(r, "|typical",
                          basin_schema_value(value, s->schema, f->column, f->typical, f->hop));
    }
    basin_record_end(r);
}

void basin_record_story(basin_record *r, const basin_story *story) {
    const basin_nodes_explanation *e = story->e;
    double through = 0;
    for (int64_t i = 0; i < e->neighbours; i++) through += e->neighbour[i].push;
    basin_record_number(r, ".logit", "%g", e->logit);
    basin_record_number(r, ".typical_logit", "%g", e->typical_logit);
    basin_record_number(r, ".own", "%g", e->own);
    basin_record_number(r, ".rest", "%g", e->rest);
    basin_record_note(r,
                      "of the logit's distance of %+.3f from a typical node's, %+.3f comes from "
                      "the node itself, %+.3f through neighbours, %+.3f from further away",
                      e->logit - e->typical_logit, e->own, through, e->rest);
    put_neighbours(r, story);
    put_features(r, story);
}

/* ---- explain ---- */

#define EXPLAIN_OPTIONS                                                                            \
    BASIN_INTEGER(neighbours, "neighbours", "N", 0, 1000000, "Neighbours to name.",                \
                  .initial = 10),                                                                  \
        BASIN_INTEGER(features, "features", "N", 0, 1000000, "Features to name.", .initial = 10),  \
        BASIN_OPTIONS_NETWORK, BASIN_OPTION_JSON, BASIN_WORK_OPTIONS, BASIN_OPTIONS_END

static const basin_option anomaly_table[] = {
    BASIN_TEXT(svg, 0, "svg", "FILE", "Draw the neighbourhood there.", .writes = true),
    EXPLAIN_OPTIONS,
};

static const basin_option node_table[] = {
    BASIN_TEXT(class_name, 0, "class", "NAME",
               "The class in question; without it the predicted one."),
    EXPLAIN_OPTIONS,
};

typedef struct explaining {
    basin_args *o;
    basin_nodes_use use;
    basin_nodes_explanation *e;
    int64_t number; /* of the class; -1: of a detector */
    basin_story story;
} explaining;

static void put_energy(basin_record *r, const basin_nodes_explanation *e) {
    if (!e->has_energy) return;
    basin_record_object(r, "energy");
    basin_record_number(r, "total", "%.4g", e->energy);
    basin_record_number(r, "attention", "%.4g", e->attention);
    basin_record_number(r, "hopfield|memories", "%.4g", e->hopfield);
    basin_record_number(r, "mean|mean of all nodes", "%.4g", e->energy_mean);
    basin_record_number(r, "deviation", "%.4g", e->energy_deviation);
    basin_record_number(r, "below|share of nodes below", "%.3f", e->energy_below);
    basin_record_end(r);
}

static void put_explanation(basin_record *r, const void *context) {
    const explaining *x = context;
    const basin_nodes_explanation *e = x->e;
    char id[BASIN_NODE_TEXT], label[BASIN_NODE_TEXT];
    basin_record_text(r, "node", basin_network_id(x->use.network, e->node, id));
    if (x->number >= 0) basin_record_text(r, "class", basin_nodes_class(x->use.model, x->number));
    basin_record_number(r, "probability", "%.4f", e->probability);
    if (x->number < 0) {
        basin_record_number(r, "threshold", "%.4f", e->threshold);
        basin_record_integer(r, "rank", e->rank);
    }
    basin_record_text(r, "|label", basin_story_label(&x->story, e->node, label));
    basin_record_flag(r, ".without_attention", e->nearby);
    if (e->nearby)
        basin_record_note(r, "(the graph does not fit into the memory allowed as one plan: "
                             "energies and attention are not known)");
    put_energy(r, e);
    basin_record_story(r, &x->story);
}

/* ---- the picture ---- */

enum { RAYS = 20 };

/* The neighbour of the n-th most attention; equal ones in their order. */
static const basin_nodes_neighbour *most_attended(const basin_nodes_explanation *e, int n) {
    for (int64_t i = 0; i < e->neighbours; i++) {
        int before = 0;
        for (int64_t k = 0; k < e->neighbours && before <= n; k++)
            before += e->neighbour[k].share > e->neighbour[i].share ||
                      (e->neighbour[k].share == e->neighbour[i].share && k < i);
        if (before == n) return &e->neighbour[i];
    }
    return e->neighbour;
}

/* Why there is no picture. */
static const char *why_none(const basin_nodes_explanation *e, const basin_nodes_model *model) {
    if (e->nearby) return "does not fit into the memory allowed";
    return basin_nodes_get_info(model)->share > 0
               ? "this model does not have"
               : "has no share in this detector, whose trees decide alone";
}

/* The node and the neighbours that it attends to most, the node first. */
static basin_status draw(const basin_story *s, const basin_nodes_model *model, const char *path,
                         basin_error *error) {
    const basin_nodes_explanation *e = s->e;
    int rays = (int)basin_int_min(RAYS, e->neighbours);
    char id[RAYS + 1][BASIN_NODE_TEXT], title[200], subtitle[200], legend[120];
    const char *name[RAYS + 1] = {basin_network_id(s->network, e->node, id[0])};
    double score[RAYS + 1] = {e->probability}, share[RAYS];
    int32_t edge[2 * RAYS] = {0};
    if (!e->has_attention)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: not drawn, since the picture shows attention, which %s; the "
                          "neighbours are listed",
                          path, why_none(e, model));
    for (int i = 0; i < rays; i++) {
        const basin_nodes_neighbour *n = most_attended(e, i);
        name[i + 1] = basin_network_id(s->network, n->node, id[i + 1]);
        score[i + 1] = n->probability, share[i] = n->share, edge[2 * i + 1] = i + 1;
    }
    snprintf(title, sizeof title, "Node %.80s: score %.3f, rank %lld of %lld", name[0],
             e->probability, (long long)e->rank, (long long)s->network->nodes);
    snprintf(subtitle, sizeof subtitle, "energy %.4g, higher than that of %.1f %% of the nodes",
             e->energy, 100 * e->energy_below);
    snprintf(legend, sizeof legend, "score; width: share of its attention; %lld more not shown",
             (long long)(e->neighbours - rays));
    basin_svg_graph_of star = {.title = title,
                               .subtitle = e->has_energy ? subtitle : NULL,
                               .legend = legend,
                               .nodes = rays + 1,
                               .edges = rays,
                               .edge = edge,
                               .node = score,
                               .strength = share,
                               .name = name};
    return basin_svg_graph(path, &star, error);
}

/* ---- running ---- */

/* The number of the class of that name. */
static basin_status find_class(explaining *x, basin_error *error) {
    int64_t C = x->use.info->classes;
    for (x->number = 0; x->number < C; x->number++)
        if (!strcmp(basin_nodes_class(x->use.model, x->number), x->o->class_name)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "--class '%.60s' is not one of the model's %lld, the first of which is '%s'",
                      x->o->class_name, (long long)C, basin_nodes_class(x->use.model, 0));
}

/* The class of the highest probability. */
static basin_status predicted_class(explaining *x, int64_t node, basin_error *error) {
    int64_t C = x->use.info->classes;
    BASIN_FREE_AT_EXIT double *p = NULL;
    BASIN_TRY(BASIN_NEW(&p, x->use.network->nodes * C, "probabilities", error));
    BASIN_TRY(basin_nodes_score(p, x->use.model, x->use.network, &x->use.work, error));
    x->number = 0;
    for (int64_t c = 1; c < C; c++)
        if (p[node * C + c] > p[node * C + x->number]) x->number = c;
    return BASIN_OK;
}

static basin_status find_node(int64_t *node, const basin_network *network, const char *id,
                              basin_error *error) {
    *node = basin_network_find(network, id);
    if (*node >= 0 && *node < network->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: no node '%s' among %lld", network->path, id,
                      (long long)network->nodes);
}

static void explaining_free(explaining *x) {
    basin_nodes_explanation_free(x->e);
    basin_nodes_use_close(&x->use);
}

static basin_status run_explain(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(explaining_free) explaining x = {.o = o, .number = -1};
    bool classes = basin_args_classes(o);
    int64_t node;
    basin_nodes_use *u = &x.use;
    BASIN_TRY(basin_nodes_use_open(u, o, o->operand[0], 2, error));
    BASIN_TRY(find_node(&node, u->network, o->operand[1], error));
    if (classes) {
        BASIN_TRY(o->class_name ? find_class(&x, error) : predicted_class(&x, node, error));
        u->work.number = x.number;
    }
    BASIN_TRY(basin_nodes_explain(&x.e, u->model, u->network, &node, 1, &u->work, error));
    basin_cli_watch_end(&o->watch);
    x.story = (basin_story){.e = x.e,
                            .network = u->network,
                            .schema = u->info->schema,
                            .neighbours = o->neighbours,
                            .features = o->features,
                            .classes = classes};
    BASIN_TRY(basin_record_print(o->json, put_explanation, &x, error));
    return o->svg ? draw(&x.story, u->model, o->svg, error) : BASIN_OK;
}

const basin_command basin_command_anomaly_explain = {"anomaly explain", anomaly_table,
                                                     .run = run_explain};

const basin_command basin_command_node_explain = {"node explain", node_table, .run = run_explain};

/* ---- report ---- */

static const basin_option report_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE",
               "The page; a name that ends in .json gets the document alone.", .writes = true,
               .text = "report.html"),
    BASIN_OPTION_JSON_FOR("output=report.html"),
    BASIN_INTEGER(top, "top", "N", 1, 1000,
                  "How many of the highest scores to list, with their reasons.", .initial = 20),
    BASIN_INTEGER(reasons, "reasons", "N", 2, 100, "Features to name for each.", .initial = 6),
    BASIN_FLAG(unseen, "unseen", "Judge by labelled nodes that took no part in training alone."),
    BASIN_OPTIONS_NETWORK,
    BASIN_WORK_OPTIONS,
    BASIN_OPTIONS_END,
};

/* Labelled nodes that took no part in training; free them. */
static basin_status find_unseen(uint8_t **part, const basin_nodes_model *model,
                                const basin_network *network, basin_error *error) {
    BASIN_TRY(BASIN_NEW(part, network->nodes, "a report", error));
    BASIN_TRY(basin_nodes_seen(*part, model, network, error));
    for (int64_t i = 0; i < network->nodes; i++)
        (*part)[i] = (*part)[i] ? BASIN_PART_NONE : BASIN_PART_TEST;
    return BASIN_OK;
}

static basin_status run_report(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_use_close) basin_nodes_use use = {0};
    BASIN_FREE_AT_EXIT uint8_t *part = NULL;
    struct stat file;
    BASIN_TRY(basin_nodes_use_open(&use, o, o->operand[0], 1, error));
    if (o->unseen) BASIN_TRY(find_unseen(&part, use.model, use.network, error));
    basin_nodes_reporting reporting = {.model = o->operand[0],
                                       .part = part,
                                       .alerts = o->top,
                                       .reasons = o->reasons,
                                       .work = &use.work};
    BASIN_TRY(
        basin_nodes_report(o->json ? NULL : o->output, use.model, use.network, &reporting, error));
    basin_cli_watch_end(&o->watch);
    if (o->json) return BASIN_OK;
    double bytes = stat(o->output, &file) == 0 ? (double)file.st_size : 0;
    printf("%s: %.1f kB\n", o->output, bytes / 1e3);
    return BASIN_OK;
}

const basin_command basin_command_anomaly_report = {"anomaly report", report_table,
                                                    .run = run_report};
