/* TUDatasets: text files DS_A.txt (edges "from, to", nodes from 1), DS_graph_indicator.txt (each
 * node's graph), DS_graph_labels.txt or DS_graph_attributes.txt, and labels and attributes of nodes
 * and edges where there are any, in a folder or in an archive. */
#include <dirent.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "base/try.h"
#include "data/archive.h"
#include "data/graphset/graphset.h"
#include "io/file.h"

enum {
    EDGES,
    INDICATOR,
    GRAPH_LABELS,
    GRAPH_ATTRIBUTES,
    NODE_LABELS,
    NODE_ATTRIBUTES,
    EDGE_LABELS,
    EDGE_ATTRIBUTES,
    FILES
};
static const char *const suffix[FILES] = {
    "_A.txt",           "_graph_indicator.txt", "_graph_labels.txt", "_graph_attributes.txt",
    "_node_labels.txt", "_node_attributes.txt", "_edge_labels.txt",  "_edge_attributes.txt"};

typedef struct text {
    char name[256];
    char *data; /* ends in a zero */
} text;

typedef struct folder {
    const char *path;
    text file[FILES];
    bool bare;          /* classes and values of graphs are not looked at */
    size_t held, limit; /* bytes of text, and of memory that may be taken */
    size_t packed;      /* bytes of the archive; 0: a folder */
} folder;

static void folder_free(folder *f) {
    for (int i = 0; i < FILES; i++) free(f->file[i].data);
}

/* Which of the files a name is, -1 for none of them; nor is what macOS puts beside each file,
 * ._DS_A.txt. */
static int kind_of(const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < FILES && *name != '.'; i++) {
        size_t n = strlen(suffix[i]);
        if (length > n && !strcmp(name + length - n, suffix[i])) return i;
    }
    return -1;
}

/* ---- bringing the texts into memory ---- */

/* Counts `bytes` more of text against what is allowed; a byte may become a number of eight. */
static basin_status take_room(folder *f, size_t bytes, basin_error *error) {
    enum { MUCH = 1 << 26, RATIO = 100 }; /* real sets shrink to a tenth or so */
    f->held += bytes;
    if (f->packed && f->held > MUCH && f->held / RATIO > f->packed)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: its %zu bytes unpack to more than %d times as many; wanted a "
                          "TUDataset (unpack it into a folder if it is one)",
                          f->path, f->packed, RATIO);
    return basin_memory_check(5.0 * (double)f->held, f->limit, f->path, BASIN_NO_MEMORY, error);
}

/* Text ends at its first zero byte, which would hide what follows. */
static basin_status finish(text *to, size_t size, const folder *f, const char *name,
                           basin_error *error) {
    to->data[size] = 0;
    snprintf(to->name, sizeof to->name, "%s", name);
    if (strlen(to->data) == size) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s holds a zero byte, wanted text", f->path,
                      name);
}

static basin_status load_file(folder *f, text *to, const char *name, basin_error *error) {
    size_t length = strlen(f->path) + strlen(name) + 2;
    char *full = malloc(length);
    basin_map map;
    if (!full) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", f->path);
    snprintf(full, length, "%s/%s", f->path, name);
    basin_status status = basin_map_open(&map, full, error);
    free(full);
    if (status) return status;
    status = take_room(f, map.size, error);
    if (!status && !(to->data = malloc(map.size + 1)))
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read %s", f->path, name);
    if (!status && map.size) memcpy(to->data, map.data, map.size);
    if (!status) status = finish(to, map.size, f, name, error);
    basin_map_close(&map);
    return status;
}

static basin_status load_folder(folder *f, basin_error *error) {
    DIR *dir = opendir(f->path);
    if (!dir) return basin_fail(error, BASIN_IO, "%s: %s", f->path, strerror(errno));
    basin_status status = BASIN_OK;
    for (struct dirent *entry; !status && (entry = readdir(dir));) {
        int kind = kind_of(entry->d_name);
        if (kind < 0) continue;
        if (f->file[kind].data)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: both %s and %s; wanted one set",
                                f->path, f->file[kind].name, entry->d_name);
        else
            status = load_file(f, &f->file[kind], entry->d_name, error);
    }
    closedir(dir);
    return status;
}

static basin_status load_entry(folder *f, text *to, const basin_archive *archive, const char *name,
                               basin_error *error) {
    enum { CHUNK = 65536 };
    size_t capacity = 0, got = 0;
    for (la_ssize_t n = 1; n > 0; got += (size_t)n) {
        void *data = to->data;
        BASIN_TRY(take_room(f, (size_t)n, error));
        if (!basin_array_reserve(&data, &capacity, got + CHUNK, 1))
            return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read %s", f->path,
                              name);
        to->data = data;
        n = archive->archive_read_data(archive->reader, to->data + got, capacity - got - 1);
        if (n < 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s: %s", f->path, name,
                              basin_archive_why(archive));
    }
    return finish(to, got, f, name, error);
}

static basin_status load_archive(folder *f, const void *bytes, size_t size, basin_error *error) {
    basin_archive archive;
    struct archive_entry *entry;
    int code = ARCHIVE_OK;
    f->packed = size;
    basin_status status = basin_archive_open(&archive, bytes, size, f->path,
                                             "folder or archive of a TUDataset", error);
    if (status) return status;
    while (code >= ARCHIVE_WARN && !status &&
           (code = archive.archive_read_next_header(archive.reader, &entry)) != ARCHIVE_EOF) {
        const char *full = code >= ARCHIVE_WARN ? archive.archive_entry_pathname(entry) : NULL;
        const char *name = full && strrchr(full, '/') ? strrchr(full, '/') + 1 : full;
        int kind = name ? kind_of(name) : -1;
        if (kind < 0) continue;
        if (f->file[kind].data)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: both %s and %s; wanted one set",
                                f->path, f->file[kind].name, name);
        else
            status = load_entry(f, &f->file[kind], &archive, name, error);
    }
    if (!status && code != ARCHIVE_EOF)
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: %s; wanted a folder or an archive of a TUDataset", f->path,
                            basin_archive_why(&archive));
    basin_archive_close(&archive);
    return status;
}

/* ---- numbers ---- */

/* A table of numbers: rows are lines, `columns` the same in all of them. */
typedef struct table {
    double *number;
    int64_t rows, columns;
} table;

/* A table being read. */
typedef struct reading {
    double *number;
    size_t capacity, used;
    bool missing; /* nan, or nothing between commas, is a value that is not known */
    bool out_of_memory;
} reading;

static bool add_number(reading *r, double value, int64_t times) {
    void *data = r->number;
    if (times < 1) return true;
    r->out_of_memory =
        !basin_array_reserve(&data, &r->capacity, r->used + (size_t)times, sizeof *r->number);
    r->number = data;
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

static basin_status bad_number(const folder *f, const text *t, int64_t line, const char *at,
                               basin_error *error) {
    int length = (int)strcspn(at, ",\r\n");
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s, line %lld: '%.*s' is not a number%s", f->path,
                      t->name, (long long)line, length < 40 ? length : 40, at,
                      t == &f->file[GRAPH_ATTRIBUTES]
                          ? "; wanted one, or nan for a value that is not known"
                          : "");
}

static basin_status read_table(table *out, const folder *f, int kind, basin_error *error) {
    const text *t = &f->file[kind];
    reading r = {.missing = kind == GRAPH_ATTRIBUTES};
    int64_t line = 0;
    *out = (table){0};
    for (char *at = t->data; *at;) {
        char *bad = NULL;
        int64_t n = read_line(&r, &at, &bad);
        out->number = r.number;
        line++;
        if (r.out_of_memory)
            return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for %s", f->path, t->name);
        if (n < 0) return bad_number(f, t, line, bad, error);
        if (!n) continue;
        if (out->rows && n != out->columns)
            return basin_fail(
                error, BASIN_BAD_FILE,
                "%s: %s, line %lld: %lld numbers; wanted %lld, as in the lines before", f->path,
                t->name, (long long)line, (long long)n, (long long)out->columns);
        out->columns = n;
        out->rows++;
    }
    return BASIN_OK;
}

static basin_status want_rows(const table *t, int64_t rows, const char *of, const folder *f,
                              int kind, basin_error *error) {
    if (t->rows == rows) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s has %lld lines; wanted %lld, one for each %s",
                      f->path, f->file[kind].name, (long long)t->rows, (long long)rows, of);
}

static basin_status want_columns(const table *t, int64_t columns, const char *what, const folder *f,
                                 int kind, basin_error *error) {
    if (!t->rows || t->columns == columns) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s, line 1: %lld numbers; wanted %s", f->path,
                      f->file[kind].name, (long long)t->columns, what);
}

/* A whole number that fits into 32 bits. */
static basin_status as_integer(int32_t *out, double value, const folder *f, int kind, int64_t row,
                               basin_error *error) {
    if (value == floor(value) && fabs(value) < 2147483647) return *out = (int32_t)value, BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s, line %lld: %g; wanted a whole number",
                      f->path, f->file[kind].name, (long long)row + 1, value);
}

static basin_status no_memory(const folder *f, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for the set", f->path);
}

/* ---- the set ---- */

/* place[i]: where the node of line i stands once nodes are sorted by graph. */
static basin_status place_nodes(basin_graphset *set, int32_t **place, const folder *f,
                                basin_error *error) {
    table t;
    basin_status status = read_table(&t, f, INDICATOR, error);
    int64_t most = 0;
    if (!status) status = want_columns(&t, 1, "one, the node's graph", f, INDICATOR, error);
    for (int64_t i = 0; i < t.rows && !status; i++) {
        int32_t graph;
        status = as_integer(&graph, t.number[i], f, INDICATOR, i, error);
        if (!status && graph < 1)
            status =
                basin_fail(error, BASIN_BAD_FILE, "%s: %s, line %lld: graph %d; wanted 1 or more",
                           f->path, f->file[INDICATOR].name, (long long)i + 1, graph);
        if (!status && graph > most) most = graph;
    }
    if (!status && (t.rows > INT32_MAX || !t.rows))
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s has %lld nodes", f->path,
                            f->file[INDICATOR].name, (long long)t.rows);
    if (!f->file[GRAPH_LABELS].data && !f->file[GRAPH_ATTRIBUTES].data) {
        set->graphs = most;
        if (!status && most > t.rows) /* nothing else says how many there are */
            status = basin_fail(
                error, BASIN_BAD_FILE,
                "%s: %s names graph %lld and has %lld lines; wanted no more graphs than nodes",
                f->path, f->file[INDICATOR].name, (long long)most, (long long)t.rows);
    }
    if (!status && most > set->graphs)
        status = basin_fail(
            error, BASIN_BAD_FILE, "%s: %s names graph %lld; wanted 1 to %lld, the lines of %s",
            f->path, f->file[INDICATOR].name, (long long)most, (long long)set->graphs,
            f->file[f->file[GRAPH_LABELS].data ? GRAPH_LABELS : GRAPH_ATTRIBUTES].name);
    if (!status) {
        set->nodes = t.rows;
        set->node_start = calloc((size_t)set->graphs + 2, sizeof *set->node_start);
        *place = basin_array_new((size_t)t.rows, sizeof **place);
        if (!set->node_start || !*place) status = no_memory(f, error);
    }
    if (!status) {
        int64_t *start = set->node_start;
        for (int64_t i = 0; i < t.rows; i++) start[(int64_t)t.number[i] + 1]++;
        for (int64_t g = 0; g <= set->graphs; g++) start[g + 1] += start[g];
        for (int64_t i = 0; i < t.rows; i++) (*place)[i] = (int32_t)start[(int64_t)t.number[i]]++;
    }
    free(t.number);
    return status;
}

/* Columns of reals or of labels, rows moved by `place` where it is not NULL. */
static basin_status read_columns(float **real, int32_t **label, int64_t *columns, const folder *f,
                                 int kind, int64_t rows, const char *of, const int32_t *place,
                                 basin_error *error) {
    table t;
    if (!f->file[kind].data) return BASIN_OK;
    basin_status status = read_table(&t, f, kind, error);
    if (!status) status = want_rows(&t, rows, of, f, kind, error);
    if (!status && label && t.columns > BASIN_MAX_LABELS)
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: %s has %lld columns of labels; wanted %d at "
                            "most",
                            f->path, f->file[kind].name, (long long)t.columns, BASIN_MAX_LABELS);
    size_t count = (size_t)(t.rows * t.columns);
    if (!status && real && !(*real = basin_array_new(count, sizeof **real)))
        status = no_memory(f, error);
    if (!status && label && !(*label = basin_array_new(count, sizeof **label)))
        status = no_memory(f, error);
    for (int64_t i = 0; i < t.rows && !status; i++)
        for (int64_t c = 0; c < t.columns && !status; c++) {
            int64_t to = (place ? place[i] : i) * t.columns + c;
            double value = t.number[i * t.columns + c];
            if (real) (*real)[to] = (float)value;
            if (label) status = as_integer(&(*label)[to], value, f, kind, i, error);
        }
    if (!status) *columns = t.columns;
    free(t.number);
    return status;
}

static basin_status read_edges(basin_graphset *set, const folder *f, const int32_t *place,
                               basin_error *error) {
    table t;
    int32_t *edge = NULL;
    basin_status status = read_table(&t, f, EDGES, error);
    if (!status) status = want_columns(&t, 2, "two nodes", f, EDGES, error);
    if (!status && t.rows > INT32_MAX)
        status = basin_fail(error, BASIN_UNSUPPORTED, "%s: more than 2^31 edges", f->path);
    if (!status && !(edge = basin_array_new((size_t)t.rows, 2 * sizeof *edge)))
        status = no_memory(f, error);
    for (int64_t i = 0; i < 2 * t.rows && !status; i++) {
        int32_t node;
        status = as_integer(&node, t.number[i], f, EDGES, i / 2, error);
        if (!status && (node < 1 || node > set->nodes))
            status = basin_fail(error, BASIN_BAD_FILE,
                                "%s: %s, line %lld: node %d; wanted 1 to %lld, the lines of %s",
                                f->path, f->file[EDGES].name, (long long)i / 2 + 1, node,
                                (long long)set->nodes, f->file[INDICATOR].name);
        if (!status) edge[i] = place[node - 1];
    }
    free(t.number);
    if (!status)
        status = read_columns(&set->edge_attribute, NULL, &set->edge_attributes, f, EDGE_ATTRIBUTES,
                              t.rows, "edge", NULL, error);
    if (!status)
        status = read_columns(NULL, &set->edge_label, &set->edge_labels, f, EDGE_LABELS, t.rows,
                              "edge", NULL, error);
    if (!status)
        status = basin_graphset_set_edges(set, edge, t.rows, f->path, f->file[EDGES].name, error);
    free(edge);
    return status;
}

static int64_t count_lines(const char *c) {
    int64_t lines = 0;
    while (*(c += strspn(c, " \t\r\n"))) {
        lines++;
        c += strcspn(c, "\n");
    }
    return lines;
}

/* Classes from graph_labels; without them, numbers from graph_attributes; without these, nothing:
 * graphs to predict. */
static basin_status read_targets(basin_graphset *set, const folder *f, basin_error *error) {
    int kind = f->file[GRAPH_LABELS].data ? GRAPH_LABELS : GRAPH_ATTRIBUTES;
    table t;
    if (!f->file[kind].data) return BASIN_OK;
    if (f->bare) {
        set->graphs = count_lines(f->file[kind].data);
        return BASIN_OK;
    }
    basin_status status = read_table(&t, f, kind, error);
    if (!status && !t.rows)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s is empty", f->path, f->file[kind].name);
    if (!status && kind == GRAPH_LABELS)
        status = want_columns(&t, 1, "one, the graph's class", f, kind, error);
    set->graphs = t.rows;
    set->task = kind == GRAPH_LABELS ? BASIN_GRAPHS_CLASSES : BASIN_GRAPHS_VALUES;
    int64_t *value = status ? NULL : basin_array_new((size_t)t.rows, sizeof *value);
    if (!status && !value) status = no_memory(f, error);
    for (int64_t i = 0; i < t.rows && !status && kind == GRAPH_LABELS; i++) {
        int32_t number = 0;
        status = as_integer(&number, t.number[i], f, kind, i, error);
        value[i] = number;
    }
    if (!status && kind == GRAPH_LABELS)
        status = basin_graphset_set_classes(set, value, t.rows, error);
    free(value);
    free(t.number);
    if (!status && kind == GRAPH_ATTRIBUTES)
        status = read_columns(&set->target, NULL, &set->targets, f, kind, set->graphs, "graph",
                              NULL, error);
    return status;
}

static basin_status want_file(const folder *f, int kind, basin_error *error) {
    if (f->file[kind].data) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_FILE,
        "%s: no file DS%s; wanted a TUDataset (folder or zip), a packed set or ZINC's npz", f->path,
        suffix[kind]);
}

static basin_status read_set(basin_graphset *set, const folder *f, basin_error *error) {
    int32_t *place = NULL;
    basin_status status = want_file(f, EDGES, error);
    if (!status) status = want_file(f, INDICATOR, error);
    if (status) return status;
    basin_graphset_set_name(set, f->file[EDGES].name,
                            strlen(f->file[EDGES].name) - strlen(suffix[EDGES]));
    status = read_targets(set, f, error);
    if (!status) status = place_nodes(set, &place, f, error);
    if (!status)
        status = read_columns(&set->node_attribute, NULL, &set->node_attributes, f, NODE_ATTRIBUTES,
                              set->nodes, "node", place, error);
    if (!status)
        status = read_columns(NULL, &set->node_label, &set->node_labels, f, NODE_LABELS, set->nodes,
                              "node", place, error);
    if (!status) status = read_edges(set, f, place, error);
    free(place);
    return status;
}

/* Makes a set of what was loaded, and frees that. */
static basin_status make_set(basin_graphset *set, folder *f, basin_status status,
                             basin_error *error) {
    if (!status) status = read_set(set, f, error);
    folder_free(f);
    if (status) basin_graphset_free(set);
    return status;
}

basin_status basin_graphset_parse_tu(basin_graphset *set, const void *data, size_t size,
                                     const char *path, basin_error *error) {
    folder f = {.path = path, .limit = basin_memory_share()};
    *set = (basin_graphset){0};
    return make_set(set, &f, load_archive(&f, data, size, error), error);
}

basin_status basin_graphset_open_tu(basin_graphset *set, const char *path, bool bare,
                                    basin_error *error) {
    struct stat info;
    basin_map map;
    folder f = {.path = path, .bare = bare, .limit = basin_memory_share()};
    *set = (basin_graphset){0};
    if (stat(path, &info)) return basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return make_set(set, &f, load_folder(&f, error), error);
    BASIN_TRY(basin_map_open(&map, path, error));
    basin_status status = make_set(set, &f, load_archive(&f, map.data, map.size, error), error);
    basin_map_close(&map);
    return status;
}
