/* basin graph train and cv, and what the commands of graphs share; see graph.h. */
#include "program/graph.h"

#include "base/file.h"
#include "tasks/graphs/set/molecule.h"

/* Whether labels of stereochemistry in a set that is not a table fit the settings. */
static basin_status check_stereo(const basin_graphset *set, const basin_args *o, const char *path,
                                 bool stereo, basin_error *error) {
    bool marked = false, molecules = basin_graph_is_molecules(set);
    for (int64_t n = 0; n < set->nodes && molecules; n++)
        marked = marked || set->node_label[n * set->node_labels + 3] > 1;
    for (int64_t e = 0; e < set->edges && molecules; e++)
        marked = marked || set->edge_label[e * set->edge_labels] > 4;
    if (stereo && !marked)
        basin_note(o, "%s has no stereochemistry; graph convert --stereo keeps it", path);
    if (stereo || !marked) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s has labels of stereochemistry; the setting stereo must be on", path);
}

basin_status basin_graph_read(basin_graphset *set, const basin_args *o,
                              const basin_graph_reading *reading, const char *path,
                              const char *target, const basin_settings *settings,
                              basin_error *error) {
    double stereo = 0, as_is = 0;
    if (settings) BASIN_TRY(basin_settings_get_number(&stereo, settings, "stereo", error));
    if (settings) BASIN_TRY(basin_settings_get_number(&as_is, settings, "as_is", error));
    /* The words of a model's classes follow the name of its column. */
    size_t named = target && reading->target ? strlen(reading->target) : 0;
    bool words = named && !strncmp(target, reading->target, named) && target[named] == '\n';
    bool trains = !target && !reading->part; /* or converts */
    basin_graphset_options options = {.smiles = reading->smiles, .id = o->table.id};
    options.stereo = stereo > 0 || reading->stereo, options.values = reading->values;
    options.target = reading->target && !words ? reading->target : target;
    options.as_is = as_is > 0 || reading->as_is;
    options.bare = target && !*target;
    options.merge = reading->replicates && !strcmp(reading->replicates, "mean");
    bool table = basin_molecules_are_there(path, &options);
    const char *idle = table                              ? NULL
                       : reading->target && !options.bare ? "target"
                       : reading->smiles                  ? "smiles"
                       : o->table.id                      ? "id"
                       : trains && reading->values        ? "values"
                       : trains && reading->stereo        ? "stereo"
                       : trains && reading->as_is         ? "as-is"
                       : options.merge                    ? "replicates"
                                                          : NULL;
    if (idle)
        return basin_usage(error, "--%s applies to tables of molecules; %s is not one", idle, path);
    if (table && !options.target)
        return basin_usage(error, "%s is a table of molecules; --target names the columns to learn",
                           path);
    BASIN_TRY(basin_graphset_read(set, path, &options, error));
    for (const char *at = set->note; at && *at;) {
        int length = (int)strcspn(at, "\n");
        basin_note(o, "%s: %.*s", path, length, at);
        at += length + 1;
    }
    return table || !settings ? BASIN_OK : check_stereo(set, o, path, stereo > 0, error);
}

#define F(member, ...) BASIN_FIELD(basin_graphs_measures, member, __VA_ARGS__)
#define RANKING F(auroc, "?auroc", "%.4f"), F(auprc, "?auprc", "%.4f")
#define SETS F(coverage, "?coverage", "%.4f"), F(width, "?set_size", "%.4g")
/* For classes, for values that are yes or no, and for others. */
static const basin_field measure_fields[3][8] = {
    {RANKING, F(accuracy, "accuracy", "%.2f %%"),
     F(balanced, "balanced_accuracy|class-averaged", "%.2f %%"), F(loss, "cross_entropy", "%.4f"),
     SETS},
    {RANKING, F(loss, "cross_entropy", "%.4f"), SETS},
    {F(loss, "mae", "%.4f"), F(deviation, "rmse", "%.4f"), F(r_squared, "?r2", "%.4f"),
     F(coverage, "?coverage", "%.4f"), F(width, "?interval_width", "%.4g")},
};
#undef F

void basin_record_measures(basin_record *r, const char *key, const basin_graphs_measures *m,
                           basin_graphs_target target, bool items) {
    bool values = target == BASIN_GRAPHS_VALUES;
    if (key) basin_record_object(r, key);
    if (items)
        basin_record_integer(r, target == BASIN_GRAPHS_NODE_CLASSES ? "nodes" : "graphs", m->items);
    basin_record_struct(r, measure_fields[!values ? 0 : isnan(m->auroc) ? 2 : 1], m);
    if (key) basin_record_end(r);
}

void basin_record_parts(basin_record *r, const basin_graphs_evaluate_result *e,
                        basin_graphs_target target) {
    if (isnan(e->memory_only.merit)) return;
    basin_record_measures(r, "network_only|the network", &e->network_only, target, false);
    basin_record_measures(r, "memory_only|the memory", &e->memory_only, target, false);
}

static bool is_ranked(const basin_graphset *set) {
    return set->binary || (set->line && set->task == BASIN_GRAPHS_CLASSES && set->classes == 2);
}

/* The score that chooses epochs, or NaN; and its name. */
static double score_of(const basin_graphset *set, const basin_graphs_measures *m) {
    return is_ranked(set) ? m->auroc : fabs(m->merit);
}

static const char *score_name(const basin_graphset *set) {
    basin_graphs_target target = set->task;
    if (is_ranked(set)) return "AUROC";
    if (target == BASIN_GRAPHS_VALUES) return "mean absolute error";
    return target == BASIN_GRAPHS_NODE_CLASSES ? "class-averaged accuracy, percent"
                                               : "accuracy, percent";
}

/* Folds by --index or --split. */
static basin_status divide(basin_folds *folds, const basin_graph_reading *reading,
                           const basin_graphset *set, int64_t number, double inner, uint64_t seed,
                           basin_error *error) {
    basin_folds_options o = {.count = set->graphs, .folds = number, .inner = inner, .seed = seed};
    o.path = reading->index, o.group = set->scaffold;
    o.kind = reading->index                        ? BASIN_FOLDS_READ
             : !strcmp(reading->split, "scaffold") ? BASIN_FOLDS_GROUPED
             : !strcmp(reading->split, "time")     ? BASIN_FOLDS_ORDERED
                                                   : BASIN_FOLDS_STRATIFIED;
    if (set->task == BASIN_GRAPHS_CLASSES) o.class_of = set->class_of;
    BASIN_SCRATCH_RAW(int64_t, copy, set->graphs, "folds", error);
    if (o.kind == BASIN_FOLDS_GROUPED && !set->scaffold)
        return basin_usage(error, "--split scaffold needs a table of molecules");
    if (o.kind == BASIN_FOLDS_ORDERED && number > 1)
        return basin_usage(error, "--split time gives one split; use it with graph train");
    BASIN_TRY(basin_graphset_copies(copy, set, error));
    o.copy = copy;
    return basin_folds_new(folds, &o, error);
}

basin_status basin_graph_fold(const basin_fold **fold, basin_folds *folds,
                              const basin_graph_reading *reading, const basin_graphset *set,
                              double inner, uint64_t seed, basin_error *error) {
    *fold = NULL;
    if (!reading->index && (!reading->split || !strcmp(reading->split, "random"))) return BASIN_OK;
    BASIN_TRY(divide(folds, reading, set, 1, inner, seed, error));
    if (reading->fold > folds->folds)
        return basin_usage(error, "--fold %lld of %lld", (long long)reading->fold,
                           (long long)folds->folds);
    *fold = &folds->fold[reading->fold - 1];
    return BASIN_OK;
}

/* ---- convert: a set that training reads at once; and what a set has ---- */

static void put_sizes(basin_record *r, const char *key, const int64_t *start, int64_t graphs,
                      int64_t ways) {
    int64_t min = INT64_MAX, max = 0;
    for (int64_t g = 0; g < graphs; g++) {
        int64_t own = (start[g + 1] - start[g]) / ways;
        min = own < min ? own : min, max = own > max ? own : max;
    }
    basin_record_object(r, key);
    basin_record_fields(r, "mean=%.2f;min=%lld;max=%lld",
                        (double)start[graphs] / (double)(ways * graphs), (long long)min,
                        (long long)max);
    basin_record_end(r);
}

static void put_labels(basin_record *r, const basin_graphset *s) {
    char name[100];
    basin_record_object(r, "classes");
    for (int64_t c = -1; c < s->classes && s->class_of; c++) {
        int64_t count = 0, all = s->task == BASIN_GRAPHS_NODE_CLASSES ? s->nodes : s->graphs;
        for (int64_t i = 0; i < all; i++) count += s->class_of[i] == c;
        if (c < 0 && !count) continue;
        if (c >= 0)
            basin_graph_name_column(name, (const char *const *)s->column, s->class_value, c);
        basin_record_integer(r, c < 0 ? "unknown" : name + 2, count);
    }
    basin_record_end(r);
    basin_record_table(r, "values", NULL);
    for (int64_t t = 0; t < s->targets && s->target; t++) {
        double sum = 0, squares = 0, n = 0;
        for (int64_t g = 0; g < s->graphs; g++) {
            double y = (double)s->target[g * s->targets + t];
            if (!isnan(y)) sum += y, squares += y * y, n++;
        }
        basin_record_row(r);
        basin_graph_name_column(name, (const char *const *)s->column, NULL, t);
        basin_record_text(r, "name|value", name);
        basin_record_fields(r, "known=%lld;mean=%.4g;deviation=%.4g", (long long)n, sum / n,
                            sqrt(fmax(squares / n - sum / n * sum / n, 0)));
    }
    basin_record_end(r);
}

void basin_record_set(basin_record *r, const void *context) {
    const basin_graphset *s = context;
    basin_record_fields(r, "data=%s;task=%s;graphs=%lld;nodes=%lld;edges|edges, both ways=%lld",
                        s->name,
                        s->class_of || s->target ? basin_graphs_target_name(s->task)
                                                 : "none (of molecules: --target)",
                        (long long)s->graphs, (long long)s->nodes, (long long)s->edges);
    if (s->graphs) put_sizes(r, "nodes_per_graph", s->node_start, s->graphs, 1);
    if (s->graphs) put_sizes(r, "edges_per_graph", s->edge_start, s->graphs, 2);
    basin_record_fields(
        r, "node_labels=%lld;node_attributes=%lld;edge_labels=%lld;edge_attributes=%lld",
        (long long)s->node_labels, (long long)s->node_attributes, (long long)s->edge_labels,
        (long long)s->edge_attributes);
    if (s->split[0]) {
        basin_record_object(r, "split");
        basin_record_fields(r, "train=%lld;validation=%lld;test=%lld", (long long)s->split[0],
                            (long long)s->split[1], (long long)s->split[2]);
        basin_record_end(r);
    }
    put_labels(r, s);
}

typedef struct convert_options {
    BASIN_ARGS;
    basin_graph_reading reading;
} convert_options;
#define OPTIONS convert_options

static const basin_option convert_table[] = {
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,
    BASIN_GRAPH_OPTION_VALUES,
    BASIN_FLAG(reading.stereo, "stereo"),
    BASIN_FLAG(reading.as_is, "as-is"),
    BASIN_GRAPH_OPTION_REPLICATES,
    BASIN_OPTIONS_LAST,
};

static basin_status convert(void *context, basin_error *error) {
    convert_options *o = context;
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
    basin_graphset_options named = {.smiles = o->reading.smiles};
    bool same, table = basin_molecules_are_there(o->operand[0], &named);
    if (basin_molecules_are_there(o->operand[1], NULL))
        return basin_usage(error,
                           "'%s' comes last, where the file to write is expected: a packed "
                           "set, NAME.safetensors",
                           o->operand[1]);
    BASIN_TRY(basin_file_same(&same, o->operand[0], o->operand[1], error));
    if (same) return basin_usage(error, "%s would overwrite itself", o->operand[0]);
    BASIN_TRY(basin_graph_read(&set, &o->args, &o->reading, o->operand[0],
                               table && !o->reading.target ? "" : NULL, NULL, error));
    BASIN_TRY(basin_graphset_write(o->operand[1], &set, error));
    return o->quiet && !o->json ? BASIN_OK
                                : basin_record_print(o->json, basin_record_set, &set, error);
}

const basin_command basin_command_graph_convert = {BASIN_COMMAND("graph convert", convert_table),
                                                   .run = convert};

/* ---- train ---- */

#undef OPTIONS
typedef struct train_options {
    BASIN_ARGS;
    basin_graph_reading reading;
    int64_t limit;
    double validation;
} train_options;
#define OPTIONS train_options

static const basin_option train_table[] = {
    BASIN_REAL(validation, "validation", "X", 0, 0.5, .initial = 0.1),
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,
    BASIN_GRAPH_OPTION_VALUES,
    BASIN_GRAPH_OPTION_REPLICATES,
    BASIN_INTEGER(limit, "limit", "N", 0, 1e15, .more = true),
    BASIN_GRAPH_OPTIONS_SPLIT,
    BASIN_GRAPH_OPTION_FOLD,
    BASIN_TRAIN_OPTIONS("default"),
    BASIN_OPTIONS_END,
};

static basin_status train(basin_train_job *job, basin_error *error) {
    train_options *o = (void *)job->o;
    basin_graphs_model *model = NULL;
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
    BASIN_TRY(
        basin_graph_read(&set, &o->args, &o->reading, o->operand[0], NULL, o->settings, error));
    basin_graphs_train_data data = {
        .set = &set, .path = o->operand[0], .hold_out = o->validation, .limit = o->limit};
    BASIN_AT_EXIT(basin_folds_free) basin_folds folds = {0};
    const basin_fold *f;
    double seed;
    BASIN_TRY(basin_settings_get_number(&seed, o->settings, "seed", error));
    BASIN_TRY(
        basin_graph_fold(&f, &folds, &o->reading, &set, o->validation, (uint64_t)seed, error));
    bool values = set.task == BASIN_GRAPHS_VALUES && !set.binary; /* have the split's own part */
    bool scaffolds = f && !o->reading.index && !strcmp(o->reading.split, "scaffold") && !values;
    if (f) data.graph = f->item[0], data.graphs = f->count[0];
    if (scaffolds) { /* parts for validation are drawn from both, by whole scaffolds */
        memcpy(f->item[0] + f->count[0], f->item[1], (size_t)f->count[1] * sizeof **f->item);
        data.graphs += f->count[1], data.group = set.scaffold;
    } else if (f) {
        data.validation = f->item[1], data.validations = f->count[1];
    }
    BASIN_TRY(basin_graphs_train(&model, &job->outcome, o->settings, &data, &o->training, error));
    job->model = model;
    job->things = "graphs", job->count = job->outcome.items;
    if (!f || job->outcome.stopped) return BASIN_OK;
    basin_graphs_data test = {
        .set = &set, .path = o->operand[0], .graph = f->item[2], .graphs = f->count[2]};
    basin_graphs_evaluate_result *tested; /* of the test graphs of the split */
    BASIN_TRY(BASIN_NEW(&tested, 1, "measures", error));
    job->more = tested;
    return basin_graphs_evaluate(tested, model, &test, NULL, error);
}

static void put_training(basin_record *r, const basin_train_job *job) {
    basin_graphs_target target = basin_graphs_get_info(job->model)->target;
    const basin_graphs_evaluate_result *tested = job->more;
    const basin_score *s = &job->outcome.best;
    basin_graphs_measures measures = {.r_squared = NAN,
                                      .coverage = NAN,
                                      .width = NAN,
                                      .accuracy = basin_score_get(s, "validation_accuracy"),
                                      .balanced = basin_score_get(s, "validation_balanced"),
                                      .loss = basin_score_get(s, "validation_loss"),
                                      .deviation = basin_score_get(s, "validation_deviation"),
                                      .auroc = basin_score_get(s, "validation_auroc"),
                                      .auprc = basin_score_get(s, "validation_auprc")};
    basin_record_fields(r, "data=%s;task=%s", job->o->operand[0], basin_graphs_target_name(target));
    if (s->measures) basin_record_measures(r, "validation", &measures, target, false);
    if (tested) basin_record_measures(r, "test", &tested->measures, target, true);
    if (tested) basin_record_parts(r, tested, target);
}

static void close_training(basin_train_job *job) {
    basin_graphs_close(job->model);
    free(job->more);
}

const basin_command basin_command_graph_train = {
    BASIN_COMMAND("graph train", train_table),
    BASIN_TRAINS("graphs", .train = train, .print = put_training, .close = close_training)};

/* ---- cv: how well a model does on graphs it has not seen, by cross-validation ---- */

#undef OPTIONS
typedef struct cv_options {
    BASIN_ARGS;
    basin_graph_reading reading;
    const char *protocol;
    int64_t folds, jobs;
} cv_options;
#define OPTIONS cv_options

static const basin_option cv_table[] = {
    BASIN_CHOICE(protocol, "protocol", "held-out|paper", .text = "held-out"),
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,
    BASIN_GRAPH_OPTION_VALUES,
    BASIN_GRAPH_OPTION_REPLICATES,
    BASIN_INTEGER(folds, "folds", "N", 2, 1 << 20,
                  .needs = "protocol=held-out index=", .initial = 10),
    BASIN_GRAPH_OPTIONS_SPLIT,
    BASIN_INTEGER(reading.fold, "fold", "N", 0, 1 << 20, .needs = "protocol=held-out",
                  .more = true),
    BASIN_INTEGER(jobs, "jobs", "N", 0, 1024, .more = true),
    BASIN_OPTIONS_START("default"),
    BASIN_OPTION_BACKEND,
    BASIN_OPTION_PRODUCTS,
    BASIN_OPTION_THREADS,
    BASIN_OPTIONS_LAST,
};

typedef struct job {
    cv_options *o;
    bool paper; /* the protocol */
    int64_t seed, members;
    basin_graphset set;
    int64_t folds;
    basin_graphs_cv_result *result; /* [folds] */
    basin_splits splits;            /* one run, each figure that of a fold */
} job;

static const double INNER = 0.1; /* of the other folds, which chooses the epoch */

/* The paper's protocol trains and tests on all graphs: one fold. */
static basin_status run_folds(void *context, int64_t run, basin_error *error) {
    static const basin_graph_reading whole = {.split = "random"};
    job *j = context;
    cv_options *o = j->o;
    (void)run; /* there is one */
    BASIN_AT_EXIT(basin_folds_free) basin_folds folds = {0};
    BASIN_TRY(divide(&folds, j->paper ? &whole : &o->reading, &j->set, j->paper ? 1 : o->folds,
                     j->paper ? 0 : INNER, (uint64_t)j->seed, error));
    j->folds = folds.folds;
    BASIN_TRY(BASIN_NEW(&j->splits.value, j->folds, "folds", error));
    BASIN_TRY(BASIN_NEW(&j->result, j->folds, "folds", error));
    /* By default the streams of a process share eight queues of a GPU, and in a queue one waits for
     * the other. The driver reads this when the device is opened. */
    if (!strcmp(o->backend, "cuda")) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    basin_graphs_cv_options spec = {
        .fold = o->reading.fold, .members = j->members, .jobs = o->jobs};
    spec.backend = o->backend, spec.threads = (int)o->threads;
    spec.products = basin_option_products(o->products), spec.watch = &o->watch.watch;
    BASIN_TRY(basin_graphs_cross_validate(j->result, o->settings, &j->set, &folds, &spec, error));
    basin_cli_watch_end(&o->watch);
    return BASIN_OK;
}

enum { TEST, VALIDATION, NETWORK, MEMORY }; /* the rows */

/* The score of a fold, if it was run and has one. */
static bool figure(double *value, const void *context, int row, const char *measure, int64_t f) {
    (void)measure; /* there is one */
    const job *j = context;
    const basin_graphs_cv_result *r = &j->result[f];
    const basin_graphs_measures *m = row == TEST         ? &r->test
                                     : row == VALIDATION ? &r->validation
                                     : row == NETWORK    ? &r->network_only
                                                         : &r->memory_only;
    *value = score_of(&j->set, m);
    return r->done && (row != VALIDATION || r->validations) && !isnan(m->merit) && !isnan(*value);
}

static basin_spread spread_of(const job *j, int row) {
    return basin_splits_spread(&j->splits, row, NULL, 0, j->folds);
}

/* Test graphs over the others. */
static double overlap_of(const job *j) {
    double tests = 0, trains = 0;
    for (int64_t f = 0; f < j->folds; f++) {
        tests += (double)j->result[f].tests;
        trains += (double)(j->result[f].trains + j->result[f].validations);
    }
    return trains > 0 ? tests / trains : 0;
}

#define F(member, ...) BASIN_FIELD(basin_graphs_cv_result, member, __VA_ARGS__)
static const basin_field fold_fields[] = {F(trains, "train_graphs|train"),
                                          F(validations, "|validation"),
                                          F(tests, "|test"),
                                          F(epochs, ".epochs"),
                                          F(best_epoch, "best_epoch|epoch"),
                                          F(seconds, ".seconds"),
                                          F(epoch_seconds, ".epoch_seconds"),
                                          F(memory, ".memory_bytes"),
                                          {0}};
#undef F

static void put_fold(basin_record *r, const job *j, int64_t number) {
    const basin_graphs_cv_result *f = &j->result[number];
    basin_record_row(r);
    basin_record_integer(r, "fold", number + 1);
    basin_record_struct(r, fold_fields, f);
    if (!isnan(f->memory_only.merit))
        basin_record_number(r, "memory_share|share", "%.2g", f->memory_share);
    basin_record_number(r, "|validation score", "%.4g",
                        f->validations ? score_of(&j->set, &f->validation) : NAN);
    basin_record_number(r, j->paper ? "|training score" : "|test score", "%.4g",
                        score_of(&j->set, &f->test));
    if (f->validations) basin_record_measures(r, "validation", &f->validation, j->set.task, true);
    basin_record_measures(r, j->paper ? "training" : "test", &f->test, j->set.task, true);
}

static void put_statistics(basin_record *r, const job *j) {
    basin_spread s = spread_of(j, TEST);
    basin_spread v = spread_of(j, VALIDATION);
    basin_spread n = spread_of(j, NETWORK);
    basin_spread m = spread_of(j, MEMORY);
    s.interval[0] = fmax(s.interval[0], 0); /* as no score is below 0, or above 1 or 100 % */
    if (j->set.task != BASIN_GRAPHS_VALUES || j->set.binary)
        s.interval[1] = fmin(s.interval[1], is_ranked(&j->set) ? 1 : 100);
    basin_record_number(r, j->paper ? "training_mean" : "test_mean", "%.4g", s.mean);
    if (j->paper) return;
    if (s.count > 1) basin_record_number(r, "test_deviation", "%.4g", s.deviation);
    if (s.has_interval) basin_record_interval(r, "test_interval_95", "%.4g", s.interval);
    if (v.count) /* else there were too few graphs to set any aside */
        basin_record_number(r, "validation_mean", "%.4g", v.mean);
    if (v.count > 1) basin_record_number(r, "validation_deviation", "%.4g", v.deviation);
    if (n.count) basin_record_number(r, "network_mean", "%.4g", n.mean);
    if (n.count > 1) basin_record_number(r, "network_deviation", "%.4g", n.deviation);
    if (m.count) basin_record_number(r, "memory_mean", "%.4g", m.mean);
    if (m.count > 1) basin_record_number(r, "memory_deviation", "%.4g", m.deviation);
}

/* All measures, means over the test folds that have them. */
static void put_means(basin_record *r, const job *j) {
    basin_graphs_measures mean = {0};
    const basin_field *end = (const basin_field *)(measure_fields + 3);
    for (const basin_field *f = measure_fields[0]; f < end; f++) {
        double sum = 0, folds = 0;
        for (int64_t i = 0; i < j->folds && f->key; i++) {
            double value = *(const double *)((const char *)&j->result[i].test + f->offset);
            if (j->result[i].done && !isnan(value)) sum += value, folds++;
        }
        if (f->key) *(double *)((char *)&mean + f->offset) = sum / folds;
    }
    basin_record_measures(r, j->paper ? "training_means|means" : "test_means|means", &mean,
                          j->set.task, false);
}

/* Limits of the figures, in words. */
static void note_limits(basin_record *r, const job *j) {
    int64_t unranked = 0;
    for (int64_t f = 0; f < j->folds; f++)
        unranked += j->result[f].done && isnan(score_of(&j->set, &j->result[f].test));
    if (j->paper)
        basin_record_note(r, "TRAINING score: the graphs it was trained on, as in the published "
                             "notebooks, not unseen graphs");
    else if (spread_of(j, TEST).count > 1)
        basin_record_note(r, "population deviation over folds; the 95 %% interval of the mean "
                             "(Student's t) allows for training graphs that folds share");
    if (unranked)
        basin_record_note(r, "%lld test folds have only one class, hence no AUROC: left out",
                          (long long)unranked);
    if (j->members > 1 && !j->paper)
        basin_record_note(r, "mean of %lld models; graph train --members %lld trains as many",
                          (long long)j->members, (long long)j->members);
}

static void put_cv(basin_record *r, const void *context) {
    const job *j = context;
    const cv_options *o = j->o;
    bool pooled = j->set.task == BASIN_GRAPHS_VALUES && j->set.targets > 1 && !j->set.binary;
    basin_record_fields(
        r, "data=%s;task=%s;protocol=%s;.held_out=%d;preset=%s;members=%lld;seed=%lld", j->set.name,
        basin_graphs_target_name(j->set.task),
        j->paper                                                   ? "paper (training graphs)"
        : o->reading.index                                         ? "held-out, given folds"
        : j->set.scaffold && !strcmp(o->reading.split, "scaffold") ? "held-out, folds of scaffolds"
                                                                   : "held-out, stratified folds",
        !j->paper, o->start.preset, (long long)j->members, (long long)j->seed);
    basin_record_text(r, "score",
                      pooled
                          ? "mean absolute error, each value in units of its deviation in training"
                          : score_name(&j->set));
    put_statistics(r, j);
    put_means(r, j);
    basin_record_table(r, "folds", NULL);
    for (int64_t f = 0; f < j->folds; f++)
        if (j->result[f].done) put_fold(r, j, f);
    basin_record_end(r);
    note_limits(r, j);
}

/* The set is read before signals are caught: they end that at once. */
static basin_status prepare_cv(void *context, basin_error *error) {
    job *j = context;
    double seed, members;
    BASIN_TRY(basin_settings_check(j->o->settings, error));
    BASIN_TRY(basin_option_products_check(&j->o->args, error));
    BASIN_TRY(basin_settings_get_number(&seed, j->o->settings, "seed", error));
    BASIN_TRY(basin_settings_get_number(&members, j->o->settings, "members", error));
    j->seed = (int64_t)seed;
    j->paper = !strcmp(j->o->protocol, "paper");
    BASIN_TRY(basin_graph_read(&j->set, &j->o->args, &j->o->reading, j->o->operand[0], NULL,
                               j->o->settings, error));
    j->members = members > 0 ? (int64_t)members
                 : !j->set.line || (j->set.task == BASIN_GRAPHS_VALUES && !j->set.binary) ? 3
                                                                                          : 5;
    return BASIN_OK;
}

static basin_status cross_validate(void *context, basin_error *error) {
    job *j = context;
    j->splits =
        (basin_splits){.o = &j->o->args, .runs = 1, .job = j, .run = run_folds, .figure = figure};
    BASIN_TRY(basin_splits_run(&j->splits, error));
    j->splits.overlap = overlap_of(j);
    return BASIN_OK;
}

static void close_cv(void *context) {
    job *j = context;
    BASIN_FREE(j->result, j->splits.value);
    basin_graphset_free(&j->set);
}

const basin_command basin_command_graph_cv = {BASIN_COMMAND("graph cv", cv_table),
                                              BASIN_USES(job, .prepare = prepare_cv,
                                                         .work = cross_validate, .print = put_cv,
                                                         .close = close_cv, .no_backend = true),
                                              .task = "graphs"};
