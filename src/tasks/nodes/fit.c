/* Training with given settings: parts, weights, inputs, memory (common/run/run.h). */
#include "base/bundle.h"
#include "base/hash.h"
#include "base/info.h"
#include "base/sort.h"
#include "base/training.h"
#include "tasks/nodes/net.h"

/* ---- labels ---- */

/* An error where a part lacks a class. */
enum { FEW = 10 }; /* anomalies that leave chance too much to say */

static basin_status count_classes(int64_t count[2], const basin_nodes_fitting *f, int which,
                                  const char *what, basin_error *error) {
    const basin_network *n = f->network;
    char id[BASIN_MAX_NODE];
    count[0] = count[1] = 0;
    for (int64_t i = 0; i < n->nodes; i++) {
        if (f->part[i] != which) continue;
        if (n->label[i] < 0 || n->label[i] > 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: node %s has the label %d; needs 0 (normal) or 1 (anomalous)",
                              n->path, basin_network_id(n, i, id), n->label[i]);
        count[n->label[i]]++;
    }
    if (count[0] && count[1] && count[1] < FEW && !f->probe)
        basin_watch_note(f->work.watch,
                         "%s: only %lld anomalous nodes for %s: the threshold and the "
                         "probabilities are guesses",
                         n->path, (long long)count[1], what);
    if (count[0] && count[1]) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: %lld normal and %lld anomalous nodes for %s; needs both%s", n->path,
                      (long long)count[0], (long long)count[1], what,
                      which == BASIN_SPLIT_VAL ? ", or validation 0, which does without" : "");
}

/* Labels and weights as floats: anomalies weigh omega, the ratio of the classes, or its root. */
static void weigh(basin_nodes_fitting *f, const int64_t count[2]) {
    double omega = basin_weight_of(f->settings.balance, (double)count[0] / (double)count[1]);
    for (int64_t i = 0; i < f->train_count; i++) {
        int64_t node = f->train[i];
        f->label[node] = (float)f->network->label[node];
        f->weight[node] = f->network->label[node] ? (float)omega : 1;
    }
}

static basin_status list_nodes(basin_nodes_fitting *f, basin_error *error) {
    int64_t N = f->network->nodes, count[2];
    if (!f->network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to learn from", f->network->path);
    f->train_count = basin_split_nodes(NULL, f->part, N, BASIN_SPLIT_TRAIN);
    f->validation_count = basin_split_nodes(NULL, f->part, N, BASIN_SPLIT_VAL);
    if (!f->train_count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no training nodes", f->network->path);
    BASIN_TRY(BASIN_NEW_RAW(&f->train, f->train_count, "labels", error));
    basin_split_nodes(f->train, f->part, N, BASIN_SPLIT_TRAIN);
    if (basin_classes_several(f->model->task)) BASIN_TRY(basin_classes_take(f, error));
    int64_t width = basin_nodes_width(&f->settings);
    BASIN_TRY(BASIN_NEW(&f->label, N * width, "labels", error));
    BASIN_TRY(BASIN_NEW(&f->weight, N, "labels", error));
    BASIN_TRY(BASIN_NEW_RAW(&f->probability, N * width, "labels", error));
    if (f->class_of) return basin_classes_weigh(f), BASIN_OK;
    BASIN_TRY(count_classes(count, f, BASIN_SPLIT_TRAIN, "training", error));
    weigh(f, count);
    if (!f->validation_count) return BASIN_OK;
    return count_classes(count, f, BASIN_SPLIT_VAL, "validation", error);
}

/* Trees first, so that their inputs are freed; a resumed run grows the same ones again. */
static basin_status grow_trees(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_ensemble *e = &f->model->ensemble;
    if (!f->settings.trees) return BASIN_OK;
    BASIN_AT_EXIT(basin_tree_tables_close) basin_tree_tables tables = {0};
    BASIN_TRY(BASIN_NEW_RAW(&f->tree_logit, f->network->nodes * BASIN_TREE_VIEWS, "scores", error));
    BASIN_TRY(basin_nodes_ensemble_name(e, f->network, error));
    e->rate = basin_nodes_base_rate(f->network, f->part);
    if (f->settings.labels && f->work.parts)
        BASIN_TRY(basin_parts_name_nodes(f->work.parts, error));
    if (f->settings.labels)
        BASIN_TRY(basin_known_labels_take(&e->known, f->network, f->part, BASIN_SPLIT_TRAIN, true,
                                          &f->model->memory.salt, error));
    BASIN_AT_EXIT(basin_lesson_free) basin_lesson lesson = {0};
    if (f->settings.teacher && !f->work.parts && !f->probe)
        BASIN_TRY(basin_nodes_teach(&lesson, f->network, f->part, f->work.backend, f->work.memory,
                                    f->work.watch, error));
    BASIN_TRY(basin_tree_tables_open(&tables, f->network, f->work.parts, e, f->work.memory, error));
    BASIN_TRY(basin_nodes_ensemble_grow(e, f->settings.trees, (uint64_t)f->settings.seed, &tables,
                                        f->part, &lesson, f->run->training.ranks, f->work.watch,
                                        error));
    return basin_nodes_ensemble_logits(f->tree_logit, e, &tables, true, error);
}

/* ---- what an epoch takes of the graph ---- */

static bool is_full(const basin_nodes_fitting *f) {
    return basin_choice_is(f->settings.sampling, "full");
}

enum { VISITED = 8192 }; /* training nodes of an epoch of samples, at most */

/* Validation scores all nodes: samples of large graphs are small and validated seldom. */
static void choose_pace(basin_nodes_fitting *f) {
    enum { VALIDATIONS = 5, VALIDATE_EVERY = 4 };
    basin_nodes_settings *s = &f->settings;
    bool walk = basin_choice_is(s->sampling, "neighbours");
    if (s->fraction <= 0) s->fraction = walk ? fmin(1, VISITED / (double)f->train_count) : 0.05;
    if (!s->evaluate)
        s->evaluate = !is_full(f) && s->epochs > VALIDATIONS * VALIDATE_EVERY
                          ? s->epochs / VALIDATIONS
                          : VALIDATE_EVERY;
    f->model->settings.fraction = s->fraction;
    f->model->settings.evaluate = s->evaluate;
}

/* Whether epochs of samples are quicker than of the full graph, on processors. Work is in pairs, a
 * node as three; that of samples takes 1.5 times as long (docs/anomaly.md). */
static bool is_slower(const basin_nodes_fitting *f) {
    enum { LARGE = 100000 };
    const basin_nodes_settings *s = &f->settings;
    double N = (double)f->network->nodes, full = 3 * N, train = (double)f->train_count;
    double level = (double)s->batch, sample = 3 * level,
           visited = s->fraction > 0 ? s->fraction * train : fmin(train, VISITED);
    double batches = ceil(visited / (double)s->batch);
    for (int r = 0; r < f->inputs.shape.relations; r++) full += (double)f->inputs.shape.pairs[r];
    for (int i = 0; i < 3 && i < s->blocks * s->steps; i++) {
        level *= i ? 1 + (double)(s->fanout / 4) : (double)s->fanout;
        sample += 3 * level + 2 * level * f->inputs.shape.relations;
    }
    return N >= LARGE && full > 1.3 * 1.5 * batches * sample && !s->implicit &&
           basin_choice_is(s->position, "none") &&
           strcmp(basin_backend_info_of(f->work.backend).name, "cuda") != 0;
}

/* Few training nodes make small batches: an epoch should have some steps. */
static void choose_batch(basin_nodes_fitting *f) {
    enum { STEPS = 8, MINIMUM = 64 };
    int64_t *batch = &f->settings.batch;
    while (*batch >= 2 * MINIMUM && *batch * STEPS > f->train_count) *batch /= 2;
    f->model->settings.batch = *batch;
}

/* Full where it fits and neighbours are not preferred; then how much an epoch takes of it. */
static basin_status choose_sampling(basin_nodes_fitting *f, basin_error *error) {
    enum { FEW_SEEN = 2, MORE_SEEN = 8 };
    if (!f->settings.fanout) f->settings.fanout = f->inputs.shape.facts ? MORE_SEEN : FEW_SEEN;
    f->model->settings.fanout = f->settings.fanout;
    char *how = f->model->trained_on;
    size_t size = sizeof f->model->trained_on, limit = basin_nodes_memory_limit(&f->work);
    const char *asked = f->settings.sampling;
    BASIN_TRY(basin_nodes_net_memory(&f->bytes, &f->settings, &f->inputs.shape, true,
                                     f->work.backend, error));
    f->bytes += basin_parted_inputs_bytes(&f->inputs);
    f->shrink = basin_choice_is(asked, "auto");
    bool samples = basin_nodes_prefer_samples(&f->settings, f->model->task);
    if (f->shrink && samples) choose_batch(f);
    samples = samples || is_slower(f);
    if (f->shrink) f->settings.sampling = f->bytes <= limit && !samples ? "full" : "neighbours";
    f->model->sampled = !is_full(f);
    choose_pace(f);
    double gib = (double)f->bytes / (1 << 30), max = (double)limit / (1 << 30);
    if (f->settings.implicit && !is_full(f))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "sampling is %s with implicit: a fixed point depends on the whole graph "
                          "(%.2f GiB of %.1f allowed); needs sampling full",
                          asked, gib, max);
    if (is_full(f)) return BASIN_OK;
    char share[32] = "all";
    if (f->settings.fraction < 1) snprintf(share, sizeof share, "%.3g", f->settings.fraction);
    int used = snprintf(how, size, "samples of %s, %s of the nodes per epoch", f->settings.sampling,
                        share);
    if (f->bytes > limit)
        snprintf(how + used, size - (size_t)used, " (the full graph: %.1f GiB of %.1f)", gib, max);
    return BASIN_OK;
}

/* Bytes of the process: plans, network, table, program, and what trees left (docs/scale.md). */
static void count_memory(basin_nodes_fitting *f) {
    const basin_parts *p = f->work.parts;
    char *how = f->model->trained_on;
    size_t size = sizeof f->model->trained_on, used = strlen(how);
    size_t rows = (size_t)basin_int_min(f->train_count + f->validation_count, 200000);
    size_t columns = 3 * ((size_t)f->network->features + 1), N = (size_t)f->network->nodes;
    f->bytes = basin_parted_inputs_bytes(&f->inputs) + basin_nodes_scorer_bytes(f->scorer);
    f->bytes +=
        (size_t)27e6 + (f->settings.trees ? (size_t)16e6 + 32 * N + 20 * columns * rows : 0);
    f->bytes += p ? basin_parted_trainer_bytes(f->joint)
                  : basin_plan_work_bytes(basin_trainer_plan(f->trainer));
    double gib = (double)f->bytes / (1 << 30),
           ranks = (double)basin_ranks_count(p ? p->ranks : NULL);
    if (p)
        snprintf(how, size, "the full graph in %lld parts on %g rank%s, %.2f GiB on the first",
                 (long long)p->parts, ranks, ranks > 1 ? "s" : "", gib);
    else if (is_full(f))
        snprintf(how, size, "the full graph in %.2f GiB of %.1f allowed", gib,
                 (double)basin_nodes_memory_limit(&f->work) / (1 << 30));
    else
        snprintf(how + used, size - used, ", in %.2f GiB", gib);
}

/* A limit that was asked for counts the network and its table; one from free memory does not. */
static basin_status check_memory(const basin_nodes_fitting *f, size_t bytes, const char *what,
                                 const char *smaller, basin_error *error) {
    size_t limit = basin_nodes_memory_limit(&f->work),
           graph = basin_parted_inputs_bytes(&f->inputs);
    size_t need = bytes + (f->work.memory ? graph : 0);
    if (f->work.minimal || need <= limit) return BASIN_OK;
    const double gib = 1 << 30;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: %s takes %.3g GiB (the graph and its inputs %.3g, the plan %.3g) of "
                      "%.3g allowed; needs more memory, a smaller model (dim, memories, blocks)%s",
                      f->network->path, what, (double)need / gib, (double)(need - bytes) / gib,
                      (double)bytes / gib, (double)limit / gib, smaller);
}

/* By the finished plan's own figures: extrapolating from a part overestimates. */
static basin_status check_samples_memory(basin_nodes_fitting *f, basin_error *error) {
    const basin_nodes_shape *shape = &f->planned;
    bool walk = basin_choice_is(f->settings.sampling, "neighbours");
    size_t bytes = basin_plan_work_bytes(basin_trainer_plan(f->trainer)), pairs = 0;
    for (int r = 0; r < shape->relations; r++) pairs += (size_t)shape->pairs[r];
    bytes += pairs * 3 * sizeof(int32_t); /* what is written: the list, the rows gathered */
    bytes += (size_t)shape->nodes * (size_t)shape->columns * sizeof(float);
    bytes += basin_nodes_position_bytes(&f->settings, shape, true);
    f->bytes = bytes + basin_parted_inputs_bytes(&f->inputs);
    return check_memory(f, bytes, walk ? "training on neighbours" : "training on subgraphs",
                        walk ? ", or smaller samples (batch, fanout)" : ", or a smaller fraction",
                        error);
}

/* ---- The task of the run: members one after the other; a step is the whole graph or a sample by
 * the member's seed and the step, a score the probabilities of the validation nodes. ---- */

static uint64_t member_seed(const basin_nodes_fitting *f) {
    return (uint64_t)f->settings.seed + 1000003u * (uint64_t)f->member;
}

static basin_nodes_source source_of(const basin_nodes_fitting *f) {
    return (basin_nodes_source){f->inputs.whole, f->label,       f->weight,
                                f->train,        f->train_count, .shards = f->settings.shards};
}

static int64_t steps_of(const basin_nodes_fitting *f) {
    basin_nodes_source source = source_of(f);
    return basin_nodes_batch_count(&source);
}

/* ---- plans ---- */

static basin_trainer_spec spec_of(const basin_nodes_fitting *f) {
    const basin_nodes_settings *s = &f->settings;
    return (basin_trainer_spec){.optimizer = basin_nodes_net_adamw(s),
                                .schedule =
                                    basin_schedule_make(steps_of(f), s->epochs, s->warmup, s->rate,
                                                        s->rate_first, s->rate_last),
                                .reduction = f->shards.tree ? &basin_shards_reduction : NULL};
}

/* A trainer for this shape in place of the one before; only batches have shards. */
static basin_status make_trainer(basin_nodes_fitting *f, const basin_nodes_shape *shape,
                                 basin_error *error) {
    basin_trainer_free_at(&f->trainer);
    basin_nodes_net_free(&f->net);
    BASIN_TRY(basin_nodes_net_new(&f->net, &f->settings, shape, true, error));
    if (!is_full(f) && !f->shards.count)
        BASIN_TRY(basin_shards_begin(&f->shards, &f->run->training, f->settings.shards,
                                     &f->net.params, error));
    basin_trainer_spec spec = spec_of(f);
    BASIN_TRY(basin_trainer_new(&f->trainer, f->store, &f->net.params, f->net.loss, &spec, error));
    f->planned = *shape;
    return is_full(f) ? BASIN_OK : check_samples_memory(f, error);
}

static basin_status make_for_samples(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_source source = source_of(f);
    basin_nodes_batch batch;
    source.shard = source.shards > 1 ? source.shards - 1 : 0; /* the last has some in any case */
    BASIN_TRY(basin_nodes_batch_draw(&batch, &source, (uint64_t)f->settings.seed, 0, 0, error));
    basin_nodes_shape shape = batch.shape;
    basin_nodes_batch_free(&batch);
    return make_trainer(f, &shape, error);
}

/* Batches are halved until they fit where they are left to us. */
static basin_status make_samples(basin_nodes_fitting *f, basin_error *error) {
    enum { MINIMUM = 32 }; /* targets, below which a step learns next to nothing */
    int64_t asked = f->settings.batch;
    basin_status status = make_for_samples(f, error);
    while (status == BASIN_NO_MEMORY && f->shrink && f->settings.batch > MINIMUM) {
        f->settings.batch /= 2;
        status = make_for_samples(f, error);
    }
    f->model->settings.batch = f->settings.batch;
    if (!status && f->settings.batch < asked)
        basin_watch_note(f->work.watch, "batches of %lld targets: %lld would not fit",
                         (long long)f->settings.batch, (long long)asked);
    return status;
}

/* Weights make up 1 over all training nodes. */
static basin_status make_joint(basin_nodes_fitting *f, basin_error *error) {
    int64_t N = f->network->nodes;
    basin_trainer_spec spec = spec_of(f);
    double sum = 0;
    BASIN_SCRATCH_RAW(float, share, N, "weights", error);
    for (int64_t i = 0; i < N; i++) sum += (double)f->weight[i];
    for (int64_t i = 0; i < N; i++) share[i] = (float)((double)f->weight[i] / sum);
    BASIN_TRY(basin_nodes_net_new(&f->net, &f->settings, &f->inputs.shape, true, error));
    BASIN_TRY(basin_parted_trainer_new(&f->joint, &f->inputs, &f->net, f->store, &spec, f->label,
                                       share, error));
    f->bytes = basin_parted_trainer_bytes(f->joint) + basin_parted_inputs_bytes(&f->inputs);
    return BASIN_OK;
}

static basin_status make_first_plan(basin_nodes_fitting *f, basin_error *error) {
    if (f->work.parts) return make_joint(f, error);
    if (!is_full(f)) return make_samples(f, error);
    BASIN_TRY(make_trainer(f, &f->inputs.shape, error));
    return basin_parted_inputs_write(&f->inputs, 0, &f->net, basin_trainer_plan(f->trainer),
                                     f->label, f->weight, error);
}

static basin_status make_scorer(basin_nodes_fitting *f, basin_error *error) {
    bool parts = f->work.parts != NULL;
    size_t limit = parts ? 0 : basin_nodes_memory_limit(&f->work);
    size_t taken = is_full(f) ? f->bytes : basin_parted_inputs_bytes(&f->inputs);
    BASIN_TRY(basin_nodes_scorer_new(&f->scorer, &f->inputs, limit > taken ? limit - taken : 0,
                                     &f->work, error));
    if (is_full(f) || !basin_nodes_scorer_streams(f->scorer)) return BASIN_OK;
    return check_memory(f, basin_nodes_scorer_bytes(f->scorer), "scoring all nodes, streamed,", "",
                        error);
}

/* ---- parameters in the store ---- */

enum { NAME = 300 };

static basin_status clear_moments(basin_nodes_fitting *f, basin_error *error) {
    static const char *const moment[] = {".m", ".v"};
    for (size_t i = 0; i < 2 * f->net.params.count; i++) {
        basin_expr state = f->net.params.param[i / 2].state;
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor zero = {0};
        char name[NAME];
        snprintf(name, NAME, "%s%s", basin_expr_name(state), moment[i % 2]);
        BASIN_TRY(basin_tensor_new(&zero, BASIN_F32, basin_expr_shape(state), error));
        BASIN_TRY(basin_store_write(f->store, name, &zero, error));
    }
    return BASIN_OK;
}

/* The parameters `prefix` + NAME become the member's, by NAME. */
static basin_status keep_member(basin_nodes_fitting *f, int64_t member, const char *prefix,
                                basin_error *error) {
    basin_bundle **bundle = &f->model->member[member];
    if (f->model->members <= member) f->model->members = member + 1;
    basin_bundle_free(*bundle);
    *bundle = NULL;
    BASIN_TRY(basin_bundle_new(bundle, NULL, error));
    for (size_t i = 0; i < f->net.params.count; i++) {
        basin_expr state = f->net.params.param[i].state;
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
        char name[NAME];
        snprintf(name, NAME, "%s%s", prefix, basin_expr_name(state));
        BASIN_TRY(basin_store_get(&tensor, f->store, name, error));
        BASIN_TRY(basin_bundle_add(*bundle, basin_expr_name(state), &tensor, error));
    }
    return BASIN_OK;
}

/* ---- members ---- */

static basin_status begin(void *context, int64_t member, basin_error *error) {
    basin_nodes_fitting *f = context;
    f->member = member;
    BASIN_TRY(basin_params_init(&f->net.params, f->store, member_seed(f), error));
    return clear_moments(f, error);
}

/* From the model's members, counted round and round where it has fewer. */
static basin_status adopt(void *context, int64_t member, const basin_bundle *from,
                          basin_error *error) {
    basin_nodes_fitting *f = context;
    basin_nodes_settings its = f->settings;
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *weights = NULL;
    BASIN_TRY(basin_settings_take(&its, f->model->task, from, error));
    int64_t number = its.members < 1 ? 0 : member % its.members;
    BASIN_TRY(basin_nodes_member_read(&weights, from, number, error));
    return basin_params_read(&f->net.params, f->store, weights, error);
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
    BASIN_TRY(
        basin_states_copy(f->store, &f->net.params, member_prefix(prefix, member), "", error));
    BASIN_TRY(keep_member(f, member, prefix, error));
    /* Scores of parts are found by all ranks, the file is written by one. */
    bool last = member + 1 == f->settings.members && !f->probe;
    return f->work.parts && last ? conclude(f, error) : BASIN_OK;
}

static basin_status restore(void *context, int64_t member, const basin_bundle *checkpoint,
                            basin_error *error) {
    basin_nodes_fitting *f = context;
    char prefix[32];
    (void)checkpoint;
    f->member = member;
    for (int64_t m = 0; m < member; m++)
        BASIN_TRY(keep_member(f, m, member_prefix(prefix, m), error));
    return BASIN_OK;
}

/* ---- steps ---- */

static bool same_shape(const basin_nodes_shape *a, const basin_nodes_shape *b) {
    return a->nodes == b->nodes &&
           !memcmp(a->pairs, b->pairs, (size_t)a->relations * sizeof *a->pairs);
}

/* Draws a shard and writes it to the plan; *weight is that of its targets, 0: there are none. */
static basin_status write_sample(basin_nodes_fitting *f, double *weight, int64_t shard,
                                 const basin_run_place *place, basin_error *error) {
    basin_nodes_source source = source_of(f);
    BASIN_AT_EXIT(basin_nodes_batch_free) basin_nodes_batch batch = {0};
    source.shard = shard;
    *weight = 0;
    BASIN_TRY(
        basin_nodes_batch_draw(&batch, &source, member_seed(f), place->epoch, place->batch, error));
    if (!batch.network) return BASIN_OK;
    for (int64_t i = 0; i < batch.targets; i++) *weight += (double)batch.weight[i];
    if (!same_shape(&batch.shape, &f->planned)) BASIN_TRY(make_trainer(f, &batch.shape, error));
    basin_nodes_net_data data = basin_nodes_batch_data(&batch);
    return basin_nodes_net_write(&f->net, basin_trainer_plan(f->trainer), &data, error);
}

/* Targets with some of their neighbours, of a graph that every rank has whole (a file that is
 * mapped is in memory once a host): this rank's shards of a batch; a single rank may have one. */
static basin_status step_samples(basin_nodes_fitting *f, double *loss, const basin_run_place *place,
                                 uint64_t seed, basin_error *error) {
    bool alone = !f->shards.tree;
    double weight;
    for (int64_t i = 0; i < f->shards.share.count; i++) {
        int64_t shard = f->shards.share.first + i;
        uint64_t own = seed ^ (uint64_t)shard * UINT64_C(0xd1342543de82ef95);
        BASIN_TRY(write_sample(f, &weight, shard, place, error));
        /* Where scoring took the plan's memory, a shard without targets finds none. */
        if (!basin_trainer_plan(f->trainer)) BASIN_TRY(make_for_samples(f, error));
        BASIN_TRY(basin_nodes_net_write_seed(&f->net, basin_trainer_plan(f->trainer), own, error));
        if (!alone)
            BASIN_TRY(weight > 0 ? basin_shards_add(&f->shards, f->trainer, weight, error)
                                 : basin_shards_add_empty(&f->shards, f->trainer, error));
    }
    basin_trainer_set_step(f->trainer, place->step);
    return alone ? basin_trainer_step(loss, f->trainer, error)
                 : basin_shards_step(&f->shards, loss, &weight, f->trainer, error);
}

static basin_status step(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error) {
    basin_nodes_fitting *f = context;
    uint64_t seed = member_seed(f) * 0x9e3779b97f4a7c15u + (uint64_t)place->step;
    double loss = NAN;
    if (f->joint) {
        BASIN_TRY(basin_parted_trainer_step(f->joint, &loss, place->step, seed, error));
    } else if (is_full(f)) {
        basin_trainer_set_step(f->trainer, place->step);
        BASIN_TRY(basin_nodes_net_write_seed(&f->net, basin_trainer_plan(f->trainer), seed, error));
        BASIN_TRY(basin_trainer_step(&loss, f->trainer, error));
    } else {
        BASIN_TRY(step_samples(f, &loss, place, seed, error));
    }
    sum->loss += loss;
    sum->weight += 1;
    return BASIN_OK;
}

/* ---- scores ---- */

static basin_status choose_threshold(double *threshold, const basin_nodes_fitting *f,
                                     basin_error *error) {
    if (f->class_of) return BASIN_OK;
    return basin_nodes_choose_threshold(threshold, f->probability, f->network, f->part,
                                        f->settings.threshold, error);
}

/* A stream needs the memory that the plan of samples holds; the next step makes it anew. */
static void release(basin_nodes_fitting *f) {
    if (f->joint) basin_parted_trainer_release(f->joint);
    if (!basin_nodes_scorer_streams(f->scorer) || is_full(f)) return;
    basin_trainer_free_at(&f->trainer);
    f->planned = (basin_nodes_shape){0};
}

static basin_status score(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error) {
    basin_nodes_fitting *f = context;
    basin_score found;
    double threshold = 0;
    (void)place;
    release(f);
    const char *prefix = f->settings.average > 0 ? "average." : "";
    BASIN_TRY(basin_nodes_scorer_run(f->scorer, f->probability, f->store, prefix, error));
    BASIN_TRY(choose_threshold(&threshold, f, error));
    BASIN_TRY(basin_nodes_evaluate(&found, f->probability, f->model, f->network, f->part,
                                   BASIN_SPLIT_VAL, threshold, error));
    for (int i = 0; i < found.measures; i++) {
        char name[BASIN_MAX_MEASURE_NAME + 16];
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
    BASIN_FREE_AT_EXIT double *trees = NULL;
    bool both = f->tree_logit != NULL;
    if (both) BASIN_TRY(BASIN_NEW_RAW(&trees, f->network->nodes, "scores", error));
    BASIN_TRY(basin_nodes_scorer_mean(f->scorer, f->probability, both, m, error));
    if (!both) return BASIN_OK;
    BASIN_TRY(basin_nodes_ensemble_choose(&m->ensemble, trees, f->tree_logit, f->probability,
                                          f->network, f->part, f->settings.threshold, error));
    basin_nodes_ensemble_mix(f->probability, &m->ensemble, trees, f->probability,
                             f->network->nodes);
    return BASIN_OK;
}

/* Share, threshold and calibration; classes have none of these. */
static basin_status conclude(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_model *m = f->model;
    if (!f->validation_count || m->score) return BASIN_OK;
    release(f);
    BASIN_TRY(score_all(f, error));
    BASIN_TRY(choose_threshold(&m->threshold, f, error));
    if (!f->class_of) {
        BASIN_TRY(basin_nodes_calibrate(m, f->probability, f->network, f->part, error));
        BASIN_TRY(basin_nodes_evaluate(&m->memory.card.validation, f->probability, NULL, f->network,
                                       f->part, BASIN_SPLIT_VAL, m->threshold, error));
    }
    m->score = f->probability;
    f->probability = NULL;
    return BASIN_OK;
}

static basin_status write_model(void *context, const char *path, basin_error *error) {
    basin_nodes_fitting *f = context;
    BASIN_TRY(conclude(f, error));
    return basin_nodes_write(path, f->model, error);
}

static basin_status measure(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_model *m = f->model;
    BASIN_TRY(conclude(f, error));
    for (int p = BASIN_SPLIT_VAL; p <= BASIN_SPLIT_TEST && m->score; p++) {
        BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples s = {0};
        if (!basin_split_nodes(NULL, f->part, f->network->nodes, p)) continue;
        BASIN_TRY(basin_nodes_evaluate(&m->reached[p], m->score, m, f->network, f->part, p,
                                       m->threshold, error));
        if (f->class_of) continue;
        BASIN_TRY(basin_nodes_samples_take(&s, m->score, f->network, f->part, p, error));
        m->reliability[p].size = sizeof(basin_reliability);
        basin_reliability_measure(&m->reliability[p], s.score, s.label, s.count);
    }
    return BASIN_OK;
}

/* ---- all of it ---- */

static basin_status describe(void *context, basin_bundle *checkpoint, basin_error *error) {
    const basin_nodes_fitting *f = context;
    const basin_task_settings *task = f->model->task;
    char kind[60];
    snprintf(kind, sizeof kind, "%s checkpoint", task->task);
    BASIN_TRY(basin_settings_store(checkpoint, kind, &f->settings, task, error));
    const char *parents = f->model->memory.card.parents;
    return parents ? basin_bundle_meta_set(checkpoint, "trained.parents", parents, error)
                   : BASIN_OK;
}

static basin_run_task task_of(basin_nodes_fitting *f) {
    const basin_nodes_settings *s = &f->settings;
    basin_nodes_source source = source_of(f);
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
                            .schedule = spec_of(f).schedule,
                            .store = f->store,
                            .params = &f->net.params,
                            .average = s->average,
                            .data = f->data,
                            .begin = begin,
                            .adopt = adopt,
                            .step = step,
                            .score = judged ? score : NULL,
                            .finish = finish,
                            .describe = describe,
                            .restore = restore,
                            .write = write_model};
}

/* ---- columns that leak the answer ---- */

/* A column that is written after the answer is known makes every figure meaningless. */
basin_status basin_nodes_note_leaks(const basin_leaks *l, const basin_watch *watch,
                                    basin_error *error) {
    enum { ENOUGH = 20000, RARE = 3 };
    static const double limit = 0.995;
    int64_t count = 0, labelled = 0, ones = 0, seen = 0;
    char name[BASIN_MAX_REASON];
    for (int64_t i = 0; i < l->network->nodes; i++) labelled += l->label[i] >= 0;
    int64_t step = 1 + labelled / ENOUGH;
    BASIN_SCRATCH_RAW(int64_t, node, labelled, "labels", error);
    BASIN_SCRATCH_RAW(uint8_t, label, labelled, "labels", error);
    BASIN_SCRATCH_RAW(double, score, labelled, "labels", error);
    for (int64_t i = 0; i < l->network->nodes; i++) {
        if (l->label[i] < 0 || (!l->label[i] && seen++ % step)) continue; /* every anomaly */
        ones += label[count] = l->label[i] > 0;
        node[count++] = i;
    }
    for (int64_t c = 0; c < l->columns && ones >= RARE && count - ones >= RARE; c++) {
        basin_ranking ranking = {.size = sizeof ranking};
        for (int64_t i = 0; i < count; i++) {
            float x = l->value[node[i] * l->stride + c];
            score[i] = isfinite(x) ? (double)x : 0;
        }
        BASIN_TRY(basin_ranking_measure(&ranking, score, label, count, 0, error));
        double auroc = fmax(ranking.auroc, 1 - ranking.auroc); /* either way round */
        if (auroc > limit)
            basin_watch_note(
                watch,
                "%s: column '%s' by itself has an AUROC of %.4f: if it is written when the "
                "answer is known, leave it out (drop)",
                l->network->path, l->name(name, l->of, c), auroc);
    }
    return BASIN_OK;
}

static const char *own_column(char text[BASIN_MAX_REASON], const void *of, int64_t c) {
    const basin_nodes_fitting *f = of;
    const basin_node_table *t = &f->inputs.whole->node;
    int64_t fact = c - (t->own - t->facts);
    basin_nodes_feature column = {.column = c,
                                  .fact = fact < 0 ? -1 : fact % (t->facts / t->relations)};
    return basin_nodes_reason_name(text, f->network, &column);
}

static basin_status warn_of_leaks(const basin_nodes_fitting *f, basin_error *error) {
    const basin_network *n = f->network;
    const basin_node_inputs *in = f->inputs.whole;
    if (f->probe || f->class_of || !in->raw) return BASIN_OK;
    BASIN_SCRATCH_RAW(int32_t, label, n->nodes, "labels", error);
    for (int64_t i = 0; i < n->nodes; i++) {
        bool taken = f->part[i] == BASIN_SPLIT_TRAIN || f->part[i] == BASIN_SPLIT_VAL;
        label[i] = taken ? n->label[i] == 1 : -1;
    }
    basin_leaks l = {n, label, in->raw, in->node.own, in->node.own, own_column, f};
    return basin_nodes_note_leaks(&l, f->work.watch, error);
}

static basin_status prepare(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_model *m = f->model;
    basin_parts *parts = f->work.parts;
    const char *sampling = f->settings.sampling;
    if (parts && !basin_choice_is(sampling, "auto") && !basin_choice_is(sampling, "full"))
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "sampling %s is not supported for a partitioned graph; use sampling full, "
            "or neighbours of the whole graph, in 1 part",
            sampling);
    if (parts) parts->threads = basin_backend_info_of(f->work.backend).threads;
    BASIN_TRY(basin_parted_inputs_open(&f->inputs, f->network, parts, &f->settings, error));
    if (parts) f->settings.sampling = "full";
    BASIN_TRY(warn_of_leaks(f, error));
    BASIN_TRY(basin_parted_inputs_fit(&m->scale, &m->edge_scale, &f->inputs, f->train,
                                      f->train_count, error));
    BASIN_TRY(basin_parted_inputs_scale(&f->inputs, &m->scale, &m->edge_scale, error));
    for (int r = 0; r < f->inputs.shape.relations; r++)
        basin_nodes_add_line(m->relations,
                             f->network->relation[f->inputs.whole->node.relation[r]].name);
    if (!parts) return choose_sampling(f, error);
    choose_pace(f);
    return BASIN_OK;
}

static basin_status get_ready(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_model *m = f->model;
    BASIN_TRY(m->task->check(&f->settings, error));
    if (f->run->saved) BASIN_TRY(basin_nodes_resume(&f->settings, m->task, f->run, error));
    BASIN_TRY(list_nodes(f, error));
    BASIN_TRY(basin_nodes_memory_begin(&m->memory, f->record, f->network, f->settings.seed, f->run,
                                       error));
    BASIN_TRY(grow_trees(f, error));
    if (!f->probe)
        BASIN_TRY(basin_nodes_memory_take(&m->memory, f->network, f->part,
                                          m->ensemble.known.count > 0, f->work.watch, error));
    if (!f->work.parts && !f->probe) /* whose columns are not at hand */
        BASIN_TRY(basin_nodes_reference_take(&m->reference, f->network,
                                             !basin_choice_is(f->settings.facts, "none"), error));
    BASIN_TRY(prepare(f, error));
    BASIN_TRY(basin_store_new(&f->store, f->work.backend, error));
    BASIN_TRY(make_first_plan(f, error));
    BASIN_TRY(make_scorer(f, error));
    count_memory(f);
    basin_watch_note(f->work.watch, "training on %s%s", m->trained_on,
                     basin_nodes_scorer_streams(f->scorer) ? "; scoring streamed" : "");
    return BASIN_OK;
}

static void fitting_free(basin_nodes_fitting *f) {
    basin_nodes_scorer_free(f->scorer);
    basin_trainer_free_at(&f->trainer);
    basin_shards_end(&f->shards);
    basin_parted_trainer_free(f->joint);
    basin_nodes_net_free(&f->net);
    basin_store_free(f->store);
    basin_parted_inputs_close(&f->inputs);
    BASIN_FREE(f->train, f->label, f->weight, f->probability, f->tree_logit, f->class_of);
}

/* A digest of the data and of the split; 0: not known. */
static uint64_t digest_of(const basin_nodes_job *job) {
    if (!job->record || !job->record->digest) return 0;
    uint64_t hash = basin_hash_text(BASIN_HASH_START, job->record->digest);
    return basin_hash_bytes(hash, job->part, (size_t)job->network->nodes);
}

static basin_status run_fitting(basin_training_result *outcome, basin_nodes_fitting *f,
                                basin_error *error) {
    BASIN_TRY(get_ready(f, error));
    basin_run_task task = task_of(f);
    BASIN_TRY(basin_run_train(outcome, f->run, &task, error));
    bool whole = !outcome->stopped && !f->probe && !(f->run->training.dry_run_seconds > 0);
    return whole ? measure(f, error) : BASIN_OK;
}

basin_status basin_nodes_fit(basin_nodes_model **model, basin_training_result *outcome,
                             basin_run *run, const basin_nodes_job *job, basin_error *error) {
    const basin_training_options *t = &run->training;
    BASIN_AT_EXIT(fitting_free)
    basin_nodes_fitting f = {
        .network = job->network,
        .part = job->part,
        .run = run,
        .settings = *job->settings,
        .probe = job->probe,
        .record = job->record,
        .data = digest_of(job),
        .work = {t->backend, t->watch, t->memory, job->minimal, job->network->parts}};
    *model = NULL;
    BASIN_TRY(
        basin_nodes_model_new(&f.model, job->task, job->settings, job->network, t->backend, error));
    if (job->network->parts)
        f.model->features = job->network->features; /* a graph in parts has none */
    BASIN_TRY_OR(run_fitting(outcome, &f, error), basin_nodes_close(f.model));
    *model = f.model;
    return BASIN_OK;
}

static void close_run(basin_run **run) { basin_run_close(*run); }

basin_status basin_nodes_fit_quietly(basin_nodes_model **model, basin_training_result *outcome,
                                     const basin_nodes_job *job, const basin_nodes_resources *work,
                                     basin_error *error) {
    basin_watch stop = work->watch ? *work->watch : (basin_watch){0};
    stop.show = NULL, stop.note = NULL;
    basin_training_options training = {.backend = work->backend,
                                       .watch = &stop,
                                       .memory = work->memory,
                                       .ranks =
                                           job->network->parts ? job->network->parts->ranks : NULL};
    BASIN_AT_EXIT(close_run) basin_run *run = NULL;
    *model = NULL;
    BASIN_TRY(basin_run_open(&run, &training, job->task->task, error));
    return basin_nodes_fit(model, outcome, run, job, error);
}
