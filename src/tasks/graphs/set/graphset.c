/* Sets of graphs in files: the packed form, written and read, and which reader takes a file; see
 * include/basin/tasks/graphset.h. */
#include "tasks/graphs/set/graphset.h"

#include "base/bundle.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/text.h"
#include "tasks/common/digest.h"
#include "tasks/common/packed.h"
#include "tasks/graphs/set/molecule.h"

static const char *const task_name[] = {"graph classes", "node classes", "graph values"};

const char *basin_graphs_target_name(basin_graphs_target task) { return task_name[task]; }

/* ---- the arrays of a set ---- */

/* An array as a tensor: name, place, type, rows, columns (0: a vector); and the size of the set
 * that axis `axis` of the tensor gives, or NULL. */
typedef struct part {
    const char *name;
    void **data;
    basin_dtype dtype;
    int64_t rows, columns;
    int64_t *size;
    int axis;
} part;

enum { PARTS = 15, NEEDED = 3 }; /* the first must be there */
static const char FORMAT[] = "basin graph set 1";

static void list_parts(part list[PARTS], basin_graphset *s) {
    int64_t items = s->task == BASIN_GRAPHS_NODE_CLASSES ? s->nodes : s->graphs;
#define ARRAY(member) #member, (void **)&s->member
    const part all[PARTS] = {
        {ARRAY(node_start), BASIN_I64, s->graphs + 1, 0, &s->graphs, 0},
        {ARRAY(edge_start), BASIN_I64, s->graphs + 1, 0, NULL, 0},
        {ARRAY(edge), BASIN_I32, s->edges, 2, &s->edges, 0},
        {ARRAY(node_attribute), BASIN_F32, s->nodes, s->node_attributes, &s->node_attributes, 1},
        {ARRAY(node_label), BASIN_I32, s->nodes, s->node_labels, &s->node_labels, 1},
        {ARRAY(edge_attribute), BASIN_F32, s->edges, s->edge_attributes, &s->edge_attributes, 1},
        {ARRAY(edge_label), BASIN_I32, s->edges, s->edge_labels, &s->edge_labels, 1},
        {ARRAY(class_value), BASIN_I64, s->classes, 0, &s->classes, 0},
        {ARRAY(class_of), BASIN_I32, items, 0, NULL, 0},
        {ARRAY(target), BASIN_F32, s->graphs, s->targets, &s->targets, 1},
        {ARRAY(limit), BASIN_F32, s->graphs, 2 * s->targets, NULL, 0},
        {ARRAY(line), BASIN_I64, s->graphs, 0, NULL, 0},
        {ARRAY(scaffold), BASIN_I64, s->graphs, 0, NULL, 0},
        {ARRAY(id_start), BASIN_I64, s->graphs + 1, 0, NULL, 0},
        {ARRAY(id), BASIN_U8, s->id_bytes, 0, &s->id_bytes, 0},
    };
#undef ARRAY
    memcpy(list, all, sizeof all);
}

static basin_shape shape_of(const part *p) {
    return p->columns ? BASIN_SHAPE(p->rows, p->columns) : BASIN_SHAPE(p->rows);
}

void basin_graphset_free(basin_graphset *set) {
    part list[PARTS];
    list_parts(list, set);
    for (int i = 0; !set->file && i < PARTS; i++) free(*list[i].data);
    BASIN_FREE(set->note, set->columns, set->column);
    basin_bundle_free(set->file);
    *set = (basin_graphset){0};
}

basin_status basin_column_names(char ***name, const char *columns, const int64_t *class_value,
                                int64_t count, basin_error *error) {
    const char *between = class_value ? "\n\t" : "\n", *at = columns;
    size_t bytes = strlen(columns) + 1, table = (size_t)count * sizeof **name;
    if (!(*name = malloc(table + bytes))) return basin_fail_memory(error, "names");
    char *text = memcpy((char *)*name + table, columns, bytes);
    for (int64_t number = 0, c = 0; c < count; c++) {
        for (; at && number < (class_value ? class_value[c] + 1 : c); number++)
            at = (at = strstr(at, between)) ? at + strlen(between) : NULL;
        (*name)[c] = text + (at ? at - columns : (ptrdiff_t)bytes - 1);
    }
    for (; *text; text++)
        if (*text == '\n') *text = 0;
    return BASIN_OK;
}

basin_status basin_graphset_name_columns(basin_graphset *s, const char *columns,
                                         basin_error *error) {
    bool words = s->class_of && strstr(columns, "\n\t");
    if (!(s->columns = basin_string_copy(columns))) return basin_fail_memory(error, "names");
    if (!words && !s->target) return BASIN_OK;
    return basin_column_names(&s->column, columns, words ? s->class_value : NULL,
                              words ? s->classes : s->targets, error);
}

/* ---- checks, of files and of arrays ---- */

basin_status basin_reals_check(const float *number, int64_t count, bool missing, const char *name,
                               const char *path, basin_status status, basin_error *error) {
    for (int64_t i = 0; number && i < count; i++)
        if (!isfinite(number[i]) && !(missing && isnan(number[i])))
            return basin_fail(error, status, "%s: %s[%lld] is %g; expected a finite number", path,
                              name, (long long)i, (double)number[i]);
    return BASIN_OK;
}

/* Each part of the split is compared, their sum might overflow. */
basin_status basin_graphset_check_sizes(const basin_graphset *s, const char *path,
                                        basin_status status, basin_error *error) {
    int64_t left = s->graphs;
    bool split = true;
    for (int i = 0; i < 3 && split; left -= s->split[i++])
        split = s->split[i] >= 0 && s->split[i] <= left;
    if (!split || (left && left != s->graphs))
        return basin_fail(error, status, "%s: a split into %lld, %lld, %lld of %lld graphs", path,
                          (long long)s->split[0], (long long)s->split[1], (long long)s->split[2],
                          (long long)s->graphs);
    if (s->node_labels <= BASIN_MAX_LABELS && s->edge_labels <= BASIN_MAX_LABELS) return BASIN_OK;
    return basin_fail(
        error, status,
        "%s: %lld columns of node labels and %lld of edge labels; expected at most %d", path,
        (long long)s->node_labels, (long long)s->edge_labels, BASIN_MAX_LABELS);
}

static basin_status check_starts(const int64_t *start, int64_t graphs, int64_t total,
                                 const char *path, const char *name, basin_error *error) {
    if (basin_starts_rise(start, graphs, total)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' does not rise from 0 to %lld", path, name,
                      (long long)total);
}

static basin_status check_edges(const basin_graphset *s, int64_t g, const char *path,
                                basin_error *error) {
    int64_t n = s->node_start[g + 1] - s->node_start[g];
    for (int64_t e = s->edge_start[g]; e < s->edge_start[g + 1]; e++) {
        const int32_t *at = s->edge + 2 * e;
        bool first = e == s->edge_start[g];
        bool rises = first || at[0] > at[-2] || (at[0] == at[-2] && at[1] > at[-1]);
        if (at[0] < 0 || at[0] >= n || at[1] < 0 || at[1] >= n || at[0] == at[1] || !rises)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: edge %lld joins %d and %d in a graph of %lld nodes; expected "
                              "two numbers below that, in ascending order",
                              path, (long long)e, at[0], at[1], (long long)n);
    }
    return BASIN_OK;
}

static basin_status check_numbers(const basin_graphset *s, const char *path, basin_error *error) {
    int64_t items = s->task == BASIN_GRAPHS_NODE_CLASSES ? s->nodes : s->graphs;
    BASIN_TRY(check_starts(s->node_start, s->graphs, s->nodes, path, "node_start", error));
    BASIN_TRY(check_starts(s->edge_start, s->graphs, s->edges, path, "edge_start", error));
    for (int64_t g = 0; g < s->graphs; g++) BASIN_TRY(check_edges(s, g, path, error));
    if (s->id && (!s->id_start || s->id[s->id_bytes - 1]))
        return basin_fail(error, BASIN_BAD_FILE, "%s: 'id' does not end", path);
    if (s->id)
        BASIN_TRY(check_starts(s->id_start, s->graphs, s->id_bytes, path, "id_start", error));
    for (int64_t i = 0; s->class_of && i < items; i++)
        if (s->class_of[i] < -1 || s->class_of[i] >= s->classes)
            return basin_fail(error, BASIN_BAD_FILE, "%s: class_of[%lld] is %d of %lld classes",
                              path, (long long)i, s->class_of[i], (long long)s->classes);
    BASIN_TRY(basin_reals_check(s->node_attribute, s->nodes * s->node_attributes, false,
                                "node_attribute", path, BASIN_BAD_FILE, error));
    BASIN_TRY(basin_reals_check(s->edge_attribute, s->edges * s->edge_attributes, false,
                                "edge_attribute", path, BASIN_BAD_FILE, error));
    if (s->limit)
        BASIN_TRY(basin_reals_check(s->limit, 2 * s->graphs * s->targets, true, "limit", path,
                                    BASIN_BAD_FILE, error));
    return basin_reals_check(s->target, s->graphs * s->targets, true, "target", path,
                             BASIN_BAD_FILE, error);
}

/* ---- the packed form ---- */

basin_status basin_graphset_write(const char *path, const basin_graphset *set, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    part list[PARTS];
    basin_graphset view = *set;
    char split[100];
    snprintf(split, sizeof split, "%lld %lld %lld", (long long)set->split[0],
             (long long)set->split[1], (long long)set->split[2]);
    const char *const meta[][2] = {
        {"format", FORMAT}, {"name", set->name},       {"task", task_name[set->task]},
        {"split", split},   {"columns", set->columns}, {"binary", set->binary ? "on" : NULL}};
    list_parts(list, &view);
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    for (const part *p = list; p < list + PARTS; p++)
        if (*p->data)
            BASIN_TRY(basin_bundle_put(bundle, p->name, *p->data, p->dtype, shape_of(p), error));
    for (int i = 0; i < 6; i++)
        if (meta[i][1]) BASIN_TRY(basin_bundle_meta_set(bundle, meta[i][0], meta[i][1], error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write_safetensors(path, bundle, error);
}

/* Sizes from the tensors' shapes, before the arrays are checked against them. A set may have no
 * array of nodes, so that nothing but the last start confirms their number. */
static basin_status read_sizes(basin_graphset *set, const char *path, basin_error *error) {
    const basin_tensor *start = basin_bundle_find(set->file, "node_start");
    part list[PARTS];
    list_parts(list, set);
    for (const part *p = list; p < list + PARTS; p++) {
        const basin_tensor *t = p->size ? basin_bundle_find(set->file, p->name) : NULL;
        if (t && t->shape.rank > p->axis) *p->size = t->shape.dim[p->axis];
    }
    if (start && set->graphs-- < 2)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: has no graphs: 'node_start' has no two entries", path);
    if (!start || start->dtype != BASIN_I64 || start->shape.rank != 1) return BASIN_OK;
    set->nodes = ((const int64_t *)start->data)[set->graphs];
    if (set->nodes < 0 || set->nodes > INT32_MAX)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %lld nodes; expected 0 to %d", path,
                          (long long)set->nodes, INT32_MAX);
    return basin_memory_check(16.0 * (double)set->nodes, 0, path, BASIN_NO_MEMORY, error);
}

static basin_status find_parts(basin_graphset *set, basin_error *error) {
    part list[PARTS];
    list_parts(list, set);
    for (int i = 0; i < PARTS; i++) {
        const basin_tensor *t;
        if (i >= NEEDED && !basin_bundle_find(set->file, list[i].name)) continue;
        BASIN_TRY(basin_bundle_expect(&t, set->file, list[i].name, list[i].dtype,
                                      shape_of(&list[i]), error));
        *list[i].data = t->data;
    }
    return BASIN_OK;
}

static basin_status read_packed(basin_graphset *set, const char *path, basin_error *error) {
    const char *task = basin_bundle_meta(set->file, "task");
    const char *name = basin_bundle_meta(set->file, "name");
    const char *split = basin_bundle_meta(set->file, "split"), *at = split;
    const char *columns = basin_bundle_meta(set->file, "columns");
    for (int i = 0; i < 3; i++)
        if (task && !strcmp(task, task_name[i])) set->task = (basin_graphs_target)i;
    if (name) snprintf(set->name, sizeof set->name, "%s", name);
    set->binary = basin_bundle_meta(set->file, "binary") != NULL;
    BASIN_TRY(read_sizes(set, path, error));
    for (int i = 0; i < 3 && split; i++)
        if (!basin_integer_read(&set->split[i], &at) || (i == 2 && *at))
            return basin_fail(error, BASIN_BAD_FILE, "%s: a split into '%s'", path, split);
    BASIN_TRY(basin_graphset_check_sizes(set, path, BASIN_BAD_FILE, error));
    BASIN_TRY(find_parts(set, error));
    BASIN_TRY(check_numbers(set, path, error));
    return columns ? basin_graphset_name_columns(set, columns, error) : BASIN_OK;
}

basin_status basin_graphset_from_bundle(basin_graphset *set, basin_bundle *bundle, const char *path,
                                        basin_error *error) {
    const char *format = basin_bundle_meta(bundle, "format");
    if (!format || strcmp(format, FORMAT) != 0) {
        BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *own = bundle;
        return basin_graphset_from_zinc(set, own, error);
    }
    *set = (basin_graphset){.file = bundle};
    BASIN_TRY_OR(read_packed(set, path, error), basin_graphset_free(set));
    return BASIN_OK;
}

/* ---- reading whatever it is ---- */

static bool ends_in(const char *path, const char *const *end) {
    while (*end && !basin_text_ends(path, *end)) end++;
    return *end;
}

bool basin_molecules_are_blocks(const char *path) {
    static const char *const end[] = {".sdf", ".sd", ".mol", ".sdf.gz", ".sd.gz", ".sdf.zst", NULL};
    return ends_in(path, end);
}

bool basin_molecules_are_there(const char *path, const basin_graphset_options *options) {
    static const char *const table[] = {".csv",     ".tsv", ".csv.gz", ".tsv.gz",
                                        ".csv.zst", ".txt", ".smi",    NULL};
    static const char *const other[] = {".safetensors", ".npz", ".zip", NULL};
    if (!path || basin_molecules_are_blocks(path) || ends_in(path, table)) return true;
    return options && options->smiles && !ends_in(path, other);
}

/* A file that holds tensors: npz by its name, since TUDatasets are also zip files; or a header's
 * length in eight bytes followed by JSON, whatever the file is called. */
static basin_status is_bundle(bool *is, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    *is = false;
    if (basin_map_open(&map, path, NULL)) return BASIN_OK;
    *is = basin_text_ends(path, ".npz") || (map.size >= 9 && map.data[8] == '{');
    return basin_packed_refuse(map.data, map.size, path, error);
}

basin_status basin_graphset_read(basin_graphset *set, const char *path,
                                 const basin_graphset_options *options, basin_error *error) {
    static const basin_graphset_options none;
    const basin_graphset_options *o = options ? options : &none;
    basin_bundle *bundle;
    bool is;
    *set = (basin_graphset){0};
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_graphset_options", error));
    if (basin_molecules_are_there(path, o)) return basin_molecules_read(set, path, o, error);
    BASIN_TRY(is_bundle(&is, path, error));
    if (!is) return basin_graphset_open_tu(set, path, o->bare, error);
    BASIN_TRY(basin_bundle_read_numbers(&bundle, path, error));
    return basin_graphset_from_bundle(set, bundle, path, error);
}
