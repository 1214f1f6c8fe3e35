/* What edges carry: parallel rows add up, both ways or each way; facts follow edges into unions,
 * parts, converted files and bases, are matched by name, and are cut off at a time. Splits by
 * time. */
#include "tasks/nodes/network/networks.h"

#include <math.h>

#include "engine/io/bundle.h"
#include "tasks/nodes/network/network.h"

static const char transfers[] = "src,dst,amount,day,kind\n"
                                "a,b,10,3,wire\n"
                                "a,b,5,1,cash\n"
                                "b,a,-2,2,wire\n"
                                "b,c,100,4,card\n"
                                "c,c,7,5,cash\n";
static const char accounts[] = "id,balance,label\na,1,0\nb,2,1\nc,3,0\nd,4,1\n";

static basin_status open_tables(basin_network **n, void **state, const char *nodes,
                                const char *edges, const basin_network_options *o,
                                basin_error *error) {
    const char *const file[] = {folder_put(state, "edges.csv", edges),
                                nodes ? folder_put(state, "nodes.csv", nodes) : NULL};
    return basin_network_open(n, file, nodes ? 2 : 1, o, error);
}

static basin_network *must_open(void **state, const char *nodes, const char *edges,
                                const basin_network_options *o) {
    basin_network *n;
    assert_ok(open_tables(&n, state, nodes, edges, o, &failure));
    return n;
}

/* The facts with which `node` sees `other`: count, amount sum and last, day, kinds in order;
 * extremes are those of test_anomaly_edges. */
static void assert_facts(const basin_network *n, const basin_relation *r, int64_t node,
                         int32_t other, const float *wanted) {
    int64_t e = basin_relation_find(r, node, other);
    assert_true(e >= 0);
    for (int64_t f = 0; f < n->facts.count; f++) {
        if (n->facts.kind[f] >= BASIN_FACT_MAX) continue;
        if (r->fact[e * n->facts.count + f] != *wanted)
            fail_msg("%s of %d at %d is %g, expected %g", n->facts.name.text + n->facts.name.at[f],
                     (int)other, (int)node, (double)r->fact[e * n->facts.count + f],
                     (double)*wanted);
        wanted++;
    }
}
#define ASSERT_FACTS(n, node, other, ...)                                                          \
    assert_facts(n, &(n)->relation[0], node, other, (const float[]){__VA_ARGS__})

static const basin_network_options by_day = {.table = &(basin_table_options){.time = "day"}};
static const basin_network_options one_way = {.table = &(basin_table_options){.time = "day"},
                                              .directed = true};

TEST(parallel_rows_add_up) {
    basin_network *n = must_open(state, accounts, transfers, &by_day);
    static const char *const name[] = {
        "count",        "amount sum", "amount last", "amount max", "amount min", "amount deviation",
        "amount round", "day last",   "day first",   "kind=card",  "kind=cash",  "kind=wire"};
    assert_int_equal(n->facts.count, 12);
    for (int f = 0; f < 12; f++)
        assert_string_equal(n->facts.name.text + n->facts.name.at[f], name[f]);
    assert_int_equal(n->facts.time, 7);
    assert_true(n->facts.now == 5);
    ASSERT_FACTS(n, 0, 1, 3, 13, 10, 3, 0, 1, 2); /* the last by time, not by row */
    ASSERT_FACTS(n, 1, 0, 3, 13, 10, 3, 0, 1, 2);
    ASSERT_FACTS(n, 2, 1, 1, 100, 100, 4, 1, 0, 0);
    ASSERT_FACTS(n, 2, 2, 1, 7, 7, 5, 0, 1, 0); /* a loop counts once */
    assert_non_null(
        strstr(n->note,
               "5 rows became 3 edges that carry count (both "
               "directions together), of numbers sum, mean, last, max, min "
               "and deviation, of times the first and the last, of texts the share of each value"));
    assert_non_null(strstr(n->note, "1 of 5 rows join a node to itself"));
    assert_true(n->since[0] == 1 && n->since[2] == 4 && isnan(n->since[3]));
    basin_network_close(n);
    n = must_open(state, accounts, transfers, &one_way);
    ASSERT_FACTS(n, 1, 0, 2, 15, 10, 3, 0, 1, 1); /* b sees what a paid */
    ASSERT_FACTS(n, 0, 1, 1, -2, -2, 2, 0, 0, 1);
    assert_int_equal(basin_relation_find(&n->relation[0], 1, 2), -1);
    basin_network_close(n);
}

/* Without a time the last row is the last. */
TEST(rows_are_in_order) {
    basin_network *n = must_open(state, NULL, "src,dst,amount\na,b,1\nb,a,2\na,b,3\n", NULL);
    assert_int_equal(n->facts.time, -1);
    ASSERT_FACTS(n, 0, 1, 3, 6, 3);
    basin_network_close(n);
    n = must_open(state, NULL, "src,dst,step\na,b,1\nb,a,2\n", NULL); /* a usual name of times */
    ASSERT_FACTS(n, 0, 1, 2, 2);
    basin_network_close(n);
    n = must_open(state, NULL, "src,dst,amount,y\na,b,1,1\nb,a,2,0\n", NULL); /* y is a label */
    assert_int_equal(n->facts.count, 7);
    assert_non_null(strstr(n->note, "not read: y (by its name a label)"));
    basin_network_close(n);
}

/* A column that looks like relations becomes them, and that is said; "none" makes it a fact. */
/* A float has no seconds in days since 1970: the last row is told by its time, not by the float. */
TEST(last_goes_by_the_second) {
    BASIN_AT_EXIT(free_network)
    basin_network *n = must_open(state, NULL,
                                 "src,dst,amount,at\n"
                                 "a,b,2,2026-01-05T08:00:02Z\n"
                                 "a,b,3,2026-01-05T08:00:03Z\n"
                                 "b,a,1,2026-01-05T08:00:01Z\n",
                                 NULL);
    const float *fact = n->relation[0].fact + basin_relation_find(&n->relation[0], 0, 1) * 9;
    assert_int_equal(n->facts.count, 9);
    assert_true(fact[0] == 3 && fact[1] == 6 && fact[2] == 3);
}

TEST(a_type_may_be_a_fact) {
    static const char rows[] = "src,dst,type\na,b,card\nb,a,wire\n";
    basin_network *n = must_open(state, accounts, rows, NULL);
    assert_int_equal(n->relations, 2);
    const char *note = strstr(n->note, "edges: by its name column 'type' is a relation");
    assert_non_null(note);
    assert_string_equal(strrchr(basin_network_note_path(n, note), '/'), "/edges.csv");
    assert_string_equal(strrchr(basin_network_note_path(n, "columns left out: x"), '/'),
                        "/nodes.csv");
    basin_network_close(n);
    basin_network_options o = {.table = &(basin_table_options){.edge_type = "none"}};
    n = must_open(state, accounts, rows, &o);
    assert_int_equal(n->relations, 1);
    assert_null(strstr(n->note, "is a relation"));
    ASSERT_FACTS(n, 0, 1, 2, 1, 1);
    basin_network_close(n);
    o.table = &(basin_table_options){.edge_type = "type"};
    n = must_open(state, accounts, rows, &o);
    assert_int_equal(n->relations, 2);
    assert_null(strstr(n->note ? n->note : "", "is a relation"));
    basin_network_close(n);
}

TEST(later_edges_are_left_out) {
    basin_network *n;
    basin_network_options o = {.table = &(basin_table_options){.time = "day", .until = "2"}};
    n = must_open(state, NULL, transfers, &o);
    assert_int_equal(n->nodes, 2); /* who comes later is not there yet */
    ASSERT_FACTS(n, 0, 1, 2, 3, -2, 2, 0, 1, 1);
    assert_non_null(strstr(n->note, "3 left out: later than 2"));
    basin_network_close(n);
    o.table = &(basin_table_options){.time = "day", .until = "soon"};
    assert_failure(open_tables(&n, state, NULL, transfers, &o, &failure), BASIN_BAD_VALUE,
                   "until is 'soon', expected a number as in column 'day'");
    o = (basin_network_options){.table = &(basin_table_options){.until = "2"}};
    assert_failure(open_tables(&n, state, NULL, transfers, &o, &failure), BASIN_BAD_VALUE,
                   "no column has the times of edges");
    o = (basin_network_options){.table = &(basin_table_options){.until = "2026-01-02"}};
    n = must_open(state, NULL, "src,dst,booked\na,b,2026-01-01\nb,c,2026-01-02T23:00:00\n", &o);
    assert_int_equal(n->nodes, 2);
    basin_network_close(n);
    o = (basin_network_options){.table = &(basin_table_options){.time = "kind"}};
    assert_failure(open_tables(&n, state, NULL, transfers, &o, &failure), BASIN_BAD_FILE,
                   "column 'kind' holds neither numbers nor dates");
    o.table = &(basin_table_options){.time = "dya"};
    assert_failure(open_tables(&n, state, NULL, transfers, &o, &failure), BASIN_BAD_VALUE,
                   "did you mean 'day'?");
}

TEST(gaps_are_filled_or_refused) {
    basin_network *n;
    static const char gap[] = "src,dst,amount\na,b,1\na,b,\na,c,5\n";
    assert_failure(open_tables(&n, state, NULL, gap, NULL, &failure), BASIN_BAD_FILE,
                   "line 3: column 'amount' holds '', expected a number");
    basin_network_options mean = {.missing = BASIN_MISSING_MEAN};
    n = must_open(state, NULL, gap, &mean);
    ASSERT_FACTS(n, 0, 1, 2, 4, 3);
    basin_network_close(n);
    basin_network_options keep = {.missing = BASIN_MISSING_KEEP};
    n = must_open(state, NULL, gap, &keep);
    ASSERT_FACTS(n, 0, 1, 2, 4, 3);
    assert_non_null(strstr(n->note, "edges: 1 gaps filled with the mean of their column"));
    basin_network_close(n);
}

/* Relations by themselves, and their union. */
TEST(unions_add_up) {
    basin_network_options o = {.table = &(basin_table_options){.time = "day", .edge_type = "kind"},
                               .unite = true};
    BASIN_AT_EXIT(free_network) basin_network *n = must_open(state, accounts, transfers, &o);
    const basin_relation *whole = &n->relation[basin_network_relation(n, "homo")];
    const basin_relation *wire = &n->relation[basin_network_relation(n, "wire")];
    assert_facts(n, wire, 0, 1, (const float[]){2, 8, 10, 3});
    assert_facts(n, whole, 0, 1, (const float[]){3, 13, 10, 3});
    basin_network_forget_facts(n);
    assert_true(!n->facts.count && !n->relation[0].fact && !whole->fact);
}

TEST(parts_keep_them) {
    basin_network *n = must_open(state, accounts, transfers, &one_way), *part;
    const int64_t node[] = {2, 1};
    assert_int_equal(basin_network_induce(&part, n, node, 2, NULL), BASIN_OK);
    assert_facts(part, &part->relation[0], 0, 1, (const float[]){1, 100, 100, 4, 1, 0, 0});
    assert_true(part->facts.now == 5);
    basin_network_close(part);
    basin_sample_spec spec = {.fanout = (const int64_t[]){0, 0}, .steps = 2};
    assert_int_equal(basin_network_sample(&part, n, node + 1, 1, &spec, NULL), BASIN_OK);
    assert_int_equal(part->nodes, 2); /* b, and a, whom it sees */
    assert_facts(part, &part->relation[0], 0, 1, (const float[]){2, 15, 10, 3, 0, 1, 1});
    basin_network_close(part);
    basin_network_close(n);
}

TEST(files_keep_them) {
    char *path = folder_path(state, "g.basin");
    const char *const file[] = {path};
    basin_network *n = must_open(state, accounts, transfers, &by_day), *again;
    assert_int_equal(basin_network_write(path, n, NULL), BASIN_OK);
    assert_int_equal(basin_network_open(&again, file, 1, NULL, NULL), BASIN_OK);
    ASSERT_FACTS(again, 0, 1, 3, 13, 10, 3, 0, 1, 2);
    assert_true(again->since[2] == 4 && again->facts.now == 5);
    /* New tables add to it: the edge between a and b goes on. */
    basin_network_options more = {.base = again};
    basin_network *joined =
        must_open(state, "id,balance,label\ne,5,\n",
                  "src,dst,kind,amount,day\nb,a,wire,1,9\na,c,wire,2,9\ne,a,cash,3,9\n", &more);
    ASSERT_FACTS(joined, 0, 1, 4, 14, 1, 9, 0, 1, 3);
    ASSERT_FACTS(joined, 2, 0, 1, 2, 2, 9, 0, 0, 1);
    ASSERT_FACTS(joined, 4, 0, 1, 3, 3, 9, 0, 1, 0);
    assert_true(joined->facts.now == 9 && joined->since[2] == 4);
    basin_network_close(joined);
    basin_network_close(again);
    assert_failure(basin_network_write(folder_path(state, "g.npz"), n, &failure), BASIN_UNSUPPORTED,
                   "which npz does not hold");
    basin_network_close(n);
}

/* By name, in any order; a kind that is new is other, one that is absent none. */
TEST(schemas_match_them) {
    static const char moved[] = "kind,dst,day,amount,src,extra\n"
                                "wire,b,3,10,a,1\ncash,b,1,5,a,1\nwire,a,2,-2,b,1\n"
                                "gold,c,4,100,b,1\ncash,c,5,7,c,1\n";
    basin_network *n = must_open(state, accounts, transfers, &by_day), *again;
    basin_network_options as = {.schema = n->schema};
    again = must_open(state, accounts, moved, &as);
    ASSERT_FACTS(again, 0, 1, 3, 13, 10, 3, 0, 1, 2);
    ASSERT_FACTS(again, 2, 1, 1, 100, 100, 4, 0, 0, 0);
    assert_non_null(strstr(again->note, "edges: columns not read: extra"));
    assert_non_null(strstr(again->note, "1 rows with values that training did not know ('gold')"));
    basin_network_close(again);
    assert_failure(
        open_tables(&again, state, accounts, "src,dst,day,kind\na,b,1,wire\n", &as, &failure),
        BASIN_BAD_VALUE,
        "no column 'amount' of edges, with which the detector was "
        "trained; there are src, dst, day, kind");
    basin_network_options dropping = {.table = &(basin_table_options){.drop = "amount"},
                                      .schema = n->schema};
    assert_failure(open_tables(&again, state, accounts, moved, &dropping, &failure),
                   BASIN_BAD_VALUE, "drop leaves out column 'amount' of edges, with which");
    basin_network_options otherwise = {.table = &(basin_table_options){.time = "amount"},
                                       .schema = n->schema};
    assert_failure(open_tables(&again, state, accounts, moved, &otherwise, &failure),
                   BASIN_BAD_VALUE, "time is 'amount'; in training it was 'day'");
    /* A converted file that was made without the schema is brought into its order. */
    again = must_open(state, accounts, moved, &by_day);
    assert_true(again->facts.count != n->facts.count);
    assert_ok(basin_network_match(again, n->schema, &failure));
    ASSERT_FACTS(again, 0, 1, 3, 13, 10, 3, 0, 1, 2);
    assert_non_null(strstr(again->note, "edges: columns not used: extra"));
    assert_ok(basin_network_check_schema(again, n->schema, &failure));
    basin_network_forget_facts(again);
    assert_int_equal(basin_network_check_schema(again, n->schema, &failure), BASIN_BAD_VALUE);
    basin_network_close(again);
    basin_network_close(n);
}

/* npz has numbers alone; a name that speaks of time is the time. */
TEST(arrays_have_them) {
    char *path = folder_path(state, "g.npz");
    const char *const file[] = {path};
    int32_t edges[] = {0, 1, 1, 0, 1, 2};
    float amount[] = {10, 5, 100}, when[] = {3, 1, 4}, y[] = {0, 1, 0};
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    basin_network *n;
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    add_tensor(bundle, "y", BORROW(y, BASIN_F32, 3));
    add_tensor(bundle, "edges", BORROW(edges, BASIN_I32, 3, 2));
    add_tensor(bundle, "edge.amount", BORROW(amount, BASIN_F32, 3));
    add_tensor(bundle, "edge.time", BORROW(when, BASIN_F32, 3));
    assert_int_equal(basin_npz_write(path, bundle, NULL), BASIN_OK);
    assert_int_equal(basin_network_open(&n, file, 1, NULL, NULL), BASIN_OK);
    assert_int_equal(n->facts.count, 9);
    ASSERT_FACTS(n, 0, 1, 2, 15, 10, 3);
    ASSERT_FACTS(n, 2, 1, 1, 100, 100, 4);
    assert_true(n->facts.now == 4);
    assert_null(n->note);
    basin_network_close(n);
    add_tensor(bundle, "edge_attr", BORROW(amount, BASIN_F32, 3));
    assert_int_equal(basin_npz_write(path, bundle, NULL), BASIN_OK);
    assert_int_equal(basin_network_open(&n, file, 1, NULL, NULL), BASIN_OK);
    assert_string_equal(n->note, "arrays not read: edge_attr");
    basin_network_close(n);
    add_tensor(bundle, "edge.fee", BORROW(amount, BASIN_F32, 2));
    assert_int_equal(basin_npz_write(path, bundle, NULL), BASIN_OK);
    assert_failure(basin_network_open(&n, file, 1, NULL, &failure), BASIN_BAD_SHAPE,
                   "edge.fee has 2 numbers, expected one for each of 3 edges");
}

TEST(splits_by_time) {
    basin_network_options o = {.table = &(basin_table_options){.time = "day"},
                               .split_time = "day",
                               .split_train = 0.4,
                               .split_val = 0.5};
    basin_network *n = must_open(state, accounts, transfers, &o);
    assert_true(n->train[0] && n->train[1] && n->test[2] == 0 && n->val[2]); /* a and b: day 1 */
    assert_true(!n->train[3] && !n->val[3] && !n->test[3]);                  /* d has no edge */
    assert_non_null(strstr(n->note, "by day: 2 nodes train, up to 1; 1 validate, up to 4; 0 test; "
                                    "1 labelled nodes have no time"));
    basin_network_close(n);
    o.split_time = "balance", o.split_train = 0.5, o.split_val = 0.25;
    n = must_open(state, accounts, transfers, &o);
    assert_true(n->train[0] && n->train[1] && n->val[2] && n->test[3]);
    basin_network_close(n);
    o.split_time = "amount";
    assert_failure(open_tables(&n, state, accounts, transfers, &o, &failure), BASIN_BAD_VALUE,
                   "no times in 'amount' to split by; there are balance, day");
    o.split_time = "balance", o.split_train = 1;
    assert_failure(open_tables(&n, state, accounts, transfers, &o, &failure), BASIN_BAD_VALUE,
                   "make 4 for training and 0 for validation");
}

/* Rows `first` .. `last` of made transfers, of two kinds of edges. */
static void write_rows(char *text, int first, int last) {
    text += sprintf(text, "src,dst,amount,when_time,kind,rel\n");
    for (int i = first; i < last; i++)
        text += sprintf(text, "n%d,n%d,%d.%02d,2026-0%d-0%dT0%d:%02d:00,%s,%s\n", i * 7 % 9,
                        i * 5 % 8, i * 31 % 977, i % 100, 1 + i / 40, 1 + i % 9, i % 7, i * 13 % 60,
                        i % 3 ? "wire" : "cash",
                        i % 4   ? "pay"
                        : i % 8 ? "loan"
                                : "gift");
}

/* A base that grows by a night has the bits of all rows read at once; of nodes that it has, what a
 * row fills is replaced. */
TEST(bases_grow) {
    static char all[20000], old[20000], night[20000];
    static const basin_table_options by_relation = {.edge_type = "rel"},
                                     in_one = {.edge_type = "none"};
    static const basin_network_options apart = {.table = &by_relation}, none = {.table = &in_one};
    write_rows(all, 0, 300), write_rows(old, 0, 200), write_rows(night, 200, 300);
    const char *nodes =
        "id,v,city\nn0,1,A\nn1,2,B\nn2,3,A\nn3,4,\nn4,5,A\nn5,6,B\nn6,7,A\nn7,8,B\nn8,9,A\n";
    for (int k = 0; k < 3; k++) {
        basin_network_options o = k ? apart : none;
        o.unite = k == 2;
        basin_network *whole = must_open(state, nodes, all, &o), *base, *grown;
        base = must_open(state, nodes, old, &o);
        const char *file[] = {folder_path(state, "base.basin"),
                              folder_put(state, "night.csv", night),
                              folder_put(state, "change.csv", "id,v,city\nn3,,B\nn1,7,A\nn1,8,\n")};
        assert_int_equal(basin_network_write(file[0], base, NULL), BASIN_OK);
        assert_ok(basin_network_open(&grown, file, 2, &(basin_network_options){.unite = o.unite},
                                     &failure));
        assert_networks_equal(whole, grown);
        for (int r = 0; r < whole->relations; r++)
            assert_memory_equal(whole->relation[r].fact, grown->relation[r].fact,
                                (size_t)(whole->relation[r].edges * whole->facts.count) * 4);
        assert_memory_equal(whole->since, grown->since, (size_t)whole->nodes * sizeof(double));
        basin_network_close(grown);
        assert_ok(basin_network_open(&grown, file, 3, NULL, &failure));
        assert_non_null(strstr(grown->note, "of which 2 were updated"));
        assert_memory_equal(grown->feature + 3, ((const float[]){8, 1, 0, 3, 1, 0, 4, 0, 1}),
                            9 * 4);
        basin_network_close(grown);
        basin_network_close(whole);
        basin_network_close(base);
    }
}

/* One time that is far too late does not make all others old. */
TEST(ages_count_from_a_time_that_others_have) {
    static char rows[2000];
    char *at = rows + sprintf(rows, "debtor,creditor,booked_at\n");
    for (int i = 0; i < 40; i++)
        at +=
            sprintf(at, "n%d,n%d,%s-%02d\n", i, i + 1, i == 7 ? "2099-01" : "2026-03", 1 + i % 20);
    basin_network *n = must_open(state, NULL, rows, NULL);
    assert_non_null(strstr(n->note, "up to 2099-01-08 where the others end at 2026-03-20"));
    assert_true(n->facts.now == 20532);
    basin_network_close(n);
}

/* Tables that other programs write are named, with the command that makes CSV of them; pairs of
 * ends have many names. */
TEST(other_formats_are_named_and_ends_found) {
    static const struct {
        const char *text, *says;
    } file[] = {{"PAR1....",
                 "Parquet, expected CSV, which this command makes: python3 -c \"import pandas; "},
                {"ARROW1..", "pandas.read_feather('"},
                {"ORC.....", "read_orc"},
                {"PK\3\4...xl/workbook.xml", "Excel (xlsx)"},
                {"SQLite format 3.", "sqlite3 -csv -header"}};
    static const char *const ends[] = {"debtor,creditor",     "account_id,counterparty_id",
                                       "orig_acct,bene_acct", "nameOrig,nameDest",
                                       "sender,receiver",     "from,to",
                                       "account,counterparty"};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        for (int second = 0; second < 2; second++) {
            basin_network *n;
            const char *edges = second ? transfers : file[i].text;
            assert_failed(
                open_tables(&n, state, second ? file[i].text : NULL, edges, NULL, &failure),
                file[i].says);
        }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[100];
        snprintf(text, sizeof text, "%s\na,b\nb,c\n", ends[i]);
        basin_network *n = must_open(state, NULL, text, NULL);
        assert_true(n->nodes == 3 && n->relation[0].edges == 4);
        basin_network_close(n);
    }
}

int main(void) { return tests_run(folder_new, folder_remove); }
