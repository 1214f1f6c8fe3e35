/* Training a detector: members one after the other, epochs over the whole graph or over samples of
 * it, validation after each, the best weights kept. A checkpoint is the store (weights, moments,
 * averages, the best so far, finished members) and a few numbers, so that a run that goes on ends
 * with the same bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "task/anomaly/batch.h"
#include "task/anomaly/fit.h"

static uint64_t member_seed(const basin_fit *f) {
    return (uint64_t)f->settings.seed + 1000003u * (uint64_t)f->at.member;
}

/* ---- plans ---- */

static basin_schedule schedule_of(const basin_anomaly_settings *r, int64_t batches) {
    return basin_schedule_make(batches, r->epochs, r->warmup, r->rate, r->rate_first, r->rate_last);
}

/* To each member the columns that it sees. */
static basin_status show_columns(basin_fit *f, basin_error *error) {
    return basin_anomaly_mask_write(f->trainer.plan, f->net.mask, &f->settings, f->at.member,
                                    error);
}

/* A trainer for this shape; steps go on counting. */
static basin_status make_trainer(basin_fit *f, const basin_anomaly_shape *shape,
                                 basin_error *error) {
    int64_t step = f->trainer.step;
    basin_anomaly_source source = {&f->inputs, f->label, f->weight, f->train, f->train_count};
    basin_trainer_free(&f->trainer);
    basin_anomaly_net_free(&f->net);
    basin_status status = basin_anomaly_net_new(&f->net, &f->settings, shape, true, error);
    basin_trainer_spec spec = {.adamw = basin_anomaly_net_adamw(&f->settings),
                               .schedule =
                                   schedule_of(&f->settings, basin_anomaly_batch_count(&source))};
    if (!status)
        status =
            basin_trainer_new(&f->trainer, f->store, &f->net.params, f->net.loss, &spec, error);
    f->trainer.step = step;
    f->planned = *shape;
    if (!status && !basin_choice_is(f->settings.sampling, "full"))
        status = basin_fit_hold_samples(f, error);
    return status ? status : show_columns(f, error);
}

static basin_status write_whole(basin_fit *f, basin_error *error) {
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    bool graph = basin_anomaly_on_graph(&f->settings);
    basin_status status =
        graph ? basin_node_inputs_pairs(pairs, &f->inputs, f->network, error) : BASIN_OK;
    if (status) return status;
    basin_anomaly_net_data data = {.table = f->inputs.table,
                                   .eigenvectors = f->inputs.eigenvectors,
                                   .pairs = pairs,
                                   .label = f->label,
                                   .weight = f->weight,
                                   .nodes = f->network->nodes};
    for (int r = 0; r < f->inputs.shape.relations; r++)
        data.node_weight[r] = f->inputs.node_weight[r];
    status = basin_anomaly_net_write(&f->net, f->trainer.plan, &data, error);
    for (int r = 0; r < f->inputs.shape.relations && graph; r++) basin_pairs_free(&pairs[r]);
    return status;
}

/* ---- an epoch ---- */

static bool same_shape(const basin_anomaly_shape *a, const basin_anomaly_shape *b) {
    bool same = a->nodes == b->nodes;
    for (int r = 0; r < a->relations; r++) same = same && a->pairs[r] == b->pairs[r];
    return same;
}

static basin_status step(basin_fit *f, double *loss, basin_error *error) {
    uint64_t seed = member_seed(f) * 0x9e3779b97f4a7c15u + (uint64_t)f->trainer.step;
    basin_status status = basin_anomaly_net_write_seed(&f->net, f->trainer.plan, seed, error);
    if (!status) status = basin_trainer_step(&f->trainer, loss, error);
    if (!status && f->settings.average > 0)
        status = basin_states_average(f->store, &f->net.params, "average.", f->settings.average,
                                      f->trainer.step, error);
    return status;
}

static basin_status epoch_sampled(basin_fit *f, double *loss, basin_error *error) {
    basin_anomaly_source source = {&f->inputs, f->label, f->weight, f->train, f->train_count};
    int64_t batches = basin_anomaly_batch_count(&source);
    double sum = 0;
    basin_status status = BASIN_OK;
    for (int64_t b = 0; b < batches && !status; b++) {
        basin_anomaly_batch batch;
        status = basin_anomaly_batch_draw(&batch, &source, member_seed(f), f->at.epoch, b, error);
        if (status) break;
        if (!same_shape(&batch.shape, &f->planned)) status = make_trainer(f, &batch.shape, error);
        basin_anomaly_net_data data = basin_anomaly_batch_data(&batch);
        if (!status) status = basin_anomaly_net_write(&f->net, f->trainer.plan, &data, error);
        if (!status) status = step(f, loss, error);
        sum += *loss;
        basin_anomaly_batch_free(&batch);
    }
    *loss = sum / (double)batches;
    return status;
}

/* ---- validation ---- */

static const char *evaluated(const basin_fit *f) {
    return f->settings.average > 0 ? "average." : "";
}

/* A stream wants the memory that the plan of samples holds; the next epoch makes it anew. */
static void rest(basin_fit *f) {
    int64_t step = f->trainer.step;
    if (!basin_anomaly_scorer_streams(f->scorer) || basin_choice_is(f->settings.sampling, "full"))
        return;
    basin_trainer_free(&f->trainer);
    f->trainer.step = step;
    f->planned = (basin_anomaly_shape){0};
}

/* The measures of validation; all NaN without validation nodes. */
static basin_status validate(basin_fit *f, double value[3], basin_error *error) {
    basin_ranking ranking;
    value[0] = value[1] = value[2] = NAN;
    if (!f->val_count) return BASIN_OK;
    rest(f);
    f->scored_best = false;
    basin_status status = basin_anomaly_scorer_run(f->scorer, f->probability, f->at.member,
                                                   f->store, evaluated(f), error);
    if (status) return status;
    for (int64_t i = 0; i < f->val_count; i++) f->val_score[i] = f->probability[f->val[i]];
    double threshold;
    basin_threshold_scan scan = basin_anomaly_scan(f->settings.threshold);
    status = basin_threshold_best(&threshold, &value[0], f->val_score, f->val_label, f->val_count,
                                  scan, error);
    if (!status)
        status =
            basin_ranking_measure(&ranking, f->val_score, f->val_label, f->val_count, 0, error);
    if (!status) value[1] = ranking.auroc, value[2] = ranking.auprc;
    return status;
}

static basin_status consider(basin_fit *f, const double value[3], basin_error *error) {
    double v = basin_choice_is(f->settings.select, "auroc")   ? value[1]
               : basin_choice_is(f->settings.select, "auprc") ? value[2]
                                                              : value[0];
    bool better = !f->val_count || v > f->at.best;
    if (!better) return BASIN_OK;
    f->at.best = v;
    f->at.best_epoch = f->at.epoch;
    f->scored_best = f->val_count > 0;
    return basin_states_copy(f->store, &f->net.params, "best.", evaluated(f), error);
}

static basin_status write_log(basin_fit *f, double loss, const double value[3], double seconds,
                              basin_error *error) {
    if (!f->log.file) return BASIN_OK;
    basin_json line = basin_log_line(&f->log);
    basin_json_integer(&line, "step", f->at.member * f->settings.epochs + f->at.epoch);
    basin_json_integer(&line, "member", f->at.member);
    basin_json_integer(&line, "epoch", f->at.epoch);
    basin_json_number(&line, "loss", loss);
    basin_json_number(&line, "val_macro_f1", value[0]);
    basin_json_number(&line, "val_auroc", value[1]);
    basin_json_number(&line, "val_auprc", value[2]);
    basin_json_number(&line, "seconds", seconds);
    return basin_log_end(&f->log, &line, error);
}

/* ---- a member ---- */

static void show(const basin_fit *f, double loss, double seconds) {
    int64_t done = f->at.member * f->settings.epochs + f->at.epoch;
    int64_t total = f->settings.members * f->settings.epochs;
    basin_news news = {.what = "training",
                       .done = done,
                       .total = total,
                       .loss = loss,
                       .speed = 1 / seconds,
                       .unit = "epochs",
                       .seconds_left = seconds * (double)(total - done)};
    basin_watch_show(f->work->watch, &news);
}

static basin_status save(basin_fit *f, basin_error *error) {
    if (!f->work->checkpoint) return BASIN_OK;
    basin_status status = basin_fit_save(f->work->checkpoint, &f->settings, f->store,
                                         f->trainer.step, &f->at, f->detector, error);
    f->saved = basin_clock();
    return status;
}

static basin_status one_epoch(basin_fit *f, basin_error *error) {
    double loss = NAN, value[3] = {NAN, NAN, NAN}, began = basin_clock();
    basin_status status = basin_choice_is(f->settings.sampling, "full")
                              ? step(f, &loss, error)
                              : epoch_sampled(f, &loss, error);
    if (status) return status;
    double seconds = basin_clock() - began;
    f->at.epoch++;
    bool last = f->at.epoch == f->settings.epochs;
    if (last || f->at.epoch % f->settings.evaluate == 0) {
        status = validate(f, value, error);
        if (!status) status = consider(f, value, error);
    }
    if (!status) status = write_log(f, loss, value, seconds, error);
    show(f, loss, basin_clock() - began);
    bool due = basin_clock() - f->saved > f->work->save_every;
    return status || !due ? status : save(f, error);
}

static basin_status start_member(basin_fit *f, basin_error *error) {
    f->at = (basin_fit_state){.member = f->at.member, .best = -1};
    f->trainer.step = 0;
    basin_status status = basin_params_init(&f->net.params, f->store, member_seed(f), error);
    if (!status && f->trainer.plan) status = show_columns(f, error);
    if (!status) status = basin_states_clear_moments(f->store, &f->net.params, error);
    if (!status) status = basin_states_copy(f->store, &f->net.params, "best.", "", error);
    if (!status && f->settings.average > 0)
        status = basin_states_copy(f->store, &f->net.params, "average.", "", error);
    return status;
}

static bool finished(const basin_fit *f) {
    return f->at.epoch >= f->settings.epochs ||
           (f->settings.patience > 0 && f->val_count &&
            f->at.epoch - f->at.best_epoch >= f->settings.patience);
}

static basin_status run_member(basin_fit *f, basin_error *error) {
    basin_status status = BASIN_OK;
    while (!status && !finished(f)) {
        status = one_epoch(f, error);
        if (!status && basin_watch_stopped(f->work->watch)) {
            f->detector->stopped = true;
            status = save(f, error);
            break;
        }
    }
    char prefix[32];
    snprintf(prefix, sizeof prefix, "member%lld.", (long long)f->at.member);
    if (!status && !f->detector->stopped)
        status = basin_states_copy(f->store, &f->net.params, prefix, "best.", error);
    basin_anomaly_member *member = &f->detector->member[f->at.member];
    member->epoch = f->at.best_epoch;
    member->last = f->at.epoch;
    member->chosen = f->at.best;
    return status ? status
                  : basin_states_bundle(&member->weights, f->store, &f->net.params, "best.", error);
}

/* Goes on from the checkpoint: the state, and the members that were done. */
static basin_status go_on(basin_fit *f, basin_error *error) {
    basin_status status = start_member(f, error);
    if (!status)
        status = basin_fit_load(&f->trainer.step, &f->at, f->detector, f->store, f->resumed,
                                &f->settings, &f->net.params, error);
    if (!status && f->trainer.plan) status = show_columns(f, error);
    for (int64_t m = 0; m < f->at.member && !status; m++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "member%lld.", (long long)m);
        status = basin_states_bundle(&f->detector->member[m].weights, f->store, &f->net.params,
                                     prefix, error);
    }
    return status;
}

static basin_status run_members(basin_fit *f, basin_error *error) {
    bool resumed = f->resumed;
    basin_status status = resumed ? go_on(f, error) : BASIN_OK;
    if (!status)
        status = basin_log_open(
            &f->log, f->work->log,
            f->resumed ? &(basin_log_place){f->at.member, f->at.epoch, 0} : NULL, error);
    f->saved = basin_clock();
    while (!status && f->at.member < f->settings.members) {
        if (!resumed) status = start_member(f, error);
        resumed = false;
        if (!status) status = run_member(f, error);
        f->detector->members = f->at.member + 1;
        if (f->detector->stopped) break;
        f->at.member++;
    }
    return status;
}

/* ---- all of it ---- */

enum { BATCH_LEAST = 32 }; /* targets, below which a step learns next to nothing */

static basin_status first_shape(basin_anomaly_shape *shape, const basin_fit *f,
                                basin_error *error) {
    basin_anomaly_source source = {&f->inputs, f->label, f->weight, f->train, f->train_count};
    basin_anomaly_batch batch;
    basin_status status =
        basin_anomaly_batch_draw(&batch, &source, (uint64_t)f->settings.seed, 0, 0, error);
    if (status) return status;
    *shape = batch.shape;
    basin_anomaly_batch_free(&batch);
    return BASIN_OK;
}

/* With smaller batches where these are left to us. */
static basin_status make_fitting_trainer(basin_fit *f, basin_error *error) {
    for (;;) {
        basin_anomaly_shape shape;
        basin_status status = first_shape(&shape, f, error);
        if (!status) status = make_trainer(f, &shape, error);
        if (status != BASIN_NO_MEMORY || !f->shrink || f->settings.batch <= BATCH_LEAST)
            return status;
        f->settings.batch /= 2;
    }
}

static basin_status make_first_plan(basin_fit *f, basin_error *error) {
    if (basin_choice_is(f->settings.sampling, "full")) {
        basin_status status = make_trainer(f, &f->inputs.shape, error);
        return status ? status : write_whole(f, error);
    }
    int64_t asked = f->settings.batch;
    basin_status status = make_fitting_trainer(f, error);
    f->detector->settings.batch = f->settings.batch;
    if (!status && f->settings.batch < asked)
        basin_watch_note(f->work->watch, "batches of %lld targets: %lld would not fit",
                         (long long)f->settings.batch, (long long)asked);
    return status;
}

static basin_status choose_threshold(basin_fit *f, basin_error *error) {
    basin_anomaly_detector *d = f->detector;
    d->threshold = 0.5;
    if (!f->val_count || d->stopped) return BASIN_OK;
    basin_status status = BASIN_OK;
    if (d->members > 1 || !f->scored_best)
        status =
            basin_anomaly_mean(f->probability, d, f->scorer, f->inputs.shape.nodes, f->work, error);
    for (int64_t i = 0; i < f->val_count && !status; i++)
        f->val_score[i] = f->probability[f->val[i]];
    basin_threshold_scan scan = basin_anomaly_scan(f->settings.threshold);
    if (!status)
        status = basin_threshold_best(&d->threshold, NULL, f->val_score, f->val_label, f->val_count,
                                      scan, error);
    if (status) return status;
    d->score = f->probability;
    f->probability = NULL;
    return BASIN_OK;
}

static basin_status fit_all(basin_fit *f, basin_error *error) {
    basin_status status = basin_anomaly_check(&f->settings, error);
    if (!status && f->work->resume)
        status = basin_fit_open(&f->resumed, &f->settings, f->work->checkpoint, error);
    if (!status) status = basin_fit_prepare(f, error);
    if (!status) status = basin_fit_choose_sampling(f, error);
    if (!status) status = basin_store_new(&f->store, f->work->backend, error);
    if (!status) status = make_first_plan(f, error);
    if (status) return status;
    size_t limit = basin_anomaly_memory_limit(f->work), taken = basin_node_inputs_bytes(&f->inputs);
    if (basin_choice_is(f->settings.sampling, "full")) taken = f->bytes;
    status = basin_anomaly_scorer_new(&f->scorer, &f->inputs, limit > taken ? limit - taken : 0,
                                      f->work, error);
    if (!status) status = basin_fit_hold_stream(f, error);
    if (status) return status;
    basin_watch_note(f->work->watch, "training on %s%s", f->detector->how,
                     basin_anomaly_scorer_streams(f->scorer) ? "; scoring streamed" : "");
    f->detector->parameters = basin_params_total(&f->net.params);
    status = run_members(f, error);
    for (int64_t m = 0; m < f->detector->members && !status; m++)
        f->detector->epochs += f->detector->member[m].last;
    return status ? status : choose_threshold(f, error);
}

static void fit_free(basin_fit *f) {
    basin_bundle_free(f->resumed);
    basin_log_close(&f->log);
    basin_anomaly_scorer_free(f->scorer);
    basin_trainer_free(&f->trainer);
    basin_anomaly_net_free(&f->net);
    basin_store_free(f->store);
    basin_node_inputs_close(&f->inputs);
    free(f->train), free(f->val), free(f->label), free(f->weight);
    free(f->probability), free(f->val_score), free(f->val_label);
}

/* What is left open: more members where they cost little. */
static int64_t members_for(const basin_network *network) {
    int64_t edges = 0;
    for (int r = 0; r < network->relations; r++)
        if (network->relation[r].edges > edges) edges = network->relation[r].edges;
    return edges <= 2000000 ? 6 : edges <= 20000000 ? 3 : 1;
}

basin_status basin_anomaly_fit(basin_anomaly_detector **detector, const basin_network *network,
                               const uint8_t *part, const basin_anomaly_settings *settings,
                               const basin_anomaly_work *work, basin_error *error) {
    *detector = NULL;
    basin_fit f = {.network = network, .part = part, .settings = *settings, .work = work};
    f.began = basin_clock();
    if (!f.settings.members) f.settings.members = members_for(network);
    basin_status status = basin_detector_new(&f.detector, &f.settings, network, error);
    if (status) return status;
    status = fit_all(&f, error);
    if (!status) status = basin_detector_name(f.detector, &f.inputs, error);
    f.detector->seconds = basin_clock() - f.began;
    fit_free(&f);
    if (status)
        basin_anomaly_free(f.detector);
    else
        *detector = f.detector;
    return status;
}
