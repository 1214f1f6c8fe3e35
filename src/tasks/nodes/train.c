/* A run from data to a model: network, splits, settings that were left open, training. */

#include <unistd.h>

#include "base/hash.h"
#include "base/sized.h"
#include "tasks/nodes/net.h"

/* ---- Inputs that are left open: of classes by short trainings of the model ---- */

/* Beyond this, a probe over all nodes would cost more than it is worth; steps of smoothing. */
enum { PROBE_NODES = 1000000, SMOOTHING = 10 };

typedef struct choice {
    basin_nodes_settings *settings;
    const basin_task_settings *task;
    const basin_network *network;
    const uint8_t *part;
    basin_nodes_resources work;
    int64_t judges; /* validation nodes */
    bool stopped;
} choice;

/* Trains with these settings; the measure on validation. */
static basin_status run_probe(double *value, choice *c, const basin_nodes_settings *s,
                              basin_error *error) {
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    *value = 0;
    if (c->stopped) return BASIN_OK;
    basin_nodes_job job = {c->task, c->network, c->part, s, .probe = true};
    BASIN_TRY(basin_nodes_fit_quietly(&model, &outcome, &job, &c->work, error));
    basin_nodes_close(model);
    *value = outcome.best.merit;
    c->stopped = outcome.stopped;
    return BASIN_OK;
}

/* For detectors what the default has. */
static void choose_detector_inputs(basin_nodes_settings *s, const basin_watch *watch) {
    bool open = s->hops < 0 || basin_choice_is(s->scaling, "auto");
    if (s->hops < 0) s->hops = 2;
    if (basin_choice_is(s->scaling, "auto")) s->scaling = "quantile";
    if (open)
        basin_watch_note(watch, "inputs: scaling %s, means over %lld hops", s->scaling,
                         (long long)s->hops);
}

/* ---- of classes ---- */

/* Words, counts, switches: no number below 0, and most of them 0. */
static basin_status is_bag(bool *bag, const choice *c, basin_error *error) {
    basin_parts *p = c->work.parts;
    int64_t counts[3] = {0}; /* below 0, zeros, all */
    for (int64_t k = 0; k < (p ? p->count : 1); k++) {
        const basin_network *n = p ? p->part[k]->network : c->network;
        int64_t count = n->feature ? n->nodes * n->features : 0;
        for (int64_t i = 0; i < count; i++)
            counts[0] += n->feature[i] < 0, counts[1] += n->feature[i] == 0;
        counts[2] += count;
    }
    if (p) BASIN_TRY(basin_ranks_sum_integers(p->ranks, counts, 3, error));
    *bag = !counts[0] && counts[1] > counts[2] / 2;
    return BASIN_OK;
}

/* Neighbours beside attention: none, to agree with, or as inputs. The model itself is trained: an
 * MLP has no attention. A choice needs to be better by a standard error of the accuracy. */
static basin_status choose_neighbours(choice *c, basin_error *error) {
    static const int64_t way[][2] = {{0, 0}, {0, SMOOTHING}, {2, 0}};
    const basin_nodes_settings asked = *c->settings;
    int64_t hops = asked.hops, smoothing = asked.smoothing;
    double max = -1, minimal = -1;
    for (int i = 0; i < 3; i++) {
        double value = 0;
        basin_nodes_settings s = *c->settings;
        if ((asked.hops >= 0 && i == 2) || (asked.smoothing >= 0 && i == 1))
            continue; /* as first */
        s.hops = asked.hops < 0 ? way[i][0] : asked.hops, s.members = 1;
        s.smoothing = asked.smoothing < 0 ? way[i][1] : asked.smoothing;
        BASIN_TRY(run_probe(&value, c, &s, error));
        if (value > max && value > minimal) hops = s.hops, smoothing = s.smoothing, max = value;
        if (minimal < 0)
            minimal = value + sqrt(fmax(value * (1 - value), 0) / fmax((double)c->judges, 1));
    }
    c->settings->hops = hops, c->settings->smoothing = smoothing;
    return BASIN_OK;
}

static basin_status choose_of_classes(choice *c, bool ask, basin_error *error) {
    basin_nodes_settings *s = c->settings;
    bool scaling = basin_choice_is(s->scaling, "auto"), open = s->hops < 0 || s->smoothing < 0;
    bool bag = false;
    if (scaling) BASIN_TRY(is_bag(&bag, c, error));
    if (scaling) s->scaling = bag ? "rows" : "standard";
    if (open && ask) BASIN_TRY(choose_neighbours(c, error));
    if (s->hops < 0) s->hops = 0;
    if (s->smoothing < 0) s->smoothing = SMOOTHING;
    if ((scaling || open) && !c->stopped)
        basin_watch_note(c->work.watch,
                         "inputs: scaling %s, means over %lld hops, %lld steps of smoothing%s",
                         s->scaling, (long long)s->hops, (long long)s->smoothing,
                         open && ask ? " (chosen by validation)" : "");
    return BASIN_OK;
}

/* ---- the run ---- */

enum { CUTS = 1200 };

typedef struct training_session {
    basin_run *run;
    const basin_task_settings *task;
    basin_nodes_data data;
    basin_nodes_settings settings;
    basin_network *opened; /* by us; NULL: the caller's is used */
    int64_t *order;        /* of the network, where its nodes are not in the order of their ids; */
    uint8_t *part;         /* the caller's split, if any, in this order */
    basin_parts *parts;    /* of the graph; NULL: it is whole */
    basin_parts *cut;      /* the same, where they were opened or cut by us */
    bool minimal;
    basin_error treeless;            /* why trees that were asked for are left out, if they are */
    char digest[BASIN_DIGEST_LINES]; /* of the network */
    basin_digests files;
    char cuts[CUTS];      /* of the network, then of the split */
    basin_schema *schema; /* of the model that the run begins with; or NULL */
} training_session;

static basin_ranks *ranks_of(const training_session *t) { return t->run->training.ranks; }

/* ---- data ---- */

/* Parts as asked for, or as the checkpoint has; by default 8, which one to eight ranks share. */
static basin_status choose_parts(training_session *t, basin_error *error) {
    enum { USUAL = 8 };
    int64_t *parts = &t->settings.parts, ranks = basin_ranks_count(ranks_of(t));
    const basin_bundle *checkpoint = t->run->saved;
    basin_nodes_settings found = t->settings;
    if (!*parts && checkpoint) {
        BASIN_TRY(basin_settings_take(&found, t->task, checkpoint, error));
        *parts = found.parts;
    }
    if (!*parts) *parts = !ranks_of(t) ? 1 : ranks > USUAL ? ranks : USUAL;
    return BASIN_OK;
}

/* Samples are drawn from the whole graph, which every rank opens; their batches are cut instead. */
static bool samples_whole(const training_session *t, const basin_nodes_settings *found) {
    const char *sampling = t->settings.sampling;
    bool open = basin_choice_is(sampling, "auto");
    if (open && found && found->sampling)
        sampling = found->sampling;
    else if (open && !t->run->saved && basin_nodes_prefer_samples(&t->settings, t->task))
        sampling = "neighbours";
    return basin_choice_is(sampling, "neighbours") && t->settings.parts <= 1 && !t->parts;
}

/* In how many shards batches are to be, likewise; 1 where nothing is sampled by its name. */
static basin_status choose_shards(training_session *t, basin_error *error) {
    const basin_bundle *checkpoint = t->run->saved;
    basin_nodes_settings found = {.shards = 0};
    if (checkpoint) BASIN_TRY(basin_settings_take(&found, t->task, checkpoint, error));
    bool cut = samples_whole(t, &found);
    if (t->settings.shards > 1 && !cut)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "shards is %lld and sampling %s%s; needs sampling neighbours, whose "
                          "batches it cuts, on a graph that is whole, or shards 1",
                          (long long)t->settings.shards, t->settings.sampling,
                          t->parts ? " on a graph in parts" : "");
    if (!cut && !t->settings.shards) t->settings.shards = 1;
    t->settings.shards =
        basin_shards_choose(t->settings.shards, found.shards, t->settings.batch, ranks_of(t));
    if (t->parts || cut || basin_ranks_count(ranks_of(t)) == 1) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "sampling %s in %lld part over %lld ranks; needs parts for each of them, or "
                      "sampling neighbours",
                      t->settings.sampling, (long long)t->settings.parts,
                      (long long)basin_ranks_count(ranks_of(t)));
}

/* A folder of parts has as many as it has. */
static basin_status open_folder(training_session *t, basin_error *error) {
    const char *folder = t->data.path[0];
    int64_t asked = t->settings.parts, found;
    BASIN_TRY(basin_network_options_check_parts(t->data.options, folder, error));
    BASIN_TRY(basin_parts_open(&t->cut, folder, ranks_of(t), error));
    t->settings.parts = found = basin_parts_count(t->cut);
    if (asked && asked != found)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld parts, and the setting parts is %lld",
                          folder, (long long)found, (long long)asked);
    return BASIN_OK;
}

static void free_digests(basin_digests *d) { free(d->text); }

/* Those that are on rank 0's host. */
static basin_status add_folder(training_session *t, basin_error *error) {
    for (int64_t k = 0; k < basin_parts_count(t->cut) && !basin_ranks_rank(ranks_of(t)); k++) {
        BASIN_FREE_AT_EXIT char *path = basin_part_path(t->data.path[0], k);
        if (!path) return basin_fail_memory(error, "a path");
        if (access(path, F_OK) != 0) continue;
        BASIN_AT_EXIT(free_digests) basin_digests one = {0};
        BASIN_TRY(basin_digests_add_later(&one, path, error));
        BASIN_TRY(basin_digests_finish(&t->files, &one, error));
    }
    return BASIN_OK;
}

/* Cuts the network that was opened, which is no longer held then. */
static basin_status cut_network(training_session *t, basin_error *error) {
    basin_cut_spec spec = {.parts = t->settings.parts};
    if (t->opened && basin_choice_is(t->settings.facts, "none"))
        basin_network_forget_facts(t->opened);
    basin_status status = basin_parts_cut(&t->cut, t->data.network, &spec, ranks_of(t), error);
    basin_network_close(t->opened);
    t->opened = NULL;
    return status;
}

/* Weights go by columns: data are read as those of the parent were, by name. */
static basin_status take_schema(training_session *t, basin_error *error) {
    const basin_bundle *file = t->run->from;
    const char *json = file ? basin_bundle_meta(file, "schema") : NULL; /* files of 0.1: none */
    return json ? basin_schema_parse(&t->schema, json, basin_bundle_path(file), error) : BASIN_OK;
}

static basin_status open_files(training_session *t, basin_error *error) {
    basin_nodes_data *d = &t->data;
    basin_network_options how = d->options ? *d->options : (basin_network_options){0};
    int length;
    const char *note = NULL;
    if (!how.schema) how.schema = t->schema;
    BASIN_TRY(basin_network_open(&t->opened, d->path, d->paths, &how, error));
    if (basin_network_main_relation(t->opened) < 0)
        BASIN_TRY(basin_network_add_union(t->opened, error));
    d->network = t->opened;
    while ((note = basin_network_next_note(&length, t->opened, note)))
        basin_watch_note(t->run->training.watch, "%s: %.*s",
                         basin_network_note_path(t->opened, note), length, note);
    return BASIN_OK;
}

/* Both ways takes a whole graph of one relation. */
static basin_status settle_directions(training_session *t, basin_error *error) {
    const basin_network *n = t->data.network;
    basin_nodes_settings *s = &t->settings;
    bool parts = s->parts > 1 || ranks_of(t);
    bool can = n->directed && !parts && n->relations == 1 && basin_choice_is(s->relations, "one");
    if (basin_choice_is(s->directions, "both") && n->directed && !can)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: directions both, and %s; needs directions come", n->path,
                          parts ? "a graph in parts" : "several relations");
    if (basin_choice_is(s->directions, "both") && !n->directed)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: directions both has no effect: its edges go both ways (the option "
                          "directed keeps their direction)",
                          n->path);
    if (!basin_choice_is(s->directions, "auto")) return BASIN_OK;
    s->directions = can && !basin_classes_several(t->task) ? "both" : "come";
    if (n->directed && !can && !basin_classes_several(t->task))
        basin_watch_note(t->run->training.watch,
                         "%s: a node sees only those whose edges come to it (directions come): %s",
                         n->path, parts ? "the graph is in parts" : "there are several relations");
    return BASIN_OK;
}

/* Weights, splits and trees must not depend on the order of rows: training runs in that of ids. */
static basin_status order_nodes(training_session *t, basin_error *error) {
    basin_nodes_data *d = &t->data;
    basin_network *ordered;
    size_t count = (size_t)d->network->nodes;
    BASIN_TRY(settle_directions(t, error));
    BASIN_TRY(basin_nodes_view(&ordered, &t->settings, d->network, error));
    if (!ordered) return BASIN_OK;
    basin_status status = BASIN_OK;
    if (d->network->order) status = BASIN_NEW_RAW(&t->order, count, "the order of nodes", error);
    if (t->order) memcpy(t->order, d->network->order, count * sizeof *t->order);
    basin_network_close(t->opened);
    d->network = t->opened = ordered;
    /* Samples and parts are found in it, not in the caller's network. */
    free(ordered->origin);
    ordered->origin = NULL;
    if (status || !d->part) return status;
    BASIN_TRY(BASIN_NEW_RAW(&t->part, count, "a split", error));
    memcpy(t->part, d->part, count);
    d->part = t->part;
    return basin_rows_reorder(t->part, t->order, (int64_t)count, 1, false, error);
}

/* An error where ranks have other data, or columns are not the parent's. */
static basin_status check_data(training_session *t, const basin_network *network,
                               basin_error *error) {
    basin_network_digest(t->digest, network);
    snprintf(t->cuts, sizeof t->cuts, "%s", network->cuts ? network->cuts : "");
    if (!basin_ranks_rank(ranks_of(t)))
        BASIN_TRY(basin_digests_finish(&t->files, &network->files, error));
    BASIN_TRY(basin_ranks_alike(ranks_of(t), t->digest, "data", error));
    return t->schema ? basin_network_check_schema(network, t->schema, error) : BASIN_OK;
}

/* Parts that come as such: ranks have different ones, and all of them the same whole. */
static basin_status check_parts(training_session *t, basin_error *error) {
    const basin_parts *p = t->parts;
    BASIN_TRY(check_data(t, p->face, error));
    BASIN_SCRATCH(int64_t, all, p->parts, "digests", error);
    for (int64_t k = 0; k < p->count; k++) {
        char text[BASIN_DIGEST_LINES];
        basin_network_digest(text, p->part[k]->network);
        all[p->first + k] = (int64_t)basin_hash_text(BASIN_HASH_START, text);
    }
    BASIN_TRY(basin_ranks_sum_integers(p->ranks, all, p->parts, error));
    uint64_t hash = basin_hash_words(BASIN_HASH_START, all, (size_t)p->parts * sizeof *all);
    size_t at = strlen(t->digest);
    snprintf(t->digest + at, sizeof t->digest - at, "parts: %016llx\n", (unsigned long long)hash);
    return BASIN_OK;
}

static basin_status open_network(training_session *t, basin_error *error) {
    basin_nodes_data *d = &t->data;
    BASIN_TRY(take_schema(t, error));
    if (!t->parts && !d->network && d->paths == 1 && basin_cut_is(d->path[0])) {
        BASIN_TRY(open_folder(t, error));
        BASIN_TRY(add_folder(t, error));
        t->parts = t->cut;
    } else if (!t->parts) {
        basin_status status = d->network ? BASIN_OK : open_files(t, error);
        BASIN_TRY(basin_ranks_agree(ranks_of(t), status, error));
        BASIN_TRY(check_data(t, d->network, error));
        status = order_nodes(t, error);
        BASIN_TRY(basin_ranks_agree(ranks_of(t), status, error));
        if (samples_whole(t, NULL)) t->settings.parts = 1;
        BASIN_TRY(choose_parts(t, error));
        if (t->settings.parts == 1) return BASIN_OK;
        BASIN_TRY(cut_network(t, error));
        t->parts = t->cut;
    }
    d->network = basin_parts_face(t->parts);
    if (!*t->digest) BASIN_TRY(check_parts(t, error));
    t->settings.parts = basin_parts_count(t->parts);
    return BASIN_OK;
}

/* Validation nodes are held out; all others that are labelled train. */
static basin_status hold_out(uint8_t *part, const training_session *t, double validation,
                             basin_error *error) {
    const basin_network *n = t->data.network;
    if (validation >= 1.0 / 3)
        return basin_fail(error, BASIN_BAD_VALUE, "validation is %g, expected less than a third",
                          validation);
    BASIN_TRY(
        basin_split_stratified(part, n, 1 - 3 * validation, (uint64_t)t->settings.seed, 0, error));
    for (int64_t i = 0; i < n->nodes; i++)
        if (part[i] == BASIN_SPLIT_TEST) part[i] = BASIN_SPLIT_TRAIN;
    return BASIN_OK;
}

/* By default the split in the file; either way a note says so. */
static basin_nodes_split split_of(const training_session *t) {
    const basin_nodes_data *d = &t->data;
    const basin_network *n = d->network;
    if (d->split != BASIN_NODES_SPLIT_DEFAULT) return d->split;
    return n->train ? BASIN_NODES_SPLIT_MASKS : BASIN_NODES_SPLIT_HOLD_OUT;
}

static void note_split(const training_session *t) {
    const basin_network *n = t->data.network;
    const basin_watch *watch = t->run->training.watch;
    if (t->data.split == BASIN_NODES_SPLIT_MASKS || !n->train) return;
    if (t->data.split != BASIN_NODES_SPLIT_DEFAULT)
        basin_watch_note(watch, "%s: the split in the file is not used", n->path);
    else if (n->splits == 1)
        basin_watch_note(watch, "%s: using the train/validation split in the file", n->path);
    else
        basin_watch_note(watch, "%s: using split 0 of the %lld in the file", n->path,
                         (long long)n->splits);
}

static basin_status split(uint8_t *part, const training_session *t, basin_error *error) {
    const basin_nodes_data *d = &t->data;
    const basin_network *n = d->network;
    uint64_t seed = (uint64_t)t->settings.seed;
    note_split(t);
    switch (split_of(t)) {
    case BASIN_NODES_SPLIT_MASKS:
        return basin_split_from_masks(part, n, d->split ? d->number : 0, error);
    case BASIN_NODES_SPLIT_RATIO: return basin_split_stratified(part, n, d->ratio, seed, 0, error);
    case BASIN_NODES_SPLIT_NONE:
        for (int64_t i = 0; i < n->nodes; i++)
            part[i] = n->label[i] >= 0 ? BASIN_SPLIT_TRAIN : BASIN_SPLIT_NONE;
        return BASIN_OK;
    default: return hold_out(part, t, d->split ? d->ratio : 0.2, error);
    }
}

/* How nodes were split, in lines of a name and its value. */
static void print_cuts(training_session *t) {
    const basin_nodes_data *d = &t->data;
    basin_nodes_split split = split_of(t);
    size_t at = strlen(t->cuts);
    double share = split == BASIN_NODES_SPLIT_NONE ? 0 : d->split ? d->ratio : 0.2;
    const char *name = split == BASIN_NODES_SPLIT_RATIO ? "ratio" : "validation";
    if (d->part || split == BASIN_NODES_SPLIT_MASKS)
        at += (size_t)snprintf(t->cuts + at, CUTS - at, "split %s %lld",
                               d->part ? "given" : "masks", (long long)d->number);
    else
        at += (size_t)snprintf(t->cuts + at, CUTS - at, "%s %g", name, share);
    if (at < CUTS) snprintf(t->cuts + at, CUTS - at, "\nseed %lld\n", (long long)t->settings.seed);
}

/* ---- settings ---- */

/* Both uses of what edges carry, where they carry something. */
static basin_status settle_facts(basin_nodes_settings *settings, const basin_network *network,
                                 basin_error *error) {
    bool there = network->facts.count;
    bool pairs = basin_nodes_descends(settings) && settings->attention;
    if (basin_choice_is(settings->facts, "auto"))
        settings->facts = !there ? "none" : pairs ? "both" : "features";
    if (there || basin_choice_is(settings->facts, "none")) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: facts is %s and its edges carry nothing; needs a table of edges with "
                      "amounts, times or kinds, or facts auto",
                      network->path, settings->facts);
}

/* What `settings` leave open (scaling, hops, members, smoothing), by a checkpoint or model. */
static basin_status nodes_settle(basin_nodes_settings *settings, const basin_task_settings *task,
                                 const basin_bundle *bundle, basin_error *error) {
    basin_nodes_settings found = *settings;
    BASIN_TRY(basin_settings_take(&found, task, bundle, error));
    if (basin_choice_is(settings->scaling, "auto")) settings->scaling = found.scaling;
    if (basin_choice_is(settings->facts, "auto")) settings->facts = found.facts;
    if (settings->hops < 0) settings->hops = found.hops;
    if (settings->smoothing < 0) settings->smoothing = found.smoothing;
    if (!settings->members) settings->members = found.members;
    return BASIN_OK;
}

/* What is open, by the checkpoint or model, or by the data; a rehearsal skips probes. */
static basin_status settle(training_session *t, bool *stopped, const uint8_t *part,
                           basin_error *error) {
    const basin_training_options *how = &t->run->training;
    const basin_network *n = t->data.network;
    choice c = {&t->settings,
                t->task,
                n,
                part,
                {how->backend, how->watch, 0, false, t->parts},
                .judges = basin_split_nodes(NULL, part, n->nodes, BASIN_SPLIT_VAL)};
    const basin_bundle *file = t->run->saved ? t->run->saved : t->run->from;
    bool ask = !(how->dry_run_seconds > 0) && c.judges && n->nodes <= PROBE_NODES;
    if (file) BASIN_TRY(nodes_settle(&t->settings, t->task, file, error));
    if (!t->settings.members) /* more where they cost little */
        t->settings.members = basin_network_max_edges(n) <= 2000000 ? 2 : 1;
    BASIN_TRY(settle_facts(&t->settings, n, error));
    if (basin_classes_several(t->task))
        BASIN_TRY(choose_of_classes(&c, ask, error));
    else
        choose_detector_inputs(&t->settings, how->watch);
    *stopped = c.stopped;
    return BASIN_OK;
}

/* ---- all of it ---- */

/* Without edges there are no neighbours; who sees a node in other parts is unknown if directed. */
static void leave_out_labels(training_session *t) {
    basin_nodes_settings *s = &t->settings;
    const basin_network *n = t->data.network;
    bool read = s->labels && s->trees, any = t->parts != NULL;
    for (int r = 0; r < n->relations; r++) any = any || n->relation[r].edges > 0;
    s->labels = s->labels && any;
    if (!t->parts || !read || !n->directed) return;
    basin_watch_note(t->run->training.watch,
                     "known labels are not looked at: the graph is directed and in parts");
    s->labels = false;
}

/* Without XGBoost the Energy Transformer stands alone. */
static void leave_out_trees(training_session *t) {
    basin_error why;
    if (!t->settings.trees || !basin_trees_available(&why)) return;
    t->treeless = why;
    t->settings.trees = 0;
    t->settings.labels = false;
}

static basin_status train_on(basin_nodes_model **model, basin_training_result *outcome,
                             training_session *t, const uint8_t *part, basin_error *error) {
    bool stopped = false;
    if (t->treeless.status)
        basin_watch_note(t->run->training.watch, "trained without boosted trees: %s",
                         t->treeless.text);
    leave_out_labels(t);
    basin_status status = choose_shards(t, error);
    if (!status) status = settle(t, &stopped, part, error);
    BASIN_TRY(basin_ranks_agree(ranks_of(t), status, error));
    BASIN_TRY(basin_ranks_any(ranks_of(t), &stopped, error));
    outcome->stopped = stopped;
    if (stopped) return BASIN_OK;
    print_cuts(t);
    basin_nodes_record record = {t->digest, t->files.text, t->cuts};
    basin_nodes_job job = {t->task,      t->data.network,       part,
                           &t->settings, .minimal = t->minimal, .record = &record};
    BASIN_TRY(basin_nodes_fit(model, outcome, t->run, &job, error));
    size_t width = (size_t)basin_nodes_width(&(*model)->settings) * sizeof *(*model)->score;
    return basin_rows_reorder((*model)->score, t->order, (*model)->nodes, width, true, error);
}

/* On the caller's parts, or on parts drawn here. */
static basin_status train(basin_nodes_model **model, basin_training_result *outcome,
                          training_session *t, basin_error *error) {
    BASIN_TRY(open_network(t, error));
    const basin_network *n = t->data.network;
    BASIN_FREE_AT_EXIT uint8_t *part = NULL;
    if (!n->label)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s: no labels to learn from; expected a column of them (the option label "
            "names it)",
            n->path);
    if (t->data.part) return train_on(model, outcome, t, t->data.part, error);
    BASIN_TRY(BASIN_NEW(&part, n->nodes + 1, "a split", error));
    BASIN_TRY(split(part, t, error));
    if (!basin_split_nodes(NULL, part, n->nodes, BASIN_SPLIT_VAL))
        basin_watch_note(t->run->training.watch,
                         "%s: no nodes for validation: the last epoch is kept%s", n->path,
                         basin_classes_several(t->task) ? "" : " and the threshold is 0.5");
    return train_on(model, outcome, t, part, error);
}

static void session_free(training_session *t) {
    basin_run_close(t->run);
    basin_parts_close(t->cut);
    basin_network_close(t->opened);
    free(t->files.text), free(t->order), free(t->part);
    basin_schema_free(t->schema);
}

basin_status basin_nodes_train_with(basin_nodes_model **model, basin_training_result *outcome,
                                    const basin_task_settings *task,
                                    const basin_nodes_settings *settings,
                                    const basin_nodes_data *data, const basin_training_options *how,
                                    bool minimal, basin_error *error) {
    BASIN_AT_EXIT(session_free)
    training_session t = {.task = task, .data = *data, .settings = *settings, .minimal = minimal};
    if (data->network) t.parts = data->network->parts;
    *model = NULL;
    *outcome = (basin_training_result){.loss = NAN};
    leave_out_trees(&t);
    if (!data->network && !(data->path && data->paths > 0))
        return basin_fail(error, BASIN_BAD_VALUE, "no network to train on: needs one, or files");
    BASIN_TRY(task->check(&t.settings, error));
    BASIN_TRY(basin_run_open(&t.run, how, task->task, error));
    BASIN_TRY(basin_run_compare(t.run, &t.settings, task->table, error));
    outcome->finished_before = t.run->finished;
    return outcome->finished_before
               ? basin_nodes_open(model, task->task, how->output, how->backend, error)
               : train(model, outcome, &t, error);
}

/* Settings of samples have no effect where sampling auto took the full graph. */
static void note_idle(const basin_settings *settings, const basin_watch *watch) {
    basin_nodes_settings full = *(const basin_nodes_settings *)settings->values;
    basin_settings seen = {settings->kind, &full, settings->given};
    basin_error idle;
    full.sampling = "full";
    if (basin_settings_check_effect(&seen, &idle)) basin_watch_note(watch, "%s", idle.text);
}

basin_status basin_nodes_train(basin_nodes_model **model, basin_training_result *result,
                               const basin_settings *settings, const basin_nodes_data *data,
                               const basin_training_options *training, basin_error *error) {
    const basin_task_settings *task = settings->kind;
    basin_nodes_model *trained = NULL;
    basin_training_result all;
    BASIN_TRY(BASIN_SIZE_CHECK(data, "basin_nodes_data", error));
    if (model) *model = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(training, "basin_training_options", error));
    BASIN_TRY(BASIN_SIZE_CHECK(training->watch, "basin_watch", error));
    if (task != &basin_node_task)
        BASIN_TRY(basin_settings_of(settings, &basin_anomaly_task, error));
    BASIN_TRY(basin_settings_check_effect(settings, error));
    if (basin_settings_given(settings, "trees") &&
        ((const basin_nodes_settings *)settings->values)->trees)
        BASIN_TRY(basin_trees_available(error));
    basin_status status = basin_nodes_train_with(&trained, &all, task, settings->values, data,
                                                 training, false, error);
    if (!status && trained && !trained->sampled && !all.finished_before)
        note_idle(settings, training->watch);
    basin_info_fill(result, &all, sizeof all);
    if (model)
        *model = trained;
    else
        basin_nodes_close(trained);
    return status;
}
