/* basin anomaly score and basin node predict: the probabilities of every node, as CSV or JSON. */
#include <stdlib.h>
#include <string.h>

#include "cli/nodes.h"

#define OUTPUT_OPTION                                                                              \
    BASIN_TEXT(output, 'o', "output", "FILE", "Write there instead of standard output.",           \
               .writes = true)
#define PARTS_OPTION(needs_)                                                                       \
    BASIN_INTEGER(                                                                                 \
        parts, "parts", "N", 0, BASIN_CUT_PARTS,                                                   \
        "Cut the graph into N parts, which ranks share; 0: 1, or with mpirun 8, or as many "       \
        "as there are ranks.",                                                                     \
        .needs = needs_, .more = true)
#define USE_OPTIONS                                                                                \
    BASIN_OPTIONS_NETWORK, BASIN_OPTION_JSON,                                                      \
        BASIN_FLAG(                                                                                \
            spreadsheet, "spreadsheet",                                                            \
            "CSV for spreadsheets: an apostrophe goes before text that they would take for "       \
            "a formula. Without it a reader gets every id back as it was.",                        \
            .needs = "json=off", .more = true),                                                    \
        BASIN_WORK_OPTIONS, BASIN_OPTIONS_END

static const basin_option score_table[] = {
    OUTPUT_OPTION,
    BASIN_FLAG(sort, "sort", "The most anomalous first; else in the data's order."),
    BASIN_INTEGER(top, "top", "N", 0, 9e15, "Only the N most anomalous; 0: all."),
    BASIN_FLAG(
        unsupervised, "unsupervised",
        "Without a model and without labels: learn from the files themselves to complete "
        "hidden nodes from their neighbours, and print the energy of each, which is high where it "
        "is unusual."),
    BASIN_INTEGER(seed, "seed", "N", 0, 9007199254740992.0,
                  "With --unsupervised: the seed of all random numbers.",
                  .needs = "unsupervised=on", .more = true),
    BASIN_FLAG(explain, "explain",
               "With --top or --new: why each of the nodes that are printed scores as it does.",
               .needs = "unsupervised=off top!=0,new=on"),
    BASIN_INTEGER(reasons, "reasons", "N", 1, 100,
                  "With --explain: features to name for each node; neighbours, too, with --json.",
                  .needs = "explain=on", .initial = 3),
    BASIN_TEXT(threshold_for, 0, "threshold-for", "GOAL", BASIN_THRESHOLD_FOR_HELP,
               .needs = "unsupervised=off"),
    BASIN_TEXT(base, 0, "base", "FILE",
               "A graph that is there already, as one file: the tables add nodes and edges to it.",
               .needs = "unsupervised=off"),
    PARTS_OPTION("unsupervised=off"),
    BASIN_FLAG(only_new, "new", "With --base: only the nodes that the tables add.",
               .needs = "base!="),
    USE_OPTIONS,
};

static const basin_option predict_table[] = {
    OUTPUT_OPTION,
    BASIN_FLAG(unlabelled, "unlabelled", "Only the nodes without a label."),
    PARTS_OPTION(NULL),
    USE_OPTIONS,
};

typedef struct place {
    double probability;
    int64_t node, rank;
} place;

static int higher_first(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->probability != y->probability) return x->probability < y->probability ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

static int by_node(const void *a, const void *b) {
    const place *x = a, *y = b;
    return (x->node > y->node) - (x->node < y->node);
}

/* Ranks from 1 of the nodes from `first` on; equal probabilities share the better one. Returns how
 * many are to be printed. */
static int64_t rank(place *list, const double *probability, int64_t first, int64_t nodes,
                    basin_args *o) {
    nodes -= first;
    for (int64_t i = 0; i < nodes; i++) list[i] = (place){probability[first + i], first + i, 0};
    qsort(list, (size_t)nodes, sizeof *list, higher_first);
    for (int64_t i = 0; i < nodes; i++) {
        bool tie = i && list[i].probability == list[i - 1].probability;
        list[i].rank = tie ? list[i - 1].rank : i + 1;
    }
    int64_t count = o->top > 0 && o->top < nodes ? o->top : nodes;
    if (!o->sort && !o->top) qsort(list, (size_t)nodes, sizeof *list, by_node);
    return count;
}

/* What is scored: the graph, and where --base says so what was there before. */
typedef struct job {
    basin_args *o;
    basin_nodes_use use; /* its network: what was opened, if the graph is not in parts */
    basin_network *base;
    basin_parts *parts;           /* or NULL */
    const basin_network *network; /* what was opened, or basin_parts_face(parts) */
    int64_t first, nodes;         /* the first node to print; how many there are from there on */
    int64_t columns;              /* classes; 1 of a detector */
    double *probability;          /* [N, columns] */
    place *list;                  /* [nodes] of a detector */
    int64_t count;                /* of the list, to print */
    double threshold;
    basin_nodes_drift drift;       /* without columns: not known */
    basin_nodes_explanation **why; /* [count] or NULL */
} job;

/* ---- printing ---- */

/* Of CSV, where numbers have the digits of a float. */
static double rounded(const basin_record *r, double value) {
    return basin_record_form(r) == BASIN_FORM_JSON ? value : (double)(float)value;
}

static void put_drift(basin_record *r, const basin_nodes_drift *d) {
    static const char *const level[] = {"little", "some", "large"};
    basin_record_object(r, "drift");
    basin_record_integer(r, "nodes", d->nodes);
    basin_record_flag(r, "too_few", d->few);
    basin_record_table(r, "columns", NULL);
    for (int64_t i = 0; i < d->columns; i++) {
        const basin_nodes_drift_column *c = &d->column[i];
        basin_record_row(r);
        basin_record_text(r, "column", c->name);
        basin_record_number(r, "index", "%.2f", c->index);
        basin_record_text(r, "level", d->few ? "unknown" : level[c->level]);
        basin_record_number(r, c->category ? "unknown_in_training" : "median_in_training", "%g",
                            c->then);
        basin_record_number(r, c->category ? "unknown" : "median", "%g", c->now);
    }
    basin_record_end(r);
    basin_record_end(r);
}

/* Columns of CSV, an explanation of JSON. */
static void put_reasons(basin_record *r, const job *j, const basin_nodes_explanation *why) {
    const basin_schema *schema = j->use.info->schema;
    char text[BASIN_REASON_TEXT], key[40];
    if (basin_record_form(r) == BASIN_FORM_JSON) {
        basin_story story = {.e = why,
                             .network = j->network,
                             .schema = schema,
                             .neighbours = j->o->reasons,
                             .features = j->o->reasons};
        basin_record_story(r, &story);
        return;
    }
    for (int k = 0; k < (int)j->o->reasons; k++) {
        snprintf(key, sizeof key, "reason_%d", k + 1);
        basin_record_text(r, key, basin_nodes_reason_print(text, why, j->network, schema, k));
    }
}

static void put_scores(basin_record *r, const void *context) {
    const job *j = context;
    char id[BASIN_NODE_TEXT];
    bool trained = j->use.model != NULL;
    if (trained) basin_record_number(r, "threshold", "%g", j->threshold);
    if (j->drift.columns) put_drift(r, &j->drift);
    basin_record_table(r, "nodes", NULL);
    for (int64_t i = 0; i < j->count; i++) {
        const place *p = &j->list[i];
        basin_record_row(r);
        basin_record_text(r, "node", basin_network_id(j->network, p->node, id));
        basin_record_number(r, trained ? "probability" : "energy", "%g",
                            rounded(r, p->probability));
        basin_record_integer(r, "rank", p->rank);
        if (trained) basin_record_flag(r, "anomalous", p->probability > j->threshold);
        if (j->why) put_reasons(r, j, j->why[i]);
    }
    basin_record_end(r);
}

static void put_classes(basin_record *r, const job *j, int64_t node) {
    char id[BASIN_NODE_TEXT], key[300];
    const double *p = j->probability + node * j->columns;
    const basin_nodes_model *model = j->use.model;
    bool json = basin_record_form(r) == BASIN_FORM_JSON;
    int64_t best = 0;
    for (int64_t c = 1; c < j->columns; c++)
        if (p[c] > p[best]) best = c;
    basin_record_row(r);
    basin_record_text(r, "node", basin_network_id(j->network, node, id));
    basin_record_text(r, "class", basin_nodes_class(model, best));
    basin_record_object(r, "probability");
    basin_record_data_keys(r, true);
    for (int64_t c = 0; c < j->columns; c++) {
        snprintf(key, sizeof key, "p_%.290s", basin_nodes_class(model, c));
        basin_record_number(r, json ? basin_nodes_class(model, c) : key, "%g", rounded(r, p[c]));
    }
    basin_record_data_keys(r, false);
    basin_record_end(r);
}

static void put_predictions(basin_record *r, const void *context) {
    const job *j = context;
    const int32_t *label = j->o->unlabelled ? j->network->label : NULL;
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

/* "amount 0.61, country 0.35": those of at least this level, or the first few of any. */
static void list(char *text, size_t size, const basin_nodes_drift *d, int level) {
    size_t used = 0;
    int shown = 0;
    *text = 0;
    for (int64_t i = 0; i < d->columns && shown < NAMED; i++) {
        const basin_nodes_drift_column *c = &d->column[i];
        if (c->level < level) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%.60s %.2f", shown ? ", " : "",
                                 c->name, c->index);
        shown++;
    }
    int64_t all = level > 1 ? d->large : level ? d->some + d->large : shown;
    if (all > shown) snprintf(text + used, size - used, " and %lld more", (long long)all - shown);
}

/* One line on standard error: the worst columns by name. */
static void note_drift(const basin_nodes_drift *d) {
    char text[300];
    list(text, sizeof text, d, d->large ? 2 : d->some ? 1 : 0);
    if (d->few)
        basin_say("basin: note: drift: %lld node%s too few to compare with training's",
                  (long long)d->nodes, d->nodes == 1 ? " is" : "s are");
    else if (d->large)
        basin_say("basin: note: drift is LARGE against training in %lld of %lld columns "
                  "(stability index above 0.25): %s; scores and thresholds may no longer hold",
                  (long long)d->large, (long long)d->columns, text);
    else if (d->some)
        basin_say("basin: note: some drift against training in %lld of %lld columns (stability "
                  "index above 0.1): %s",
                  (long long)d->some, (long long)d->columns, text);
    else
        basin_say("basin: note: little drift against training; the highest stability indices: %s",
                  text);
}

/* Older models do not know of any. */
static basin_status find_drift(job *j, basin_error *error) {
    basin_status status =
        basin_nodes_drift_measure(&j->drift, j->use.model, j->network, j->first, error);
    if (!status && !j->o->quiet) note_drift(&j->drift);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

/* ---- opening ---- */

/* What --base names is read with no options. */
static basin_status open_base(job *j, const basin_schema *schema, basin_error *error) {
    basin_args plain = {.quiet = true, .memory = j->o->memory, .network = {.unite = true}};
    char *base = (char *)(uintptr_t)j->o->base;
    return basin_args_network(&j->base, &plain, schema, 1, &base, error);
}

/* The operands from `first` on. */
static basin_status open_graphs(job *j, int first, basin_error *error) {
    basin_args *o = j->o;
    const basin_schema *schema = j->use.info ? j->use.info->schema : NULL;
    if (o->base) BASIN_TRY(open_base(j, schema, error));
    o->network.base = j->base;
    BASIN_TRY(basin_args_network(&j->use.network, o, schema, o->operands - first,
                                 o->operand + first, error));
    j->network = j->use.network;
    if (o->only_new) j->first = j->base->nodes;
    if (j->first < j->network->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: adds no nodes to %s", o->operand[first],
                      o->base);
}

/* Parts of the graph: those of a folder, or of what was opened. */
static basin_status open_parts(job *j, const char *folder, basin_error *error) {
    char facts[32] = "";
    const basin_settings *settings = j->use.info->settings;
    basin_settings_get(facts, sizeof facts, settings, "facts", NULL);
    BASIN_TRY(basin_cli_parts_open(&j->parts, &j->use.network, folder, j->o, facts, error));
    if (j->parts) j->network = basin_parts_face(j->parts);
    return BASIN_OK;
}

/* What the model is asked about: MODEL FILE... */
static basin_status open_trained(job *j, basin_error *error) {
    basin_args *o = j->o;
    char **operand = o->operand;
    bool folder = o->operands == 2 && basin_cut_is(operand[1]);
    if (folder && (o->base || o->parts))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: is in parts; %s has no effect", operand[1],
                          o->base ? "--base" : "--parts");
    if (o->explain && (folder || o->parts || o->ranks))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "--explain with a graph in parts: needs the whole graph, on one rank");
    basin_status status = basin_nodes_model_open(&j->use, o, operand[0], error);
    if (!status && !folder) status = open_graphs(j, 1, error);
    BASIN_TRY(basin_ranks_agree(o->ranks, status, error));
    BASIN_TRY(open_parts(j, folder ? operand[1] : NULL, error));
    basin_note_gamma(o, operand[0]);
    return BASIN_OK;
}

static basin_status open_all(job *j, basin_error *error) {
    if (j->o->unsupervised) {
        BASIN_TRY(basin_nodes_model_open(&j->use, j->o, NULL, error));
        BASIN_TRY(open_graphs(j, 0, error));
    } else {
        BASIN_TRY(open_trained(j, error));
    }
    j->use.work.parts = j->parts;
    j->nodes = j->network->nodes - j->first;
    j->columns = basin_args_classes(j->o) ? j->use.info->classes : 1;
    return BASIN_NEW(&j->probability, j->network->nodes * j->columns, "probabilities", error);
}

/* ---- score ---- */

/* Of the nodes that are printed, in one pass. */
static basin_status explain(job *j, basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *node = NULL;
    if (!j->o->explain) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&node, j->count, "explanations", error));
    BASIN_TRY(BASIN_NEW(&j->why, j->count, "explanations", error));
    for (int64_t i = 0; i < j->count; i++) node[i] = j->list[i].node;
    basin_nodes_work work = j->use.work;
    work.probability = j->probability, work.brief = true;
    return basin_nodes_explain(j->why, j->use.model, j->network, node, j->count, &work, error);
}

static basin_print_form form_of(basin_args *o) {
    return o->json ? BASIN_FORM_JSON : o->spreadsheet ? BASIN_FORM_SPREADSHEET : BASIN_FORM_CSV;
}

static void job_free(job *j) {
    for (int64_t i = 0; i < j->count && j->why; i++) basin_nodes_explanation_free(j->why[i]);
    free(j->why);
    basin_nodes_drift_free(&j->drift);
    basin_parts_close(j->parts);
    basin_nodes_use_close(&j->use);
    basin_network_free(j->base);
    free(j->probability);
    free(j->list);
}

static basin_status run_score(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(job_free) job j = {.o = o};
    if (o->unsupervised && o->ranks)
        return basin_usage(error, "--unsupervised does not run under mpirun or srun");
    if (!o->unsupervised && o->operands < 2) return basin_usage(error, "needs MODEL FILE...");
    BASIN_TRY(basin_goal_check(o->threshold_for, error));
    BASIN_TRY(open_all(&j, error));
    const basin_nodes_model *model = j.use.model;
    BASIN_TRY(
        basin_nodes_probabilities(j.probability, &j.use, j.network, o, (uint64_t)o->seed, error));
    j.threshold = model ? j.use.info->threshold : 0;
    if (o->threshold_for)
        BASIN_TRY(basin_nodes_threshold_for(&j.threshold, model, o->threshold_for,
                                            j.probability + j.first, j.nodes, error));
    if (basin_ranks_rank(o->ranks)) return BASIN_OK; /* the first prints */
    BASIN_TRY(BASIN_NEW(&j.list, j.nodes, "scores", error));
    j.count = rank(j.list, j.probability, j.first, j.network->nodes, o);
    BASIN_TRY(explain(&j, error));
    basin_cli_watch_end(&o->watch);
    if (model && !j.parts) BASIN_TRY(find_drift(&j, error));
    return basin_record_write(o->output, form_of(o), put_scores, &j, error);
}

static basin_status run_predict(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(job_free) job j = {.o = o};
    BASIN_TRY(open_all(&j, error));
    BASIN_TRY(basin_nodes_score(j.probability, j.use.model, j.network, &j.use.work, error));
    basin_cli_watch_end(&o->watch);
    if (basin_ranks_rank(o->ranks)) return BASIN_OK; /* the first prints */
    return basin_record_write(o->output, form_of(o), put_predictions, &j, error);
}

const basin_command basin_command_anomaly_score = {"anomaly score", score_table, .run = run_score,
                                                   .ranks = true, .least = 1};

const basin_command basin_command_node_predict = {"node predict", predict_table, .run = run_predict,
                                                  .ranks = true};
