/* basin node train, predict, eval, explain on small tables with classes that are words; and what
 * each of them says about data it cannot use. */
#include <math.h>

#include "program/program.h"

enum { NODES = 120 };
static const char *const tree[] = {"ash", "birch, silver", "cedar"};

#define QUICK                                                                                      \
    "--epochs 30 --members 1 --hops 0 --smoothing 3 --scaling standard --dim 16 --memories 16 "    \
    "--decay 0.02 --dropout 0.1 --input-dropout 0 --threads 1 --quiet"

/* Neighbours are of one kind; every fifth label is not known. */
static int make(void **state) {
    if (folder_new(state)) return 1;
    FILE *file = fopen(folder_path(state, "trees.csv"), "w");
    if (!file) return 1;
    fprintf(file, "id,height,girth,kind\n");
    for (int i = 0; i < NODES; i++) {
        int its = i % 3, noise = i * 7919 % 101;
        fprintf(file, "T%d,%d,%d,", i, 10 * its + noise % 17, 30 - 10 * its + noise % 13);
        fprintf(file, i % 5 ? "\"%s\"\n" : "\n", tree[its]);
    }
    fclose(file);
    file = fopen(folder_path(state, "paid.csv"), "w");
    if (!file) return 1;
    fprintf(file, "source,target,amount\n");
    for (int i = 0; i < NODES; i++) fprintf(file, "T%d,T%d,%d\n", i, (i + 3) % NODES, 5 + i % 7);
    fclose(file);
    file = fopen(folder_path(state, "roots.csv"), "w");
    if (!file) return 1;
    fprintf(file, "source,target\n");
    for (int i = 0; i < NODES; i++)
        fprintf(file, "T%d,T%d\nT%d,T%d\n", i, (i + 3) % NODES, i, (i + 9) % NODES);
    return fclose(file);
}

TEST(from_a_table_to_reasons) {
    const program *p =
        run(state, "node train trees.csv roots.csv --label kind " QUICK " -o m.safetensors --json");
    cJSON *json = run_json(p);
    assert_true(json_number(json, "validation.accuracy") > 80);
    assert_string_equal(json_at(json, "classes.1")->valuestring, tree[1]);
    p = run_ok(state, "node predict m.safetensors trees.csv roots.csv --quiet");
    assert_contains(p->out, "node,class,p_ash,\"p_birch, silver\",p_cedar\nT0,");
    int right = 0, lines = 0;
    for (const char *c = strchr(p->out, '\n'); c && c[1]; c = strchr(c + 1, '\n'), lines++) {
        const char *told = strchr(c + 1, ',') + 1;
        told += *told == '"';
        right += !strncmp(told, tree[atoi(c + 2) % 3], strlen(tree[atoi(c + 2) % 3]));
    }
    assert_int_equal(lines, NODES);
    assert_true(right > 100);
    p = run(state, "node predict m.safetensors trees.csv roots.csv --quiet --unlabelled --json");
    json = run_json(p);
    assert_int_equal(cJSON_GetArraySize(json_at(json, "nodes")), NODES / 5);
    double sum = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(json, "nodes.0.probability")) sum += item->valuedouble;
    assert_true(fabs(sum - 1) < 1e-5);
    p = run(state, "node explain m.safetensors T7 trees.csv roots.csv --quiet");
    assert_contains(p->out, "node         T7\nclass        ");
    assert_contains(p->out, "girth");
    p = run(state,
            "node explain m.safetensors T7 trees.csv roots.csv --class cedar --json --quiet");
    json = run_json(p);
    assert_string_equal(json_at(json, "class")->valuestring, "cedar");
}

/* Amounts and ids are no classes: whoever names such a column is asked. */
TEST(many_classes_are_asked_about) {
    FILE *file = fopen(folder_path(state, "prices.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,height,price,owner\n");
    for (int i = 0; i < NODES; i++)
        fprintf(file, "T%d,%d,%.2f,o%d\n", i, i % 11, 3 + i % 40 * 0.25, i % 60);
    fclose(file);
    const program *p = run_ok(
        state, "node train prices.csv roots.csv --label price --epochs 1 --members 1 --hops 0 "
               "--smoothing 0 --threads 1 --restart -o price.safetensors");
    assert_contains(p->err, "the label has 40 classes, all of them numbers ('3.00' to '12.75'): is "
                            "it a quantity?");
    p = run(state, "node train prices.csv roots.csv --label owner --epochs 1 --members 1 --hops 0 "
                   "--smoothing 0 --threads 1 --restart -o owner.safetensors");
    assert_contains(p->err, "('o0', 'o1', ..): is it an id?");
}

/* A saved model is measured as the run that made it measured itself. */
TEST(a_model_is_measured) {
    const program *p = run(state, "node eval trees.csv roots.csv --label kind --runs 2 --ratio 0.5 "
                                  "--rivals mlp,paper --json " QUICK);
    cJSON *json = run_json(p);
    assert_string_equal(json_at(json, "models.1.model")->valuestring, "rival-mlp");
    assert_string_equal(json_at(json, "models.2.model")->valuestring, "paper");
    assert_true(json_number(json, "models.0.accuracy.0") > 80);
    p = run_ok(state, "node train trees.csv roots.csv --label kind --validation 0 " QUICK
                      " -o v.safetensors");
    p = run(state, "node eval --model v.safetensors trees.csv roots.csv --quiet");
    assert_contains(p->out, "all labelled nodes; percent");
    assert_contains(p->out, "of them were trained on, 0 more chose the epoch: this is not");
    const char *const idle[] = {"--runs 3", "--ratio 0.5", "--rivals mlp", "--epochs 3"};
    for (int i = 0; i < 4; i++) {
        char line[200];
        snprintf(line, sizeof line, "node eval --model v.safetensors trees.csv roots.csv %s",
                 idle[i]);
        p = run(state, line);
        assert_error(p, 2, "has no effect with --model");
    }
}

/* Classes by other names than the model's. */
TEST(unknown_classes_are_told) {
    const program *p = run_ok(state, "data convert trees.csv roots.csv trees.npz --label kind "
                                     "--classes --quiet");
    p = run_ok(state, "node train trees.csv roots.csv --label kind " QUICK " -o c.safetensors");
    p = run(state, "node eval --model c.safetensors trees.npz --quiet");
    assert_error(p, 1, "none of 96 labelled nodes has a class of c.safetensors");
}

/* What edges carry, with inputs that are left to validation, as they are without options. */
TEST(edges_may_carry_amounts) {
    const program *p = run(state, "node train trees.csv paid.csv --label kind --epochs 2 "
                                  "--members 1 --threads 1 --quiet -o p.safetensors --json");
    cJSON *json = run_json(p);
    assert_true(json_number(json, "validation.accuracy") >= 0);
    p = run(state, "node predict p.safetensors trees.csv roots.csv --quiet");
    assert_error(p, 1, "no column 'amount' of edges");
}

TEST(mistakes_are_told) {
    const program *p = run(state, "node train trees.csv roots.csv --label colour " QUICK);
    assert_error(p, 1, "no column 'colour' for labels");
    p = run(state, "node train trees.csv roots.csv --drop kind " QUICK);
    assert_error(p, 1, "no labels to learn from");
    p = run_ok(state, "node train trees.csv roots.csv --label kind --quiet --epochs 1 --hops 0 "
                      "--smoothing 0 -o m2.safetensors");
    p = run(state, "node explain m2.safetensors T7 trees.csv roots.csv --class oak --quiet");
    assert_error(p, 1, "--class 'oak' is not one of the model's 3");
    p = run(state, "anomaly score m2.safetensors trees.csv roots.csv --quiet");
    assert_error(p, 1, "the model is 'node', expected 'anomaly'");
    p = run(state, "node eval trees.csv roots.csv --label kind --rivals xgboost --quiet");
    assert_error(p, 1, "--rivals: 'xgboost' is not one of all, paper");
    p = run(state,
            "node train trees.csv roots.csv --label kind --smoothing 0 --anchor 0.3 --quiet");
    assert_error(p, 1, "anchor");
}

int main(void) { return tests_run(make, folder_remove); }
