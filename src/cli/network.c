/* Options that open networks; see cli.h. */
#include <string.h>

#include "cli/cli.h"

static bool is(const char *text, const char *word) { return text && !strcmp(text, word); }

static basin_missing missing_of(const basin_network_flags *f) {
    return f->keep_gaps              ? BASIN_MISSING_KEEP
           : is(f->missing, "zero")  ? BASIN_MISSING_ZERO
           : is(f->missing, "mean")  ? BASIN_MISSING_MEAN
           : is(f->missing, "error") ? BASIN_MISSING_REFUSE
                                     : BASIN_MISSING_ERROR;
}

static basin_unknown unknown_of(const basin_network_flags *f) {
    return is(f->unknown, "skip")    ? BASIN_UNKNOWN_SKIP
           : is(f->unknown, "add")   ? BASIN_UNKNOWN_ADD
           : is(f->unknown, "error") ? BASIN_UNKNOWN_REFUSE
                                     : BASIN_UNKNOWN_ERROR;
}

basin_network_options basin_network_options_of(const basin_args *args) {
    const basin_network_flags *f = &args->network;
    return (basin_network_options){
        .memory = (size_t)(args->memory * (double)(1 << 30)),
        .directed = f->directed,
        .keep_duplicates = f->keep_duplicates,
        .unite = f->unite,
        .classes = f->classes,
        .self = is(f->self, "add")    ? BASIN_SELF_ADD
                : is(f->self, "drop") ? BASIN_SELF_DROP
                                      : BASIN_SELF_KEEP,
        .missing = missing_of(f),
        .unknown = unknown_of(f),
        .unlabelled_first = f->unlabelled_first,
        .id = f->id,
        .label = f->label,
        .source = f->source,
        .target = f->target,
        .edge_type = f->edge_type,
        .drop = f->drop,
        .max_categories = f->max_categories,
        .date_format = f->date_format,
        .no_header = f->no_header,
        .base = f->base,
        .time = f->time,
        .until = f->until,
        .split_time = f->split_time,
        .split_train = f->split_train,
        .split_val = f->split_val,
    };
}

basin_status basin_args_network(basin_network **network, const basin_args *args,
                                const basin_schema *schema, int paths, char **path,
                                basin_error *error) {
    int length;
    basin_network_options o = basin_network_options_of(args);
    o.schema = schema;
    BASIN_TRY(basin_network_open(network, (const char *const *)path, paths, &o, error));
    for (const char *note = NULL; (note = basin_network_next_note(&length, *network, note));)
        basin_note(args, "%s: %.*s", basin_network_note_path(*network, note), length, note);
    return BASIN_OK;
}

/* The first option of how files are read that was given; NULL: none. All start at zero. */
static const char *reading_option(const basin_args *args) {
    static const basin_option table[] = {BASIN_OPTIONS_NETWORK, BASIN_OPTIONS_END};
    for (const basin_option *o = table; o->name; o++) {
        const void *at = (const char *)args + o->offset;
        bool given = o->kind == BASIN_OPTION_FLAG      ? *(const bool *)at
                     : o->kind == BASIN_OPTION_INTEGER ? *(const int64_t *)at != 0
                                                       : *(const char *const *)at != NULL;
        if (given) return o->name;
    }
    return NULL;
}

basin_status basin_cli_parts_open(basin_parts **parts, basin_network **opened, const char *folder,
                                  const basin_args *args, const char *facts, basin_error *error) {
    basin_ranks *ranks = args->ranks;
    int64_t count = basin_ranks_count(ranks), asked = args->parts;
    *parts = NULL;
    if (!folder && !asked && !ranks) return BASIN_OK;
    if (folder && reading_option(args))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: parts are read as they were cut; --%s has no effect", folder,
                          reading_option(args));
    basin_cut_spec spec = {.parts = asked ? asked : count > 8 ? count : 8};
    if (!folder && is(facts, "none")) basin_network_forget_facts(*opened);
    basin_status status = folder ? basin_parts_open(parts, folder, ranks, error)
                                 : basin_parts_cut(parts, *opened, &spec, ranks, error);
    if (!status) status = basin_parts_name_nodes(*parts, error);
    basin_network_free(*opened);
    *opened = NULL;
    return status;
}

typedef struct written {
    const char *path;
    const basin_network *network;
} written;

static void put_written(basin_record *r, const void *context) {
    const basin_network *n = ((const written *)context)->network;
    int64_t edges = 0;
    for (int i = 0; i < n->relations; i++) edges += n->relation[i].edges;
    basin_record_text(r, "file", ((const written *)context)->path);
    basin_record_integer(r, "nodes", n->nodes);
    basin_record_integer(r, "edges", edges);
    basin_record_integer(r, "features", n->features);
    basin_record_integer(r, "anomalous", basin_network_count_label(n, 1));
}

basin_status basin_network_print_written(const char *path, const basin_network *network,
                                         const basin_args *args, basin_error *error) {
    if (args->quiet && !args->json) return BASIN_OK;
    return basin_record_print(args->json, put_written, &(written){path, network}, error);
}
