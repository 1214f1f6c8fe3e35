/* basin anomaly report: what the page says of a detector and its nodes, with labels and without. */
#include <sys/stat.h>

#include "cli/accounts.h"

#define QUICK                                                                                      \
    "--epochs 10 --rate 0.003 --members 1 --hops 1 --scaling standard --blocks 1 --trees 2 "       \
    "--threads 1 --quiet"

static int make_model(void **state) {
    if (make_table(state)) return -1;
    return run(state, "anomaly train accounts.csv transfers.csv " QUICK " -o m.safetensors")->code;
}

/* The page as text; free it. */
static char *read_page(void **state, const char *name) {
    char path[PATH_TEXT];
    struct stat file;
    assert_int_equal(stat(folder_path(path, state, name), &file), 0);
    char *text = malloc((size_t)file.st_size + 1);
    assert_non_null(text);
    slurp(text, (size_t)file.st_size + 1, path);
    return text;
}

static int count(const char *text, const char *what) {
    int found = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) found++;
    return found;
}

static void a_page_says_how_good_and_why(void **state) {
    const program *p = run(state, "anomaly report m.safetensors accounts.csv transfers.csv --top 7 "
                                  "--quiet -o page.html");
    if (p->code) fail_msg("%s", p->err);
    assert_contains(p->out, "page.html: ");
    char *page = read_page(state, "page.html");
    static const char *const wanted[] = {"Precision by recall",
                                         "ROC",
                                         "Reliability",
                                         "Histogram",
                                         "trained on and",
                                         "id=\"columns\"",
                                         "amount",
                                         "age",
                                         "number of neighbours",
                                         "base rate",
                                         "If so many alerts"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) assert_contains(page, wanted[i]);
    assert_int_equal(count(page, "<details class=\"alert\""), 7);
    assert_int_equal(count(page, "<section"), count(page, "</section>"));
    assert_int_equal(count(page, "<table"), count(page, "</table>"));
    assert_int_equal(count(page, "http://") - count(page, "http://www.w3.org/"), 0);
    assert_null(strstr(page, "nan"));
    free(page);
}

/* No labels: no curves. Ids that look like markup stay text. */
static void a_page_without_labels_has_scores_alone(void **state) {
    char path[PATH_TEXT];
    FILE *nodes = fopen(folder_path(path, state, "new.csv"), "w");
    FILE *edges = fopen(folder_path(path, state, "new-transfers.csv"), "w");
    assert_true(nodes && edges);
    fputs("id,amount,age\n", nodes);
    fputs("source,target\n", edges);
    for (int i = 0; i < 60; i++) {
        fprintf(nodes, "<b>%d,%d.5,%d\n", i, i % 7, i % 3);
        fprintf(edges, "<b>%d,<b>%d\n", i, (i + 1) % 60);
    }
    fclose(nodes);
    fclose(edges);
    const program *p = run(state, "anomaly report m.safetensors new.csv new-transfers.csv --quiet "
                                  "-o new.html");
    if (p->code) fail_msg("%s", p->err);
    char *page = read_page(state, "new.html");
    assert_contains(page, "no labels of both kinds");
    assert_contains(page, "have moved far since training");
    assert_contains(page, "&lt;b&gt;");
    assert_null(strstr(page, "<b>"));
    assert_null(strstr(page, "Precision by recall"));
    free(page);
}

static void wrong_files_get_one_line(void **state) {
    assert_error(run(state, "anomaly report m.safetensors absent.csv -q"), 1, "absent.csv");
    assert_error(run(state, "anomaly report m.safetensors accounts.csv transfers.csv -q -o no/x"),
                 1, "no/x");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_says_how_good_and_why),
        cmocka_unit_test(a_page_without_labels_has_scores_alone),
        cmocka_unit_test(wrong_files_get_one_line),
    };
    return cmocka_run_group_tests(tests, make_model, program_teardown);
}
