/* Which graphs of a set: its parts by name, and the one fold of the published notebooks; see
 * include/basin/tasks/graphs.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/graphs/graphs.h"

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
    return *list ? BASIN_OK
                 : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list of graphs");
}

basin_status basin_graphs_fold_all(basin_folds *folds, int64_t graphs, basin_error *error) {
    *folds = (basin_folds){1, calloc(1, sizeof *folds->fold)};
    for (int part = 0; part < 3 && folds->fold; part += 2) {
        folds->fold->item[part] = basin_graphs_range(0, graphs);
        folds->fold->count[part] = graphs;
    }
    if (folds->fold && folds->fold->item[0] && folds->fold->item[2]) return BASIN_OK;
    basin_folds_free(folds);
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a fold");
}
