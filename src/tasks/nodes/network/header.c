/* Headers: which file lists edges, what each column is for; by options, schema, usual names. */
#include <ctype.h>
#include <inttypes.h>
#include <strings.h>

#include "base/text.h"
#include "tasks/nodes/network/tables.h"

/* The usual names by blanks, the best first. */
static const struct {
    basin_column_type type;
    bool edges;
    const char *usual;
} roles[BASIN_ROLES] = {
    [BASIN_ROLE_SPLIT] = {BASIN_COLUMN_SPLIT, false, "split"},
    [BASIN_ROLE_MASK] = {BASIN_COLUMN_SPLIT, false, "train_mask"},
    [BASIN_ROLE_MASK + 1] = {BASIN_COLUMN_SPLIT, false, "val_mask"},
    [BASIN_ROLE_MASK + 2] = {BASIN_COLUMN_SPLIT, false, "test_mask"},
    [BASIN_ROLE_ID] = {BASIN_COLUMN_ID, false, "id node node_id nodeid name txId"},
    [BASIN_ROLE_LABEL] = {BASIN_COLUMN_LABEL, false,
                          "label y class is_fraud isfraud fraud anomaly"},
    [BASIN_ROLE_FROM] = {BASIN_COLUMN_SOURCE, true,
                         "src source from source_id src_id u node1 txId1 sender payer from_account "
                         "from_id nameOrig sender_id payer_id sender_account source_account "
                         "account_from from_node src_account originator sourceNodeId debtor "
                         "debtor_id debtor_account debtor_iban orig_acct orig_id orig"},
    [BASIN_ROLE_TO] = {BASIN_COLUMN_TARGET, true,
                       "dst target to target_id dst_id v node2 txId2 receiver payee to_account "
                       "to_id nameDest receiver_id payee_id receiver_account target_account "
                       "account_to to_node dst_account beneficiary targetNodeId creditor "
                       "creditor_id creditor_account creditor_iban bene_acct bene_id bene "
                       "counterparty_id counterparty"},
    [BASIN_ROLE_TYPE] = {BASIN_COLUMN_RELATION, true, "relation rel type edge_type etype"},
};

static const char beside_counterparty[] = "account_id account src source";

/* The next of some words with `mark` between them; false after the last. */
enum { WORD = 300 };
static bool next_word(char word[WORD], const char **list, char mark) {
    if (!*list || !**list) return false;
    int length = (int)strcspn(*list, (const char[]){mark, 0});
    snprintf(word, WORD, "%.*s", length, *list);
    *list += length + ((*list)[length] == mark);
    return true;
}

static bool is_listed(const char *list, char mark, const char *name) {
    char word[WORD];
    while (next_word(word, &list, mark))
        if (!strcasecmp(word, name)) return true;
    return false;
}

/* Whether a column has the name of labels, the usual one or the options'. */
static bool is_label(const basin_tables *j, const char *name) {
    return is_listed(roles[BASIN_ROLE_LABEL].usual, ' ', name) ||
           (j->t->label && !strcasecmp(j->t->label, name));
}

static bool is_dropped(const basin_tables *j, const char *name) {
    return is_listed(j->t->drop, ',', name);
}

static const basin_schema_table *known_table(const basin_tables *j, bool edges) {
    return !j->known ? NULL : edges ? &j->known->edges : &j->known->nodes;
}

/* Whether a column can be a feature, or a fact of edges. */
static bool may_be_read(const basin_tables *j, const basin_table_file *t, int i) {
    const basin_column *c = &t->column[i];
    return c->type == BASIN_COLUMN_DROPPED && !is_dropped(j, c->name) &&
           (*c->name || (j->known && basin_schema_find(known_table(j, t->edges), c->name)));
}

int basin_table_column(const basin_table_file *t, const char *name) {
    for (int i = 0; i < t->columns; i++)
        if (!strcasecmp(t->column[i].name, name)) return i;
    return -1;
}

/* ---- one table ---- */

static const basin_schema_column *schema_role(const basin_schema_table *table,
                                              basin_column_type type) {
    for (size_t i = 0; i < table->columns; i++)
        if (table->column[i].type == type) return &table->column[i];
    return NULL;
}

static const basin_schema_column *known_role(const basin_tables *j, basin_role role) {
    bool split = roles[role].type == BASIN_COLUMN_SPLIT;
    return j->known && !split ? schema_role(known_table(j, roles[role].edges), roles[role].type)
                              : NULL;
}

/* The column of a role: by option, schema, or a usual name that is not that of a feature. */
static int find_role(const basin_tables *j, const basin_table_file *t, basin_role role) {
    const char *const option[BASIN_ROLES] = {[BASIN_ROLE_ID] = j->t->id,
                                             [BASIN_ROLE_LABEL] = j->t->label,
                                             [BASIN_ROLE_FROM] = j->t->source,
                                             [BASIN_ROLE_TO] = j->t->target,
                                             [BASIN_ROLE_TYPE] = j->t->edge_type};
    const basin_schema_column *known = known_role(j, role);
    const char *usual = roles[role].usual;
    char name[WORD];
    if (option[role]) return basin_table_column(t, option[role]);
    /* Beside its counterparty an account is a source; beside "target" it may be any node. */
    if (role == BASIN_ROLE_FROM && (basin_table_column(t, "counterparty_id") >= 0 ||
                                    basin_table_column(t, "counterparty") >= 0))
        usual = beside_counterparty;
    int found = known ? basin_table_column(t, known->name) : -1;
    while (found < 0 && next_word(name, &usual, ' ')) {
        const basin_schema_column *other =
            j->known ? basin_schema_find(&j->known->nodes, name) : NULL;
        if (!other || !basin_column_is_feature(other->type)) found = basin_table_column(t, name);
    }
    return found;
}

/* The name of column i, before the first row is asked for: as the header has it, else in `text`. */
static const char *table_rows_name(char text[BASIN_COLUMN_TEXT], const basin_table_rows *rows,
                                   int i) {
    const char *field = basin_table_rows_field(rows, i);
    bool number = isdigit((unsigned char)*field) || *field == '-' || *field == '.';
    if (!rows->headerless) return field;
    if (i < 2) return i ? "dst" : "src";
    if (i == 2 && !number) return "relation";
    snprintf(text, BASIN_COLUMN_TEXT, "column %d", i + 1);
    return text;
}

static basin_status keep_names(basin_tables *j, basin_table_file *t, const basin_table_rows *rows) {
    char text[BASIN_COLUMN_TEXT];
    BASIN_TRY(BASIN_NEW(&t->cell, rows->columns, "columns", j->error));
    BASIN_TRY(BASIN_NEW(&t->column, rows->columns, "columns", j->error));
    t->columns = (int)rows->columns;
    for (int i = 0; i < t->columns; i++)
        if (!(t->column[i].name = basin_string_copy(table_rows_name(text, rows, i))))
            return basin_fail_memory(j->error, "columns");
    return BASIN_OK;
}

static basin_column_type type_of(const basin_table_file *t, int i) {
    for (int r = 0; r < BASIN_ROLES; r++)
        if (t->at[r] == i) return roles[r].type;
    return BASIN_COLUMN_DROPPED;
}

/* Two columns of one name could not be told apart. Names of facts are so by letters of any case. */
static basin_status check_once(basin_tables *j, const basin_table_file *t) {
    const basin_schema_table *known = j->known && j->known->named ? known_table(j, t->edges) : NULL;
    for (int i = 0; i < t->columns; i++) {
        const char *name = t->column[i].name;
        if (!*name || is_dropped(j, name) || (known && !basin_schema_find(known, name))) continue;
        for (int k = 0; k < i; k++)
            if (!(t->edges ? strcasecmp : strcmp)(t->column[k].name, name))
                return basin_fail(j->error, BASIN_BAD_FILE,
                                  "%s: two columns are called '%s', expected it once",
                                  t->source->path, name);
    }
    return BASIN_OK;
}

static basin_status fail_both(basin_tables *j, const basin_table_file *t, basin_role role,
                              const char *both) {
    return basin_fail(j->error, BASIN_BAD_VALUE,
                      "%s: column '%s' is given for two things (%s), expected one column each",
                      t->source->path, t->column[t->at[role]].name, both);
}

static basin_status settle_roles(basin_tables *j, basin_table_file *t) {
    int *at = t->at;
    if (t->edges) {
        if (at[BASIN_ROLE_FROM] == at[BASIN_ROLE_TO])
            return fail_both(j, t, BASIN_ROLE_FROM, "sources, targets");
        /* A column that training had not, or did not read so, makes no relations now. */
        bool known = j->known && (j->known->edges.columns || j->o->base);
        if (known && !known_role(j, BASIN_ROLE_TYPE) && !j->t->edge_type) at[BASIN_ROLE_TYPE] = -1;
        return BASIN_OK;
    }
    if (at[BASIN_ROLE_ID] < 0 && j->t->id)
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: no column '%s' for the ids of nodes",
                          t->source->path, j->t->id);
    if (at[BASIN_ROLE_ID] < 0) at[BASIN_ROLE_ID] = 0;
    if (at[BASIN_ROLE_LABEL] == at[BASIN_ROLE_ID] && (j->t->label || j->t->id))
        return fail_both(j, t, BASIN_ROLE_ID, "ids, labels");
    return BASIN_OK;
}

static basin_status read_header(basin_tables *j, basin_table_file *t) {
    t->edges = find_role(j, t, BASIN_ROLE_FROM) >= 0 && find_role(j, t, BASIN_ROLE_TO) >= 0;
    for (int r = 0; r < BASIN_ROLES; r++)
        t->at[r] = roles[r].edges == t->edges ? find_role(j, t, (basin_role)r) : -1;
    BASIN_TRY(settle_roles(j, t));
    j->node_tables += !t->edges;
    if (t->edges && !j->first) j->first = t;
    for (int i = 0; i < t->columns; i++) {
        t->column[i].type = type_of(t, i);
        t->column[i].feature = !t->edges && may_be_read(j, t, i);
    }
    return check_once(j, t);
}

/* ---- names that no file has ---- */

/* Who has a column that the tables lack. */
static const char *which_has(const basin_tables *j, const char *of_training, const char *of_base) {
    return strcmp(j->rules.origin, "training") != 0 ? of_base : of_training;
}

static bool is_there(const basin_tables *j, const char *name, bool edges, bool nodes) {
    for (int t = 0; t < j->tables; t++)
        if ((j->table[t].edges ? edges : nodes) && basin_table_column(&j->table[t], name) >= 0)
            return true;
    return false;
}

/* A table, or where it is NULL all of them, lack a column; says which one may be meant. */
static basin_status fail_absent(basin_tables *j, const basin_table_file *table, const char *name,
                                const char *what) {
    const char *path = (table ? table : j->table)->source->path;
    if (is_dropped(j, name) && is_there(j, name, true, true))
        return basin_fail(j->error, BASIN_BAD_VALUE,
                          "%s: the option drop leaves out column '%s' %s; remove it from drop%s",
                          path, name, what,
                          which_has(j, ", or use a detector trained without it", ""));
    basin_near near = basin_near_begin(name);
    basin_list list = {0};
    for (int t = 0; t < j->tables; t++)
        for (int i = 0; (!table || table == &j->table[t]) && i < j->table[t].columns; i++) {
            const char *other = j->table[t].column[i].name;
            basin_list_add(&list, other);
            if (strcasecmp(other, name) != 0) basin_near_see(&near, other);
        }
    return basin_fail(j->error, BASIN_BAD_VALUE, "%s: no column '%s' %s; %s%s%s", path, name, what,
                      near.name ? "did you mean '" : "there are ",
                      near.name ? near.name : list.text, near.name ? "'?" : "");
}

/* Features and facts of edges can be left out; ids, labels and the like cannot. */
static basin_status check_dropped(const basin_tables *j, const char *name) {
    const basin_table_file *with = NULL;
    basin_column_type type = BASIN_COLUMN_DROPPED;
    for (int t = 0; t < j->tables; t++) {
        int at = basin_table_column(&j->table[t], name);
        if (at < 0) continue;
        with = &j->table[t], type = type_of(with, at);
        if (type == BASIN_COLUMN_DROPPED) return BASIN_OK;
    }
    if (!with) return BASIN_OK;
    return basin_fail(j->error, BASIN_BAD_VALUE,
                      "%s: the option drop has no effect on column '%s', which is read as the %s",
                      with->source->path, name, basin_column_type_name(type));
}

/* Every name that the options give; "none" for relations says that no column has them. */
static basin_status check_names(basin_tables *j) {
    const char *type = j->t->edge_type, *drop = j->t->drop;
    const struct {
        const char *name, *what;
        bool edges, nodes;
    } given[] = {{j->t->source, "for the sources of edges", true, true},
                 {j->t->target, "for the targets of edges", true, true},
                 {j->t->label, "for labels in a file of nodes", false, true},
                 {type && strcmp(type, "none") != 0 ? type : NULL,
                  "for relations in a file of edges", true, false},
                 {j->t->time, "for the times of edges", true, false}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].name && !is_there(j, given[i].name, given[i].edges, given[i].nodes))
            return fail_absent(j, NULL, given[i].name, given[i].what);
    for (char name[WORD]; next_word(name, &drop, ',');) {
        if (*name && !is_there(j, name, true, true)) return fail_absent(j, NULL, name, "to drop");
        BASIN_TRY(check_dropped(j, name));
    }
    if (j->known && j->known->named && j->t->max_categories > 0)
        return basin_fail(j->error, BASIN_BAD_VALUE,
                          "%s: max_categories has no effect: columns are those of %s",
                          j->table[0].source->path, which_has(j, "training", "the base"));
    if (j->first || j->o->base || j->o->edgeless) return BASIN_OK;
    return basin_fail(j->error, BASIN_BAD_FILE,
                      "%s: no table of transfers is given: no file has columns for the source and "
                      "the target of an edge (usually src and dst; the options source and target "
                      "name others)",
                      j->table[0].source->path);
}

/* ---- features of nodes ---- */

/* The feature of that name; NULL: none, or an error where two tables have it. */
static basin_status find_feature(basin_tables *j, basin_column **found, const char *name) {
    const char *path = NULL;
    *found = NULL;
    for (int exact = 1; exact >= 0 && !*found; exact--)
        for (int t = 0; t < j->tables; t++) {
            const basin_table_file *at = &j->table[t];
            for (int i = 0; !at->edges && i < at->columns; i++) {
                basin_column *c = &at->column[i];
                if ((exact ? strcmp : strcasecmp)(c->name, name) != 0 || !c->feature) continue;
                if (*found)
                    return basin_fail(j->error, BASIN_BAD_FILE,
                                      "%s: column '%s' is in %s as well; expected it once",
                                      at->source->path, name, path);
                *found = c;
                path = at->source->path;
            }
        }
    return BASIN_OK;
}

/* Finds the schema's columns by name; tables that add to a base may lack some. */
static basin_status bind_schema(basin_tables *j) {
    const basin_schema_table *known = &j->known->nodes;
    const basin_schema_column *type = known_role(j, BASIN_ROLE_TYPE);
    for (size_t i = 0; i < known->columns; i++) {
        basin_column *found;
        if (!basin_column_is_feature(known->column[i].type)) continue;
        BASIN_TRY(find_feature(j, &found, known->column[i].name));
        if (!found && !j->o->base && !j->node_tables)
            return basin_fail(j->error, BASIN_BAD_VALUE,
                              "%s: no table of nodes is given beside it; the detector was trained "
                              "with its column '%s'",
                              j->table[0].source->path, known->column[i].name);
        if (!found && !j->o->base)
            return fail_absent(j, NULL, known->column[i].name,
                               "with which the detector was trained");
        if (!found && !j->absent) j->absent = known->column[i].name;
        if (found) BASIN_TRY(basin_column_know(found, &known->column[i], j->error));
    }
    if (type && j->first && !j->t->edge_type && !is_there(j, type->name, true, false))
        return fail_absent(j, NULL, type->name,
                           which_has(j, "for relations, with which the detector was trained",
                                     "for relations, which the base has"));
    return BASIN_OK;
}

/* A column that the schema does not know is not a feature; one that is there twice is an error. */
static basin_status bind_features(basin_tables *j) {
    bool known = j->known && j->known->named;
    if (known) BASIN_TRY(bind_schema(j));
    for (int t = 0; t < j->tables; t++)
        for (int i = 0; i < j->table[t].columns; i++) {
            basin_column *c = &j->table[t].column[i], *found;
            if (c->feature && !known) BASIN_TRY(find_feature(j, &found, c->name));
            c->feature = c->feature && (c->known || !known);
            if (c->feature) j->table[t].cell[i] = c;
        }
    return BASIN_OK;
}

/* ---- facts of edges ---- */

static bool may_be_fact(const basin_tables *j, const basin_table_file *t, int i) {
    return i >= 0 && may_be_read(j, t, i) && !is_label(j, t->column[i].name);
}

static const basin_table_file *lacking(const basin_tables *j, const char *name) {
    for (int t = 0; t < j->tables; t++) {
        const basin_table_file *at = &j->table[t];
        if (at->edges && !may_be_fact(j, at, basin_table_column(at, name))) return at;
    }
    return NULL;
}

/* The columns of a schema must be there, and times in the column that had them in training. */
static basin_status know_facts(basin_tables *j) {
    const basin_schema_table *known = &j->known->edges;
    for (size_t i = 0; i < known->columns; i++) {
        const char *name = known->column[i].name;
        if (j->t->time && known->column[i].time && strcasecmp(name, j->t->time) != 0)
            return basin_fail(j->error, BASIN_BAD_VALUE,
                              "%s: time is '%s'; in training it was '%s', expected that",
                              j->first->source->path, j->t->time, name);
        if (!basin_column_is_feature(known->column[i].type)) continue;
        const basin_table_file *table = lacking(j, name);
        if (table)
            return fail_absent(j, table, name,
                               which_has(j, "of edges, with which the detector was trained",
                                         "of edges, which the base has"));
        basin_column *c = &j->first->column[basin_table_column(j->first, name)];
        BASIN_TRY(basin_column_know(c, &known->column[i], j->error));
    }
    return BASIN_OK;
}

static basin_status bind_facts(basin_tables *j) {
    basin_table_file *first = j->first;
    bool known = j->known && (j->known->edges.columns || j->o->base);
    if (!first) return BASIN_OK;
    if (known) BASIN_TRY(know_facts(j));
    for (int i = 0; i < first->columns && !known; i++)
        first->column[i].feature = may_be_fact(j, first, i) && !lacking(j, first->column[i].name);
    for (int t = 0; t < j->tables; t++)
        for (int i = 0; j->table[t].edges && i < j->table[t].columns; i++) {
            int from = basin_table_column(first, j->table[t].column[i].name);
            if (from >= 0 && first->column[from].feature)
                j->table[t].cell[i] = &first->column[from];
        }
    return BASIN_OK;
}

/* A number with a fraction or a sign, or a date: rarely the name of a column. */
static bool is_value(const basin_tables *j, const char *text) {
    double x;
    return (basin_cell_number(&x, text) && strpbrk(text, ".-")) ||
           basin_cell_date(&x, text, NULL) ||
           (j->t->date_format && basin_cell_date(&x, text, j->t->date_format));
}

/* A first line that has values where the second one has them is a row, not a header. */
static basin_status check_is_header(basin_tables *j, basin_table_file *t, basin_table_rows *rows) {
    const char *value = NULL;
    double x;
    bool more;
    for (int r = 0; r < BASIN_ROLES; r++)
        if (find_role(j, t, (basin_role)r) >= 0) return BASIN_OK; /* a name that is known */
    BASIN_TRY(basin_table_rows_next(rows, &more, j->error));
    for (int i = 0; more && i < t->columns; i++) {
        const char *name = t->column[i].name, *field = basin_table_rows_field(rows, i);
        bool number = basin_cell_number(&x, field);
        if (number && !basin_cell_number(&x, name)) return BASIN_OK;
        if (!number && is_value(j, field) && !is_value(j, name)) return BASIN_OK;
        if (!value && is_value(j, name) && (number || is_value(j, field))) value = name;
    }
    if (!value) return BASIN_OK;
    return basin_fail(j->error, BASIN_BAD_FILE,
                      "%s: line 1 has the value '%s', expected a header, the names of columns",
                      t->source->path, value);
}

basin_status basin_tables_read_headers(basin_tables *j, const basin_csv_source *source, int count) {
    if (count > BASIN_MAX_TABLES)
        return basin_fail(j->error, BASIN_BAD_VALUE, "%d files, expected at most %d", count,
                          BASIN_MAX_TABLES);
    int lists = 0;
    for (int i = 0; i < count; i++) {
        BASIN_AT_EXIT(basin_table_rows_close) basin_table_rows rows;
        BASIN_TRY(basin_table_rows_open(&rows, &source[i], j->error));
        basin_table_file *t = &j->table[j->tables++];
        t->source = &source[i];
        t->headerless = rows.headerless;
        BASIN_TRY(keep_names(j, t, &rows));
        if (!t->headerless) BASIN_TRY(check_is_header(j, t, &rows));
        BASIN_TRY(read_header(j, t));
        lists += t->headerless;
    }
    if (j->t->headerless && !lists)
        return basin_fail(
            j->error, BASIN_BAD_VALUE,
            "%s: the option no_header has no effect: no file has two or three columns",
            source->path);
    BASIN_TRY(check_names(j));
    BASIN_TRY(bind_features(j));
    return bind_facts(j);
}

/* ---- notes: a line for each kind of column, and what did not fit the schema ---- */

/* Columns of one table, by what became of them. */
enum { TEXT, DATE, LIKE_DATES, MARK, COMMA, EITHER, MIXED, LABEL, OUT, UNUSED, UNREAD, LISTS };
static const char *const what[LISTS] = {
    [TEXT] = "text, one feature per value",
    [DATE] = "dates, as days since 1970",
    [LIKE_DATES] = "texts that look like dates; date_format reads them, such as %d/%m/%Y",
    [MARK] = "numbers written with separators, currency or %",
    [COMMA] = "numbers with a decimal comma",
    [EITHER] = "numbers that either decimal mark can read, taken with a point",
    [MIXED] = "several currencies in one column, not converted",
    [LABEL] = ("features that have the usual name of labels; one that reveals the answer must be "
               "left out (drop)"),
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
                               "%scolumn '%s': %" PRId64 " rows with values that %s did not "
                               "know ('%s'), taken as other",
                               of, c->name, c->other, j->rules.origin, c->unseen);
    if (c->type != BASIN_COLUMN_DROPPED) return;
    bool before = basin_schema_find(&j->known->nodes, c->name);
    add(&list[before ? OUT : UNUSED], c->name, before ? " (as in training)" : NULL, 0);
}

/* The length of a number of 1 to `max` digits and the mark after it, or 0. */
static size_t part_of_date(const char *text, size_t max, const char *marks) {
    size_t digits = strspn(text, "0123456789");
    return digits && digits <= max && strspn(text + digits, marks) == 1 ? digits + 1 : 0;
}

/* 15/11/2026, 15.11.26 08:30 */
static bool looks_like_date(const char *text) {
    size_t day = part_of_date(text, 4, "./-");
    size_t month = day ? part_of_date(text + day, 2, "./-") : 0;
    if (!month) return false;
    const char *year = text + day + month;
    size_t digits = strspn(year, "0123456789");
    return digits && digits <= 4 && (!year[digits] || year[digits] == ' ' || year[digits] == 'T');
}

/* Whether nothing in the file says which decimal mark it has. */
static bool is_open(const basin_table_file *t) {
    bool settled = t->source->exact || t->rules.mark >= 0;
    for (int i = 0; i < t->columns; i++) settled = settled || basin_column_mark(&t->column[i]) >= 0;
    return !settled;
}

static void list_column(basin_tables *j, basin_list *list, const basin_table_file *t,
                        const basin_column *c) {
    bool number = c->type == BASIN_COLUMN_NUMBER;
    bool comma = c->known && t->rules.mark >= 0 ? t->rules.mark == BASIN_DECIMAL_COMMA : c->comma;
    if (c->type == BASIN_COLUMN_CATEGORY)
        add(&list[TEXT], c->name, " (%lld)", c->category.names.count);
    if (c->type == BASIN_COLUMN_DATE) add(&list[DATE], c->name, c->epoch ? " (epoch)" : NULL, 0);
    if (number && comma && !t->source->exact) add(&list[COMMA], c->name, NULL, 0);
    if (number && c->marks) add(&list[MARK], c->name, NULL, 0);
    if (number && c->ambiguous && !c->known && !c->marks && is_open(t))
        add(&list[EITHER], c->name, NULL, 0);
    if (c->feature && !number && !c->known && looks_like_date(c->as[BASIN_AS_DATE].odd))
        add(&list[LIKE_DATES], c->name, NULL, 0);
    if (number && c->currencies) add(&list[MIXED], c->name, NULL, 0);
    if (c->feature && c->type == BASIN_COLUMN_DROPPED)
        add(&list[OUT], c->name, c->cells ? " (more than %lld values)" : " (empty)",
            j->rules.max_values);
}

static void list_table(basin_tables *j, basin_list *list, const basin_table_file *t,
                       const char *of) {
    bool known = j->known && j->known->named;
    for (int i = 0; i < t->columns; i++) {
        const basin_column *c = &t->column[i];
        bool dropped = c->type == BASIN_COLUMN_DROPPED;
        bool label = is_label(j, c->name);
        if (!*c->name && dropped && !c->feature) {
            add(&list[OUT], "column", " %lld (no name)", i + 1);
            continue;
        }
        if (t->edges && dropped && !t->cell[i])
            add(&list[UNREAD], c->name, label ? " (by its name a label)" : NULL, 0);
        if (t->edges && t->cell[i] != c) continue; /* the first table's is said */
        list_column(j, list, t, c);
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
    if (type >= 0 && !j->t->edge_type && !j->known)
        basin_network_add_note(j->network,
                               "edges: by its name column '%s' is a relation, not a fact of an "
                               "edge; the relation column 'none' reads it as one",
                               t->column[type].name);
    list_table(j, list, t, of);
    for (int i = 0; i < LISTS; i++)
        if (list[i].count)
            basin_network_add_note(j->network, "%s%s: %s", of,
                                   i == TEXT && t->edges ? "text, one share per value" : what[i],
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
                               "edges: %" PRId64 " without a relation form another one, called "
                               "'" BASIN_RELATION_EMPTY "'",
                               c->unnamed);
    if (c->filled)
        basin_network_add_note(
            j->network, "edges: %" PRId64 " gaps filled with %s, as rows are added up", c->filled,
            j->o->missing == BASIN_MISSING_ZERO ? "zero" : "the mean of their column");
    if (c->late)
        basin_network_add_note(j->network, "edges: %" PRId64 " left out: later than %s", c->late,
                               j->t->until);
}
