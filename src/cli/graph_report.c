/* basin graph report: a page on a model's predictions for labelled graphs; and pictures of
 * molecules. */
#include "base/try.h"
#include "cli/graph.h"
#include "data/graphset/molecule.h"

/* ---- pictures ---- */

enum { DRAWN = 1000 }; /* atoms that a drawing can have; beyond it is one of a graph */

bool basin_graph_is_molecules(const basin_graphset *set) {
    return set->line && set->node_labels >= BASIN_ATOM_LABELS && set->edge_labels > 0;
}

void basin_graph_drawing_free(basin_graph_drawing *d) {
    BASIN_FREE(d->at, d->name, d->text, d->order);
}

basin_status basin_graph_draw(basin_graph_drawing *d, const basin_graphset *s, int64_t graph,
                              basin_error *error) {
    int64_t nodes = s->node_start[graph + 1] - s->node_start[graph];
    int64_t first = s->edge_start[graph], edges = s->edge_start[graph + 1] - first;
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    d->graph = (basin_svg_graph_of){
        .title = "", .legend = "", .nodes = nodes, .edges = edges, .edge = s->edge + 2 * first};
    if (!basin_graph_is_molecules(s) || nodes > DRAWN || !nodes) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&d->at, 2 * nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->name, nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->text, 4 * nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->order, edges + 4 * nodes, "a picture", error));
    BASIN_TRY(basin_molecule_of(&m, s, graph, error));
    BASIN_TRY(basin_molecule_layout(d->at, &m, error));
    for (int64_t i = 0; i < nodes; i++) {
        const int32_t *label = s->node_label + (s->node_start[graph] + i) * s->node_labels;
        d->name[i] = d->text + 4 * i;
        snprintf(d->text + 4 * i, 4, "%s", basin_element(label[0]));
        memcpy(d->order + edges + 4 * i, label, 4 * sizeof *label);
    }
    for (int64_t e = 0; e < edges; e++) d->order[e] = s->edge_label[(first + e) * s->edge_labels];
    d->graph.at = d->at, d->graph.name = d->name, d->graph.order = d->order;
    d->graph.atom = d->order + edges;
    return BASIN_OK;
}
