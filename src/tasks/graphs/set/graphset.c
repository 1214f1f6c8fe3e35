/* Sets of graphs in files: the packed form, written and read; see include/basin/tasks/graphset.h.
 */
#include "tasks/graphs/set/graphset.h"
#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/bundle.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/try.h"
#include "basin/random.h"
#include "tasks/common/packed.h"

/* ---- folds of cross-validation: stratified ones, and published ones in index files ---- */

enum { STREAM_FOLDS = 42, STREAM_INNER = 43 };

/* Deals `count` items to `parts` like cards, class by class, each class in a random order; who is
 * dealt to first goes on where the class before stopped, so parts differ by one at most. */
static basin_status deal(int32_t *part, const int64_t *item, const int32_t *class_of, int64_t count,
                         int64_t parts, uint64_t seed, uint64_t stream, basin_error *error) {
    BASIN_SCRATCH_RAW(int64_t, order, count, "folds", error);
    basin_random_permutation(order, (size_t)count, seed, stream);
    int32_t max = -1;
    for (int64_t i = 0; class_of && i < count; i++) {
        int32_t own = class_of[item ? item[i] : i];
        if (own > max) max = own;
    }
    int64_t next = 0;
    for (int32_t c = -1; c <= max; c++)
        for (int64_t i = 0; i < count; i++) {
            int32_t own = class_of ? class_of[item ? item[order[i]] : order[i]] : -1;
            if (own == c) part[order[i]] = (int32_t)(next++ % parts);
        }
    return BASIN_OK;
}

void basin_folds_free(basin_folds *folds) {
    for (int64_t f = 0; folds->fold && f < folds->folds; f++)
        for (int i = 0; i < 3; i++) free(folds->fold[f].item[i]);
    free(folds->fold);
    *folds = (basin_folds){0};
}

static basin_status folds_begin(basin_folds *folds, int64_t number, basin_error *error) {
    folds->folds = number;
    return BASIN_NEW(&folds->fold, number, "folds", error);
}

basin_status basin_fold_part(basin_fold *f, const int32_t *class_of, double inner, uint64_t seed,
                             int64_t number, int64_t which, basin_error *error) {
    int64_t n = f->count[0], parts = inner > 0 ? (int64_t)floor(1 / inner + 0.5) : 0, kept = 0;
    if (parts < 2 || n < parts) return BASIN_OK;
    BASIN_SCRATCH_RAW(int32_t, part, n, "folds", error);
    BASIN_TRY(BASIN_NEW_RAW(&f->item[1], n, "folds", error));
    BASIN_TRY(deal(part, f->item[0], class_of, n, parts, seed,
                   STREAM_INNER + ((uint64_t)number << 8), error));
    for (int64_t i = 0; i < n; i++)
        if (part[i] != which % parts)
            f->item[0][kept++] = f->item[0][i];
        else
            f->item[1][f->count[1]++] = f->item[0][i];
    f->count[0] = kept;
    return BASIN_OK;
}

static basin_status make_folds(basin_folds *folds, const int32_t *class_of, int64_t count,
                               int64_t number, double inner, uint64_t seed, basin_error *error) {
    BASIN_SCRATCH_RAW(int32_t, part, count, "folds", error);
    if (number != 1 && (number < 2 || number > count))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld folds of %lld items; expected 2 to %lld folds", (long long)number,
                          (long long)count, (long long)count);
    if (number != 1)
        BASIN_TRY(deal(part, NULL, class_of, count, number, seed, STREAM_FOLDS, error));
    BASIN_TRY(folds_begin(folds, number, error));
    for (int64_t n = 0; n < number; n++) {
        basin_fold *f = &folds->fold[n];
        BASIN_TRY(BASIN_NEW_RAW(&f->item[0], count, "folds", error));
        BASIN_TRY(BASIN_NEW_RAW(&f->item[2], count, "folds", error));
        for (int64_t i = 0; i < count; i++) {
            if (number == 1 || part[i] != n) f->item[0][f->count[0]++] = i;
            if (number == 1 || part[i] == n) f->item[2][f->count[2]++] = i;
        }
        if (number > 1) BASIN_TRY(basin_fold_part(f, class_of, inner, seed, n, 0, error));
    }
    return BASIN_OK;
}

basin_status basin_folds_new(basin_folds *folds, const int32_t *class_of, int64_t count,
                             int64_t number, double inner, uint64_t seed, basin_error *error) {
    *folds = (basin_folds){0};
    BASIN_TRY_OR(make_folds(folds, class_of, count, number, inner, seed, error),
                 basin_folds_free(folds));
    return BASIN_OK;
}

/* ---- groups ---- */

typedef struct grouped {
    int64_t group, item, size, first; /* of its group: how many, the first item */
} grouped;

static int by_group(const void *a, const void *b) {
    const grouped *x = a, *y = b;
    return x->group != y->group ? BASIN_COMPARE(x->group, y->group)
                                : BASIN_COMPARE(x->item, y->item);
}

/* Large groups first, of equal ones that which begins last, as DeepChem has it. */
static int by_size(const void *a, const void *b) {
    const grouped *x = a, *y = b;
    if (x->size != y->size) return BASIN_COMPARE(y->size, x->size);
    return x->first != y->first ? BASIN_COMPARE(y->first, x->first)
                                : BASIN_COMPARE(x->item, y->item);
}

static void group_items(grouped *list, const int64_t *group, int64_t count) {
    for (int64_t i = 0; i < count; i++) list[i] = (grouped){group ? group[i] : i, i, 1, -i};
    if (!group) return; /* all of size 1, the first comes first */
    qsort(list, (size_t)count, sizeof *list, by_group);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && list[end].group == list[i].group;) end++;
        for (int64_t k = i; k < end; k++) list[k].size = end - i, list[k].first = list[i].item;
    }
    qsort(list, (size_t)count, sizeof *list, by_size);
}

static basin_status deal_groups(basin_folds *folds, const grouped *list, int64_t count,
                                int64_t number, basin_error *error) {
    BASIN_TRY(folds_begin(folds, number, error));
    for (int64_t n = 0; n < number; n++)
        for (int part = 0; part < 3; part++)
            BASIN_TRY(BASIN_NEW_RAW(&folds->fold[n].item[part], count, "folds", error));
    for (int64_t i = 0; i < count; i += list[i].size) {
        int64_t size = list[i].size, to = 0;
        basin_fold *f = folds->fold;
        for (int64_t n = 1; n < number; n++) to = f[n].count[2] < f[to].count[2] ? n : to;
        bool full = f->count[0] + size > count * 8 / 10;
        int part = !full ? 0 : f->count[0] + f->count[1] + size > count * 9 / 10 ? 2 : 1;
        for (int64_t k = i; k < i + size; k++)
            for (int64_t n = 0; n < number; n++) {
                int where = number == 1 ? part : n == to ? 2 : 0;
                f[n].item[where][f[n].count[where]++] = list[k].item;
            }
    }
    return BASIN_OK;
}

basin_status basin_folds_group(basin_folds *folds, const int64_t *group, int64_t count,
                               int64_t number, double inner, uint64_t seed, basin_error *error) {
    *folds = (basin_folds){0};
    BASIN_SCRATCH_RAW(grouped, list, count, "folds", error);
    group_items(list, group, count);
    BASIN_TRY_OR(deal_groups(folds, list, count, number, error), basin_folds_free(folds));
    for (int64_t n = 0; n < number; n++) {
        basin_fold *f = &folds->fold[n];
        if (!f->count[0] || !f->count[2]) {
            basin_folds_free(folds);
            return basin_fail(error, BASIN_BAD_VALUE,
                              number == 1
                                  ? "%lld graphs are too few, or too many of one scaffold, to "
                                    "divide by groups into training, validation and test"
                                  : "%lld graphs are too few, or too many of one scaffold, to "
                                    "divide by groups into %lld folds",
                              (long long)count, (long long)number);
        }
        if (number == 1) continue;
        free(f->item[1]);
        f->item[1] = NULL;
        BASIN_TRY_OR(basin_fold_part(f, NULL, inner, seed, n, 0, error), basin_folds_free(folds));
    }
    return BASIN_OK;
}

/* ---- published index files ---- */

/* One line of a text with numbers in 0 .. count - 1. */
static basin_status read_numbers(int64_t **item, int64_t *length, const char *line, int64_t count,
                                 const char *path, int64_t number, basin_error *error) {
    size_t capacity = (size_t)*length;
    for (const char *at = line;;) {
        while (*at == ',' || *at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
        if (!*at) return BASIN_OK;
        char *end;
        long long value = strtoll(at, &end, 10);
        int shown = (int)strcspn(at, ", \t\r\n");
        if (end == at || value < 0 || value >= count)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s, line %lld: '%.*s'; expected a number from 0 to %lld", path,
                              (long long)number, shown < 20 ? shown : 20, at, (long long)count - 1);
        BASIN_TRY(BASIN_GROW(item, &capacity, *length + 1, "folds", error));
        (*item)[(*length)++] = value;
        at = end;
    }
}

/* A text that is read line by line. */
typedef struct lines {
    FILE *file;
    char *line;
    size_t size;
} lines;

static void lines_close(lines *l) {
    free(l->line);
    if (l->file) fclose(l->file);
}

static basin_status lines_open(lines *l, const char *path, basin_error *error) {
    int fd;
    size_t size;
    BASIN_TRY(basin_file_open(&fd, &size, path, error));
    l->file = fdopen(fd, "r");
    if (l->file) return BASIN_OK;
    close(fd);
    return basin_fail_memory(error, "folds");
}

static bool lines_next(lines *l) { return getline(&l->line, &l->size, l->file) >= 0; }
static bool is_blank(const lines *l) { return !l->line[strspn(l->line, " \t\r\n")]; }

/* A file with one line per fold, or (`whole`) all lines for one fold. */
static basin_status read_file(basin_folds *folds, int part, const char *path, int64_t whole,
                              int64_t count, basin_error *error) {
    BASIN_AT_EXIT(lines_close) lines l = {0};
    BASIN_TRY(lines_open(&l, path, error));
    for (int64_t number = 1; lines_next(&l); number++) {
        int64_t to = whole >= 0 ? whole : number - 1;
        if (whole < 0 && is_blank(&l)) continue;
        if (to >= folds->folds)
            return basin_fail(error, BASIN_BAD_FILE, "%s: more than %lld folds", path,
                              (long long)folds->folds);
        BASIN_TRY(read_numbers(&folds->fold[to].item[part], &folds->fold[to].count[part], l.line,
                               count, path, number, error));
    }
    return BASIN_OK;
}

static basin_status read_index(basin_folds *folds, const char *path, int64_t count,
                               basin_error *error) {
    static const char *const name[3] = {"train", "val", "test"};
    BASIN_AT_EXIT(lines_close) lines l = {0};
    char full[4096];
    int64_t number = 0;
    snprintf(full, sizeof full, "%s_test.index", path);
    if (!lines_open(&l, full, NULL))
        while (lines_next(&l)) number += !is_blank(&l);
    if (!number)
        return basin_fail(error, BASIN_IO,
                          "%s: no such index file; expected NAME of NAME_test.index, or a folder "
                          "with test_idx-1.txt",
                          full);
    BASIN_TRY(folds_begin(folds, number, error));
    for (int i = 0; i < 3; i++) {
        snprintf(full, sizeof full, "%s_%s.index", path, name[i]);
        BASIN_TRY(read_file(folds, i, full, -1, count, error));
    }
    return BASIN_OK;
}

static basin_status read_folder(basin_folds *folds, const char *path, int64_t count,
                                basin_error *error) {
    static const char *const name[3] = {"train", NULL, "test"};
    char full[4096];
    int64_t number = 0;
    for (;; number++) {
        snprintf(full, sizeof full, "%s/test_idx-%lld.txt", path, (long long)number + 1);
        if (access(full, F_OK)) break;
    }
    if (!number) return basin_fail(error, BASIN_IO, "%s: no such file", full);
    BASIN_TRY(folds_begin(folds, number, error));
    for (int64_t f = 0; f < number; f++)
        for (int i = 2; i >= 0; i -= 2) {
            snprintf(full, sizeof full, "%s/%s_idx-%lld.txt", path, name[i], (long long)f + 1);
            BASIN_TRY(read_file(folds, i, full, f, count, error));
        }
    return BASIN_OK;
}

/* No item twice in a fold: what is trained on is not tested on. */
static basin_status check_fold(const basin_fold *f, int64_t number, char *seen, const char *path,
                               basin_error *error) {
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < f->count[i]; k++)
            if (seen[f->item[i][k]]++)
                return basin_fail(error, BASIN_BAD_FILE, "%s: fold %lld has graph %lld twice", path,
                                  (long long)number, (long long)f->item[i][k]);
    if (f->count[0] && f->count[2]) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: fold %lld has %lld graphs for training and %lld for the test", path,
                      (long long)number, (long long)f->count[0], (long long)f->count[2]);
}

static basin_status read_folds(basin_folds *folds, const char *path, const int32_t *class_of,
                               int64_t count, double inner, uint64_t seed, basin_error *error) {
    struct stat info;
    bool folder = !stat(path, &info) && S_ISDIR(info.st_mode);
    BASIN_TRY((folder ? read_folder : read_index)(folds, path, count, error));
    BASIN_SCRATCH_RAW(char, seen, count, "folds", error);
    for (int64_t f = 0; f < folds->folds; f++) {
        memset(seen, 0, (size_t)count);
        BASIN_TRY(check_fold(&folds->fold[f], f + 1, seen, path, error));
        if (!folds->fold[f].count[1])
            BASIN_TRY(basin_fold_part(&folds->fold[f], class_of, inner, seed, f, 0, error));
    }
    return BASIN_OK;
}

basin_status basin_folds_read(basin_folds *folds, const char *path, const int32_t *class_of,
                              int64_t count, double inner, uint64_t seed, basin_error *error) {
    *folds = (basin_folds){0};
    BASIN_TRY_OR(read_folds(folds, path, class_of, count, inner, seed, error),
                 basin_folds_free(folds));
    return BASIN_OK;
}

static const char *const task_name[] = {"graph classes", "node classes", "graph values"};

const char *basin_graphs_target_name(basin_graphs_target task) { return task_name[task]; }

void basin_graphset_free(basin_graphset *set) {
    void *array[] = {
        set->node_start, set->edge_start,  set->edge,     set->node_attribute, set->node_label,
        set->edge_label, set->class_value, set->class_of, set->edge_attribute, set->target,
        set->line,       set->scaffold,    set->id,       set->id_start};
    for (size_t i = 0; !set->file && i < sizeof array / sizeof *array; i++) free(array[i]);
    BASIN_FREE(set->note, set->columns);
    basin_bundle_free(set->file);
    *set = (basin_graphset){0};
}

/* ---- the packed form ---- */

/* The arrays of a set as tensors: name, place, type, columns (0: a vector), rows. */
typedef struct part {
    const char *name;
    void **data;
    basin_dtype dtype;
    int64_t rows, columns;
    bool optional;
} part;

enum { PARTS = 14 };
static const char FORMAT[] = "basin graph set 1";

static void list_parts(part list[PARTS], basin_graphset *s) {
    int64_t items = s->task == BASIN_NODE_CLASSES ? s->nodes : s->graphs;
    const part all[PARTS] = {
        {"node_start", (void **)&s->node_start, BASIN_I64, s->graphs + 1, 0, false},
        {"edge_start", (void **)&s->edge_start, BASIN_I64, s->graphs + 1, 0, false},
        {"edge", (void **)&s->edge, BASIN_I32, s->edges, 2, false},
        {"node_attribute", (void **)&s->node_attribute, BASIN_F32, s->nodes, s->node_attributes,
         true},
        {"node_label", (void **)&s->node_label, BASIN_I32, s->nodes, s->node_labels, true},
        {"edge_attribute", (void **)&s->edge_attribute, BASIN_F32, s->edges, s->edge_attributes,
         true},
        {"edge_label", (void **)&s->edge_label, BASIN_I32, s->edges, s->edge_labels, true},
        {"class_value", (void **)&s->class_value, BASIN_I64, s->classes, 0, true},
        {"class_of", (void **)&s->class_of, BASIN_I32, items, 0, true},
        {"target", (void **)&s->target, BASIN_F32, s->graphs, s->targets, true},
        {"line", (void **)&s->line, BASIN_I64, s->graphs, 0, true},
        {"scaffold", (void **)&s->scaffold, BASIN_I64, s->graphs, 0, true},
        {"id_start", (void **)&s->id_start, BASIN_I64, s->graphs + 1, 0, true},
        {"id", (void **)&s->id, BASIN_U8, s->id_bytes, 0, true},
    };
    memcpy(list, all, sizeof all);
}

static basin_shape shape_of(const part *p) {
    return p->columns ? BASIN_SHAPE(p->rows, p->columns) : BASIN_SHAPE(p->rows);
}

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
    for (int i = 0; i < PARTS; i++) {
        const part *p = &list[i];
        if (*p->data)
            BASIN_TRY(basin_bundle_put(bundle, p->name, *p->data, p->dtype, shape_of(p), error));
    }
    for (int i = 0; i < 6; i++)
        if (meta[i][1]) BASIN_TRY(basin_bundle_meta_set(bundle, meta[i][0], meta[i][1], error));
    return basin_bundle_write_safetensors(path, bundle, error);
}

/* Sizes from the tensors' shapes, before the arrays are checked against them. */
static void read_sizes(basin_graphset *set, const basin_bundle *bundle) {
    struct {
        const char *name;
        int axis;
        int64_t *size;
    } want[] = {{"node_start", 0, &set->graphs},
                {"edge", 0, &set->edges},
                {"node_attribute", 1, &set->node_attributes},
                {"node_label", 1, &set->node_labels},
                {"edge_attribute", 1, &set->edge_attributes},
                {"edge_label", 1, &set->edge_labels},
                {"class_value", 0, &set->classes},
                {"target", 1, &set->targets},
                {"id", 0, &set->id_bytes}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const basin_tensor *t = basin_bundle_find(bundle, want[i].name);
        if (t && t->shape.rank > want[i].axis) *want[i].size = t->shape.dim[want[i].axis];
    }
    set->graphs--;
}

static basin_status check_starts(const int64_t *start, int64_t graphs, int64_t total,
                                 const char *path, const char *name, basin_error *error) {
    if (basin_starts_rise(start, graphs, total)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' does not rise from 0 to %lld", path, name,
                      (long long)total);
}

/* Attributes are finite, values too or not known, and labels no more columns than an encoding has.
 */
static basin_status check_columns(const basin_graphset *s, const char *path, basin_error *error) {
    const struct {
        const char *name;
        const float *number;
        int64_t count;
    } real[] = {{"node_attribute", s->node_attribute, s->nodes * s->node_attributes},
                {"edge_attribute", s->edge_attribute, s->edges * s->edge_attributes},
                {"target", s->target, s->graphs * s->targets}};
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; real[i].number && k < real[i].count; k++)
            if (!isfinite(real[i].number[k]) && !(i == 2 && isnan(real[i].number[k])))
                return basin_fail(error, BASIN_BAD_FILE,
                                  "%s: '%s' has %g at element %lld; expected finite numbers", path,
                                  real[i].name, (double)real[i].number[k], (long long)k);
    if (s->node_labels <= BASIN_MAX_LABELS && s->edge_labels <= BASIN_MAX_LABELS) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_FILE,
        "%s: %lld columns of node labels and %lld of edge labels; expected at most %d", path,
        (long long)s->node_labels, (long long)s->edge_labels, BASIN_MAX_LABELS);
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
    int64_t items = s->task == BASIN_NODE_CLASSES ? s->nodes : s->graphs;
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
    return BASIN_OK;
}

static basin_status find_parts(basin_graphset *set, basin_error *error) {
    part list[PARTS];
    list_parts(list, set);
    for (int i = 0; i < PARTS; i++) {
        const basin_tensor *t;
        if (list[i].optional && !basin_bundle_find(set->file, list[i].name)) continue;
        BASIN_TRY(basin_bundle_expect(&t, set->file, list[i].name, list[i].dtype,
                                      shape_of(&list[i]), error));
        *list[i].data = t->data;
    }
    return BASIN_OK;
}

/* Each is compared, their sum might overflow. */
bool basin_graphset_is_split(const basin_graphset *set) {
    int64_t left = set->graphs;
    for (int i = 0; i < 3; i++) {
        if (set->split[i] < 0 || set->split[i] > left) return false;
        left -= set->split[i];
    }
    return !left || left == set->graphs;
}

static basin_status read_split(basin_graphset *set, const char *split, const char *path,
                               basin_error *error) {
    const char *at = split;
    bool good = true;
    if (!split) return BASIN_OK;
    for (int i = 0; i < 3; i++) good = good && basin_integer_read(&set->split[i], &at);
    if (good && !*at && basin_graphset_is_split(set)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: a split into %s of %lld graphs", path, split,
                      (long long)set->graphs);
}

/* A set may have no array of nodes, so that nothing else confirms their number. */
static basin_status set_nodes(basin_graphset *set, int64_t nodes, const char *path,
                              basin_error *error) {
    if (nodes < 0 || nodes > INT32_MAX)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %lld nodes; expected 0 to %d", path,
                          (long long)nodes, INT32_MAX);
    set->nodes = nodes;
    return basin_memory_check(16.0 * (double)nodes, 0, path, BASIN_NO_MEMORY, error);
}

static basin_status read_packed(basin_graphset *set, basin_bundle *bundle, const char *path,
                                basin_error *error) {
    const char *task = basin_bundle_meta(bundle, "task"), *name = basin_bundle_meta(bundle, "name");
    const char *split = basin_bundle_meta(bundle, "split");
    const basin_tensor *start = basin_bundle_find(bundle, "node_start");
    for (int i = 0; i < 3; i++)
        if (task && !strcmp(task, task_name[i])) set->task = (basin_graphs_target)i;
    const char *columns = basin_bundle_meta(bundle, "columns");
    if (name) snprintf(set->name, sizeof set->name, "%s", name);
    if (columns && !(set->columns = basin_string_copy(columns)))
        return basin_fail_memory(error, path);
    set->binary = basin_bundle_meta(bundle, "binary") != NULL;
    read_sizes(set, bundle);
    if (start && set->graphs < 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: has no graphs: 'node_start' has no two entries", path);
    BASIN_TRY(read_split(set, split, path, error));
    if (start && start->dtype == BASIN_I64 && start->shape.rank == 1)
        BASIN_TRY(set_nodes(set, ((const int64_t *)start->data)[set->graphs], path, error));
    BASIN_TRY(find_parts(set, error));
    BASIN_TRY(check_numbers(set, path, error));
    return check_columns(set, path, error);
}

/* ---- reading whatever it is ---- */

basin_status basin_graphset_from_bundle(basin_graphset *set, basin_bundle *bundle, const char *path,
                                        basin_error *error) {
    const char *format = basin_bundle_meta(bundle, "format");
    if (!format || strcmp(format, FORMAT) != 0) {
        BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *own = bundle;
        return basin_graphset_from_zinc(set, own, error);
    }
    *set = (basin_graphset){.file = bundle};
    BASIN_TRY_OR(read_packed(set, bundle, path, error), basin_graphset_free(set));
    return BASIN_OK;
}

/* Whether a file holds tensors: npz by its name, since TUDatasets are also zip files; or a header's
 * length in eight bytes followed by JSON, whatever the file is called. */
static basin_status is_bundle(bool *is, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    *is = false;
    if (basin_map_open(&map, path, NULL)) return BASIN_OK;
    *is = basin_text_ends(path, ".npz") || (map.size >= 9 && map.data[8] == '{');
    return basin_packed_refuse(map.data, map.size, path, error);
}

static basin_status read_any(basin_graphset *set, const char *path, bool bare, basin_error *error) {
    basin_bundle *bundle;
    bool is;
    *set = (basin_graphset){0};
    BASIN_TRY(is_bundle(&is, path, error));
    if (!is) return basin_graphset_open_tu(set, path, bare, error);
    BASIN_TRY(basin_bundle_read_numbers(&bundle, path, error));
    return basin_graphset_from_bundle(set, bundle, path, error);
}

basin_status basin_graphset_read(basin_graphset *set, const char *path, basin_error *error) {
    return read_any(set, path, false, error);
}

basin_status basin_graphset_read_bare(basin_graphset *set, const char *path, basin_error *error) {
    return read_any(set, path, true, error);
}
