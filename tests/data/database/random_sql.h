/* Random tables as SQL that makes them, for SQLite and PostgreSQL alike; and the check that both
 * give the network that CSV gives. */
#ifndef TESTS_DATA_DATABASE_RANDOM_SQL_H
#define TESTS_DATA_DATABASE_RANDOM_SQL_H

#include "base/team/processors.h"
#include "data/network/random_table.h"

enum { SQL_CASES = 50 };

/* Numbers and dates have types of their own in some tables, and are text in others. */
static inline const char *sql_type(const table *t, int column, bool typed) {
    if (column == t->columns + 1) return "INTEGER";
    if (!typed || column >= t->columns) return "TEXT";
    return t->kind[column] == PLAIN  ? "DOUBLE PRECISION"
           : t->kind[column] == DATE ? "TIMESTAMPTZ"
                                     : "TEXT";
}

static inline size_t put_sql_text(char *text, const char *value, char quote) {
    size_t n = 0;
    text[n++] = quote;
    for (; *value; value++) {
        if (*value == quote) text[n++] = quote;
        text[n++] = *value;
    }
    text[n++] = quote;
    text[n] = 0;
    return n;
}

static inline const char *random_sql(const table *t, bool typed) {
    static char text[2 * TEXT];
    char number[CELL], *at = text;
    at += sprintf(at, "DROP TABLE IF EXISTS nodes; DROP TABLE IF EXISTS edges;\n"
                      "CREATE TABLE edges (src TEXT, dst TEXT, channel TEXT);\n"
                      "CREATE TABLE nodes (");
    for (int c = 0; c < t->columns + 2; c++) {
        at += put_sql_text(at, cell_at(number, t, -1, c), '"');
        at += sprintf(at, " %s%s", sql_type(t, c, typed), c <= t->columns ? ", " : ");\n");
    }
    for (int i = 0; i < t->rows; i++) {
        at += sprintf(at, "INSERT INTO nodes VALUES (");
        for (int c = 0; c < t->columns + 2; c++) {
            const char *cell = cell_at(number, t, i, c);
            at += *cell ? put_sql_text(at, cell, '\'') : (size_t)sprintf(at, "NULL");
            at += sprintf(at, "%s", c <= t->columns ? ", " : ");\n");
        }
    }
    for (int e = 0; e < t->edges; e++)
        at += sprintf(at, "INSERT INTO edges VALUES ('n%d', 'n%d', 'r%d');\n", t->edge[e][0],
                      t->edge[e][1], t->edge[e][2]);
    return text;
}

static inline char *file_bytes(size_t *size, void **state, const char *name) {
    char path[PATH_TEXT];
    FILE *file = fopen(folder_path(path, state, name), "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    unlink(path);
    return bytes;
}

/* As files, byte for byte. */
static inline void assert_same_files(void **state, const basin_network *a, const basin_network *b) {
    char path[PATH_TEXT];
    size_t size[2];
    const basin_network *network[2] = {a, b};
    char *bytes[2];
    for (int i = 0; i < 2; i++) {
        folder_path(path, state, "same.basin");
        assert_int_equal(basin_network_write(path, network[i], NULL), BASIN_OK);
        bytes[i] = file_bytes(&size[i], state, "same.basin");
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* Ids, columns and schemas, what was said, and what networks.h compares. */
static inline void assert_same_networks(const basin_network *a, const basin_network *b) {
    char *schema[2] = {basin_schema_print(a->schema), basin_schema_print(b->schema)};
    char text[2][BASIN_NODE_TEXT];
    assert_networks_equal(a, b);
    for (int64_t i = 0; i < a->nodes; i++)
        assert_string_equal(basin_network_id(a, i, text[0]), basin_network_id(b, i, text[1]));
    assert_true(schema[0] && schema[1]);
    assert_string_equal(schema[0], schema[1]);
    assert_string_equal(a->note ? a->note : "", b->note ? b->note : "");
    free(schema[0]);
    free(schema[1]);
}

/* The tables are in the database: read from there and from CSV they are one network. */
static inline void assert_read_alike(void **state, const table *t, const char *address,
                                     const basin_network_options *options, bool write) {
    basin_network *files, *queries;
    basin_error error;
    basin_network_options o = *options;
    layout l = plain_layout(t);
    if (read_table(&files, t, &l, &o, &error)) fail_msg("%s", error.text);
    o.nodes = "SELECT * FROM nodes";
    o.edges = "SELECT src, dst, channel FROM edges";
    if (basin_network_open(&queries, &address, 1, &o, &error)) fail_msg("%s", error.text);
    assert_same_networks(files, queries);
    if (write) assert_same_files(state, files, queries);
    basin_network_free(files);
    basin_network_free(queries);
}

/* Writing waits for the disk, so that only some cases are written. Read both by their own columns
 * and by the schema of other tables. */
static inline void assert_cases_alike(void **state, const char *address,
                                      void (*make)(const char *address, const char *sql)) {
    basin_processors_set(1); /* the tables are tiny: threads would only wait for each other */
    for (uint64_t i = 0; i < SQL_CASES; i++) {
        basin_random random = basin_random_start(20261116, i, 0);
        basin_network *first;
        basin_error error;
        table t = random_table(&random);
        layout l = plain_layout(&t);
        basin_network_options o = {.directed = t.directed,
                                   .unite = true,
                                   .edge_type = "channel",
                                   .max_categories = 8,
                                   .missing = t.gaps ? BASIN_MISSING_MEAN : 0};
        make(address, random_sql(&t, i % 2));
        assert_read_alike(state, &t, address, &o, i % 10 < 2);
        if (read_table(&first, &t, &l, &o, &error)) fail_msg("%s", error.text);
        o = (basin_network_options){.unite = true, .schema = first->schema};
        assert_read_alike(state, &t, address, &o, false);
        basin_network_free(first);
    }
}

#endif
