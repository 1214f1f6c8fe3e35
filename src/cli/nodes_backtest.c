/* basin anomaly eval --model and --unsupervised; see nodes.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/nodes.h"

typedef struct job {
    basin_args *o;
    basin_nodes_use use;
    double *probability;  /* [N] */
    float *rounded;       /* [N] for --scores */
    uint8_t *part, *seen; /* [N] */
    const char *judged;   /* what was judged, in words */
    int64_t left_out;     /* because they were seen */
    basin_nodes_figures figures;
} job;

/* What has no effect beside a model and is no option of the table; NULL: nothing. */
static const char *idle(basin_args *o) {
    static const char *const seed[] = {"seed", NULL};
    const char *const *heard = o->unsupervised ? seed : NULL;
    if (basin_training_settings_given(o, heard)) return "a training setting";
    return strcmp(o->split, "ratio") ? NULL : "--split ratio";
}

/* ---- which nodes ---- */

static basin_status take_masks(job *j, int part, basin_error *error) {
    const basin_network *n = j->use.network;
    if (!n->splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no split, which --part %s needs", n->path,
                          j->o->part);
    BASIN_TRY(basin_split_from_masks(j->part, n, j->o->first, error));
    for (int64_t i = 0; i < n->nodes; i++)
        j->part[i] = j->part[i] == part ? BASIN_PART_TEST : BASIN_PART_NONE;
    return BASIN_OK;
}

static basin_status choose_nodes(job *j, basin_error *error) {
    static const char *const name[] = {"all", "train", "val", "test"};
    const basin_network *n = j->use.network;
    int part = 0;
    for (int p = 1; p <= BASIN_PART_TEST; p++)
        if (!strcmp(j->o->part, name[p])) part = p;
    if (!strcmp(j->o->part, "auto") && n->splits && n->test) part = BASIN_PART_TEST;
    j->judged = part ? name[part] : "all labelled";
    for (int64_t i = 0; i < n->nodes; i++)
        j->part[i] = n->label && n->label[i] >= 0 ? BASIN_PART_TEST : BASIN_PART_NONE;
    if (part) BASIN_TRY(take_masks(j, part, error));
    if (!j->o->unseen) return BASIN_OK;
    BASIN_TRY(basin_nodes_seen(j->seen, j->use.model, n, error));
    for (int64_t i = 0; i < n->nodes; i++)
        if (j->seen[i] && j->part[i]) {
            j->part[i] = BASIN_PART_NONE;
            j->left_out++;
        }
    return BASIN_OK;
}

/* ---- printing ---- */

static void note_seen(basin_record *r, const job *j) {
    const basin_nodes_figures *f = &j->figures;
    if (j->o->unseen)
        basin_record_note(r, "%lld that took part in training are left out",
                          (long long)j->left_out);
    else if (f->trained_on < 0)
        basin_record_note(r, "which nodes took part in training is not known: they may be among "
                             "these");
    else if (f->trained_on + f->validated_on)
        basin_record_note(r,
                          "%lld of them were trained on, %lld more chose epoch and threshold: this "
                          "is no test (--unseen leaves them out)",
                          (long long)f->trained_on, (long long)f->validated_on);
    else
        basin_record_note(r, "none of them took part in training");
}

static void put_budgets(basin_record *r, const basin_nodes_figures *f) {
    basin_record_table(r, "budgets", NULL);
    for (int i = 0; i < f->budgets; i++) {
        basin_record_row(r);
        basin_record_integer(r, "alerts", f->budget[i].alerts);
        basin_record_number(r, "precision", "%.2f", 100 * f->budget[i].precision);
        basin_record_number(r, "recall", "%.2f", 100 * f->budget[i].recall);
        basin_record_end(r);
    }
    basin_record_end(r);
}

static void put_figures(basin_record *r, const basin_nodes_figures *f, bool probable) {
    const struct {
        const char *name;
        double value;
    } figure[] = {
        {"auroc", f->auroc},         {"auprc", f->auprc},        {"recall_at_k", f->recall_at_k},
        {"precision", f->precision}, {"recall", f->recall},      {"f1", f->f1},
        {"macro_f1", f->macro_f1},   {"ece", f->reliability.ece}};
    if (f->trained_on >= 0) basin_record_integer(r, ".trained_on", f->trained_on);
    if (f->trained_on >= 0) basin_record_integer(r, ".validated_on", f->validated_on);
    if (probable) basin_record_number(r, "threshold", "%.4f", f->threshold);
    if (probable) basin_record_integer(r, "alerts", f->alerts);
    for (size_t i = 0; i < (probable ? sizeof figure / sizeof *figure : 3); i++)
        basin_record_number(r, figure[i].name, "%.2f %%", 100 * figure[i].value);
    put_budgets(r, f);
    if (probable) basin_record_reliability(r, &f->reliability, "probabilities beside frequencies:");
}

static void put_result(basin_record *r, const void *context) {
    const job *j = context;
    const basin_nodes_figures *f = &j->figures;
    const basin_nodes_card *card = j->use.info ? j->use.info->card : NULL;
    if (j->o->unsupervised) basin_record_note(r, "energies found without labels, judged by them");
    if (j->o->model) basin_record_text(r, "model", j->o->model);
    basin_record_text(r, "data", j->use.network->path);
    basin_record_text(r, "part", j->judged);
    if (j->o->unseen) basin_record_integer(r, ".left_out", j->left_out);
    basin_record_integer(r, "nodes", f->nodes);
    basin_record_integer(r, "anomalous", f->anomalous);
    if (card)
        basin_record_note(r, "trained %s on %s, %lld labels, %.2f %% anomalous (here %.2f %%)",
                          card->date, card->data, (long long)card->trained_on,
                          100 * card->base_rate, 100 * (double)f->anomalous / (double)f->nodes);
    if (j->o->model) note_seen(r, j);
    put_figures(r, f, f->reliability.log_loss > 0); /* else energies, without a threshold */
}

/* ---- running ---- */

/* Of --seed, which is a setting. */
static uint64_t seed_of(basin_args *o) {
    double seed;
    return basin_settings_get_number(&seed, o->settings, "seed", NULL) ? 0 : (uint64_t)seed;
}

static basin_status find_probabilities(job *j, basin_error *error) {
    basin_nodes_use *u = &j->use;
    bool stopped;
    if (u->model) return basin_nodes_score(j->probability, u->model, u->network, &u->work, error);
    BASIN_TRY(basin_nodes_unsupervised(j->probability, &stopped, u->network, seed_of(j->o),
                                       j->o->compute, &u->work, error));
    return stopped ? basin_fail(error, BASIN_BAD_VALUE, "stopped; nothing is kept") : BASIN_OK;
}

static void put_scores(basin_record *r, const void *context) {
    const job *j = context;
    basin_record_table(r, "nodes", NULL);
    basin_scores_put(r, j->use.network, j->part, j->rounded, 0);
    basin_record_end(r);
}

static void job_free(job *j) {
    basin_nodes_use_close(&j->use);
    free(j->probability);
    free(j->rounded);
    free(j->part);
    free(j->seen);
}

basin_status basin_cli_backtest(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(job_free) job j = {.o = o};
    basin_nodes_use *u = &j.use;
    if (idle(o))
        return basin_usage(error, "%s has no effect with --%s", idle(o),
                           o->unsupervised ? "unsupervised" : "model, which trains nothing");
    BASIN_TRY(basin_goal_check(o->threshold_for, error));
    BASIN_TRY(basin_nodes_use_open(u, o, o->model, 0, error));
    int64_t nodes = u->network->nodes;
    BASIN_TRY(BASIN_NEW(&j.probability, nodes, "a back-test", error));
    BASIN_TRY(BASIN_NEW(&j.part, nodes, "a back-test", error));
    BASIN_TRY(BASIN_NEW(&j.seen, nodes, "a back-test", error));
    BASIN_TRY(choose_nodes(&j, error));
    BASIN_TRY(find_probabilities(&j, error));
    basin_cli_watch_end(&o->watch);
    double threshold = u->model ? u->info->threshold : 0;
    if (o->threshold_for)
        BASIN_TRY(basin_nodes_threshold_for(&threshold, u->model, o->threshold_for, j.probability,
                                            nodes, error));
    BASIN_TRY(basin_nodes_backtest(&j.figures, u->model, u->network, j.probability, j.part,
                                   BASIN_PART_TEST, threshold, error));
    BASIN_TRY(BASIN_NEW(&j.rounded, nodes, "scores", error));
    for (int64_t i = 0; i < nodes; i++) j.rounded[i] = (float)j.probability[i];
    if (o->scores) BASIN_TRY(basin_record_write(o->scores, BASIN_FORM_CSV, put_scores, &j, error));
    return basin_record_print(o->json, put_result, &j, error);
}
