/* A detector trained on one day's tables scores those of the next: columns in another order, other
 * categories, columns that are gone or new, relations without an edge; and options that name what
 * is not there. */
#include <stdbool.h>

#include "basin/random.h"
#include "program/program.h"

enum { ACCOUNTS = 200, TRANSFERS = 900 };

#define QUICK "--epochs 8 --members 1 --hops 1 --scaling standard --blocks 1 --threads 1 --quiet"

static float uniform(uint64_t stream, uint64_t i) { return basin_random_uniform_at(5, stream, i); }

static FILE *create(void **state, const char *name) {
    FILE *file = fopen(folder_path(state, name), "w");
    assert_non_null(file);
    return file;
}

/* `columns` of a, b, c, d, f, i: balance, limit, country, opened, is_fraud, id; x: a new one. */
static void write_accounts(void **state, const char *name, const char *columns,
                           const char *const country[3]) {
    static const char *const title[] = {"balance",  "limit", "country", "opened", "",
                                        "is_fraud", "",      "",        "id"};
    FILE *file = create(state, name);
    for (const char *c = columns; *c; c++)
        fprintf(file, "%s%s", *c == 'x' ? "mood" : title[*c - 'a'], c[1] ? "," : "\n");
    for (uint64_t i = 0; i < ACCOUNTS; i++) {
        bool bad = i % 6 == 2;
        for (const char *c = columns; *c; c++) {
            float u = uniform((uint64_t)*c, i);
            if (*c == 'a') fprintf(file, "\"$%d,%03.0f.50\"", bad ? 7 : 2, 999 * u);
            if (*c == 'b' && i % 9) fprintf(file, "%.3f", u);
            if (*c == 'c') fputs(country[bad ? 0 : (int)(3 * u)], file);
            if (*c == 'd') fprintf(file, "2026-%02d-%02d", 1 + (int)(12 * u), 1 + (int)(28 * u));
            if (*c == 'f') fprintf(file, "%d", bad);
            if (*c == 'i') fprintf(file, "acc%d", (int)i);
            if (*c == 'x') fputs("good", file);
            fputs(c[1] ? "," : "\n", file);
        }
    }
    fclose(file);
}

static void write_transfers(void **state, const char *name, const char *header, bool turned,
                            int kinds) {
    static const char *const kind[] = {"wire", "card"};
    FILE *file = create(state, name);
    fprintf(file, "%s\n", header);
    for (uint64_t e = 0; e < TRANSFERS; e++) {
        int from = (int)(ACCOUNTS * uniform(1, e)), to = (int)(ACCOUNTS * uniform(2, e));
        const char *how = kind[e % (uint64_t)kinds];
        if (turned)
            fprintf(file, "%s;acc%d;12.5;acc%d\n", how, to, from);
        else
            fprintf(file, "acc%d,acc%d,%s\n", from, to, how);
    }
    fclose(file);
}

static const char *const usual[] = {"DE", "FR", "IT"}, *const strange[] = {"DE", "FR", "PT"};

static int make_model(void **state) {
    if (folder_new(state)) return -1;
    write_accounts(state, "day1.csv", "iabcdf", usual);
    write_transfers(state, "pay1.csv", "from_account,to_account,channel", false, 2);
    run_ok(state, "anomaly train day1.csv pay1.csv --relation-column channel "
                  "--directed --missing mean --relations max " QUICK " -o m.safetensors");
    run_ok(state, "anomaly score m.safetensors day1.csv pay1.csv -q -o first.csv");
    return 0;
}

static void assert_same_bytes(void **state, const char *file) {
    static char a[1 << 18], b[1 << 18];
    slurp(a, sizeof a, folder_path(state, "first.csv"));
    slurp(b, sizeof b, folder_path(state, file));
    assert_true(strlen(a) > 1000);
    assert_string_equal(a, b);
}

TEST(another_order_gives_the_same_bytes) {
    write_accounts(state, "day2.csv", "xfdcbai", usual);
    write_transfers(state, "pay2.csv", "channel;to_account;amount;from_account", true, 2);
    const program *p = run_ok(state, "anomaly score m.safetensors day2.csv pay2.csv -o second.csv");
    assert_contains(p->err, "columns not used, since training did not have them: mood");
    assert_contains(p->err, "text, one feature per value: country (3)");
    assert_same_bytes(state, "second.csv");
    /* by way of a file that was converted without knowing the model */
    p = run_ok(state,
               "data convert day2.csv pay2.csv two.basin --relation-column channel --directed "
               "--missing mean -q");
    p = run_ok(state, "anomaly score m.safetensors two.basin -o third.csv -q");
    assert_same_bytes(state, "third.csv");
}

TEST(what_is_new_or_absent_is_said) {
    write_accounts(state, "day3.csv", "iabcdf", strange);
    write_transfers(state, "pay3.csv", "from_account,to_account,channel", false, 1);
    const program *p = run_ok(state, "anomaly score m.safetensors day3.csv pay3.csv");
    assert_contains(p->err, "values that training did not know ('PT'), taken as other");
    assert_contains(p->err, "relations without an edge: card");
    write_accounts(state, "day4.csv", "iacdf", usual);
    assert_error(run(state, "anomaly score m.safetensors day4.csv pay1.csv"), 1,
                 "day4.csv: no column 'limit' with which the detector was trained");
    write_transfers(state, "pay4.csv", "from_account,to_account,kanal", false, 2);
    assert_error(run(state, "anomaly score m.safetensors day1.csv pay4.csv"), 1,
                 "no column 'channel' for relations");
    p = run_ok(state, "data convert day1.csv pay1.csv both.basin --relation-column channel -q "
                      "--missing mean");
    assert_error(run(state, "anomaly score m.safetensors both.basin"), 1,
                 "both.basin: its edges go both ways; the detector was trained on a graph whose "
                 "edges have a direction");
}

/* Gaps and unknown ends as in training, unless options say otherwise in so many words. */
TEST(options_go_before_the_model) {
    assert_error(run(state, "anomaly score m.safetensors day1.csv pay1.csv --missing error"), 1,
                 "limit of node acc0 is missing");
    FILE *file = create(state, "far.csv");
    fputs("from_account,to_account,channel\nacc1,acc2,wire\nacc1,elsewhere,card\n", file);
    fclose(file);
    assert_error(run(state, "anomaly score m.safetensors day1.csv far.csv"), 1,
                 "far.csv: line 3: node 'elsewhere' is in no file of nodes, where ids are like");
    assert_error(run(state, "anomaly score m.safetensors day1.csv pay1.csv ./pay1.csv"), 1,
                 "./pay1.csv: is given twice");
    assert_error(run(state, "anomaly score m.safetensors m.safetensors pay1.csv"), 1,
                 "m.safetensors: is a model, expected a network");
    const program *p = run_ok(state, "anomaly score m.safetensors day1.csv far.csv --unknown skip");
    assert_contains(p->err, "note: far.csv: edges: 1 left out: an end is in no file of nodes "
                            "('elsewhere')");
}

TEST(options_name_what_is_there) {
    assert_error(run(state, "data info day1.csv pay1.csv --label is_frod"), 1,
                 "no column 'is_frod' for labels in a file of nodes; did you mean 'is_fraud'?");
    assert_error(run(state, "anomaly train day1.csv pay1.csv --drop baalance -o n"), 1,
                 "no column 'baalance' to drop; did you mean 'balance'?");
    assert_error(run(state, "anomaly train day1.csv pay1.csv --drop is_fraud -o n"), 1,
                 "day1.csv: the option drop has no effect on column 'is_fraud', which is read as");
    assert_error(run(state, "anomaly train day1.csv pay1.csv --missing mean -o far.csv"), 1,
                 "far.csv: is not a model, and would be replaced by one; expected another name");
    assert_error(run(state, "anomaly score m.safetensors day1.csv pay1.csv --drop balance"), 1,
                 "the option drop leaves out column 'balance' with which the detector was trained");
    assert_error(run(state, "anomaly train day1.csv pay1.csv --relation-column chanel -o n"), 1,
                 "no column 'chanel' for relations in a file of edges; did you mean 'channel'?");
    assert_error(run(state, "data info two.basin --drop balance"), 1,
                 "two.basin: is not a CSV file; the option drop has no effect");
    assert_contains(run_ok(state, "data convert day1.csv pay1.csv one.basin --missing mean")->err,
                    "gaps filled with the mean of their column, and how many: limit (23)");
    assert_error(
        run(state, "anomaly train one.basin --directed -o n"), 1,
        "one.basin: its edges stay as they were written; the option directed has no effect");
    run_ok(state, "data info two.basin --directed"); /* as it is */
    assert_error(run(state, "anomaly score one.basin day1.csv pay1.csv"), 1,
                 "one.basin: is not a model, expected one of 'anomaly'");
}

/* Thirds train, validate and test; or half trains and half tests. */
static void write_split(void **state, const char *name, int parts) {
    static const char *const part[] = {"train", "test", "val"};
    FILE *file = create(state, name);
    fputs("id,split\n", file);
    for (int i = 0; i < ACCOUNTS; i++) fprintf(file, "acc%d,%s\n", i, part[i / 6 % parts]);
    fclose(file);
}

#define LOUD                                                                                       \
    "--epochs 2 --members 1 --hops 1 --scaling standard --blocks 1 --threads 1 --trees 4 "         \
    "--no-teacher"
#define TRAIN "anomaly train day1.csv pay1.csv --missing mean " LOUD " -o s.safetensors "

TEST(the_split_of_the_file_is_used_or_not_and_said) {
    write_split(state, "split.csv", 3);
    const program *p = run_ok(state, TRAIN "split.csv");
    assert_contains(p->err, "using the train/validation split in the file");
    assert_contains(p->out, "\ntest  ");
    p = run(state, TRAIN "split.csv --validation 0.1");
    assert_contains(p->err, "the split in the file is not used");
    write_split(state, "split.csv", 2);
    p = run_ok(state, TRAIN "split.csv");
    assert_contains(p->err, "no nodes for validation: the last epoch is kept and the threshold");
}

TEST(what_cannot_be_kept_is_said) {
    assert_error(run(state, "anomaly score m.safetensors two.basin --memory 0.0001 -q"), 1,
                 "two.basin: scoring takes");
    write_split(state, "split.csv", 3);
    const program *p = run_ok(state, "anomaly eval day1.csv pay1.csv split.csv --missing mean "
                                     "--no-baselines --runs 2 --ratio 0.5 " LOUD);
    assert_contains(p->err, "1 split: 2 runs");
    assert_contains(p->err, "--ratio has no effect: the file has splits");
    p = run_ok(state, "anomaly eval day1.csv pay1.csv --missing mean --no-baselines --runs 1 "
                      "--split-time opened --ratio 0.5 " LOUD);
    assert_null(strstr(p->err, "--ratio has no effect"));
    assert_contains(p->out, "1 runs, splits by time;");
}

/* Copies the lines of a table whose account, or one of whose ends, is new (or not), and the header.
 */
static void cut_table(void **state, const char *to, const char *from, int first, bool fresh) {
    char line[200];
    FILE *in = fopen(folder_path(state, from), "r"), *out = create(state, to);
    assert_non_null(in);
    for (int i = 0; fgets(line, sizeof line, in); i++) {
        const char *one = strstr(line, "acc"), *two = one ? strstr(one + 1, "acc") : NULL;
        int most = one ? atoi(one + 3) : 0;
        if (two && atoi(two + 3) > most) most = atoi(two + 3);
        if (!i || (most >= first) == fresh) fputs(line, out);
    }
    fclose(in);
    fclose(out);
}

/* New accounts beside a graph that is there score as they do in the graph of all. */
TEST(a_new_account_is_scored_in_the_graph_that_is_there) {
    static char all[1 << 18];
    int first = ACCOUNTS - 3;
    cut_table(state, "old.csv", "day1.csv", first, false);
    cut_table(state, "oldpay.csv", "pay1.csv", first, false);
    cut_table(state, "new.csv", "day1.csv", first, true);
    cut_table(state, "newpay.csv", "pay1.csv", first, true);
    /* gaps are left to the model, which fills them with the means of its training */
    const program *p = run_ok(state, "data convert old.csv oldpay.csv old.basin -q --directed "
                                     "--keep-gaps --relation-column channel");
    p = run_ok(state, "anomaly score m.safetensors --base old.basin --new new.csv newpay.csv");
    assert_contains(p->err, ": 3 nodes and ");
    assert_contains(p->err, " edges added to the 197 nodes of old.basin");
    slurp(all, sizeof all, folder_path(state, "first.csv"));
    int rows = 0;
    for (const char *row = strchr(p->out, '\n') + 1; *row; row = strchr(row, '\n') + 1, rows++) {
        char start[40], wanted[60];
        int node = (int)strcspn(row, ","), both = node + 1 + (int)strcspn(row + node + 1, ",");
        snprintf(start, sizeof start, "%.*s,", both, row);
        snprintf(wanted, sizeof wanted, "\n%s", start);
        assert_non_null(strstr(all, wanted));
    }
    assert_int_equal(rows, 3);
    /* alerts are counted among those that are printed */
    p = run(state, "anomaly score m.safetensors --base old.basin --new new.csv newpay.csv -q "
                   "--threshold-for alerts=2");
    rows = 0;
    for (const char *row = strchr(p->out, '\n') + 1; *row; row = strchr(row, '\n') + 1)
        rows += strchr(row, '\n')[-1] == '1';
    assert_int_equal(rows, 2);
    assert_error(run(state, "anomaly score m.safetensors --new new.csv newpay.csv"), 2,
                 "--new has no effect without --base");
    p = run_ok(state, "anomaly score m.safetensors --base old.basin --new oldpay.csv");
    assert_contains(p->err, "oldpay.csv: adds no nodes to old.basin: no scores");
    assert_string_equal(p->out, "node,probability,rank,anomalous\n");
}

/* The start of every row, up to the probability, is in the table of all; returns how many. */
static int rows_of(const char *all, const char *rows) {
    int count = 0;
    for (const char *row = strchr(rows, '\n') + 1; *row; row = strchr(row, '\n') + 1, count++) {
        char start[60];
        int node = (int)strcspn(row, ","), both = node + 1 + (int)strcspn(row + node + 1, ",");
        snprintf(start, sizeof start, "\n%.*s,", both, row);
        if (!strstr(all, start)) fail_msg("%s is not in the scores of all", start);
    }
    return count;
}

/* What a night changed: the ends of its edges, no other account; the scores are the whole's. */
TEST(a_night_is_scored_where_it_changed_something) {
    static char all[1 << 18];
    run_ok(state, "data convert day1.csv pay1.csv all.basin -q --directed --keep-gaps "
                  "--relation-column channel");
    char row[3][200];
    FILE *pay = fopen(folder_path(state, "pay1.csv"), "r");
    assert_non_null(pay);
    FILE *night = create(state, "night.csv"), *none = create(state, "none.csv");
    for (int i = 0; i < 3; i++) assert_non_null(fgets(row[i], sizeof row[i], pay));
    fclose(pay);
    fputs(row[0], night), fputs(row[0], none);
    int from = (int)strcspn(row[1], ","); /* the first payer pays the account of the second row */
    const char *to = strchr(row[2], ',');
    fprintf(night, "%.*s%s", from, row[1], to);
    fclose(night), fclose(none);
    const program *p = run_ok(state, "anomaly score m.safetensors --base all.basin night.csv -q");
    snprintf(all, sizeof all, "%s", p->out);
    p = run_ok(state, "anomaly score m.safetensors --base all.basin --changed night.csv -q");
    assert_int_equal(rows_of(all, p->out), 2);
    p = run_ok(state, "anomaly score m.safetensors --base all.basin --changed none.csv");
    assert_contains(p->err, "none.csv: changes nothing in all.basin: no scores");
    assert_int_equal(rows_of(all, p->out), 0);
}

#define HEAD "from_account,to_account,channel\n"

/* Nights as they come, added to a base: what each says, and that nothing else goes in silently. */
TEST(nights_are_added_to_a_base) {
    const program *p;
    folder_put(state, "tx.csv", HEAD "acc1,acc2,wire\nacc1,acc2,wire\n");
    folder_put(state, "change.csv", "id,balance,country\nacc3,51,FR\nacc4,,IT\nacc3,52,\n");
    folder_put(state, "lacks.csv", "id,balance\nzed,3\n");
    folder_put(state, "far.csv", HEAD "acc1,nobody,wire\n");
    const struct {
        const char *tables;
        int code;
        const char *says;
    } night[] = {
        {"tx.csv", 0, ": 0 nodes and 2 edges added to the 197 nodes of old.basin\n"},
        {"change.csv tx.csv", 0, "old.basin, of which 2 were updated\n"},
        {"change.csv", 0, "change.csv: 1 rows repeat the id of a row before, which they replace"},
        {"lacks.csv", 0, ": 1 nodes and 0 edges added to the 197"},
        {"far.csv", 1, "node 'nobody' is neither in the base nor in a file of nodes"},
        {"far.csv --unknown add", 0, ": 1 nodes and 1 edges added to the 197"},
        {"old.basin", 1, "old.basin: is given twice"},
        {"all.basin", 1, "all.basin: is a network by itself, expected tables to add to another"},
    };
    for (size_t i = 0; i < sizeof night / sizeof *night; i++) {
        char command[300];
        snprintf(command, sizeof command, "data convert old.basin %s -o grown.basin --keep-gaps",
                 night[i].tables);
        p = run(state, command);
        assert_int_equal(p->code, night[i].code);
        if (!strstr(p->err, night[i].says)) fail_msg("%s: %s", night[i].tables, p->err);
        snprintf(command, sizeof command, "anomaly score m.safetensors --base old.basin %s",
                 night[i].tables);
        if (!night[i].code) run_ok(state, command);
    }
    assert_error(run(state, "data convert old.basin lacks.csv -o grown.basin --missing error"), 1,
                 "line 2: node 'zed' is not in old.basin, and no table has its column 'limit'");
    /* The base grows in place, and scores as all tables read at once do. */
    run_ok(state, "data convert old.basin grown.basin -q --keep-gaps");
    run_ok(state, "data convert grown.basin new.csv newpay.csv -o grown.basin -q --keep-gaps");
    run_ok(state, "anomaly score m.safetensors grown.basin -q -o grown.csv");
    assert_same_bytes(state, "grown.csv");
    assert_error(run(state, "data convert new.csv newpay.csv -o new.csv"), 2, "'new.csv' comes");
    cut_table(state, "pay", "newpay.csv", 0, true);
    assert_error(run(state, "data convert new.csv pay -o pay"), 2, "pay would overwrite pay");
}

int main(void) { return tests_run(make_model, program_teardown); }
