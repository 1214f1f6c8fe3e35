/* basin graph explain: which nodes and edges an output comes from, as text, JSON and a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph.h"
#include "io/file.h"
#include "view/svg.h"

static const basin_option table[] = {
    BASIN_INTEGER(graph, "graph", "K", 0, 9007199254740992.0,
                  "Which graph of the set, counted from 0."),
    BASIN_TEXT(about, 0, "about", "N",
               "The class, as the training data number it, or the value, counted from 1, that is "
               "explained. Without it the likeliest class, or the first value."),
    BASIN_TEXT(svg, 0, "svg", "FILE", "Draw the graph there, coloured by what is added.",
               .writes = true),
    BASIN_INTEGER(nodes, "nodes", "N", 0, 1000000, "Nodes to name.", .initial = 10),
    BASIN_INTEGER(edges, "edges", "N", 0, 1000000, "Edges to name.", .initial = 10),
    BASIN_GRAPH_OPTION_CACHE,
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

/* A node, or an edge both ways, and what it adds. */
typedef struct part {
    int64_t a, b; /* b: -1 of a node */
    double added;
} part;

typedef struct story {
    basin_args *o;
    basin_graph_use use;
    basin_graphs_explanation e;
    part *node, *edge; /* by falling size */
    int64_t edges;     /* an edge both ways counts once */
} story;

/* ---- sorting ---- */

static int compare(const void *a, const void *b) {
    const part *x = a, *y = b;
    double p = fabs(x->added), q = fabs(y->added);
    if (p < q || p > q) return p < q ? 1 : -1;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static int compare_ends(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* Edges of both directions side by side become one. */
static int64_t merge(part *edge, int64_t count) {
    int64_t kept = 0;
    qsort(edge, (size_t)count, sizeof *edge, compare_ends);
    for (int64_t i = 0; i < count; i++)
        if (kept && !compare_ends(&edge[kept - 1], &edge[i]))
            edge[kept - 1].added += edge[i].added;
        else
            edge[kept++] = edge[i];
    return kept;
}

static basin_status sort_parts(story *s, basin_error *error) {
    const basin_graphset *set = &s->use.set;
    const basin_graphs_explanation *e = &s->e;
    const int32_t *end = set->edge + 2 * set->edge_start[e->graph];
    BASIN_TRY(BASIN_NEW(&s->node, e->nodes, "an explanation", error));
    BASIN_TRY(BASIN_NEW(&s->edge, e->edges, "an explanation", error));
    for (int64_t i = 0; i < e->nodes; i++) s->node[i] = (part){i, -1, e->node[i]};
    for (int64_t i = 0; i < e->edges; i++, end += 2)
        s->edge[i] = (part){end[0] < end[1] ? end[0] : end[1], end[0] < end[1] ? end[1] : end[0],
                            e->edge[i]};
    s->edges = merge(s->edge, e->edges);
    qsort(s->node, (size_t)e->nodes, sizeof *s->node, compare);
    qsort(s->edge, (size_t)s->edges, sizeof *s->edge, compare);
    return BASIN_OK;
}

/* ---- text ---- */

static double sum_of(const double *number, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += number[i];
    return sum;
}

/* "class 1: log-odds" or "value 2". */
static const char *subject(char text[64], const story *s) {
    const int64_t *class_value = s->use.about.class_value;
    if (class_value)
        snprintf(text, 64, "class %lld", (long long)class_value[s->e.column]);
    else
        snprintf(text, 64, "value %lld", (long long)s->e.column + 1);
    return text;
}

static const int32_t *labels_of(const story *s) {
    const basin_graphset *set = &s->use.set;
    if (set->node_labels != 1) return NULL;
    return set->node_label + set->node_start[s->e.graph];
}

static void headline(char *text, size_t size, const story *s) {
    char about[64];
    const basin_graphs_explanation *e = &s->e;
    if (s->use.about.class_value)
        snprintf(text, size, "%s, graph %lld: %s with probability %.4f", s->use.set.name,
                 (long long)e->graph, subject(about, s), 1 / (1 + exp(-e->output)));
    else
        snprintf(text, size, "%s, graph %lld: %s is %.5g", s->use.set.name, (long long)e->graph,
                 subject(about, s), e->output);
}

/* ---- printing ---- */

static void put_nodes(basin_record *r, const story *s) {
    const basin_graphs_explanation *e = &s->e;
    const int32_t *label = labels_of(s);
    char title[100];
    snprintf(title, sizeof title, "nodes that add most (of %lld):", (long long)e->nodes);
    basin_record_table(r, "nodes", title);
    for (int64_t i = 0; i < e->nodes && i < s->o->nodes; i++) {
        int64_t n = s->node[i].a;
        basin_record_row(r);
        basin_record_integer(r, "node", n);
        if (label) basin_record_integer(r, "|label", label[n]);
        basin_record_number(r, "adds", "%+.4g", e->node[n]);
        if (e->has_energy) {
            basin_record_number(r, "attention|attention of the CLS", "%.4f", e->attention[n]);
            basin_record_number(r, "energy", "%.4g", e->energy[n]);
        }
    }
    basin_record_end(r);
}

static void put_edges(basin_record *r, const story *s) {
    char title[100];
    snprintf(title, sizeof title,
             "edges that add most (of %lld, both ways together):", (long long)s->edges);
    basin_record_table(r, "edges", title);
    for (int64_t i = 0; i < s->edges && i < s->o->edges; i++) {
        basin_record_row(r);
        basin_record_integer(r, "a", s->edge[i].a);
        basin_record_integer(r, "b", s->edge[i].b);
        basin_record_number(r, "adds", "%+.4g", s->edge[i].added);
    }
    basin_record_end(r);
}

static void put_story(basin_record *r, const void *context) {
    const story *s = context;
    const basin_graphs_explanation *e = &s->e;
    const int64_t *class_value = s->use.about.class_value;
    char text[200];
    headline(text, sizeof text, s);
    basin_record_note(r, "%s", text);
    basin_record_text(r, "model", s->o->operand[0]);
    basin_record_text(r, "data", s->use.set.name);
    basin_record_integer(r, "graph", e->graph);
    if (class_value)
        basin_record_integer(r, "class", class_value[e->column]);
    else
        basin_record_integer(r, "value", e->column + 1);
    basin_record_number(r, class_value ? "output|log-odds" : "output", "%.4g", e->output);
    basin_record_number(r, "blank|of the blank graph", "%.4g", e->blank);
    basin_record_number(r, "nodes_add", "%+.4g", sum_of(e->node, e->nodes));
    basin_record_number(r, "edges_add", "%+.4g", sum_of(e->edge, e->edges));
    basin_record_number(r, "missed|missed by the integral", "%.2g", e->missed);
    put_nodes(r, s);
    put_edges(r, s);
}

/* ---- the picture ---- */

static basin_status draw(const story *s, basin_error *error) {
    const basin_graphs_explanation *e = &s->e;
    char title[200], subtitle[200], about[64], legend[120];
    headline(title, sizeof title, s);
    snprintf(subtitle, sizeof subtitle, "%s %.3g, blank graph %.3g, nodes %+.3g, edges %+.3g",
             basin_graphs_about(s->use.model).class_value ? "log-odds" : "value", e->output,
             e->blank, sum_of(e->node, e->nodes), sum_of(e->edge, e->edges));
    snprintf(legend, sizeof legend, "what a node or an edge adds to %s; %s on nodes",
             subject(about, s), labels_of(s) ? "labels" : "numbers");
    basin_svg_graph_of graph = {.title = title,
                                .subtitle = subtitle,
                                .legend = legend,
                                .nodes = e->nodes,
                                .edges = e->edges,
                                .edge = s->use.set.edge + 2 * s->use.set.edge_start[e->graph],
                                .node = e->node,
                                .strength = e->edge,
                                .is_signed = true,
                                .label = labels_of(s)};
    return basin_svg_graph(s->o->svg, &graph, error);
}

/* ---- running ---- */

/* The column of --about; -1 without it. */
static basin_status find_column(int64_t *column, const story *s, basin_error *error) {
    const int64_t *class_value = s->use.about.class_value;
    int64_t columns = s->use.about.columns;
    char *end;
    *column = -1;
    if (!s->o->about) return BASIN_OK;
    long long asked = strtoll(s->o->about, &end, 10);
    for (int64_t c = 0; c < columns && end > s->o->about && !*end; c++)
        if (asked == (class_value ? class_value[c] : c + 1)) *column = c;
    if (*column >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "--about %.40s; wanted %s", s->o->about,
                      class_value ? "a class of the training data" : "a value, counted from 1");
}

static basin_status explain(story *s, basin_error *error) {
    int64_t column;
    basin_graph_use *u = &s->use;
    if (s->o->graph >= u->set.graphs)
        return basin_fail(error, BASIN_BAD_VALUE, "--graph %lld; %s has graphs 0 to %lld",
                          (long long)s->o->graph, u->set.name, (long long)u->set.graphs - 1);
    BASIN_TRY(find_column(&column, s, error));
    u->data.graph = &s->o->graph, u->data.graphs = 1;
    BASIN_TRY(basin_graphs_explain(&s->e, u->model, &u->data, column, error));
    return sort_parts(s, error);
}

static void story_free(story *s) {
    free(s->node);
    free(s->edge);
    basin_graphs_explanation_free(&s->e);
    basin_graph_use_close(&s->use);
}

static basin_status run(basin_args *o, basin_error *error) {
    BASIN_AT_EXIT(story_free) story s = {.o = o};
    BASIN_TRY(basin_graph_use_open(&s.use, o, "all", false, error));
    BASIN_TRY(explain(&s, error));
    BASIN_TRY(basin_record_print(o->json, put_story, &s, error));
    return o->svg ? draw(&s, error) : BASIN_OK;
}

const basin_command basin_command_graph_explain = {"graph explain", table, .run = run};
