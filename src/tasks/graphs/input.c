/* A set as a model sees it: walks along edges, positions and the model's numbers of classes beside
 * the caller's arrays, which stay as they are; see graphs.h. */
#include "base/bundle.h"
#include "base/hash.h"
#include "base/sort.h"
#include "tasks/graphs/graphs.h"

basin_status basin_graphs_check_labels(const basin_graphset *set, const char *path,
                                       basin_error *error) {
    if (set->task == BASIN_GRAPHS_VALUES ? set->target != NULL : set->class_of && set->classes > 1)
        return BASIN_OK;
    if (set->task != BASIN_GRAPHS_VALUES && set->class_of && set->classes == 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: all %s have the class %lld; expected at least two classes", path,
                          set->task == BASIN_GRAPHS_NODE_CLASSES ? "nodes" : "graphs",
                          (long long)set->class_value[0]);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: no labels and no values; expected them in the set (in a TUDataset, "
                      "DS_graph_labels.txt or DS_graph_attributes.txt)",
                      path);
}

/* Whether there are edges, none of which has its reverse: as files have that name each once. */
static bool goes_one_way(const basin_graphset *set) {
    for (int64_t g = 0; g < set->graphs; g++) {
        const int32_t *edge = set->edge + 2 * set->edge_start[g];
        size_t edges = (size_t)(set->edge_start[g + 1] - set->edge_start[g]);
        for (size_t e = 0; e < edges; e++) {
            const int32_t back[2] = {edge[2 * e + 1], edge[2 * e]};
            if (bsearch(back, edge, edges, 2 * sizeof *edge, basin_compare_ends)) return false;
        }
    }
    return set->edges > 0;
}

/* Settings that have nothing to do on this set. */
static void note_idle(const basin_settings *settings, const basin_graphset *set,
                      const basin_watch *watch) {
    bool values = set->task == BASIN_GRAPHS_VALUES, nodes = set->task == BASIN_GRAPHS_NODE_CLASSES;
    bool edges = set->edge_labels > 0 || set->edge_attributes > set->edge_walks;
    const struct {
        const char *name;
        bool idle;
        const char *why;
    } list[] = {{"weight_classes", !nodes, "has no classes of nodes"},
                {"readout", nodes, "has classes of nodes, of which the head reads each"},
                {"smoothing", values, "has values in place of classes"},
                {"outputs", values, "has values in place of classes"},
                {"edge_sums", !edges, "has no features of edges"},
                {"raw", !set->edge_labels && !set->node_labels, "has no labels of nodes or edges"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].idle && basin_settings_given(settings, list[i].name))
            basin_watch_note(watch, "%s has no effect: %s %s", list[i].name, set->name,
                             list[i].why);
}

void basin_graphs_note_unused(const basin_settings *settings, const basin_graphset *set,
                              const basin_watch *watch) {
    note_idle(settings, set, watch);
    int64_t missing = 0, values = set->target ? set->graphs * set->targets : 0;
    for (int64_t i = 0; i < values; i++)
        missing +=
            isnan(set->target[i]) && !basin_graphset_side(set, i / set->targets, i % set->targets);
    if (missing)
        basin_watch_note(watch, "%lld of %lld values are not known; they are left out",
                         (long long)missing, (long long)values);
    int64_t cut = 0, max = ((const basin_graphs_settings *)settings->values)->max_nodes;
    for (int64_t g = 0; g < set->graphs && max; g++)
        cut += set->node_start[g + 1] - set->node_start[g] > max;
    if (cut)
        basin_watch_note(watch, "%lld graphs are cut to their first %lld nodes (max_nodes)",
                         (long long)cut, (long long)max);
    if (goes_one_way(set))
        basin_watch_note(watch,
                         "no edge of %s has its reverse: only its first node sees the other. "
                         "Undirected edges are listed both ways",
                         set->name);
}

/* ---- copies ---- */

static bool differ(const basin_graphset *s, int64_t a, int64_t b) {
    if (s->class_of) return s->class_of[a] != s->class_of[b];
    for (int64_t c = 0; c < s->targets; c++) {
        float x = s->target[a * s->targets + c], y = s->target[b * s->targets + c];
        if (x != y && !isnan(x) && !isnan(y)) return true;
    }
    return false;
}

/* How many graphs of part `to` are copies of some of an earlier part. */
static int64_t crossing(uint8_t *there, const int64_t *copy, const basin_graphset *set,
                        const basin_fold *f, int to) {
    int64_t count = 0;
    memset(there, 0, (size_t)set->graphs);
    for (int part = 0; part < to; part++)
        for (int64_t i = 0; i < f->count[part]; i++) there[copy[f->item[part][i]]] = 1;
    for (int64_t i = 0; i < f->count[to]; i++) count += there[copy[f->item[to][i]]];
    return count;
}

basin_status basin_graphs_note_copies(const basin_graphset *set, const int64_t *copy,
                                      const basin_fold *fold, int64_t folds,
                                      const basin_watch *watch, basin_error *error) {
    static const char *const name[] = {"", "validation", "test"};
    int64_t copies = 0, other = 0;
    BASIN_SCRATCH_RAW(uint8_t, there, set->graphs, "copies of graphs", error);
    if (set->task == BASIN_GRAPHS_NODE_CLASSES) return BASIN_OK;
    for (int64_t g = 0; g < set->graphs && !set->line; g++) /* tables of molecules say it */
        copies += copy[g] != g, other += copy[g] != g && differ(set, copy[g], g);
    if (copies)
        basin_watch_note(watch,
                         "%lld of %lld graphs are copies of an earlier one, %lld of them with "
                         "another %s to learn; copies stay in one part where parts are drawn",
                         (long long)copies, (long long)set->graphs, (long long)other,
                         set->class_of ? "class" : "value");
    for (int part = 1; part < 3; part++) {
        int64_t crosses = 0, all = 0;
        for (int64_t k = 0; k < folds; k++)
            crosses += crossing(there, copy, set, &fold[k], part), all += fold[k].count[part];
        if (crosses)
            basin_watch_note(watch,
                             "%lld of %lld %s graphs are copies of graphs before them in the given "
                             "split: scores of these are not of unseen graphs",
                             (long long)crosses, (long long)all, name[part]);
    }
    return BASIN_OK;
}

/* ---- walks and positions ---- */

basin_status basin_graphs_input_begin(basin_graphs_input *input,
                                      const basin_graphs_settings *settings,
                                      const basin_graphset *set, int64_t first, int64_t count,
                                      basin_error *error) {
    int64_t walks = settings->edge_walks;
    *input = (basin_graphs_input){.set = *set};
    input->set.max_nodes = settings->max_nodes;
    input->set.edge_dropout = settings->edge_dropout;
    for (int64_t g = 0; g < set->graphs && set->task == BASIN_GRAPHS_NODE_CLASSES; g++)
        if (basin_graphset_nodes(&input->set, g) < set->node_start[g + 1] - set->node_start[g])
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "%s: graph %lld has more than %lld nodes: max_nodes would leave some "
                              "without a class",
                              set->name, (long long)g, (long long)settings->max_nodes);
    if (set->edge_walks == walks) return BASIN_OK;
    if (set->edge_walks)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s has %lld walks along its edges and edge_walks is %lld; expected a "
                          "set without walks",
                          set->name, (long long)set->edge_walks, (long long)walks);
    BASIN_TRY(basin_graphset_edge_walks(&input->edge_attribute, set, walks, first, count, error));
    input->set.edge_attribute = input->edge_attribute;
    input->set.edge_attributes += walks;
    input->set.edge_walks = walks;
    return BASIN_OK;
}

basin_status basin_graphs_input_place(basin_graphs_input *input,
                                      const basin_graphs_settings *settings, int64_t first,
                                      int64_t count, basin_error *error) {
    basin_position_options options = {.vectors = settings->eigenvectors,
                                      .walks = settings->walks,
                                      .with_cls = settings->cls_laplacian};
    return basin_positions_new(&input->positions, &input->set, &options, first, count, error);
}

void basin_graphs_input_free(basin_graphs_input *input) {
    BASIN_FREE(input->edge_attribute, input->class_of);
    basin_positions_free(&input->positions);
    *input = (basin_graphs_input){0};
}

/* A set may lack some of the model's classes, or have others, which are then unknown. */
static basin_status renumber(basin_graphs_input *input, const basin_graphs_model *m,
                             basin_error *error) {
    basin_graphset *set = &input->set;
    int64_t items = set->task == BASIN_GRAPHS_NODE_CLASSES ? set->nodes : set->graphs;
    BASIN_TRY(BASIN_NEW_RAW(&input->class_of, items, "classes", error));
    for (int64_t i = 0; i < items; i++) {
        int32_t own = set->class_of[i];
        input->class_of[i] = own < 0 ? -1 : basin_graphs_class_number(m, set->class_value[own]);
    }
    set->class_of = input->class_of;
    set->classes = m->classes;
    set->class_value = m->class_value;
    return BASIN_OK;
}

static basin_status match_labels(basin_graphs_input *input, const basin_graphs_model *m,
                                 const char *path, basin_error *error) {
    const basin_graphset *set = &input->set;
    if (!set->class_of && !set->target) return basin_graphs_check_labels(set, path, error);
    if (set->task != m->target)
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %s; the model expects %s", path,
                          basin_graphs_target_name(set->task), basin_graphs_target_name(m->target));
    if (m->target != BASIN_GRAPHS_VALUES) {
        size_t bytes = (size_t)m->classes * sizeof *m->class_value;
        bool same = set->classes == m->classes && !memcmp(set->class_value, m->class_value, bytes);
        return same ? BASIN_OK : renumber(input, m, error);
    }
    if (set->targets != m->outputs)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s has %lld values per graph; the model expects %lld", path,
                          (long long)set->targets, (long long)m->outputs);
    for (int64_t i = 0; m->binary && i < set->graphs * set->targets; i++)
        if (set->target[i] != 0 && set->target[i] != 1 && !isnan(set->target[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s has the value %g; the model answers 0 or 1", path,
                              (double)set->target[i]);
    input->set.binary = m->binary;
    return BASIN_OK;
}

/* Whether a set has the columns that the encoding requires. */
static basin_status graphset_encoding_check(const basin_graphset_encoding *e,
                                            const basin_graphset *set, const char *path,
                                            basin_error *error) {
    if (set->node_attributes == e->attributes && set->node_labels == e->labels &&
        set->edge_attributes == e->edge_attributes && set->edge_labels == e->edge_labels)
        return BASIN_OK;
    int64_t walks = set->edge_walks; /* made here, not of the files */
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: %lld node attributes, %lld node labels, %lld edge attributes, %lld edge "
                      "labels; the model expects %lld, %lld, %lld, %lld",
                      path, (long long)set->node_attributes, (long long)set->node_labels,
                      (long long)(set->edge_attributes - walks), (long long)set->edge_labels,
                      (long long)e->attributes, (long long)e->labels,
                      (long long)(e->edge_attributes - walks), (long long)e->edge_labels);
}

basin_status basin_graphs_input_match(basin_graphs_input *input, const basin_graphs_model *model,
                                      const char *path, bool labels, basin_error *error) {
    BASIN_TRY(graphset_encoding_check(&model->encoding, &input->set, path, error));
    if (labels) return match_labels(input, model, path, error);
    input->set.task = model->target;
    input->set.class_of = NULL;
    input->set.target = NULL;
    return BASIN_OK;
}

int64_t *basin_graphs_range(int64_t first, int64_t count) {
    int64_t *list = basin_array_new((size_t)count, sizeof *list);
    for (int64_t i = 0; list && i < count; i++) list[i] = first + i;
    return list;
}

/* ---- which graphs a model has seen ---- */

/* Fingerprints of those it was trained on and of those that chose its epoch, kept in the model
 * file, so that a score on them can say so. */

/* `columns` of the numbers [.., columns] of rows first .. end - 1, 4 bytes each. */
static void add_rows(uint64_t *hash, const void *data, int64_t first, int64_t end,
                     int64_t columns) {
    if (data)
        *hash = basin_hash_bytes(*hash, (const char *)data + 4 * first * columns,
                                 4 * (size_t)((end - first) * columns));
}

/* Adds the target of a graph. */
static void add_target(uint64_t *hash, const basin_graphset *s, int64_t graph) {
    bool nodes = s->task == BASIN_GRAPHS_NODE_CLASSES;
    int64_t first = nodes ? s->node_start[graph] : graph;
    int64_t end = nodes ? s->node_start[graph + 1] : graph + 1;
    if (s->task == BASIN_GRAPHS_VALUES)
        add_rows(hash, s->target, graph, graph + 1, s->targets),
            add_rows(hash, s->limit, graph, graph + 1, 2 * s->targets);
    else
        add_rows(hash, s->class_of, first, end, 1);
}

/* A sum, so that the order does not matter. */
basin_status basin_graphs_digest(uint64_t *digest, const basin_graphset *set,
                                 const basin_fold *fold, basin_error *error) {
    uint64_t sum = 0, own;
    for (int part = 0; part < 2; part++) {
        BASIN_SCRATCH_RAW(int64_t, print, fold->count[part], "a digest of graphs", error);
        BASIN_TRY(basin_graphset_prints(print, set, fold->item[part], fold->count[part], error));
        for (int64_t i = 0; i < fold->count[part]; i++) {
            memcpy(&own, &print[i], sizeof own);
            add_target(&own, set, fold->item[part][i]);
            sum += own * (uint64_t)(2 * part + 1);
        }
    }
    *digest = sum ? sum : 1;
    return BASIN_OK;
}

static bool has(const basin_graphs_seen_list *list, int64_t print) {
    return list->count &&
           bsearch(&print, list->print, (size_t)list->count, sizeof print, basin_compare_int64);
}

/* Graphs of an earlier run, with whose weights this one began, stay. */
basin_status basin_graphs_seen_add(basin_graphs_model *model, const basin_graphset *set,
                                   const basin_fold *fold, basin_error *error) {
    for (int part = 0; part < 2; part++) {
        basin_graphs_seen_list *list = &model->seen[part];
        size_t count = (size_t)(list->count + fold->count[part]), room = (size_t)list->count;
        int64_t kept = 0;
        BASIN_TRY(BASIN_GROW(&list->print, &room, (int64_t)count + 1, "the fingerprints of graphs",
                             error));
        int64_t *all = list->print;
        BASIN_TRY(basin_graphset_prints(all + list->count, set, fold->item[part], fold->count[part],
                                        error));
        qsort(all, count, sizeof *all, basin_compare_int64);
        for (size_t i = 0; i < count; i++)
            if (!kept || all[kept - 1] != all[i]) all[kept++] = all[i];
        list->count = kept;
    }
    return BASIN_OK;
}

basin_status basin_graphs_seen(basin_graphs_memory *memory, const basin_graphs_model *model,
                               const basin_graphset *set, const int64_t *graph, int64_t count,
                               basin_error *error) {
    if (!model->seen[0].count)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model's file does not say which graphs it was trained on");
    BASIN_SCRATCH_RAW(int64_t, print, count, "the fingerprints of graphs", error);
    BASIN_TRY(basin_graphset_prints(print, set, graph, count, error));
    for (int64_t i = 0; i < count; i++)
        memory[i] = has(&model->seen[0], print[i])   ? BASIN_GRAPHS_TRAINED_ON
                    : has(&model->seen[1], print[i]) ? BASIN_GRAPHS_VALIDATED_ON
                                                     : BASIN_GRAPHS_NEW;
    return BASIN_OK;
}
