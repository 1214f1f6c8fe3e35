/* basin anomaly eval --model: a saved model judged by labels, without training; --unsupervised:
 * what was found without labels, judged by them. See backtest.h. */
#include "cli/anomaly/backtest.h"

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

typedef struct job {
    const basin_eval_options *o;
    basin_backend *backend;
    basin_anomaly_model *model;
    basin_network *network;
    double *probability;  /* [N] */
    uint8_t *part, *seen; /* [N] */
    const char *judged;   /* what was judged, in words */
    int64_t left_out;     /* because they were seen */
    basin_anomaly_figures figures;
} job;

/* ---- options that go with training alone ---- */

/* What has no effect beside a model and is no option of the table; NULL: nothing. */
static const char *idle(const basin_eval_options *o) {
    static const char *const seed[] = {"seed", NULL};
    const char *const *heard = o->unsupervised ? seed : NULL;
    bool settings = basin_training_settings_given(o->settings, &o->start, heard);
    if (settings) return "a setting of training";
    return strcmp(o->split, "ratio") ? NULL : "--split ratio";
}

/* ---- which nodes ---- */

static basin_status take_masks(job *j, int part, basin_error *error) {
    const basin_network *n = j->network;
    if (!n->splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no split; wanted one for --part %s", n->path,
                          j->o->part);
    basin_status status = basin_split_from_masks(j->part, n, j->o->first, error);
    for (int64_t i = 0; i < n->nodes && !status; i++)
        j->part[i] = j->part[i] == part ? BASIN_PART_TEST : BASIN_PART_NONE;
    return status;
}

static basin_status choose_nodes(job *j, basin_error *error) {
    static const char *const name[] = {"all", "train", "val", "test"};
    const basin_network *n = j->network;
    int part = 0;
    for (int p = 1; p <= BASIN_PART_TEST; p++)
        if (!strcmp(j->o->part, name[p])) part = p;
    if (!strcmp(j->o->part, "auto") && n->splits && n->test) part = BASIN_PART_TEST;
    j->judged = part ? name[part] : "all labelled";
    for (int64_t i = 0; i < n->nodes; i++)
        j->part[i] = n->label && n->label[i] >= 0 ? BASIN_PART_TEST : BASIN_PART_NONE;
    basin_status status = part ? take_masks(j, part, error) : BASIN_OK;
    if (!status && j->o->unseen) status = basin_anomaly_seen(j->seen, j->model, n, error);
    for (int64_t i = 0; i < n->nodes && !status && j->o->unseen; i++)
        if (j->seen[i] && j->part[i]) {
            j->part[i] = BASIN_PART_NONE;
            j->left_out++;
        }
    return status;
}

/* ---- printing ---- */

static void print_seen(const job *j) {
    const basin_anomaly_figures *f = &j->figures;
    if (j->o->unseen)
        printf("  %lld that took part in training are left out\n", (long long)j->left_out);
    else if (f->trained_on < 0)
        printf("  which nodes took part in training cannot be told: they may be among these\n");
    else if (f->trained_on + f->validated_on)
        printf("  %lld of them were trained on, %lld more chose epoch and threshold: this is no "
               "test (--unseen leaves them out)\n",
               (long long)f->trained_on, (long long)f->validated_on);
    else
        printf("  none of them took part in training\n");
}

static bool print_budgets(const basin_anomaly_figures *f) {
    if (!f->budgets) return true;
    basin_table rows = {.layout = "rrr"};
    static const char *const heading[] = {"alerts", "precision", "recall"};
    for (int i = 0; i < 3; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int i = 0; i < f->budgets; i++) {
        basin_table_add(&rows, "%lld", (long long)f->budget[i].alerts);
        basin_table_add(&rows, "%.2f", 100 * f->budget[i].precision);
        basin_table_add(&rows, "%.2f", 100 * f->budget[i].recall);
    }
    return basin_table_print(&rows, stdout, 2);
}

static bool print_figures(const basin_anomaly_figures *f) {
    printf("  AUROC %.2f  AUPRC %.2f  recall@k %.2f  ECE %.2f\n", 100 * f->auroc, 100 * f->auprc,
           100 * f->recall_at_k, 100 * f->reliability.ece);
    printf("  at threshold %.4f: %lld alert%s, precision %.2f  recall %.2f  F1 %.2f  macro-F1 "
           "%.2f\n",
           f->threshold, (long long)f->alerts, f->alerts == 1 ? "" : "s", 100 * f->precision,
           100 * f->recall, 100 * f->f1, 100 * f->macro_f1);
    return print_budgets(f);
}

static bool print_unsupervised(const job *j) {
    const basin_anomaly_figures *f = &j->figures;
    printf("%s, %s: %lld nodes, %lld anomalous; energies found without labels; percent\n",
           j->network->path, j->judged, (long long)f->nodes, (long long)f->anomalous);
    printf("  AUROC %.2f  AUPRC %.2f  recall@k %.2f\n", 100 * f->auroc, 100 * f->auprc,
           100 * f->recall_at_k);
    return print_budgets(f);
}

static bool print_text(const job *j) {
    if (j->o->unsupervised) return print_unsupervised(j);
    const basin_anomaly_card *card = basin_anomaly_get_card(j->model);
    const basin_anomaly_figures *f = &j->figures;
    printf("%s on %s, %s: %lld nodes, %lld anomalous; percent\n", j->o->model, j->network->path,
           j->judged, (long long)f->nodes, (long long)f->anomalous);
    if (card)
        printf("  trained %s on %s, %lld labels, %.2f %% anomalous (here %.2f %%)\n", card->date,
               card->data, (long long)card->trained_on, 100 * card->base_rate,
               100 * (double)f->anomalous / (double)f->nodes);
    print_seen(j);
    bool good = print_figures(f);
    printf("probabilities beside frequencies:\n");
    return basin_cli_reliability_print(&f->reliability) && good;
}

static void put_figures(basin_json *json, const basin_anomaly_figures *f) {
    const struct {
        const char *name;
        double value;
    } figure[] = {
        {"auroc", f->auroc},         {"auprc", f->auprc},        {"recall_at_k", f->recall_at_k},
        {"precision", f->precision}, {"recall", f->recall},      {"f1", f->f1},
        {"macro_f1", f->macro_f1},   {"ece", f->reliability.ece}};
    basin_json_integer(json, "nodes", f->nodes);
    basin_json_integer(json, "anomalous", f->anomalous);
    if (f->trained_on >= 0) basin_json_integer(json, "trained_on", f->trained_on);
    if (f->trained_on >= 0) basin_json_integer(json, "validated_on", f->validated_on);
    bool probable = f->reliability.log_loss > 0; /* else energies, without a threshold */
    if (probable) basin_json_number(json, "threshold", f->threshold);
    if (probable) basin_json_integer(json, "alerts", f->alerts);
    for (size_t i = 0; i < (probable ? sizeof figure / sizeof *figure : 3); i++)
        basin_json_number(json, figure[i].name, 100 * figure[i].value);
    basin_json_array(json, "budgets");
    for (int i = 0; i < f->budgets; i++) {
        basin_json_object(json, NULL);
        basin_json_integer(json, "alerts", f->budget[i].alerts);
        basin_json_number(json, "precision", 100 * f->budget[i].precision);
        basin_json_number(json, "recall", 100 * f->budget[i].recall);
        basin_json_end(json);
    }
    basin_json_end(json);
    if (probable) basin_put_reliability(json, &f->reliability);
}

static void print_json(const job *j) {
    basin_json json = basin_json_begin(stdout);
    if (j->o->model) basin_json_text(&json, "model", j->o->model);
    basin_json_text(&json, "data", j->network->path);
    basin_json_text(&json, "part", j->judged);
    if (j->o->unseen) basin_json_integer(&json, "left_out", j->left_out);
    put_figures(&json, &j->figures);
    basin_json_end(&json);
}

/* ---- running ---- */

static basin_status open_all(job *j, int operands, char **operand, basin_error *error) {
    const basin_eval_options *o = j->o;
    basin_status status =
        basin_option_backend(&j->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status && o->model) status = basin_anomaly_open(&j->model, o->model, j->backend, error);
    if (!status && !o->model)
        status = basin_network_flags_open(&j->network, &o->data, NULL, o->memory, operands, operand,
                                          o->quiet, error);
    else if (!status)
        status = basin_open_as_trained(&j->network, j->model, o->model, &o->data, o->memory,
                                       operands, operand, o->quiet, error);
    if (status) return status;
    size_t nodes = (size_t)j->network->nodes;
    j->probability = calloc(nodes + 1, sizeof *j->probability);
    j->part = calloc(nodes + 1, 1);
    j->seen = calloc(nodes + 1, 1);
    if (j->probability && j->part && j->seen) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a back-test");
}

/* Of --seed, which is a setting. */
static uint64_t seed_of(const basin_eval_options *o) {
    char text[32];
    basin_error error;
    if (basin_settings_get(text, sizeof text, o->settings, "seed", &error)) return 0;
    return strtoull(text, NULL, 10);
}

static basin_status backtest(job *j, int operands, char **operand, basin_error *error) {
    const basin_eval_options *o = j->o;
    basin_cli_watch watch;
    basin_status status = open_all(j, operands, operand, error);
    if (!status) status = choose_nodes(j, error);
    if (status) return status;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_anomaly_work work = {.size = sizeof work,
                               .watch = &watch.watch,
                               .memory = (size_t)(o->memory * (double)(1 << 30))};
    bool stopped = false;
    if (j->model)
        status = basin_anomaly_score(j->probability, j->model, j->network, &work, error);
    else
        status = basin_anomaly_unsupervised(j->probability, &stopped, j->network, seed_of(o),
                                            j->backend, &work, error);
    basin_cli_watch_end(&watch);
    if (!status && stopped) status = basin_fail(error, BASIN_BAD_VALUE, "stopped; nothing is kept");
    double threshold = j->model ? basin_anomaly_threshold(j->model) : 0;
    if (!status && o->threshold_for)
        status = basin_anomaly_threshold_for(&threshold, j->model, o->threshold_for, j->probability,
                                             j->network->nodes, error);
    basin_anomaly_figures figures = {0};
    if (!status)
        status = basin_anomaly_backtest(&figures, j->model, j->network, j->probability, j->part,
                                        BASIN_PART_TEST, threshold, error);
    j->figures = figures;
    if (!status && o->scores)
        status = basin_cli_scores_write(o->scores, j->network, j->part, j->probability, error);
    return status;
}

int basin_cli_backtest(const basin_eval_options *o, int operands, char **operand) {
    job j = {.o = o};
    basin_error error;
    if (idle(o))
        return basin_report_usage(&basin_command_anomaly_eval, "%s has no effect with --%s",
                                  idle(o),
                                  o->unsupervised ? "unsupervised" : "model, which trains nothing");
    basin_status status = basin_goal_check(o->threshold_for, &error);
    if (!status) status = backtest(&j, operands, operand, &error);
    int code = BASIN_EXIT_OK;
    if (status)
        code = basin_report(&error);
    else if (o->json)
        print_json(&j);
    else if (!print_text(&j))
        code = BASIN_EXIT_FAILURE;
    basin_network_free(j.network);
    basin_anomaly_close(j.model);
    basin_backend_close(j.backend);
    free(j.probability);
    free(j.part);
    free(j.seen);
    return code;
}
