/* What each atom of a molecule adds to a prediction, by what the model predicts for other
 * molecules: those in which the atom, with all that hangs on it, is replaced by hydrogen, or a
 * hetero atom of the frame (rings and what links them) by carbon. What a branch adds is shared out
 * so that its atoms make up the change of the whole branch; carbons of the frame share the rest,
 * which makes up the difference from the mean of the training molecules. */
#include "tasks/graphs/graphs.h"

static const char what[] = "an explanation";
enum { ATOM = 4, CARBON = 6, NITROGEN = 7, AROMATIC = 4 }; /* labels of atoms; numbers */

typedef struct molecule {
    const basin_graphset *set;
    int64_t nodes, first, edge; /* edges are those from `edge` to `end` - 1 */
    int64_t end;
    int32_t *parent; /* [nodes] in branches: the atom that it hangs on; -1: of the frame */
    int32_t *order;  /* [branched] atoms of branches, the outermost first */
    int64_t branched;
} molecule;

static const int32_t *atom_of(const molecule *m, int64_t i) {
    return m->set->node_label + ATOM * (m->first + i);
}

/* Takes away atoms with one neighbour until there are none. */
static basin_status find_frame(molecule *m, basin_error *error) {
    const int32_t *end = m->set->edge;
    int64_t listed = 0;
    BASIN_SCRATCH(int32_t, degree, m->nodes, what, error);
    for (int64_t e = m->edge; e < m->end; e++) degree[end[2 * e]]++;
    for (int32_t i = 0; i < m->nodes; i++) {
        m->parent[i] = -1;
        if (degree[i] == 1) m->order[listed++] = i;
    }
    for (int64_t at = 0; at < listed; at++) {
        int32_t v = m->order[at];
        if (degree[v] != 1) continue; /* the last of a chain */
        for (int64_t e = m->edge; e < m->end && m->parent[v] < 0; e++) {
            int32_t to = end[2 * e + 1];
            if (end[2 * e] != v || m->parent[to] >= 0) continue;
            m->parent[v] = to;
            if (--degree[to] == 1) m->order[listed++] = to;
        }
        degree[v] = 0;
        m->order[m->branched++] = v;
    }
    return BASIN_OK;
}

static bool is_beyond(const molecule *m, int32_t atom, int32_t branch) {
    while (atom >= 0 && atom != branch) atom = m->parent[atom];
    return atom == branch;
}

/* Other molecules under construction. */
typedef struct others {
    basin_graphset_arrays a;
    int64_t *nodes, *from, *to;
    int32_t *atom, *bond, *now; /* `now` [nodes] numbers of atoms */
    int64_t atoms;
} others;

/* A copy without the branch that begins at `branch`; -1: with all atoms. */
static int32_t *add_copy(others *o, const molecule *m, int32_t branch) {
    const basin_graphset *s = m->set;
    int64_t begin = o->atoms;
    for (int32_t i = 0; i < m->nodes; i++) {
        o->now[i] = branch >= 0 && is_beyond(m, i, branch) ? -1 : (int32_t)o->atoms++;
        if (o->now[i] >= 0)
            memcpy(o->atom + ATOM * (int64_t)o->now[i], atom_of(m, i), ATOM * sizeof *o->atom);
    }
    for (int64_t e = m->edge; e < m->end; e++) {
        int32_t a = s->edge[2 * e], b = s->edge[2 * e + 1];
        if (a > b || o->now[a] < 0 || o->now[b] < 0) continue;
        o->from[o->a.edges] = o->now[a], o->to[o->a.edges] = o->now[b];
        o->bond[o->a.edges++] = s->edge_label[e];
    }
    o->nodes[o->a.graphs++] = o->atoms - begin;
    return o->atom;
}

static int32_t order_of(int32_t label) { return label > AROMATIC ? 2 : label; }

/* Hydrogen takes the place of a branch, and two opposite charges at the bond go. */
static void add_without(others *o, const molecule *m, int32_t branch) {
    const basin_graphset *s = m->set;
    int32_t parent = m->parent[branch], bond = 0, *to;
    for (int64_t e = m->edge; e < m->end; e++)
        if (s->edge[2 * e] == branch && s->edge[2 * e + 1] == parent) bond = s->edge_label[e];
    add_copy(o, m, branch);
    to = o->atom + ATOM * (int64_t)o->now[parent];
    bool pair = to[1] > 0 && atom_of(m, branch)[1] < 0;
    to[1] -= pair, to[2] += order_of(bond) - pair;
    if (to[2] < 0) to[2] = 0;
    if (to[3] > 1) to[3] = 0; /* a centre no more */
}

/* Hydrogens of a carbon in place of a hetero atom of the frame; -1: it would be another ring. */
static int32_t carbon_hydrogens(const molecule *m, int32_t i) {
    const int32_t *a = atom_of(m, i);
    int32_t degree = 0, valence = 0;
    for (int64_t e = m->edge; e < m->end; e++)
        if (m->set->edge[2 * e] == i) degree++, valence += order_of(m->set->edge_label[e]);
    if (a[0] == CARBON || !degree) return -1;
    if (a[3] == 1) return a[0] == NITROGEN && !a[1] && !a[2] && degree == 2 ? 1 : -1;
    return valence <= 4 ? 4 - valence : -1;
}

static basin_status build(others *o, const molecule *m, basin_error *error) {
    int64_t n = m->nodes, bonds = m->end - m->edge, all = n + 1;
    BASIN_TRY(BASIN_NEW(&o->nodes, all, what, error));
    BASIN_TRY(BASIN_NEW(&o->from, all * (bonds + 1), what, error));
    BASIN_TRY(BASIN_NEW(&o->to, all * (bonds + 1), what, error));
    BASIN_TRY(BASIN_NEW(&o->atom, all * n * ATOM, what, error));
    BASIN_TRY(BASIN_NEW(&o->bond, all * (bonds + 1), what, error));
    BASIN_TRY(BASIN_NEW(&o->now, n, what, error));
    add_copy(o, m, -1);
    for (int64_t i = 0; i < m->branched; i++) add_without(o, m, m->order[i]);
    for (int32_t i = 0; i < n; i++) {
        int32_t hydrogens = m->parent[i] < 0 ? carbon_hydrogens(m, i) : -1;
        if (hydrogens < 0) continue;
        add_copy(o, m, -1);
        int32_t *to = o->atom + ATOM * (int64_t)o->now[i];
        to[0] = CARBON, to[1] = 0, to[2] = hydrogens, to[3] = to[3] == 1;
    }
    o->a.nodes = o->nodes, o->a.from = o->from, o->a.to = o->to;
    o->a.node_label = o->atom, o->a.edge_label = o->bond;
    o->a.node_labels = ATOM, o->a.edge_labels = 1;
    o->a.undirected = o->a.molecules = true;
    return BASIN_OK;
}

static void others_free(others *o) {
    BASIN_FREE(o->nodes, o->from, o->to, o->atom, o->bond, o->now);
}

/* Log-odds of probabilities, or values. */
static double scored(const basin_graphs_model *m, double p) {
    if (m->target == BASIN_GRAPHS_VALUES && !m->binary) return p;
    return log(fmax(p, 1e-12) / fmax(1 - p, 1e-12));
}

/* What the model knows without looking at a molecule. */
static double usual_of(const basin_graphs_model *m, int64_t column) {
    if (m->target == BASIN_GRAPHS_VALUES && !m->binary) return m->target_mean[column];
    return m->near.count ? (double)m->near.weight[m->near.count * m->outputs + column] : 0.5;
}

static void share_out(basin_graphs_explanation *e, const molecule *m, const double *change) {
    int64_t at = 1, carbons = 0, frame = 0;
    double rest = e->output - e->blank;
    for (int64_t i = 0; i < m->branched; i++, at++) {
        int32_t v = m->order[i], parent = m->parent[v];
        e->node[v] += change[at];
        if (m->parent[parent] >= 0) e->node[parent] -= change[at];
    }
    for (int32_t i = 0; i < m->nodes; i++) {
        bool hetero = m->parent[i] < 0 && carbon_hydrogens(m, i) >= 0;
        if (hetero) e->node[i] = change[at++];
        frame += m->parent[i] < 0, carbons += m->parent[i] < 0 && !hetero;
        rest -= e->node[i];
    }
    for (int32_t i = 0; i < m->nodes; i++)
        if (m->parent[i] < 0 && (!carbons || carbon_hydrogens(m, i) < 0))
            e->node[i] += rest / (double)(carbons ? carbons : frame);
}

basin_status basin_graphs_substitute(basin_graphs_explanation *e, basin_graphs_model *model,
                                     const basin_graphset *set, int64_t column,
                                     basin_error *error) {
    molecule m = {.set = set, .nodes = e->nodes, .first = set->node_start[e->graph]};
    m.edge = set->edge_start[e->graph], m.end = set->edge_start[e->graph + 1];
    BASIN_SCRATCH(int32_t, whole, 2 * m.nodes, what, error);
    BASIN_AT_EXIT(others_free) others o = {.now = NULL};
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset made = {0};
    m.parent = whole, m.order = whole + m.nodes;
    BASIN_TRY(find_frame(&m, error));
    BASIN_TRY(build(&o, &m, error));
    BASIN_TRY(basin_graphset_from_arrays(&made, &o.a, error));
    int64_t columns = basin_graphs_columns(model);
    BASIN_SCRATCH(float, output, made.graphs *columns, what, error);
    BASIN_SCRATCH(double, change, made.graphs, what, error);
    basin_graphs_data data = {.set = &made};
    BASIN_TRY(basin_graphs_predict(&(basin_graphs_predict_result){.output = output}, model, &data,
                                   NULL, error));
    e->column = column;
    e->output = scored(model, (double)output[column]);
    e->blank = scored(model, usual_of(model, column));
    for (int64_t g = 0; g < made.graphs; g++)
        change[g] = e->output - scored(model, (double)output[g * columns + column]);
    share_out(e, &m, change);
    return BASIN_OK;
}
