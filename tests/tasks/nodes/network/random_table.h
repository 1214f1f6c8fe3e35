/* Random tables of accounts and transfers, and their text with columns and rows in any order. */
#ifndef TESTS_DATA_NETWORK_RANDOM_TABLE_H
#define TESTS_DATA_NETWORK_RANDOM_TABLE_H

#include "basin/random.h"
#include "tasks/nodes/network/networks.h"

enum { ROWS = 24, COLUMNS = 9, EDGES = 40, CELL = 32, TEXT = 1 << 16, KINDS = 6 };
enum { PLAIN, MONEY, COMMA, DATE, CITY, CODE };

typedef struct table {
    int rows, columns, edges, relations;
    int kind[COLUMNS];
    char name[COLUMNS][CELL], cell[ROWS][COLUMNS][CELL];
    bool label[ROWS];
    int edge[EDGES][3]; /* from, to, relation */
    bool directed, gaps;
} table;

/* How a table is written down. */
typedef struct layout {
    int row[ROWS], column[COLUMNS + 2]; /* orders; the last two columns are id and label */
    int rows, columns;
    bool turned; /* columns of edges the other way round */
    const char *extra;
    int relations; /* edges of the first so many alone */
} layout;

static inline int draw(basin_random *r, int below) {
    return (int)basin_random_below(r, (uint64_t)below);
}

static inline void shuffle_ints(int *list, int count, basin_random *r) {
    for (int i = count - 1; i > 0; i--) {
        int k = draw(r, i + 1), x = list[i];
        list[i] = list[k];
        list[k] = x;
    }
}

static inline void draw_cell(char *cell, int kind, basin_random *r) {
    static const char *const city[] = {"Rome", "Paris", "Kyiv", "Lima", "O, \"x\""};
    int a = draw(r, 900) + 1, b = 100 + draw(r, 900), c = draw(r, 100);
    switch (kind) {
    case PLAIN: snprintf(cell, CELL, "%d.%02d", a - 450, c); break;
    case MONEY: snprintf(cell, CELL, c % 3 ? "$%d,%d.%02d" : "($%d,%d.%02d)", a, b, c); break;
    case COMMA: snprintf(cell, CELL, "%d.%d,%02d EUR", a, b, c); break;
    case DATE:
        snprintf(cell, CELL, "20%02d-%02d-%02dT%02d:30:00Z", c % 30, a % 12 + 1, b % 28 + 1,
                 c % 24);
        break;
    case CITY: snprintf(cell, CELL, "%s", city[a % 5]); break;
    default: snprintf(cell, CELL, "x%d-%d", a, b); break;
    }
}

static inline table random_table(basin_random *r) {
    table t = {.rows = 4 + draw(r, ROWS - 3),
               .columns = 1 + draw(r, COLUMNS),
               .edges = 1 + draw(r, EDGES),
               .relations = 1 + draw(r, 3),
               .directed = draw(r, 2),
               .gaps = draw(r, 2)};
    for (int c = 0; c < t.columns; c++) {
        t.kind[c] = draw(r, KINDS);
        snprintf(t.name[c], CELL, "%s %d", &"amount"[draw(r, 3)], c);
        for (int i = 0; i < t.rows; i++) {
            draw_cell(t.cell[i][c], t.kind[c], r);
            if (t.gaps && i && draw(r, 6) == 0) t.cell[i][c][0] = 0;
        }
    }
    for (int i = 0; i < t.rows; i++) t.label[i] = i % 2;
    for (int e = 0; e < t.edges; e++) {
        t.edge[e][0] = draw(r, t.rows);
        t.edge[e][1] = draw(r, t.rows);
        t.edge[e][2] = e < t.relations ? e : draw(r, t.relations);
    }
    return t;
}

static inline layout plain_layout(const table *t) {
    layout l = {.rows = t->rows, .columns = t->columns + 2, .relations = t->relations};
    for (int i = 0; i < t->rows; i++) l.row[i] = i;
    for (int c = 0; c < l.columns; c++) l.column[c] = c;
    return l;
}

static inline size_t put_cell(char *text, const char *cell, const char *end) {
    size_t n = 0;
    bool quoted = strpbrk(cell, ",\"");
    if (quoted) text[n++] = '"';
    for (; *cell; cell++) {
        if (*cell == '"') text[n++] = '"';
        text[n++] = *cell;
    }
    if (quoted) text[n++] = '"';
    return n + (size_t)sprintf(text + n, "%s", end);
}

/* Row -1 is the header. */
static inline const char *cell_at(char number[CELL], const table *t, int row, int column) {
    if (column < t->columns) return row < 0 ? t->name[column] : t->cell[row][column];
    if (row < 0) return column == t->columns ? "id" : "label";
    snprintf(number, CELL, column == t->columns ? "n%d" : "%d",
             column == t->columns ? row : t->label[row]);
    return number;
}

static inline void put_nodes(char *text, const table *t, const layout *l) {
    char number[CELL];
    for (int i = -1; i < l->rows; i++) {
        for (int c = 0; c < l->columns; c++)
            text += put_cell(text, cell_at(number, t, i < 0 ? -1 : l->row[i], l->column[c]),
                             c + 1 < l->columns || l->extra ? "," : "\n");
        if (l->extra) text += sprintf(text, "%s\n", i < 0 ? l->extra : "7");
    }
}

static inline void put_edges(char *text, const table *t, const layout *l) {
    text += sprintf(text, l->turned ? "channel,dst,when,src\n" : "src,dst,channel\n");
    for (int e = 0; e < t->edges; e++) {
        const int *x = t->edge[e];
        if (x[2] >= l->relations) continue;
        text += l->turned ? sprintf(text, "r%d,n%d,monday,n%d\n", x[2], x[1], x[0])
                          : sprintf(text, "n%d,n%d,r%d\n", x[0], x[1], x[2]);
    }
}

/* Reads what is written so, as basin_network_open reads files. */
static inline basin_status read_table(basin_network **n, const table *t, const layout *l,
                                      const basin_network_options *o, basin_error *error) {
    static char nodes[TEXT], edges[TEXT];
    put_nodes(nodes, t, l);
    put_edges(edges, t, l);
    basin_csv_source source[] = {{.path = "nodes.csv", .data = nodes, .size = strlen(nodes)},
                                 {.path = "edges.csv", .data = edges, .size = strlen(edges)}};
    basin_status status = basin_network_csv_read(n, source, 2, o, error);
    if (!status) status = basin_network_finish(*n, o, error);
    if (!status) return BASIN_OK;
    basin_network_close(*n);
    *n = NULL;
    return status;
}

#endif
