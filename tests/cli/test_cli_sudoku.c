/* basin sudoku: generate, train, eval and solve as a user calls them, and wrong usage. */
#include "cli/program.h"

static const char *const tiny =
    "--preset cells --repel 1 --dim 8 --heads 2 --head-dim 4 --memories 16 --steps 4 --batch 4 "
    "--epochs 2 --warmup 0 --threads 1";

static void generates(void **state) {
    const program *p = run(state, "sudoku generate --count 20 -o easy.csv");
    if (p->code) fail_msg("%s", p->err);
    assert_contains(p->out, "easy.csv: 20 boards, 31 to 4");
    cJSON *tree = run_json(run(state, "sudoku generate --kind hard --count 5 --json -o hard.csv"));
    assert_int_equal(json_at(tree, "boards")->valueint, 5);
    assert_true(json_at(tree, "givens_least")->valuedouble >= 17);
    cJSON_Delete(tree);
    p = run(state, "sudoku generate hard.csv --kind hard --reveal 0 --count 3 -o more.csv");
    assert_contains(p->out, "more.csv: 3 boards");
}

static void trains_scores_and_solves(void **state) {
    assert_int_equal(run(state, "sudoku generate --count 12 --least 60 --most 60 -q")->code, 0);
    const program *p = run(state, "sudoku train boards.csv --hold-out 4 -q %s", tiny);
    if (p->code) fail_msg("%s", p->err);
    assert_contains(p->out, "trained on 8 boards for 2 epochs");
    assert_contains(p->out, "validation boards solved");
    p = run(state, "sudoku eval model.safetensors boards.csv --last 4 --givens -q");
    assert_contains(p->out, "boards.csv, 4 boards");
    assert_contains(p->out, "as in training");
    assert_contains(p->out, "4 steps");
    cJSON *tree = run_json(
        run(state, "sudoku eval model.safetensors boards.csv --steps 2,9 --json -q --limit 3"));
    assert_int_equal(json_at(tree, "boards")->valueint, 3);
    assert_int_equal(json_at(tree, "steps.1.steps")->valueint, 9);
    assert_int_equal(json_at(tree, "steps.1.by_givens.0.givens")->valueint, 60);
    cJSON_Delete(tree);
    p = run(state, "sudoku eval model.safetensors boards.csv --stop --svg steps.svg -q");
    assert_int_equal(p->code, 0);
    char path[PATH_TEXT], text[64];
    slurp(text, sizeof text, folder_path(path, state, "steps.svg"));
    assert_contains(text, "<svg");
    p = run(state, "sudoku solve model.safetensors boards.csv --board 2 --svg b.svg");
    assert_contains(p->out, "energy");
    assert_contains(p->out, p->code ? "not solved" : "solved: ");
    slurp(text, sizeof text, folder_path(path, state, "b.svg"));
    assert_contains(text, "<svg");
    tree = run_json(run(state, "sudoku solve model.safetensors boards.csv --steps 3 --json; true"));
    assert_int_equal(json_at(tree, "steps")->valueint, 3);
    assert_string_equal(json_at(tree, "solutions")->valuestring, "one");
    cJSON_Delete(tree);
}

static void notes_odd_boards(void **state) {
    static const char dots[] = ".............................................";
    assert_int_equal(run(state, "sudoku generate --count 4 --least 60 --most 60 -q")->code, 0);
    assert_int_equal(run(state, "sudoku train boards.csv -q %s", tiny)->code, 0);
    const program *p = run(state, "sudoku solve model.safetensors %081d", 0);
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "several solutions");
    assert_error(run(state, "sudoku solve model.safetensors %081d --board 2", 0), 1,
                 "--board is 2; wanted a file of boards");
    p = run(state, "sudoku solve model.safetensors %081d", 0);
    assert_contains(p->out, "not solved");
    p = run(state, "sudoku solve model.safetensors 12345678%.27s9%.45s", dots, dots);
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "no solution");
}

static void wrong_usage(void **state) {
    assert_int_equal(run(state, "sudoku generate --count 4 --least 60 --most 60 -q")->code, 0);
    assert_int_equal(run(state, "sudoku generate --reveal 3")->code, 2);
    assert_int_equal(run(state, "sudoku generate --kind hard --least 30")->code, 2);
    assert_int_equal(run(state, "sudoku generate boards.csv")->code, 2);
    assert_error(run(state, "sudoku generate --least 20"), 1, "26 to 81");
    assert_int_equal(run(state, "sudoku train")->code, 2);
    assert_int_equal(run(state, "sudoku train boards.csv --hold-out 1 --validation b.csv")->code,
                     2);
    assert_error(run(state, "sudoku train boards.csv --hold-out 4"), 1, "more than the 4");
    assert_error(run(state, "sudoku train boards.csv --limit 5"), 1, "the 5 of --limit");
    assert_error(run(state, "sudoku train none.csv"), 1, "none.csv");
    assert_error(run(state, "sudoku train boards.csv --preset cells --pairs all"), 1,
                 "places is off");
    assert_error(run(state, "sudoku train boards.csv --attention"), 1, "attention is on");
    assert_error(run(state, "sudoku train boards.csv --repel 2"), 1,
                 "repel has no effect with attention off");
    assert_error(run(state, "sudoku train boards.csv --heads 2 --head-dim 4"), 1,
                 "heads and head_dim have no effect with attention off; leave them out");
    assert_error(run(state, "sudoku train boards.csv --memories 8"), 1,
                 "memories has no effect with hopfield off");
    assert_int_equal(run(state, "sudoku train --preset published-hyperset --heads 4 --head-dim 64 "
                                "--memories 8 --print-config")
                         ->code,
                     0);
    assert_error(run(state, "sudoku train boards.csv --implicit"), 1, "implicit is on, wanted off");
    assert_error(run(state, "sudoku solve none.safetensors 12"), 1, "2 characters, wanted 81");
    assert_int_equal(run(state, "sudoku train boards.csv -q %s", tiny)->code, 0);
    assert_error(run(state, "sudoku eval model.safetensors boards.csv --steps 4,x"), 1, "4,x");
    assert_error(run(state, "sudoku eval model.safetensors boards.csv --last 9"), 1, "wanted 9");
    assert_error(run(state, "sudoku solve model.safetensors boards.csv --board 9"), 1, "--board");
    assert_error(run(state, "sudoku eval boards.csv boards.csv"), 1, "boards.csv");
    const program *p = run(state, "sudoku train --preset published-hyperset --print-config");
    assert_contains(p->out, "\"arch\":\t\"hyperset\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(generates, folder_new, folder_remove),
        cmocka_unit_test_setup_teardown(trains_scores_and_solves, folder_new, folder_remove),
        cmocka_unit_test_setup_teardown(notes_odd_boards, folder_new, folder_remove),
        cmocka_unit_test_setup_teardown(wrong_usage, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
