/* Which inputs validation prefers: for each candidate an MLP is trained for a moment. See choose.h.
 */
#include "task/nodes/choose.h"

#include <math.h>
#include <string.h>

#include "task/nodes/classes/classes.h"
#include "task/nodes/edges/edges.h"

enum { PROBE_NODES = 1000000 }; /* beyond, a probe over all nodes would cost more than it tells */

typedef struct choice {
    basin_nodes_settings *settings;
    const basin_task_settings *task;
    const basin_network *network;
    const uint8_t *part;
    basin_nodes_resources work;
    bool stopped;
} choice;

enum { SMOOTHING = 10 }; /* steps, where it is left open whether there are any */

/* The probe is an MLP: it reads totals of edges, and has no pairs to bias. */
static const char *facts_for_probe(const basin_nodes_settings *s) {
    if (!basin_facts_bias(s)) return s->facts;
    return basin_facts_are_features(s) ? "features" : "none";
}

/* Trains on the inputs in question; their measure on validation. */
static basin_status probe(double *value, choice *c, int64_t hops, const char *scaling,
                          basin_error *error) {
    basin_nodes_settings s = *c->settings;
    basin_nodes_model *model;
    basin_outcome outcome;
    *value = 0;
    if (c->stopped) return BASIN_OK;
    s.form = "mlp", s.position = "none", s.sampling = "full", s.shards = 1;
    s.facts = facts_for_probe(c->settings);
    s.hops = hops, s.scaling = scaling;
    s.hidden = 64, s.dropout = 0.2, s.penalty = 0, s.average = 0, s.members = 1, s.trees = 0,
    s.calibrate = "none";
    s.epochs = 120, s.patience = 30, s.evaluate = 2, s.warmup = 5, s.rate = 5e-3, s.decay = 0.01;
    basin_nodes_job job = {c->task, c->network, c->part, &s, .probe = true, .parts = c->work.parts};
    basin_status status = basin_nodes_fit_quietly(&model, &outcome, &job, &c->work, error);
    basin_nodes_close(model);
    if (status) return status;
    *value = outcome.best.merit;
    c->stopped = outcome.stopped;
    return BASIN_OK;
}

static const char *const single[] = {BASIN_NODES_SCALINGS(BASIN_SCALING_ALONE)};
enum { SINGLES = sizeof single / sizeof *single, WIDE = 4096 };

/* Means over two hops, or none. */
static basin_status choose_hops(choice *c, double *value, basin_error *error) {
    const char *asked = c->settings->scaling;
    const char *kind = strchr(asked, '+') || basin_choice_is(asked, "auto") ? "both" : asked;
    double with = -1;
    basin_status status = probe(value, c, 0, kind, error);
    if (!status) status = probe(&with, c, 2, kind, error);
    c->settings->hops = with > *value ? 2 : 0;
    *value = fmax(*value, with);
    return status;
}

/* Of four scalings the one that does worst is left out; members see the others in turn. One member
 * sees the best. `value` has that of the first where it is known. */
static basin_status choose_scaling(choice *c, double value[SINGLES], bool known,
                                   basin_error *error) {
    static const char *const others[] = {BASIN_NODES_SCALINGS(BASIN_SCALING_OTHERS)};
    basin_status status = BASIN_OK;
    int best = 0, worst = 0;
    for (int i = known; i < SINGLES && !status; i++)
        status = probe(&value[i], c, c->settings->hops, single[i], error);
    for (int i = 1; i < SINGLES; i++) {
        if (value[i] > value[best]) best = i;
        if (value[i] < value[worst]) worst = i;
    }
    c->settings->scaling = c->settings->members > 1 ? others[worst] : single[best];
    return status;
}

static basin_status choose(choice *c, bool ask, basin_error *error) {
    basin_nodes_settings *s = c->settings;
    bool hops = s->hops < 0, scaling = basin_choice_is(s->scaling, "auto"), asked = ask && hops;
    double value[SINGLES] = {0};
    basin_status status = asked ? choose_hops(c, &value[0], error) : BASIN_OK;
    if (hops && !ask) s->hops = 2;
    /* The columns of bins would be too many where there are many features. */
    bool wide = c->network->features * 10 * (1 + s->hops) > WIDE;
    if (!status && scaling && ask && !wide) {
        status = choose_scaling(c, value, asked, error);
        asked = true;
    } else if (scaling) {
        s->scaling = s->members > 1 ? "both+standard+quantile" : "both";
    }
    if ((hops || scaling) && !c->stopped)
        basin_watch_note(c->work.watch, "inputs: scaling %s, means over %lld hops%s", s->scaling,
                         (long long)s->hops, asked ? " (chosen by validation)" : "");
    return status;
}

/* ---- of classes ---- */

/* Adds to numbers below 0, zeros, and all. */
static void count_features(int64_t counts[3], const basin_network *n) {
    int64_t count = n->feature ? n->nodes * n->features : 0;
    for (int64_t i = 0; i < count; i++) {
        counts[0] += n->feature[i] < 0;
        counts[1] += n->feature[i] == 0;
    }
    counts[2] += count;
}

/* Words, counts, switches: no number below 0, and most of them 0. */
static basin_status is_bag(bool *bag, const choice *c, basin_error *error) {
    basin_parts *p = c->work.parts;
    int64_t counts[3] = {0};
    basin_status status = BASIN_OK;
    if (!p) count_features(counts, c->network);
    for (int64_t k = 0; p && k < p->count; k++) count_features(counts, p->part[k]->network);
    if (p) status = basin_ranks_sum_integers(p->ranks, counts, 3, error);
    *bag = !counts[0] && counts[1] > counts[2] / 2;
    return status;
}

/* What neighbours are good for: nothing, to agree with, or to be looked at. */
static basin_status choose_neighbours(choice *c, basin_error *error) {
    static const int64_t way[][2] = {{0, 0}, {0, SMOOTHING}, {2, 0}};
    basin_nodes_settings *s = c->settings;
    int64_t hops = s->hops, smoothing = s->smoothing;
    double most = -1;
    basin_status status = BASIN_OK;
    for (int i = 0; i < 3 && !status; i++) {
        double value = 0;
        int64_t far = hops < 0 ? way[i][0] : hops;
        bool again = (hops >= 0 && i == 2) || (smoothing >= 0 && i == 1); /* as the first */
        if (again) continue;
        basin_nodes_settings now = *s;
        now.smoothing = smoothing < 0 ? way[i][1] : smoothing;
        choice one = *c;
        one.settings = &now;
        status = probe(&value, &one, far, s->scaling, error);
        c->stopped = one.stopped;
        if (value > most) s->hops = far, s->smoothing = now.smoothing, most = value;
    }
    return status;
}

static basin_status choose_of_classes(choice *c, bool ask, basin_error *error) {
    basin_nodes_settings *s = c->settings;
    bool scaling = basin_choice_is(s->scaling, "auto"), open = s->hops < 0 || s->smoothing < 0;
    bool bag = false;
    basin_status status = scaling ? is_bag(&bag, c, error) : BASIN_OK;
    if (scaling) s->scaling = bag ? "rows" : "standard";
    if (!status && open && ask) status = choose_neighbours(c, error);
    if (s->hops < 0) s->hops = 0;
    if (s->smoothing < 0) s->smoothing = SMOOTHING;
    if ((scaling || open) && !c->stopped)
        basin_watch_note(c->work.watch,
                         "inputs: scaling %s, means over %lld hops, %lld steps of smoothing%s",
                         s->scaling, (long long)s->hops, (long long)s->smoothing,
                         open && ask ? " (chosen by validation)" : "");
    return status;
}

basin_status basin_nodes_choose_inputs(basin_nodes_settings *settings,
                                       const basin_task_settings *task, bool *stopped,
                                       const basin_network *network, const uint8_t *part, bool ask,
                                       const basin_nodes_resources *work, basin_error *error) {
    basin_nodes_settings chosen = *settings;
    choice c = {&chosen, task, network, part, {work->backend, work->watch, 0, false, work->parts},
                false};
    bool judged = basin_split_nodes(NULL, part, network->nodes, BASIN_PART_VAL) > 0;
    ask = ask && judged && network->nodes <= PROBE_NODES;
    basin_status status =
        basin_classes_several(task) ? choose_of_classes(&c, ask, error) : choose(&c, ask, error);
    *stopped = c.stopped;
    if (!status && !c.stopped) *settings = chosen;
    return status;
}
