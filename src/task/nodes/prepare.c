/* Before training: who trains and who validates, what anomalies weigh, the table of inputs, and
 * whether the full graph fits into memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/nodes/classes/classes.h"

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
    if (!f->label || !f->weight || !f->probability)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for labels");
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
    f->train = basin_array_new((size_t)f->train_count, sizeof *f->train);
    if (!f->train) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for labels");
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
    basin_status status = basin_nodes_net_memory(&bytes, &f->settings, &f->inputs.shape, true,
                                                 f->work.backend, error);
    if (status) return status;
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
    basin_status status = basin_tree_table_open(&table, f->network, e, f->work.memory, error);
    if (status) return status;
    basin_tree_source source = basin_tree_source_of(&table);
    status = basin_nodes_ensemble_grow(e, f->settings.trees, (uint64_t)f->settings.seed, &source,
                                       f->part, f->work.watch, error);
    if (!status) status = basin_nodes_ensemble_views(f->tree_logit, e, &table, error);
    basin_tree_table_close(&table);
    return status;
}

static basin_status grow_on_parts(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_ensemble *e = &f->model->ensemble;
    basin_parted_trees *trees;
    basin_status status = basin_parted_trees_open(&trees, f->work.parts, e, f->work.memory, error);
    if (status) return status;
    status = basin_parted_trees_grow(e, f->settings.trees, (uint64_t)f->settings.seed, trees,
                                     f->part, f->work.watch, error);
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
    if (!f->tree_logit) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    basin_status status = basin_nodes_ensemble_name(e, f->network, error);
    e->rate = basin_nodes_base_rate(f->network, f->part);
    if (!status && f->settings.labels && f->work.parts)
        status = basin_parts_name_nodes(f->work.parts, error);
    if (!status && f->settings.labels)
        status = basin_known_labels_take(&e->known, f->network, f->part, BASIN_PART_TRAIN, error);
    if (status) return status;
    return f->work.parts ? grow_on_parts(f, error) : grow_on_whole(f, error);
}
