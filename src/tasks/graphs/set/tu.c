/* TUDatasets: text files DS_A.txt (edges "from, to", nodes from 1), DS_graph_indicator.txt (each
 * node's graph), DS_graph_labels.txt or DS_graph_attributes.txt, and labels and attributes of nodes
 * and edges where there are any, in a folder or in an archive. */
#include <dirent.h>
#include <errno.h>
#include <float.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "base/try.h"
#include "tasks/common/packed.h"
#include "tasks/graphs/set/graphset.h"

enum { EDGES, INDICATOR, GRAPH_LABELS, GRAPH_ATTRIBUTES };
enum { NODE_LABELS = 4, NODE_ATTRIBUTES, EDGE_LABELS, EDGE_ATTRIBUTES, FILES };
static const char *const suffix[FILES] = {
    "_A.txt",           "_graph_indicator.txt", "_graph_labels.txt", "_graph_attributes.txt",
    "_node_labels.txt", "_node_attributes.txt", "_edge_labels.txt",  "_edge_attributes.txt"};

/* One of the files: its text, then its numbers; rows are lines, `columns` the same in all. */
typedef struct table {
    char name[256];
    char *text; /* ends in a zero; NULL: the set does not have it */
    double *number;
    int64_t rows, columns;
} table;

/* A set being read, and the arrays that it becomes. */
typedef struct tu {
    const char *path;
    table file[FILES];
    bool bare;          /* classes and values of graphs are not looked at */
    size_t held, limit; /* bytes of text, and of memory that may be taken */
    size_t packed;      /* bytes of the archive; 0: a folder */
    int64_t *place; /* [nodes] where the node of each line stands once they are sorted by graph */
    int64_t graphs, *nodes, *from, *to, *graph_class;
    void *column[FILES]; /* floats or labels, rows in the new order */
} tu;

static void tu_free(tu *t) {
    for (int i = 0; i < FILES; i++) BASIN_FREE(t->file[i].text, t->file[i].number, t->column[i]);
    BASIN_FREE(t->place, t->nodes, t->from, t->to, t->graph_class);
}

static const char the_set[] = "the set"; /* what memory is for */

/* ---- bringing the texts into memory ---- */

/* The table that a name stands for, NULL: none of them; nor is what macOS puts beside each file,
 * ._DS_A.txt. */
static basin_status table_of(table **to, tu *t, const char *name, basin_error *error) {
    *to = NULL;
    for (int i = 0; i < FILES && *name != '.'; i++)
        if (basin_text_ends(name, suffix[i]) && strcmp(name, suffix[i]) != 0) *to = &t->file[i];
    if (*to && (*to)->text)
        return basin_fail(error, BASIN_BAD_FILE, "%s: both %s and %s; expected one set", t->path,
                          (*to)->name, name);
    if (*to) snprintf((*to)->name, sizeof(*to)->name, "%s", name);
    return BASIN_OK;
}

/* Counts `bytes` more of text against what is allowed; a byte may become a number of eight. */
static basin_status take_bytes(tu *t, size_t bytes, basin_error *error) {
    enum { MUCH = 1 << 26, RATIO = 100 }; /* real sets shrink to a tenth or so */
    t->held += bytes;
    if (t->packed && t->held > MUCH && t->held / RATIO > t->packed)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: its %zu bytes unpack to more than %d times as many; expected a "
                          "TUDataset (unpack it into a folder if it is one)",
                          t->path, t->packed, RATIO);
    return basin_memory_check(5.0 * (double)t->held, t->limit, t->path, BASIN_NO_MEMORY, error);
}

/* Text ends at its first zero byte, which would hide what follows. */
static basin_status end_text(table *to, size_t size, const tu *t, basin_error *error) {
    to->text[size] = 0;
    if (strlen(to->text) == size) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s holds a zero byte; expected text", t->path,
                      to->name);
}

static basin_status load_file(tu *t, table *to, basin_error *error) {
    size_t length = strlen(t->path) + strlen(to->name) + 2;
    BASIN_FREE_AT_EXIT char *full = malloc(length);
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    if (!full) return basin_fail_memory(error, the_set);
    snprintf(full, length, "%s/%s", t->path, to->name);
    BASIN_TRY(basin_map_open(&map, full, error));
    BASIN_TRY(take_bytes(t, map.size, error));
    BASIN_TRY(BASIN_NEW_RAW(&to->text, map.size + 1, the_set, error));
    if (map.size) memcpy(to->text, map.data, map.size);
    return end_text(to, map.size, t, error);
}

static basin_status load_folder(tu *t, basin_error *error) {
    table *to;
    DIR *dir = opendir(t->path);
    if (!dir) return basin_fail_errno(t->path, "list", error);
    basin_status status = BASIN_OK;
    for (struct dirent *entry; !status && (entry = readdir(dir));) {
        status = table_of(&to, t, entry->d_name, error);
        if (!status && to) status = load_file(t, to, error);
    }
    closedir(dir);
    return status;
}

static basin_status load_entry(tu *t, table *to, const basin_archive *archive, basin_error *error) {
    enum { CHUNK = 65536 };
    size_t capacity = 0, got = 0;
    for (la_ssize_t n = 1; n > 0; got += (size_t)n) {
        BASIN_TRY(take_bytes(t, (size_t)n, error));
        BASIN_TRY(BASIN_GROW(&to->text, &capacity, got + CHUNK, the_set, error));
        n = archive->archive_read_data(archive->reader, to->text + got, capacity - got - 1);
        if (n < 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s: %s", t->path, to->name,
                              basin_archive_why(archive));
    }
    return end_text(to, got, t, error);
}

static basin_status load_archive(tu *t, const void *bytes, size_t size, basin_error *error) {
    BASIN_AT_EXIT(basin_archive_close) basin_archive archive = {0};
    struct archive_entry *entry;
    table *to;
    t->packed = size;
    BASIN_TRY(basin_archive_open(&archive, bytes, size, t->path,
                                 "folder or archive of a TUDataset (a table of molecules needs the "
                                 "name of its column of SMILES)",
                                 error));
    for (;;) {
        int code = archive.archive_read_next_header(archive.reader, &entry);
        if (code == ARCHIVE_EOF) return BASIN_OK;
        if (code < ARCHIVE_WARN)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: %s; expected a folder or an archive of a TUDataset", t->path,
                              basin_archive_why(&archive));
        const char *full = archive.archive_entry_pathname(entry);
        const char *name = full && strrchr(full, '/') ? strrchr(full, '/') + 1 : full;
        BASIN_TRY(table_of(&to, t, name ? name : "", error));
        if (to) BASIN_TRY(load_entry(t, to, &archive, error));
    }
}

/* ---- numbers ---- */

/* A table being read. */
typedef struct reading {
    double *number;
    size_t capacity, used;
    bool missing; /* nan, or nothing between commas, is a value that is not known */
    bool out_of_memory;
} reading;

static bool add_number(reading *r, double value, int64_t times) {
    if (times < 1) return true;
    r->out_of_memory = !BASIN_RESERVE(&r->number, &r->capacity, r->used + times);
    for (int64_t i = 0; i < times && !r->out_of_memory; i++) r->number[r->used++] = value;
    return !r->out_of_memory;
}

/* Behind what separates numbers, of which it counts the commas. */
static char *skip_separators(char *c, int64_t *commas) {
    *commas = 0;
    for (; *c == ' ' || *c == '\t' || *c == ',' || *c == '\r' || *c == ';'; c++)
        *commas += *c == ',';
    return c;
}

/* Reads the numbers of a line and returns how many, or -1 with `*bad` where one is none. `*at`
 * moves to the next line. */
static int64_t read_line(reading *r, char **at, char **bad) {
    size_t first = r->used;
    char *c = *at;
    for (;;) {
        int64_t commas, before = (int64_t)(r->used - first);
        char *behind = c; /* the number before */
        c = skip_separators(c, &commas);
        bool ends = *c == '\n' || !*c;
        int64_t gaps = ends ? commas + (!before && commas) : commas - (before > 0);
        if (r->missing && !add_number(r, NAN, gaps)) return -1;
        if (ends) break;
        if (!r->missing && gaps > 0) return *bad = behind, -1; /* the next would take its column */
        char *end;
        double value = basin_real_read(c, &end);
        if (end == c || (!isfinite(value) && !(r->missing && isnan(value)))) return *bad = c, -1;
        if (fabs(value) > FLT_MAX) return *bad = c, -1; /* it is kept as a float */
        if (!add_number(r, value, 1)) return -1;
        c = end;
    }
    *at = *c ? c + 1 : c;
    return (int64_t)(r->used - first);
}

/* Numbers in place of the text. */
static basin_status read_table(tu *t, int kind, basin_error *error) {
    table *to = &t->file[kind];
    reading r = {.missing = kind == GRAPH_ATTRIBUTES};
    int64_t line = 0;
    if (!to->text) return BASIN_OK;
    for (char *at = to->text; *at;) {
        char *bad = NULL;
        int64_t n = read_line(&r, &at, &bad);
        to->number = r.number;
        line++;
        if (r.out_of_memory) return basin_fail_memory(error, the_set);
        if (n < 0) {
            int length = (int)strcspn(bad, ",\r\n");
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s, line %lld: '%.*s' is not a number%s",
                              t->path, to->name, (long long)line, length < 40 ? length : 40, bad,
                              r.missing ? "; expected one, or nan for an unknown value" : "");
        }
        if (n && to->rows && n != to->columns)
            return basin_fail(
                error, BASIN_BAD_FILE,
                "%s: %s, line %lld: %lld numbers; expected %lld, as in the lines before", t->path,
                to->name, (long long)line, (long long)n, (long long)to->columns);
        if (n) to->columns = n, to->rows++;
    }
    free(to->text);
    to->text = NULL;
    return BASIN_OK;
}

static basin_status want_columns(const tu *t, int kind, int64_t columns, const char *what,
                                 basin_error *error) {
    const table *f = &t->file[kind];
    if (!f->rows || f->columns == columns) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s, line 1: %lld numbers; expected %s", t->path,
                      f->name, (long long)f->columns, what);
}

/* A whole number that fits into 32 bits. */
static basin_status as_integer(int32_t *out, double value, const tu *t, int kind, int64_t row,
                               basin_error *error) {
    if (value == floor(value) && fabs(value) < 2147483647) return *out = (int32_t)value, BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s, line %lld: %g; expected an integer", t->path,
                      t->file[kind].name, (long long)row + 1, value);
}

/* ---- the set ---- */

/* Which file says what is to be learnt: classes, without them values; -1: none, these are graphs
 * to predict. */
static int target_of(const tu *t) {
    if (*t->file[GRAPH_LABELS].name) return GRAPH_LABELS;
    return *t->file[GRAPH_ATTRIBUTES].name ? GRAPH_ATTRIBUTES : -1;
}

static int64_t count_lines(const char *c) {
    int64_t lines = 0;
    while (*(c += strspn(c, " \t\r\n"))) {
        lines++;
        c += strcspn(c, "\n");
    }
    return lines;
}

static basin_status read_targets(tu *t, basin_error *error) {
    int kind = target_of(t);
    if (kind < 0) return BASIN_OK;
    const table *f = &t->file[kind];
    if (t->bare) return t->graphs = count_lines(f->text), BASIN_OK;
    BASIN_TRY(read_table(t, kind, error));
    if (!f->rows) return basin_fail(error, BASIN_BAD_FILE, "%s: %s is empty", t->path, f->name);
    t->graphs = f->rows;
    if (kind != GRAPH_LABELS) return BASIN_OK;
    BASIN_TRY(want_columns(t, kind, 1, "one, the graph's class", error));
    BASIN_TRY(BASIN_NEW_RAW(&t->graph_class, f->rows, the_set, error));
    for (int64_t i = 0; i < f->rows; i++) {
        int32_t number;
        BASIN_TRY(as_integer(&number, f->number[i], t, kind, i, error));
        t->graph_class[i] = number;
    }
    return BASIN_OK;
}

/* How many graphs there are, by the greatest number that a node's has. */
static basin_status count_graphs(tu *t, basin_error *error) {
    const table *f = &t->file[INDICATOR];
    int32_t graph, max = 0;
    for (int64_t i = 0; i < f->rows; i++) {
        BASIN_TRY(as_integer(&graph, f->number[i], t, INDICATOR, i, error));
        if (graph < 1)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: %s, line %lld: graph %d; expected at least 1", t->path, f->name,
                              (long long)i + 1, graph);
        if (graph > max) max = graph;
    }
    int kind = target_of(t);
    if (kind < 0 && max > f->rows) /* nothing else says how many there are */
        return basin_fail(
            error, BASIN_BAD_FILE,
            "%s: %s names graph %d and has %lld lines; expected no more graphs than nodes", t->path,
            f->name, max, (long long)f->rows);
    if (kind < 0) t->graphs = max;
    if (max <= t->graphs) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %s names graph %d; expected 1 to %lld, the lines of %s", t->path,
                      f->name, max, (long long)t->graphs, t->file[kind].name);
}

static basin_status place_nodes(tu *t, basin_error *error) {
    const table *f = &t->file[INDICATOR];
    BASIN_TRY(read_table(t, INDICATOR, error));
    BASIN_TRY(want_columns(t, INDICATOR, 1, "one, the node's graph", error));
    if (!f->rows) return basin_fail(error, BASIN_BAD_FILE, "%s: %s is empty", t->path, f->name);
    BASIN_TRY(count_graphs(t, error));
    BASIN_SCRATCH(int64_t, start, t->graphs + 2, the_set, error);
    BASIN_TRY(BASIN_NEW_RAW(&t->nodes, t->graphs, the_set, error));
    BASIN_TRY(BASIN_NEW_RAW(&t->place, f->rows, the_set, error));
    for (int64_t i = 0; i < f->rows; i++) start[(int64_t)f->number[i] + 1]++;
    for (int64_t g = 0; g < t->graphs; g++) t->nodes[g] = start[g + 2];
    for (int64_t g = 0; g <= t->graphs; g++) start[g + 1] += start[g];
    for (int64_t i = 0; i < f->rows; i++) t->place[i] = start[(int64_t)f->number[i]]++;
    return BASIN_OK;
}

/* Columns of floats or of labels; those of nodes move to their places. */
static basin_status read_columns(tu *t, int kind, int64_t rows, const char *of,
                                 basin_error *error) {
    const table *f = &t->file[kind];
    bool label = kind == NODE_LABELS || kind == EDGE_LABELS;
    bool move = kind == NODE_LABELS || kind == NODE_ATTRIBUTES;
    if (!*f->name) return BASIN_OK;
    BASIN_TRY(read_table(t, kind, error));
    if (f->rows != rows)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %s has %lld lines; expected %lld, one for each %s", t->path, f->name,
                          (long long)f->rows, (long long)rows, of);
    if (!f->columns) return BASIN_OK; /* of no rows */
    if (!(t->column[kind] = basin_array_new((size_t)(rows * f->columns), 4)))
        return basin_fail_memory(error, the_set);
    float *real = t->column[kind];
    int32_t *whole = t->column[kind];
    for (int64_t i = 0; i < rows * f->columns; i++) {
        int64_t row = i / f->columns, to = (move ? t->place[row] - row : 0) * f->columns + i;
        if (label)
            BASIN_TRY(as_integer(&whole[to], f->number[i], t, kind, row, error));
        else
            real[to] = (float)f->number[i];
    }
    return BASIN_OK;
}

/* The node of a line of edges, from 0. */
static basin_status node_at(int64_t *node, const tu *t, int64_t row, int end, basin_error *error) {
    const table *f = &t->file[EDGES], *nodes = &t->file[INDICATOR];
    int32_t number;
    BASIN_TRY(as_integer(&number, f->number[2 * row + end], t, EDGES, row, error));
    *node = number - 1;
    if (number >= 1 && number <= nodes->rows) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %s, line %lld: node %d; expected 1 to %lld, the lines of %s", t->path,
                      f->name, (long long)row + 1, number, (long long)nodes->rows, nodes->name);
}

static basin_status read_edges(tu *t, basin_error *error) {
    const table *f = &t->file[EDGES];
    const double *graph = t->file[INDICATOR].number;
    int64_t from, to;
    BASIN_TRY(read_table(t, EDGES, error));
    BASIN_TRY(want_columns(t, EDGES, 2, "two nodes", error));
    BASIN_TRY(BASIN_NEW_RAW(&t->from, f->rows, the_set, error));
    BASIN_TRY(BASIN_NEW_RAW(&t->to, f->rows, the_set, error));
    for (int64_t i = 0; i < f->rows; i++) {
        BASIN_TRY(node_at(&from, t, i, 0, error));
        BASIN_TRY(node_at(&to, t, i, 1, error));
        if (graph[from] != graph[to])
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: %s, line %lld: an edge from node %lld of graph %g to node %lld "
                              "of graph %g; expected both in one graph",
                              t->path, f->name, (long long)i + 1, (long long)from + 1, graph[from],
                              (long long)to + 1, graph[to]);
        t->from[i] = t->place[from], t->to[i] = t->place[to];
    }
    BASIN_TRY(read_columns(t, EDGE_ATTRIBUTES, f->rows, "edge", error));
    return read_columns(t, EDGE_LABELS, f->rows, "edge", error);
}

static basin_status read_set(basin_graphset *set, tu *t, basin_error *error) {
    const table *f = t->file;
    for (int kind = EDGES; kind <= INDICATOR; kind++)
        if (!*f[kind].name)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: no file DS%s; expected a TUDataset (folder or zip), a packed "
                              "set or ZINC's npz",
                              t->path, suffix[kind]);
    BASIN_TRY(read_targets(t, error));
    BASIN_TRY(place_nodes(t, error));
    BASIN_TRY(read_columns(t, NODE_ATTRIBUTES, f[INDICATOR].rows, "node", error));
    BASIN_TRY(read_columns(t, NODE_LABELS, f[INDICATOR].rows, "node", error));
    BASIN_TRY(read_edges(t, error));
    if (target_of(t) == GRAPH_ATTRIBUTES && !t->bare)
        BASIN_TRY(read_columns(t, GRAPH_ATTRIBUTES, t->graphs, "graph", error));
    char name[sizeof f->name];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(f[EDGES].name) - strlen(suffix[EDGES])),
             f[EDGES].name);
    basin_graphset_arrays a = {.name = name, .graphs = t->graphs, .nodes = t->nodes};
    a.edges = f[EDGES].rows, a.from = t->from, a.to = t->to, a.graph_class = t->graph_class;
    a.node_attributes = f[NODE_ATTRIBUTES].columns, a.node_labels = f[NODE_LABELS].columns;
    a.edge_attributes = f[EDGE_ATTRIBUTES].columns, a.edge_labels = f[EDGE_LABELS].columns;
    a.node_attribute = t->column[NODE_ATTRIBUTES], a.node_label = t->column[NODE_LABELS];
    a.edge_attribute = t->column[EDGE_ATTRIBUTES], a.edge_label = t->column[EDGE_LABELS];
    a.targets = f[GRAPH_ATTRIBUTES].columns, a.target = t->column[GRAPH_ATTRIBUTES];
    return basin_graphset_from_arrays(set, &a, error);
}

basin_status basin_graphset_parse_tu(basin_graphset *set, const void *data, size_t size,
                                     const char *path, bool bare, basin_error *error) {
    BASIN_AT_EXIT(tu_free) tu t = {.path = path, .bare = bare, .limit = basin_memory_share()};
    *set = (basin_graphset){0};
    BASIN_TRY(load_archive(&t, data, size, error));
    return read_set(set, &t, error);
}

basin_status basin_graphset_open_tu(basin_graphset *set, const char *path, bool bare,
                                    basin_error *error) {
    struct stat info;
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    BASIN_AT_EXIT(tu_free) tu t = {.path = path, .bare = bare, .limit = basin_memory_share()};
    *set = (basin_graphset){0};
    if (stat(path, &info)) return basin_fail_errno(path, "examine", error);
    if (!S_ISDIR(info.st_mode)) {
        BASIN_TRY(basin_map_open(&map, path, error));
        return basin_graphset_parse_tu(set, map.data, map.size, path, bare, error);
    }
    BASIN_TRY(load_folder(&t, error));
    return read_set(set, &t, error);
}
