/* The positions of a set or a part of it, in parallel over its graphs, kept in a cache folder under
 * a digest of the edges and of what was asked for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/library.h"
#include "base/memory.h"
#include "base/team/team.h"
#include "data/graphset/graphset.h"
#include "io/bundle.h"

/* Two 64-bit FNV-1a sums with different starts: a name for a cache entry, not a seal. */
typedef struct digest {
    uint64_t a, b;
} digest;

static void add_bytes(digest *d, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        d->a = (d->a ^ at[i]) * 0x100000001b3u;
        d->b = (d->b ^ at[i]) * 0x100000001b3u + (d->b >> 29);
    }
}

/* Graphs [first, end) of a set. */
typedef struct part {
    const basin_graphset *set;
    int64_t first, end;
} part;

static int64_t token_of(const basin_graphset *set, int64_t graph) {
    return set->node_start[graph] + graph;
}

/* Where they start within the part, so that a part is named as a set of these graphs would be. */
static void add_starts(digest *d, const int64_t *start, const part *p) {
    for (int64_t g = p->first; g <= p->end; g++) {
        int64_t within = start[g] - start[p->first];
        add_bytes(d, &within, sizeof within);
    }
}

static digest digest_of(const part *p, const basin_position_spec *spec) {
    const basin_graphset *set = p->set;
    digest d = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};
    int64_t edge = set->edge_start[p->first], edges = set->edge_start[p->end] - edge;
    int64_t head[6] = {1, spec->vectors, spec->walks, spec->with_cls, p->end - p->first, edges};
    add_bytes(&d, head, sizeof head);
    add_starts(&d, set->node_start, p);
    add_starts(&d, set->edge_start, p);
    add_bytes(&d, set->edge + 2 * edge, (size_t)edges * 2 * sizeof *set->edge);
    return d;
}

/* The entry's file; false where its name is too long. */
static bool cache_path(char *path, size_t size, const char *folder, const part *p,
                       const basin_position_spec *spec) {
    digest d = digest_of(p, spec);
    int n = snprintf(path, size, "%s/positions-%016llx%016llx.safetensors", folder,
                     (unsigned long long)d.a, (unsigned long long)d.b);
    return n >= 0 && (size_t)n < size;
}

/* A cache that cannot be read is computed again, so errors are none. */
static bool read_cache(basin_positions *p, const char *path) {
    struct stat info;
    if (stat(path, &info) || basin_safetensors_read(&p->file, path, NULL)) return false;
    const basin_tensor *t = basin_bundle_find(p->file, "positions");
    if (t && t->dtype == BASIN_F32 && t->shape.rank == 2 && t->shape.dim[0] == p->tokens &&
        t->shape.dim[1] == p->width) {
        p->value = t->data;
        return true;
    }
    basin_bundle_free(p->file);
    p->file = NULL;
    return false;
}

/* A cache that cannot be written is none; the run goes on without. */
static void write_cache(const basin_positions *p, const char *folder, const char *path) {
    basin_bundle *bundle;
    if (basin_bundle_new(&bundle, NULL)) return;
    basin_tensor t = basin_tensor_borrow(p->value, BASIN_F32, BASIN_SHAPE(p->tokens, p->width));
    if (!mkdir(folder, 0777) || errno == EEXIST) {
        if (!basin_bundle_add(bundle, "positions", &t, NULL))
            basin_safetensors_write(path, bundle, NULL);
    }
    basin_bundle_free(bundle);
}

/* A LAPACK that brings threads of its own (OpenBLAS) would cut each small graph among them, while
 * we have a thread a graph already: several times slower, and worse on busy cores. Other LAPACKs
 * do not have these functions. */
static int set_blas_threads(int threads) {
    void (*set)(int) = NULL;
    int (*get)(void) = NULL;
    void *found[2] = {basin_library_find(BASIN_LIBRARY_LAPACK, "openblas_set_num_threads"),
                      basin_library_find(BASIN_LIBRARY_LAPACK, "openblas_get_num_threads")};
    if (!found[0] || !found[1]) return threads;
    memcpy(&set, &found[0], sizeof set);
    memcpy(&get, &found[1], sizeof get);
    int before = get();
    if (before != threads) set(threads);
    return before;
}

typedef struct computing {
    const basin_positions *p;
    const part *of;
} computing;

static basin_status compute_graph(const void *context, int64_t i, basin_error *error) {
    const basin_positions *p = ((const computing *)context)->p;
    const part *of = ((const computing *)context)->of;
    const basin_graphset *set = of->set;
    int64_t g = of->first + i, first = set->edge_start[g];
    float *value = p->value + (token_of(set, g) - p->first) * p->width;
    basin_error own;
    basin_status status =
        basin_positions_of(value, &p->spec, set->node_start[g + 1] - set->node_start[g],
                           set->edge + 2 * first, set->edge_start[g + 1] - first, &own);
    if (!status) return BASIN_OK;
    return basin_fail(error, status, "graph %lld: %s", (long long)g, own.text);
}

static basin_status compute(basin_positions *p, const part *of, basin_error *error) {
    p->value = basin_array_new((size_t)p->tokens, (size_t)p->width * sizeof *p->value);
    if (!p->value)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the positions of %lld tokens",
                          (long long)p->tokens);
    int threads = p->spec.vectors > 0 ? set_blas_threads(1) : 0;
    computing all = {p, of};
    basin_status status = basin_team_try(compute_graph, &all, of->end - of->first, 8, error);
    if (p->spec.vectors > 0) set_blas_threads(threads);
    return status;
}

/* Room for a part's; false where there is nothing to compute. */
static bool begin(basin_positions *p, const part *of, const basin_position_spec *spec) {
    *p = (basin_positions){
        .spec = *spec, .first = token_of(of->set, of->first), .width = spec->vectors + spec->walks};
    p->tokens = token_of(of->set, of->end) - p->first;
    return p->width > 0;
}

basin_status basin_positions_new_part(basin_positions *positions, const basin_graphset *set,
                                      const basin_position_spec *spec, int64_t first, int64_t count,
                                      const char *cache, basin_error *error) {
    char path[4096] = "";
    part all = {set, 0, set->graphs}, of = {set, first, first + count};
    bool some = count < set->graphs;
    if (cache && some && begin(positions, &all, spec) &&
        cache_path(path, sizeof path, cache, &all, spec) && read_cache(positions, path))
        return BASIN_OK;
    if (!begin(positions, &of, spec)) return BASIN_OK;
    if (cache && !cache_path(path, sizeof path, cache, &of, spec)) cache = NULL;
    if (cache && read_cache(positions, path)) return BASIN_OK;
    basin_status status = compute(positions, &of, error);
    if (!status && cache) write_cache(positions, cache, path);
    if (status) basin_positions_free(positions);
    return status;
}

basin_status basin_positions_new(basin_positions *positions, const basin_graphset *set,
                                 const basin_position_spec *spec, const char *cache,
                                 basin_error *error) {
    return basin_positions_new_part(positions, set, spec, 0, set->graphs, cache, error);
}

void basin_positions_free(basin_positions *positions) {
    if (positions->file)
        basin_bundle_free(positions->file);
    else
        free(positions->value);
    *positions = (basin_positions){0};
}
