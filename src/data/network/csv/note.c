/* What a reader of tables says: a line for each kind of column, and what did not fit the schema. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "data/network/csv/table.h"

/* Columns of one table, by what became of them. */
enum { TEXT, DATE, MARK, COMMA, MIXED, LABEL, OUT, UNUSED, UNREAD, LISTS };
static const char *const what[LISTS] = {
    [TEXT] = "text, one feature a value",
    [DATE] = "dates, as days since 1970",
    [MARK] = "numbers written with separators, currency or %",
    [COMMA] = "numbers with a decimal comma",
    [MIXED] = "several currencies in one column, not converted",
    [LABEL] = "features that have the usual name of labels; one that tells the answer is to be "
              "left out (drop)",
    [OUT] = "columns left out",
    [UNUSED] = "columns not used, since training did not have them",
    [UNREAD] = "columns not read",
};

static void add(basin_list *list, const char *name, const char *format, int64_t number) {
    char text[200];
    int length = snprintf(text, sizeof text, "%.100s", name);
    if (format) snprintf(text + length, sizeof text - (size_t)length, format, (long long)number);
    basin_list_add(list, text);
}

static void list_known(basin_tables *j, basin_list *list, const basin_column *c, const char *of) {
    if (c->other)
        basin_network_add_note(j->network,
                               "%scolumn '%s': %" PRId64 " rows with values that training did not "
                               "know ('%s'), taken as other",
                               of, c->name, c->other, c->unseen);
    if (c->type != BASIN_COLUMN_DROPPED) return;
    bool before = basin_schema_find(&j->known->nodes, c->name);
    add(&list[before ? OUT : UNUSED], c->name, before ? " (as in training)" : NULL, 0);
}

static void list_column(basin_tables *j, basin_list *list, const basin_column *c) {
    bool number = c->type == BASIN_COLUMN_NUMBER;
    if (c->type == BASIN_COLUMN_CATEGORY)
        add(&list[TEXT], c->name, " (%lld)", c->category.names.names.count);
    if (c->type == BASIN_COLUMN_DATE) add(&list[DATE], c->name, c->epoch ? " (epoch)" : NULL, 0);
    if (number && c->comma) add(&list[COMMA], c->name, NULL, 0);
    if (number && c->marks) add(&list[MARK], c->name, NULL, 0);
    if (number && c->currencies) add(&list[MIXED], c->name, NULL, 0);
    if (c->feature && c->type == BASIN_COLUMN_DROPPED)
        add(&list[OUT], c->name, c->cells ? " (more than %lld values)" : " (empty)", j->rules.most);
}

static void list_table(basin_tables *j, basin_list *list, const basin_table_file *t,
                       const char *of) {
    bool known = j->known && j->known->named;
    for (int i = 0; i < t->columns; i++) {
        const basin_column *c = &t->column[i];
        bool dropped = c->type == BASIN_COLUMN_DROPPED;
        bool label = basin_tables_is_label(j, c->name);
        if (!*c->name && dropped && !c->feature) {
            add(&list[OUT], "column", " %lld (no name)", i + 1);
            continue;
        }
        if (t->edges && dropped && !t->cell[i])
            add(&list[UNREAD], c->name, label ? " (by its name a label)" : NULL, 0);
        if (t->edges && t->cell[i] != c) continue; /* the first table's is said */
        list_column(j, list, c);
        if (!t->edges && !known && basin_column_is_feature(c->type) && label)
            add(&list[LABEL], c->name, NULL, 0);
        if (known && (!t->edges || c->known)) list_known(j, list, c, of);
    }
}

static void note_table(basin_tables *j, const basin_table_file *t) {
    const char *of = t->edges ? "edges: " : "";
    int type = t->at[BASIN_ROLE_TYPE];
    basin_list list[LISTS] = {0};
    if (t->headerless)
        basin_network_add_note(j->network,
                               "%s%s has no header: taken as a list of edges, source and target "
                               "first",
                               of, t->source->path);
    if (t->latin)
        basin_network_add_note(j->network, "%s%s holds text that is not UTF-8, taken as Latin-1",
                               of, t->source->path);
    if (type >= 0 && !j->o->edge_type && !j->known)
        basin_network_add_note(j->network,
                               "edges: by its name column '%s' tells relations, not a fact of an "
                               "edge; the relation column 'none' reads it as one",
                               t->column[type].name);
    list_table(j, list, t, of);
    for (int i = 0; i < LISTS; i++)
        if (list[i].count)
            basin_network_add_note(j->network, "%s%s: %s", of,
                                   i == TEXT && t->edges ? "text, a share a value" : what[i],
                                   list[i].text);
}

void basin_tables_note(basin_tables *j) {
    const basin_table_counts *c = &j->counts;
    for (int t = 0; t < j->tables; t++) note_table(j, &j->table[t]);
    if (c->skipped)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " left out: an end is in no file of nodes ('%s')",
                               c->skipped, c->unknown);
    if (c->added)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " nodes added that are in no file of nodes ('%s')",
                               c->added, c->unknown);
    if (c->unnamed && c->unnamed < (int64_t)j->edge_count)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " without a relation are one of their own, called "
                               "'" BASIN_RELATION_EMPTY "'",
                               c->unnamed);
    if (c->filled)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " gaps filled with the mean of their column: rows "
                               "are added up, so that those of nodes alone can be kept",
                               c->filled);
    if (c->late)
        basin_network_add_note(j->network, "edges: %" PRId64 " left out: later than %s", c->late,
                               j->o->until);
}
