/* basin graph train, predict and eval, and what the commands of graphs share; see graph.h. */
#include "cli/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "basin/metrics.h"

/* ---- shared ---- */

const char *basin_graph_cache(const basin_args *args, char *text, size_t size) {
    if (args->cache) return strcmp(args->cache, "none") ? args->cache : NULL;
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (base && *base)
        n = snprintf(text, size, "%s", base);
    else if (home && *home)
        n = snprintf(text, size, "%s/.cache", home);
    if (n < 0 || (size_t)n + 7 > size) return NULL;
    mkdir(text, 0777);
    memcpy(text + n, "/basin", 7);
    return text;
}

basin_status basin_graph_use_open(basin_graph_use *use, basin_args *args, const char *part,
                                  bool labels, basin_error *error) {
    const char *data = args->operand[1];
    BASIN_TRY(basin_session_open(args, error));
    BASIN_TRY(basin_graphs_open(&use->model, args->operand[0], args->compute, error));
    use->about = basin_graphs_about(use->model);
    BASIN_TRY((labels ? basin_graphset_read : basin_graphset_read_bare)(&use->set, data, error));
    BASIN_TRY(
        basin_graphs_part(&use->list, &use->count, &use->set, part ? part : args->part, error));
    use->data =
        (basin_graphs_data){.set = &use->set,
                            .path = data,
                            .graph = use->list,
                            .graphs = use->count,
                            .cache = basin_graph_cache(args, use->folder, sizeof use->folder)};
    basin_note_gamma(args, args->operand[0]);
    return BASIN_OK;
}

void basin_graph_use_note(basin_graph_use *use, const basin_args *args) {
    static const char *const of[2] = {"nodes", "edges"};
    char text[400];
    int64_t unknown[2];
    bool known = !basin_graphs_unknown_labels(unknown, use->model, &use->data, NULL);
    for (int i = 0; i < 2 && known; i++)
        if (unknown[i])
            basin_note(args,
                       "%s with a label beyond those of training, which the model treats as "
                       "unlabelled: %lld",
                       of[i], (long long)unknown[i]);
    basin_convergence rests = basin_graphs_take_convergence(use->model);
    if (basin_convergence_tell(text, sizeof text, &rests)) basin_note(args, "%s", text);
}

void basin_graph_use_close(basin_graph_use *use) {
    free(use->list);
    basin_graphset_free(&use->set);
    basin_graphs_close(use->model);
}

void basin_record_measures(basin_record *r, const basin_graphs_measures *measures,
                           basin_graphs_target target, bool items) {
    if (items)
        basin_record_integer(r, target == BASIN_NODE_CLASSES ? "nodes" : "graphs", measures->items);
    if (target == BASIN_GRAPHS_VALUES) {
        basin_record_number(r, "mae", "%.4f", measures->loss);
        basin_record_number(r, "rmse", "%.4f", measures->deviation);
    } else {
        basin_record_number(r, "accuracy", "%.2f %%", measures->accuracy);
        basin_record_number(r, "balanced_accuracy|class-averaged", "%.2f %%", measures->balanced);
        basin_record_number(r, "cross_entropy", "%.4f", measures->loss);
    }
}

/* Where several values are pooled: in which units. Else "". */
static const char *units_of(const basin_graphs_info *about) {
    char text[8];
    if (about->target != BASIN_GRAPHS_VALUES || about->columns < 2 ||
        basin_settings_get(text, sizeof text, about->settings, "standardise", NULL))
        return "";
    return strcmp(text, "on") ? "all values pooled in their own units"
                              : "each value in units of its deviation in training";
}

const char *basin_graph_score_name(basin_graphs_target target) {
    if (target == BASIN_GRAPHS_VALUES) return "mean absolute error";
    return target == BASIN_NODE_CLASSES ? "class-averaged accuracy, percent" : "accuracy, percent";
}

/* ---- train ---- */

static const basin_option train_table[] = {
    BASIN_REAL(validation, "validation", "X", 0, 0.5,
               "A set without splits: this part of it, stratified, chooses the epoch; 0: the last "
               "epoch is kept.",
               .initial = 0.1),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e15,
                  "Train on at most N graphs, drawn by the seed; 0: all. Graphs for validation and "
                  "test stay as they are."),
    BASIN_TRAIN_OPTIONS("default"),
    BASIN_GRAPH_OPTION_CACHE,
    BASIN_OPTIONS_END,
};

static basin_status train(basin_train_job *job, basin_error *error) {
    basin_args *o = job->o;
    char text[4096];
    basin_graphs_model *model = NULL;
    basin_graphs_data data = {.path = o->operand[0],
                              .hold_out = o->validation,
                              .limit = o->limit,
                              .cache = basin_graph_cache(o, text, sizeof text)};
    basin_status status =
        basin_graphs_train(&model, &job->outcome, o->settings, &data, &o->training, error);
    job->model = model;
    job->things = "graphs", job->count = job->outcome.items;
    return status;
}

static void put_training(basin_record *r, const basin_train_job *job) {
    basin_graphs_target target = basin_graphs_about(job->model).target;
    const basin_score *s = &job->outcome.best;
    basin_graphs_measures measures = {.accuracy = basin_score_get(s, "validation_accuracy"),
                                      .balanced = basin_score_get(s, "validation_balanced"),
                                      .loss = basin_score_get(s, "validation_loss"),
                                      .deviation = basin_score_get(s, "validation_deviation")};
    basin_record_text(r, "data", job->o->operand[0]);
    basin_record_text(r, "task", basin_graphs_target_name(target));
    if (!s->measures) return;
    basin_record_object(r, "validation");
    basin_record_measures(r, &measures, target, false);
    basin_record_end(r);
}

static void close_training(basin_train_job *job) { basin_graphs_close(job->model); }

static const basin_train_task training = {
    .train = train, .print = put_training, .close = close_training};

const basin_command basin_command_graph_train = {"graph train", train_table,
                                                 BASIN_TRAINS("graphs", &training)};

/* ---- predict ---- */

static const basin_option predict_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", "The CSV file; without it standard output.",
               .writes = true),
    BASIN_TEXT(embeddings, 0, "embeddings", "FILE",
               "Also write what the head reads of each graph, or node: embedding [rows, R] and the "
               "numbers of graph and node, as npz or safetensors.",
               .writes = true),
    BASIN_FLAG(energies, "energies",
               "With --embeddings: also each row's energy [rows, 3] in attention, memories and "
               "couplings.",
               .needs = "embeddings!="),
    BASIN_GRAPH_OPTIONS,
    BASIN_OPTION_QUIET,
    BASIN_OPTIONS_END,
};

typedef struct prediction {
    basin_args *o;
    basin_graph_use use;
    int64_t rows, columns;
    float *output;         /* [rows, columns] */
    int64_t *class_value;  /* [rows] */
    int64_t *graph, *node; /* [rows] what each row is; they belong to class_value */
} prediction;

static void put_outputs(basin_record *r, const prediction *j, int64_t row) {
    const int64_t *class_value = j->use.about.class_value;
    char key[40];
    if (class_value) basin_record_integer(r, "class", j->class_value[row]);
    for (int64_t c = 0; c < j->columns; c++) {
        snprintf(key, sizeof key, class_value ? "p_%lld" : "value%lld",
                 class_value ? (long long)class_value[c] : (long long)c + 1);
        basin_record_number(r, key, "%g", (double)j->output[row * j->columns + c]);
    }
}

static void put_predictions(basin_record *r, const void *context) {
    const prediction *j = context;
    basin_record_table(r, "graphs", NULL);
    for (int64_t row = 0; row < j->rows; row++) {
        basin_record_row(r);
        basin_record_integer(r, "graph", j->graph[row]);
        if (j->use.about.target == BASIN_NODE_CLASSES)
            basin_record_integer(r, "node", j->node[row]);
        put_outputs(r, j, row);
    }
    basin_record_end(r);
}

/* ---- embeddings ---- */

static basin_status add(basin_bundle *bundle, const char *name, void *data, basin_dtype dtype,
                        basin_shape shape, basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(data, dtype, shape);
    return basin_bundle_add(bundle, name, &tensor, error);
}

static void free_bundle(basin_bundle **bundle) { basin_bundle_free(*bundle); }

/* Which graph, and which node of it, each row is. */
static void number_rows(prediction *j) {
    const basin_graph_use *u = &j->use;
    bool nodes = u->about.target == BASIN_NODE_CLASSES;
    for (int64_t i = 0, row = 0; i < u->count; i++) {
        int64_t rows =
            nodes ? (u->set.node_start[u->list[i] + 1] - u->set.node_start[u->list[i]]) : 1;
        for (int64_t n = 0; n < rows; n++, row++) j->graph[row] = u->list[i], j->node[row] = n;
    }
}

static basin_status write_embeddings(prediction *j, basin_error *error) {
    int64_t rows = j->rows, width = j->use.about.width;
    basin_args *o = j->o;
    BASIN_FREE_AT_EXIT float *embedding = NULL;
    BASIN_FREE_AT_EXIT float *energy = NULL;
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle = NULL;
    BASIN_TRY(BASIN_NEW(&embedding, rows * width, "embeddings", error));
    BASIN_TRY(BASIN_NEW(&energy, rows * 3, "energies", error));
    BASIN_TRY(basin_bundle_new(&bundle, error));
    BASIN_TRY(basin_graphs_embed(embedding, o->energies ? energy : NULL, j->use.model, &j->use.data,
                                 error));
    BASIN_TRY(add(bundle, "graph", j->graph, BASIN_I64, BASIN_SHAPE(rows), error));
    if (j->use.about.target == BASIN_NODE_CLASSES)
        BASIN_TRY(add(bundle, "node", j->node, BASIN_I64, BASIN_SHAPE(rows), error));
    BASIN_TRY(add(bundle, "embedding", embedding, BASIN_F32, BASIN_SHAPE(rows, width), error));
    if (o->energies)
        BASIN_TRY(add(bundle, "energy", energy, BASIN_F32, BASIN_SHAPE(rows, 3), error));
    return basin_bundle_write(o->embeddings, bundle, error);
}

static void prediction_free(prediction *j) {
    free(j->output);
    free(j->class_value);
    basin_graph_use_close(&j->use);
}

static basin_status run_predict(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(prediction_free) prediction j = {.o = o};
    basin_graph_use *u = &j.use;
    BASIN_TRY(basin_graph_use_open(u, o, NULL, false, error));
    j.rows = basin_graphs_rows(u->model, &u->data);
    j.columns = u->about.columns;
    BASIN_TRY(BASIN_NEW(&j.output, j.rows * j.columns, "outputs", error));
    BASIN_TRY(BASIN_NEW(&j.class_value, 3 * j.rows, "outputs", error));
    j.graph = j.class_value + j.rows, j.node = j.graph + j.rows;
    number_rows(&j);
    BASIN_TRY(basin_graphs_predict(j.output, j.class_value, u->model, &u->data, error));
    basin_graph_use_note(u, o);
    if (o->embeddings) BASIN_TRY(write_embeddings(&j, error));
    return basin_record_write(o->output, BASIN_FORM_CSV, put_predictions, &j, error);
}

const basin_command basin_command_graph_predict = {"graph predict", predict_table,
                                                   .run = run_predict};

/* ---- eval: how well a model does on a set of graphs, whether it has seen them, and how much the
 * noise of its descent would change that ---- */

static const basin_option eval_table[] = {
    BASIN_FLAG(unseen, "unseen",
               "Score only the graphs that had no part in training, validation included."),
    BASIN_INTEGER(noisy, "noisy", "N", 0, 100000,
                  "Also evaluate N times with the noise of training left on, as the paper does: "
                  "how much noise changes the score of one model."),
    BASIN_GRAPH_OPTIONS,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

/* What noisy evaluations of one model came to. */
typedef struct spread {
    int64_t count;
    double mean, deviation, lowest, highest;
} spread;

typedef struct evaluation {
    basin_args *o;
    basin_graph_use use;
    basin_graphs_measures measures;
    basin_graphs_value *value; /* [columns] of a model of values */
    spread spread;
    bool known;      /* whether the model's file says what it has seen */
    int64_t count;   /* graphs before the unseen were chosen */
    int64_t seen[3]; /* of these, by basin_graphs_memory */
} evaluation;

static void keep_new(basin_graph_use *u, const basin_graphs_memory *memory) {
    int64_t kept = 0;
    for (int64_t i = 0; i < u->count; i++)
        if (memory[i] == BASIN_GRAPHS_NEW) u->list[kept++] = u->list[i];
    u->count = u->data.graphs = kept;
}

static basin_status look_back(evaluation *j, basin_error *error) {
    basin_graph_use *u = &j->use;
    BASIN_FREE_AT_EXIT basin_graphs_memory *memory = NULL;
    BASIN_TRY(BASIN_NEW(&memory, u->count, "a list of graphs", error));
    basin_status status = basin_graphs_seen(memory, u->model, &u->set, u->list, u->count, error);
    j->count = u->count;
    j->known = !status;
    for (int64_t i = 0; i < u->count && j->known; i++) j->seen[memory[i]]++;
    if (j->o->unseen && j->known) keep_new(u, memory);
    if (status && (j->o->unseen || status != BASIN_UNSUPPORTED)) return status;
    if (j->o->unseen && !u->count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the model has seen all %lld graphs",
                          u->set.name, (long long)j->count);
    return BASIN_OK;
}

static basin_status measure_spread(spread *s, basin_graph_use *u, int64_t count,
                                   basin_error *error) {
    BASIN_FREE_AT_EXIT basin_graphs_measures *measures = NULL;
    BASIN_FREE_AT_EXIT double *value = NULL;
    BASIN_TRY(BASIN_NEW(&measures, count, "evaluations", error));
    BASIN_TRY(BASIN_NEW(&value, count, "evaluations", error));
    basin_graphs_data data = u->data;
    data.noisy = count;
    BASIN_TRY(basin_graphs_score(measures, NULL, u->model, &data, error));
    for (int64_t i = 0; i < count; i++) {
        value[i] = fabs(measures[i].merit);
        if (!i || value[i] < s->lowest) s->lowest = value[i];
        if (!i || value[i] > s->highest) s->highest = value[i];
    }
    basin_mean_deviation(&s->mean, &s->deviation, value, count);
    s->count = count;
    return BASIN_OK;
}

static const char *part_of(const evaluation *j) {
    if (strcmp(j->o->part, "auto") != 0) return j->o->part;
    return j->use.set.split[2] ? "test" : "all";
}

static void put_spread(basin_record *r, const spread *s, basin_graphs_target target) {
    basin_record_object(r, "noisy|with noise");
    basin_record_text(r, ".of", "the noise of the descent in one model");
    basin_record_text(r, "score|", basin_graph_score_name(target));
    basin_record_integer(r, "evaluations", s->count);
    basin_record_number(r, "mean", "%.5g", s->mean);
    basin_record_number(r, "deviation", "%.2g", s->deviation);
    basin_record_number(r, "lowest", "%.5g", s->lowest);
    basin_record_number(r, "highest", "%.5g", s->highest);
    basin_record_end(r);
    basin_record_note(r, "the spread of noise in one model; it says nothing of other trainings, "
                         "seeds or splits");
}

static void put_values(basin_record *r, const evaluation *j) {
    basin_record_table(r, "values", NULL);
    for (int64_t c = 0; c < j->use.about.columns; c++) {
        const basin_graphs_value *v = &j->value[c];
        basin_record_row(r);
        basin_record_integer(r, "|value", c + 1);
        basin_record_integer(r, "known", v->known);
        basin_record_number(r, "|mean", "%.4g", v->mean);
        basin_record_number(r, "|deviation", "%.4g", v->spread);
        basin_record_number(r, "mae", "%.4g", v->error);
        basin_record_number(r, "rmse", "%.4g", v->deviation);
        basin_record_number(r, "r2", "%.4g", v->explained);
    }
    basin_record_end(r);
}

static void put_seen(basin_record *r, const evaluation *j) {
    int64_t trained = j->seen[BASIN_GRAPHS_TRAINED_ON];
    int64_t validated = j->seen[BASIN_GRAPHS_VALIDATED_ON];
    if (j->known) {
        basin_record_integer(r, ".trained_on", trained);
        basin_record_integer(r, ".validated_on", validated);
    }
    if (!j->known)
        basin_record_note(r, "the model's file does not say which graphs it was trained on: they "
                             "may be among these");
    else if (trained + validated)
        basin_record_note(r,
                          "%lld of these %lld graphs were trained on, %lld more chose the epoch%s",
                          (long long)trained, (long long)j->count, (long long)validated,
                          j->o->unseen ? "; they were left out"
                                       : ": this is no score of unseen graphs (--unseen)");
}

static void put_missing(basin_record *r, const evaluation *j) {
    int64_t missing = j->measures.missing;
    bool nodes = j->use.about.target == BASIN_NODE_CLASSES;
    if (j->value || missing) basin_record_integer(r, ".missing", missing);
    if (missing && j->value)
        basin_record_note(r, "%lld of %lld values are not known; they were left out",
                          (long long)missing,
                          (long long)(j->measures.items * j->use.about.columns));
    else if (missing)
        basin_record_note(r,
                          "%lld of %lld %s have a class that the model does not know; they were "
                          "left out",
                          (long long)missing, (long long)(missing + j->measures.items),
                          nodes ? "nodes" : "graphs");
}

static void put_evaluation(basin_record *r, const void *context) {
    const evaluation *j = context;
    basin_graphs_target target = j->use.about.target;
    basin_record_text(r, "model", j->o->operand[0]);
    basin_record_text(r, "data", j->use.set.name);
    basin_record_text(r, "task", basin_graphs_target_name(target));
    basin_record_text(r, "part", part_of(j));
    basin_record_measures(r, &j->measures, target, true);
    if (*units_of(&j->use.about)) basin_record_note(r, "(%s)", units_of(&j->use.about));
    put_seen(r, j);
    if (j->spread.count) put_spread(r, &j->spread, target);
    put_missing(r, j);
    if (j->value) put_values(r, j);
}

static void evaluation_free(evaluation *j) {
    free(j->value);
    basin_graph_use_close(&j->use);
}

static basin_status run_eval(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(evaluation_free) evaluation j = {.o = o};
    basin_graph_use *u = &j.use;
    BASIN_TRY(basin_graph_use_open(u, o, NULL, true, error));
    BASIN_TRY(look_back(&j, error));
    BASIN_TRY(basin_graphs_score(&j.measures, NULL, u->model, &u->data, error));
    basin_graph_use_note(u, o);
    if (u->about.target == BASIN_GRAPHS_VALUES) {
        BASIN_TRY(BASIN_NEW(&j.value, u->about.columns, "values", error));
        BASIN_TRY(basin_graphs_score(NULL, j.value, u->model, &u->data, error));
    }
    if (o->noisy) BASIN_TRY(measure_spread(&j.spread, u, o->noisy, error));
    return basin_record_print(o->json, put_evaluation, &j, error);
}

const basin_command basin_command_graph_eval = {"graph eval", eval_table, .run = run_eval};
