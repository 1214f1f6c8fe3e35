/* basin anomaly train and basin node train, and what the commands of nodes share; see nodes.h. */
#include "program/nodes.h"

/* ---- models and networks ---- */

basin_status basin_goal_check(const char *goal, basin_error *error) {
    basin_nodes_threshold_result none = {0};
    return goal ? basin_nodes_threshold_for(&none, NULL, goal, NULL, 0, error) : BASIN_OK;
}

bool basin_args_classes(basin_args *args) {
    args->network.unite = true;
    return args->table.classes = !strncmp(args->command->name, "node", 4);
}

int64_t basin_class_find(const basin_nodes_model *model, const char *name) {
    const char *own;
    for (int64_t c = 0; (own = basin_nodes_class(model, c)); c++)
        if (!strcmp(own, name)) return c;
    return -1;
}

basin_status basin_nodes_model_open(basin_nodes_use *use, basin_args *args, const char *model,
                                    basin_error *error) {
    bool classes = basin_args_classes(args);
    use->how = (basin_nodes_predict_options){.watch = &args->watch.watch,
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

void basin_nodes_use_close(basin_nodes_use *use) {
    basin_network_close(use->network);
    basin_nodes_close(use->model);
}

/* ---- printing ---- */

const char *basin_expected_print(char text[BASIN_EXPECTED_TEXT],
                                 const basin_nodes_threshold_result *t, const char *goal) {
    const double *p = t->precision, *f = t->recall, *a = t->alerts;
    int used = snprintf(text, BASIN_EXPECTED_TEXT, "threshold %.4f for %s", t->threshold, goal);
    if (isnan(*p)) return text;
    snprintf(
        text + used, BASIN_EXPECTED_TEXT - (size_t)used,
        "; expected on new accounts: precision %.0f %% (%.0f to %.0f), recall %.0f %% (%.0f to "
        "%.0f), %.3g alerts per 1,000 (%.3g to %.3g): 95 %% intervals from the validation nodes",
        100 * p[0], 100 * p[1], 100 * p[2], 100 * f[0], 100 * f[1], 100 * f[2], 1e3 * a[0],
        1e3 * a[1], 1e3 * a[2]);
    return text;
}

void basin_record_expected(basin_record *r, const basin_nodes_threshold_result *t,
                           const char *goal) {
    const double *value[] = {t->precision, t->recall, t->fpr, t->alerts};
    static const char *const name[] = {"precision", "recall", "false_positive_rate", "alerts"};
    char text[BASIN_EXPECTED_TEXT];
    basin_record_object(r, ".expected");
    basin_record_text(r, "goal", goal);
    for (int i = 0; i < 4; i++) basin_record_numbers(r, name[i], value[i], 3);
    basin_record_end(r);
    basin_record_note(r, "%s", basin_expected_print(text, t, goal));
}

void basin_record_reliability(basin_record *r, const basin_reliability *reliability,
                              const char *title) {
    basin_record_section(r, "reliability");
    basin_record_number(r, ".ece", "%g", reliability->ece);
    basin_record_table(r, "bins", title);
    for (int k = 0; k < BASIN_RELIABILITY_BINS; k++) {
        if (!reliability->bin[k].count) continue;
        basin_record_row(r);
        basin_record_fields(r, "from|probability from=%.1f;nodes=%lld;predicted=%.3f;observed=%.3f",
                            (double)k / BASIN_RELIABILITY_BINS,
                            (long long)reliability->bin[k].count, reliability->bin[k].predicted,
                            reliability->bin[k].observed);
    }
    basin_record_end(r);
    basin_record_number(r, "|expected calibration error", "%.4f", reliability->ece);
    basin_record_end(r);
}

#define F(member, ...) BASIN_FIELD(basin_nodes_figures, member, __VA_ARGS__)
static const basin_field ranking_fields[] = {F(auroc, "auroc", "%.2f %%", 100),
                                             F(auprc, "auprc", "%.2f %%", 100),
                                             F(recall_at_k, "recall_at_k", "%.2f %%", 100),
                                             {0}},
                         alert_fields[] = {F(threshold, "threshold", "%.4f"),
                                           F(alerts, "alerts"),
                                           F(precision, "precision", "%.2f %%", 100),
                                           F(recall, "recall", "%.2f %%", 100),
                                           F(f1, "f1", "%.2f %%", 100),
                                           F(macro_f1, "macro_f1", "%.2f %%", 100),
                                           F(reliability.ece, "ece", "%.2f %%", 100),
                                           {0}};
#undef F

void basin_record_figures(basin_record *r, const basin_nodes_figures *figures, bool alerts) {
    basin_record_struct(r, ranking_fields, figures);
    if (alerts) basin_record_struct(r, alert_fields, figures);
}

/* ---- train ---- */

typedef struct options {
    BASIN_ARGS;
    const char *threshold_for;
    int64_t split_number;
    double ratio, validation;
    bool reliability;
} options;
#define OPTIONS options

#define SPLIT_OPTIONS                                                                              \
    BASIN_REAL(ratio, "ratio", "X", 0, 0.95),                                                      \
        BASIN_INTEGER(split_number, "split", "N", 0, 1e9, .initial = -1, .more = true)

static const basin_option anomaly_table[] = {
    BASIN_REAL(validation, "validation", "X", 0, 0.3, .initial = -1),
    SPLIT_OPTIONS,
    BASIN_OPTION_SPLIT_TIME(NULL),
    BASIN_TEXT(threshold_for, 0, "threshold-for", "GOAL", .needs = "validation!=0", .more = true),
    BASIN_FLAG(reliability, "reliability", .needs = "validation!=0", .more = true),
    BASIN_TRAIN_OPTIONS("default"),
    BASIN_OPTIONS_NETWORK,
    BASIN_OPTIONS_END,
};

static const basin_option node_table[] = {
    BASIN_REAL(validation, "validation", "X", 0, 0.3, .initial = -1),
    SPLIT_OPTIONS,
    BASIN_TRAIN_OPTIONS("default"),
    BASIN_OPTIONS_NETWORK,
    BASIN_OPTIONS_END,
};

/* Options of splits that exclude each other and were both given; NULL: none. */
static const char *split_clash(options *o) {
    if (o->ratio > 0 && o->validation >= 0) return "--ratio and --validation";
    if (o->split_number >= 0 && o->ratio > 0) return "--split and --ratio";
    if (o->split_number >= 0 && o->validation >= 0) return "--split and --validation";
    if (o->split_number >= 0 && o->network.split_time) return "--split and --split-time";
    return NULL;
}

/* Settings that only validation nodes give an effect. */
static const char *const judged[] = {"calibrate", "evaluate", "patience", "select", "threshold"};

static basin_status prepare(basin_train_job *job, basin_error *error) {
    options *o = (void *)job->o;
    for (size_t i = 0; o->validation == 0 && i < sizeof judged / sizeof *judged; i++)
        if (basin_settings_given(o->settings, judged[i]))
            return basin_usage(error, "--%s has no effect with --validation 0", judged[i]);
    if (split_clash(o)) return basin_usage(error, "%s exclude each other", split_clash(o));
    return basin_goal_check(o->threshold_for, error);
}

/* Writes the model once more, with the threshold for the goal. */
static basin_status choose_threshold(basin_train_job *job, basin_error *error) {
    options *o = (void *)job->o;
    basin_nodes_model *model = job->model;
    const double *probability = model ? basin_nodes_get_info(model)->scores : NULL;
    if (!o->threshold_for || job->o->start.print_config || job->outcome.stopped ||
        job->outcome.finished_before)
        return BASIN_OK;
    if (!probability)
        return basin_fail(error, BASIN_BAD_VALUE, "--threshold-for %s needs validation nodes",
                          o->threshold_for);
    basin_nodes_threshold_result *t;
    BASIN_TRY(BASIN_NEW(&t, 1, "a threshold", error));
    job->more = t;
    t->size = sizeof *t;
    BASIN_TRY(basin_nodes_threshold_for(t, model, o->threshold_for, probability,
                                        basin_nodes_get_info(model)->nodes, error));
    basin_nodes_set_threshold(model, t->threshold);
    const char *output = job->o->training.output;
    return output ? basin_nodes_write(output, model, error) : BASIN_OK;
}

static basin_status train_node(basin_train_job *job, basin_error *error) {
    options *o = (void *)job->o;
    basin_args_classes(&o->args);
    basin_table_options table;
    basin_network_options how = basin_network_options_of(&o->args, &table);
    double held = o->validation < 0 ? 0.2 : o->validation;
    how.split_train = o->ratio > 0 ? o->ratio : 1 - held;
    how.split_val = o->ratio > 0 ? (1 - o->ratio) / 3 : held;
    basin_nodes_data data = {.path = (const char *const *)o->operand,
                             .paths = o->operands,
                             .options = &how,
                             .split = o->split_number >= 0 || how.split_time
                                          ? BASIN_NODES_SPLIT_MASKS
                                      : o->ratio > 0       ? BASIN_NODES_SPLIT_RATIO
                                      : o->validation > 0  ? BASIN_NODES_SPLIT_HOLD_OUT
                                      : o->validation == 0 ? BASIN_NODES_SPLIT_NONE
                                                           : BASIN_NODES_SPLIT_DEFAULT,
                             .number = o->split_number >= 0 ? o->split_number : 0,
                             .ratio = o->ratio > 0 ? o->ratio : o->validation};
    basin_nodes_model *model = NULL;
    basin_status status =
        basin_nodes_train(&model, &job->outcome, o->settings, &data, &o->training, error);
    job->model = model; /* NULL where a run was stopped before its first step */
    job->things = "nodes", job->count = model ? basin_nodes_get_info(model)->nodes : 0;
    return status;
}

static basin_status train_anomaly(basin_train_job *job, basin_error *error) {
    BASIN_TRY(train_node(job, error));
    return choose_threshold(job, error);
}

static void put_anomaly(basin_record *r, const basin_train_job *job) {
    options *o = (void *)job->o;
    const basin_nodes_info *model = job->model ? basin_nodes_get_info(job->model) : NULL;
    if (!model) return;
    basin_record_fields(r, "members=%lld;trained_on=%s;threshold=%.4f", (long long)model->members,
                        model->trained_on, model->threshold);
    basin_record_percent(r, "validation", model->reached[BASIN_SPLIT_VAL]);
    basin_record_percent(r, "test", model->reached[BASIN_SPLIT_TEST]);
    basin_record_number(r, "network_share", "%.2f", model->share);
    basin_record_percent(r, "validation_trees|trees only",
                         model->alone[BASIN_NODES_TREES][BASIN_SPLIT_VAL]);
    basin_record_percent(r, "validation_network|network only",
                         model->alone[BASIN_NODES_NETWORK][BASIN_SPLIT_VAL]);
    basin_record_text(r, "calibration", basin_calibration_name(model->calibration));
    const basin_reliability *test = model->reliability[BASIN_SPLIT_TEST];
    const basin_reliability *use = test ? test : model->reliability[BASIN_SPLIT_VAL];
    if (use && (o->reliability || !basin_record_is_text(r)))
        basin_record_reliability(r, use,
                                 test ? "probabilities and frequencies, test nodes:"
                                      : "probabilities and frequencies, validation nodes:");
    if (job->more) basin_record_expected(r, job->more, o->threshold_for);
}

static void put_node(basin_record *r, const basin_train_job *job) {
    const basin_nodes_info *model = job->model ? basin_nodes_get_info(job->model) : NULL;
    if (!model) return;
    basin_record_integer(r, "members", model->members);
    basin_record_list(r, "classes");
    for (int64_t c = 0; c < model->classes; c++)
        basin_record_text(r, NULL, basin_nodes_class(job->model, c));
    basin_record_end(r);
    basin_record_text(r, "trained_on", model->trained_on);
    basin_record_percent(r, "validation", model->reached[BASIN_SPLIT_VAL]);
    basin_record_percent(r, "test", model->reached[BASIN_SPLIT_TEST]);
}

static void close_model(basin_train_job *job) {
    basin_nodes_close(job->model);
    free(job->more);
}

const basin_command basin_command_anomaly_train = {
    BASIN_COMMAND("anomaly train", anomaly_table),
    BASIN_TRAINS("anomaly", .prepare = prepare, .train = train_anomaly, .print = put_anomaly,
                 .close = close_model)};

const basin_command basin_command_node_train = {BASIN_COMMAND("node train", node_table),
                                                BASIN_TRAINS("node", .prepare = prepare,
                                                             .train = train_node, .print = put_node,
                                                             .close = close_model)};
