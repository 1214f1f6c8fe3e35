/* Folds of cross-validation: stratified, by groups, and published ones in index files. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/try.h"
#include "basin/random.h"
#include "tasks/graphs/set/graphset.h"

enum { STREAM_FOLDS = 42, STREAM_INNER = 43 };

void basin_folds_free(basin_folds *folds) {
    for (int64_t f = 0; f < folds->folds; f++)
        for (int i = 0; i < 3; i++) free(folds->fold[f].item[i]);
    free(folds->fold);
    *folds = (basin_folds){0};
}

static basin_status add_fold(basin_folds *folds, basin_error *error) {
    size_t capacity = (size_t)folds->folds;
    BASIN_TRY(BASIN_GROW(&folds->fold, &capacity, folds->folds + 1, "folds", error));
    folds->fold[folds->folds++] = (basin_fold){0};
    return BASIN_OK;
}

/* ---- by class ---- */

static int64_t group_of(const int64_t *group, int64_t item) { return group ? group[item] : item; }

/* Deals `count` items to `parts`, class by class, each class in a random order, each item to the
 * smallest part; with the others of its group, unless that has more than `largest` items, which get
 * part -1. Without groups that is like cards: parts differ by at most one item. */
static basin_status deal(int32_t *part, const int64_t *item, const int32_t *class_of,
                         const int64_t *group, int64_t count, int64_t parts, int64_t largest,
                         uint64_t seed, uint64_t stream, basin_error *error) {
    int64_t items = count;
    int32_t max = -1;
    for (int64_t i = 0; item && i < count; i++) items = basin_int_max(items, item[i] + 1);
    BASIN_SCRATCH_RAW(int64_t, order, count, "folds", error);
    BASIN_SCRATCH(int64_t, size, items + parts, "folds", error); /* of groups, of parts */
    BASIN_SCRATCH(int32_t, dealt, items, "folds", error);        /* 1 + the part of a group */
    int64_t *filled = size + items;
    basin_random_permutation(order, (size_t)count, seed, stream);
    for (int64_t i = 0; i < count; i++) {
        int64_t own = item ? item[i] : i;
        size[group_of(group, own)]++;
        if (class_of && class_of[own] > max) max = class_of[own];
    }
    for (int32_t c = -1; c <= max; c++)
        for (int64_t i = 0; i < count; i++) {
            int64_t own = item ? item[order[i]] : order[i], g = group_of(group, own), to = 0;
            if ((class_of ? class_of[own] : -1) != c) continue;
            for (int64_t k = 1; k < parts && !dealt[g]; k++) to = filled[k] < filled[to] ? k : to;
            if (!dealt[g] && size[g] <= largest) dealt[g] = (int32_t)to + 1, filled[to] += size[g];
            part[order[i]] = dealt[g] - 1;
        }
    return BASIN_OK;
}

/* How many items are in groups of at most `largest`: where large groups hold many, the others make
 * fewer parts, of the size that was asked for. */
static basin_status count_dealt(int64_t *dealt, const int64_t *item, const int64_t *group,
                                int64_t count, int64_t largest, basin_error *error) {
    int64_t max = 0;
    for (int64_t i = 0; i < count; i++) max = basin_int_max(max, group_of(group, item[i]));
    BASIN_SCRATCH(int64_t, size, max + 1, "folds", error);
    for (int64_t i = 0; i < count; i++) size[group_of(group, item[i])]++;
    *dealt = 0;
    for (int64_t i = 0; i < count; i++) *dealt += size[group_of(group, item[i])] <= largest;
    return BASIN_OK;
}

basin_status basin_fold_part(basin_fold *f, const int32_t *class_of, const int64_t *group,
                             double inner, uint64_t seed, int64_t number, int64_t which,
                             basin_error *error) {
    int64_t n = f->count[0], parts = inner > 0 ? (int64_t)floor(1 / inner + 0.5) : 0, kept = 0;
    if (parts < 2 || n < parts) return BASIN_OK;
    BASIN_SCRATCH_RAW(int32_t, part, n, "folds", error);
    BASIN_TRY(BASIN_NEW_RAW(&f->item[1], n, "folds", error));
    int64_t dealt, largest = n / parts;
    BASIN_TRY(count_dealt(&dealt, f->item[0], group, n, largest, error));
    parts = basin_int_max((dealt * parts + n / 2) / n, 1);
    BASIN_TRY(deal(part, f->item[0], class_of, group, n, parts, largest, seed,
                   STREAM_INNER + ((uint64_t)number << 8), error));
    for (int64_t i = 0; i < n; i++)
        if (part[i] != which % parts)
            f->item[0][kept++] = f->item[0][i];
        else
            f->item[1][f->count[1]++] = f->item[0][i];
    f->count[0] = kept;
    return BASIN_OK;
}

static basin_status deal_classes(basin_folds *folds, const basin_folds_options *o,
                                 basin_error *error) {
    int64_t count = o->count, number = o->folds;
    BASIN_SCRATCH_RAW(int32_t, part, count, "folds", error);
    if (number != 1 && (number < 2 || number > count))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld folds of %lld items; expected 2 to %lld folds", (long long)number,
                          (long long)count, (long long)count);
    BASIN_TRY(
        deal(part, NULL, o->class_of, o->copy, count, number, count, o->seed, STREAM_FOLDS, error));
    for (int64_t n = 0; n < number; n++) {
        BASIN_TRY(add_fold(folds, error));
        basin_fold *f = &folds->fold[n];
        for (int i = 0; i < 3; i += 2) BASIN_TRY(BASIN_NEW_RAW(&f->item[i], count, "folds", error));
        for (int64_t i = 0; i < count; i++) {
            if (number == 1 || part[i] != n) f->item[0][f->count[0]++] = i;
            if (part[i] == n) f->item[2][f->count[2]++] = i;
        }
    }
    return BASIN_OK;
}

/* ---- by group ---- */

typedef struct grouped {
    int64_t group, item, size, first; /* size and first item of its group */
} grouped;

static int by_group(const void *a, const void *b) {
    const grouped *x = a, *y = b;
    return x->group != y->group ? BASIN_COMPARE(x->group, y->group)
                                : BASIN_COMPARE(x->item, y->item);
}

/* Large groups first; ties go to the group that begins last, as in DeepChem. */
static int by_size(const void *a, const void *b) {
    const grouped *x = a, *y = b;
    if (x->size != y->size) return BASIN_COMPARE(y->size, x->size);
    return x->first != y->first ? BASIN_COMPARE(y->first, x->first)
                                : BASIN_COMPARE(x->item, y->item);
}

static void group_items(grouped *list, const int64_t *group, int64_t count, bool ordered) {
    for (int64_t i = 0; i < count; i++) list[i] = (grouped){group_of(group, i), i, 1, i};
    qsort(list, (size_t)count, sizeof *list, by_group);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && list[end].group == list[i].group;) end++;
        for (int64_t k = i; k < end; k++) list[k].size = end - i, list[k].first = list[i].item;
    }
    if (!ordered) qsort(list, (size_t)count, sizeof *list, by_size);
}

static basin_status deal_groups(basin_folds *folds, const basin_folds_options *o,
                                basin_error *error) {
    int64_t count = o->count, number = o->folds;
    BASIN_SCRATCH_RAW(grouped, list, count, "folds", error);
    bool ordered = o->kind == BASIN_FOLDS_ORDERED; /* copies then are with the first */
    group_items(list, ordered ? o->copy : o->group, count, ordered);
    for (int64_t n = 0; n < number; n++) {
        BASIN_TRY(add_fold(folds, error));
        for (int part = 0; part < 3; part += number == 1 ? 1 : 2)
            BASIN_TRY(BASIN_NEW_RAW(&folds->fold[n].item[part], count, "folds", error));
    }
    basin_fold *f = folds->fold;
    for (int64_t i = 0; i < count; i += list[i].size) {
        int64_t size = list[i].size, to = 0;
        for (int64_t n = 1; n < number; n++) to = f[n].count[2] < f[to].count[2] ? n : to;
        bool full = f->count[0] + size > count * 8 / 10;
        int part = !full ? 0 : f->count[0] + f->count[1] + size > count * 9 / 10 ? 2 : 1;
        for (int64_t k = i; k < i + size; k++)
            for (int64_t n = 0; n < number; n++) {
                int where = number == 1 ? part : n == to ? 2 : 0;
                f[n].item[where][f[n].count[where]++] = list[k].item;
            }
    }
    for (int64_t n = 0; n < number; n++)
        if (!f[n].count[0] || !f[n].count[2])
            return basin_fail(
                error, BASIN_BAD_VALUE,
                "%lld graphs in %lld fold%s: too few graphs, or too many in one group, "
                "to divide by groups",
                (long long)count, (long long)number, number == 1 ? "" : "s");
    return BASIN_OK;
}

/* ---- from files ---- */

/* Adds the numbers of a line, 0 .. count - 1, to a part of a fold. */
static basin_status add_numbers(basin_fold *f, int part, const char *line, int64_t count,
                                const char *path, int64_t number, basin_error *error) {
    size_t capacity = (size_t)f->count[part];
    for (const char *at = line;;) {
        at += strspn(at, ", \t\r\n");
        if (!*at) return BASIN_OK;
        char *end;
        long long value = strtoll(at, &end, 10);
        int shown = (int)strcspn(at, ", \t\r\n");
        if (end == at || value < 0 || value >= count)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s, line %lld: '%.*s'; expected a number from 0 to %lld", path,
                              (long long)number, shown < 20 ? shown : 20, at, (long long)count - 1);
        BASIN_TRY(BASIN_GROW(&f->item[part], &capacity, f->count[part] + 1, "folds", error));
        f->item[part][f->count[part]++] = value;
        at = end;
    }
}

static void close_file(FILE **file) {
    if (*file) fclose(*file);
}

/* A file with one line per fold, or all lines for one fold (`whole`, from 0; else -1). Folds are
 * added for test items, which are read first. */
static basin_status read_file(basin_folds *folds, int part, const char *path, int64_t whole,
                              int64_t count, basin_error *error) {
    int fd;
    size_t size, room = 0;
    BASIN_FREE_AT_EXIT char *line = NULL;
    BASIN_TRY(basin_file_open(&fd, &size, path, error));
    BASIN_AT_EXIT(close_file) FILE *file = fdopen(fd, "r");
    if (!file) return close(fd), basin_fail_memory(error, "folds");
    for (int64_t number = 1; getline(&line, &room, file) >= 0; number++) {
        int64_t to = whole >= 0 ? whole : number - 1;
        if (whole < 0 && !line[strspn(line, " \t\r\n")]) continue;
        if (part == 2 && to == folds->folds) BASIN_TRY(add_fold(folds, error));
        if (to >= folds->folds)
            return basin_fail(error, BASIN_BAD_FILE, "%s: more than %lld folds", path,
                              (long long)folds->folds);
        BASIN_TRY(add_numbers(&folds->fold[to], part, line, count, path, number, error));
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

static basin_status read_folds(basin_folds *folds, const basin_folds_options *o,
                               basin_error *error) {
    static const struct {
        const char *name;
        int part;
    } file[] = {{"test", 2}, {"train", 0}, {"val", 1}};
    struct stat info;
    char full[4096];
    bool folder = !stat(o->path, &info) && S_ISDIR(info.st_mode), more = true;
    for (int64_t f = 0; more; f++)
        for (int i = 0; i < (folder ? 2 : 3) && more; i++) {
            snprintf(full, sizeof full, folder ? "%s/%s_idx-%lld.txt" : "%s_%s.index", o->path,
                     file[i].name, (long long)f + 1);
            more = i || !access(full, F_OK);
            if (more)
                BASIN_TRY(read_file(folds, file[i].part, full, folder ? f : -1, o->count, error));
            if (!folder && i == 2) more = false;
        }
    if (!folds->folds)
        return basin_fail(error, BASIN_IO,
                          "%s: no folds; expected NAME of NAME_test.index, or a folder with "
                          "test_idx-1.txt",
                          o->path);
    BASIN_SCRATCH_RAW(char, seen, o->count, "folds", error);
    for (int64_t f = 0; f < folds->folds; f++) {
        memset(seen, 0, (size_t)o->count);
        BASIN_TRY(check_fold(&folds->fold[f], f + 1, seen, o->path, error));
    }
    return BASIN_OK;
}

basin_status basin_groups_first(int64_t *first, const int64_t *group, int64_t count,
                                basin_error *error) {
    BASIN_SCRATCH_RAW(grouped, list, count, "folds", error);
    group_items(list, group, count, true);
    for (int64_t i = 0; i < count; i++) first[list[i].item] = list[i].first;
    return BASIN_OK;
}

/* Folds, then the validation part of those that have none: items like these of the test. */
static basin_status make(basin_folds *folds, const basin_folds_options *o, basin_error *error) {
    bool read = o->kind == BASIN_FOLDS_READ, classes = read || o->kind == BASIN_FOLDS_STRATIFIED;
    BASIN_SCRATCH_RAW(int64_t, first, o->count, "folds", error);
    BASIN_TRY((read ? read_folds : classes ? deal_classes : deal_groups)(folds, o, error));
    BASIN_TRY(basin_groups_first(first, classes ? o->copy : o->group, o->count, error));
    for (int64_t f = 0; f < folds->folds; f++)
        if (read ? !folds->fold[f].count[1] : folds->folds > 1)
            BASIN_TRY(basin_fold_part(&folds->fold[f], classes ? o->class_of : NULL, first,
                                      o->inner, o->seed, f, 0, error));
    return BASIN_OK;
}

basin_status basin_folds_new(basin_folds *folds, const basin_folds_options *options,
                             basin_error *error) {
    *folds = (basin_folds){0};
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_folds_options", error));
    BASIN_TRY_OR(make(folds, options, error), basin_folds_free(folds));
    return BASIN_OK;
}
