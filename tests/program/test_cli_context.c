/* --in-context of basin anomaly score, explain and eval: labels are stored, nothing is trained. */
#include <math.h>

#include "program/accounts.h"
#include "support/xgboost.h"

#define TABLES "accounts.csv transfers.csv --threads 1 --quiet"

/* A table once more, changed by an awk program. */
static void change_table(void **state, const char *from, const char *name, const char *how) {
    char line[PATH_TEXT + 400];
    snprintf(line, sizeof line, "cd '%s' && awk -F, -v OFS=, '%s' %s >%s", (const char *)*state,
             how, from, name);
    assert_int_equal(system(line), 0);
}

static void change(void **state, const char *name, const char *how) {
    change_table(state, "accounts.csv", name, how);
}

TEST(nodes_without_a_label_are_scored) {
    cJSON *tree = run_json(run(state, "anomaly score --in-context " TABLES " --json"));
    const cJSON *nodes = json_at(tree, "nodes"), *row;
    int right = 0;
    assert_int_equal(cJSON_GetArraySize(nodes), NODES / 10);
    cJSON_ArrayForEach(row, nodes) {
        int64_t i = strtoll(cJSON_GetStringValue(json_at(row, "node")) + 3, NULL, 10);
        double p = json_number(row, "probability");
        assert_int_equal(i % 10, 9);
        assert_true(p > 0 && p < 1);
        right += fraud(i) == (p > 0.5);
    }
    assert_true(right >= 28);
}

/* The same bits of both tables. */
static void expect_same_scores(void **state, const char *tables, const char *others) {
    cJSON *a = run_json(run(state, "anomaly score --in-context %s --json --sort", tables));
    cJSON *b = run_json(run(state, "anomaly score --in-context %s --json --sort", others));
    int rows = cJSON_GetArraySize(json_at(a, "nodes"));
    assert_true(rows > 0 && rows == cJSON_GetArraySize(json_at(b, "nodes")));
    for (int i = 0; i < rows; i++) {
        char at[40];
        snprintf(at, sizeof at, "nodes.%d.probability", i);
        assert_true(json_number(a, at) == json_number(b, at));
        snprintf(at, sizeof at, "nodes.%d.node", i);
        assert_string_equal(cJSON_GetStringValue(json_at(a, at)),
                            cJSON_GetStringValue(json_at(b, at)));
    }
}

/* For any order of rows and any number of threads. */
TEST(a_score_is_of_its_own_row) {
    change(state, "reversed.csv",
           "NR == 1 {print; next} {line[NR] = $0} END {for (i = NR; i > 1; i--) print line[i]}");
    expect_same_scores(state, TABLES, "reversed.csv transfers.csv --threads 2");
}

/* Of words and numbers, of accounts and transfers; of so many that they become components. */
TEST(the_order_of_columns_changes_nothing) {
    change(state, "half.csv", "NR < 152 {print}"); /* acc0 to acc149 */
    change_table(state, "transfers.csv", "paid.csv",
                 "NR == 1 || (substr($1, 4) < 150 && substr($2, 4) < 150) {print}");
    change_table(
        state, "half.csv", "words.csv",
        "NR == 1 {print $0, \"land\", \"c9\", \"c10\"; next} "
        "{print $0, substr(\"DEFRIT\", NR % 3 * 2 + 1, 2), NR * NR % 17, NR % 5 ? NR % 7 : \"\"}");
    change_table(state, "words.csv", "turned.csv", "{print $7, $4, $1, $5, $2, $6, $3}");
    change_table(state, "paid.csv", "sums.csv",
                 "NR == 1 {print $0, \"kind\", \"sum\", \"fee\"; next} "
                 "{print $0, NR % 4 ? \"card\" : \"cash\", NR * NR % 101, NR % 13}");
    change_table(state, "sums.csv", "turned_sums.csv", "{print $5, $4, $1, $3, $2}");
    expect_same_scores(state, "words.csv sums.csv", "turned.csv turned_sums.csv");
    change_table(state, "half.csv", "wide.csv",
                 "{line = $0; for (i = 1; i < 120; i++) line = line OFS (NR == 1 ? \"c\" i : "
                 "NR * i * i % 97 + $3); print line}");
    change_table(state, "wide.csv", "thgir.csv",
                 "{line = $NF; for (i = NF - 1; i > 0; i--) line = line OFS $i; print line}");
    expect_same_scores(state, "wide.csv paid.csv", "thgir.csv paid.csv");
}

TEST(an_explanation_names_labelled_nodes) {
    cJSON *tree =
        run_json(run(state, "anomaly explain --in-context acc59 " TABLES " --json --neighbours 5"));
    assert_true(fraud(59));
    assert_true(json_number(tree, "probability") > 0.5);
    assert_true(json_number(tree, "anomalous") > 0.5);
    assert_string_equal(cJSON_GetStringValue(json_at(tree, "sources.0.label")), "anomalous");
    assert_true(json_number(tree, "sources.0.share") >= json_number(tree, "sources.4.share"));
    assert_true(json_number(tree, "sources.0.moves") > 0);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "sources")), 5);
    assert_true(json_at(tree, "sources.0.agrees.0.column") != NULL);
    for (int b = 0; b < 12; b++) {
        char begin[40], end[40];
        snprintf(begin, sizeof begin, "energy.%d.begin", b);
        snprintf(end, sizeof end, "energy.%d.end", b);
        assert_true(json_number(tree, end) < json_number(tree, begin));
    }
    const program *p = run_ok(state, "anomaly explain --in-context acc59 " TABLES);
    assert_contains(p->out, "its energy falls in 12 of 12 blocks");
    assert_contains(p->out, "amount");
}

TEST(draws_of_labels_are_compared) {
    program_needs_xgboost();
    cJSON *tree =
        run_json(run(state, "anomaly eval " TABLES " --in-context --labels 10:60 --runs 2 --json"));
    static const char *const model[] = {
        "in-context", "logistic regression", "nearest neighbours", "XGBoost", "forest",
        "bag",        "trained default"};
    for (int i = 0; i < 7; i++) {
        char at[60];
        snprintf(at, sizeof at, "models.%d.model", i);
        assert_string_equal(cJSON_GetStringValue(json_at(tree, at)), model[i]);
        snprintf(at, sizeof at, "models.%d.auroc.0", i);
        assert_true(json_number(tree, at) > 85);
    }
    assert_error(run(state, "anomaly eval " TABLES " --in-context --labels 20"), 2, "20:180");
    assert_error(run(state, "anomaly eval " TABLES " --in-context --labels 20:300"), 1,
                 "no node of each class");
}

TEST(labels_that_cannot_be_compared) {
    change(state, "none.csv", "NR > 1 {$2 = \"\"} {print}");
    change(state, "normal.csv", "NR > 1 && $2 == 1 {$2 = \"\"} {print}");
    change(state, "one.csv", "NR > 1 && $2 == 1 && n++ {$2 = \"\"} {print}");
    change(state, "all.csv", "NR > 1 && $2 == \"\" {$2 = 0} {print}");
    const char *score = "anomaly score --in-context %s.csv transfers.csv --threads 1 --quiet";
    assert_error(run(state, score, "none"), 1, "no labels");
    assert_error(run(state, score, "normal"), 1, "are normal");
    assert_error(run(state, score, "all"), 1, "nothing to score");
    const program *p =
        run_ok(state, "anomaly score --in-context one.csv transfers.csv --threads 1");
    assert_contains(p->err, "only 1 anomalous node");
    assert_null(strstr(p->err, "AUROC"));
    change(state, "leak.csv", "{print $0, NR == 1 ? \"closed\" : 7 - $2}");
    p = run_ok(state, "anomaly score --in-context leak.csv transfers.csv --threads 1");
    assert_contains(p->err, "column 'closed' by itself has an AUROC of 1.0000");
    assert_error(run(state, "anomaly score --passes 2 m.st " TABLES), 2, "--passes");
    assert_error(run(state, "anomaly score --unlabelled-first 9 m.st " TABLES), 2, "no effect");
    assert_error(run(state, "anomaly score --in-context --weights accounts.csv " TABLES), 1,
                 "accounts.csv");
}

/* Gaps and constant columns are columns as others are. */
TEST(gaps_and_constants_are_allowed) {
    change(state, "gaps.csv",
           "NR == 1 {print $0, \"flat\"; next} NR % 3 == 0 {$4 = \"\"} {print $0, 5}");
    cJSON *tree = run_json(
        run(state, "anomaly score --in-context gaps.csv transfers.csv --threads 1 --json --top 5"));
    assert_true(json_number(tree, "nodes.0.probability") > 0.5);
}

int main(void) { return tests_run(make_table, program_teardown); }
