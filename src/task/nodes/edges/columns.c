/* Facts of edges as columns, of an edge and of a node; see edges.h. */
#include "task/nodes/edges/edges.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"

bool basin_facts_bias(const basin_nodes_settings *s) {
    return basin_choice_is(s->facts, "energy") || basin_choice_is(s->facts, "both");
}

bool basin_facts_are_features(const basin_nodes_settings *s) {
    return basin_choice_is(s->facts, "features") || basin_choice_is(s->facts, "both");
}

/* ---- columns of an edge ---- */

/* A sum has its mean beside it. */
static int columns_of(uint8_t kind) { return kind == BASIN_FACT_SUM ? 2 : 1; }

int64_t basin_facts_width(const basin_facts *facts) {
    int64_t width = 0;
    for (int64_t i = 0; i < facts->count; i++) width += columns_of(facts->kind[i]);
    return width;
}

/* Amounts and ages spread over decades. */
static float compress(double x) { return (float)copysign(log1p(fabs(x)), x); }

void basin_facts_columns(float *column, const basin_facts *facts, const float *fact) {
    double count = fact[0] > 0 ? (double)fact[0] : 1;
    for (int64_t i = 0; i < facts->count; i++) {
        double x = (double)fact[i];
        switch ((basin_fact_kind)facts->kind[i]) {
        case BASIN_FACT_COUNT:
        case BASIN_FACT_LAST: *column++ = compress(x); break;
        case BASIN_FACT_SUM:
            *column++ = compress(x);
            *column++ = compress(x / count);
            break;
        case BASIN_FACT_DATE: *column++ = compress(facts->time < 0 ? x : facts->now - x); break;
        case BASIN_FACT_TIME: *column++ = compress(facts->now - x); break;
        case BASIN_FACT_KIND: *column++ = (float)(x / count); break;
        }
    }
}

/* Which fact a column is of, and which of its columns. */
static int64_t fact_of(const basin_facts *facts, int64_t *column) {
    int64_t i = 0;
    *column %= basin_facts_width(facts);
    for (; *column >= columns_of(facts->kind[i]); i++) *column -= columns_of(facts->kind[i]);
    return i;
}

double basin_facts_value(const basin_facts *facts, int64_t column, double x) {
    return facts->kind[fact_of(facts, &column)] == BASIN_FACT_KIND ? x
                                                                   : copysign(expm1(fabs(x)), x);
}

void basin_nodes_fact_name(char text[BASIN_FACT_TEXT], const basin_network *network, int64_t fact) {
    const basin_facts *facts = &network->facts;
    bool leaves = fact >= basin_facts_width(facts);
    int64_t i = fact_of(facts, &fact);
    const char *name = facts->name.text + facts->name.at[i];
    uint8_t kind = facts->kind[i];
    bool age = kind == BASIN_FACT_TIME || (kind == BASIN_FACT_DATE && facts->time >= 0);
    bool mean = kind == BASIN_FACT_SUM && fact;
    int stem = (int)strlen(name) - (int)strlen(age ? " last" : mean ? " sum" : "");
    snprintf(text, BASIN_FACT_TEXT, "%.*s%s of edges%s", stem < 180 ? stem : 180, name,
             age    ? " age"
             : mean ? " mean"
                    : "",
             !network->directed ? ""
             : leaves           ? " that go"
                                : " that come");
}

/* ---- columns of a node ---- */

int64_t basin_node_facts_width(const basin_network *network, int relations) {
    return basin_facts_width(&network->facts) * relations * (network->directed ? 2 : 1);
}

/* Facts of all edges of every node, as if they were one: of those in its row, or with `leaving` of
 * those in whose row it is. */
static void total(float *sum /* [N, facts] */, const basin_network *n, const basin_relation *r,
                  bool leaving) {
    const basin_facts *facts = &n->facts;
    memset(sum, 0, (size_t)(n->nodes * facts->count) * sizeof *sum);
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
            int64_t node = leaving ? r->col[e] : i;
            basin_facts_merge(sum + node * facts->count, r->fact + e * facts->count, facts);
        }
}

/* Without times which edge is the last is chance. */
static void forget_last(float *fact, const basin_facts *facts) {
    for (int64_t i = 0; i < facts->count && facts->time < 0; i++)
        if (facts->kind[i] == BASIN_FACT_LAST || facts->kind[i] == BASIN_FACT_DATE) fact[i] = 0;
}

basin_status basin_node_facts_fill(float *x, int64_t stride, const basin_network *network,
                                   const int *relation, int relations, basin_error *error) {
    const basin_facts *facts = &network->facts;
    int64_t width = basin_facts_width(facts);
    size_t count;
    float *sum = NULL;
    if (basin_size_multiply(&count, (size_t)network->nodes, (size_t)facts->count))
        sum = basin_array_new(count, sizeof *sum);
    if (!sum) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for totals of edges");
    for (int r = 0; r < relations; r++)
        for (int leaving = 0; leaving <= network->directed; leaving++, x += width) {
            total(sum, network, &network->relation[relation[r]], leaving);
            for (int64_t i = 0; i < network->nodes; i++) {
                float *fact = sum + i * facts->count;
                forget_last(fact, facts);
                if (fact[0] == 0 && facts->time >= 0) fact[facts->time] = (float)facts->now;
                basin_facts_columns(x + i * stride, facts, fact);
            }
        }
    free(sum);
    return BASIN_OK;
}
