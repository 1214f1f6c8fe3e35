/* basin anomaly train, score, eval, explain on a small table of accounts and transfers, with ids
 * that are words; and what each of them says about data it cannot use. */
#include <math.h>

#include "cli/accounts.h"

#define QUICK "--epochs 25 --members 1 --hops 1 --scaling standard --blocks 1 --threads 1 --quiet"

static void from_a_table_to_reasons(void **state) {
    const program *p = run(state, "anomaly train accounts.csv transfers.csv " QUICK
                                  " -o m.safetensors --log log.jsonl --json");
    cJSON *tree = run_json(p);
    assert_true(json_number(tree, "val_auroc") > 80);
    cJSON_Delete(tree);
    p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet");
    assert_int_equal(p->code, 0);
    assert_true(strncmp(p->out, "node,probability,rank,anomalous\nacc0,", 37) == 0);
    int lines = 0;
    for (const char *c = p->out; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, NODES + 1);
    /* The highest ranks are frauds, also among those whose label was not given. */
    p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet --top 20");
    int found = 0, row = 0;
    for (const char *c = strchr(p->out, '\n'); c && c[1]; c = strchr(c + 1, '\n'), row++)
        found += fraud(atoi(c + 4));
    assert_int_equal(row, 20);
    assert_true(found >= 15);
    p = run(state,
            "anomaly explain m.safetensors acc3 accounts.csv transfers.csv --quiet --json --svg "
            "why.svg");
    tree = run_json(p);
    assert_string_equal(json_at(tree, "node")->valuestring, "acc3");
    double sum = json_number(tree, "typical_logit"), shares = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(tree, "features")) sum += json_number(item, "moves");
    assert_true(fabs(sum - json_number(tree, "logit")) < 0.05); /* the shares add up */
    cJSON_ArrayForEach(item, json_at(tree, "neighbours")) shares += json_number(item, "attention");
    assert_true(shares > 0 && shares < 1.001);
    assert_true(json_number(tree, "energy.below") >= 0);
    cJSON_Delete(tree);
    p = run(state, "anomaly explain m.safetensors acc3 accounts.csv transfers.csv --quiet");
    assert_contains(p->out, "node acc3: probability");
    assert_contains(p->out, "amount, mean 1 hop away");
}

/* Columns of both scalings, and members that see some of them, come back as the table's columns. */
static void reasons_of_a_mixture_add_up(void **state) {
    const program *p = run(state, "anomaly train accounts.csv transfers.csv " QUICK
                                  " --scaling both+standard+quantile --members 3 -o x.safetensors");
    assert_int_equal(p->code, 0);
    p = run(state, "anomaly explain x.safetensors acc3 accounts.csv transfers.csv --quiet --json");
    cJSON *tree = run_json(p);
    double sum = json_number(tree, "typical_logit");
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(tree, "features")) sum += json_number(item, "moves");
    assert_true(fabs(sum - json_number(tree, "logit")) < 0.05);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "features")), 6); /* 2, the degree; 1 hop */
    cJSON_Delete(tree);
}

static void eval_prints_figures_and_baselines(void **state) {
    const program *p = run(state, "anomaly eval accounts.csv transfers.csv " QUICK
                                  " --runs 2 --json --scores scores.csv");
    cJSON *tree = run_json(p);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models")), 5);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models.0.runs")), 2);
    assert_true(json_number(tree, "models.0.auroc.0") > 70);
    assert_string_equal(json_at(tree, "models.4.model")->valuestring, "MLP, 2-hop means");
    cJSON_Delete(tree);
    char path[PATH_TEXT], line[200];
    int lines = 0;
    FILE *file = fopen(folder_path(path, state, "scores.csv"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (!lines++) assert_string_equal(line, "split,node,part,label,probability\n");
    fclose(file);
    assert_int_equal(lines, 1 + 2 * NODES * 9 / 10); /* two runs, of each the labelled nodes */
}

static void presets_give_way_to_options(void **state) {
    const program *p = run(state, "anomaly train x --heads 5 --preset amazon --print-config");
    assert_int_equal(p->code, 0);
    assert_contains(p->out, "\"memories\":\t640");
    assert_contains(p->out, "\"heads\":\t5");
    assert_contains(p->out, "\"position\":\t\"learned\"");
}

static void wrong_data_get_one_line(void **state) {
    char path[PATH_TEXT];
    FILE *file = fopen(folder_path(path, state, "one.csv"), "w");
    fputs("id,label,amount\n", file);
    for (int i = 0; i < 20; i++) fprintf(file, "a%d,0,%d\n", i, i);
    fclose(file);
    file = fopen(folder_path(path, state, "few.csv"), "w");
    fputs("source,target\na0,a1\na1,a2\n", file);
    fclose(file);
    assert_error(run(state, "anomaly train one.csv few.csv -o n.safetensors " QUICK), 1,
                 "0 anomalous");
    assert_error(run(state, "anomaly train accounts.csv transfers.csv " QUICK), 2,
                 "wants --output FILE");
    assert_error(run(state, "anomaly score accounts.csv transfers.csv --quiet"), 1, "accounts.csv");
    assert_error(run(state, "anomaly explain m.safetensors nobody accounts.csv transfers.csv -q"),
                 1, "no node 'nobody'");
    assert_error(run(state, "anomaly score m.safetensors one.csv few.csv --quiet"), 1,
                 "1 features a node; the detector was trained on 2");
    assert_error(run(state, "anomaly train accounts.csv transfers.csv --form published --blocks 2 "
                            "-o n.safetensors --quiet"),
                 1, "published form");
    assert_error(run(state, "anomaly train accounts.csv transfers.csv " QUICK " --memory 0.0001 "
                            "--sampling neighbours -o n.safetensors"),
                 1, "of 0.0001 allowed; wanted a larger --memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_a_table_to_reasons),
        cmocka_unit_test(reasons_of_a_mixture_add_up),
        cmocka_unit_test(eval_prints_figures_and_baselines),
        cmocka_unit_test(presets_give_way_to_options),
        cmocka_unit_test(wrong_data_get_one_line),
    };
    return cmocka_run_group_tests(tests, make_table, program_teardown);
}
