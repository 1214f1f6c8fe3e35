/* A set as a model sees it: walks along edges, positions and the model's numbers of classes beside
 * the caller's arrays, which stay as they are; see graphs.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "data/graphset/graphset.h"
#include "task/graphs/graphs.h"

basin_graphs_data basin_graphs_data_of(const basin_graphs_data *data) {
    basin_graphs_data d = *data;
    if (!d.path && d.set) d.path = *d.set->name ? d.set->name : "the set";
    return d;
}

basin_status basin_graphs_check_labels(const basin_graphset *set, const char *path,
                                       basin_error *error) {
    if (set->task == BASIN_GRAPHS_VALUES ? set->target != NULL : set->class_of && set->classes > 1)
        return BASIN_OK;
    if (set->task != BASIN_GRAPHS_VALUES && set->class_of && set->classes == 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: all %s have the class %lld; wanted two classes or more", path,
                          set->task == BASIN_NODE_CLASSES ? "nodes" : "graphs",
                          (long long)set->class_value[0]);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: no labels and no values; wanted a set that has them (of a TUDataset, "
                      "DS_graph_labels.txt or DS_graph_attributes.txt)",
                      path);
}

static int by_ends(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Whether there are edges, none of which has its reverse: as files have that name each once. */
static bool goes_one_way(const basin_graphset *set) {
    for (int64_t g = 0; g < set->graphs; g++) {
        const int32_t *edge = set->edge + 2 * set->edge_start[g];
        size_t edges = (size_t)(set->edge_start[g + 1] - set->edge_start[g]);
        for (size_t e = 0; e < edges; e++) {
            const int32_t back[2] = {edge[2 * e + 1], edge[2 * e]};
            if (bsearch(back, edge, edges, 2 * sizeof *edge, by_ends)) return false;
        }
    }
    return set->edges > 0;
}

/* Settings that have nothing to do on this set. */
static void note_idle(const basin_settings *settings, const basin_graphset *set,
                      const basin_watch *watch) {
    bool values = set->task == BASIN_GRAPHS_VALUES, nodes = set->task == BASIN_NODE_CLASSES;
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
    for (int64_t i = 0; i < values; i++) missing += isnan(set->target[i]);
    if (missing)
        basin_watch_note(watch, "%lld of %lld values are not known; they are left out",
                         (long long)missing, (long long)values);
    if (goes_one_way(set))
        basin_watch_note(watch,
                         "no edge of %s has its reverse: only its first node sees the other. "
                         "Undirected edges are listed both ways",
                         set->name);
}

/* ---- walks and positions ---- */

basin_status basin_graphs_input_begin(basin_graphs_input *input,
                                      const basin_graphs_settings *settings,
                                      const basin_graphset *set, int64_t first, int64_t count,
                                      basin_error *error) {
    int64_t walks = settings->edge_walks;
    *input = (basin_graphs_input){.set = *set};
    if (set->edge_walks == walks) return BASIN_OK;
    if (set->edge_walks)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s has %lld walks along its edges, edge_walks is %lld; wanted a set "
                          "without any",
                          set->name, (long long)set->edge_walks, (long long)walks);
    BASIN_TRY(basin_graphset_edge_walks(&input->edge_attribute, set, walks, first, count, error));
    input->set.edge_attribute = input->edge_attribute;
    input->set.edge_attributes += walks;
    input->set.edge_walks = walks;
    return BASIN_OK;
}

basin_status basin_graphs_input_place(basin_graphs_input *input,
                                      const basin_graphs_settings *settings, int64_t first,
                                      int64_t count, const char *cache, basin_error *error) {
    basin_position_spec spec = {settings->eigenvectors, settings->walks, settings->cls_laplacian};
    return basin_positions_new_part(&input->positions, &input->set, &spec, first, count, cache,
                                    error);
}

void basin_graphs_input_free(basin_graphs_input *input) {
    free(input->edge_attribute);
    free(input->class_of);
    basin_positions_free(&input->positions);
    *input = (basin_graphs_input){0};
}

/* ---- classes ---- */

static bool same_classes(const basin_graphset *set, const basin_graphs_model *m) {
    return set->classes == m->classes &&
           !memcmp(set->class_value, m->class_value, (size_t)m->classes * sizeof *m->class_value);
}

static int32_t number_of(int64_t value, const basin_graphs_model *m) {
    for (int64_t c = 0; c < m->classes; c++)
        if (m->class_value[c] == value) return (int32_t)c;
    return -1;
}

/* A set may lack some of the model's classes, or have others, which are then unknown. */
static basin_status renumber(basin_graphs_input *input, const basin_graphs_model *m,
                             basin_error *error) {
    basin_graphset *set = &input->set;
    int64_t items = set->task == BASIN_NODE_CLASSES ? set->nodes : set->graphs;
    BASIN_TRY(BASIN_NEW_RAW(&input->class_of, items, "classes", error));
    for (int64_t i = 0; i < items; i++) {
        int32_t own = set->class_of[i];
        input->class_of[i] = own < 0 ? -1 : number_of(set->class_value[own], m);
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
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %s; the model wants %s", path,
                          basin_graphs_target_name(set->task), basin_graphs_target_name(m->target));
    if (m->target != BASIN_GRAPHS_VALUES)
        return same_classes(set, m) ? BASIN_OK : renumber(input, m, error);
    if (set->targets == m->outputs) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s has %lld values a graph; the model has %lld",
                      path, (long long)set->targets, (long long)m->outputs);
}

basin_status basin_graphs_input_match(basin_graphs_input *input, const basin_graphs_model *model,
                                      const char *path, bool labels, basin_error *error) {
    basin_status status = basin_graphset_encoding_check(&model->encoding, &input->set, path, error);
    if (status || labels) return status ? status : match_labels(input, model, path, error);
    input->set.task = model->target;
    input->set.class_of = NULL;
    input->set.target = NULL;
    return BASIN_OK;
}

/* ---- parts of a set ---- */

int64_t *basin_graphs_range(int64_t first, int64_t count) {
    int64_t *list = basin_array_new((size_t)count, sizeof *list);
    for (int64_t i = 0; list && i < count; i++) list[i] = first + i;
    return list;
}

basin_status basin_graphs_part(int64_t **list, int64_t *count, const basin_graphset *set,
                               const char *part, basin_error *error) {
    static const char *const name[3] = {"train", "validation", "test"};
    int64_t first = 0;
    int found = -1;
    if (!strcmp(part, "auto")) part = set->split[2] ? "test" : "all";
    for (int i = 0; i < 3 && found < 0; i++) {
        if (!strcmp(part, name[i]))
            found = i;
        else
            first += set->split[i];
    }
    bool all = !strcmp(part, "all");
    if (found < 0 && !all)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "there is no part '%.40s'; wanted train, validation, test, all or auto",
                          part);
    *count = all ? set->graphs : set->split[found];
    if (!all && !*count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: no graphs are set apart for '%s'; wanted a set with splits, or all",
                          set->name, part);
    *list = basin_graphs_range(all ? 0 : first, *count);
    return *list ? BASIN_OK : basin_fail_memory(error, "a list of graphs");
}

basin_status basin_graphs_fold_all(basin_folds *folds, int64_t graphs, basin_error *error) {
    *folds = (basin_folds){1, calloc(1, sizeof *folds->fold)};
    for (int part = 0; part < 3 && folds->fold; part += 2) {
        folds->fold->item[part] = basin_graphs_range(0, graphs);
        folds->fold->count[part] = graphs;
    }
    if (folds->fold && folds->fold->item[0] && folds->fold->item[2]) return BASIN_OK;
    basin_folds_free(folds);
    return basin_fail_memory(error, "a fold");
}
