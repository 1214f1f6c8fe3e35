/* A network made to fit a schema: features into its order by name, relations likewise, directions
 * compared. What cannot fit is an error that names the column; what is left over is noted. */
#include <inttypes.h>

#include "base/text.h"
#include "tasks/nodes/network/network.h"

/* ---- features ---- */

/* Where each feature of the schema stands among the network's; -1: nowhere, it is all zeros. */
typedef struct places {
    const basin_network *network;
    const basin_schema *from, *to;
    int64_t *at; /* [to->features] */
    bool *used;  /* [from->features] */
} places;

static basin_status fail_missing(const places *p, const char *name, basin_error *error) {
    basin_near near = basin_near_begin(name);
    for (size_t i = 0; i < p->from->nodes.columns; i++)
        if (basin_column_is_feature(p->from->nodes.column[i].type))
            basin_near_see(&near, p->from->nodes.column[i].name);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: no column '%s', which the detector was trained with%s%s%s",
                      p->network->path, name, near.name ? " (did you mean '" : "",
                      near.name ? near.name : "", near.name ? "'?)" : "");
}

/* Where each of `width` numbers of a column stands, from `first` on; -1: nowhere. */
static void place(int64_t *at, const basin_schema_column *to, int64_t width,
                  const basin_schema_column *from, int64_t first) {
    for (int64_t i = 0; i < width; i++) {
        at[i] = to->type == BASIN_COLUMN_CATEGORY ? -1 : first + i;
        for (int64_t k = 0; to->type == BASIN_COLUMN_CATEGORY && k < from->value.count; k++)
            if (!strcmp(to->value.text + to->value.at[i], from->value.text + from->value.at[k]))
                at[i] = first + k;
    }
}

/* Arrays hold only numbers: dates are there what they become here, days since 1970. */
static bool fits(const basin_schema *from, basin_column_type found, basin_column_type expected) {
    if (from->of_arrays && found == BASIN_COLUMN_NUMBER && expected == BASIN_COLUMN_DATE)
        return true;
    return found == expected;
}

/* Arrays hold a category as indicators: "city=Rome". Values without one stand nowhere. */
static bool place_indicators(places *p, const basin_schema_column *to) {
    bool found = false;
    for (int64_t i = 0; i < to->value.count; i++) {
        char name[300];
        snprintf(name, sizeof name, "%.140s=%.140s", to->name, to->value.text + to->value.at[i]);
        const basin_schema_column *c = basin_schema_find(&p->from->nodes, name);
        bool number = c && c->type == BASIN_COLUMN_NUMBER;
        p->at[to->first + i] = number ? c->first : -1;
        found = found || number;
    }
    return found;
}

static basin_status place_column(places *p, const basin_schema_column *to, basin_error *error) {
    const basin_schema_column *from = basin_schema_find(&p->from->nodes, to->name);
    if (from && !basin_column_is_feature(from->type)) from = NULL;
    if (!from && to->type == BASIN_COLUMN_CATEGORY && place_indicators(p, to)) return BASIN_OK;
    if (!from) return fail_missing(p, to->name, error);
    if (!fits(p->from, from->type, to->type))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: column '%s' is a %s; the detector was trained with a %s there",
                          p->network->path, to->name, basin_column_type_name(from->type),
                          basin_column_type_name(to->type));
    place(p->at + to->first, to, basin_schema_width(to), from, from->first);
    return BASIN_OK;
}

/* Features without names go by their place. */
static basin_status place_all(places *p, basin_error *error) {
    bool named = p->from->named && p->to->named;
    if (!named && p->from->features != p->to->features)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %" PRId64 " features a node; the detector was trained on %" PRId64
                          ", and there are no names to match them by",
                          p->network->path, p->from->features, p->to->features);
    for (int64_t f = 0; !named && f < p->to->features; f++) p->at[f] = f;
    for (size_t i = 0; named && i < p->to->nodes.columns; i++)
        if (basin_column_is_feature(p->to->nodes.column[i].type))
            BASIN_TRY(place_column(p, &p->to->nodes.column[i], error));
    for (int64_t f = 0; f < p->to->features; f++)
        if (p->at[f] >= 0) p->used[p->at[f]] = true;
    return BASIN_OK;
}

static int64_t count_ones(const basin_network *n, int64_t feature) {
    int64_t count = 0;
    for (int64_t i = 0; i < n->nodes; i++) count += n->feature[i * n->features + feature] != 0;
    return count;
}

/* Values of a category that the schema lacks are "other": counted. Whole columns are ignored. */
static void note_rest(basin_network *n, const places *p) {
    basin_list ignored = {0};
    for (size_t i = 0; i < p->from->nodes.columns; i++) {
        const basin_schema_column *c = &p->from->nodes.column[i];
        if (!basin_column_is_feature(c->type)) continue;
        int64_t width = basin_schema_width(c), unused = 0, rows = 0;
        for (int64_t f = c->first; f < c->first + width; f++)
            if (!p->used[f]) unused++, rows += count_ones(n, f);
        if (unused && unused < width)
            basin_network_add_note(n,
                                   "column '%s': %" PRId64 " rows with values that training did "
                                   "not know, taken as other",
                                   c->name, rows);
        else if (unused)
            basin_list_add(&ignored, c->name);
    }
    if (ignored.count) basin_network_add_note(n, "columns not used: %s", ignored.text);
}

/* The features in the schema's order, in separate memory. */
static basin_status move_features(basin_network *n, const places *p, basin_error *error) {
    int64_t F = p->to->features;
    size_t count;
    float *x = NULL;
    if (!basin_size_multiply(&count, (size_t)n->nodes, (size_t)F))
        return basin_fail_memory(error, "features");
    BASIN_TRY(BASIN_NEW_RAW(&x, count, "features", error));
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t f = 0; f < F; f++)
            x[i * F + f] = p->at[f] < 0 ? 0 : n->feature[i * n->features + p->at[f]];
    basin_network_release(n, n->feature);
    n->feature = x;
    n->features = F;
    basin_network_release_names(n, &n->column);
    return p->to->named ? basin_schema_names(&n->column, p->to, error) : BASIN_OK;
}

static basin_status match_features(basin_network *n, const basin_schema *schema,
                                   basin_error *error) {
    places p = {.network = n, .from = n->schema, .to = schema};
    BASIN_SCRATCH_RAW(int64_t, at, schema->features, "features", error);
    BASIN_SCRATCH(bool, used, n->schema->features, "features", error);
    p.at = at, p.used = used;
    BASIN_TRY(place_all(&p, error));
    note_rest(n, &p);
    bool in_place = p.from->features == p.to->features;
    for (int64_t f = 0; f < p.to->features && in_place; f++) in_place = p.at[f] == f;
    return in_place ? BASIN_OK : move_features(n, &p, error);
}

/* ---- relations ---- */

static basin_status add_empty(basin_network *n, const char *name, basin_error *error) {
    basin_relation *r;
    BASIN_TRY(basin_network_new_relation(&r, n, name, error));
    BASIN_TRY(BASIN_NEW(&r->row, n->nodes + 1, "relations", error));
    BASIN_TRY(BASIN_NEW(&r->col, 1, "relations", error));
    return basin_relation_alloc_facts(r, &n->facts, error);
}

/* The schema's relations first, in its order, then the union; others go. */
static void sort_relations(basin_network *n, const basin_schema *schema) {
    int kept = 0;
    for (int64_t i = 0; i < schema->relation.count; i++) {
        const char *name = schema->relation.text + schema->relation.at[i];
        int at = basin_network_relation(n, name);
        basin_relation moved = n->relation[at];
        n->relation[at] = n->relation[kept];
        n->relation[kept++] = moved;
    }
    for (int r = kept; r < n->relations; r++)
        if (!strcmp(n->relation[r].name, "homo"))
            n->relation[kept++] = n->relation[r];
        else
            basin_relation_free(&n->relation[r]);
    n->relations = kept;
}

static basin_status match_relations(basin_network *network, const basin_schema *schema,
                                    basin_error *error) {
    basin_list unknown = {0}, empty = {0};
    if (!schema->relation.count) return BASIN_OK;
    for (int r = 0; r < network->relations; r++) {
        const char *name = network->relation[r].name;
        bool whole = !strcmp(name, "homo") && network->relations > 1;
        if (!whole && basin_names_find(&schema->relation, name) < 0) basin_list_add(&unknown, name);
    }
    if (network->relations > 1 || schema->relation.count > 1 || unknown.count)
        BASIN_TRY(basin_network_add_union(network, error));
    for (int64_t i = 0; i < schema->relation.count; i++) {
        const char *name = schema->relation.text + schema->relation.at[i];
        if (basin_network_relation(network, name) >= 0) continue;
        BASIN_TRY(add_empty(network, name, error));
        basin_list_add(&empty, name);
    }
    sort_relations(network, schema);
    if (unknown.count)
        basin_network_add_note(network,
                               "relations that training did not know count only in the whole "
                               "graph: %s",
                               unknown.text);
    if (empty.count) basin_network_add_note(network, "relations without an edge: %s", empty.text);
    return BASIN_OK;
}

static basin_status check_directed(const basin_network *n, const basin_schema *schema,
                                   basin_error *error) {
    static const char *const way[] = {"go both ways", "have a direction"};
    if ((n->directed || n->both) == schema->directed) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: its edges %s; the detector was trained on a graph whose edges %s",
                      n->path, way[n->directed], way[schema->directed]);
}

static bool same_names(const basin_names *a, const basin_names *b) {
    bool same = a->count == b->count;
    for (int64_t i = 0; same && i < a->count; i++)
        same = !strcmp(a->text + a->at[i], b->text + b->at[i]);
    return same;
}

static basin_status check_facts(const basin_network *n, const basin_schema *schema,
                                basin_error *error) {
    BASIN_AT_EXIT(basin_facts_free) basin_facts expected;
    BASIN_TRY(basin_schema_facts(&expected, schema, error));
    if (same_names(&n->facts.name, &expected.name)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: edges carry %" PRId64 " facts; the detector was trained with "
                      "%" PRId64 ", expected a network that was matched to its schema",
                      n->path, n->facts.count, expected.count);
}

basin_status basin_network_check_columns(const basin_network *network, const basin_schema *schema,
                                         basin_error *error) {
    BASIN_AT_EXIT(basin_names_free) basin_names names = {0};
    BASIN_TRY(check_directed(network, schema, error));
    if (!schema->named || !network->column.count) return BASIN_OK;
    BASIN_TRY(basin_schema_names(&names, schema, error));
    for (int64_t f = 0; f < names.count && f < network->column.count; f++) {
        const char *found = network->column.text + network->column.at[f];
        const char *expected = names.text + names.at[f];
        if (strcmp(found, expected) != 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: feature %" PRId64 " is '%s'; the detector was trained with "
                              "'%s' there, expected a network that was matched to its schema",
                              network->path, f + 1, found, expected);
    }
    return BASIN_OK;
}

basin_status basin_network_check_schema(const basin_network *network, const basin_schema *schema,
                                        basin_error *error) {
    BASIN_TRY(basin_network_check_columns(network, schema, error));
    return check_facts(network, schema, error);
}

/* ---- facts of edges ---- */

typedef struct listing {
    basin_facts *facts;
    size_t capacity;
    basin_error *error;
} listing;

static bool is_number(const basin_schema_column *c) {
    return c->type == BASIN_COLUMN_NUMBER && !c->time;
}

static basin_status list_fact(listing *l, basin_fact_kind kind, const char *column,
                              const char *what) {
    basin_facts *f = l->facts;
    char text[300];
    snprintf(text, sizeof text, "%.140s%.140s", column, what);
    BASIN_TRY(BASIN_GROW(&f->kind, &l->capacity, f->count + 1, "facts of edges", l->error));
    if (kind == BASIN_FACT_TIME) f->time = f->count;
    f->kind[f->count++] = (uint8_t)kind;
    return basin_names_add(&f->name, text, l->error);
}

/* Those of schemas with extremes come last, so that a column of one without has the first ones. */
static basin_status list_column(listing *l, const basin_schema_column *c, bool extremes) {
    static const struct {
        basin_fact_kind kind;
        const char *what;
    } of_time[] = {{BASIN_FACT_TIME, " last"}, {BASIN_FACT_FIRST, " first"}},
      of_number[] = {{BASIN_FACT_SUM, " sum"},           {BASIN_FACT_LAST, " last"},
                     {BASIN_FACT_MAX, " max"},           {BASIN_FACT_MIN, " min"},
                     {BASIN_FACT_SQUARES, " deviation"}, {BASIN_FACT_ROUND, " round"}};
    if (c->type == BASIN_COLUMN_DATE && !c->time)
        return list_fact(l, BASIN_FACT_DATE, c->name, " last");
    for (int i = 0; c->time && i < 1 + extremes; i++)
        BASIN_TRY(list_fact(l, of_time[i].kind, c->name, of_time[i].what));
    for (int i = 0; is_number(c) && i < (extremes ? 6 : 2); i++)
        BASIN_TRY(list_fact(l, of_number[i].kind, c->name, of_number[i].what));
    for (int64_t i = 0; i < c->value.count; i++) {
        char value[150];
        snprintf(value, sizeof value, "=%.140s", c->value.text + c->value.at[i]);
        BASIN_TRY(list_fact(l, BASIN_FACT_KIND, c->name, value));
    }
    return BASIN_OK;
}

basin_status basin_schema_facts(basin_facts *facts, const basin_schema *schema,
                                basin_error *error) {
    listing l = {.facts = facts, .error = error};
    *facts = (basin_facts){.time = -1};
    if (!schema || !schema->cells) return BASIN_OK;
    BASIN_TRY(list_fact(&l, BASIN_FACT_COUNT, "count", ""));
    for (size_t i = 0; i < schema->edges.columns; i++)
        if (basin_column_is_feature(schema->edges.column[i].type))
            BASIN_TRY(list_column(&l, &schema->edges.column[i], schema->extremes));
    return BASIN_OK;
}

/* ---- matching ---- */

static int64_t facts_of(const basin_schema_column *c, bool extremes) {
    if (c->time) return 1 + extremes;
    return is_number(c) ? extremes ? 6 : 2 : basin_schema_width(c);
}

static int64_t first_fact(const basin_schema *s, const basin_schema_column *column) {
    int64_t at = 1; /* after the count */
    for (size_t i = 0; &s->edges.column[i] != column; i++)
        at += facts_of(&s->edges.column[i], s->extremes);
    return at;
}

static basin_status place_facts(int64_t *at, const basin_network *n, const basin_schema *to,
                                basin_error *error) {
    *at++ = 0;
    if (to->extremes && !n->schema->extremes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: written by an earlier version, its edges carry no max, min and "
                          "first time; expected the tables, or a file converted anew",
                          n->path);
    for (size_t i = 0; i < to->edges.columns; i++) {
        const basin_schema_column *c = &to->edges.column[i];
        if (!basin_column_is_feature(c->type)) continue;
        const basin_schema_column *from = basin_schema_find(&n->schema->edges, c->name);
        if (!from || from->type != c->type || from->time != c->time)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: its edges have no %s '%s', which the detector was trained with",
                              n->path, c->time ? "time" : basin_column_type_name(c->type), c->name);
        place(at, c, facts_of(c, to->extremes), from, first_fact(n->schema, from));
        at += facts_of(c, to->extremes);
    }
    return BASIN_OK;
}

static void note_unused(basin_network *n, const basin_schema *to) {
    basin_list unused = {0};
    for (size_t i = 0; i < n->schema->edges.columns; i++) {
        const basin_schema_column *c = &n->schema->edges.column[i];
        const basin_schema_column *expected = basin_schema_find(&to->edges, c->name);
        if (basin_column_is_feature(c->type) && (!expected || expected->type != c->type))
            basin_list_add(&unused, c->name);
    }
    if (unused.count) basin_network_add_note(n, "edges: columns not used: %s", unused.text);
}

static basin_status move_facts(basin_relation *r, const int64_t *at, int64_t had,
                               const basin_facts *to, basin_error *error) {
    basin_relation moved = *r;
    moved.fact = NULL;
    BASIN_TRY(basin_relation_alloc_facts(&moved, to, error));
    for (int64_t e = 0; e < r->edges && r->fact; e++)
        for (int64_t f = 0; f < to->count; f++)
            if (at[f] >= 0) moved.fact[e * to->count + f] = r->fact[e * had + at[f]];
    if (!r->fact_mapped) free(r->fact);
    r->fact = moved.fact;
    r->fact_mapped = false;
    return BASIN_OK;
}

static basin_status match_facts(basin_network *n, const basin_schema *schema, basin_error *error) {
    BASIN_AT_EXIT(basin_facts_free) basin_facts to;
    BASIN_TRY(basin_schema_facts(&to, schema, error));
    BASIN_SCRATCH_RAW(int64_t, at, to.count + 1, "facts", error);
    if (to.count) BASIN_TRY(place_facts(at, n, schema, error));
    note_unused(n, schema);
    bool move = to.count != n->facts.count;
    for (int64_t f = 0; f < to.count; f++) move = move || at[f] != f;
    for (int r = 0; r < n->relations && move; r++)
        BASIN_TRY(move_facts(&n->relation[r], at, n->facts.count, &to, error));
    basin_facts had = n->facts;
    n->facts = to, to = had;
    return BASIN_OK;
}

basin_status basin_network_match(basin_network *network, const basin_schema *schema,
                                 basin_error *error) {
    basin_schema *copy = NULL;
    BASIN_TRY(check_directed(network, schema, error));
    if (!network->schema)
        BASIN_TRY(basin_schema_of(&network->schema, network, BASIN_MISSING_ERROR, error));
    BASIN_TRY(match_features(network, schema, error));
    BASIN_TRY(match_facts(network, schema, error));
    BASIN_TRY(match_relations(network, schema, error));
    BASIN_TRY(basin_schema_copy(&copy, schema, error));
    basin_schema_free(network->schema);
    network->schema = copy;
    return BASIN_OK;
}
