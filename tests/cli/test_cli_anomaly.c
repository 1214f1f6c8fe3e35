/* basin anomaly train, score, eval, explain on a small table of accounts and transfers, with ids
 * that are words; and what each of them says about data it cannot use. */
#include <math.h>
#include <stdbool.h>

#include "cli/program.h"

#include "basin/random.h"

enum { NODES = 300, EDGES = 1500 };
#define QUICK "--epochs 25 --members 1 --hops 1 --scaling standard --blocks 1 --threads 1 --quiet"

static bool fraud(int64_t i) { return i % 7 == 3; }

/* Anomalous accounts hold more and mostly trade with each other. */
static void write_table(void **state) {
    char path[PATH_TEXT];
    FILE *nodes = fopen(folder_path(path, state, "accounts.csv"), "w");
    FILE *edges = fopen(folder_path(path, state, "transfers.csv"), "w");
    assert_true(nodes && edges);
    fputs("id,label,amount,age\n", nodes);
    for (int64_t i = 0; i < NODES; i++)
        fprintf(nodes, "acc%lld,%s,%.4f,%.4f\n", (long long)i,
                i % 10 == 9 ? ""
                : fraud(i)  ? "1"
                            : "0",
                basin_random_normal_at(1, 0, (uint64_t)i) + (fraud(i) ? 1.5 : 0),
                basin_random_normal_at(1, 1, (uint64_t)i));
    fputs("source,target\n", edges);
    for (uint64_t e = 0; e < EDGES; e++) {
        int64_t a = (int64_t)(basin_random_uniform_at(1, 2, e) * NODES), b = a;
        for (uint64_t t = 0; t < 9 && (b == a || fraud(b) != fraud(a)); t++)
            b = (int64_t)(basin_random_uniform_at(1, 3, 9 * e + t) * NODES);
        fprintf(edges, "acc%lld,acc%lld\n", (long long)a, (long long)b);
    }
    fclose(nodes);
    fclose(edges);
}

static int make_table(void **state) {
    if (folder_new(state)) return -1;
    write_table(state);
    return 0;
}

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

static void eval_prints_figures_and_baselines(void **state) {
    const program *p =
        run(state, "anomaly eval accounts.csv transfers.csv " QUICK " --runs 2 --json");
    cJSON *tree = run_json(p);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models")), 5);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models.0.runs")), 2);
    assert_true(json_number(tree, "models.0.auroc.0") > 70);
    assert_string_equal(json_at(tree, "models.4.model")->valuestring, "MLP, 2-hop means");
    cJSON_Delete(tree);
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
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_a_table_to_reasons),
        cmocka_unit_test(eval_prints_figures_and_baselines),
        cmocka_unit_test(presets_give_way_to_options),
        cmocka_unit_test(wrong_data_get_one_line),
    };
    return cmocka_run_group_tests(tests, make_table, program_teardown);
}
