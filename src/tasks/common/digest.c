/* Digests inside files of tensors; see digest.h. */
#include "tasks/common/digest.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/hash.h"

static const char key[] = "basin.digests";

/* ---- lines ---- */

static uint64_t hash_text(uint64_t hash, const char *text) {
    return basin_hash_bytes(hash, text, strlen(text) + 1);
}

/* A sum, so that the order does not count. */
static uint64_t hash_meta(const basin_bundle *bundle) {
    uint64_t sum = 0;
    const char *name, *value;
    for (size_t i = 0; (name = basin_bundle_meta_at(bundle, i, &value)); i++)
        if (strcmp(name, key) != 0) sum += hash_text(hash_text(BASIN_HASH_START, name), value);
    return sum;
}

/* "F32 [2, 3] 0123456789abcdef wk"; NULL without memory. */
static char *tensor_line(const char *name, const basin_tensor *t) {
    basin_memory_file memory = {0};
    FILE *file = basin_memory_file_open(&memory);
    if (!file) return NULL;
    fprintf(file, "%s %s %016" PRIx64 " %s\n", basin_dtype_name(t->dtype),
            basin_shape_text(t->shape),
            basin_hash_words(BASIN_HASH_START, t->data, basin_tensor_bytes(t)), name);
    return basin_memory_file_close(&memory);
}

basin_status basin_bundle_digest(basin_bundle *bundle, basin_error *error) {
    basin_memory_file memory = {0};
    FILE *file = basin_memory_file_open(&memory);
    for (size_t i = 0; file && i < basin_bundle_count(bundle); i++) {
        BASIN_FREE_AT_EXIT char *line =
            tensor_line(basin_bundle_name(bundle, i), basin_bundle_at(bundle, i));
        if (!line || fputs(line, file) < 0) break;
    }
    if (file) fprintf(file, "metadata %016" PRIx64, hash_meta(bundle));
    BASIN_FREE_AT_EXIT char *text = file ? basin_memory_file_close(&memory) : NULL;
    if (!text) return basin_fail_memory(error, "digests");
    return basin_bundle_meta_set(bundle, key, text, error);
}

/* ---- comparing ---- */

static basin_status damaged(const basin_bundle *bundle, const char *what, const char *name,
                            basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %s%.100s differs from its digest: the file is damaged, or was changed "
                      "by a program that does not know of digests",
                      basin_bundle_path(bundle), what, name);
}

/* Whether the line is there: *at is where it is expected, and becomes the next one's place. */
static bool take_line(const char **at, const char *lines, const char *line) {
    size_t length = strlen(line);
    const char *found = strncmp(*at, line, length) ? strstr(lines, line) : *at;
    if (!found || (found > lines && found[-1] != '\n')) return false;
    *at = found + length;
    return true;
}

basin_status basin_bundle_check(const basin_bundle *bundle, basin_error *error) {
    const char *lines = basin_bundle_meta(bundle, key), *at = lines;
    char last[40];
    size_t found = 0, tensors = basin_bundle_count(bundle);
    if (!lines) return BASIN_OK;
    for (size_t i = 0; i < tensors; i++) {
        const char *name = basin_bundle_name(bundle, i);
        BASIN_FREE_AT_EXIT char *line = tensor_line(name, basin_bundle_at(bundle, i));
        if (!line) return basin_fail_memory(error, "digests");
        if (!take_line(&at, lines, line)) return damaged(bundle, "tensor ", name, error);
    }
    for (const char *p = lines; (p = strchr(p, '\n')); p++) found++;
    if (found != tensors) return damaged(bundle, "the list of tensors", "", error);
    snprintf(last, sizeof last, "metadata %016" PRIx64, hash_meta(bundle));
    const char *end = strrchr(lines, '\n');
    if (strcmp(end ? end + 1 : lines, last) == 0) return BASIN_OK;
    return damaged(bundle, "the metadata", "", error);
}

bool basin_bundle_has_digests(const basin_bundle *bundle) {
    return basin_bundle_meta(bundle, key) != NULL;
}

basin_status basin_model_read(basin_bundle **bundle, const char *path, basin_error *error) {
    BASIN_TRY(basin_bundle_read(bundle, path, error));
    BASIN_TRY_OR(basin_bundle_check(*bundle, error), (basin_bundle_free(*bundle), *bundle = NULL));
    return BASIN_OK;
}
