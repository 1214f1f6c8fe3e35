/* What a reader of tables says: one line a kind of column, and what did not fit the schema. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "data/network/csv/table.h"

/* Columns of one table, by what became of them. */
typedef struct lists {
    basin_list text, date, mark, comma, mixed, label, out, unused, unread;
} lists;

static void add(basin_list *list, const char *name, const char *format, int64_t number) {
    char text[200];
    int length = snprintf(text, sizeof text, "%.100s", name);
    if (format) snprintf(text + length, sizeof text - (size_t)length, format, (long long)number);
    basin_list_add(list, text);
}

static void sort_known(basin_tables *j, lists *l, const basin_column *c, const char *of) {
    if (c->other)
        basin_network_add_note(j->network,
                               "%scolumn '%s': %" PRId64 " rows with values that training did not "
                               "know ('%s'), taken as other",
                               of, c->name, c->other, c->unseen);
    if (c->type != BASIN_COLUMN_DROPPED) return;
    bool before = basin_schema_find(&j->known->nodes, c->name);
    add(before ? &l->out : &l->unused, c->name, before ? " (as in training)" : NULL, 0);
}

static void sort_column(basin_tables *j, lists *l, const basin_column *c) {
    if (c->type == BASIN_COLUMN_CATEGORY)
        add(&l->text, c->name, " (%lld)", c->category.names.names.count);
    if (c->type == BASIN_COLUMN_DATE) add(&l->date, c->name, c->epoch ? " (epoch)" : NULL, 0);
    if (c->type == BASIN_COLUMN_NUMBER && c->comma) add(&l->comma, c->name, NULL, 0);
    if (c->type == BASIN_COLUMN_NUMBER && c->marks) add(&l->mark, c->name, NULL, 0);
    if (c->type == BASIN_COLUMN_NUMBER && c->currencies) add(&l->mixed, c->name, NULL, 0);
    if (c->feature && c->type == BASIN_COLUMN_DROPPED)
        add(&l->out, c->name, c->cells ? " (more than %lld values)" : " (empty)", j->rules.most);
}

static void note_unknown(basin_tables *j) {
    const basin_unknown_ends *u = &j->unknown;
    if (u->edges)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " left out: an end is in no file of nodes ('%s')",
                               u->edges, u->first);
    if (u->nodes)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " nodes added that are in no file of nodes ('%s')",
                               u->nodes, u->first);
    if (j->unnamed && j->unnamed < (int64_t)j->edge_count)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " without a relation are one of their own, called "
                               "'" BASIN_RELATION_EMPTY "'",
                               j->unnamed);
    if (j->filled)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " gaps filled with the mean of their column: rows "
                               "are added up, so that those of nodes alone can be kept",
                               j->filled);
    if (j->late)
        basin_network_add_note(j->network, "edges: %" PRId64 " left out: later than %s", j->late,
                               j->o->until);
}

/* How a file was read. */
static void note_table(basin_tables *j, const basin_table_file *t, const char *of) {
    if (t->headerless)
        basin_network_add_note(j->network,
                               "%s%s has no header: taken as a list of edges, source and target "
                               "first",
                               of, t->source->path);
    if (t->latin)
        basin_network_add_note(j->network, "%s%s holds text that is not UTF-8, taken as Latin-1",
                               of, t->source->path);
    if (t->edges && t->type >= 0 && !j->o->edge_type && !j->known)
        basin_network_add_note(j->network,
                               "edges: by its name column '%s' tells relations, not a fact of an "
                               "edge; the relation column 'none' reads it as one",
                               t->name[t->type]);
}

static void sort_table(basin_tables *j, lists *l, const basin_table_file *t) {
    bool known = j->known && j->known->named;
    for (size_t i = 0; i < t->columns; i++) {
        const basin_column *c = &t->column[i];
        if (!*c->name && c->type == BASIN_COLUMN_DROPPED && !c->feature) {
            add(&l->out, "column", " %lld (no name)", (int64_t)i + 1);
            continue;
        }
        if (t->edges && c->type == BASIN_COLUMN_DROPPED && !t->fact[i])
            add(&l->unread, c->name,
                basin_tables_is_label(j, c->name) ? " (by its name a label)" : NULL, 0);
        if (t->edges && t->fact[i] != c) continue; /* the first table's is said */
        sort_column(j, l, c);
        if (!t->edges && !known && basin_column_is_feature(c->type) &&
            basin_tables_is_label(j, c->name))
            add(&l->label, c->name, NULL, 0);
        if (known && (!t->edges || c->known)) sort_known(j, l, c, t->edges ? "edges: " : "");
    }
}

static void note_columns(basin_tables *j, const basin_table_file *t) {
    const char *of = t->edges ? "edges: " : "";
    lists l = {0};
    note_table(j, t, of);
    sort_table(j, &l, t);
    const struct {
        const basin_list *list;
        const char *what;
    } line[] = {{&l.text, t->edges ? "text, a share a value" : "text, one feature a value"},
                {&l.date, "dates, as days since 1970"},
                {&l.mark, "numbers written with separators, currency or %"},
                {&l.comma, "numbers with a decimal comma"},
                {&l.mixed, "several currencies in one column, not converted"},
                {&l.label, "features that have the usual name of labels; one that tells the answer "
                           "is to be left out (drop)"},
                {&l.out, "columns left out"},
                {&l.unused, "columns not used, since training did not have them"},
                {&l.unread, "columns not read"}};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        if (line[i].list->count)
            basin_network_add_note(j->network, "%s%s: %s", of, line[i].what, line[i].list->text);
}

void basin_tables_note(basin_tables *j) {
    for (int t = 0; t < j->tables; t++) note_columns(j, &j->table[t]);
    note_unknown(j);
}
