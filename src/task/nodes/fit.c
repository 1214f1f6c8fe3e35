/* Before training: who trains and who validates, what anomalies weigh, the table of inputs, and
 * whether the full graph fits into memory. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "task/nodes/batch.h"
#include "task/nodes/classes.h"
#include "task/nodes/fit.h"

/* An error where a part lacks a class. */
static basin_status count_classes(int64_t count[2], const basin_nodes_fitting *f, int which,
                                  const char *what, basin_error *error) {
    const basin_network *n = f->network;
    count[0] = count[1] = 0;
    for (int64_t i = 0; i < n->nodes; i++) {
        if (f->part[i] != which) continue;
        if (n->label[i] < 0 || n->label[i] > 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: node %lld has class %d; wanted 0 (normal) or 1 (anomalous)",
                              n->path, (long long)i, n->label[i]);
        count[n->label[i]]++;
    }
    if (count[0] && count[1]) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: %lld normal and %lld anomalous nodes for %s; wanted both%s", n->path,
                      (long long)count[0], (long long)count[1], what,
                      which == BASIN_PART_VAL ? ", or validation 0, which does without" : "");
}

/* Labels and weights as floats: anomalies weigh omega, the ratio of the classes, or its root. */
static void weigh(basin_nodes_fitting *f, const int64_t count[2]) {
    double omega = (double)count[0] / (double)count[1];
    if (basin_choice_is(f->settings.balance, "root")) omega = sqrt(omega);
    if (basin_choice_is(f->settings.balance, "none")) omega = 1;
    for (int64_t i = 0; i < f->train_count; i++) {
        int64_t node = f->train[i];
        f->label[node] = (float)f->network->label[node];
        f->weight[node] = f->network->label[node] ? (float)omega : 1;
    }
}

/* Room for labels, weights and probabilities; those of classes are filled. */
static basin_status make_labels(basin_nodes_fitting *f, basin_error *error) {
    size_t N = (size_t)f->network->nodes, width = (size_t)basin_nodes_width(&f->settings);
    f->label = calloc(N, width * sizeof *f->label);
    f->weight = calloc(N, sizeof *f->weight);
    f->probability = basin_array_new(N, width * sizeof *f->probability);
    if (!f->label || !f->weight || !f->probability) return basin_fail_memory(error, "labels");
    if (f->class_of) basin_classes_weigh(f);
    return BASIN_OK;
}

basin_status basin_nodes_list_nodes(basin_nodes_fitting *f, basin_error *error) {
    int64_t N = f->network->nodes, count[2];
    if (!f->network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to learn from", f->network->path);
    f->train_count = basin_split_nodes(NULL, f->part, N, BASIN_PART_TRAIN);
    f->validation_count = basin_split_nodes(NULL, f->part, N, BASIN_PART_VAL);
    if (!f->train_count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no training nodes", f->network->path);
    BASIN_TRY(BASIN_NEW_RAW(&f->train, f->train_count, "labels", error));
    basin_split_nodes(f->train, f->part, N, BASIN_PART_TRAIN);
    basin_status status = BASIN_OK;
    if (basin_classes_several(f->model->task)) status = basin_classes_take(f, error);
    if (!status) status = make_labels(f, error);
    if (status || f->class_of) return status;
    status = count_classes(count, f, BASIN_PART_TRAIN, "training", error);
    if (!status) weigh(f, count);
    if (!status && f->validation_count)
        status = count_classes(count, f, BASIN_PART_VAL, "validation", error);
    return status;
}

basin_status basin_nodes_prepare(basin_nodes_fitting *f, basin_error *error) {
    basin_status status = basin_node_inputs_open(&f->inputs, f->network, &f->settings, error);
    if (!status)
        status = basin_node_inputs_fit(&f->model->scale, &f->model->edge_scale, &f->inputs,
                                       f->train, f->train_count, error);
    if (status) return status;
    return basin_node_inputs_scale(&f->inputs, &f->model->scale, &f->model->edge_scale, error);
}

/* A look at validation scores all nodes, and the steps that a network needs do not grow with the
 * graph: samples of large ones are small and looked at seldom. */
void basin_nodes_choose_pace(basin_nodes_fitting *f) {
    enum { BATCHES = 4, LOOKS = 5, EVERY = 4 };
    basin_nodes_settings *s = &f->settings;
    bool walk = basin_choice_is(s->sampling, "neighbours");
    bool samples = walk || basin_choice_is(s->sampling, "subgraph");
    double most = (double)(BATCHES * s->batch) / (double)f->train_count;
    if (s->fraction <= 0) s->fraction = walk && most < 0.05 ? most : 0.05;
    if (!s->evaluate)
        s->evaluate = samples && s->epochs > LOOKS * EVERY ? s->epochs / LOOKS : EVERY;
    f->model->settings.fraction = s->fraction;
    f->model->settings.evaluate = s->evaluate;
}

basin_status basin_nodes_choose_sampling(basin_nodes_fitting *f, basin_error *error) {
    char *how = f->model->trained_on;
    size_t size = sizeof f->model->trained_on, bytes = 0,
           limit = basin_nodes_memory_limit(&f->work);
    BASIN_TRY(basin_nodes_net_memory(&bytes, &f->settings, &f->inputs.shape, true, f->work.backend,
                                     error));
    bytes += basin_node_inputs_bytes(&f->inputs);
    f->bytes = bytes;
    const char *asked = f->settings.sampling;
    f->shrink = basin_choice_is(asked, "auto");
    if (f->shrink) f->settings.sampling = bytes <= limit ? "full" : "neighbours";
    f->model->sampled = !basin_choice_is(f->settings.sampling, "full");
    basin_nodes_choose_pace(f);
    double gib = (double)bytes / (1 << 30), most = (double)limit / (1 << 30);
    if (f->settings.implicit && !basin_choice_is(f->settings.sampling, "full"))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "sampling is %s with implicit: at rest a node depends on the whole graph "
                          "(%.2f GiB of %.1f allowed); wanted sampling full",
                          asked, gib, most);
    if (basin_choice_is(f->settings.sampling, "full"))
        snprintf(how, size, "the full graph in %.2f GiB of %.1f allowed", gib, most);
    else
        snprintf(how, size, "%s, %.3g of the nodes an epoch (the full graph: %.1f GiB of %.1f)",
                 f->settings.sampling, f->settings.fraction, gib, most);
    return BASIN_OK;
}

/* ---- what samples take ---- */

/* `bytes` beside the network and its table. A limit that was asked for counts these; without one
 * the limit comes from what is still free, and they are there already. */
static basin_status hold(const basin_nodes_fitting *f, size_t bytes, const char *what,
                         const char *smaller, basin_error *error) {
    size_t limit = basin_nodes_memory_limit(&f->work), graph = basin_node_inputs_bytes(&f->inputs);
    size_t need = bytes + (f->work.memory ? graph : 0);
    if (f->work.least || need <= limit) return BASIN_OK;
    const double gib = 1 << 30;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: %s takes %.3g GiB (the graph and its inputs %.3g, the plan %.3g) of "
                      "%.3g allowed; wanted more memory, a smaller model (dim, memories, blocks)%s",
                      f->network->path, what, (double)need / gib, (double)(need - bytes) / gib,
                      (double)bytes / gib, (double)limit / gib, smaller);
}

/* By the finished plan's own figures: extrapolating from a part overestimates. Its arena is
 * reserved by then but not written to. */
basin_status basin_nodes_hold_samples(basin_nodes_fitting *f, basin_error *error) {
    const basin_nodes_shape *shape = &f->planned;
    bool walk = basin_choice_is(f->settings.sampling, "neighbours");
    basin_plan_stats stats = basin_plan_get_stats(f->trainer.plan);
    size_t bytes = stats.arena_bytes + stats.input_bytes, pairs = 0;
    for (int r = 0; r < shape->relations; r++) pairs += (size_t)shape->pairs[r];
    bytes += pairs * 3 * sizeof(int32_t); /* what is written: the list, the rows gathered */
    bytes += (size_t)shape->nodes * (size_t)shape->columns * sizeof(float);
    bytes += basin_nodes_position_bytes(&f->settings, shape, true);
    f->bytes = bytes + basin_node_inputs_bytes(&f->inputs);
    return hold(f, bytes, walk ? "training on neighbours" : "training on subgraphs",
                walk ? ", or smaller samples (batch, fanout)" : ", or a smaller fraction", error);
}

basin_status basin_nodes_hold_stream(const basin_nodes_fitting *f, basin_error *error) {
    if (basin_choice_is(f->settings.sampling, "full") || !basin_nodes_scorer_streams(f->scorer))
        return BASIN_OK;
    return hold(f, basin_nodes_scorer_bytes(f->scorer), "scoring all nodes, streamed,", "", error);
}

static basin_status grow_on_whole(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_ensemble *e = &f->model->ensemble;
    basin_tree_table table;
    BASIN_TRY(basin_tree_table_open(&table, f->network, e, f->work.memory, error));
    basin_tree_source source = basin_tree_source_of(&table);
    basin_status status = basin_nodes_ensemble_grow(
        e, f->settings.trees, (uint64_t)f->settings.seed, &source, f->part, f->work.watch, error);
    if (!status) status = basin_nodes_ensemble_views(f->tree_logit, e, &table, error);
    basin_tree_table_close(&table);
    return status;
}

static basin_status grow_on_parts(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_ensemble *e = &f->model->ensemble;
    basin_parted_trees *trees;
    BASIN_TRY(basin_parted_trees_open(&trees, f->work.parts, e, f->work.memory, error));
    basin_status status = basin_parted_trees_grow(e, f->settings.trees, (uint64_t)f->settings.seed,
                                                  trees, f->part, f->work.watch, error);
    if (!status) status = basin_parted_trees_views(f->tree_logit, e, trees, error);
    basin_parted_trees_close(trees);
    return status;
}

/* Trees come first: they are grown within a moment, and their inputs are gone before the network's
 * are made. A resumed run grows the same ones again. */
basin_status basin_nodes_grow_trees(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_ensemble *e = &f->model->ensemble;
    if (!f->settings.trees) return BASIN_OK;
    f->tree_logit =
        basin_array_new((size_t)f->network->nodes * BASIN_TREE_VIEWS, sizeof *f->tree_logit);
    if (!f->tree_logit) return basin_fail_memory(error, "scores");
    basin_status status = basin_nodes_ensemble_name(e, f->network, error);
    e->rate = basin_nodes_base_rate(f->network, f->part);
    if (!status && f->settings.labels && f->work.parts)
        status = basin_parts_name_nodes(f->work.parts, error);
    if (!status && f->settings.labels)
        status = basin_known_labels_take(&e->known, f->network, f->part, BASIN_PART_TRAIN, error);
    if (status) return status;
    return f->work.parts ? grow_on_parts(f, error) : grow_on_whole(f, error);
}

/* ---- A model of nodes as a task of the one run (train/run/run.h): members one after the other; a
 * step is the whole graph or a sample of it, a score the probabilities of the validation nodes. A
 * sample is a function of the member's seed and the step's place. */

static uint64_t member_seed(const basin_nodes_fitting *f) {
    return (uint64_t)f->settings.seed + 1000003u * (uint64_t)f->member;
}

static bool is_full(const basin_nodes_fitting *f) {
    return basin_choice_is(f->settings.sampling, "full");
}

/* How many an epoch has. */
static int64_t steps_of(const basin_nodes_fitting *f) {
    basin_nodes_source source = basin_nodes_source_of(f);
    return basin_nodes_batch_count(&source);
}

static basin_schedule schedule_of(const basin_nodes_fitting *f) {
    const basin_nodes_settings *s = &f->settings;
    return basin_schedule_make(steps_of(f), s->epochs, s->warmup, s->rate, s->rate_first,
                               s->rate_last);
}

/* ---- plans ---- */

/* To each member the columns that it sees. */
static basin_status show_columns(basin_nodes_fitting *f, basin_error *error) {
    if (f->joint) return basin_parted_trainer_mask(f->joint, &f->settings, f->member, error);
    if (!f->trainer.plan) return BASIN_OK;
    return basin_nodes_mask_write(f->trainer.plan, f->net.mask, &f->settings, f->member, error);
}

static basin_trainer_spec spec_of(const basin_nodes_fitting *f) {
    return (basin_trainer_spec){.adamw = basin_nodes_net_adamw(&f->settings),
                                .schedule = schedule_of(f),
                                .reduction = f->shards.tree ? &basin_shards_reduction : NULL};
}

/* Shards of batches, of which a full graph has none. */
static basin_status begin_shards(basin_nodes_fitting *f, basin_error *error) {
    if (is_full(f) || f->shards.count) return BASIN_OK;
    return basin_shards_begin(&f->shards, basin_run_training(f->run), f->settings.shards,
                              &f->net.params, error);
}

basin_status basin_nodes_make_trainer(basin_nodes_fitting *f, const basin_nodes_shape *shape,
                                      basin_error *error) {
    basin_trainer_free(&f->trainer);
    basin_nodes_net_free(&f->net);
    basin_status status = basin_nodes_net_new(&f->net, &f->settings, shape, true, error);
    if (!status) status = begin_shards(f, error);
    basin_trainer_spec spec = spec_of(f);
    if (!status)
        status =
            basin_trainer_new(&f->trainer, f->store, &f->net.params, f->net.loss, &spec, error);
    f->planned = *shape;
    if (!status && !is_full(f)) status = basin_nodes_hold_samples(f, error);
    return status ? status : show_columns(f, error);
}

static basin_status write_whole(basin_nodes_fitting *f, basin_error *error) {
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS];
    bool graph = basin_nodes_on_graph(&f->settings);
    BASIN_TRY(graph ? basin_node_inputs_pairs(pairs, &f->inputs, f->network, error) : BASIN_OK);
    basin_nodes_net_data data = basin_node_inputs_data(&f->inputs, pairs);
    data.label = f->label, data.weight = f->weight;
    basin_status status = basin_nodes_net_write(&f->net, f->trainer.plan, &data, error);
    for (int r = 0; r < f->inputs.shape.relations && graph; r++) basin_pairs_free(&pairs[r]);
    return status;
}

static basin_status make_first_plan(basin_nodes_fitting *f, basin_error *error) {
    if (f->work.parts) {
        basin_trainer_spec spec = spec_of(f);
        return basin_nodes_make_parts(f, &spec, error);
    }
    if (!is_full(f)) return basin_nodes_make_samples(f, error);
    BASIN_TRY(basin_nodes_make_trainer(f, &f->inputs.shape, error));
    return write_whole(f, error);
}

static basin_status make_scorer(basin_nodes_fitting *f, basin_error *error) {
    if (f->work.parts) return basin_nodes_scorer_join(&f->scorer, &f->parted, &f->work, error);
    size_t limit = basin_nodes_memory_limit(&f->work);
    size_t taken = is_full(f) ? f->bytes : basin_node_inputs_bytes(&f->inputs);
    BASIN_TRY(basin_nodes_scorer_new(&f->scorer, &f->inputs, limit > taken ? limit - taken : 0,
                                     &f->work, error));
    return basin_nodes_hold_stream(f, error);
}

/* ---- members ---- */

/* What is scored and kept. */
static const char *scored(const basin_nodes_fitting *f) {
    return f->settings.average > 0 ? "average." : "";
}

/* Averages begin as the weights. */
static basin_status start_average(basin_nodes_fitting *f, basin_error *error) {
    if (!(f->settings.average > 0)) return BASIN_OK;
    return basin_states_copy(f->store, &f->net.params, "average.", "", error);
}

static basin_status begin(void *context, int64_t member, basin_error *error) {
    basin_nodes_fitting *f = context;
    f->member = member;
    BASIN_TRY(basin_params_init(&f->net.params, f->store, member_seed(f), error));
    BASIN_TRY(show_columns(f, error));
    BASIN_TRY(basin_states_clear_moments(f->store, &f->net.params, error));
    return start_average(f, error);
}

/* From the model's members, counted round and round where it has fewer. */
static basin_status adopt(void *context, int64_t member, const basin_bundle *from,
                          basin_error *error) {
    basin_nodes_fitting *f = context;
    basin_nodes_settings its = f->settings;
    basin_bundle *weights = NULL;
    basin_status status = basin_nodes_read_settings(&its, f->model->task, from, error);
    int64_t number = status || its.members < 1 ? 0 : member % its.members;
    if (!status) status = basin_nodes_member_read(&weights, from, number, error);
    if (!status) status = basin_params_read(&f->net.params, f->store, weights, error);
    basin_bundle_free(weights);
    return status ? status : start_average(f, error);
}

static basin_status keep_member(basin_nodes_fitting *f, int64_t member, const char *prefix,
                                basin_error *error) {
    if (f->model->members <= member) f->model->members = member + 1;
    return basin_states_bundle(&f->model->member[member], f->store, &f->net.params, prefix, error);
}

static const char *member_prefix(char text[32], int64_t member) {
    snprintf(text, 32, "member%lld.", (long long)member);
    return text;
}

static basin_status conclude(basin_nodes_fitting *f, basin_error *error);

static basin_status finish(void *context, int64_t member, const basin_run_member *how,
                           basin_error *error) {
    basin_nodes_fitting *f = context;
    char prefix[32];
    (void)how;
    member_prefix(prefix, member);
    basin_status status = basin_states_copy(f->store, &f->net.params, prefix, "", error);
    if (!status) status = keep_member(f, member, prefix, error);
    /* Scores of parts are found by all ranks, the file is written by one. */
    bool last = member + 1 == f->settings.members && !f->probe;
    return status || !f->work.parts || !last ? status : conclude(f, error);
}

static basin_status restore(void *context, int64_t member, const basin_bundle *checkpoint,
                            basin_error *error) {
    basin_nodes_fitting *f = context;
    char prefix[32];
    (void)checkpoint;
    f->member = member;
    basin_status status = show_columns(f, error);
    for (int64_t m = 0; m < member && !status; m++)
        status = keep_member(f, m, member_prefix(prefix, m), error);
    return status;
}

/* ---- steps ---- */

static basin_status train_step(basin_nodes_fitting *f, double *loss, uint64_t seed,
                               basin_error *error) {
    BASIN_TRY(basin_nodes_net_write_seed(&f->net, f->trainer.plan, seed, error));
    return basin_trainer_step(&f->trainer, loss, error);
}

static basin_status step(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error) {
    basin_nodes_fitting *f = context;
    uint64_t seed = member_seed(f) * 0x9e3779b97f4a7c15u + (uint64_t)place->step;
    double loss = NAN;
    basin_status status;
    f->trainer.step = place->step;
    if (f->joint)
        status = basin_parted_trainer_step(f->joint, &loss, f->trainer.step++, seed, error);
    else if (is_full(f))
        status = train_step(f, &loss, seed, error);
    else
        status = basin_nodes_step_samples(f, &loss, place, member_seed(f), seed, error);
    if (!status && f->settings.average > 0)
        status = basin_states_average(f->store, &f->net.params, "average.", f->settings.average,
                                      f->trainer.step, error);
    sum->loss += loss;
    sum->weight += 1;
    return status;
}

/* ---- scores ---- */

/* What probabilities reach on a part of the nodes; *threshold of a detector is chosen for it. */
static basin_status judge(basin_score *found, const basin_nodes_fitting *f, basin_error *error) {
    double threshold;
    if (f->class_of)
        return basin_classes_measure(found, f->probability, f->class_of, f->settings.classes,
                                     f->part, BASIN_PART_VAL, f->network->nodes, error);
    BASIN_TRY(basin_nodes_choose_threshold(&threshold, f->probability, f->network, f->part,
                                           f->settings.threshold, error));
    return basin_nodes_measure(found, f->probability, NULL, f->network, f->part, BASIN_PART_VAL,
                               threshold, error);
}

/* A stream wants the memory that the plan of samples holds; the next step makes it anew. */
static void rest(basin_nodes_fitting *f) {
    if (f->joint) basin_parted_trainer_rest(f->joint);
    if (!basin_nodes_scorer_streams(f->scorer) || is_full(f)) return;
    basin_trainer_free(&f->trainer);
    f->planned = (basin_nodes_shape){0};
}

static basin_status score(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error) {
    basin_nodes_fitting *f = context;
    basin_score found;
    rest(f);
    basin_status status = basin_nodes_scorer_run(f->scorer, f->probability, place->member, f->store,
                                                 scored(f), error);
    if (!status) status = judge(&found, f, error);
    if (status) return status;
    for (int i = 0; i < found.measures; i++) {
        char name[BASIN_MEASURE_NAME + 16];
        snprintf(name, sizeof name, "validation_%s", found.measure[i].name);
        basin_score_add(score, name, found.measure[i].value);
    }
    score->merit = basin_score_get(&found, f->settings.select);
    if (f->class_of) score->tie = found.tie;
    return BASIN_OK;
}

/* ---- afterwards ---- */

/* Members, and trees with the share that validation gives them. */
static basin_status score_all(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_model *m = f->model;
    int64_t N = f->network->nodes;
    if (!f->tree_logit) return basin_nodes_scorer_mean(f->scorer, f->probability, m, error);
    double *trees = basin_array_new((size_t)N, sizeof *trees);
    if (!trees) return basin_fail_memory(error, "scores");
    basin_status status = basin_nodes_scorer_logits(f->scorer, f->probability, m, error);
    if (!status)
        status = basin_nodes_ensemble_choose(&m->ensemble, trees, f->tree_logit, f->probability,
                                             f->network, f->part, f->settings.threshold, error);
    if (!status) basin_nodes_ensemble_mix(f->probability, &m->ensemble, trees, f->probability, N);
    free(trees);
    return status;
}

/* Share, threshold and calibration; classes have none of these. */
static basin_status conclude(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_model *m = f->model;
    if (!f->validation_count || m->score) return BASIN_OK;
    rest(f);
    basin_status status = score_all(f, error);
    if (!status && !f->class_of)
        status = basin_nodes_choose_threshold(&m->threshold, f->probability, f->network, f->part,
                                              f->settings.threshold, error);
    if (!status && !f->class_of)
        status = basin_nodes_calibrate(m, f->probability, f->network, f->part, error);
    if (!status && !f->class_of)
        status = basin_nodes_memory_judge(&m->memory, f->probability, f->network, f->part,
                                          m->threshold, error);
    if (status) return status;
    m->score = f->probability;
    f->probability = NULL;
    return BASIN_OK;
}

static basin_status write_model(void *context, const char *path, basin_error *error) {
    basin_nodes_fitting *f = context;
    BASIN_TRY(conclude(f, error));
    return basin_nodes_write(path, f->model, error);
}

static basin_status measure_part(basin_nodes_fitting *f, int part, basin_error *error) {
    basin_nodes_model *m = f->model;
    basin_nodes_samples s;
    if (f->class_of)
        return basin_classes_measure(&m->reached[part], m->score, f->class_of, m->settings.classes,
                                     f->part, part, f->network->nodes, error);
    basin_status status = basin_nodes_samples_take(&s, m->score, f->network, f->part, part, error);
    if (!status) m->reliability[part] = basin_reliability_measure(s.score, s.label, s.count);
    if (!status)
        status = basin_nodes_measure(&m->reached[part], m->score, NULL, f->network, f->part, part,
                                     m->threshold, error);
    basin_nodes_samples_free(&s);
    return status;
}

static basin_status measure(basin_nodes_fitting *f, basin_error *error) {
    basin_status status = conclude(f, error);
    for (int p = BASIN_PART_VAL; p <= BASIN_PART_TEST && f->model->score && !status; p++)
        if (basin_split_nodes(NULL, f->part, f->network->nodes, p))
            status = measure_part(f, p, error);
    return status;
}

/* ---- all of it ---- */

static basin_status describe(void *context, basin_bundle *checkpoint, basin_error *error) {
    const basin_nodes_fitting *f = context;
    return basin_nodes_describe(checkpoint, f->model->task, &f->settings, error);
}

static basin_run_task task_of(basin_nodes_fitting *f) {
    const basin_nodes_settings *s = &f->settings;
    basin_nodes_source source = basin_nodes_source_of(f);
    bool judged = f->validation_count > 0;
    return (basin_run_task){.context = f,
                            .unit = "nodes",
                            .members = s->members,
                            .epochs = s->epochs,
                            .steps = steps_of(f),
                            .items = basin_nodes_batch_nodes(&source),
                            .score_every = s->evaluate,
                            .patience = s->patience,
                            .choose = judged,
                            .score_together = f->work.parts != NULL,
                            .memory = f->bytes,
                            .schedule = schedule_of(f),
                            .store = f->store,
                            .params = &f->net.params,
                            .scored = scored(f),
                            .begin = begin,
                            .adopt = adopt,
                            .step = step,
                            .score = judged ? score : NULL,
                            .finish = finish,
                            .describe = describe,
                            .restore = restore,
                            .write = write_model};
}

static basin_status get_ready(basin_nodes_fitting *f, basin_error *error) {
    const basin_bundle *checkpoint = basin_run_checkpoint(f->run);
    const basin_task_settings *task = f->model->task;
    basin_status status = task->check(&f->settings, error);
    if (!status && checkpoint)
        status = basin_nodes_resume(&f->settings, task, checkpoint, f->work.watch, error);
    if (!status) status = basin_nodes_list_nodes(f, error);
    if (!status) status = basin_nodes_grow_trees(f, error);
    if (!status)
        status = basin_nodes_memory_take(&f->model->memory, f->network, f->part,
                                         f->model->ensemble.known.count > 0, error);
    if (!status && !f->work.parts) /* whose columns are not at hand */
        status = basin_nodes_reference_take(&f->model->reference, f->network,
                                            !basin_choice_is(f->settings.facts, "none"), error);
    if (!status)
        status =
            f->work.parts ? basin_nodes_prepare_parts(f, error) : basin_nodes_prepare(f, error);
    for (int r = 0; r < f->inputs.shape.relations && !status; r++)
        status = basin_nodes_model_add_relation(
            f->model, f->network->relation[f->inputs.relation[r]].name, error);
    if (!status && !f->work.parts) status = basin_nodes_choose_sampling(f, error);
    if (!status && f->work.parts) basin_nodes_choose_pace(f);
    if (!status) status = basin_store_new(&f->store, f->work.backend, error);
    if (!status) status = make_first_plan(f, error);
    if (!status) status = make_scorer(f, error);
    if (!status)
        basin_watch_note(f->work.watch, "training on %s%s", f->model->trained_on,
                         basin_nodes_scorer_streams(f->scorer) ? "; scoring streamed" : "");
    return status;
}

static void fitting_free(basin_nodes_fitting *f) {
    basin_nodes_scorer_free(f->scorer);
    basin_trainer_free(&f->trainer);
    basin_shards_end(&f->shards);
    basin_parted_trainer_free(f->joint);
    basin_nodes_net_free(&f->net);
    basin_store_free(f->store);
    basin_node_inputs_close(&f->inputs);
    basin_parted_inputs_close(&f->parted);
    free(f->train), free(f->label), free(f->weight), free(f->probability);
    free(f->tree_logit), free(f->class_of);
}

basin_status basin_nodes_fit(basin_nodes_model **model, basin_outcome *outcome, basin_run *run,
                             const basin_nodes_job *job, basin_error *error) {
    const basin_training *t = basin_run_training(run);
    basin_nodes_fitting f = {.network = job->network,
                             .part = job->part,
                             .run = run,
                             .settings = *job->settings,
                             .probe = job->probe,
                             .work = {t->backend, t->watch, t->memory, job->least, job->parts}};
    *model = NULL;
    BASIN_TRY(
        basin_nodes_model_new(&f.model, job->task, job->settings, job->network, t->backend, error));
    if (job->parts) f.model->features = job->network->features; /* a face has none at hand */
    basin_status status = get_ready(&f, error);
    basin_run_task task = {0};
    if (!status) task = task_of(&f);
    if (!status) status = basin_run_train(outcome, run, &task, error);
    if (!status && !outcome->stopped && !job->probe && !(t->rehearse > 0))
        status = measure(&f, error);
    fitting_free(&f);
    if (status)
        basin_nodes_close(f.model);
    else
        *model = f.model;
    return status;
}

basin_status basin_nodes_fit_quietly(basin_nodes_model **model, basin_outcome *outcome,
                                     const basin_nodes_job *job, const basin_nodes_resources *work,
                                     basin_error *error) {
    basin_watch stop = {.stop = work->watch ? work->watch->stop : NULL};
    basin_training training = {.backend = work->backend,
                               .watch = &stop,
                               .memory = work->memory,
                               .ranks = job->parts ? job->parts->ranks : NULL};
    basin_run *run;
    *model = NULL;
    basin_status status = basin_run_open(&run, &training, job->task->task, error);
    if (!status) status = basin_nodes_fit(model, outcome, run, job, error);
    basin_run_close(run);
    return status;
}
