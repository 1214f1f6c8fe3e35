/* Before training: who trains and who validates, what anomalies weigh, which inputs validation
 * prefers, whether the full graph fits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/fit.h"

static basin_status list_nodes(int64_t **node, int64_t *count, const basin_fit *f, int which,
                               basin_error *error) {
    *count = basin_split_nodes(NULL, f->part, f->network->nodes, which);
    *node = basin_array_new((size_t)*count, sizeof **node);
    if (!*node) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a list of nodes");
    basin_split_nodes(*node, f->part, f->network->nodes, which);
    return BASIN_OK;
}

static basin_status count_classes(int64_t count[2], const basin_fit *f, const int64_t *node,
                                  int64_t n, const char *which, basin_error *error) {
    count[0] = count[1] = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t label = f->network->label[node[i]];
        if (label < 0 || label > 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: node %lld has class %d; wanted 0 (normal) or 1 (anomalous)",
                              f->network->path, (long long)node[i], label);
        count[label]++;
    }
    if (count[0] && count[1]) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: %lld normal and %lld anomalous nodes for %s; wanted both",
                      f->network->path, (long long)count[0], (long long)count[1], which);
}

/* Labels and weights as floats: anomalies weigh omega, the ratio of the classes, or its root. */
static basin_status weigh(basin_fit *f, basin_error *error) {
    int64_t N = f->network->nodes, count[2];
    f->label = calloc((size_t)N + 1, sizeof *f->label);
    f->weight = calloc((size_t)N + 1, sizeof *f->weight);
    f->probability = basin_array_new((size_t)N, sizeof *f->probability);
    f->val_score = basin_array_new((size_t)f->val_count, sizeof *f->val_score);
    f->val_label = basin_array_new((size_t)f->val_count, sizeof *f->val_label);
    if (!f->label || !f->weight || !f->probability || !f->val_score || !f->val_label)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for labels");
    basin_status status = count_classes(count, f, f->train, f->train_count, "training", error);
    if (status) return status;
    double omega = (double)count[0] / (double)count[1];
    if (basin_choice_is(f->settings.balance, "root")) omega = sqrt(omega);
    if (basin_choice_is(f->settings.balance, "none")) omega = 1;
    for (int64_t i = 0; i < f->train_count; i++) {
        int64_t node = f->train[i];
        f->label[node] = (float)f->network->label[node];
        f->weight[node] = f->network->label[node] ? (float)omega : 1;
    }
    if (!f->val_count) return BASIN_OK;
    status = count_classes(count, f, f->val, f->val_count, "validation", error);
    for (int64_t i = 0; i < f->val_count && !status; i++)
        f->val_label[i] = (uint8_t)f->network->label[f->val[i]];
    return status;
}

/* ---- what validation chooses before ---- */

enum { PROBE_NODES = 1000000 }; /* beyond, a probe over all nodes would cost more than it tells */

/* An MLP on the inputs in question, trained for a moment: its measure on validation. */
static basin_status probe(double *value, const basin_fit *f, int64_t hops, const char *scaling,
                          basin_error *error) {
    basin_anomaly_settings r = f->settings;
    basin_watch stop = {.stop = f->work->watch ? f->work->watch->stop : NULL};
    basin_anomaly_work quiet = {.backend = f->work->backend, .watch = &stop};
    basin_anomaly_detector *detector;
    r.form = "mlp", r.position = "none", r.sampling = "full";
    r.hops = hops, r.scaling = scaling;
    r.hidden = 64, r.dropout = 0.2, r.average = 0, r.members = 1;
    r.epochs = 120, r.patience = 30, r.evaluate = 2, r.warmup = 5, r.rate = 5e-3, r.decay = 0.01;
    basin_status status = basin_anomaly_fit(&detector, f->network, f->part, &r, &quiet, error);
    if (status) return status;
    *value = detector->member[0].chosen;
    basin_anomaly_free(detector);
    return BASIN_OK;
}

static const char *const single[] = {BASIN_ANOMALY_SCALINGS(BASIN_SCALING_ALONE)};
enum { SINGLES = sizeof single / sizeof *single, WIDE = 4096 };

/* Means over two hops, or none. */
static basin_status choose_hops(basin_fit *f, double *value, basin_error *error) {
    bool joined = strchr(f->settings.scaling, '+'),
         open = basin_choice_is(f->settings.scaling, "auto");
    const char *kind = joined || open ? "both" : f->settings.scaling;
    double with = -1;
    basin_status status = probe(value, f, 0, kind, error);
    if (!status) status = probe(&with, f, 2, kind, error);
    f->settings.hops = with > *value ? 2 : 0;
    *value = fmax(*value, with);
    return status;
}

/* Of four scalings the one that does worst is left out; members see the others in turn. One member
 * sees the best. `value` has that of the first. */
static basin_status choose_scaling(basin_fit *f, double value[SINGLES], bool known,
                                   basin_error *error) {
    static const char *const others[] = {BASIN_ANOMALY_SCALINGS(BASIN_SCALING_OTHERS)};
    basin_status status = BASIN_OK;
    int best = 0, worst = 0;
    for (int i = known; i < SINGLES && !status; i++)
        status = probe(&value[i], f, f->settings.hops, single[i], error);
    for (int i = 1; i < SINGLES; i++) {
        if (value[i] > value[best]) best = i;
        if (value[i] < value[worst]) worst = i;
    }
    f->settings.scaling = f->settings.members > 1 ? others[worst] : single[best];
    return status;
}

static basin_status choose_inputs(basin_fit *f, basin_error *error) {
    bool hops = f->settings.hops < 0, scaling = basin_choice_is(f->settings.scaling, "auto");
    bool ask = f->val_count && f->network->nodes <= PROBE_NODES, asked = ask && hops;
    double value[SINGLES] = {0};
    basin_status status = asked ? choose_hops(f, &value[0], error) : BASIN_OK;
    if (hops && !ask) f->settings.hops = 2;
    /* the columns of bins would be too many where there are many features */
    bool wide = f->network->features * 10 * (1 + f->settings.hops) > WIDE;
    if (!status && scaling && ask && !wide) {
        status = choose_scaling(f, value, asked, error);
        asked = true;
    } else if (scaling) {
        f->settings.scaling = f->settings.members > 1 ? "both+standard+quantile" : "both";
    }
    if (hops || scaling)
        basin_watch_note(f->work->watch, "inputs: scaling %s, means over %lld hops%s",
                         f->settings.scaling, (long long)f->settings.hops,
                         asked ? " (chosen by validation)" : "");
    f->detector->settings.hops = f->settings.hops;
    f->detector->settings.scaling = f->settings.scaling;
    return status;
}

basin_status basin_fit_prepare(basin_fit *f, basin_error *error) {
    if (!f->network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to learn from", f->network->path);
    basin_status status = list_nodes(&f->train, &f->train_count, f, BASIN_PART_TRAIN, error);
    if (!status) status = list_nodes(&f->val, &f->val_count, f, BASIN_PART_VAL, error);
    if (!status && !f->train_count)
        status = basin_fail(error, BASIN_BAD_VALUE, "%s: no training nodes", f->network->path);
    if (!status) status = weigh(f, error);
    if (!status) status = choose_inputs(f, error);
    if (!status) status = basin_node_inputs_open(&f->inputs, f->network, &f->settings, error);
    if (!status)
        status =
            basin_node_inputs_fit(&f->detector->scale, &f->inputs, f->train, f->train_count, error);
    return status ? status : basin_node_inputs_scale(&f->inputs, &f->detector->scale, error);
}

basin_status basin_fit_choose_sampling(basin_fit *f, basin_error *error) {
    char *how = f->detector->how;
    size_t size = sizeof f->detector->how, bytes = 0, limit = basin_anomaly_memory_limit(f->work);
    basin_status status = basin_anomaly_net_memory(&bytes, &f->settings, &f->inputs.shape, true,
                                                   f->work->backend, error);
    if (status) return status;
    bytes += basin_node_inputs_bytes(&f->inputs);
    f->bytes = bytes;
    const char *asked = f->settings.sampling;
    f->shrink = basin_choice_is(asked, "auto");
    if (f->shrink) f->settings.sampling = bytes <= limit ? "full" : "neighbours";
    double gib = (double)bytes / (1 << 30), most = (double)limit / (1 << 30);
    if (basin_choice_is(f->settings.sampling, "full"))
        snprintf(how, size, "the full graph in %.2f GiB of %.1f allowed", gib, most);
    else
        snprintf(how, size, "%s, %g of the nodes an epoch (the full graph: %.1f GiB of %.1f)",
                 f->settings.sampling, f->settings.fraction, gib, most);
    if (basin_choice_is(f->settings.position, "learned") &&
        !basin_choice_is(f->settings.sampling, "full"))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "learned positions want the full graph, which takes %.1f GiB of %.1f "
                          "allowed; wanted position none",
                          gib, most);
    return BASIN_OK;
}

/* ---- what samples take ---- */

/* `bytes` beside the network and its table. Where no limit was asked for it is what is still free,
 * and these are no longer counted among that. */
static basin_status hold(const basin_fit *f, size_t bytes, const char *what, const char *smaller,
                         basin_error *error) {
    size_t limit = basin_anomaly_memory_limit(f->work), graph = basin_node_inputs_bytes(&f->inputs);
    size_t need = bytes + (f->work->memory ? graph : 0);
    if (f->work->least || need <= limit) return BASIN_OK;
    const double gib = 1 << 30;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: %s takes %.3g GiB (the graph and its inputs %.3g, the plan %.3g) of "
                      "%.3g allowed; wanted a larger --memory, a smaller model (--dim, --memories, "
                      "--blocks)%s",
                      f->network->path, what, (double)need / gib, (double)(need - bytes) / gib,
                      (double)bytes / gib, (double)limit / gib, smaller);
}

/* The finished plan's own figures: those of a smaller one, times as many, can be far too high. Its
 * arena is reserved by then but not written to. */
basin_status basin_fit_hold_samples(const basin_fit *f, basin_error *error) {
    const basin_anomaly_shape *shape = &f->planned;
    bool walk = basin_choice_is(f->settings.sampling, "neighbours");
    basin_plan_stats stats = basin_plan_get_stats(f->trainer.plan);
    size_t bytes = stats.arena_bytes + stats.input_bytes, pairs = 0;
    for (int r = 0; r < shape->relations; r++) pairs += (size_t)shape->pairs[r];
    bytes += pairs * 3 * sizeof(int32_t); /* what is written: the list, the rows gathered */
    bytes += (size_t)shape->nodes * (size_t)shape->columns * sizeof(float);
    return hold(f, bytes, walk ? "training on neighbours" : "training on subgraphs",
                walk ? ", or smaller samples (--batch, --fanout)" : ", or a smaller --fraction",
                error);
}

basin_status basin_fit_hold_stream(const basin_fit *f, basin_error *error) {
    if (basin_choice_is(f->settings.sampling, "full") || !basin_anomaly_scorer_streams(f->scorer))
        return BASIN_OK;
    return hold(f, basin_anomaly_scorer_bytes(f->scorer), "scoring all nodes, streamed,", "",
                error);
}
