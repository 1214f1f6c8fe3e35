/* From columns of edges to facts: which there are, what one row says, and another network's facts
 * in a schema's order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/network/schema/schema.h"

/* Facts being listed. */
typedef struct listing {
    basin_facts *facts;
    basin_names_builder name;
    size_t capacity;
    basin_error *error;
} listing;

static basin_status list_fact(listing *l, basin_fact_kind kind, const char *column,
                              const char *what) {
    basin_facts *f = l->facts;
    char text[300];
    int length = snprintf(text, sizeof text, "%.140s%.140s", column, what);
    if (!basin_array_reserve((void **)&f->kind, &l->capacity, (size_t)f->count + 1,
                             sizeof *f->kind))
        return basin_fail(l->error, BASIN_NO_MEMORY, "out of memory for facts of edges");
    if (kind == BASIN_FACT_TIME) f->time = f->count;
    f->kind[f->count++] = (uint8_t)kind;
    return basin_names_add(&l->name, text, (size_t)length, l->error);
}

static basin_status list_column(listing *l, const basin_schema_column *c) {
    basin_status status = BASIN_OK;
    if (c->time) return list_fact(l, BASIN_FACT_TIME, c->name, " last");
    if (c->type == BASIN_COLUMN_DATE) return list_fact(l, BASIN_FACT_DATE, c->name, " last");
    if (c->type == BASIN_COLUMN_NUMBER) {
        status = list_fact(l, BASIN_FACT_SUM, c->name, " sum");
        return status ? status : list_fact(l, BASIN_FACT_LAST, c->name, " last");
    }
    for (int64_t i = 0; i < c->value.count && !status; i++) {
        char value[150];
        snprintf(value, sizeof value, "=%.140s", c->value.text + c->value.at[i]);
        status = list_fact(l, BASIN_FACT_KIND, c->name, value);
    }
    return status;
}

basin_status basin_schema_facts(basin_facts *facts, const basin_schema *schema,
                                basin_error *error) {
    listing l = {.facts = facts, .error = error};
    *facts = (basin_facts){.time = -1};
    if (!schema || !schema->cells) return BASIN_OK;
    basin_status status = list_fact(&l, BASIN_FACT_COUNT, "count", "");
    for (size_t i = 0; i < schema->edges.columns && !status; i++)
        if (basin_column_is_feature(schema->edges.column[i].type))
            status = list_column(&l, &schema->edges.column[i]);
    facts->name = l.name.names;
    return status;
}

void basin_schema_fill_facts(float *fact, const basin_schema *schema, const float *cell) {
    *fact++ = 1;
    for (size_t i = 0; i < schema->edges.columns; i++) {
        const basin_schema_column *c = &schema->edges.column[i];
        const float *from = cell + c->first;
        int64_t width = basin_schema_width(c);
        bool twice = c->type == BASIN_COLUMN_NUMBER && !c->time; /* sum and last */
        for (int64_t k = 0; k < width; k++) *fact++ = from[k];
        if (twice) *fact++ = *from;
    }
}

/* ---- matching ---- */

static int64_t facts_of(const basin_schema_column *c) {
    return basin_schema_width(c) + (c->type == BASIN_COLUMN_NUMBER && !c->time);
}

/* Where the facts of a column begin. */
static int64_t first_fact(const basin_schema *s, const basin_schema_column *column) {
    int64_t at = 1; /* behind the count */
    for (size_t i = 0; &s->edges.column[i] != column; i++) at += facts_of(&s->edges.column[i]);
    return at;
}

/* Where each fact of a column stands among those of another network; values of a category that are
 * not there today stand nowhere: -1. */
static void place_column(int64_t *at, const basin_schema_column *to, const basin_schema *schema,
                         const basin_schema_column *from) {
    int64_t first = first_fact(schema, from);
    if (to->type != BASIN_COLUMN_CATEGORY)
        for (int64_t i = 0; i < facts_of(to); i++) at[i] = first + i;
    for (int64_t i = 0; i < to->value.count; i++) {
        at[i] = -1;
        for (int64_t k = 0; k < from->value.count; k++)
            if (!strcmp(to->value.text + to->value.at[i], from->value.text + from->value.at[k]))
                at[i] = first + k;
    }
}

static basin_status place_all(int64_t *at, const basin_network *n, const basin_schema *to,
                              basin_error *error) {
    *at++ = 0;
    for (size_t i = 0; i < to->edges.columns; i++) {
        const basin_schema_column *c = &to->edges.column[i];
        if (!basin_column_is_feature(c->type)) continue;
        const basin_schema_column *from = basin_schema_find(&n->schema->edges, c->name);
        if (!from || from->type != c->type || from->time != c->time)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: its edges have no %s '%s', which the detector was trained with",
                              n->path, c->time ? "time" : basin_column_type_name(c->type), c->name);
        place_column(at, c, n->schema, from);
        at += facts_of(c);
    }
    return BASIN_OK;
}

static void note_unused(basin_network *n, const basin_schema *to) {
    basin_list unused = {0};
    for (size_t i = 0; i < n->schema->edges.columns; i++) {
        const basin_schema_column *c = &n->schema->edges.column[i];
        const basin_schema_column *wanted = basin_schema_find(&to->edges, c->name);
        if (basin_column_is_feature(c->type) && (!wanted || wanted->type != c->type))
            basin_list_add(&unused, c->name);
    }
    if (unused.count) basin_network_add_note(n, "edges: columns not used: %s", unused.text);
}

/* The facts of a relation in another order. */
static basin_status move_facts(basin_relation *r, const int64_t *at, int64_t had,
                               const basin_facts *to, basin_error *error) {
    basin_relation moved = *r;
    moved.fact = NULL;
    basin_status status = basin_relation_alloc_facts(&moved, to, error);
    if (status) return status;
    for (int64_t e = 0; e < r->edges && r->fact; e++)
        for (int64_t f = 0; f < to->count; f++)
            if (at[f] >= 0) moved.fact[e * to->count + f] = r->fact[e * had + at[f]];
    if (!r->fact_mapped) free(r->fact);
    r->fact = moved.fact;
    r->fact_mapped = false;
    return BASIN_OK;
}

basin_status basin_network_match_facts(basin_network *n, const basin_schema *schema,
                                       basin_error *error) {
    basin_facts to;
    basin_status status = basin_schema_facts(&to, schema, error);
    int64_t *at = basin_array_new((size_t)to.count + 1, sizeof *at);
    if (!status && !at) status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for facts");
    if (!status && to.count) status = place_all(at, n, schema, error);
    if (!status) note_unused(n, schema);
    bool move = to.count != n->facts.count;
    for (int64_t f = 0; f < to.count && !status; f++) move = move || at[f] != f;
    for (int r = 0; r < n->relations && move && !status; r++)
        status = move_facts(&n->relation[r], at, n->facts.count, &to, error);
    free(at);
    basin_facts *keep = status ? &n->facts : &to, *drop = status ? &to : &n->facts;
    basin_facts_free(drop);
    n->facts = *keep;
    return status;
}
