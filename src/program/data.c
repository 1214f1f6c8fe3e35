/* basin data convert, info, part, journal and get: networks as files; and the options of all
 * commands that open networks. */
#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "program/graph.h"
#include "tasks/nodes/network/journal.h"

/* ---- opening ---- */

static bool is(const char *text, const char *word) { return text && !strcmp(text, word); }

basin_network_options basin_network_options_of(const basin_args *args, basin_table_options *t) {
    basin_network_options o = args->network;
    *t = args->table, o.table = t;
    o.memory = (size_t)(args->memory * (double)(1 << 30));
    o.missing = is(args->missing, "keep")    ? BASIN_MISSING_KEEP
                : is(args->missing, "zero")  ? BASIN_MISSING_ZERO
                : is(args->missing, "mean")  ? BASIN_MISSING_MEAN
                : is(args->missing, "error") ? BASIN_MISSING_REFUSE
                                             : BASIN_MISSING_ERROR;
    t->unknown = is(args->unknown, "skip")    ? BASIN_UNKNOWN_SKIP
                 : is(args->unknown, "add")   ? BASIN_UNKNOWN_ADD
                 : is(args->unknown, "error") ? BASIN_UNKNOWN_REFUSE
                                              : BASIN_UNKNOWN_ERROR;
    return o;
}

basin_status basin_args_network(basin_network **network, const basin_args *args,
                                const basin_schema *schema, int paths, char **path,
                                basin_error *error) {
    int length;
    basin_table_options table;
    basin_network_options o = basin_network_options_of(args, &table);
    o.schema = schema;
    BASIN_TRY(basin_network_open(network, (const char *const *)path, paths, &o, error));
    for (const char *note = NULL; (note = basin_network_next_note(&length, *network, note));)
        basin_note(args, "%s: %.*s", basin_network_note_path(*network, note), length, note);
    return BASIN_OK;
}

typedef struct written {
    const char *path;
    const basin_network *network;
} written;

static void put_written(basin_record *r, const void *context) {
    const basin_network *n = ((const written *)context)->network;
    int64_t edges = 0;
    for (int i = 0; i < n->relations; i++) edges += n->relation[i].edges;
    basin_record_fields(r, "file=%s;nodes=%lld;edges=%lld;features=%lld;anomalous=%lld",
                        ((const written *)context)->path, (long long)n->nodes, (long long)edges,
                        (long long)n->features, (long long)basin_network_count_label(n, 1));
}

/* As JSON or else, unless quiet, as text. */
static basin_status print_written(const char *path, const basin_network *network,
                                  const basin_args *args, basin_error *error) {
    if (args->quiet && !args->json) return BASIN_OK;
    return basin_record_print(args->json, put_written, &(written){path, network}, error);
}

/* ---- convert ---- */

typedef struct convert_options {
    BASIN_ARGS;
    bool homo, keep_gaps;
} convert_options;
#define OPTIONS convert_options

static const basin_option convert_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE"),
    BASIN_OPTIONS_NETWORK,
    BASIN_FLAG(table.classes, "classes"),
    BASIN_FLAG(keep_gaps, "keep-gaps", .needs = "missing="),
    BASIN_FLAG(homo, "homo"),
    BASIN_OPTIONS_LAST,
};

/* Whether a name can only be that of a file to read: without OUT, the last table would be lost. */
static bool is_source(const char *path) {
    static const char *const end[] = {".csv", ".tsv", ".gz",      ".zst",
                                      ".mat", ".txt", ".journal", NULL};
    for (int i = 0; end[i]; i++)
        if (basin_text_ends(path, end[i])) return true;
    return false;
}

static basin_status run_convert(void *context, basin_error *error) {
    convert_options *o = context;
    BASIN_NETWORK_AT_EXIT basin_network *network = NULL;
    int files = o->operands - !o->output;
    const char *out = o->output ? o->output : o->operand[files];
    if (files < 1) return basin_usage(error, "needs IN... OUT");
    if (is_source(out))
        return basin_usage(error,
                           "'%s' comes last, where the file to write is expected: NAME.basin or "
                           "NAME.npz",
                           out);
    for (int i = 0; i < files; i++) {
        bool same, grows = i == 0 && files > 1 && basin_text_ends(out, ".basin");
        BASIN_TRY(basin_file_same(&same, out, o->operand[i], error));
        if (same && !grows)
            return basin_usage(error, "%s would overwrite %s, which is read", out, o->operand[i]);
    }
    if (o->keep_gaps) o->missing = "keep";
    BASIN_TRY(basin_args_network(&network, &o->args, NULL, files, o->operand, error));
    if (o->homo) BASIN_TRY(basin_network_add_union(network, error));
    BASIN_TRY(basin_network_write(out, network, error));
    return print_written(out, network, &o->args, error);
}

const basin_command basin_command_data_convert = {BASIN_COMMAND("data convert", convert_table),
                                                  .run = run_convert};

/* ---- info ---- */

#undef OPTIONS
#define OPTIONS basin_args

static const basin_option info_table[] = {
    BASIN_OPTIONS_NETWORK,
    BASIN_FLAG(table.classes, "classes"),
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

static long long count_mask(const basin_network *n, const uint8_t *mask, int64_t split) {
    long long count = 0;
    for (int64_t i = 0; mask && i < n->nodes; i++) count += mask[split * n->nodes + i] != 0;
    return count;
}

static void put_labels(basin_record *r, const basin_network *n) {
    int32_t highest = basin_network_greatest_label(n);
    char name[32];
    basin_record_object(r, "labels");
    basin_record_integer(r, "unknown", basin_network_count_label(n, -1));
    if (!basin_record_is_text(r)) basin_record_list(r, "count");
    for (int32_t y = 0; y <= highest; y++) {
        int64_t count = basin_network_count_label(n, y);
        snprintf(name, sizeof name, "of %d", y);
        if (!basin_record_is_text(r))
            basin_record_integer(r, NULL, count);
        else if (count)
            basin_record_integer(r, name, count);
    }
    if (!basin_record_is_text(r)) basin_record_end(r);
    basin_record_end(r);
}

static void put_splits(basin_record *r, const basin_network *n) {
    basin_record_table(r, "splits", NULL);
    for (int64_t s = 0; s < n->splits; s++) {
        basin_record_row(r);
        basin_record_fields(r, "train=%lld;val=%lld;test=%lld", count_mask(n, n->train, s),
                            count_mask(n, n->val, s), count_mask(n, n->test, s));
    }
    basin_record_end(r);
}

static void put_relation(basin_record *r, const basin_network *n, int i) {
    double alike, anomalies;
    basin_network_homophily(&alike, &anomalies, n, i);
    basin_record_row(r);
    basin_record_fields(r,
                        "name|relation=%s;edges=%lld;mean_degree=%.2f;homophily=%.3f;"
                        "anomaly_homophily|of anomalies=%.3f",
                        n->relation[i].name, (long long)n->relation[i].edges,
                        (double)n->relation[i].edges / (double)n->nodes, alike, anomalies);
}

/* Names and notes of the file. */
static void put_words(basin_record *r, const basin_network *n) {
    if (n->id.count)
        basin_record_format(r, "|ids", "%s ... %s", n->id.text,
                            n->id.text + n->id.at[n->id.count - 1]);
    basin_record_list(r, "|edges carry");
    for (int64_t i = 0; i < n->facts.count; i++)
        basin_record_text(r, NULL, n->facts.name.text + n->facts.name.at[i]);
    basin_record_end(r);
    int length;
    for (const char *note = NULL; (note = basin_network_next_note(&length, n, note));)
        basin_record_note(r, "note: %.*s", length, note);
}

static void put_network(basin_record *r, const void *context) {
    const basin_network *n = context;
    basin_record_fields(r,
                        "file=%s;nodes=%lld;features=%lld;directed=%d;mapped=%d;.ids=%d;.note=%s",
                        n->path, (long long)n->nodes, (long long)n->features, n->directed,
                        n->file != NULL, n->id.count > 0, n->note);
    put_labels(r, n);
    put_words(r, n);
    basin_record_list(r, ".columns");
    for (int64_t f = 0; f < n->column.count; f++)
        basin_record_text(r, NULL, n->column.text + n->column.at[f]);
    basin_record_end(r);
    put_splits(r, n);
    basin_record_table(r, "relations", NULL);
    for (int i = 0; i < n->relations; i++) put_relation(r, n, i);
    basin_record_end(r);
}

static void put_set(basin_record *r, const void *context) {
    const basin_graphset *set = context;
    basin_record_set(r, set);
    if (!set->note) return;
    basin_record_text(r, ".note", set->note);
    for (const char *at = set->note; *at; at += strcspn(at, "\n"), at += *at != 0)
        basin_record_note(r, "note: %.*s", (int)strcspn(at, "\n"), at);
}

static basin_status run_info(void *context, basin_error *error) {
    basin_args *o = context;
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    o->quiet = true; /* notes are in the result */
    basin_status status = basin_args_network(&n, o, NULL, o->operands, o->operand, error);
    if (status && o->operands == 1) { /* perhaps many small graphs, or a table of molecules */
        BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
        bool blocks = basin_molecules_are_blocks(o->operand[0]); /* nothing else is meant */
        basin_status read = basin_graphset_read(&set, o->operand[0], NULL, blocks ? error : NULL);
        if (!read) {
            basin_graphset_options named = {.target = o->table.target, .id = o->table.id};
            if (named.target || named.id) {
                basin_graphset_free(&set);
                BASIN_TRY(basin_graphset_read(&set, o->operand[0], &named, error));
            }
            return basin_record_print(o->json, put_set, &set, error);
        }
        if (blocks) return read;
    }
    BASIN_TRY(status);
    return basin_record_print(o->json, put_network, n, error);
}

const basin_command basin_command_data_info = {BASIN_COMMAND("data info", info_table),
                                               .run = run_info};

/* ---- part ---- */

#undef OPTIONS
typedef struct part_options {
    BASIN_ARGS;
    int64_t parts;
    const char *method;
    bool replace;
} part_options;
#define OPTIONS part_options

static const basin_option part_table[] = {
    BASIN_INTEGER(parts, "parts", "N", 1, BASIN_CUT_PARTS, .letter = 'n', .initial = 8),
    BASIN_TEXT(output, 'o', "output", "FOLDER", .text = "parts"),
    BASIN_CHOICE(method, "method", "stream|range", .text = "stream"),
    BASIN_FLAG(replace, "replace"),
    BASIN_REAL(memory, "memory", "GIB", 0, 1e6, .more = true),
    BASIN_OPTIONS_NETWORK,
    BASIN_FLAG(table.classes, "classes"),
    BASIN_OPTIONS_LAST,
};

typedef struct parted {
    const char *folder;
    const basin_cut_report *report;
} parted;

#define F(member, ...) BASIN_FIELD(basin_cut_report, member, __VA_ARGS__)
static const basin_field cut_fields[] = {
    F(parts, "parts"),
    F(edges, "edges"),
    F(cut, "cut|edges between parts"),
    F(halo, "halo|halo nodes"),
    F(max_nodes, ".most_nodes"),
    F(max_edges, ".most_edges"),
    F(max_halo, ".most_halo"),
    F(node_balance, "node_balance|nodes, largest part over mean", "%.3f"),
    F(edge_balance, "edge_balance|edges, largest part over mean", "%.3f"),
    {0}};

static void put_parts(basin_record *r, const void *context) {
    const parted *p = context;
    basin_record_text(r, "folder", p->folder);
    basin_record_struct(r, cut_fields, p->report);
}

static basin_status run_part(void *context, basin_error *error) {
    part_options *o = context;
    BASIN_NETWORK_AT_EXIT basin_network *network = NULL;
    basin_cut_report report;
    basin_cut_spec spec = {.parts = o->parts, .method = o->method, .replace = o->replace};
    o->network.unite = true;
    BASIN_TRY(basin_args_network(&network, &o->args, NULL, o->operands, o->operand, error));
    BASIN_TRY(basin_network_cut(&report, o->output, network, &spec, error));
    if (o->quiet && !o->json) return BASIN_OK;
    return basin_record_print(o->json, put_parts, &(parted){o->output, &report}, error);
}

const basin_command basin_command_data_part = {BASIN_COMMAND("data part", part_table),
                                               .run = run_part};

/* ---- journal: the additions of a server, listed and taken back ---- */

#undef OPTIONS
#define OPTIONS basin_args

static const basin_option journal_table[] = {
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

static basin_status put_entry(void *context, const basin_journal_entry *e, basin_error *error) {
    static const char *const kind[] = {"addition", "undo", "damaged"};
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    if (e->json) (void)basin_json_parse(&tree, e->json, e->length, "", "", error);
    basin_record *r = context;
    basin_record_row(r);
    basin_record_fields(
        r, "record=%lld;byte=%lld;bytes=%lld;kind=%s;undone=%d;accounts=%lld;edges=%lld",
        (long long)e->number, (long long)e->at, (long long)e->size, kind[e->kind], e->undone,
        (long long)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(tree, "accounts")),
        (long long)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(tree, "edges")));
    return BASIN_OK;
}

static void put_journal(basin_record *r, const void *context) {
    const basin_journal *j = context;
    basin_error error;
    basin_record_fields(r, "file=%s;additions=%lld;bytes=%lld;torn=%lld", j->path,
                        (long long)j->records, (long long)j->bytes, (long long)j->dropped);
    basin_record_table(r, "records", NULL);
    if (basin_journal_each(j, 0, j->bytes, put_entry, r, &error))
        basin_record_note(r, "note: %s", error.text);
    basin_record_end(r);
}

static basin_status run_journal(void *context, basin_error *error) {
    basin_args *o = context;
    bool undo = !strcmp(o->operand[0], "undo");
    char *end = "";
    long long number = o->operands > 2 ? strtoll(o->operand[2], &end, 10) : 0;
    basin_journal *j;
    if ((!undo && strcmp(o->operand[0], "list") != 0) || undo != (o->operands == 3))
        return basin_usage(error, "needs list FILE, or undo FILE N");
    if (undo && (*end || number < 1))
        return basin_usage(error, "'%s' is not the number of a record", o->operand[2]);
    BASIN_TRY(basin_journal_open(&j, o->operand[1], NULL, !undo, error));
    basin_status status = undo ? basin_journal_undo(j, number, error)
                               : basin_record_print(o->json, put_journal, j, error);
    if (undo && j->dropped)
        basin_note(o, "%s: dropped %lld bytes of an addition that was not finished", j->path,
                   (long long)j->dropped);
    if (undo && !status) basin_note(o, "%s: record %lld is taken back", j->path, number);
    basin_journal_close(j);
    return status;
}

const basin_command basin_command_data_journal = {BASIN_COMMAND("data journal", journal_table),
                                                  .run = run_journal};

/* ---- get: public sets, fetched by curl and checked by SHA-256, by a script, share/basin/get.sh,
 * which the shell runs in place of this program ---- */

extern const char *const basin_get_script[]; /* its lines */

#undef OPTIONS
typedef struct get_options {
    BASIN_ARGS;
    const char *mirror;
    bool list;
} get_options;
#define OPTIONS get_options

static const basin_option get_table[] = {
    BASIN_TEXT(output, 'o', "output", "FOLDER", .needs = "list=off", .text = "."),
    BASIN_TEXT(mirror, 0, "mirror", "URL", .needs = "list=off"),
    BASIN_FLAG(list, "list"),
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("list=on"),
    BASIN_OPTIONS_END,
};

/* As the script reads it. */
static bool export(const get_options *o) {
    const char *list = !o->list ? "" : o->json ? "json" : "text";
    return !setenv("output", o->output, 1) && !setenv("mirror", o->mirror ? o->mirror : "", 1) &&
           !setenv("quiet", o->quiet ? "yes" : "", 1) && !setenv("list", list, 1);
}

static basin_status run_get(void *context, basin_error *error) {
    get_options *o = context;
    BASIN_FREE_AT_EXIT char **argument = NULL;
    basin_memory_file script;
    if (o->list && o->operands)
        return basin_usage(error, "--list lists all sets and takes no names");
    if (!o->list && o->operands < 1)
        return basin_usage(error, "needs NAME, or --list for the names");
    BASIN_TRY(BASIN_NEW(&argument, o->operands + 5, "a script", error));
    if (!basin_memory_file_open(&script)) return basin_fail_memory(error, "a script");
    for (const char *const *line = basin_get_script; *line; line++) fputs(*line, script.file);
    BASIN_FREE_AT_EXIT char *text = basin_memory_file_close(&script);
    if (!text || !export(o)) return basin_fail_memory(error, "a script");
    char *const first[] = {"sh", "-c", text, "basin"};
    memcpy(argument, first, sizeof first);
    memcpy(argument + 4, o->operand, (size_t)o->operands * sizeof *argument);
    fflush(stdout);
    execvp("sh", argument);
    return basin_fail(error, BASIN_UNSUPPORTED, "the program sh cannot be run: %s",
                      strerror(errno));
}

const basin_command basin_command_data_get = {BASIN_COMMAND("data get", get_table), .run = run_get,
                                              .min_operands = -1};
