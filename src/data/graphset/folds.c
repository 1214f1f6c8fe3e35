/* Folds of cross-validation: stratified ones, and those that others published as index files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.h"
#include "basin/random.h"
#include "data/graphset/graphset.h"
#include "io/file.h"

enum { STREAM_FOLDS = 42, STREAM_INNER = 43 };

/* Deals `count` items to `parts` like cards, class by class, each class in a random order; who is
 * dealt to first goes on where the class before stopped, so parts differ by one at most. */
static basin_status deal(int32_t *part, const int64_t *item, const int32_t *class_of, int64_t count,
                         int64_t parts, uint64_t seed, uint64_t stream, basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *order = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&order, count, "folds", error));
    basin_random_permutation(order, (size_t)count, seed, stream);
    int32_t most = -1;
    for (int64_t i = 0; class_of && i < count; i++) {
        int32_t own = class_of[item ? item[i] : i];
        if (own > most) most = own;
    }
    int64_t next = 0;
    for (int32_t c = -1; c <= most; c++)
        for (int64_t i = 0; i < count; i++) {
            int32_t own = class_of ? class_of[item ? item[order[i]] : order[i]] : -1;
            if (own == c) part[order[i]] = (int32_t)(next++ % parts);
        }
    return BASIN_OK;
}

/* A fold number 0 .. folds - 1 for every item, each class spread evenly over the folds; items of
 * class -1 are spread as a class of their own. */
static basin_status deal_folds(int32_t *fold, const int32_t *class_of, int64_t count, int64_t folds,
                               uint64_t seed, basin_error *error) {
    if (folds < 2 || folds > count)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld folds of %lld items; wanted 2 to %lld",
                          (long long)folds, (long long)count, (long long)count);
    return deal(fold, NULL, class_of, count, folds, seed, STREAM_FOLDS, error);
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

/* Moves a stratified share of the training items to validation. */
static basin_status part_inner(basin_fold *f, const int32_t *class_of, double inner, uint64_t seed,
                               int64_t number, basin_error *error) {
    int64_t n = f->count[0], parts = inner > 0 ? (int64_t)floor(1 / inner + 0.5) : 0, kept = 0;
    BASIN_FREE_AT_EXIT int32_t *part = NULL;
    if (parts < 2 || n < parts) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&part, n, "folds", error));
    BASIN_TRY(BASIN_NEW_RAW(&f->item[1], n, "folds", error));
    BASIN_TRY(deal(part, f->item[0], class_of, n, parts, seed,
                   STREAM_INNER + ((uint64_t)number << 8), error));
    for (int64_t i = 0; i < n; i++)
        if (part[i])
            f->item[0][kept++] = f->item[0][i];
        else
            f->item[1][f->count[1]++] = f->item[0][i];
    f->count[0] = kept;
    return BASIN_OK;
}

basin_status basin_fold_part(basin_fold *fold, const int32_t *class_of, double inner, uint64_t seed,
                             basin_error *error) {
    return part_inner(fold, class_of, inner, seed, 0, error);
}

static basin_status make_folds(basin_folds *folds, const int32_t *class_of, int64_t count,
                               int64_t number, double inner, uint64_t seed, basin_error *error) {
    BASIN_FREE_AT_EXIT int32_t *part = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&part, count, "folds", error));
    if (number != 1) BASIN_TRY(deal_folds(part, class_of, count, number, seed, error));
    BASIN_TRY(folds_begin(folds, number, error));
    for (int64_t n = 0; n < number; n++) {
        basin_fold *f = &folds->fold[n];
        BASIN_TRY(BASIN_NEW_RAW(&f->item[0], count, "folds", error));
        BASIN_TRY(BASIN_NEW_RAW(&f->item[2], count, "folds", error));
        for (int64_t i = 0; i < count; i++) {
            if (number == 1 || part[i] != n) f->item[0][f->count[0]++] = i;
            if (number == 1 || part[i] == n) f->item[2][f->count[2]++] = i;
        }
        if (number > 1) BASIN_TRY(part_inner(f, class_of, inner, seed, n, error));
    }
    return BASIN_OK;
}

basin_status basin_folds_new(basin_folds *folds, const int32_t *class_of, int64_t count,
                             int64_t number, double inner, uint64_t seed, basin_error *error) {
    *folds = (basin_folds){0};
    basin_status status = make_folds(folds, class_of, count, number, inner, seed, error);
    if (status) basin_folds_free(folds);
    return status;
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
                              "%s, line %lld: '%.*s'; wanted a number from 0 to %lld", path,
                              (long long)number, shown < 20 ? shown : 20, at, (long long)count - 1);
        if (!basin_array_reserve((void **)item, &capacity, (size_t)*length + 1, sizeof **item))
            return basin_fail_memory(error, "folds");
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

/* A file with a line a fold, or (`whole`) all lines for one fold. */
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
        return basin_fail(
            error, BASIN_IO,
            "%s: no such index file; wanted NAME of NAME_test.index, or a folder with "
            "test_idx-1.txt",
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
    BASIN_FREE_AT_EXIT char *seen = NULL;
    BASIN_TRY((folder ? read_folder : read_index)(folds, path, count, error));
    BASIN_TRY(BASIN_NEW_RAW(&seen, count, "folds", error));
    for (int64_t f = 0; f < folds->folds; f++) {
        memset(seen, 0, (size_t)count);
        BASIN_TRY(check_fold(&folds->fold[f], f + 1, seen, path, error));
        if (!folds->fold[f].count[1])
            BASIN_TRY(part_inner(&folds->fold[f], class_of, inner, seed, f, error));
    }
    return BASIN_OK;
}

basin_status basin_folds_read(basin_folds *folds, const char *path, const int32_t *class_of,
                              int64_t count, double inner, uint64_t seed, basin_error *error) {
    *folds = (basin_folds){0};
    basin_status status = read_folds(folds, path, class_of, count, inner, seed, error);
    if (status) basin_folds_free(folds);
    return status;
}
