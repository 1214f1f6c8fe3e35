/* Opening a network, whatever its format: by the first bytes of the file, not by its name. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/sort.h"
#include "tasks/common/packed.h"
#include "tasks/nodes/network/journal.h"

/* npz or safetensors (what is neither is tables): a zip, or eight bytes of length, then a brace. */
static bool is_bundle(const void *data, size_t size) {
    const unsigned char *head = data;
    return size >= 9 && (!memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4) ||
                         (head[8] == '{' && head[7] == 0 && head[6] == 0));
}

static basin_status read_bundle(basin_network **network, const char *path,
                                const basin_network_options *options, basin_error *error) {
    basin_bundle *bundle;
    BASIN_TRY(basin_bundle_read(&bundle, path, error));
    if (basin_network_file_is(bundle)) return basin_network_file_read(network, bundle, error);
    basin_status status = basin_network_npz_read(network, bundle, options, error);
    basin_bundle_free(bundle);
    return status;
}

/* The bytes of a file: mapped, or read where they come from a pipe. */
typedef struct content {
    basin_map map;
    void *owned;
} content;

/* What came from a pipe is added to `files`, as it cannot be read again. */
static basin_status content_open(content *c, basin_digests *files, const char *path,
                                 const basin_network_options *o, basin_error *error) {
    *c = (content){0};
    size_t limit = o->memory ? o->memory : basin_memory_share();
    if (basin_stream_is(path)) {
        BASIN_TRY(basin_stream_read(&c->owned, &c->map.size, path, limit, error));
        c->map.data = c->owned;
        return basin_digests_add(files, path, c->map.data, c->map.size, error);
    }
    return basin_map_open(&c->map, path, error);
}

static void content_close(content *c) {
    if (!c->owned) basin_map_close(&c->map);
    free(c->owned);
}

/* The tables of one path: itself or, of a server's journal, two texts. */
static basin_status list_tables(basin_csv_source *source, int *sources, basin_additions *kept,
                                const char *path, const basin_network_options *o,
                                basin_error *error) {
    char digest[BASIN_SHA256_TEXT];
    if (!basin_journal_is(path)) {
        source[(*sources)++] =
            (basin_csv_source){.path = path, .no_header = basin_table_options_of(o)->headerless};
        return BASIN_OK;
    }
    if (!o->base)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: is the journal of a server; needs its base in front of it", path);
    BASIN_TRY(basin_file_sha256(digest, o->base->path, error));
    kept->schema = o->base->schema;
    BASIN_TRY(basin_journal_tables(kept, path, digest, error));
    for (int i = 0; i < 2; i++)
        if (kept->table[i])
            source[(*sources)++] = (basin_csv_source){.path = path,
                                                      .data = kept->table[i],
                                                      .size = strlen(kept->table[i]),
                                                      .exact = true};
    return BASIN_OK;
}

/* Files are read again by their readers, which unpack them; what came from pipes is kept. */
static basin_status open_csv(basin_network **network, const char *const *path, int paths,
                             const content *first, basin_digests *files,
                             const basin_network_options *options, basin_error *error) {
    BASIN_SCRATCH(basin_csv_source, source, 2 * paths, "tables", error);
    BASIN_SCRATCH(content, kept, paths, "tables", error);
    BASIN_SCRATCH(basin_additions, journal, paths, "tables", error);
    basin_status status = BASIN_OK;
    int sources = 0;
    for (int i = 0; i < paths && !status; i++) {
        bool stream = basin_stream_is(path[i]);
        if (i && stream) status = content_open(&kept[i], files, path[i], options, error);
        const basin_map *map = i ? &kept[i].map : &first->map;
        if (stream)
            source[sources++] =
                (basin_csv_source){.path = path[i],
                                   .data = map->data,
                                   .size = map->size,
                                   .no_header = basin_table_options_of(options)->headerless};
        else
            status = list_tables(source, &sources, &journal[i], path[i], options, error);
    }
    if (!status) status = basin_network_csv_read(network, source, sources, options, error);
    for (int i = 0; i < paths; i++) {
        free(kept[i].owned);
        basin_additions_free(&journal[i]);
    }
    return status;
}

/* Options that a kind of input has no use for: of tables, of edges, of nodes. */
enum { OF_TABLES, OF_EDGES, OF_NODES };
static const char is_no_csv[] = "is not a CSV file",
                  edges_stay[] = "its edges stay as they were written";

static basin_status refuse(const basin_network_options *o, int kind, const char *path,
                           const char *why, bool directed, basin_error *error) {
    const basin_table_options *t = basin_table_options_of(o);
    const struct {
        int kind;
        const char *name;
        bool set;
    } option[] = {{OF_TABLES, "id", t->id},
                  {OF_TABLES, "label", t->label},
                  {OF_TABLES, "source", t->source},
                  {OF_TABLES, "target", t->target},
                  {OF_TABLES, "relation_column", t->edge_type},
                  {OF_TABLES, "drop", t->drop},
                  {OF_TABLES, "max_categories", t->max_categories > 0},
                  {OF_TABLES, "date_format", t->date_format},
                  {OF_TABLES, "edge_date_format", t->edge_date_format},
                  {OF_TABLES, "no_header", t->headerless},
                  {OF_TABLES, "base", o->base},
                  {OF_TABLES, "time", t->time},
                  {OF_TABLES, "until", t->until},
                  {OF_TABLES, "unknown", t->unknown != BASIN_UNKNOWN_ERROR},
                  {OF_EDGES, "directed", o->directed && !directed},
                  {OF_NODES, "missing", o->missing != BASIN_MISSING_ERROR},
                  {OF_NODES, "unlabelled_first", o->unlabelled_first > 0},
                  {OF_NODES, "split_time", o->split_time}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i].kind == kind && option[i].set)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: %s; the option %s has no effect", path,
                              why, option[i].name);
    return BASIN_OK;
}

basin_status basin_network_options_check_parts(const basin_network_options *options,
                                               const char *folder, basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    BASIN_TRY(refuse(o, OF_TABLES, folder, is_no_csv, false, error));
    BASIN_TRY(refuse(o, OF_EDGES, folder, edges_stay, false, error));
    return refuse(o, OF_NODES, folder, "parts are read as they were cut", false, error);
}

static basin_status open_content(basin_network **network, const content *c, basin_digests *files,
                                 const char *const *path, int paths,
                                 const basin_network_options *options, basin_error *error) {
    basin_settled_options how;
    if (!is_bundle(c->map.data, c->map.size)) {
        BASIN_TRY(basin_schema_settle(&how, options, path[0], error));
        return open_csv(network, path, paths, c, files, options, error);
    }
    if (c->owned)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: comes from a pipe, expected tables; this format is read from files",
                          path[0]);
    if (paths > 1 || options->base)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: is a network by itself, expected tables to add to another", path[0]);
    BASIN_TRY(refuse(options, OF_TABLES, path[0], is_no_csv, false, error));
    BASIN_TRY(basin_schema_settle(&how, options, path[0], error));
    how.network.missing = BASIN_MISSING_KEEP; /* until the schema is known */
    return read_bundle(network, path[0], &how.network, error);
}

/* A table that is given twice would count twice; standard input can be read once. */
static basin_status check_inputs(const char *const *path, int paths, basin_error *error) {
    bool same = false;
    for (int i = 0; i < paths; i++)
        for (int k = 0; k < i; k++) {
            BASIN_TRY(basin_file_same(&same, path[k], path[i], error));
            if (same || (!strcmp(path[i], "-") && !strcmp(path[k], "-")))
                return basin_fail(error, BASIN_BAD_VALUE, "%s: is given twice, expected once",
                                  *path[i] == '-' ? "standard input" : path[i]);
        }
    return BASIN_OK;
}

/* The latest time of edges that is not beyond `max`; *beyond counts those that are. */
static float latest(const basin_network *network, float max, int64_t *beyond) {
    const basin_facts *facts = &network->facts;
    float now = -INFINITY;
    *beyond = 0;
    for (int r = 0; r < network->relations; r++) {
        const basin_relation *relation = &network->relation[r];
        for (int64_t e = 0; e < relation->edges; e++) {
            float time = relation->fact[e * facts->count + facts->time];
            if (time <= max) now = fmaxf(now, time);
            *beyond += time > max;
        }
    }
    return now;
}

/* The time of an edge's entry as a number that rises with it. */
static uint32_t time_key(const basin_relation *r, const basin_facts *facts, int64_t e) {
    uint32_t bits;
    memcpy(&bits, r->fact + e * facts->count + facts->time, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

/* The time of that rank among all entries, by counting, which no order of entries changes. */
static basin_status find_time(float *time, const basin_relation *r, const basin_facts *facts,
                              int64_t rank, basin_error *error) {
    enum { HALF = 1 << 16 };
    uint32_t key = 0, bits;
    BASIN_SCRATCH_RAW(int64_t, count, HALF, "times of edges", error);
    for (int shift = 16; shift >= 0; shift -= 16) {
        uint32_t at = 0;
        memset(count, 0, HALF * sizeof *count);
        for (int64_t e = 0; e < r->edges; e++) {
            uint32_t own = time_key(r, facts, e);
            if (shift || own >> 16 == key >> 16) count[own >> shift & (HALF - 1)]++;
        }
        while (rank >= count[at]) rank -= count[at++];
        key |= at << shift;
    }
    bits = key >> 31 ? key & ~(UINT32_C(1) << 31) : ~key;
    memcpy(time, &bits, sizeof bits);
    return BASIN_OK;
}

/* A later time is a mistake: it is further from the first 99.8 % of all times than three times
 * their range. By the first relation with many edges. */
static basin_status find_limit(float *limit, const basin_network *network, basin_error *error) {
    *limit = INFINITY;
    for (int r = 0; r < network->relations; r++) {
        const basin_relation *relation = &network->relation[r];
        int64_t count = relation->edges, rank = count - 1 - 2 * ((count + 999) / 1000);
        float low, high; /* an edge has two entries */
        if (count < 16) continue;
        BASIN_TRY(find_time(&low, relation, &network->facts, 0, error));
        BASIN_TRY(find_time(&high, relation, &network->facts, rank, error));
        if (high > low) *limit = high + 3 * (high - low);
        break;
    }
    return BASIN_OK;
}

/* Finds the latest time of all edges, from which ages count. */
static basin_status network_find_now(basin_network *network, basin_error *error) {
    basin_facts *facts = &network->facts;
    int64_t beyond, none;
    float max;
    facts->now = 0;
    if (!facts->count || facts->time < 0) return BASIN_OK;
    BASIN_TRY(find_limit(&max, network, error));
    float now = latest(network, max, &beyond);
    if (isfinite(now)) facts->now = (double)now;
    if (!beyond) return BASIN_OK;
    char last[BASIN_TIME_TEXT], now_text[BASIN_TIME_TEXT];
    bool date = basin_schema_has_dates(network->schema);
    basin_time_print(last, (double)latest(network, INFINITY, &none), date);
    basin_time_print(now_text, facts->now, date);
    basin_network_add_note(network,
                           "edges: the times of %" PRId64
                           " entries are far after all others, up to %s "
                           "where the others end at %s; ages count from %s",
                           beyond, last, now_text, now_text);
    return BASIN_OK;
}

basin_status basin_network_finish(basin_network *network, const basin_network_options *options,
                                  basin_error *error) {
    basin_settled_options settled;
    const basin_network_options *how = &settled.network;
    basin_schema **own = &network->schema;
    BASIN_TRY(basin_schema_settle(&settled, options, network->path, error));
    if (options->unite && basin_network_main_relation(network) < 0)
        BASIN_TRY(basin_network_add_union(network, error));
    if (!*own) BASIN_TRY(basin_schema_of(own, network, how->missing, error));
    if (options->schema) { /* tables that add to a base were read by its schema */
        BASIN_TRY(basin_network_match(network, options->schema, error));
    } else {
        (*own)->directed = network->directed;
        /* A file keeps what it was made with, where nothing else is asked for. */
        bool asked = options->missing != BASIN_MISSING_ERROR || !network->file;
        if (asked && how->missing != BASIN_MISSING_KEEP) (*own)->missing = how->missing;
        BASIN_TRY(basin_schema_set_relations(*own, network, error));
    }
    BASIN_TRY(basin_network_fill_missing(network, how->missing, error));
    BASIN_TRY(network_find_now(network, error));
    BASIN_TRY(basin_network_find_order(network, error));
    if (options->split_time)
        BASIN_TRY(basin_network_split_by_time(network, options->split_time, options->split_train,
                                              options->split_val, error));
    return basin_network_check_note(network, error);
}

static basin_status open_files(basin_network **network, basin_digests *files,
                               const char *const *path, int paths, const basin_network_options *o,
                               basin_error *error);

/* The first file is a network, to which the tables add. Its gaps are filled at the end. */
static basin_status open_added(basin_network **network, basin_digests *files,
                               const char *const *path, int paths, const basin_network_options *o,
                               basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *base = NULL;
    basin_network_options plain = {.unite = o->unite,
                                   .memory = o->memory,
                                   .schema = o->schema,
                                   .missing = BASIN_MISSING_KEEP},
                          how = *o;
    BASIN_TRY(basin_network_open(&base, path, 1, &plain, error));
    how.base = base;
    return open_files(network, files, path + 1, paths - 1, &how, error);
}

static basin_status read_texts(basin_network **network, const char *const *path, int paths,
                               const basin_network_options *o, basin_error *error) {
    BASIN_SCRATCH(basin_csv_source, source, paths, "tables", error);
    for (int i = 0; i < paths; i++)
        source[i] = (basin_csv_source){.path = path[i],
                                       .data = o->table->text[i],
                                       .size = strlen(o->table->text[i]),
                                       .exact = o->table->exact};
    return basin_network_csv_read(network, source, paths, o, error);
}

static basin_status open_files(basin_network **network, basin_digests *files,
                               const char *const *path, int paths, const basin_network_options *o,
                               basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *network = NULL;
    if (paths < 1) return basin_fail(error, BASIN_BAD_VALUE, "no file to open");
    if (o->table && o->table->text) {
        BASIN_TRY(read_texts(&n, path, paths, o, error));
    } else {
        BASIN_TRY(check_inputs(path, paths, error));
        BASIN_AT_EXIT(content_close) content c = {0};
        BASIN_TRY(content_open(&c, files, path[0], o, error));
        BASIN_TRY(basin_packed_refuse(c.map.data, c.map.size, path[0], error));
        if (paths > 1 && !o->base && is_bundle(c.map.data, c.map.size))
            return open_added(network, files, path, paths, o, error);
        BASIN_TRY(open_content(&n, &c, files, path, paths, o, error));
    }
    if (n->file) { /* Readers look at what they build; a mapped file may hold anything. */
        BASIN_TRY(basin_network_check_tables(n, error));
        BASIN_TRY(refuse(o, OF_EDGES, n->path, edges_stay, n->directed, error));
        BASIN_TRY(basin_network_forget_labels(n, o, error));
    }
    BASIN_TRY(basin_network_finish(n, o, error));
    *network = n, n = NULL;
    return BASIN_OK;
}

/* What was read, and what of it counts: for the record. */
static basin_status take_record(basin_network *n, basin_digests *files, const char *const *path,
                                int paths, const basin_network_options *o, basin_error *error) {
    const basin_table_options *t = basin_table_options_of(o);
    const char *name[] = {"time", "until", "split_time"},
               *value[] = {t->time, t->until, o->split_time};
    char text[1000] = "";
    n->files = *files, *files = (basin_digests){0};
    for (int i = 0; i < paths; i++)
        if (t->text)
            BASIN_TRY(basin_digests_add(&n->files, path[i], t->text[i], strlen(t->text[i]), error));
        else if (!basin_stream_is(path[i]))
            BASIN_TRY(basin_digests_add_later(&n->files, path[i], error));
    for (int i = 0; i < 3; i++)
        if (value[i]) snprintf(text + strlen(text), 300, "%s %.250s\n", name[i], value[i]);
    if (o->split_time)
        snprintf(text + strlen(text), 100, "split_train %g\nsplit_validation %g\n", o->split_train,
                 o->split_val);
    n->cuts = basin_string_copy(text);
    return n->cuts ? BASIN_OK : basin_fail_memory(error, "a network");
}

static void free_digests(basin_digests *digests) { free(digests->text); }

basin_status basin_network_open(basin_network **network, const char *const *path, int paths,
                                const basin_network_options *options, basin_error *error) {
    BASIN_AT_EXIT(free_digests) basin_digests files = {0};
    const basin_network_options *how = basin_network_options_or(options);
    BASIN_TRY(open_files(network, &files, path, paths, how, error));
    basin_status status = take_record(*network, &files, path, paths, how, error);
    if (status) basin_network_close(*network), *network = NULL;
    return status;
}
