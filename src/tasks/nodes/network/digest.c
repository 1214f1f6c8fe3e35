/* Digests of what a network holds, and of the files that it came from; see network.h. */
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "tasks/nodes/network/network.h"

/* ---- of a network ---- */

static size_t add_line(char *text, size_t at, const char *what, int64_t count, uint64_t hash) {
    if (at >= BASIN_DIGEST_LINES) return at;
    return at + (size_t)snprintf(text + at, BASIN_DIGEST_LINES - at, "%s: %lld, digest %016llx\n",
                                 what, (long long)count, (unsigned long long)hash);
}

static uint64_t hash_of(const void *data, int64_t count, size_t bytes) {
    return data ? basin_hash_words(BASIN_HASH_START, data, (size_t)count * bytes) : 0;
}

static uint64_t hash_names(const basin_names *names) {
    uint64_t hash = hash_of(names->at, names->count, sizeof *names->at);
    return names->count ? basin_hash_words(hash, names->text, names->at[names->count]) : 0;
}

void basin_network_digest(char text[BASIN_DIGEST_LINES], const basin_network *n) {
    int64_t N = n->nodes, F = n->facts.count;
    char what[120];
    size_t at = add_line(text, 0, "ids of nodes", N, hash_names(&n->id));
    at = add_line(text, at, "names of columns", n->features, hash_names(&n->column));
    at = add_line(text, at, "features", n->features,
                  hash_of(n->feature, N * n->features, sizeof *n->feature));
    at = add_line(text, at, "labels", N, hash_of(n->label, N, sizeof *n->label));
    uint64_t masks = hash_of(n->train, n->splits * N, 1) ^ hash_of(n->val, n->splits * N, 1) * 3 ^
                     hash_of(n->test, n->splits * N, 1) * 5;
    at = add_line(text, at, "splits", n->splits, masks);
    for (int r = 0; r < n->relations; r++) {
        const basin_relation *relation = &n->relation[r];
        uint64_t hash = hash_of(relation->row, relation->row ? N + 1 : 0, sizeof *relation->row);
        hash ^= 3 * hash_of(relation->col, relation->edges, sizeof *relation->col);
        snprintf(what, sizeof what, "edges '%.80s'", relation->name);
        at = add_line(text, at, what, relation->edges, hash);
        snprintf(what, sizeof what, "amounts, times and kinds of '%.60s'", relation->name);
        hash = hash_of(relation->fact, relation->edges * F, sizeof *relation->fact);
        if (F) at = add_line(text, at, what, F, hash);
    }
}

/* ---- of files ---- */

static basin_status add_text(basin_digests *d, const char *first, const char *second,
                             basin_error *error) {
    size_t length = strlen(first) + strlen(second) + 4;
    BASIN_TRY(BASIN_GROW(&d->text, &d->room, d->size + length, "digests", error));
    d->size += (size_t)snprintf(d->text + d->size, length, "%s  %s\n", first, second);
    return BASIN_OK;
}

basin_status basin_digests_add(basin_digests *digests, const char *path, const void *data,
                               size_t size, basin_error *error) {
    char text[BASIN_SHA256_TEXT];
    if (!digests) return BASIN_OK;
    return add_text(digests, basin_sha256_print(text, data, size), path, error);
}

/* What shows whether a file is still the one that was read. */
static void print_state(char text[BASIN_SHA256_TEXT], const char *path) {
    struct stat found = {0};
    if (stat(path, &found)) found.st_size = -1;
    snprintf(text, BASIN_SHA256_TEXT, "?%lld.%lld.%ld", (long long)found.st_size,
             (long long)found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

basin_status basin_digests_add_later(basin_digests *digests, const char *path, basin_error *error) {
    char text[BASIN_SHA256_TEXT];
    print_state(text, path);
    return add_text(digests, text, path, error);
}

basin_status basin_digests_finish(basin_digests *to, const basin_digests *from,
                                  basin_error *error) {
    for (const char *line = from->text, *end; line && *line; line = end + 1) {
        char first[BASIN_SHA256_TEXT], now[BASIN_SHA256_TEXT], path[4096];
        int length = (int)strcspn(line, " ");
        end = strchr(line, '\n');
        snprintf(first, sizeof first, "%.*s", length, line);
        snprintf(path, sizeof path, "%.*s", (int)(end - line) - length - 2, line + length + 2);
        print_state(now, path);
        bool later = *first == '?', same = !strcmp(first, now);
        if (later && (!same || basin_file_sha256(first, path, NULL)))
            snprintf(first, sizeof first, "changed-after-it-was-read");
        BASIN_TRY(add_text(to, first, path, error));
    }
    return BASIN_OK;
}
