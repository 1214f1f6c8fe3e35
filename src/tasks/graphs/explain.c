/* What the nodes and edges of a graph add to its output, by what the model predicts for other
 * graphs: those that lack one of them. In a molecule an atom, with all that hangs on it, is
 * replaced by hydrogen, or a hetero atom of the frame (rings and what links them) by carbon: what a
 * branch adds is shared out so that its atoms make up the change of the whole branch, and carbons
 * of the frame share the rest, which makes up the difference from the mean of the training
 * molecules. */
#include "base/sort.h"
#include "tasks/graphs/graphs.h"
#include "tasks/graphs/set/molecule.h"

static const char what[] = "an explanation";
enum { CARBON = 6, NITROGEN = 7, AROMATIC = BASIN_BOND_AROMATIC };
enum { CHUNK = 64, MAX_NODES = 100000000 }; /* graphs predicted at once; nodes of all of them */

/* Another graph: the whole; without node or branch `at`; with carbon there; without edge `at`. */
typedef struct variant {
    enum { WHOLE, BRANCH, CARBONISED, NODE, EDGE } kind;
    int32_t at;
} variant;

typedef struct subject {
    const basin_graphset *set;
    bool molecule;
    int64_t nodes, first, edge, end; /* edges are those from `edge` to `end` - 1 */
    int32_t *parent; /* [nodes] in branches: the atom that it hangs on; -1: of the frame */
    int32_t *order;  /* [branched] atoms of branches, the outermost first */
    int64_t branched;
    variant *variant;
    int64_t variants;
    double *change; /* [variants] of the output, from the variant to the whole */
} subject;

static void subject_free(subject *s) { BASIN_FREE(s->parent, s->variant, s->change); }

static const int32_t *atom_of(const subject *s, int64_t i) {
    return s->set->node_label + BASIN_ATOM_LABELS * (s->first + i);
}

/* ---- molecules ---- */

/* Takes away atoms with one neighbour until there are none. */
static basin_status find_frame(subject *s, basin_error *error) {
    const int32_t *end = s->set->edge;
    int64_t listed = 0;
    BASIN_SCRATCH(int32_t, degree, s->nodes, what, error);
    for (int64_t e = s->edge; e < s->end; e++) degree[end[2 * e]]++;
    for (int32_t i = 0; i < s->nodes; i++) {
        s->parent[i] = -1;
        if (degree[i] == 1) s->order[listed++] = i;
    }
    for (int64_t at = 0; at < listed; at++) {
        int32_t v = s->order[at];
        if (degree[v] != 1) continue; /* the last of a chain */
        for (int64_t e = s->edge; e < s->end && s->parent[v] < 0; e++) {
            int32_t to = end[2 * e + 1];
            if (end[2 * e] != v || s->parent[to] >= 0) continue;
            s->parent[v] = to;
            if (--degree[to] == 1) s->order[listed++] = to;
        }
        degree[v] = 0;
        s->order[s->branched++] = v;
    }
    return BASIN_OK;
}

static bool is_beyond(const subject *s, int32_t atom, int32_t branch) {
    while (atom >= 0 && atom != branch) atom = s->parent[atom];
    return atom == branch;
}

static int32_t order_of(int32_t label) { return label > AROMATIC ? 2 : label; }

/* Hydrogens of a carbon in place of a hetero atom of the frame; -1: it would be another ring. */
static int32_t carbon_hydrogens(const subject *s, int32_t i) {
    const int32_t *a = atom_of(s, i);
    int32_t degree = 0, valence = 0;
    for (int64_t e = s->edge; e < s->end; e++)
        if (s->set->edge[2 * e] == i) degree++, valence += order_of(s->set->edge_label[e]);
    if (a[0] == CARBON || !degree) return -1;
    if (a[3] == 1) return a[0] == NITROGEN && !a[1] && !a[2] && degree == 2 ? 1 : -1;
    return valence <= 4 ? 4 - valence : -1;
}

/* Hydrogen at the atom that a branch hung on; two opposite charges at the bond go. */
static void put_hydrogen(int32_t *to, const subject *s, int32_t branch) {
    int32_t bond = 0;
    for (int64_t e = s->edge; e < s->end; e++)
        if (s->set->edge[2 * e] == branch && s->set->edge[2 * e + 1] == s->parent[branch])
            bond = s->set->edge_label[e];
    bool pair = to[1] > 0 && atom_of(s, branch)[1] < 0;
    to[1] -= pair, to[2] += order_of(bond) - pair;
    if (to[2] < 0) to[2] = 0;
    if (to[3] > 1) to[3] = 0; /* a centre no more */
}

/* ---- which other graphs ---- */

static void add(subject *s, int kind, int64_t at) {
    s->variant[s->variants].kind = kind;
    s->variant[s->variants++].at = (int32_t)at;
}

/* The edge that goes back; NULL: none does. */
static const int32_t *reverse_of(const subject *s, const int32_t *edge) {
    const int32_t back[2] = {edge[1], edge[0]};
    return bsearch(back, s->set->edge + 2 * s->edge, (size_t)(s->end - s->edge), sizeof back,
                   basin_compare_ends);
}

static basin_status list_variants(subject *s, basin_error *error) {
    int64_t all = 1 + s->nodes + s->end - s->edge;
    BASIN_TRY(BASIN_NEW(&s->variant, all, what, error));
    BASIN_TRY(BASIN_NEW(&s->change, all, what, error));
    add(s, WHOLE, 0);
    for (int64_t i = 0; i < s->branched; i++) add(s, BRANCH, s->order[i]);
    for (int32_t i = 0; i < s->nodes; i++)
        if (!s->molecule || (s->parent[i] < 0 && carbon_hydrogens(s, i) >= 0))
            add(s, s->molecule ? CARBONISED : NODE, i);
    for (int64_t e = s->edge; e < s->end && !s->molecule; e++) {
        const int32_t *edge = s->set->edge + 2 * e;
        if (edge[0] < edge[1] || !reverse_of(s, edge)) add(s, EDGE, e - s->edge);
    }
    if (s->variants * s->nodes <= MAX_NODES) return BASIN_OK;
    return basin_fail(
        error, BASIN_UNSUPPORTED,
        "an explanation predicts %lld graphs of %lld nodes; expected at most %d nodes "
        "in all",
        (long long)s->variants, (long long)s->nodes, MAX_NODES);
}

/* ---- making and predicting them ---- */

/* Room for CHUNK copies of the graph. */
typedef struct copies {
    basin_graphset_arrays a;
    int64_t *nodes, *from, *to, atoms;
    int32_t *label, *edge_label, *now; /* `now` [nodes] numbers in the copy */
    float *attribute, *edge_attribute;
} copies;

static void copies_free(copies *c) {
    BASIN_FREE(c->nodes, c->from, c->to, c->label, c->edge_label, c->now, c->attribute,
               c->edge_attribute);
}

static basin_status copies_new(copies *c, const subject *s, basin_error *error) {
    const basin_graphset *set = s->set;
    int64_t nodes = CHUNK * s->nodes + 1, edges = CHUNK * (s->end - s->edge) + 1;
    BASIN_TRY(BASIN_NEW_RAW(&c->nodes, CHUNK, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->from, edges, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->to, edges, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->now, s->nodes + 1, what, error));
    c->a.node_labels = set->node_labels, c->a.edge_labels = set->edge_labels;
    c->a.node_attributes = set->node_attributes, c->a.edge_attributes = set->edge_attributes;
    if (set->node_labels)
        BASIN_TRY(BASIN_NEW_RAW(&c->label, nodes * set->node_labels, what, error));
    if (set->edge_labels)
        BASIN_TRY(BASIN_NEW_RAW(&c->edge_label, edges * set->edge_labels, what, error));
    if (set->node_attributes)
        BASIN_TRY(BASIN_NEW_RAW(&c->attribute, nodes * set->node_attributes, what, error));
    if (set->edge_attributes)
        BASIN_TRY(BASIN_NEW_RAW(&c->edge_attribute, edges * set->edge_attributes, what, error));
    c->a.nodes = c->nodes, c->a.from = c->from, c->a.to = c->to, c->a.molecules = s->molecule;
    c->a.node_label = c->label, c->a.edge_label = c->edge_label;
    c->a.node_attribute = c->attribute, c->a.edge_attribute = c->edge_attribute;
    return BASIN_OK;
}

static void copy_row(void *to, int64_t row, const void *from, int64_t at, int64_t columns) {
    if (columns)
        memcpy((char *)to + 4 * row * columns, (const char *)from + 4 * at * columns,
               4 * (size_t)columns);
}

static bool keeps_edge(const subject *s, const variant *v, int64_t e) {
    const int32_t *own = s->set->edge + 2 * e, *gone = s->set->edge + 2 * (s->edge + v->at);
    bool same = own[0] == gone[0] && own[1] == gone[1],
         back = own[0] == gone[1] && own[1] == gone[0];
    return v->kind != EDGE || !(same || back);
}

static void put_copy(copies *c, const subject *s, const variant *v) {
    const basin_graphset *set = s->set;
    int64_t begin = c->atoms;
    for (int32_t i = 0; i < s->nodes; i++) {
        bool gone = v->kind == NODE ? i == v->at : v->kind == BRANCH && is_beyond(s, i, v->at);
        c->now[i] = gone ? -1 : (int32_t)c->atoms;
        if (gone) continue;
        copy_row(c->label, c->atoms, set->node_label, s->first + i, set->node_labels);
        copy_row(c->attribute, c->atoms++, set->node_attribute, s->first + i, set->node_attributes);
    }
    for (int64_t e = s->edge; e < s->end; e++) {
        int32_t a = c->now[set->edge[2 * e]], b = c->now[set->edge[2 * e + 1]];
        if (a < 0 || b < 0 || !keeps_edge(s, v, e)) continue;
        c->from[c->a.edges] = a, c->to[c->a.edges] = b;
        copy_row(c->edge_label, c->a.edges, set->edge_label, e, set->edge_labels);
        copy_row(c->edge_attribute, c->a.edges++, set->edge_attribute, e, set->edge_attributes);
    }
    c->nodes[c->a.graphs++] = c->atoms - begin;
    if (v->kind == BRANCH)
        put_hydrogen(c->label + BASIN_ATOM_LABELS * (int64_t)c->now[s->parent[v->at]], s, v->at);
    if (v->kind != CARBONISED) return;
    int32_t *to = c->label + BASIN_ATOM_LABELS * (int64_t)c->now[v->at];
    to[0] = CARBON, to[1] = 0, to[2] = carbon_hydrogens(s, v->at), to[3] = to[3] == 1;
}

/* Log-odds of probabilities, or values. */
static double scored(const basin_graphs_model *m, double p) {
    if (m->target == BASIN_GRAPHS_VALUES && !m->binary) return p;
    return log(fmax(p, 1e-12) / fmax(1 - p, 1e-12));
}

static basin_status predict_all(basin_graphs_explanation *e, subject *s, basin_graphs_model *model,
                                basin_error *error) {
    int64_t columns = basin_graphs_columns(model);
    BASIN_AT_EXIT(copies_free) copies c = {.atoms = 0};
    BASIN_SCRATCH(float, output, CHUNK *columns, what, error);
    BASIN_TRY(copies_new(&c, s, error));
    for (int64_t at = 0, now; at < s->variants; at += now) {
        BASIN_AT_EXIT(basin_graphset_free) basin_graphset made = {0};
        now = basin_int_min(CHUNK, s->variants - at);
        c.atoms = c.a.graphs = c.a.edges = 0;
        for (int64_t k = 0; k < now; k++) put_copy(&c, s, &s->variant[at + k]);
        BASIN_TRY(basin_graphset_from_arrays(&made, &c.a, error));
        basin_graphs_data data = {.set = &made};
        BASIN_TRY(basin_graphs_predict(&(basin_graphs_predict_result){.output = output}, model,
                                       &data, NULL, error));
        if (!at) e->output = scored(model, (double)output[e->column]);
        for (int64_t k = 0; k < now; k++)
            s->change[at + k] = e->output - scored(model, (double)output[k * columns + e->column]);
    }
    return BASIN_OK;
}

/* ---- what nodes and edges add ---- */

/* What the model knows without looking at a molecule. */
static double usual_of(const basin_graphs_model *m, int64_t column) {
    if (m->target == BASIN_GRAPHS_VALUES && !m->binary) return m->target_mean[column];
    return m->near.count ? (double)m->near.weight[m->near.count * m->outputs + column] : 0.5;
}

static void share_out(basin_graphs_explanation *e, const subject *s) {
    int64_t carbons = 0, frame = 0;
    double rest = e->output - e->blank;
    for (int64_t k = 0; k < s->variants; k++) {
        int32_t at = s->variant[k].at, parent = s->molecule ? s->parent[at] : -1;
        double change = s->change[k];
        if (s->variant[k].kind == EDGE) {
            const int32_t *edge = s->set->edge + 2 * s->edge, *back = reverse_of(s, edge + 2 * at);
            e->edge[at] = back ? change / 2 : change;
            if (back) e->edge[(back - edge) / 2] = change / 2;
        } else if (s->variant[k].kind != WHOLE) {
            e->node[at] += change;
            if (parent >= 0 && s->parent[parent] >= 0) e->node[parent] -= change;
        }
    }
    for (int32_t i = 0; i < s->nodes && s->molecule; i++) {
        frame += s->parent[i] < 0, carbons += s->parent[i] < 0 && carbon_hydrogens(s, i) < 0;
        rest -= e->node[i];
    }
    for (int32_t i = 0; i < s->nodes && s->molecule; i++)
        if (s->parent[i] < 0 && (!carbons || carbon_hydrogens(s, i) < 0))
            e->node[i] += rest / (double)(carbons ? carbons : frame);
}

/* ---- the explanation ---- */

static basin_status open_subject(subject *s, basin_graphs_explanation *e, const basin_graphset *set,
                                 basin_error *error) {
    s->set = set, s->nodes = e->nodes, s->first = set->node_start[e->graph];
    s->edge = set->edge_start[e->graph], s->end = set->edge_start[e->graph + 1];
    s->molecule = set->line && set->node_labels == BASIN_ATOM_LABELS && set->edge_labels == 1 &&
                  !set->node_attributes;
    BASIN_TRY(BASIN_NEW(&s->parent, 2 * s->nodes, what, error));
    s->order = s->parent + s->nodes;
    if (s->molecule) BASIN_TRY(find_frame(s, error));
    return list_variants(s, error);
}

/* Sets e->predicted and the column: where it is open, the likeliest class or the first value. */
static basin_status predict(basin_graphs_explanation *e, int64_t column, basin_graphs_model *model,
                            const basin_graphset *set, basin_error *error) {
    int64_t value = 0, columns = basin_graphs_columns(model);
    BASIN_SCRATCH(float, output, columns, what, error);
    basin_graphs_data data = {.set = set, .graph = &e->graph, .graphs = 1};
    basin_graphs_predict_result result = {.output = output, .class_value = &value};
    if (column >= columns)
        return basin_fail(error, BASIN_BAD_VALUE, "column %lld; the model has %lld",
                          (long long)column, (long long)columns);
    BASIN_TRY(basin_graphs_predict(&result, model, &data, NULL, error));
    e->column = column >= 0                             ? column
                : model->target == BASIN_GRAPHS_CLASSES ? basin_graphs_class_number(model, value)
                                                        : 0;
    e->predicted = (double)output[e->column];
    return BASIN_OK;
}

static basin_status explain(basin_graphs_explanation *e, basin_graphs_model *model,
                            const basin_graphset *set, int64_t graph, int64_t column,
                            basin_error *error) {
    BASIN_AT_EXIT(subject_free) subject s = {.set = set};
    if (model->target == BASIN_GRAPHS_NODE_CLASSES)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model predicts classes of nodes; expected a model of graphs");
    if (graph < 0 || graph >= set->graphs)
        return basin_fail(error, BASIN_BAD_VALUE, "graph %lld; expected 0 to %lld",
                          (long long)graph, (long long)set->graphs - 1);
    e->graph = graph;
    e->nodes = set->node_start[graph + 1] - set->node_start[graph];
    e->edges = set->edge_start[graph + 1] - set->edge_start[graph];
    BASIN_TRY(BASIN_NEW(&e->node, e->nodes + e->edges, what, error));
    e->edge = e->node + e->nodes;
    BASIN_TRY(predict(e, column, model, set, error));
    BASIN_TRY(open_subject(&s, e, set, error));
    BASIN_TRY(predict_all(e, &s, model, error));
    e->blank = s.molecule ? scored(model, usual_of(model, e->column)) : NAN;
    share_out(e, &s);
    return BASIN_OK;
}

basin_status basin_graphs_explain(basin_graphs_explanation *explanation, basin_graphs_model *model,
                                  const basin_graphset *set, int64_t graph, int64_t column,
                                  basin_error *error) {
    *explanation = (basin_graphs_explanation){0};
    BASIN_TRY_OR(explain(explanation, model, set, graph, column, error),
                 basin_graphs_explanation_free(explanation));
    return BASIN_OK;
}

void basin_graphs_explanation_free(basin_graphs_explanation *explanation) {
    free(explanation->node);
    *explanation = (basin_graphs_explanation){0};
}
