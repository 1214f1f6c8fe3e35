/* Headers of tables: which file lists edges, and what each column is for; by options, by the schema
 * of a model, else by usual names. A name that options give and no file has is an error. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"
#include "base/try.h"
#include "data/network/csv/table.h"

/* The usual names, by blanks, the best first. */
static const char usual_from[] =
    "src source from source_id src_id u node1 txId1 sender payer from_account from_id nameOrig "
    "sender_id payer_id sender_account source_account account_from from_node src_account "
    "originator sourceNodeId";
static const char usual_to[] =
    "dst target to target_id dst_id v node2 txId2 receiver payee to_account to_id nameDest "
    "receiver_id payee_id receiver_account target_account account_to to_node dst_account "
    "beneficiary targetNodeId";
static const char usual_type[] = "relation rel type edge_type etype";
static const char usual_id[] = "id node node_id nodeid name txId";
static const char usual_label[] = "label y class is_fraud isfraud fraud anomaly";
static const char *const usual_mask[3] = {"train_mask", "val_mask", "test_mask"};

/* Whether the options say that no column tells relations; one of that name would. */
static bool no_relations(const basin_tables *j) {
    return j->o->edge_type && !strcmp(j->o->edge_type, "none");
}

/* Whether a column has the usual name of labels, or the one that options give. */
bool basin_tables_is_label(const basin_tables *j, const char *name) {
    for (const char *usual = usual_label; *usual;) {
        size_t length = strcspn(usual, " ");
        if (strlen(name) == length && !strncasecmp(usual, name, length)) return true;
        usual += length + (usual[length] == ' ');
    }
    return j->o->label && !strcasecmp(j->o->label, name);
}

/* The column of a role: as an option says, else as the schema, else by a usual name that is not
 * that of a feature. */
static int find_role(const basin_tables *j, const basin_table_rows *rows, const char *option,
                     const basin_schema_column *known, const char *usual) {
    int found = known ? basin_table_rows_column(rows, known->name) : -1;
    if (option) return basin_table_rows_column(rows, option);
    while (found < 0 && *usual) {
        char name[40];
        size_t length = strcspn(usual, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, usual);
        const basin_schema_column *other =
            j->known ? basin_schema_find(&j->known->nodes, name) : NULL;
        if (!other || !basin_column_is_feature(other->type))
            found = basin_table_rows_column(rows, name);
        usual += length + (usual[length] == ' ');
    }
    return found;
}

static const basin_schema_column *known_role(const basin_tables *j, bool edges,
                                             basin_column_type type) {
    if (!j->known) return NULL;
    return basin_schema_role(edges ? &j->known->edges : &j->known->nodes, type);
}

bool basin_tables_drop(const basin_tables *j, const char *name) {
    const char *list = j->o->drop;
    size_t length = strlen(name);
    while (list && *list) {
        size_t part = strcspn(list, ",");
        if (part == length && !strncasecmp(list, name, part)) return true;
        list += part + (list[part] == ',');
    }
    return false;
}

/* A column without a name is what a program wrote that numbers rows, or the end of lines that end
 * with a delimiter; models of 0.2 may have been trained with it. */
bool basin_tables_has_name(const basin_tables *j, bool edges, const char *name) {
    return *name ||
           (j->known && basin_schema_find(edges ? &j->known->edges : &j->known->nodes, name));
}

/* ---- one table ---- */

static basin_status keep_names(basin_tables *j, basin_table_file *t, const basin_table_rows *rows) {
    t->name = calloc(rows->columns, sizeof *t->name);
    t->column = calloc(rows->columns, sizeof *t->column);
    if (!t->name || !t->column) return basin_tables_no_memory(j, rows->path);
    t->columns = rows->columns;
    for (size_t i = 0; i < t->columns; i++) {
        t->name[i] = basin_string_copy(rows->name[i]);
        t->column[i].name = t->name[i];
        if (!t->name[i]) return basin_tables_no_memory(j, rows->path);
    }
    return BASIN_OK;
}

/* The type of a column by its role; DROPPED where it has none. */
static basin_column_type role_of(const basin_table_file *t, int i) {
    if (t->edges)
        return i == t->from   ? BASIN_COLUMN_SOURCE
               : i == t->to   ? BASIN_COLUMN_TARGET
               : i == t->type ? BASIN_COLUMN_RELATION
                              : BASIN_COLUMN_DROPPED;
    if (i == t->split || i == t->mask[0] || i == t->mask[1] || i == t->mask[2])
        return BASIN_COLUMN_SPLIT;
    return i == t->id ? BASIN_COLUMN_ID : i == t->label ? BASIN_COLUMN_LABEL : BASIN_COLUMN_DROPPED;
}

/* Two columns of one name could not be told apart. Names of facts are so by letters of any case. */
static basin_status check_once(basin_tables *j, const basin_table_file *t) {
    const basin_schema_table *known =
        j->known && j->known->named ? t->edges ? &j->known->edges : &j->known->nodes : NULL;
    for (size_t i = 0; i < t->columns; i++) {
        const char *name = t->name[i];
        if (!*name || basin_tables_drop(j, name) || (known && !basin_schema_find(known, name)))
            continue;
        for (size_t k = 0; k < i; k++)
            if (!(t->edges ? strcasecmp : strcmp)(t->name[k], name))
                return basin_fail(j->error, BASIN_BAD_FILE,
                                  "%s: two columns are called '%s', wanted it once",
                                  t->source->path, name);
    }
    return BASIN_OK;
}

/* One column for two roles that options give. */
static basin_status fail_both(basin_tables *j, const basin_table_file *t, int column,
                              const char *roles) {
    return basin_fail(j->error, BASIN_BAD_VALUE,
                      "%s: column '%s' is given for two things (%s), wanted one column each",
                      t->source->path, t->name[column], roles);
}

static basin_status read_node_header(basin_tables *j, basin_table_file *t,
                                     const basin_table_rows *rows) {
    const basin_schema_column *id = known_role(j, false, BASIN_COLUMN_ID);
    const basin_schema_column *label = known_role(j, false, BASIN_COLUMN_LABEL);
    j->node_tables++;
    t->id = find_role(j, rows, j->o->id, id, usual_id);
    if (t->id < 0 && j->o->id)
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: no column '%s' for the ids of nodes",
                          rows->path, j->o->id);
    if (t->id < 0) t->id = 0;
    t->label = find_role(j, rows, j->o->label, label, usual_label);
    if (t->label == t->id && (j->o->label || j->o->id))
        return fail_both(j, t, t->id, "ids, labels");
    t->split = find_role(j, rows, NULL, NULL, "split");
    for (int i = 0; i < 3; i++) t->mask[i] = find_role(j, rows, NULL, NULL, usual_mask[i]);
    for (int i = 0; i < (int)t->columns; i++) {
        t->column[i].type = role_of(t, i);
        t->column[i].feature = t->column[i].type == BASIN_COLUMN_DROPPED &&
                               !basin_tables_drop(j, t->name[i]) &&
                               basin_tables_has_name(j, false, t->name[i]);
    }
    return check_once(j, t);
}

static basin_status read_header(basin_tables *j, basin_table_file *t,
                                const basin_table_rows *rows) {
    const basin_schema_column *type = known_role(j, true, BASIN_COLUMN_RELATION);
    BASIN_TRY(keep_names(j, t, rows));
    t->from =
        find_role(j, rows, j->o->source, known_role(j, true, BASIN_COLUMN_SOURCE), usual_from);
    t->to = find_role(j, rows, j->o->target, known_role(j, true, BASIN_COLUMN_TARGET), usual_to);
    t->edges = t->from >= 0 && t->to >= 0;
    if (!t->edges) return read_node_header(j, t, rows);
    if (t->from == t->to) return fail_both(j, t, t->from, "sources, targets");
    t->type = find_role(j, rows, j->o->edge_type, type, usual_type);
    /* A column that training had not, or did not read so, makes no relations now. */
    if (j->known && j->known->edges.columns && !type && !j->o->edge_type) t->type = -1;
    for (int i = 0; i < (int)t->columns; i++) t->column[i].type = role_of(t, i);
    return check_once(j, t);
}

/* ---- names that no file has ---- */

/* Whether some table has the column, as a role of it where `type` says so. */
static bool is_there(const basin_tables *j, const char *name, bool edges, bool nodes) {
    for (int t = 0; t < j->tables; t++) {
        const basin_table_file *at = &j->table[t];
        for (size_t i = 0; i < at->columns; i++)
            if ((at->edges ? edges : nodes) && !strcasecmp(at->name[i], name)) return true;
    }
    return false;
}

basin_status basin_tables_fail_absent(basin_tables *j, const basin_table_file *table,
                                      const char *name, const char *what) {
    basin_near near = basin_near_begin(name);
    basin_list list = {0};
    for (int t = 0; t < j->tables; t++)
        for (size_t i = 0; (!table || table == &j->table[t]) && i < j->table[t].columns; i++) {
            basin_list_add(&list, j->table[t].name[i]);
            if (strcasecmp(j->table[t].name[i], name) != 0)
                basin_near_see(&near, j->table[t].name[i]);
        }
    return basin_fail(j->error, BASIN_BAD_VALUE, "%s: no column '%s' %s; %s%s%s",
                      (table ? table : j->table)->source->path, name, what,
                      near.name ? "did you mean '" : "there are ",
                      near.name ? near.name : list.text, near.name ? "'?" : "");
}

static basin_status check_drops(basin_tables *j) {
    for (const char *list = j->o->drop; list && *list;) {
        char name[300];
        int part = (int)strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", part, list);
        if (part && !is_there(j, name, true, true))
            return basin_tables_fail_absent(j, NULL, name, "to drop");
        list += part + (list[part] == ',');
    }
    return BASIN_OK;
}

/* Every name that the options give. */
static basin_status check_names(basin_tables *j) {
    const struct {
        const char *name, *what;
        bool edges, nodes;
    } role[] = {{j->o->source, "for the sources of edges", true, true},
                {j->o->target, "for the targets of edges", true, true},
                {j->o->label, "for labels in a file of nodes", false, true},
                {j->o->edge_type, "for relations in a file of edges", true, false},
                {j->o->time, "for the times of edges", true, false}};
    for (size_t i = 0; i < sizeof role / sizeof *role; i++)
        if (role[i].name && !(role[i].name == j->o->edge_type && no_relations(j)) &&
            !is_there(j, role[i].name, role[i].edges, role[i].nodes))
            return basin_tables_fail_absent(j, NULL, role[i].name, role[i].what);
    return check_drops(j);
}

/* ---- against the schema ---- */

/* The table and column of that name; NULL: none, or an error where two tables have it. */
static basin_status find_feature(basin_tables *j, basin_column **found, const char *name) {
    const char *path = NULL;
    *found = NULL;
    for (int exact = 1; exact >= 0 && !*found; exact--)
        for (int t = 0; t < j->tables; t++) {
            const basin_table_file *at = &j->table[t];
            for (size_t i = 0; !at->edges && i < at->columns; i++) {
                bool same = exact ? !strcmp(at->name[i], name) : !strcasecmp(at->name[i], name);
                if (!same || !at->column[i].feature) continue;
                if (*found)
                    return basin_fail(j->error, BASIN_BAD_FILE,
                                      "%s: column '%s' is in %s as well; wanted it once",
                                      at->source->path, name, path);
                *found = &at->column[i];
                path = at->source->path;
            }
        }
    return BASIN_OK;
}

static basin_status bind_column(basin_tables *j, const basin_schema_column *known) {
    basin_column *found;
    BASIN_TRY(find_feature(j, &found, known->name));
    if (!found)
        return basin_tables_fail_absent(j, NULL, known->name,
                                        "with which the detector was trained");
    return basin_column_know(found, known, j->error);
}

/* Finds the schema's columns by name. What the schema does not know is no feature. */
static basin_status bind_schema(basin_tables *j) {
    const basin_schema *s = j->known;
    const basin_schema_column *type = known_role(j, true, BASIN_COLUMN_RELATION);
    for (size_t i = 0; i < s->nodes.columns; i++)
        if (basin_column_is_feature(s->nodes.column[i].type))
            BASIN_TRY(bind_column(j, &s->nodes.column[i]));
    if (type && !j->o->edge_type && !is_there(j, type->name, true, false))
        BASIN_TRY(basin_tables_fail_absent(j, NULL, type->name,
                                           "for relations, with which the detector was trained"));
    for (int t = 0; t < j->tables; t++)
        for (size_t i = 0; i < j->table[t].columns; i++) {
            basin_column *c = &j->table[t].column[i];
            c->feature = c->feature && c->known;
        }
    return BASIN_OK;
}

/* A feature that is there twice could not be told apart by its name. */
static basin_status check_twice(basin_tables *j) {
    basin_column *found;
    for (int t = 0; t < j->tables; t++)
        for (size_t i = 0; i < j->table[t].columns; i++)
            if (j->table[t].column[i].feature)
                BASIN_TRY(find_feature(j, &found, j->table[t].name[i]));
    return BASIN_OK;
}

/* ---- all tables ---- */

static basin_status check_edges(basin_tables *j) {
    int count = j->tables;
    if (j->node_tables < count) return BASIN_OK;
    return basin_fail(
        j->error, BASIN_BAD_FILE,
        "%s: no column for the source and the target of an edge is in %s header%s "
        "(src and dst are the usual names; the options source and target tell others)",
        j->table[0].source->path, count > 1 ? "any" : "its", count > 1 ? " of the files" : "");
}

basin_status basin_tables_read_headers(basin_tables *j, const basin_csv_source *source, int count) {
    basin_status status = BASIN_OK;
    if (count > BASIN_MOST_TABLES)
        return basin_fail(j->error, BASIN_BAD_VALUE, "%d files, wanted at most %d", count,
                          BASIN_MOST_TABLES);
    for (int i = 0; i < count && !status; i++) {
        basin_table_file *t = &j->table[j->tables];
        basin_table_rows rows;
        status = basin_table_rows_open(&rows, &source[i], j->error);
        if (status) break;
        *t = (basin_table_file){.source = &source[i]};
        t->label = t->split = t->mask[0] = t->mask[1] = t->mask[2] = t->type = -1;
        j->tables++;
        t->headerless = rows.headerless;
        status = read_header(j, t, &rows);
        basin_table_rows_close(&rows);
    }
    if (!status) status = check_names(j);
    if (!status) status = check_edges(j);
    if (!status) status = j->known && j->known->named ? bind_schema(j) : check_twice(j);
    return status ? status : basin_tables_bind_facts(j);
}

/* ---- what a reader says: one line a kind of column, and what did not fit the schema ---- */

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
