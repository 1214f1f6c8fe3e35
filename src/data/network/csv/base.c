/* Tables that add to a network: its nodes come first, with their features and labels, and edges may
 * join old nodes and new ones. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/network/csv/table.h"

/* The ids of the base are known before those of the tables. */
basin_status basin_tables_begin_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    char text[BASIN_NODE_TEXT];
    basin_status status = BASIN_OK;
    j->base_nodes = base ? base->nodes : 0;
    for (int64_t i = 0; i < j->base_nodes && !status; i++) {
        int32_t node;
        const char *id = basin_network_id(base, i, text);
        status = basin_dictionary_add(&j->id, &node, id, j->error);
        if (!status && node != i)
            status = basin_fail(j->error, BASIN_BAD_FILE, "%s: node '%s' is there twice",
                                base->path, id);
    }
    return status;
}

/* Features and labels of the base's nodes. */
basin_status basin_tables_fill_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    basin_network *n = j->network;
    if (!base) return BASIN_OK;
    if ((base->feature ? base->features : 0) != (n->feature ? n->features : 0))
        return basin_fail(j->error, BASIN_BAD_SHAPE,
                          "%s: %" PRId64 " features a node, wanted the %" PRId64
                          " of the tables that are added",
                          base->path, base->features, n->features);
    if (n->feature)
        memcpy(n->feature, base->feature,
               (size_t)(base->nodes * base->features) * sizeof *n->feature);
    if (base->label && !n->label) {
        n->label = basin_array_new((size_t)n->nodes, sizeof *n->label);
        if (!n->label) return basin_tables_no_memory(j, n->path);
        for (int64_t i = base->nodes; i < n->nodes; i++) n->label[i] = -1;
    }
    if (base->label) memcpy(n->label, base->label, (size_t)base->nodes * sizeof *n->label);
    return BASIN_OK;
}

/* Adds the base's edges to a relation, row by row; what they carry was before that of the new. */
static basin_status add_rows(basin_relation *to, const basin_relation *from, int64_t nodes,
                             int64_t old, bool merge, const basin_facts *facts,
                             basin_error *error) {
    basin_relation tables = *to;
    int64_t edges = to->edges + from->edges, at = 0;
    int64_t *row = basin_array_new((size_t)nodes + 1, sizeof *row);
    int32_t *col = basin_array_new((size_t)edges, sizeof *col);
    if (!row || !col) {
        free(row);
        free(col);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %" PRId64 " edges", edges);
    }
    row[0] = 0;
    for (int64_t i = 0; i < nodes; i++) {
        size_t own = (size_t)(to->row[i + 1] - to->row[i]);
        size_t more = i < old ? (size_t)(from->row[i + 1] - from->row[i]) : 0;
        memcpy(col + at, to->col + to->row[i], own * sizeof *col);
        if (more) memcpy(col + at + own, from->col + from->row[i], more * sizeof *col);
        row[i + 1] = at += (int64_t)(own + more);
    }
    to->row = row;
    to->col = col;
    to->edges = edges;
    to->fact = NULL;
    basin_status status = basin_relation_tidy(to, nodes, merge, error);
    if (!status) status = basin_relation_alloc_facts(to, facts, error);
    if (!status) basin_relation_merge_facts(to, from, old, facts);
    if (!status) basin_relation_merge_facts(to, &tables, nodes, facts);
    tables.name = NULL;
    basin_relation_free(&tables);
    return status;
}

static basin_status join_relation(basin_tables *j, const basin_relation *from) {
    static const int32_t none = 0;
    basin_network *n = j->network;
    basin_edges empty = {&none, &none, BASIN_I32, 2, 0};
    basin_status status = BASIN_OK;
    if (basin_network_relation(n, from->name) < 0)
        status = basin_network_add_relation(n, from->name, &empty, j->o, j->error);
    if (status) return status;
    basin_relation *to = &n->relation[basin_network_relation(n, from->name)];
    return add_rows(to, from, n->nodes, j->base_nodes, !j->o->keep_duplicates, &n->facts, j->error);
}

basin_status basin_tables_join_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    basin_status status = BASIN_OK;
    if (!base) return BASIN_OK;
    if (base->facts.count != j->network->facts.count)
        return basin_fail(j->error, BASIN_BAD_SHAPE,
                          "%s: %" PRId64 " facts an edge, wanted the %" PRId64
                          " of the tables that are added",
                          base->path, base->facts.count, j->network->facts.count);
    basin_network_add_note(j->network,
                           "%" PRId64 " nodes and %zu edges added to the %" PRId64 " nodes of %s",
                           j->network->nodes - base->nodes, j->edge_count, base->nodes, base->path);
    if (basin_network_relation(base, "homo") >= 0)
        status = basin_network_add_union(j->network, j->error);
    for (int r = 0; r < base->relations && !status; r++)
        status = join_relation(j, &base->relation[r]);
    return status;
}
