/* Folds of cross-validation: stratified ones, and those that others published as index files. */
#include <dirent.h>
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

static basin_status no_memory(basin_error *error) { return basin_fail_memory(error, "folds"); }

/* Deals `count` items to `parts` like cards, class by class, each class in a random order; who is
 * dealt to first goes on where the class before stopped, so parts differ by one at most. */
static basin_status deal(int32_t *part, const int64_t *item, const int32_t *class_of, int64_t count,
                         int64_t parts, uint64_t seed, uint64_t stream, basin_error *error) {
    int64_t *order = basin_array_new((size_t)count, sizeof *order);
    if (!order) return no_memory(error);
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
    free(order);
    return BASIN_OK;
}

basin_status basin_folds_stratified(int32_t *fold, const int32_t *class_of, int64_t count,
                                    int64_t folds, uint64_t seed, basin_error *error) {
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

static basin_status folds_room(basin_folds *folds, int64_t number, basin_error *error) {
    *folds = (basin_folds){.folds = number, .fold = calloc((size_t)number, sizeof *folds->fold)};
    return folds->fold ? BASIN_OK : no_memory(error);
}

/* Moves a stratified share of the training items to validation. */
static basin_status part_inner(basin_fold *f, const int32_t *class_of, double inner, uint64_t seed,
                               int64_t number, basin_error *error) {
    int64_t n = f->count[0], parts = inner > 0 ? (int64_t)floor(1 / inner + 0.5) : 0, kept = 0;
    if (parts < 2 || n < parts) return BASIN_OK;
    int32_t *part = basin_array_new((size_t)n, sizeof *part);
    f->item[1] = basin_array_new((size_t)n, sizeof *f->item[1]);
    basin_status status = part && f->item[1] ? BASIN_OK : no_memory(error);
    if (!status)
        status = deal(part, f->item[0], class_of, n, parts, seed,
                      STREAM_INNER + ((uint64_t)number << 8), error);
    for (int64_t i = 0; i < n && !status; i++)
        if (part[i])
            f->item[0][kept++] = f->item[0][i];
        else
            f->item[1][f->count[1]++] = f->item[0][i];
    if (!status) f->count[0] = kept;
    free(part);
    return status;
}

basin_status basin_fold_part(basin_fold *fold, const int32_t *class_of, double inner, uint64_t seed,
                             basin_error *error) {
    return part_inner(fold, class_of, inner, seed, 0, error);
}

basin_status basin_folds_new(basin_folds *folds, const int32_t *class_of, int64_t count,
                             int64_t number, double inner, uint64_t seed, basin_error *error) {
    *folds = (basin_folds){0};
    int32_t *part = basin_array_new((size_t)count, sizeof *part);
    if (!part) return no_memory(error);
    basin_status status = basin_folds_stratified(part, class_of, count, number, seed, error);
    if (!status) status = folds_room(folds, number, error);
    for (int64_t n = 0; n < number && !status; n++) {
        basin_fold *f = &folds->fold[n];
        f->item[0] = basin_array_new((size_t)count, sizeof *f->item[0]);
        f->item[2] = basin_array_new((size_t)count, sizeof *f->item[2]);
        if (!f->item[0] || !f->item[2]) status = no_memory(error);
        for (int64_t i = 0; i < count && !status; i++) {
            int to = part[i] == n ? 2 : 0;
            f->item[to][f->count[to]++] = i;
        }
        if (!status) status = part_inner(f, class_of, inner, seed, n, error);
    }
    free(part);
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
        void *data = *item;
        if (!basin_array_reserve(&data, &capacity, (size_t)*length + 1, sizeof **item))
            return no_memory(error);
        *item = data;
        (*item)[(*length)++] = value;
        at = end;
    }
}

static basin_status open_text(FILE **file, const char *path, basin_error *error) {
    int fd;
    size_t size;
    BASIN_TRY(basin_file_open(&fd, &size, path, error));
    *file = fdopen(fd, "r");
    if (*file) return BASIN_OK;
    close(fd);
    return no_memory(error);
}

/* A file with a line a fold, or (`whole`) all lines for one fold. */
static basin_status read_file(basin_folds *folds, int part, const char *path, int64_t whole,
                              int64_t count, basin_error *error) {
    FILE *file;
    basin_status status = open_text(&file, path, error);
    if (status) return status;
    char *line = NULL;
    size_t size = 0;
    int64_t number = 0;
    while (!status && getline(&line, &size, file) >= 0) {
        int64_t to = whole >= 0 ? whole : number;
        number++;
        if (whole < 0 && strspn(line, " \t\r\n") == strlen(line)) continue;
        if (to >= folds->folds)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: more than %lld folds", path,
                                (long long)folds->folds);
        else
            status = read_numbers(&folds->fold[to].item[part], &folds->fold[to].count[part], line,
                                  count, path, number, error);
    }
    free(line);
    fclose(file);
    return status;
}

static int64_t count_lines(const char *path) {
    FILE *file;
    char *line = NULL;
    size_t size = 0;
    int64_t lines = 0;
    if (open_text(&file, path, NULL)) return 0;
    while (getline(&line, &size, file) >= 0)
        if (strspn(line, " \t\r\n") < strlen(line)) lines++;
    free(line);
    fclose(file);
    return lines;
}

static basin_status read_index(basin_folds *folds, const char *path, int64_t count,
                               basin_error *error) {
    static const char *const name[3] = {"train", "val", "test"};
    char full[4096];
    snprintf(full, sizeof full, "%s_test.index", path);
    int64_t number = count_lines(full);
    if (!number)
        return basin_fail(
            error, BASIN_IO,
            "%s: no such index file; wanted NAME of NAME_test.index, or a folder with "
            "test_idx-1.txt",
            full);
    basin_status status = folds_room(folds, number, error);
    for (int i = 0; i < 3 && !status; i++) {
        snprintf(full, sizeof full, "%s_%s.index", path, name[i]);
        status = read_file(folds, i, full, -1, count, error);
    }
    return status;
}

static basin_status read_folder(basin_folds *folds, const char *path, int64_t count,
                                basin_error *error) {
    char full[4096];
    int64_t number = 0;
    struct stat info;
    for (;; number++) {
        snprintf(full, sizeof full, "%s/test_idx-%lld.txt", path, (long long)number + 1);
        if (stat(full, &info)) break;
    }
    if (!number) return basin_fail(error, BASIN_IO, "%s: no such file", full);
    basin_status status = folds_room(folds, number, error);
    for (int64_t f = 0; f < number && !status; f++) {
        snprintf(full, sizeof full, "%s/test_idx-%lld.txt", path, (long long)f + 1);
        status = read_file(folds, 2, full, f, count, error);
        snprintf(full, sizeof full, "%s/train_idx-%lld.txt", path, (long long)f + 1);
        if (!status) status = read_file(folds, 0, full, f, count, error);
    }
    return status;
}

/* No item twice in a fold: what is trained on is not tested on. */
static basin_status check_disjoint(const basin_folds *folds, int64_t count, const char *path,
                                   basin_error *error) {
    char *seen = basin_array_new((size_t)count, 1);
    if (!seen) return no_memory(error);
    basin_status status = BASIN_OK;
    for (int64_t f = 0; f < folds->folds && !status; f++) {
        memset(seen, 0, (size_t)count);
        for (int i = 0; i < 3 && !status; i++)
            for (int64_t k = 0; k < folds->fold[f].count[i] && !status; k++)
                if (seen[folds->fold[f].item[i][k]]++)
                    status =
                        basin_fail(error, BASIN_BAD_FILE, "%s: fold %lld has graph %lld twice",
                                   path, (long long)f + 1, (long long)folds->fold[f].item[i][k]);
        if (!status && (!folds->fold[f].count[0] || !folds->fold[f].count[2]))
            status = basin_fail(error, BASIN_BAD_FILE,
                                "%s: fold %lld has %lld graphs for training and %lld for the test",
                                path, (long long)f + 1, (long long)folds->fold[f].count[0],
                                (long long)folds->fold[f].count[2]);
    }
    free(seen);
    return status;
}

basin_status basin_folds_read(basin_folds *folds, const char *path, const int32_t *class_of,
                              int64_t count, double inner, uint64_t seed, basin_error *error) {
    struct stat info;
    *folds = (basin_folds){0};
    bool folder = !stat(path, &info) && S_ISDIR(info.st_mode);
    basin_status status =
        folder ? read_folder(folds, path, count, error) : read_index(folds, path, count, error);
    if (!status) status = check_disjoint(folds, count, path, error);
    for (int64_t f = 0; f < folds->folds && !status; f++)
        if (!folds->fold[f].count[1])
            status = part_inner(&folds->fold[f], class_of, inner, seed, f, error);
    if (status) basin_folds_free(folds);
    return status;
}
