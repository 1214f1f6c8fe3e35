/* basin anomaly score, explain, report; basin node predict, explain. */
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/sort.h"
#include "basin/version.h"
#include "program/nodes.h"

typedef struct options {
    BASIN_ARGS;
    const char *base, *class_name, *threshold_for;
    int64_t around, features, neighbours, parts, reasons, top;
    bool changed, explain, only_new, sort, stamp, unlabelled, unseen;
} options;
#define OPTIONS options

#define OUTPUT_OPTION BASIN_TEXT(output, 'o', "output", "FILE", .writes = true)
#define PARTS_OPTION(needs_)                                                                       \
    BASIN_INTEGER(parts, "parts", "N", 0, BASIN_CUT_PARTS, .needs = needs_, .more = true)
#define USE_OPTIONS                                                                                \
    BASIN_OPTIONS_NETWORK, BASIN_OPTION_JSON,                                                      \
        BASIN_FLAG(stamp, "stamp", .needs = "json=off", .more = true), BASIN_WORK_OPTIONS,         \
        BASIN_OPTIONS_END

static const basin_option score_table[] = {
    OUTPUT_OPTION,
    BASIN_FLAG(sort, "sort"),
    BASIN_INTEGER(top, "top", "N", 0, 9e15),
    BASIN_CONTEXT_OPTIONS,
    BASIN_FLAG(explain, "explain", .needs = "top!=0,new=on,changed=on in-context=off"),
    BASIN_INTEGER(reasons, "reasons", "N", 1, 100, .needs = "explain=on", .initial = 3),
    BASIN_TEXT(threshold_for, 0, "threshold-for", "GOAL", .needs = "in-context=off"),
    BASIN_TEXT(base, 0, "base", "FILE"),
    PARTS_OPTION("in-context=off"),
    BASIN_FLAG(only_new, "new", .needs = "base!= changed=off"),
    BASIN_FLAG(changed, "changed", .needs = "base!= in-context=off parts=0"),
    BASIN_INTEGER(around, "around", "N", 0, 9e15, .needs = "new=on,changed=on in-context=off",
                  .more = true, .initial = 20000),
    USE_OPTIONS,
};

static const basin_option predict_table[] = {
    OUTPUT_OPTION,
    BASIN_FLAG(unlabelled, "unlabelled"),
    PARTS_OPTION(NULL),
    USE_OPTIONS,
};

typedef struct place {
    double probability;
    int64_t node, rank;
} place;

static int by_node(const void *a, const void *b) {
    const place *x = a, *y = b;
    return (x->node > y->node) - (x->node < y->node);
}

static int higher_first(const void *a, const void *b) {
    double p = ((const place *)a)->probability, q = ((const place *)b)->probability;
    return p != q ? (p < q ? 1 : -1) : by_node(a, b);
}

/* A model, the graph that it is used on, the base (--base), and the scores. */
typedef struct job {
    options *o;
    basin_nodes_use use; /* its network: what was opened, if the graph is not in parts */
    basin_network *base;
    basin_parts *parts;           /* or NULL */
    const basin_network *network; /* what was opened, or basin_parts_face(parts) */
    int64_t first, nodes;         /* the first node to print; how many there are from there on */
    int64_t columns;              /* classes; 1 of a detector */
    double *probability;          /* [N, columns] */
    int64_t *some;                /* [chosen] of --new and --changed; or NULL: all */
    int64_t chosen;
    place *list;   /* [nodes] of a detector */
    int64_t count; /* of the list, to print */
    basin_nodes_threshold_result threshold;
    basin_nodes_drift *drift;      /* NULL: not known */
    basin_nodes_explanation **why; /* [count] or NULL */
    int64_t number;                /* explain: of the class; -1: of a detector */
    uint8_t *part;                 /* report: [N] or NULL */
    basin_context *context;        /* explain --in-context; or NULL */
    basin_context_explanation *retrieval;
} job;

/* Ranks from 1 of the nodes that have a score; equal ones share the better one. Returns how many to
 * print. */
static int64_t rank(place *list, const job *j, const options *o) {
    int64_t nodes = 0;
    for (int64_t k = 0; k < j->nodes; k++) {
        int64_t i = j->some ? j->some[k] : j->first + k;
        if (!isnan(j->probability[i])) list[nodes++] = (place){j->probability[i], i, 0};
    }
    qsort(list, (size_t)nodes, sizeof *list, higher_first);
    for (int64_t i = 0; i < nodes; i++) {
        bool tie = i && list[i].probability == list[i - 1].probability;
        list[i].rank = tie ? list[i - 1].rank : i + 1;
    }
    int64_t count = o->top > 0 && o->top < nodes ? o->top : nodes;
    if (!o->sort && !o->top) qsort(list, (size_t)nodes, sizeof *list, by_node);
    return count;
}

/* ---- printing ---- */

/* Of CSV, where numbers have the digits of a float. */
static double rounded(const basin_record *r, double value) {
    return basin_record_form(r) == BASIN_FORM_JSON ? value : (double)(float)value;
}

static void put_drift(basin_record *r, const basin_nodes_drift *d) {
    static const char *const level[] = {"little", "some", "large"};
    basin_record_object(r, "drift");
    basin_record_fields(r, "nodes=%lld;too_few=%d", (long long)d->nodes, d->few);
    basin_record_table(r, "columns", NULL);
    for (int64_t i = 0; i < d->columns; i++) {
        const basin_nodes_drift_column *c = &d->column[i];
        basin_record_row(r);
        basin_record_fields(r, "column=%s;index=%.2f;level=%s", c->name, c->index,
                            d->few ? "unknown" : level[c->level]);
        basin_record_number(r, c->category ? "unknown_in_training" : "median_in_training", "%g",
                            c->then);
        basin_record_number(r, c->category ? "unknown" : "median", "%g", c->now);
    }
    basin_record_end(r);
    basin_record_end(r);
}

static const char *label_of(const job *j, int64_t node, char text[BASIN_MAX_NODE]) {
    int32_t label = j->network->label ? j->network->label[node] : -1;
    if (label < 0) return "-";
    if (j->o->table.classes) return basin_network_class(j->network, label, text);
    return label ? "anomalous" : "normal";
}

static void put_neighbours(basin_record *r, const job *j, const basin_nodes_explanation *e,
                           int64_t max) {
    char id[BASIN_MAX_NODE], label[BASIN_MAX_NODE], title[100];
    int main = basin_network_main_relation(j->network);
    bool loop = main >= 0 &&
                basin_relation_find(&j->network->relation[main], e->node, (int32_t)e->node) >= 0;
    snprintf(title, sizeof title,
             "neighbours that move its logit most (of %lld%s):", (long long)e->neighbours,
             loop ? ", besides itself, by a loop" : "");
    basin_record_table(r, "neighbours", title);
    for (int64_t i = 0; i < basin_int_min(e->neighbours, max); i++) {
        const basin_nodes_neighbour *n = &e->neighbour[i];
        basin_record_row(r);
        basin_record_fields(r, "node=%s;moves|moves by=%+.4f",
                            basin_network_id(j->network, n->node, id), n->push);
        if (e->has_attention)
            basin_record_fields(r, "attention=%.4f;returned=%.4f", n->share, n->returned);
        basin_record_fields(r, "probability=%.4f;label=%s", n->probability,
                            label_of(j, n->node, label));
    }
    basin_record_end(r);
}

static const basin_schema *schema_of(const job *j) {
    return j->use.info ? j->use.info->schema : j->network->schema;
}

static void put_features(basin_record *r, const job *j, const basin_nodes_explanation *e,
                         int64_t max) {
    const basin_schema *schema = schema_of(j);
    char name[BASIN_MAX_REASON], value[BASIN_VALUE_TEXT], typical[BASIN_VALUE_TEXT], title[200];
    snprintf(title, sizeof title,
             "features that move its logit from %.3f (a typical node's, here) to %.3f:",
             e->typical_logit, e->logit);
    basin_record_table(r, "features", title);
    for (int64_t i = 0; i < basin_int_min(e->features, max); i++) {
        const basin_nodes_feature *f = &e->feature[i];
        basin_record_row(r);
        basin_record_fields(r, "feature=%s;.column=%lld;.hop=%lld",
                            basin_nodes_reason_name(name, j->network, f), (long long)f->column,
                            (long long)f->hop);
        if (f->column < 0)
            basin_record_fields(r, ".known=%lld;.anomalous=%lld", (long long)f->known,
                                (long long)f->anomalous);
        basin_record_number(r, "moves|moves by", "%+.4f", f->share);
        basin_record_number(r, ".value", "%g", f->value);
        basin_record_number(r, ".typical", "%g", f->typical);
        basin_record_fields(r, "shown|value=%s;|typical=%s",
                            basin_schema_value(value, schema, f->column, f->value, f->hop),
                            basin_schema_value(typical, schema, f->column, f->typical, f->hop));
    }
    basin_record_end(r);
}

#define F(member, ...) BASIN_FIELD(basin_nodes_explanation, member, __VA_ARGS__)
static const basin_field story_fields[] = {F(logit, ".logit"),   F(typical_logit, ".typical_logit"),
                                           F(own, ".own"),       F(rest, ".rest"),
                                           F(missed, ".missed"), {0}},
                         energy_fields[] = {F(energy, "total", "%.4g"),
                                            F(attention, "attention", "%.4g"),
                                            F(hopfield, "hopfield|memories", "%.4g"),
                                            F(energy_mean, "mean|mean of all nodes", "%.4g"),
                                            F(energy_deviation, "deviation", "%.4g"),
                                            F(energy_below, "below|share of nodes below", "%.3f"),
                                            {0}};
#undef F

/* What moves the score of a node, or the odds of its class: at most this many of each. */
static void put_story(basin_record *r, const job *j, const basin_nodes_explanation *e,
                      int64_t neighbours, int64_t features) {
    double through = 0;
    for (int64_t i = 0; i < e->neighbours; i++) through += e->neighbour[i].push;
    basin_record_struct(r, story_fields, e);
    basin_record_note(
        r,
        "the logit differs by %+.3f from a typical node's: %+.3f from the node itself, "
        "%+.3f through neighbours, %+.3f from further away",
        e->logit - e->typical_logit, e->own, through, e->rest);
    if (fabs(e->missed) > 0.02 * fmax(fabs(e->logit - e->typical_logit), 0.5))
        basin_record_note(
            r,
            "%+.3f is missed by the integral: the logit changes too quickly between a "
            "typical node's features and these",
            e->missed);
    put_neighbours(r, j, e, neighbours);
    put_features(r, j, e, features);
}

static void put_reasons(basin_record *r, const job *j, const basin_nodes_explanation *why) {
    char text[BASIN_MAX_REASON], key[40];
    bool json = basin_record_form(r) == BASIN_FORM_JSON;
    if (json) put_story(r, j, why, j->o->reasons, j->o->reasons);
    for (int k = 0; k < (int)j->o->reasons && !json; k++) {
        snprintf(key, sizeof key, "reason_%d", k + 1);
        basin_record_text(r, key, basin_nodes_reason_print(text, why, j->network, schema_of(j), k));
    }
}

/* Which model scored, by which version, and when: in JSON once, in CSV of --stamp in each row. */
static void put_stamp(basin_record *r, const job *j) {
    char day[BASIN_DAY_TEXT];
    if (j->use.model) basin_record_text(r, "model_id", j->use.info->id);
    basin_record_fields(r, "version=%s;date=%s", basin_version(), basin_day_print(day, time(NULL)));
}

static void put_score(basin_record *r, const job *j, const place *p,
                      const basin_nodes_explanation *why) {
    char id[BASIN_MAX_NODE];
    basin_record_row(r);
    basin_record_text(r, "node", basin_network_id(j->network, p->node, id));
    basin_record_number(r, "probability", "%g", rounded(r, p->probability));
    basin_record_integer(r, "rank", p->rank);
    if (j->use.model) basin_record_flag(r, "anomalous", p->probability > j->threshold.threshold);
    if (why) put_reasons(r, j, why);
    if (j->o->stamp) put_stamp(r, j);
}

static void put_scores(basin_record *r, const void *context) {
    const job *j = context;
    put_stamp(r, j);
    if (j->use.model) basin_record_number(r, "threshold", "%g", j->threshold.threshold);
    if (j->o->threshold_for) basin_record_expected(r, &j->threshold, j->o->threshold_for);
    if (j->drift) put_drift(r, j->drift);
    basin_record_table(r, "nodes", NULL);
    if (!j->count && basin_record_form(r) != BASIN_FORM_JSON && j->network->nodes) {
        basin_record_heading_only(r, true);
        put_score(r, j, &(place){0}, NULL);
        basin_record_heading_only(r, false);
    }
    for (int64_t i = 0; i < j->count; i++) put_score(r, j, &j->list[i], j->why ? j->why[i] : NULL);
    basin_record_end(r);
}

static void put_classes(basin_record *r, const job *j, int64_t node) {
    char id[BASIN_MAX_NODE], key[300];
    const double *p = j->probability + node * j->columns;
    const basin_nodes_model *model = j->use.model;
    bool json = basin_record_form(r) == BASIN_FORM_JSON;
    basin_record_row(r);
    basin_record_fields(r, "node=%s;class=%s", basin_network_id(j->network, node, id),
                        basin_nodes_class(model, basin_best_class(p, j->columns)));
    basin_record_object(r, "probability");
    basin_record_data_keys(r, true);
    for (int64_t c = 0; c < j->columns; c++) {
        snprintf(key, sizeof key, "p_%.290s", basin_nodes_class(model, c));
        basin_record_number(r, json ? basin_nodes_class(model, c) : key, "%g", rounded(r, p[c]));
    }
    basin_record_data_keys(r, false);
    basin_record_end(r);
    if (j->o->stamp) put_stamp(r, j);
}

static void put_predictions(basin_record *r, const void *context) {
    const job *j = context;
    const int32_t *label = j->o->unlabelled ? j->network->label : NULL;
    put_stamp(r, j);
    basin_record_table(r, "nodes", NULL);
    if (basin_record_form(r) != BASIN_FORM_JSON && j->network->nodes) {
        basin_record_heading_only(r, true);
        put_classes(r, j, 0);
        basin_record_heading_only(r, false);
    }
    for (int64_t i = 0; i < j->network->nodes; i++)
        if (!label || label[i] < 0) put_classes(r, j, i);
    basin_record_end(r);
}

/* ---- drift ---- */

enum { NAMED = 3 };

/* One line on standard error that names the columns with the highest index. */
static void note_drift(const basin_nodes_drift *d) {
    static const char *const level[] = {"little", "some", "LARGE"};
    char text[300] = "";
    for (int64_t i = 0; i < d->columns && i < NAMED; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.60s %.2f", i ? ", " : "",
                 d->column[i].name, d->column[i].index);
    if (d->few)
        basin_say("basin: note: drift: %lld node%s too few to compare with training",
                  (long long)d->nodes, d->nodes == 1 ? " is" : "s are");
    else
        basin_say("basin: note: %s drift against training: stability index above 0.25 in %lld of "
                  "%lld columns, above 0.1 in %lld more; highest: %s%s",
                  level[d->large ? 2 : d->some > 0], (long long)d->large, (long long)d->columns,
                  (long long)d->some, text,
                  d->large ? "; scores and thresholds may no longer hold" : "");
}

/* Models of earlier versions have no data for it. */
static basin_status find_drift(job *j, basin_error *error) {
    basin_status status =
        basin_nodes_drift_new(&j->drift, j->use.model, j->network, j->first, error);
    if (!status && !j->o->quiet) note_drift(j->drift);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

/* ---- opening ---- */

/* The nodes that are asked for: of a night without any there is nothing to score. */
static basin_status choose_some(job *j, basin_error *error) {
    const basin_network *n = j->network;
    BASIN_TRY(BASIN_NEW_RAW(&j->some, n->nodes + 1, "nodes", error));
    BASIN_SCRATCH_RAW(bool, changed, n->nodes, "nodes", error);
    if (j->o->changed) j->chosen = basin_nodes_changed(j->some, changed, j->base, n);
    for (int64_t i = j->first; i < n->nodes && j->o->only_new; i++) j->some[j->chosen++] = i;
    if (!j->chosen && !j->o->quiet)
        basin_say("basin: note: %s: %s %s: no scores", n->path,
                  j->o->changed ? "changes nothing in" : "adds no nodes to", j->o->base);
    return BASIN_OK;
}

static basin_status open_graphs(job *j, int first, basin_error *error) {
    options *o = j->o;
    const basin_schema *schema = j->use.info ? j->use.info->schema : NULL;
    /* What --base names is read with no options. */
    basin_args plain = {.quiet = true, .memory = o->memory, .network = {.unite = true}};
    char *base = (char *)(uintptr_t)o->base;
    if (base) BASIN_TRY(basin_args_network(&j->base, &plain, schema, 1, &base, error));
    o->network.base = j->base;
    BASIN_TRY(basin_args_network(&j->use.network, &o->args, schema, o->operands - first,
                                 o->operand + first, error));
    j->network = j->use.network;
    if (o->only_new) j->first = j->base->nodes;
    return o->only_new || o->changed ? choose_some(j, error) : BASIN_OK;
}

/* Parts of a folder, or of what was opened (folder NULL), which is then freed. */
static basin_status open_parts(job *j, const char *folder, basin_error *error) {
    const options *o = j->o;
    int64_t count = basin_ranks_count(o->ranks);
    char facts[32] = "";
    if (!folder && !o->parts && !o->ranks) return BASIN_OK;
    basin_table_options table;
    basin_network_options how = basin_network_options_of(&o->args, &table);
    if (folder) BASIN_TRY(basin_network_options_check_parts(&how, folder, error));
    basin_settings_get(facts, sizeof facts, j->use.info->settings, "facts", NULL);
    basin_cut_spec spec = {.parts = o->parts ? o->parts : count > 8 ? count : 8};
    if (!folder && !strcmp(facts, "none")) basin_network_forget_facts(j->use.network);
    BASIN_TRY(folder ? basin_parts_open(&j->parts, folder, o->ranks, error)
                     : basin_parts_cut(&j->parts, j->use.network, &spec, o->ranks, error));
    BASIN_TRY(basin_parts_name_nodes(j->parts, error));
    basin_network_close(j->use.network);
    j->use.network = NULL;
    j->network = basin_parts_face(j->parts);
    return BASIN_OK;
}

/* What the model is asked about: MODEL FILE... */
static basin_status open_trained(job *j, basin_error *error) {
    options *o = j->o;
    char **operand = o->operand;
    bool folder = o->operands == 2 && basin_cut_is(operand[1]);
    if (folder && (o->base || o->parts))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: is in parts; %s has no effect", operand[1],
                          o->base ? "--base" : "--parts");
    if (o->explain && (folder || o->parts || o->ranks))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "--explain with a graph in parts: needs the whole graph, on one rank");
    basin_status status = basin_nodes_model_open(&j->use, &o->args, operand[0], error);
    if (!status && !folder) status = open_graphs(j, 1, error);
    BASIN_TRY(basin_ranks_agree(o->ranks, status, error));
    BASIN_TRY(open_parts(j, folder ? operand[1] : NULL, error));
    basin_note_gamma(&o->args, operand[0]);
    return BASIN_OK;
}

static basin_status open_all(job *j, basin_error *error) {
    if (j->o->network.unlabelled_first && !j->o->context.on && !j->o->unlabelled)
        return basin_usage(error, "--unlabelled-first has no effect: scores do not depend on "
                                  "labels of FILE");
    if (j->o->context.on) {
        basin_args_context_read(&j->o->args);
        BASIN_TRY(basin_nodes_model_open(&j->use, &j->o->args, NULL, error));
        BASIN_TRY(open_graphs(j, 0, error));
    } else {
        BASIN_TRY(open_trained(j, error));
    }
    j->nodes = j->some ? j->chosen : j->network->nodes - j->first;
    j->columns = basin_args_classes(&j->o->args) ? j->use.info->classes : 1;
    return BASIN_NEW(&j->probability, j->network->nodes * j->columns, "probabilities", error);
}

/* ---- score ---- */

/* Explains the printed nodes, in one pass. */
static basin_status explain_printed(job *j, basin_error *error) {
    if (!j->o->explain) return BASIN_OK;
    BASIN_SCRATCH(int64_t, node, j->count, "explanations", error);
    BASIN_TRY(BASIN_NEW(&j->why, j->count, "explanations", error));
    for (int64_t i = 0; i < j->count; i++) node[i] = j->list[i].node;
    basin_nodes_explain_options how = {.watch = j->use.how.watch,
                                       .memory = j->use.how.memory,
                                       .probability = j->probability,
                                       .brief = true};
    return basin_nodes_explain(j->why, j->use.model, j->network, node, j->count, &how, error);
}

static void close_all(void *context) {
    job *j = context;
    for (int64_t i = 0; i < j->count && j->why; i++) basin_nodes_explanation_free(j->why[i]);
    free(j->why);
    basin_nodes_drift_free(j->drift);
    basin_parts_close(j->parts);
    basin_nodes_use_close(&j->use);
    basin_network_close(j->base);
    basin_context_explanation_free(j->retrieval);
    basin_context_close(j->context);
    BASIN_FREE(j->probability, j->list, j->part, j->some);
}

static basin_status check_score(void *context, basin_error *error) {
    const options *o = ((job *)context)->o;
    if (o->context.on && o->ranks)
        return basin_usage(error, "--in-context does not run under mpirun or srun");
    if (!o->context.on && o->operands < 2) return basin_usage(error, "needs MODEL FILE...");
    return basin_goal_check(o->threshold_for, error);
}

/* Of --new and --changed by what lies around them; explanations need the whole. */
static basin_status find_scores(job *j, basin_error *error) {
    options *o = j->o;
    bool capped = false;
    if (j->some && !j->chosen) return BASIN_OK;
    if (o->context.on) return basin_context_score(j->probability, &o->args, j->network, error);
    if (!j->some || j->parts)
        return basin_nodes_predict(j->probability, j->use.model, j->network, &j->use.how, error);
    int64_t all = j->network->nodes, around = o->explain || !o->around ? all : o->around;
    BASIN_TRY(basin_nodes_predict_some(j->probability, &capped, j->use.model, j->network, j->some,
                                       j->chosen, around, &j->use.how, error));
    if (capped && !o->quiet)
        basin_say("basin: note: scored by the %lld nearest of %lld nodes (--around 0: all)",
                  (long long)around, (long long)all);
    return BASIN_OK;
}

static basin_status find_threshold(job *j, basin_error *error) {
    BASIN_SCRATCH_RAW(double, score, j->nodes, "a threshold", error);
    for (int64_t i = 0; i < j->nodes; i++)
        score[i] = j->probability[j->some ? j->some[i] : j->first + i];
    return basin_nodes_threshold_for(&j->threshold, j->use.model, j->o->threshold_for, score,
                                     j->nodes, error);
}

static basin_status score(void *context, basin_error *error) {
    job *j = context;
    char text[BASIN_EXPECTED_TEXT];
    options *o = j->o;
    BASIN_TRY(open_all(j, error));
    const basin_nodes_model *model = j->use.model;
    j->threshold.size = sizeof j->threshold;
    j->threshold.threshold = model ? j->use.info->threshold : 0;
    BASIN_TRY(find_scores(j, error));
    if (o->threshold_for && j->nodes) BASIN_TRY(find_threshold(j, error));
    if (o->threshold_for && !o->quiet && !basin_ranks_rank(o->ranks))
        basin_say("basin: note: %s", basin_expected_print(text, &j->threshold, o->threshold_for));
    if (basin_ranks_rank(o->ranks)) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&j->list, j->nodes, "scores", error));
    j->count = rank(j->list, j, o);
    BASIN_TRY(explain_printed(j, error));
    basin_cli_watch_end(&o->watch);
    return model && !j->parts && j->network->nodes > j->first ? find_drift(j, error) : BASIN_OK;
}

const basin_command basin_command_anomaly_score = {BASIN_COMMAND("anomaly score", score_table),
                                                   BASIN_USES(job, .prepare = check_score,
                                                              .work = score, .print = put_scores,
                                                              .close = close_all, .rows = true),
                                                   .ranks = true, .min_operands = 1};

static basin_status predict(void *context, basin_error *error) {
    job *j = context;
    BASIN_TRY(open_all(j, error));
    return basin_nodes_predict(j->probability, j->use.model, j->network, &j->use.how, error);
}

const basin_command basin_command_node_predict = {
    BASIN_COMMAND("node predict", predict_table),
    BASIN_USES(job, .work = predict, .print = put_predictions, .close = close_all, .rows = true),
    .ranks = true};

/* ---- explain ---- */

#define EXPLAIN_OPTIONS(features_needs)                                                            \
    BASIN_INTEGER(neighbours, "neighbours", "N", 0, 1000000, .initial = 10),                       \
        BASIN_INTEGER(features, "features", "N", 0, 1000000, .needs = features_needs,              \
                      .initial = 10),                                                              \
        BASIN_NODES_OPTIONS

static const basin_option anomaly_explain_table[] = {BASIN_CONTEXT_OPTIONS,
                                                     EXPLAIN_OPTIONS("in-context=off")};

static const basin_option node_explain_table[] = {
    BASIN_TEXT(class_name, 0, "class", "NAME"),
    EXPLAIN_OPTIONS(NULL),
};

static void put_energy(basin_record *r, const basin_nodes_explanation *e) {
    if (!e->has_energy) return;
    basin_record_object(r, "energy");
    basin_record_struct(r, energy_fields, e);
    basin_record_end(r);
}

static void put_explanation(basin_record *r, const void *context) {
    const job *j = context;
    char id[BASIN_MAX_NODE], label[BASIN_MAX_NODE];
    if (j->retrieval) {
        basin_record_context(r, j->context, j->retrieval, j->network, j->o->neighbours);
        return;
    }
    const basin_nodes_explanation *e = j->why[0];
    basin_record_text(r, "node", basin_network_id(j->network, e->node, id));
    if (j->number >= 0) basin_record_text(r, "class", basin_nodes_class(j->use.model, j->number));
    basin_record_number(r, "probability", "%.4f", e->probability);
    if (j->number < 0)
        basin_record_fields(r, "threshold=%.4f;rank=%lld", e->threshold, (long long)e->rank);
    basin_record_fields(r, "|label=%s;.without_attention=%d", label_of(j, e->node, label),
                        e->nearby);
    if (e->nearby)
        basin_record_note(r, "(the graph does not fit into the memory allowed as one plan: "
                             "no energies and attention)");
    put_energy(r, e);
    put_story(r, j, e, j->o->neighbours, j->o->features);
}

/* ---- running ---- */

static basin_status find_class(job *j, basin_error *error) {
    j->number = basin_class_find(j->use.model, j->o->class_name);
    if (j->number >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "--class '%.60s' is not one of the model's %lld, the first of which is '%s'",
                      j->o->class_name, (long long)j->use.info->classes,
                      basin_nodes_class(j->use.model, 0));
}

static basin_status predicted_class(job *j, int64_t node, basin_error *error) {
    int64_t C = j->use.info->classes;
    BASIN_SCRATCH(double, p, (j->use.network->nodes * C), "probabilities", error);
    BASIN_TRY(basin_nodes_predict(p, j->use.model, j->use.network, &j->use.how, error));
    j->number = basin_best_class(p + node * C, C);
    return BASIN_OK;
}

static basin_status explain(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    basin_nodes_use *u = &j->use;
    bool retrieved = o->context.on;
    char *name = o->operand[retrieved ? 0 : 1];
    j->number = -1;
    basin_args_context_read(&o->args);
    if (!retrieved && o->operands < 3) return basin_usage(error, "needs MODEL NODE FILE...");
    BASIN_TRY(basin_nodes_use_open(u, &o->args, retrieved ? NULL : o->operand[0], retrieved ? 1 : 2,
                                   error));
    j->network = u->network;
    basin_nodes_explain_options how = {.watch = u->how.watch, .memory = u->how.memory};
    int64_t node = basin_network_find(u->network, name);
    if (node < 0 || node >= u->network->nodes)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no node '%s' among %lld", u->network->path,
                          name, (long long)u->network->nodes);
    if (retrieved) {
        BASIN_TRY(basin_args_context(&j->context, &o->args, u->network, error));
        BASIN_TRY(basin_args_store(j->context, &o->args, NULL, error));
        return basin_context_explain(&j->retrieval, j->context, NULL, node, error);
    }
    if (o->table.classes) {
        BASIN_TRY(o->class_name ? find_class(j, error) : predicted_class(j, node, error));
        how.number = j->number;
    }
    BASIN_TRY(BASIN_NEW(&j->why, 1, "explanations", error));
    j->count = 1;
    return basin_nodes_explain(j->why, u->model, u->network, &node, 1, &how, error);
}

#define EXPLAINS BASIN_USES(job, .work = explain, .print = put_explanation, .close = close_all)

const basin_command basin_command_anomaly_explain = {
    BASIN_COMMAND("anomaly explain", anomaly_explain_table), EXPLAINS, .min_operands = 2};

const basin_command basin_command_node_explain = {BASIN_COMMAND("node explain", node_explain_table),
                                                  EXPLAINS};

/* ---- report ---- */

static const basin_option report_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true, .text = "report.html"),
    BASIN_OPTION_JSON_FOR("output=report.html"),
    BASIN_INTEGER(top, "top", "N", 1, 1000, .initial = 20),
    BASIN_INTEGER(reasons, "reasons", "N", 2, 100, .initial = 6),
    BASIN_FLAG(unseen, "unseen"),
    BASIN_OPTIONS_NETWORK,
    BASIN_WORK_OPTIONS,
    BASIN_OPTIONS_END,
};

static basin_status report(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    basin_nodes_use *u = &j->use;
    BASIN_TRY(basin_nodes_use_open(u, &o->args, o->operand[0], 1, error));
    if (o->unseen) { /* labelled nodes that took no part in training */
        BASIN_TRY(BASIN_NEW(&j->part, u->network->nodes, "a report", error));
        BASIN_TRY(basin_nodes_seen(j->part, u->model, u->network, error));
        for (int64_t i = 0; i < u->network->nodes; i++)
            j->part[i] = j->part[i] ? BASIN_SPLIT_NONE : BASIN_SPLIT_TEST;
    }
    basin_nodes_report_options page = {.model = o->operand[0],
                                       .part = j->part,
                                       .alerts = o->top,
                                       .reasons = o->reasons,
                                       .watch = u->how.watch,
                                       .memory = u->how.memory};
    return basin_nodes_report(o->json ? NULL : o->output, u->model, u->network, &page, error);
}

static basin_status print_size(void *context, basin_error *error) {
    (void)error;
    const options *o = ((job *)context)->o;
    struct stat file;
    double bytes = !o->json && stat(o->output, &file) == 0 ? (double)file.st_size : 0;
    if (!o->json) printf("%s: %.1f kB\n", o->output, bytes / 1e3);
    return BASIN_OK;
}

const basin_command basin_command_anomaly_report = {
    BASIN_COMMAND("anomaly report", report_table),
    BASIN_USES(job, .work = report, .finish = print_size, .close = close_all)};
