/* Trees beside the network of a graph in parts: tables of each part as those of a whole graph, with
 * rows of halos fetched in between, so that every row has the bits that it has in the whole graph.
 * Every rank grows the same trees, on rows gathered from all, and asks them about its own nodes. */
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/parts/parts.h"

struct basin_parted_trees {
    basin_tree_source source; /* first: its function finds the rest behind it */
    basin_parts *parts;
    basin_tree_table *table; /* [parts of this rank] */
    float **row;             /* [parts of this rank] what is fetched */
};

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for trees of parts");
}

/* ---- tables ---- */

static basin_status fetch_raw(basin_parted_trees *t, basin_error *error) {
    for (int64_t k = 0; k < t->parts->count; k++) t->row[k] = t->table[k].raw;
    return basin_parts_fetch(t->parts, t->row, t->table[0].own, error);
}

static basin_status fetch_means(basin_parted_trees *t, basin_error *error) {
    for (int64_t k = 0; k < t->parts->count; k++) {
        basin_tree_table_take_means(&t->table[k]);
        t->row[k] = t->table[k].near;
    }
    return basin_parts_fetch(t->parts, t->row, t->table[0].relations * t->table[0].own, error);
}

/* Labels of a part's nodes travel as numbers, in the place of a sum that is not there yet. */
static basin_status fetch_labels(basin_parted_trees *t, const int8_t *all, basin_error *error) {
    for (int64_t k = 0; k < t->parts->count; k++) {
        const basin_network *n = t->table[k].network;
        t->row[k] = t->table[k].sums[0].count;
        for (int64_t i = 0; i < n->nodes; i++) t->row[k][i] = (float)all[n->origin[i]];
    }
    basin_status status = basin_parts_fetch(t->parts, t->row, 1, error);
    for (int64_t k = 0; k < t->parts->count && !status; k++) {
        const basin_tree_table *table = &t->table[k];
        for (int64_t i = 0; i < table->network->nodes + table->halo; i++)
            table->label[i] = (int8_t)t->row[k][i];
    }
    return status;
}

static basin_status fetch_sums(basin_parted_trees *t, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count; k++) basin_tree_table_sum_labels(&t->table[k]);
    for (int r = 0; r < t->table[0].relations && !status; r++) {
        for (int64_t k = 0; k < t->parts->count; k++) t->row[k] = t->table[k].sums[r].anomalous;
        status = basin_parts_fetch(t->parts, t->row, 1, error);
        for (int64_t k = 0; k < t->parts->count; k++) t->row[k] = t->table[k].sums[r].count;
        if (!status) status = basin_parts_fetch(t->parts, t->row, 1, error);
    }
    return status;
}

/* Every rank knows the labels of all nodes, by their ids or numbers in the whole graph. */
static basin_status look_up(basin_parted_trees *t, const basin_nodes_ensemble *e,
                            basin_error *error) {
    basin_parts *p = t->parts;
    if (!e->known.count) return BASIN_OK;
    basin_status status = e->known.named ? basin_parts_name_nodes(p, error) : BASIN_OK;
    int8_t *all = basin_array_new((size_t)p->face->nodes, 1);
    if (!status && !all) status = no_memory(error);
    status = basin_ranks_agree(p->ranks, status, error);
    if (!status) {
        int64_t known = basin_known_labels_find(all, &e->known, p->face);
        for (int64_t k = 0; k < p->count; k++) t->table[k].known = known;
        status = fetch_labels(t, all, error);
    }
    free(all);
    return status ? status : fetch_sums(t, error);
}

/* Whether a node of the halo sees a part's is known where edges go both ways alone. */
static basin_status check(const basin_parts *p, const basin_nodes_ensemble *e, basin_error *error) {
    if (!e->known.count || !p->face->directed) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%s: a directed graph in parts, and trees that look at known labels; wanted "
                      "the whole graph, or a detector that was trained with labels false",
                      p->face->path);
}

static basin_status rows_of_parts(const basin_tree_source *source, float *x, const int64_t *node,
                                  int64_t rows, basin_error *error);

basin_status basin_parted_trees_open(basin_parted_trees **trees, basin_parts *parts,
                                     const basin_nodes_ensemble *ensemble, size_t memory,
                                     basin_error *error) {
    size_t count = (size_t)parts->count;
    basin_parted_trees *t = calloc(1, sizeof *t);
    *trees = NULL;
    basin_status status = t ? check(parts, ensemble, error) : no_memory(error);
    if (t) {
        t->parts = parts;
        t->table = calloc(count, sizeof *t->table);
        t->row = calloc(count, sizeof *t->row);
        t->source = (basin_tree_source){parts->face, t->table, rows_of_parts};
        if (!status && !(t->table && t->row)) status = no_memory(error);
    }
    for (size_t k = 0; k < count && !status; k++)
        status = basin_tree_table_begin(&t->table[k], parts->part[k]->network, parts->part[k]->halo,
                                        ensemble, memory / count, error);
    status = basin_ranks_agree(parts->ranks, status, error);
    if (!status) status = fetch_raw(t, error);
    if (!status) status = fetch_means(t, error);
    if (!status) status = look_up(t, ensemble, error);
    if (status)
        basin_parted_trees_close(t);
    else
        *trees = t;
    return status;
}

void basin_parted_trees_close(basin_parted_trees *t) {
    if (!t) return;
    for (int64_t k = 0; k < t->parts->count && t->table; k++) basin_tree_table_close(&t->table[k]);
    free(t->table), free(t->row);
    free(t);
}

/* ---- rows of chosen nodes ---- */

/* Those of part k of this rank into `local`, by their numbers there; how many. */
static int64_t list_chosen(int64_t *local, const basin_parts *p, int64_t k, const uint8_t *chosen) {
    const basin_network *n = p->part[k]->network;
    int64_t count = 0;
    for (int64_t i = 0; i < n->nodes; i++)
        if (chosen[n->origin[i]]) local[count++] = i;
    return count;
}

static basin_status rows_of_parts(const basin_tree_source *source, float *x, const int64_t *node,
                                  int64_t rows, basin_error *error) {
    const basin_parted_trees *t = (const basin_parted_trees *)(const void *)source;
    basin_parts *p = t->parts;
    int64_t columns = source->table->columns, own = 0;
    uint8_t *chosen = calloc((size_t)p->face->nodes + 1, 1);
    int64_t *local = basin_array_new((size_t)p->most_nodes, sizeof *local);
    for (int64_t i = 0; i < rows && chosen; i++) chosen[node[i]] = 1;
    for (int64_t k = 0; k < p->count && chosen && local; k++)
        own += list_chosen(local, p, k, chosen);
    float *mine = basin_array_new((size_t)own, (size_t)columns * sizeof *mine);
    basin_status status = chosen && local && mine ? BASIN_OK : no_memory(error);
    status = basin_ranks_agree(p->ranks, status, error);
    own = 0;
    for (int64_t k = 0; k < p->count && !status; k++) {
        int64_t count = list_chosen(local, p, k, chosen);
        basin_tree_table_rows(mine + own * columns, &t->table[k], local, 0, count);
        own += count;
    }
    if (!status)
        status = basin_parts_gather_packed(x, p, mine, chosen, (size_t)columns * sizeof *x, error);
    free(chosen), free(local), free(mine);
    return status;
}

basin_status basin_parted_trees_grow(basin_nodes_ensemble *ensemble, int64_t fits, uint64_t seed,
                                     const basin_parted_trees *trees, const uint8_t *part,
                                     const basin_watch *watch, basin_error *error) {
    return basin_nodes_ensemble_grow(ensemble, fits, seed, &trees->source, part, watch, error);
}

/* ---- logits ---- */

/* to [columns, rows] = the transpose of from. */
static void transpose(double *to, const double *from /* [rows, columns] */, int64_t rows,
                      int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + i] = from[i * columns + c];
}

/* Of all nodes: `find` gives those of a part. */
static basin_status gather_logits(double *logit /* [width, N] */, const basin_nodes_ensemble *e,
                                  const basin_parted_trees *t, int64_t width,
                                  basin_status (*find)(double *, const basin_nodes_ensemble *,
                                                       const basin_tree_table *, basin_error *),
                                  basin_error *error) {
    basin_parts *p = t->parts;
    int64_t own = 0, at = 0;
    for (int64_t k = 0; k < p->count; k++) own += p->part[k]->network->nodes;
    size_t row = (size_t)width * sizeof(double);
    double *one = basin_array_new((size_t)p->most_nodes, row);
    double *mine = basin_array_new((size_t)own, row);
    double *all = basin_array_new((size_t)p->face->nodes, row);
    basin_status status = one && mine && all ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++) {
        int64_t n = p->part[k]->network->nodes;
        status = find(one, e, &t->table[k], error);
        if (!status) transpose(mine + at * width, one, width, n);
        at += n;
    }
    status = basin_ranks_agree(p->ranks, status, error);
    if (!status) status = basin_parts_gather_packed(all, p, mine, NULL, row, error);
    if (!status) transpose(logit, all, p->face->nodes, width);
    free(one), free(mine), free(all);
    return status;
}

basin_status basin_parted_trees_views(double *logit, const basin_nodes_ensemble *ensemble,
                                      const basin_parted_trees *trees, basin_error *error) {
    return gather_logits(logit, ensemble, trees, BASIN_TREE_VIEWS, basin_nodes_ensemble_views,
                         error);
}

basin_status basin_parted_trees_score(double *logit, const basin_nodes_ensemble *ensemble,
                                      basin_parts *parts, size_t memory, const basin_watch *watch,
                                      basin_error *error) {
    basin_parted_trees *t;
    basin_status status = basin_parted_trees_open(&t, parts, ensemble, memory, error);
    if (status) return status;
    status = basin_nodes_ensemble_check(ensemble, &t->table[0], watch, error);
    if (!status) status = gather_logits(logit, ensemble, t, 1, basin_nodes_ensemble_logits, error);
    basin_parted_trees_close(t);
    return status;
}
