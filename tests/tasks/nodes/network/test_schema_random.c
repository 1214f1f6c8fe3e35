/* Random tables read by the schema of another: columns and rows in any order, categories and
 * relations that are absent or new, missing and extra columns, directions. Either the features are
 * the same to the bit, or there is an error that names the column. */

#include "engine/core/team/team.h"
#include "tasks/nodes/network/random_table.h"

enum { CASES = 1000 };

typedef struct trial {
    table t;
    basin_network *first;
    basin_schema *schema; /* of the first, by way of its text */
    basin_network_options o;
    basin_random random;
} trial;

static basin_network *must_read(const trial *k, const table *t, const layout *l) {
    basin_network *n;
    assert_ok(read_table(&n, t, l, &k->o, &failure));
    return n;
}

static void begin(trial *k, int number) {
    *k = (trial){.random = basin_random_start(20261115, (uint64_t)number, 0)};
    k->t = random_table(&k->random);
    k->o = (basin_network_options){
        .table = &(basin_table_options){.edge_type = "channel", .max_categories = 8},
        .directed = k->t.directed,
        .unite = true,
        .missing = k->t.gaps ? BASIN_MISSING_MEAN : 0};
    layout l = plain_layout(&k->t);
    k->first = must_read(k, &k->t, &l);
    char *text = basin_schema_print(k->first->schema);
    assert_non_null(text);
    assert_ok(basin_schema_parse(&k->schema, text, "schema", &failure));
    char *again = basin_schema_print(k->schema);
    assert_string_equal(text, again);
    free(text);
    free(again);
    /* Only the schema is left to say how tables are read. */
    k->o = (basin_network_options){.unite = true, .schema = k->schema};
}

static void end(trial *k) {
    basin_network_close(k->first);
    basin_schema_free(k->schema);
}

/* Nodes by their ids: the same features to the bit, in the same order. */
static void assert_same_features(const basin_network *a, const basin_network *b) {
    char text[BASIN_MAX_NODE];
    assert_int_equal(a->features, b->features);
    for (int64_t i = 0; i < b->nodes; i++) {
        int64_t k = basin_network_find(a, basin_network_id(b, i, text));
        assert_true(k >= 0);
        if (a->features)
            assert_memory_equal(a->feature + k * a->features, b->feature + i * b->features,
                                (size_t)a->features * sizeof(float));
    }
}

static void assert_same_relations(const basin_network *a, const basin_network *b) {
    assert_int_equal(a->relations, b->relations);
    assert_int_equal(a->directed, b->directed);
    for (int r = 0; r < a->relations; r++)
        assert_string_equal(a->relation[r].name, b->relation[r].name);
}

static void other_orders(trial *k) {
    layout l = plain_layout(&k->t);
    l.turned = true;
    shuffle_ints(l.column, l.columns, &k->random);
    basin_network *n = must_read(k, &k->t, &l);
    assert_networks_equal(k->first, n); /* to the bit, edges included */
    basin_network_close(n);
    shuffle_ints(l.row, l.rows, &k->random);
    n = must_read(k, &k->t, &l);
    assert_same_features(k->first, n);
    assert_same_relations(k->first, n);
    basin_network_close(n);
}

/* Some rows, and edges of one relation alone: categories and relations are absent that day. */
static void a_quiet_day(trial *k) {
    layout l = plain_layout(&k->t);
    shuffle_ints(l.row, l.rows, &k->random);
    l.rows = 1 + draw(&k->random, l.rows);
    l.relations = 1;
    k->o.table = &(basin_table_options){.unknown = BASIN_UNKNOWN_SKIP};
    BASIN_AT_EXIT(free_network) basin_network *n = must_read(k, &k->t, &l);
    k->o.table = NULL;
    assert_int_equal(n->nodes, l.rows);
    assert_same_features(k->first, n);
    assert_same_relations(k->first, n);
}

/* A value that training did not know is zero in all its columns and counted; others stay. */
static void a_new_value(trial *k) {
    int column = draw(&k->random, k->t.columns), row = draw(&k->random, k->t.rows);
    const basin_schema_column *c = basin_schema_find(&k->schema->nodes, k->t.name[column]);
    if (c->type != BASIN_COLUMN_CATEGORY) return;
    table t = k->t;
    layout l = plain_layout(&t);
    snprintf(t.cell[row][column], CELL, "Atlantis");
    basin_network *n = must_read(k, &t, &l);
    for (int64_t f = 0; f < n->features; f++) {
        bool hit = f >= c->first && f < c->first + basin_schema_width(c);
        float was = k->first->feature[row * n->features + f],
              is = n->feature[row * n->features + f];
        assert_true(hit ? is == 0 : memcmp(&was, &is, sizeof is) == 0);
    }
    assert_non_null(strstr(n->note, "1 rows with values that training did not know ('Atlantis')"));
    basin_network_close(n);
}

static void missing_and_extra_columns(trial *k) {
    layout l = plain_layout(&k->t);
    l.extra = "novelty";
    basin_network *n = must_read(k, &k->t, &l);
    assert_networks_equal(k->first, n);
    assert_non_null(strstr(n->note, "training did not have them: novelty"));
    basin_network_close(n);
    l = plain_layout(&k->t);
    int gone = draw(&k->random, k->t.columns);
    bool feature =
        basin_column_is_feature(basin_schema_find(&k->schema->nodes, k->t.name[gone])->type);
    l.column[gone] = l.column[--l.columns]; /* the label takes its place */
    basin_error error;
    basin_status status = read_table(&n, &k->t, &l, &k->o, &error);
    if (feature) {
        char wanted[100];
        snprintf(wanted, sizeof wanted, "no column '%s' with which", k->t.name[gone]);
        assert_int_not_equal(status, BASIN_OK);
        if (!strstr(error.text, wanted)) fail_msg("\"%s\" is not in %s", wanted, error.text);
    } else {
        assert_int_equal(status, BASIN_OK);
        assert_same_features(k->first, n);
        basin_network_close(n);
    }
}

/* Read without the schema, columns turned, then matched by name: the way of a converted file. */
static void matched_afterwards(trial *k) {
    layout l = plain_layout(&k->t);
    basin_error error;
    shuffle_ints(l.column, l.columns, &k->random);
    trial other = *k;
    other.o = (basin_network_options){
        .table = &(basin_table_options){.edge_type = "channel", .max_categories = 8},
        .unite = true,
        .directed = k->t.directed,
        .missing = k->t.gaps ? BASIN_MISSING_MEAN : 0};
    basin_network *n = must_read(&other, &k->t, &l);
    assert_ok(basin_network_match(n, k->schema, &failure));
    assert_networks_equal(k->first, n);
    basin_network_close(n);
    other.o.directed = !k->t.directed;
    n = must_read(&other, &k->t, &l);
    assert_int_equal(basin_network_match(n, k->schema, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, k->t.directed ? "its edges go both ways; the detector"
                                                     : "its edges have a direction; the"));
    basin_network_close(n);
    k->o.directed = true;
    assert_int_equal(read_table(&n, &k->t, &l, &k->o, &error) == BASIN_OK, k->t.directed);
    basin_network_close(n);
    k->o.directed = false;
}

TEST(every_table_is_read_as_the_first) {
    basin_processors_set(1); /* the tables are tiny: threads would only wait for each other */
    for (int number = 0; number < CASES; number++) {
        trial k;
        begin(&k, number);
        other_orders(&k);
        a_quiet_day(&k);
        a_new_value(&k);
        missing_and_extra_columns(&k);
        matched_afterwards(&k);
        end(&k);
    }
}
