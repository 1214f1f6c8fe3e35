/* Networks as CSV or TSV: files of edges (a row an edge: source, target and perhaps a relation) and
 * files of nodes (a row a node: id, features, label, split). A file is one of edges where its
 * header has columns for both ends. Ids are any text.
 *
 * Nodes are read twice: first to learn which columns are numbers and which values texts take, then
 * to fill the features. Texts become a column a value, up to a limit; a column beyond it is left
 * out, and the network's note says so. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "data/network/csv/column.h"

enum { MOST_TABLES = 64, MOST_RELATIONS = 1000, CATEGORIES = 32 };

typedef struct table {
    const basin_csv_source *source;
    bool edges;
    int id, label, split, mask[3];
    int from, to, type;
    basin_column *column; /* [columns] */
    size_t columns;
} table;

typedef struct edge_list {
    int32_t *pair; /* [count, 2] */
    size_t count, capacity;
} edge_list;

typedef struct job {
    const basin_network_options *o;
    table table[MOST_TABLES];
    int tables, node_tables;
    basin_dictionary id, relation;
    int32_t *seen; /* [ids] 1 + the table that told of a node last */
    size_t seen_capacity;
    edge_list edges[MOST_RELATIONS];
    size_t edge_count, limit; /* of all relations; bytes that all this may take */
    basin_network *network;
    basin_error *error;
} job;

static basin_status no_memory(job *j, const char *path) {
    return basin_fail(j->error, BASIN_NO_MEMORY, "%s: out of memory", path);
}

static basin_status open_source(basin_csv *csv, const basin_csv_source *s, basin_error *error) {
    return s->data ? basin_csv_open_memory(csv, s->data, s->size, s->path, error)
                   : basin_csv_open(csv, s->path, error);
}

/* What is in memory, and what the network will take beside it: a small compressed file can hold any
 * number of rows. */
static basin_status check_room(job *j, const char *path) {
    const basin_names_builder *names = &j->id.names;
    size_t ids = names->text_capacity + names->at_capacity * sizeof *names->names.at;
    size_t nodes = (size_t)names->names.count * 3 * sizeof(int64_t);
    size_t edges = j->edge_count * 4 * sizeof(int32_t);
    size_t slots = j->id.slots * sizeof *j->id.slot + j->seen_capacity * sizeof *j->seen;
    return basin_memory_check((double)ids + (double)nodes + (double)edges + (double)slots, j->limit,
                              path, BASIN_NO_MEMORY, j->error);
}

/* ---- headers ---- */

static int find_column(const basin_csv *csv, const char *wanted, const char *const *usual) {
    if (wanted) return basin_csv_column(csv, wanted);
    for (; *usual; usual++) {
        int found = basin_csv_column(csv, *usual);
        if (found >= 0) return found;
    }
    return -1;
}

static const char *const usual_from[] = {"src",   "source", "from",   "source_id", "src_id", "u",
                                         "node1", "txId1",  "sender", "payer",     NULL};
static const char *const usual_to[] = {"dst",   "target", "to",       "target_id", "dst_id", "v",
                                       "node2", "txId2",  "receiver", "payee",     NULL};
static const char *const usual_type[] = {"relation", "rel", "type", "edge_type", "etype", NULL};
static const char *const usual_id[] = {"id", "node", "node_id", "nodeid", "name", "txId", NULL};
static const char *const usual_label[] = {"label",   "y",     "class",   "is_fraud",
                                          "isfraud", "fraud", "anomaly", NULL};
static const char *const usual_split[] = {"split", NULL};

static bool dropped(const char *list, const char *name) {
    size_t length = strlen(name);
    while (list && *list) {
        size_t part = strcspn(list, ",");
        if (part == length && !strncasecmp(list, name, part)) return true;
        list += part + (list[part] == ',');
    }
    return false;
}

static basin_status read_node_header(job *j, table *t, const basin_csv *csv) {
    static const char *const mask[3][2] = {
        {"train_mask", NULL}, {"val_mask", NULL}, {"test_mask", NULL}};
    t->id = find_column(csv, j->o->id, usual_id);
    if (t->id < 0 && j->o->id)
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: no column '%s' for the ids of nodes",
                          csv->path, j->o->id);
    if (t->id < 0) t->id = 0;
    t->label = find_column(csv, j->o->label, usual_label);
    t->split = find_column(csv, NULL, usual_split);
    for (int i = 0; i < 3; i++) t->mask[i] = find_column(csv, NULL, mask[i]);
    t->column = calloc(csv->columns, sizeof *t->column);
    if (!t->column) return no_memory(j, csv->path);
    t->columns = csv->columns;
    for (int i = 0; i < (int)csv->columns; i++)
        t->column[i].feature = i != t->id && i != t->label && i != t->split && i != t->mask[0] &&
                               i != t->mask[1] && i != t->mask[2] &&
                               !dropped(j->o->drop, csv->name[i]);
    return BASIN_OK;
}

static basin_status read_headers(job *j, const basin_csv_source *source, int count) {
    if (count > MOST_TABLES)
        return basin_fail(j->error, BASIN_BAD_VALUE, "%d files, wanted at most %d", count,
                          MOST_TABLES);
    for (int i = 0; i < count; i++) {
        table *t = &j->table[j->tables];
        basin_csv csv;
        basin_status status = open_source(&csv, &source[i], j->error);
        if (status) return status;
        *t = (table){.source = &source[i]};
        j->tables++;
        t->from = find_column(&csv, j->o->source, usual_from);
        t->to = find_column(&csv, j->o->target, usual_to);
        t->type = find_column(&csv, j->o->edge_type, usual_type);
        t->edges = t->from >= 0 && t->to >= 0;
        if (!t->edges) {
            j->node_tables++;
            status = read_node_header(j, t, &csv);
        }
        basin_csv_close(&csv);
        if (status) return status;
    }
    if (j->node_tables < j->tables) return BASIN_OK;
    return basin_fail(
        j->error, BASIN_BAD_FILE,
        "%s: no column for the source and the target of an edge is in %s header%s "
        "(src and dst are the usual names; the options source and target tell others)",
        source[0].path, count > 1 ? "any" : "its", count > 1 ? " of the files" : "");
}

/* ---- first pass over nodes ---- */

static int64_t most_categories(const job *j) {
    return j->o->max_categories > 0 ? j->o->max_categories : CATEGORIES;
}

static basin_status see_node(job *j, int t, const basin_csv *csv) {
    int32_t node;
    const char *id = basin_csv_field(csv, (size_t)j->table[t].id);
    basin_status status = basin_dictionary_add(&j->id, &node, id, j->error);
    if (status) return status;
    size_t had = j->seen_capacity;
    if (!basin_array_reserve((void **)&j->seen, &j->seen_capacity, (size_t)node + 1,
                             sizeof *j->seen))
        return no_memory(j, csv->path);
    memset(j->seen + had, 0, (j->seen_capacity - had) * sizeof *j->seen);
    if (j->seen[node] == t + 1)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": node '%s' for the "
                          "second time",
                          csv->path, csv->line, id);
    j->seen[node] = t + 1;
    for (size_t i = 0; i < j->table[t].columns && !status; i++)
        status = basin_column_see(&j->table[t].column[i], csv, basin_csv_field(csv, i),
                                  most_categories(j), j->error);
    return status ? status : check_room(j, csv->path);
}

static basin_status see_nodes(job *j, int t) {
    basin_csv csv;
    bool more = true;
    basin_status status = open_source(&csv, j->table[t].source, j->error);
    if (status) return status;
    for (;;) {
        status = basin_csv_next(&csv, &more, j->error);
        if (status || !more) break;
        status = see_node(j, t, &csv);
        if (status) break;
    }
    basin_csv_close(&csv);
    return status;
}

/* ---- edges ---- */

static basin_status end_of_edge(job *j, int32_t *node, const basin_csv *csv, int field) {
    const char *id = basin_csv_field(csv, (size_t)field);
    if (!j->node_tables) {
        if (*id) return basin_dictionary_add(&j->id, node, id, j->error);
    } else {
        *node = basin_dictionary_find(&j->id, id);
        if (*node >= 0) return BASIN_OK;
    }
    return basin_fail(j->error, BASIN_BAD_FILE, "%s: line %" PRId64 ": node '%s' is %s", csv->path,
                      csv->line, id,
                      j->node_tables ? "in no file of nodes" : "no name that a node could have");
}

static basin_status read_edge(job *j, const table *t, const basin_csv *csv, const char *file_name) {
    int32_t pair[2], r;
    const char *type = t->type >= 0 ? basin_csv_field(csv, (size_t)t->type) : file_name;
    basin_status status = end_of_edge(j, &pair[0], csv, t->from);
    if (!status) status = end_of_edge(j, &pair[1], csv, t->to);
    if (!status) status = basin_dictionary_add(&j->relation, &r, *type ? type : "homo", j->error);
    if (status) return status;
    if (r >= MOST_RELATIONS)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": more than %d relations; is '%s' a kind of edge?",
                          csv->path, csv->line, MOST_RELATIONS,
                          t->type >= 0 ? csv->name[t->type] : "the file");
    edge_list *list = &j->edges[r];
    if (!basin_array_reserve((void **)&list->pair, &list->capacity, 2 * (list->count + 1),
                             sizeof *list->pair))
        return no_memory(j, csv->path);
    memcpy(list->pair + 2 * list->count++, pair, sizeof pair);
    j->edge_count++;
    return check_room(j, csv->path);
}

/* What edges without a relation are called: "homo", or by their file where there are several. */
static void name_of_file(char name[100], const job *j, const char *path) {
    const char *slash = strrchr(path, '/');
    snprintf(name, 100, "%.*s", 99,
             j->tables - j->node_tables > 1 ? slash ? slash + 1 : path : "homo");
    name[strcspn(name, ".")] = 0;
    if (!*name) strcpy(name, "homo");
}

static basin_status read_edges(job *j, const table *t) {
    basin_csv csv;
    char name[100];
    bool more = true;
    basin_status status = open_source(&csv, t->source, j->error);
    if (status) return status;
    name_of_file(name, j, t->source->path);
    while (more && !status) {
        status = basin_csv_next(&csv, &more, j->error);
        if (!status && more) status = read_edge(j, t, &csv, name);
    }
    basin_csv_close(&csv);
    return status;
}

/* ---- columns to features ---- */

static basin_status settle_columns(job *j, basin_names_builder *names) {
    for (int t = 0; t < j->tables; t++) {
        basin_csv csv;
        if (j->table[t].edges) continue;
        basin_status status = open_source(&csv, j->table[t].source, j->error);
        if (status) return status;
        for (size_t i = 0; i < j->table[t].columns && !status; i++)
            status =
                basin_column_settle(&j->table[t].column[i], names, csv.name[i], csv.path, j->error);
        basin_csv_close(&csv);
        if (status) return status;
    }
    return BASIN_OK;
}

static void note_columns(job *j, const table *t, const basin_csv *csv) {
    for (size_t i = 0; i < t->columns; i++)
        if (t->column[i].many && t->column[i].texts)
            basin_network_add_note(j->network,
                                   "column '%s' has more than %" PRId64 " values and is left out",
                                   csv->name[i], most_categories(j));
}

/* ---- second pass over nodes ---- */

static basin_status alloc_nodes(job *j, bool labels, bool masks) {
    basin_network *n = j->network;
    size_t nodes = (size_t)n->nodes;
    if (labels) {
        n->label = basin_array_new(nodes, sizeof *n->label);
        if (!n->label) return no_memory(j, n->path);
        for (size_t i = 0; i < nodes; i++) n->label[i] = -1;
    }
    if (masks) {
        n->splits = 1;
        n->train = calloc(nodes, 1);
        n->val = calloc(nodes, 1);
        n->test = calloc(nodes, 1);
        if (!n->train || !n->val || !n->test) return no_memory(j, n->path);
    }
    return BASIN_OK;
}

static basin_status fill_split(job *j, const table *t, const basin_csv *csv, int32_t node) {
    uint8_t *part[] = {j->network->train, j->network->val, j->network->test};
    static const char *const word[] = {"train", "val", "test"};
    for (int i = 0; i < 3; i++) {
        int32_t in = 0;
        if (t->mask[i] >= 0 && !basin_cell_label(&in, basin_csv_field(csv, (size_t)t->mask[i])))
            return basin_fail(j->error, BASIN_BAD_FILE,
                              "%s: line %" PRId64 ": mask '%s' is '%s', wanted 0 or 1", csv->path,
                              csv->line, word[i], basin_csv_field(csv, (size_t)t->mask[i]));
        if (in > 0) part[i][node] = 1;
    }
    const char *text = t->split >= 0 ? basin_csv_field(csv, (size_t)t->split) : "";
    if (basin_cell_missing(text)) return BASIN_OK;
    for (int i = 0; i < 3; i++)
        if (!strncasecmp(text, word[i], strlen(word[i]))) {
            part[i][node] = 1;
            return BASIN_OK;
        }
    return basin_fail(j->error, BASIN_BAD_FILE,
                      "%s: line %" PRId64 ": split is '%s', wanted train, val, test or nothing",
                      csv->path, csv->line, text);
}

static basin_status fill_node(job *j, const table *t, const basin_csv *csv) {
    int32_t node = basin_dictionary_find(&j->id, basin_csv_field(csv, (size_t)t->id));
    if (node < 0)
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: the file changed while it was read",
                          csv->path);
    if (t->label >= 0) {
        const char *text = basin_csv_field(csv, (size_t)t->label);
        if (!basin_cell_label(&j->network->label[node], text))
            return basin_fail(j->error, BASIN_BAD_FILE,
                              "%s: line %" PRId64 ": the label '%s', wanted 0 or 1, or nothing "
                              "where it is not known",
                              csv->path, csv->line, text);
    }
    if (j->network->feature) {
        float *x = j->network->feature + (int64_t)node * j->network->features;
        for (size_t i = 0; i < t->columns; i++)
            basin_column_fill(x, &t->column[i], basin_csv_field(csv, i));
    }
    return j->network->train ? fill_split(j, t, csv, node) : BASIN_OK;
}

static basin_status fill_nodes(job *j, const table *t) {
    basin_csv csv;
    bool more = true;
    basin_status status = open_source(&csv, t->source, j->error);
    if (status) return status;
    note_columns(j, t, &csv);
    while (more && !status) {
        status = basin_csv_next(&csv, &more, j->error);
        if (!status && more) status = fill_node(j, t, &csv);
    }
    basin_csv_close(&csv);
    return status;
}

/* ---- the network ---- */

static bool ids_are_numbers(const basin_names *id) {
    char text[BASIN_NODE_TEXT];
    for (int64_t i = 0; i < id->count; i++) {
        snprintf(text, sizeof text, "%" PRId64, i);
        if (strcmp(id->text + id->at[i], text) != 0) return false;
    }
    return true;
}

static basin_status make_nodes(job *j) {
    basin_names_builder columns = {0};
    bool labels = false, masks = false;
    for (int t = 0; t < j->tables; t++) {
        const table *at = &j->table[t];
        if (at->edges) continue;
        labels = labels || at->label >= 0;
        masks = masks || at->split >= 0 || at->mask[0] >= 0 || at->mask[1] >= 0 || at->mask[2] >= 0;
    }
    basin_network *n = j->network;
    basin_status status = settle_columns(j, &columns);
    n->column = columns.names; /* the network frees them in any case */
    if (!status && columns.names.count)
        status = basin_network_alloc_features(n, columns.names.count, j->o, j->error);
    for (int64_t i = 0; !status && i < n->nodes * n->features; i++) n->feature[i] = NAN;
    if (!status) status = alloc_nodes(j, labels, masks);
    for (int t = 0; t < j->tables && !status; t++)
        if (!j->table[t].edges) status = fill_nodes(j, &j->table[t]);
    if (!status && !ids_are_numbers(&j->id.names.names)) {
        n->id = j->id.names.names;
        j->id.names.names = (basin_names){0};
    }
    if (!status && n->feature) status = basin_network_fill_missing(n, j->o->missing, j->error);
    if (!status && n->label) basin_network_finish_labels(n, j->o);
    return status;
}

static basin_status make_network(job *j) {
    basin_status status = BASIN_OK;
    for (int t = 0; t < j->tables && !status; t++)
        if (!j->table[t].edges) status = see_nodes(j, t);
    for (int t = 0; t < j->tables && !status; t++)
        if (j->table[t].edges) status = read_edges(j, &j->table[t]);
    if (status) return status;
    const char *path = j->table[0].source->path;
    int64_t relations = j->relation.names.names.count;
    if (j->id.names.names.count == 0 || (relations == 0 && !j->node_tables))
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: no row below the header", path);
    status = basin_network_new(&j->network, path, j->id.names.names.count, j->error);
    if (!status) status = make_nodes(j);
    for (int64_t r = 0; (r < relations || r == 0) && !status; r++) {
        const edge_list *list = &j->edges[r];
        const basin_names *names = &j->relation.names.names;
        basin_edges edges = {list->pair, list->pair ? list->pair + 1 : NULL, BASIN_I32, 2,
                             (int64_t)list->count};
        status = basin_network_add_relation(
            j->network, relations ? names->text + names->at[r] : "homo", &edges, j->o, j->error);
        free(j->edges[r].pair);
        j->edges[r].pair = NULL;
    }
    return status;
}

static void job_free(job *j) {
    for (int t = 0; t < j->tables; t++) {
        for (size_t i = 0; i < j->table[t].columns; i++) basin_column_free(&j->table[t].column[i]);
        free(j->table[t].column);
    }
    for (int r = 0; r < MOST_RELATIONS; r++) free(j->edges[r].pair);
    basin_dictionary_free(&j->id);
    basin_dictionary_free(&j->relation);
    free(j->seen);
    free(j);
}

basin_status basin_network_csv_read(basin_network **network, const basin_csv_source *source,
                                    int sources, const basin_network_options *options,
                                    basin_error *error) {
    *network = NULL;
    job *j = calloc(1, sizeof *j);
    if (!j) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", source[0].path);
    j->o = basin_network_options_or(options);
    j->error = error;
    j->limit = j->o->memory ? j->o->memory : basin_memory_share();
    basin_status status = read_headers(j, source, sources);
    if (!status) status = make_network(j);
    if (status) {
        basin_network_free(j->network);
        j->network = NULL;
    }
    *network = j->network;
    job_free(j);
    return status;
}
