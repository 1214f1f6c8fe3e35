/* basin anomaly eval, basin node eval: models over several splits beside others; a saved model. */
#include <time.h>

#include "base/clock.h"
#include "base/library.h"
#include "basin/random.h"
#include "program/nodes.h"

typedef struct options {
    BASIN_ARGS;
    const char *labels, *model, *rivals, *split, *threshold_for;
    int64_t first, runs, split_seed;
    double ratio;
    bool inductive, no_baselines, no_edges, shuffle_edges, unseen;
} options;
#define OPTIONS options

/* What they need is the command's. */
#define SPLIT_OPTIONS(ratio_, runs_, split_needs, ratio_needs, runs_needs)                         \
    BASIN_CHOICE(split, "split", "auto|ratio|masks", .needs = split_needs, .text = "auto"),        \
        BASIN_REAL(ratio, "ratio", "X", 0.0001, 0.95, .initial = ratio_, .needs = ratio_needs),    \
        BASIN_INTEGER(runs, "runs", "N", 1, 1000, .initial = runs_, .needs = runs_needs),          \
        BASIN_INTEGER(first, "first", "N", 0, 1000, .more = true)

static const basin_option anomaly_table[] = {
    BASIN_TEXT(model, 0, "model", "MODEL", .needs = "in-context=off print-config=off"),
    BASIN_CONTEXT_OPTIONS,
    BASIN_TEXT(labels, 0, "labels", "A:N", .needs = "in-context=on", .text = "20:180"),
    BASIN_FLAG(unseen, "unseen", .needs = "model!=", .more = true),
    BASIN_TEXT(threshold_for, 0, "threshold-for", "GOAL", .needs = "model!=", .more = true),
    BASIN_OPTIONS_START("default"),
    SPLIT_OPTIONS(0.4, 5, "in-context=off", "split!=masks,split-time!= model= in-context=off",
                  "model="),
    BASIN_OPTION_SPLIT_TIME("split!=ratio model= in-context=off"),
    BASIN_INTEGER(split_seed, "split-seed", "N", -1, 9007199254740992.0,
                  .needs = "split!=masks split-time= model=", .more = true, .initial = -1),
    BASIN_TEXT(rivals, 0, "rivals", "LIST", .needs = "model= in-context=off"),
    BASIN_FLAG(no_baselines, "no-baselines", .needs = "model= in-context=off", .more = true),
    BASIN_FLAG(inductive, "inductive",
               .needs = "split-time!= rivals= no-edges=off shuffle-edges=off", .more = true),
    BASIN_FLAG(no_edges, "no-edges", .more = true, .needs = "model= in-context=off"),
    BASIN_FLAG(shuffle_edges, "shuffle-edges", .more = true, .needs = "model= in-context=off"),
    BASIN_NODES_OPTIONS,
};

static const basin_option node_table[] = {
    BASIN_OPTIONS_START("default"),
    BASIN_TEXT(model, 0, "model", "FILE"),
    SPLIT_OPTIONS(0.6, 10, NULL, "split!=masks model=", "model="),
    BASIN_TEXT(rivals, 0, "rivals", "LIST", .needs = "model="),
    BASIN_NODES_OPTIONS,
};

/* Rows in order: the detector, its trees, its network, rivals; or classes, rivals. */
enum {
    DETECTOR,
    TREES,
    NETWORK,
    RIVALS,
    MAX_RIVALS = 20,
    GAINS = 100, /* rows of differences begin here */
};

typedef struct figures {
    basin_score validation, test;
    basin_reliability reliability;  /* on test, of the detector */
    double threshold, seconds, cpu; /* cpu: seconds of all threads */
    int64_t epoch;
} figures;

typedef struct eval {
    options *o;
    bool classes;
    basin_nodes_use use;
    uint8_t *part;                 /* [N] */
    const char *rival[MAX_RIVALS]; /* presets, the plain ones first, or "xgboost" */
    int rivals, plain, first_rival, models;
    basin_splits splits;
    figures *figures; /* [runs, models] */
    bool masks;       /* splits are the file's; else drawn by the ratio */
    int64_t seed;
    char title[100], trained_on[200]; /* of the detector */
    int64_t trained, validated;       /* nodes judged that took part in training; -1: not known */
    int64_t parameters;
    basin_context *context;         /* of --in-context; or NULL */
    int64_t labels[2];              /* stored there, by class */
    basin_network *bare, *shuffled; /* of --no-edges, --shuffle-edges; or NULL */
    basin_network *past;            /* of --inductive: without edges of the test period; or NULL */
    uint8_t *past_part;             /* of its nodes */
    double *scores;                 /* [N] of a back-test */
    /* of a back-test */
    const char *judged; /* what was judged, in words */
    int64_t left_out;   /* because they were seen */
    basin_nodes_threshold_result expected;
    basin_nodes_figures reached;
} eval;

static figures *figures_of(const eval *b, int model, int64_t run) {
    return &b->figures[run * b->models + model];
}

/* A line on standard error, unless --quiet. */
#define note(b, ...) ((b)->o->quiet ? (void)0 : basin_say(__VA_ARGS__))

/* ---- rivals ---- */

/* Besides presets: XGBoost, and the detector where the edges are not what they were. */
static const char family[] = "rival-", xgboost[] = "xgboost", bare[] = "no edges",
                  shuffled[] = "edges shuffled";
static const char trained_default[] = "trained default";

/* A preset's name without the family; NULL for a preset that is not a rival. */
static const char *rival_name(const char *preset) {
    size_t length = sizeof family - 1;
    if (!strcmp(preset, "paper") || preset == xgboost) return preset;
    return strncmp(preset, family, length) ? NULL : preset + length;
}

/* All that can be asked for: presets, and xgboost beside detectors. */
static int list_rivals(const char *all[MAX_RIVALS], const eval *b) {
    int count = 0;
    for (const char *const *preset = basin_settings_presets(b->o->command->task); *preset; preset++)
        if (rival_name(*preset) && count < MAX_RIVALS - 1) all[count++] = *preset;
    if (!b->classes) all[count++] = xgboost;
    return count;
}

static basin_status add_rival(eval *b, const char *name, size_t length, basin_error *error) {
    const char *all[MAX_RIVALS];
    char known[200] = "all";
    for (int i = 0, at = 0, count = list_rivals(all, b); i < count; i++, at = 0) {
        const char *its = rival_name(all[i]);
        snprintf(known + strlen(known), sizeof known - strlen(known), ", %s", its);
        if (strlen(its) != length || strncmp(its, name, length) != 0) continue;
        while (at < b->rivals && b->rival[at] != all[i]) at++;
        if (at == b->rivals) b->rival[b->rivals++] = all[i];
        return BASIN_OK;
    }
    return basin_fail(error, BASIN_BAD_VALUE, "--rivals: '%.*s' is not one of %s", (int)length,
                      name, known);
}

/* Plain models beside detectors, then "paper,xgboost", or "all" that can run; checked before
 * anything is trained. */
static basin_status parse_rivals(eval *b, const char *list, basin_error *error) {
    static const basin_library_function none[] = {{0}};
    char table[1];
    if (!b->classes && !b->o->no_baselines) b->plain = b->rivals = list_rivals(b->rival, b) - 1;
    if (list && !strcmp(list, "all")) {
        b->rivals = list_rivals(b->rival, b);
        if (!b->classes && !basin_library_present(BASIN_LIBRARY_XGBOOST)) b->rivals--;
        return BASIN_OK;
    }
    for (size_t length; list; list = list[length] ? list + length + 1 : NULL) {
        length = strcspn(list, ",");
        BASIN_TRY(add_rival(b, list, length, error));
    }
    for (int i = 0; i < b->rivals; i++)
        if (b->rival[i] == xgboost)
            return basin_library_load(table, BASIN_LIBRARY_XGBOOST, none, error);
    return BASIN_OK;
}

/* ---- splits ---- */

/* An option of drawn splits that was given; a split by time uses the ratio as well. */
static const char *drawn_option(const eval *b) {
    if (b->o->network.split_time) return NULL;
    if (basin_option_given(&b->o->args, "ratio")) return "ratio";
    return basin_option_given(&b->o->args, "split-seed") ? "split-seed" : NULL;
}

static basin_status plan_splits(eval *b, int64_t runs, basin_error *error) {
    options *o = b->o;
    const basin_network *n = b->use.network;
    b->masks = !strcmp(o->split, "masks") || (!strcmp(o->split, "auto") && n->splits > 0);
    b->splits.runs = runs;
    if (!n->label)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: no labels to compare with; needs a table of nodes with a column of "
                          "labels (the option label names it)",
                          n->path);
    if (b->masks && o->first >= n->splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld splits; number %lld does not exist",
                          n->path, (long long)n->splits, (long long)o->first);
    if (b->masks && n->splits > 1 && runs > n->splits - o->first)
        b->splits.runs = n->splits - o->first;
    if (b->masks && drawn_option(b))
        note(b, "--%s has no effect: the file has splits; --split ratio draws others",
             drawn_option(b));
    if (b->masks && (b->splits.runs < runs || (n->splits == 1 && runs > 1)))
        note(b, "the file has %lld split%s: %lld runs%s", (long long)n->splits,
             n->splits == 1 ? "" : "s", (long long)b->splits.runs,
             n->splits == 1 ? " with different seeds" : "");
    return BASIN_OK;
}

static basin_status take_split(eval *b, int64_t i, basin_error *error) {
    options *o = b->o;
    const basin_network *n = b->use.network;
    int64_t number = o->first + i, seed = o->split_seed < 0 ? b->seed : o->split_seed;
    if (o->context.on) {
        b->splits.overlap = 0; /* draws of few labels share next to none */
        return basin_labels_draw(b->part, b->labels, n, (uint64_t)seed, (uint64_t)number, error);
    }
    if (b->masks) /* of a file with one split, each run has another seed */
        BASIN_TRY(basin_split_from_masks(b->part, n, n->splits > 1 ? number : 0, error));
    else
        BASIN_TRY(
            basin_split_stratified(b->part, n, o->ratio, (uint64_t)seed, (uint64_t)number, error));
    int64_t test = basin_split_nodes(NULL, b->part, n->nodes, BASIN_SPLIT_TEST);
    int64_t others = basin_split_nodes(NULL, b->part, n->nodes, BASIN_SPLIT_TRAIN) +
                     basin_split_nodes(NULL, b->part, n->nodes, BASIN_SPLIT_VAL);
    b->splits.overlap = (double)test / (double)(others + 1);
    return BASIN_OK;
}

/* ---- do edges help? ---- */

/* The network with no edges, or with those of node i at another node: what each has stays. */
static basin_status change_edges(basin_network **copy, const basin_network *n, bool shuffle,
                                 basin_error *error) {
    BASIN_SCRATCH_RAW(int64_t, node, n->nodes, "an evaluation", error);
    for (int64_t i = 0; i < n->nodes; i++) node[i] = i;
    if (shuffle) basin_random_permutation(node, (size_t)n->nodes, 0, 1);
    BASIN_TRY(basin_network_induce(copy, n, node, n->nodes, error));
    basin_network *c = *copy;
    for (int r = 0; r < c->relations && !shuffle; r++) {
        memset(c->relation[r].row, 0, (size_t)(n->nodes + 1) * sizeof *c->relation[r].row);
        c->relation[r].edges = 0;
    }
    if (n->feature)
        memcpy(c->feature, n->feature, (size_t)(n->nodes * n->features) * sizeof *c->feature);
    memcpy(c->label, n->label, (size_t)n->nodes * sizeof *c->label);
    basin_names_free(&c->id);
    BASIN_TRY(basin_names_copy(&c->id, &n->id, error));
    return basin_network_find_order(c, error);
}

static basin_status add_changed(eval *b, basin_error *error) {
    const basin_network *n = b->use.network;
    if (b->o->no_edges) BASIN_TRY(change_edges(&b->bare, n, false, error));
    if (b->o->shuffle_edges) BASIN_TRY(change_edges(&b->shuffled, n, true, error));
    if (b->bare) b->rival[b->rivals++] = bare;
    if (b->shuffled) b->rival[b->rivals++] = shuffled;
    return BASIN_OK;
}

/* ---- a past that knows nothing of the future ---- */

/* The graph at the end of validation: later rows of edges are not read. */
static basin_status open_past(eval *b, basin_error *error) {
    const basin_network *n = b->use.network;
    options *o = b->o;
    basin_args then = o->args;
    char until[BASIN_TIME_TEXT], id[BASIN_MAX_NODE];
    double end = -INFINITY;
    if (!n->since || !n->schema)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: --inductive needs tables whose edges have times", n->path);
    BASIN_SCRATCH_RAW(uint8_t, part, n->nodes, "an evaluation", error);
    BASIN_TRY(basin_split_from_masks(part, n, 0, error));
    for (int64_t i = 0; i < n->nodes; i++)
        if (part[i] == BASIN_SPLIT_TRAIN || part[i] == BASIN_SPLIT_VAL)
            end = fmax(end, n->since[i]);
    basin_time_print(until, ceil(end * 86400 - 1e-6) / 86400, true);
    if (!basin_schema_has_dates(n->schema)) snprintf(until, sizeof until, "%.17g", end);
    then.quiet = true, then.network.split_time = NULL, then.table.until = until;
    BASIN_TRY(basin_args_network(&b->past, &then, n->schema, o->operands, o->operand, error));
    BASIN_TRY(BASIN_NEW(&b->past_part, b->past->nodes + 1, "an evaluation", error));
    for (int64_t i = 0; i < b->past->nodes; i++) {
        int64_t at = basin_network_find(n, basin_network_id(b->past, i, id));
        b->past_part[i] = at >= 0 && part[at] != BASIN_SPLIT_TEST ? part[at] : BASIN_SPLIT_NONE;
    }
    note(b, "trained on the graph until %s, tested on that of all times", until);
    return BASIN_OK;
}

/* A model of the past on the nodes of the future. */
static basin_status take_past(eval *b, int number, int64_t i, const basin_nodes_model *model,
                              basin_error *error) {
    const basin_network *n = b->use.network;
    const basin_nodes_info *info = basin_nodes_get_info(model);
    figures *f = figures_of(b, number, i);
    BASIN_SCRATCH_RAW(double, probability, n->nodes, "scores", error);
    BASIN_TRY(basin_nodes_predict(probability, model, n, &b->use.how, error));
    if (info->reached[BASIN_SPLIT_VAL]) f->validation = *info->reached[BASIN_SPLIT_VAL];
    f->threshold = info->threshold;
    b->parameters = info->parameters;
    return basin_nodes_evaluate(&f->test, probability, model, n, b->part, BASIN_SPLIT_TEST,
                                f->threshold, error);
}

/* ---- one model on one split ---- */

static bool is_shown(const eval *b, int model) {
    if (b->classes || model >= b->first_rival) return true;
    if (model == DETECTOR) return true;
    return figures_of(b, model, 0)->test.measures > 0;
}

/* Keeps what only the evaluated model has, not its rivals. */
static void keep(eval *b, const basin_nodes_model *model, int64_t i) {
    const basin_nodes_info *info = basin_nodes_get_info(model);
    b->parameters = info->parameters;
    if (b->classes) return;
    snprintf(b->trained_on, sizeof b->trained_on, "%s", info->trained_on);
    for (int which = 0; which < 2; which++) {
        const basin_score *test = info->alone[which][BASIN_SPLIT_TEST];
        const basin_score *seen = info->alone[which][BASIN_SPLIT_VAL];
        if (test && seen) figures_of(b, TREES + which, i)->test = *test;
        if (test && seen) figures_of(b, TREES + which, i)->validation = *seen;
    }
    figures_of(b, DETECTOR, i)->reliability = *info->reliability[BASIN_SPLIT_TEST];
}

static void judge_labelled(eval *b) {
    const basin_network *n = b->use.network;
    for (int64_t i = 0; i < n->nodes; i++)
        b->part[i] = n->label && n->label[i] >= 0 ? BASIN_SPLIT_TEST : BASIN_SPLIT_NONE;
}

/* The file's test nodes, where it has some, else all that have a label; with --unseen without those
 * that took part in training. */
static basin_status choose_judged(eval *b, basin_error *error) {
    const basin_network *n = b->use.network;
    b->judged = "test";
    if (n->splits && strcmp(b->o->split, "ratio") != 0)
        BASIN_TRY(basin_split_from_masks(b->part, n, n->splits > 1 ? b->o->first : 0, error));
    if (!basin_split_nodes(NULL, b->part, n->nodes, BASIN_SPLIT_TEST)) {
        b->judged = "all labelled";
        judge_labelled(b);
    }
    if (!b->o->unseen) return BASIN_OK;
    BASIN_SCRATCH(uint8_t, seen, n->nodes, "a back-test", error);
    BASIN_TRY(basin_nodes_seen(seen, b->use.model, n, error));
    for (int64_t i = 0; i < n->nodes; i++)
        if (seen[i] && b->part[i] == BASIN_SPLIT_TEST) b->part[i] = BASIN_SPLIT_NONE, b->left_out++;
    return BASIN_OK;
}

/* Notes classes that the model does not have, and hence never predicts. */
static basin_status check_classes(const eval *b, basin_error *error) {
    const basin_network *n = b->use.network;
    char text[BASIN_MAX_NODE];
    int64_t labelled = basin_split_nodes(NULL, b->part, n->nodes, BASIN_SPLIT_TEST), known = 0;
    int32_t last = basin_network_greatest_label(n);
    BASIN_SCRATCH(int64_t, count, (size_t)last + 2, "classes", error);
    for (int64_t i = 0; i < n->nodes; i++)
        if (b->part[i] == BASIN_SPLIT_TEST) count[n->label[i]]++;
    for (int32_t c = 0; c <= last; c++)
        if (basin_class_find(b->use.model, basin_network_class(n, c, text)) >= 0) known += count[c];
    if (!known)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: none of %lld labelled nodes has a class of %s, which are called %s, "
                          ".. (npz files have only numbers)",
                          n->path, (long long)labelled, b->o->model,
                          basin_nodes_class(b->use.model, 0));
    if (known < labelled)
        note(b,
             "%s: %lld of %lld labelled nodes have a class that %s does not know; they count as "
             "wrong",
             n->path, (long long)(labelled - known), (long long)labelled, b->o->model);
    return BASIN_OK;
}

static basin_status measure(eval *b, basin_error *error) {
    basin_nodes_use *u = &b->use;
    b->parameters = u->info->parameters;
    BASIN_SCRATCH(double, probability, u->network->nodes * u->info->classes, "probabilities",
                  error);
    BASIN_TRY(basin_nodes_predict(probability, u->model, u->network, &u->how, error));
    BASIN_TRY(choose_judged(b, error));
    BASIN_TRY(basin_nodes_evaluate(&b->figures->test, probability, u->model, u->network, b->part,
                                   BASIN_SPLIT_TEST, 0, error));
    BASIN_TRY(check_classes(b, error));
    return basin_nodes_count_seen(&b->trained, &b->validated, u->model, u->network, b->part,
                                  BASIN_SPLIT_TEST, error);
}

/* What a model is trained and tested on. */
static const basin_network *network_of(const eval *b, int number) {
    const char *name = number < b->first_rival ? NULL : b->rival[number - b->first_rival];
    return name == bare ? b->bare : name == shuffled ? b->shuffled : b->use.network;
}

static basin_status train(basin_nodes_model **model, basin_training_result *outcome, eval *b,
                          int number, int64_t seed, const uint8_t *part,
                          const basin_training_options *training, basin_error *error) {
    basin_nodes_data data = {.network = network_of(b, number), .part = part};
    int rival = data.network == b->use.network ? number - b->first_rival : -1;
    if (b->past) data.network = b->past, data.part = b->past_part;
    basin_settings *settings = b->o->settings;
    if (rival >= 0)
        BASIN_TRY(basin_settings_new(&settings, b->o->command->task, b->rival[rival], error));
    basin_status status = basin_settings_set_number(settings, "seed", (double)seed, error);
    if (!status) status = basin_nodes_train(model, outcome, settings, &data, training, error);
    if (rival >= 0) basin_settings_free(settings);
    return status;
}

static basin_status take(eval *b, int number, int64_t i, const basin_nodes_model *model,
                         basin_error *error) {
    figures *f = figures_of(b, number, i);
    const basin_score *validation = basin_nodes_get_info(model)->reached[BASIN_SPLIT_VAL];
    const basin_score *test = basin_nodes_get_info(model)->reached[BASIN_SPLIT_TEST];
    if (!validation || !test)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes for %s", b->use.network->path,
                          validation ? "test" : "validation");
    f->validation = *validation;
    f->test = *test;
    if (!b->classes) f->threshold = basin_nodes_get_info(model)->threshold;
    if (!number) keep(b, model, i);
    return BASIN_OK;
}

static basin_status run_xgboost(eval *b, figures *f, int64_t seed,
                                const basin_training_options *training, basin_error *error) {
    const basin_network *n = b->use.network;
    basin_nodes_rival rival;
    BASIN_SCRATCH(double, probability, n->nodes, "scores", error);
    BASIN_TRY(basin_nodes_train_xgboost(probability, &rival, seed, n, b->part, training, error));
    f->epoch = rival.trees, f->threshold = rival.threshold;
    BASIN_TRY(basin_nodes_evaluate(&f->validation, probability, NULL, n, b->part, BASIN_SPLIT_VAL,
                                   f->threshold, error));
    return basin_nodes_evaluate(&f->test, probability, NULL, n, b->part, BASIN_SPLIT_TEST,
                                f->threshold, error);
}

/* The default detector, trained on what was drawn; every fifth label of a class validates. */
static basin_status run_default(eval *b, double *probability, figures *f, int64_t seed,
                                const basin_training_options *training, basin_error *error) {
    const basin_network *n = b->use.network;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_nodes_model *model = NULL;
    int64_t seen[2] = {0, 0};
    BASIN_SCRATCH(uint8_t, part, n->nodes, "an evaluation", error);
    for (int64_t i = 0; i < n->nodes; i++) {
        part[i] = b->part[i];
        if (part[i] == BASIN_SPLIT_TRAIN && ++seen[n->label[i]] % 5 == 0) part[i] = BASIN_SPLIT_VAL;
    }
    basin_status status = train(&model, &outcome, b, DETECTOR, seed, part, training, error);
    b->splits.stopped = outcome.stopped;
    if (!status && !outcome.stopped)
        status = basin_nodes_predict(probability, model, n, &b->use.how, error);
    if (model) f->threshold = basin_nodes_get_info(model)->threshold;
    basin_nodes_close(model);
    return status;
}

/* What is stored, and others trained on it; 0.5 is the threshold of all but the last. */
static basin_status run_context(eval *b, int number, figures *f, int64_t seed,
                                const basin_training_options *training, basin_error *error) {
    const basin_network *n = b->use.network;
    BASIN_SCRATCH(double, probability, n->nodes, "scores", error);
    f->threshold = 0.5;
    if (b->rival[b->rivals - 1] == trained_default && number == b->rivals)
        BASIN_TRY(run_default(b, probability, f, seed, training, error));
    else
        BASIN_TRY(basin_context_compare(probability, b->context, &b->o->args, number, b->part, n,
                                        (uint64_t)seed, error));
    if (b->splits.stopped) return BASIN_OK;
    return basin_nodes_evaluate(&f->test, probability, NULL, n, b->part, BASIN_SPLIT_TEST,
                                f->threshold, error);
}

static basin_status run_model(eval *b, int number, int64_t i, basin_error *error) {
    figures *f = figures_of(b, number, i);
    basin_training_options training = {
        .backend = b->o->compute, .watch = &b->o->watch.watch, .memory = b->use.how.memory};
    int64_t seed = b->seed + b->o->first + i;
    basin_nodes_model *model = NULL;
    basin_training_result outcome = {.size = sizeof outcome};
    double began = basin_clock();
    clock_t busy = clock();
    basin_status status;
    if (b->o->model) {
        status = measure(b, error);
    } else if (b->context) {
        status = run_context(b, number, f, seed, &training, error);
    } else if (number >= b->first_rival && b->rival[number - b->first_rival] == xgboost) {
        status = run_xgboost(b, f, seed, &training, error);
    } else {
        status = train(&model, &outcome, b, number, seed, b->part, &training, error);
        b->splits.stopped = outcome.stopped;
        f->epoch = outcome.best_epoch;
        if (!status && !b->splits.stopped)
            status = (b->past ? take_past : take)(b, number, i, model, error);
        basin_nodes_close(model);
    }
    f->seconds = basin_clock() - began;
    f->cpu = (double)(clock() - busy) / CLOCKS_PER_SEC;
    return status;
}

/* ---- printing ---- */

static const char *const *measures_of(const eval *b) {
    static const char *const anomaly[] = {"macro_f1", "auroc", "auprc", "recall_at_k", "ece", NULL};
    static const char *const node[] = {"accuracy", "macro_f1", "auroc", NULL};
    return b->classes ? node : anomaly;
}

static void note_split(const eval *b, int64_t i) {
    const figures *f = figures_of(b, 0, i);
    char text[300] = "";
    for (const char *const *measure = measures_of(b); *measure && strcmp(*measure, "recall_at_k");
         measure++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s %.2f (validation %.2f)",
                 *measure, 100 * basin_score_get(&f->test, *measure),
                 100 * basin_score_get(&f->validation, *measure));
    note(b, "split %lld: test%s, epoch %lld, %.0f s", (long long)(b->o->first + i), text,
         (long long)f->epoch, f->seconds);
}

static const char *model_name(const eval *b, int model) {
    if (model >= b->first_rival) return b->rival[model - b->first_rival];
    if (b->classes) return b->o->model ? b->o->model : b->o->start.preset;
    return model == DETECTOR ? b->title : model == TREES ? "- trees only" : "- network only";
}

static bool figure(double *value, const void *context, int model, const char *measure, int64_t i) {
    int row = model < GAINS ? model : model - GAINS; /* or what the detector has beyond the row */
    *value = 100 * basin_score_get(&figures_of(context, row, i)->test, measure);
    if (model != row)
        *value = 100 * basin_score_get(&figures_of(context, DETECTOR, i)->test, measure) - *value;
    return true;
}

static basin_spread spread_of(const eval *b, int model, const char *measure) {
    return basin_splits_spread(&b->splits, model, measure, 0, b->splits.runs);
}

static void put_intervals(basin_record *r, const eval *b, int model) {
    basin_record_object(r, "interval_95");
    for (const char *const *measure = measures_of(b); *measure; measure++) {
        basin_spread s = spread_of(b, model, *measure);
        if (s.has_interval) basin_record_numbers(r, *measure, s.interval, 2);
    }
    basin_record_end(r);
}

static void put_runs(basin_record *r, const eval *b, int model) {
    basin_record_table(r, "runs", NULL);
    for (int64_t i = 0; i < b->splits.runs; i++) {
        const figures *f = figures_of(b, model, i);
        basin_record_row(r);
        basin_record_integer(r, "split", b->o->first + i);
        if (f->validation.measures) basin_record_percent(r, "validation", &f->validation);
        basin_record_percent(r, "test", &f->test);
        if (!b->classes) basin_record_number(r, "threshold", "%g", f->threshold);
        if (f->epoch) basin_record_integer(r, "best_epoch", f->epoch);
        basin_record_fields(r, "seconds=%g;cpu_seconds=%g", f->seconds, f->cpu);
        if (!b->classes && !b->context && model == DETECTOR)
            basin_record_reliability(r, &f->reliability, NULL);
    }
    basin_record_end(r);
}

static void put_model(basin_record *r, const eval *b, int model) {
    double seconds = 0, cpu = 0;
    bool alone = model < b->first_rival && model > DETECTOR; /* the detector's run */
    basin_record_row(r);
    basin_record_text(r, "model", model_name(b, model));
    for (const char *const *measure = measures_of(b); *measure; measure++) {
        basin_spread s = spread_of(b, model, *measure);
        basin_record_spread(r, *measure, 2, s.mean, s.deviation);
    }
    if (basin_record_is_text(r) && !alone) {
        for (int64_t i = 0; i < b->splits.runs; i++) {
            seconds += figures_of(b, model, i)->seconds / (double)b->splits.runs;
            cpu += figures_of(b, model, i)->cpu / (double)b->splits.runs;
        }
        basin_record_fields(r, "s per run=%.1f;CPU s=%.1f", seconds, cpu);
    } else if (!alone || basin_record_form(r) == BASIN_FORM_JSON) {
        if (!b->classes) put_intervals(r, b, model);
        put_runs(r, b, model);
    }
}

/* Whether the nodes that are judged took part in training; < 0: not known. */
static void note_seen(basin_record *r, int64_t trained, int64_t validated, const char *chose,
                      const char *hint) {
    if (trained < 0)
        basin_record_note(r, "which nodes took part in training is not known: they may be among "
                             "these");
    else if (trained + validated)
        basin_record_note(
            r, "%lld of them were trained on, %lld more chose %s: this is not a held-out score%s",
            (long long)trained, (long long)validated, chose, hint);
    else
        basin_record_note(r, "none of them took part in training");
}

/* What the detector has beyond one of its parts, the edges, or a rival, run by run. */
static void note_gain(basin_record *r, const eval *b, int model) {
    static const char *const of[] = {"", "the networks, over trees only",
                                     "the trees, over networks only"};
    const char *name = b->rival[model < b->first_rival ? 0 : model - b->first_rival];
    basin_spread s = spread_of(b, GAINS + model, "auprc");
    char what[120], interval[80] = "";
    snprintf(what, sizeof what, "%s%.60s",
             model < b->first_rival             ? of[model]
             : name == bare || name == shuffled ? "the edges, over "
                                                : "the detector, over ",
             model < b->first_rival ? "" : name);
    if (s.has_interval)
        snprintf(interval, sizeof interval, " (95 %% interval %+.2f to %+.2f)", s.interval[0],
                 s.interval[1]);
    basin_record_note(r, "gain of %s: AUPRC %+.2f%s", what, s.mean, interval);
}

static void put_result(basin_record *r, const eval *b) {
    options *o = b->o;
    basin_record_fields(r, ".data=%s;.split=%s", b->use.network->path,
                        b->masks                 ? "masks"
                        : b->classes && o->model ? "all"
                                                 : "ratio");
    if (!b->classes && !b->masks) basin_record_number(r, ".ratio", "%g", o->ratio);
    if (!b->classes) basin_record_text(r, ".trained_on", b->trained_on);
    basin_record_integer(r, ".parameters", b->parameters);
    if (b->context) {
        basin_record_note(r,
                          "%s: %lld draws of %s labels, %lld columns; percent on other labelled "
                          "nodes, mean +- population deviation",
                          b->use.network->path, (long long)b->splits.runs, o->labels,
                          (long long)basin_context_get_info(b->context)->columns);
        if (b->rival[b->rivals - 1] != trained_default)
            basin_record_note(r, "the trained default needs tables without gaps (--missing mean), "
                                 "and is left out");
    } else if (o->model) {
        basin_record_note(r, "%s: %s; percent", b->use.network->path,
                          b->masks ? "the file's test nodes" : "all labelled nodes");
        note_seen(r, b->trained, b->validated, "the epoch", "");
    } else {
        basin_record_note(r, "%s: %lld runs, %s; percent on test, mean +- population deviation",
                          b->use.network->path, (long long)b->splits.runs,
                          o->network.split_time ? "splits by time"
                          : b->masks            ? "the file's splits"
                                                : "stratified splits");
    }
    basin_record_table(r, "models", NULL);
    for (int m = 0; m < b->models; m++)
        if (is_shown(b, m)) put_model(r, b, m);
    basin_record_end(r);
    for (int m = 1; m < b->models && !b->classes && !b->context && !o->model; m++)
        if (is_shown(b, m) && !(m >= b->first_rival && m - b->first_rival < b->plain))
            note_gain(r, b, m);
}

/* ---- running ---- */

static uint64_t seed_of(const options *o) {
    double seed;
    return basin_settings_get_number(&seed, o->settings, "seed", NULL) ? 0 : (uint64_t)seed;
}

/* The preset, and a form that is not the preset's own. */
static basin_status name_detector(eval *b, basin_error *error) {
    const char *preset = b->o->start.preset;
    char form[32];
    BASIN_TRY(basin_settings_get(form, sizeof form, b->o->settings, "form", error));
    bool usual = !strcmp(form, "energy") || strstr(preset, form);
    snprintf(b->title, sizeof b->title, "%s%s%s", preset, usual ? "" : ", form ",
             usual ? "" : form);
    return BASIN_OK;
}

static basin_status prepare(eval *b, basin_error *error) {
    options *o = b->o;
    char text[32];
    if (!b->classes) {
        BASIN_TRY(basin_settings_get(text, sizeof text, o->settings, "facts", error));
        /* Rivals do not read them either. */
        if (!strcmp(text, "none")) basin_network_forget_facts(b->use.network);
    }
    BASIN_TRY(plan_splits(b, o->model ? 1 : o->runs, error));
    BASIN_TRY(parse_rivals(b, o->rivals, error));
    BASIN_TRY(add_changed(b, error));
    if (o->inductive) BASIN_TRY(open_past(b, error));
    if (!b->classes) BASIN_TRY(name_detector(b, error));
    b->first_rival = b->classes ? 1 : RIVALS;
    b->models = b->first_rival + b->rivals;
    return BASIN_OK;
}

static bool has_gaps(const basin_network *n) {
    for (int64_t i = 0; n->feature && i < n->nodes * n->features; i++)
        if (isnan(n->feature[i])) return true;
    return false;
}

/* The same where nothing is trained but rivals. */
static basin_status prepare_context(eval *b, basin_error *error) {
    basin_network *n = b->use.network;
    BASIN_TRY(basin_args_context(&b->context, &b->o->args, n, error));
    snprintf(b->title, sizeof b->title, "in-context");
    b->rivals =
        basin_library_present(BASIN_LIBRARY_XGBOOST) ? BASIN_CONTEXT_RIVALS : BASIN_CONTEXT_XGBOOST;
    memcpy(b->rival, basin_context_rival_name, (size_t)b->rivals * sizeof *b->rival);
    if (!has_gaps(n)) b->rival[b->rivals++] = trained_default;
    b->first_rival = 1, b->models = 1 + b->rivals;
    b->splits.runs = b->o->runs;
    b->parameters = basin_context_get_info(b->context)->parameters;
    return BASIN_OK;
}

static basin_status run_split(void *context, int64_t i, basin_error *error) {
    eval *b = context;
    if (!b->o->model) BASIN_TRY(take_split(b, i, error));
    for (int m = 0; m < b->models && !b->splits.stopped; m++) {
        bool same = m < b->first_rival && m > DETECTOR; /* the detector's run */
        if (!same && is_shown(b, m)) BASIN_TRY(run_model(b, m, i, error));
    }
    if (!b->splits.stopped && !b->o->model && !b->context) note_split(b, i);
    return BASIN_OK;
}

static basin_status evaluate(eval *b, basin_error *error) {
    options *o = b->o;
    basin_args_context_read(&o->args);
    o->network.split_train = o->ratio;
    o->network.split_val = (1 - o->ratio) / 3;
    BASIN_TRY(basin_nodes_use_open(&b->use, &o->args, o->model, 0, error));
    BASIN_TRY(o->context.on ? prepare_context(b, error) : prepare(b, error));
    BASIN_TRY(BASIN_NEW(&b->part, b->use.network->nodes, "an evaluation", error));
    BASIN_TRY(BASIN_NEW(&b->figures, b->models * b->splits.runs, "an evaluation", error));
    BASIN_TRY(BASIN_NEW(&b->splits.value, b->splits.runs, "an evaluation", error));
    b->seed = (int64_t)seed_of(o);
    return basin_splits_run(&b->splits, error);
}

/* ---- a saved model, evaluated with labels ---- */

/* What has no effect with a model and is not in the table of options; NULL: nothing. */
static const char *idle(options *o) {
    if (basin_training_settings_given(&o->args, NULL)) return "a training setting";
    return strcmp(o->split, "ratio") ? NULL : "--split ratio";
}

static void note_judged(basin_record *r, const eval *b) {
    if (b->o->unseen)
        basin_record_note(r, "%lld that took part in training are left out",
                          (long long)b->left_out);
    else
        note_seen(r, b->reached.trained_on, b->reached.validated_on, "epoch and threshold",
                  " (--unseen leaves them out)");
}

#define F(member, ...) BASIN_FIELD(basin_nodes_budget, member, __VA_ARGS__)
static const basin_field budget_fields[] = {F(alerts, "alerts"),
                                            F(precision, "precision", "%.2f", 100),
                                            F(recall, "recall", "%.2f", 100),
                                            {0}};
#undef F

static void put_figures(basin_record *r, const basin_nodes_figures *f, bool probable) {
    if (f->trained_on >= 0)
        basin_record_fields(r, ".trained_on=%lld;.validated_on=%lld", (long long)f->trained_on,
                            (long long)f->validated_on);
    basin_record_figures(r, f, probable);
    basin_record_rows(r, "budgets", NULL, budget_fields, f->budget, f->budgets, sizeof *f->budget);
    if (probable) basin_record_reliability(r, &f->reliability, "probabilities and frequencies:");
}

static void put_backtest(basin_record *r, const eval *b) {
    const basin_nodes_figures *f = &b->reached;
    const basin_nodes_card *card = b->use.info ? b->use.info->card : NULL;
    basin_record_text(r, "model", b->o->model);
    basin_record_fields(r, "data=%s;part=%s", b->use.network->path, b->judged);
    if (b->o->unseen) basin_record_integer(r, ".left_out", b->left_out);
    basin_record_fields(r, "nodes=%lld;anomalous=%lld", (long long)f->nodes,
                        (long long)f->anomalous);
    if (card)
        basin_record_note(r, "trained %s on %s, %lld labels, %.2f %% anomalous (here %.2f %%)",
                          card->date, card->data, (long long)card->trained_on,
                          100 * card->base_rate, 100 * (double)f->anomalous / (double)f->nodes);
    note_judged(r, b);
    if (b->o->threshold_for) basin_record_expected(r, &b->expected, b->o->threshold_for);
    put_figures(r, f, f->reliability.log_loss > 0); /* else energies, without a threshold */
}

/* A goal in alerts counts the evaluated nodes. */
static basin_status choose_threshold(eval *b, basin_error *error) {
    int64_t count = 0;
    BASIN_SCRATCH(double, judged, b->use.network->nodes, "a back-test", error);
    for (int64_t i = 0; i < b->use.network->nodes; i++)
        if (b->part[i] == BASIN_SPLIT_TEST) judged[count++] = b->scores[i];
    return basin_nodes_threshold_for(&b->expected, b->use.model, b->o->threshold_for, judged, count,
                                     error);
}

static basin_status backtest(eval *b, basin_error *error) {
    options *o = b->o;
    basin_nodes_use *u = &b->use;
    BASIN_TRY(basin_nodes_use_open(u, &o->args, o->model, 0, error));
    int64_t nodes = u->network->nodes;
    b->splits.runs = 1;
    BASIN_TRY(BASIN_NEW(&b->scores, nodes, "a back-test", error));
    BASIN_TRY(BASIN_NEW(&b->part, nodes, "a back-test", error));
    BASIN_TRY(choose_judged(b, error));
    BASIN_TRY(basin_nodes_predict(b->scores, u->model, u->network, &u->how, error));
    b->expected.size = sizeof b->expected;
    b->expected.threshold = u->info->threshold;
    if (o->threshold_for) BASIN_TRY(choose_threshold(b, error));
    return basin_nodes_backtest(&b->reached, u->model, u->network, b->scores, b->part,
                                BASIN_SPLIT_TEST, b->expected.threshold, error);
}

/* ---- the commands ---- */

static bool is_backtest(const options *o) { return !o->table.classes && o->model; }

/* Checks what the conditions of the table cannot express. */
static basin_status check_eval(void *context, basin_error *error) {
    eval *b = context;
    options *o = b->o;
    b->classes = basin_args_classes(&o->args);
    if (b->classes) o->split_seed = -1; /* it has no such option */
    if (b->classes && o->model && basin_training_settings_given(&o->args, NULL))
        return basin_usage(error, "a training setting has no effect with --model, which trains "
                                  "nothing");
    if (o->context.on) BASIN_TRY(basin_labels_parse(b->labels, o->labels, error));
    if (is_backtest(o) && idle(o))
        return basin_usage(error, "%s has no effect with --model, which trains nothing", idle(o));
    return basin_goal_check(o->threshold_for, error);
}

static basin_status work(void *context, basin_error *error) {
    eval *b = context;
    b->splits = (basin_splits){.o = &b->o->args, .job = b, .run = run_split, .figure = figure};
    return is_backtest(b->o) ? backtest(b, error) : evaluate(b, error);
}

static void put_eval(basin_record *r, const void *context) {
    const eval *b = context;
    if (is_backtest(b->o))
        put_backtest(r, b);
    else
        put_result(r, b);
}

static void close_eval(void *context) {
    eval *b = context;
    BASIN_FREE(b->part, b->figures, b->splits.value, b->scores);
    basin_context_close(b->context);
    basin_network_close(b->bare);
    basin_network_close(b->past);
    free(b->past_part);
    basin_network_close(b->shuffled);
    basin_nodes_use_close(&b->use);
}

#define EVALUATES                                                                                  \
    BASIN_USES(eval, .prepare = check_eval, .work = work, .print = put_eval, .close = close_eval)

const basin_command basin_command_anomaly_eval = {BASIN_COMMAND("anomaly eval", anomaly_table),
                                                  EVALUATES, .task = "anomaly"};

const basin_command basin_command_node_eval = {BASIN_COMMAND("node eval", node_table), EVALUATES,
                                               .task = "node"};
