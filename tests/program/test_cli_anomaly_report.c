/* basin anomaly report: what the report says of a detector and its nodes, with labels and without.
 */
#include "program/accounts.h"
#include "program/report.h"
#include "support/xgboost.h"

#define QUICK                                                                                      \
    "--epochs 10 --rate 0.003 --members 1 --hops 1 --scaling standard --blocks 1 --trees 2 "       \
    "--threads 1 --quiet"

static int make_model(void **state) {
    program_needs_xgboost();
    if (make_table(state)) return -1;
    return run(state, "anomaly train accounts.csv transfers.csv " QUICK " -o m.safetensors")->code;
}

TEST(a_report_says_how_good_and_why) {
    const program *p =
        run_ok(state, "anomaly report m.safetensors accounts.csv transfers.csv --top 7 "
                      "--quiet -o page.html");
    assert_contains(p->out, "page.html: ");
    char *page = report_text(state, "page.html");
    assert_self_contained(page);
    cJSON *tree = report_read(state, "page.html");
    static const char *const present[] = {"detector.card.base_rate", "figures.trained_on",
                                          "figures.budgets.0",       "figures.reliability.9",
                                          "figures.curves.1.y.1",    "scores.histogram.1.bars.19",
                                          "drift.columns.2.4",       "alerts.6.features.0.3"};
    for (size_t i = 0; i < sizeof present / sizeof *present; i++)
        assert_non_null(json_at(tree, present[i]));
    assert_true(json_at(tree, "figures.trained_on")->valueint > 0);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "alerts")), 7);
    bool found[3] = {false};
    const cJSON *column;
    cJSON_ArrayForEach(column, json_at(tree, "drift.columns")) {
        static const char *const name[] = {"amount", "age", "number of neighbours"};
        for (int i = 0; i < 3; i++)
            found[i] = found[i] || !strcmp(cJSON_GetArrayItem(column, 0)->valuestring, name[i]);
    }
    assert_true(found[0] && found[1] && found[2]);
    p = run(state, "anomaly report m.safetensors accounts.csv transfers.csv --top 7 -q --json");
    cJSON *printed = run_json(p);
    assert_true(cJSON_Compare(tree, printed, true));
    free(page);
}

/* No labels: no curves. Ids that look like markup stay text. */
TEST(a_page_without_labels_has_scores_alone) {
    FILE *nodes = fopen(folder_path(state, "new.csv"), "w");
    FILE *edges = fopen(folder_path(state, "new-transfers.csv"), "w");
    assert_true(nodes && edges);
    fputs("id,amount,age\n", nodes);
    fputs("source,target\n", edges);
    for (int i = 0; i < 60; i++) {
        fprintf(nodes, "<b>%d,%d.5,%d\n", i, i % 7, i % 3);
        fprintf(edges, "<b>%d,<b>%d\n", i, (i + 1) % 60);
    }
    fclose(nodes);
    fclose(edges);
    run_ok(state, "anomaly report m.safetensors new.csv new-transfers.csv --quiet "
                  "-o new.html");
    char *page = report_text(state, "new.html");
    assert_contains(page, "\\u003cb>");
    assert_null(strstr(page, "<b>"));
    cJSON *tree = report_read(state, "new.html");
    assert_null(cJSON_GetObjectItem(tree, "figures"));
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "scores.histogram")), 1);
    assert_true(json_at(tree, "drift.large")->valueint > 0);
    free(page);
}

TEST(wrong_files_get_one_line) {
    assert_error(run(state, "anomaly report m.safetensors absent.csv -q"), 1, "absent.csv");
    assert_error(run(state, "anomaly report m.safetensors accounts.csv transfers.csv -q -o no/x"),
                 1, "no/x");
}

int main(void) { return tests_run(make_model, program_teardown); }
