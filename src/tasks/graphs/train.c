/* Training of graph models as a task of the one run (src/tasks/common/run): a step is a shuffled
 * batch, a score is of the validation graphs. Everything random is a function of seed and epoch or
 * step. */
#include "base/sized.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/plan.h"
#include "basin/random.h"
#include "tasks/graphs/graphs.h"

enum { STREAM_SHUFFLE = 44, STREAM_LIMIT = 45, FEWER = 2, ENOUGH = 50 };

typedef struct job {
    basin_graphs_model *model;
    const basin_graphs_input *input;
    const basin_fold *fold, *folds; /* that of the member; [members] */
    int64_t trains;                 /* graphs of an epoch: of the smallest fold */
    int64_t seed;                   /* of the first member */
    basin_graphs_plans train, score;
    basin_shards shards;
    int64_t *order, *batch; /* [trains] of the epoch `shuffled` */
    int64_t shuffled;
    int64_t step_graphs; /* of a whole batch */
    basin_run_task task;
    basin_score best; /* of several members together */
    bool enough;      /* on the same graphs the memory by itself is as good */
} job;

/* ---- what a step and a score are ---- */

static void shuffle(job *j, int64_t epoch) {
    const basin_fold *f = j->fold;
    if (j->shuffled == epoch) return;
    basin_random_permutation(j->order, (size_t)f->count[0], (uint64_t)j->model->settings.seed,
                             STREAM_SHUFFLE + ((uint64_t)epoch << 8));
    for (int64_t i = 0; i < f->count[0]; i++) j->batch[i] = f->item[0][j->order[i]];
    j->shuffled = epoch;
}

/* The graphs and the seed of a member. */
static void take_fold(job *j, int64_t member) {
    j->fold = &j->folds[member];
    j->model->settings.seed = j->seed + member;
    j->shuffled = -1;
}

/* This rank's shards of a batch of `count` graphs. Noise is drawn for each shard anew. */
static basin_status step_shards(job *j, basin_run_sum *sum, const basin_run_place *place,
                                const int64_t *graph, int64_t count, basin_error *error) {
    basin_shards *s = &j->shards;
    basin_graphs_plan *plan = NULL;
    double loss, weight;
    for (int64_t i = s->share.first; i < s->share.first + s->share.count; i++) {
        basin_ranks_share part = basin_ranks_deal_to(i, s->count, count);
        j->train.step = place->step * s->count + i;
        BASIN_TRY(basin_graphs_plans_load(&plan, &weight, &j->train, j->input, graph + part.first,
                                          part.count, (uint64_t)place->epoch, error));
        BASIN_TRY(weight > 0 ? basin_shards_add(s, plan->trainer, weight, error)
                             : basin_shards_add_empty(s, plan->trainer, error));
    }
    basin_trainer_set_step(plan->trainer, place->step);
    BASIN_TRY(basin_shards_step(s, &loss, &weight, plan->trainer, error));
    sum->loss += loss * (double)count;
    sum->weight += (double)count;
    return BASIN_OK;
}

static basin_status step(void *context, basin_run_sum *sum, const basin_run_place *place,
                         basin_error *error) {
    job *j = context;
    int64_t size = j->step_graphs, at = place->batch * size, left = j->trains - at;
    int64_t count = left < size ? left : size;
    basin_status status;
    shuffle(j, place->epoch);
    j->train.step = place->step;
    if (j->shards.tree)
        status = step_shards(j, sum, place, j->batch + at, count, error);
    else
        status = basin_graphs_plans_step(&j->train, sum, j->input, j->batch + at, count,
                                         (uint64_t)place->epoch, error);
    j->task.memory = j->train.bytes;
    return status;
}

static basin_status settle(void *context, basin_run_sum *sum, basin_error *error) {
    return basin_graphs_plans_settle(&((job *)context)->train, sum, error);
}

static basin_status score_outputs(basin_score *score, const float *output, const job *j,
                                  const int64_t *graph, int64_t count, basin_error *error) {
    basin_graphs_measures v;
    BASIN_TRY(basin_graphs_measure(&v, output, &j->input->set, graph, count, j->model->outputs,
                                   j->model->target_scale, error));
    /* Rounded, so that equal scores of different machines tie. */
    score->merit = (double)(float)v.merit;
    score->tie = -(double)(float)v.loss;
    if (!isnan(v.auroc)) basin_score_add(score, "validation_auroc", v.auroc);
    if (!isnan(v.auroc)) basin_score_add(score, "validation_auprc", v.auprc);
    if (j->model->target != BASIN_GRAPHS_VALUES) {
        basin_score_add(score, "validation_accuracy", v.accuracy);
        basin_score_add(score, "validation_balanced", v.balanced);
    }
    basin_score_add(score, "validation_loss", v.loss);
    if (j->model->target == BASIN_GRAPHS_VALUES)
        basin_score_add(score, "validation_deviation", v.deviation);
    return BASIN_OK;
}

static basin_status score(void *context, basin_score *score, const basin_run_place *place,
                          basin_error *error) {
    job *j = context;
    const basin_fold *f = j->fold;
    BASIN_FREE_AT_EXIT float *output = NULL;
    (void)place;
    BASIN_TRY(basin_graphs_outputs(&output, &j->score, j->input, f->item[1], f->count[1], error));
    return score_outputs(score, output, j, f->item[1], f->count[1], error);
}

/* A checkpoint has the seed of the first member. */
static basin_status describe(void *context, basin_bundle *checkpoint, basin_error *error) {
    const job *j = context;
    int64_t own = j->model->settings.seed;
    j->model->settings.seed = j->seed;
    basin_status status = basin_graphs_describe(checkpoint, j->model, error);
    j->model->settings.seed = own;
    return status;
}

static basin_status restore(void *context, int64_t member, const basin_bundle *checkpoint,
                            basin_error *error) {
    (void)checkpoint, (void)error;
    take_fold(context, member);
    return BASIN_OK;
}

/* ---- members ---- */

static basin_status begin_member(void *context, int64_t member, basin_error *error) {
    job *j = context;
    const basin_params *params = &j->model->params;
    take_fold(j, member);
    BASIN_TRY(basin_params_init(params, j->model->store, (uint64_t)j->model->settings.seed, error));
    for (size_t i = 0; member && i < 2 * params->count; i++) { /* moments of the one before */
        char name[200];
        basin_expr state = params->param[i / 2].state;
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor zero = {0};
        snprintf(name, sizeof name, "%s%s", basin_expr_name(state), i % 2 ? ".v" : ".m");
        BASIN_TRY(basin_tensor_new(&zero, BASIN_F32, basin_expr_shape(state), error));
        BASIN_TRY(basin_store_write(j->model->store, name, &zero, error));
    }
    return BASIN_OK;
}

/* Starts from a model file; if it has members, from the first. */
static basin_status adopt(void *context, int64_t member, const basin_bundle *from,
                          basin_error *error) {
    static const char prefix[] = "member0.";
    job *j = context;
    char name[200];
    bool several = false;
    (void)member;
    for (size_t i = 0; i < j->model->params.count; i++) {
        basin_expr state = j->model->params.param[i].state;
        snprintf(name, sizeof name, "%s%s", prefix, basin_expr_name(state));
        several = several || basin_bundle_find(from, name);
        BASIN_TRY(basin_state_restore(j->model->store, several ? name : basin_expr_name(state),
                                      basin_expr_shape(state), from, error));
    }
    return several ? basin_states_copy(j->model->store, &j->model->params, "", prefix, error)
                   : BASIN_OK;
}

/* Outputs of a member for its validation graphs, as probabilities or values. */
static basin_status hold_out(float *to, job *j, int64_t member, basin_error *error) {
    basin_graphs_model *m = j->model;
    const basin_fold *f = &j->folds[member];
    BASIN_FREE_AT_EXIT float *output = NULL;
    BASIN_TRY(basin_graphs_take_member(m, member, error));
    BASIN_TRY(basin_graphs_outputs(&output, &j->score, j->input, f->item[1], f->count[1], error));
    basin_graphs_likelihoods(to, output, f->count[1], m);
    return BASIN_OK;
}

/* Learns the memory of molecules and the confidence of predictions. Where members have different
 * validation graphs, each predicts its own; else all predict the same. */
static basin_status calibrate(job *j, const basin_watch *watch, basin_error *error) {
    basin_graphs_model *m = j->model;
    const basin_fold *f = j->folds;
    int64_t members = m->members, all = 0, at = 0;
    bool own = members > 1 && f[0].count[1] && f[1].count[1] && f[0].item[1][0] != f[1].item[1][0];
    bool near = basin_graphs_near_serves(&m->settings, &j->input->set);
    if (m->target == BASIN_GRAPHS_NODE_CLASSES) return BASIN_OK;
    for (int64_t k = 0; k < members; k++) all += f[k].count[1];
    BASIN_SCRATCH(float, given, all * m->outputs, "outputs", error);
    BASIN_SCRATCH(float, held, all * m->outputs, "outputs", error);
    BASIN_SCRATCH(float, nearest, all, "outputs", error);
    BASIN_SCRATCH(int64_t, graph, all, "outputs", error);
    for (int64_t k = 0; k < members; at += f[k++].count[1]) {
        if (f[k].count[1]) BASIN_TRY(hold_out(given + at * m->outputs, j, k, error));
        if (f[k].count[1]) memcpy(graph + at, f[k].item[1], (size_t)f[k].count[1] * sizeof *graph);
    }
    if (near)
        BASIN_TRY(
            basin_graphs_near_fit(m, &j->input->set, f, own ? members : 1, held, nearest, error));
    if (!own) all = f->count[1];
    j->best = (basin_score){0};
    BASIN_TRY(basin_graphs_calibration_fit(m, &j->input->set, graph, all, given, own ? 1 : members,
                                           near ? held : NULL, near ? nearest : NULL, error));
    if (near)
        basin_watch_note(watch,
                         "the memory of training graphs has a share of %.2g in predictions, the "
                         "network the rest",
                         m->near.share);
    bool one_sided = all && basin_graphs_one_sided(m, &j->input->set, graph, all);
    if (one_sided)
        basin_watch_note(watch,
                         "fewer than 5 of the %lld validation graphs are of another class than the "
                         "commonest: they hardly say how good the model is, or which epoch is best",
                         (long long)all);
    j->enough = near && all >= ENOUGH && !one_sided;
    for (int64_t i = 0; i < all * m->outputs; i++) {
        j->enough = j->enough && !isnan(held[i]);
        if (m->target != BASIN_GRAPHS_CLASSES) continue;
        given[i] = logf(given[i]), held[i] = logf(held[i]);
    }
    if (members < 2 || !all) return BASIN_OK;
    basin_score memory = {0};
    BASIN_TRY(score_outputs(&j->best, given, j, graph, all, error));
    if (j->enough) BASIN_TRY(score_outputs(&memory, held, j, graph, all, error));
    j->enough = j->enough && memory.merit >= j->best.merit;
    return BASIN_OK;
}

/* Members after the second are not trained where validation says that the memory by itself is as
 * good, unless their number was given. */
static basin_status end_early(job *j, basin_error *error) {
    basin_graphs_model *m = j->model;
    int64_t members = m->members;
    m->members = FEWER;
    BASIN_TRY(calibrate(j, NULL, error));
    if (!j->enough) return m->members = members, BASIN_OK;
    j->task.members = FEWER;
    basin_watch_note(j->train.run->training.watch,
                     "on the validation graphs the memory by itself is as good: %d of %lld members "
                     "are trained, and it has a share of %.2g in predictions",
                     FEWER, (long long)members, m->near.share);
    return BASIN_OK;
}

static basin_status end_member(void *context, int64_t member, const basin_run_member *how,
                               basin_error *error) {
    job *j = context;
    char prefix[32];
    (void)how;
    j->model->settings.seed = j->seed;
    snprintf(prefix, sizeof prefix, "member%lld.", (long long)member);
    if (j->model->members > 1)
        BASIN_TRY(basin_states_copy(j->model->store, &j->model->params, prefix, "", error));
    if (member + 1 == j->model->members) return calibrate(j, j->train.run->training.watch, error);
    bool may_end = member + 1 == FEWER && !j->model->settings.members;
    return may_end && basin_graphs_near_serves(&j->model->settings, &j->input->set)
               ? end_early(j, error)
               : BASIN_OK;
}

static basin_status write_model(void *context, const char *path, basin_error *error) {
    return basin_graphs_write(path, ((job *)context)->model, error);
}

/* ---- one run ---- */

static basin_run_task task_of(job *j) {
    const basin_graphs_settings *s = &j->model->settings;
    int64_t trains = j->trains, batch = s->batch < trains ? s->batch : trains;
    int64_t steps = (trains + batch - 1) / batch;
    j->step_graphs = batch;
    return (basin_run_task){.context = j,
                            .unit = "graphs",
                            .members = j->model->members,
                            .epochs = s->epochs,
                            .steps = steps,
                            .items = trains,
                            .patience = s->patience,
                            .average = s->average,
                            .choose = j->fold->count[1] > 0,
                            .schedule = BASIN_SCHEDULE_OF(s, steps),
                            .store = j->model->store,
                            .params = &j->model->params,
                            .seed = (uint64_t)s->seed,
                            .begin = begin_member,
                            .adopt = adopt,
                            .finish = end_member,
                            .step = step,
                            .settle = settle,
                            .score = j->fold->count[1] ? score : NULL,
                            .describe = describe,
                            .restore = restore,
                            .write = write_model};
}

static void job_free(job *j) {
    basin_shards_end(&j->shards);
    basin_graphs_plans_free(&j->train);
    basin_graphs_plans_free(&j->score);
    BASIN_FREE(j->order, j->batch);
}

basin_status basin_graphs_run(basin_training_result *outcome, basin_graphs_model *model,
                              basin_run *run, const basin_graphs_input *input,
                              const basin_fold *fold, basin_error *error) {
    BASIN_AT_EXIT(job_free)
    job j = {.model = model, .input = input, .fold = fold, .folds = fold, .shuffled = -1};
    j.seed = model->settings.seed;
    model->limited = input->set.limit != NULL;
    j.trains = fold->count[0];
    for (int64_t k = 1; k < model->members; k++)
        j.trains = basin_int_min(j.trains, fold[k].count[0]);
    if (!fold->count[0]) return basin_fail(error, BASIN_BAD_VALUE, "no graphs to train on");
    if (model->settings.patience && !fold->count[1])
        return basin_fail(error, BASIN_BAD_VALUE,
                          "patience is %lld without graphs to score; expected some for validation",
                          (long long)model->settings.patience);
    if (fold->count[1])
        BASIN_TRY(basin_graphs_check_known(&input->set, input->set.name, fold->item[1],
                                           fold->count[1], "graphs for validation", error));
    j.task = task_of(&j);
    BASIN_TRY(basin_graphs_digest(&j.task.data, &input->set, fold, error));
    basin_graphs_plans_begin(&j.train, model, &input->set, fold->item[0], fold->count[0],
                             &j.task.schedule);
    basin_graphs_plans_begin(&j.score, model, &input->set, fold->item[1], fold->count[1], NULL);
    j.train.run = run;
    int64_t max = fold->count[0];
    for (int64_t k = 1; k < model->members; k++) max = basin_int_max(max, fold[k].count[0]);
    BASIN_TRY(BASIN_NEW_RAW(&j.order, max, "a training run", error));
    BASIN_TRY(BASIN_NEW_RAW(&j.batch, max, "a training run", error));
    BASIN_TRY(basin_shards_begin(&j.shards, &run->training, model->settings.shards, &model->params,
                                 error));
    BASIN_TRY(basin_run_train(outcome, run, &j.task, error));
    if (j.best.measures) outcome->best = j.best;
    return BASIN_OK;
}

/* ---- from data to a model ---- */

typedef struct work {
    basin_graphs_train_data data;
    const basin_settings *asked;
    const basin_graphs_settings *settings; /* as asked for, */
    basin_graphs_settings chosen; /* and with the epochs and shards that these leave open */
    basin_run *run;
    basin_graphset read;
    basin_graphs_input input;
    int64_t *copy;     /* [graphs] which graph each is a copy of, */
    int64_t *together; /* and the first that it stays in one part with */
    bool open;         /* validation is not given: each member has another part */
    basin_fold fold;   /* owns its lists */
    basin_folds each;  /* of members */
    basin_fold all;    /* trained on by one of them: of these the encoding is learnt */
    basin_graphs_model *model;
} work;

/* A list of graphs of the set, appended to a part of a fold. */
static basin_status add_items(basin_fold *to, int part, const int64_t *list, int64_t count,
                              const basin_graphset *set, basin_error *error) {
    int64_t before = to->count[part];
    size_t room = (size_t)before;
    BASIN_TRY(BASIN_GROW(&to->item[part], &room, before + count + 1, "a list of graphs", error));
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] >= set->graphs)
            return basin_fail(error, BASIN_BAD_VALUE, "graph %lld; %s has %lld graphs",
                              (long long)list[i], set->name, (long long)set->graphs);
        to->item[part][before + i] = list[i];
    }
    to->count[part] = before + count;
    return BASIN_OK;
}

/* Part `which` of a fold's graphs, by whole groups or stratified, becomes its validation. */
static basin_status hold_out_part(const work *w, basin_fold *f, int64_t which, basin_error *error) {
    const basin_graphset *set = w->data.set;
    bool classes = set->task == BASIN_GRAPHS_CLASSES && !w->data.group;
    return basin_fold_part(f, classes ? set->class_of : NULL, w->together, w->data.hold_out,
                           (uint64_t)w->settings->seed, 0, which, error);
}

/* The caller's graphs, the set's own parts, or a part of these for validation. */
static basin_status divide(work *w, basin_error *error) {
    const basin_graphset *set = w->data.set;
    const basin_graphs_train_data *d = &w->data;
    basin_fold *f = &w->fold;
    bool divided = set->split[0] > 0 && !d->graph;
    if (d->graph) {
        BASIN_TRY(add_items(f, 0, d->graph, d->graphs, set, error));
        if (d->validation) return add_items(f, 1, d->validation, d->validations, set, error);
    } else {
        f->count[0] = divided ? set->split[0] : set->graphs;
        f->count[1] = divided ? set->split[1] : 0;
        f->item[0] = basin_graphs_range(0, f->count[0]);
        if (divided) f->item[1] = basin_graphs_range(f->count[0], f->count[1]);
        if (!f->item[0] || (divided && !f->item[1])) return basin_fail_memory(error, "a split");
    }
    if (divided || !(d->hold_out > 0)) return BASIN_OK;
    BASIN_TRY(hold_out_part(w, f, 0, error));
    w->open = f->count[1];
    if (!w->open)
        basin_watch_note(w->run->training.watch,
                         "%lld graphs are too few to set %g of them aside for validation: the last "
                         "epoch is kept",
                         (long long)set->graphs, d->hold_out);
    return BASIN_OK;
}

/* Keeps `limit` of the training graphs, drawn by the seed, in their order. */
static basin_status limit_graphs(work *w, basin_error *error) {
    basin_fold *f = &w->fold;
    int64_t count = f->count[0], limit = w->data.limit, kept = 0;
    if (limit < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "limit is %lld; expected at least 0",
                          (long long)limit);
    if (!limit || limit >= count) return BASIN_OK;
    BASIN_SCRATCH_RAW(int64_t, rank, count, "a list of graphs", error);
    basin_random_permutation(rank, (size_t)count, (uint64_t)w->settings->seed, STREAM_LIMIT);
    for (int64_t i = 0; i < count; i++)
        if (rank[i] < limit) f->item[0][kept++] = f->item[0][i];
    f->count[0] = kept;
    return BASIN_OK;
}

/* Each member sets another part aside, where the caller and the set leave it open. */
static basin_status divide_members(work *w, basin_error *error) {
    const basin_graphset *set = w->data.set;
    int64_t members = basin_graphs_members(w->settings, set);
    bool open = members > 1 && w->open;
    BASIN_TRY(BASIN_NEW(&w->each.fold, members, "folds", error));
    w->each.folds = members;
    const basin_fold *own = &w->fold;
    BASIN_TRY(add_items(&w->all, 0, own->item[0], own->count[0], set, error));
    if (open) BASIN_TRY(add_items(&w->all, 0, own->item[1], own->count[1], set, error));
    qsort(w->all.item[0], (size_t)w->all.count[0], sizeof(int64_t), basin_compare_int64);
    for (int64_t k = 0; k < members; k++) {
        basin_fold *f = &w->each.fold[k];
        bool other = k && open;
        const basin_fold *from = other ? &w->all : own;
        BASIN_TRY(add_items(f, 0, from->item[0], from->count[0], set, error));
        BASIN_TRY(other ? hold_out_part(w, f, k, error)
                        : add_items(f, 1, own->item[1], own->count[1], set, error));
    }
    return BASIN_OK;
}

static basin_status open_data(work *w, basin_error *error) {
    if (!w->data.set && !w->data.path)
        return basin_fail(error, BASIN_BAD_VALUE, "neither a set of graphs nor a path of one");
    if (!w->data.set) {
        BASIN_TRY(basin_graphset_read(&w->read, w->data.path, NULL, error));
        w->data.set = &w->read;
    }
    w->data.path = basin_graphs_path(w->data.path, w->data.set);
    BASIN_TRY(basin_graphs_check_labels(w->data.set, w->data.path, error));
    BASIN_TRY(BASIN_NEW_RAW(&w->copy, w->data.set->graphs, "copies of graphs", error));
    BASIN_TRY(basin_graphset_copies(w->copy, w->data.set, error));
    BASIN_TRY(BASIN_NEW_RAW(&w->together, w->data.set->graphs, "groups of graphs", error));
    BASIN_TRY(basin_groups_first(w->together, w->data.group ? w->data.group : w->copy,
                                 w->data.set->graphs, error));
    BASIN_TRY(divide(w, error));
    BASIN_TRY(limit_graphs(w, error));
    BASIN_TRY(divide_members(w, error));
    const basin_watch *watch = w->run->training.watch;
    basin_graphs_note_unused(w->asked, w->data.set, watch);
    BASIN_TRY(basin_graphs_note_copies(w->data.set, w->copy, &w->fold, 1, watch, error));
    if (!w->data.graph && w->data.set->split[0] > 0)
        basin_watch_note(watch, "%s: trains on the split that it brings", w->data.set->name);
    return basin_graphs_input_begin(&w->input, w->settings, w->data.set, 0, w->data.set->graphs,
                                    error);
}

/* Labels that the encoding of the model to begin with does not have stay unseen. */
static void note_unknown(const work *w) {
    int64_t unknown[2];
    basin_graphs_data trained = {
        .set = w->data.set, .graph = w->fold.item[0], .graphs = w->fold.count[0]};
    if (basin_graphs_unknown_labels(unknown, w->model, &trained, NULL)) return;
    if (unknown[0] || unknown[1])
        basin_watch_note(w->run->training.watch,
                         "the model to begin with does not know the labels of %lld of the nodes "
                         "and %lld of the edges to train on, and sees them as without one",
                         (long long)unknown[0], (long long)unknown[1]);
}

/* The model of an earlier run, or of an earlier leg of this one, keeps its encoding: its weights
 * know no other. */
static basin_status open_earlier(work *w, const basin_bundle *bundle, basin_error *error) {
    basin_backend *backend = w->run->training.backend;
    BASIN_TRY(basin_graphs_model_read(&w->model, bundle, w->settings, backend, error));
    if (bundle == w->run->from) {
        BASIN_TRY(basin_graphs_model_take_classes(w->model, &w->input.set, error));
        note_unknown(w);
    }
    return basin_graphs_input_match(&w->input, w->model, w->data.path, true, error);
}

/* A resumed run has the settings that it began with, but for the loose ones. Shards that were left
 * open are those of the checkpoint, or for as many ranks as come. */
static basin_status choose_settings(work *w, const basin_bundle *saved, basin_error *error) {
    basin_graphs_settings before = {.shards = 0};
    const basin_training_options *t = &w->run->training;
    w->chosen = *w->settings;
    basin_graphs_choose_adjacency(&w->chosen, &w->input.set);
    w->chosen.epochs =
        basin_graphs_epochs(w->settings, &w->input.set, w->fold.item[0], w->fold.count[0]);
    if (saved) BASIN_TRY(basin_settings_take(&before, &basin_graphs_task, saved, error));
    w->chosen.shards =
        basin_shards_choose(w->settings->shards, before.shards, w->settings->batch, t->ranks);
    w->settings = &w->chosen;
    if (w->chosen.shards > w->chosen.batch)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "shards is %lld; expected at most the batch, %lld",
                          (long long)w->chosen.shards, (long long)w->chosen.batch);
    if (!saved) return BASIN_OK;
    return basin_run_match(w->run, &before, w->settings, basin_graphs_task.table, error);
}

static basin_status open_model(work *w, basin_error *error) {
    const basin_bundle *saved = w->run->saved, *from = w->run->from;
    BASIN_TRY(choose_settings(w, saved, error));
    BASIN_TRY(saved || from
                  ? open_earlier(w, saved ? saved : from, error)
                  : basin_graphs_model_new(&w->model, w->settings, &w->input.set, w->all.item[0],
                                           w->all.count[0], w->run->training.backend, error));
    w->model->members = w->each.folds;
    return BASIN_OK;
}

/* Notes the graphs of this run beside those of the model that it began with. Where that does not
 * say which it has seen, nobody knows. */
static basin_status note_seen(work *w, basin_error *error) {
    const basin_bundle *from = w->run->from;
    if (from && !w->model->seen[0].count) BASIN_TRY(basin_graphs_seen_read(w->model, from, error));
    if (from && !w->model->seen[0].count) return BASIN_OK;
    w->fold.count[1] *= w->all.count[0] == w->fold.count[0]; /* else others trained on them */
    basin_fold seen = {{w->all.item[0], w->fold.item[1]}, {w->all.count[0], w->fold.count[1]}};
    return basin_graphs_seen_add(w->model, w->data.set, &seen, error);
}

static basin_status train(work *w, basin_training_result *outcome,
                          const basin_training_options *training, basin_error *error) {
    BASIN_TRY(basin_run_begin(&w->run, outcome, w->asked, &basin_graphs_task, training, error));
    w->settings = w->asked->values;
    if (outcome->finished_before) {
        BASIN_TRY(basin_graphs_open(&w->model, training->output, training->backend, error));
        outcome->parameters = w->model->info.parameters;
        return BASIN_OK;
    }
    BASIN_TRY(open_data(w, error));
    BASIN_TRY(open_model(w, error));
    BASIN_TRY(note_seen(w, error));
    BASIN_TRY(basin_graphs_input_place(&w->input, w->settings, 0, w->input.set.graphs, error));
    return basin_graphs_run(outcome, w->model, w->run, &w->input, w->each.fold, error);
}

static void work_free(work *w) {
    basin_run_close(w->run);
    basin_graphs_input_free(&w->input);
    basin_graphset_free(&w->read);
    for (int i = 0; i < 3; i++) free(w->fold.item[i]);
    BASIN_FREE(w->all.item[0], w->copy, w->together);
    basin_folds_free(&w->each);
    basin_graphs_close(w->model);
}

basin_status basin_graphs_train(basin_graphs_model **model, basin_training_result *result,
                                const basin_settings *settings, const basin_graphs_train_data *data,
                                const basin_training_options *training, basin_error *error) {
    BASIN_AT_EXIT(work_free) work w = {.asked = settings, .data = *data};
    basin_training_result all;
    if (model) *model = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(data, "basin_graphs_train_data", error));
    BASIN_TRY(train(&w, &all, training, error));
    BASIN_TRY(basin_graphs_model_describe(w.model, error));
    basin_info_fill(result, &all, sizeof all);
    if (model) *model = w.model, w.model = NULL;
    return BASIN_OK;
}
