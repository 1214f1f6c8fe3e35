/* basin text tokenize as a user calls it, and wrong usage. */
#include "cli/program.h"

static const char text[] =
    "The energy goes down, and the tokens go down with it: the then these.\n";

static void put_text(void **state) {
    char path[PATH_TEXT];
    assert_int_equal(file_put(folder_path(path, state, "t.txt"), text, strlen(text)), 0);
}

static void makes_and_uses(void **state) {
    put_text(state);
    const program *p = run(state, "text tokenize t.txt --vocabulary 264 -o t.json --show 2");
    if (p->code) fail_msg("%s", p->err);
    assert_contains(p->out, "bpe, 264 tokens");
    assert_contains(p->out, "70 characters, 70 bytes");
    assert_contains(p->out, " more\n");
    assert_contains(p->err, "wrote t.json");
    cJSON *tree = run_json(run(state, "text tokenize --tokenizer t.json t.txt --json --show 1"));
    assert_int_equal(json_number(tree, "vocabulary"), 264);
    assert_int_equal(json_number(tree, "bytes"), 70);
    assert_string_equal(json_at(tree, "first.0.piece")->valuestring, "T");
    assert_null(cJSON_GetArrayItem(json_at(tree, "first"), 1));
    cJSON_Delete(tree);
    assert_int_equal(run(state, "text tokenize --tokenizer t.json t.txt --ids > ids")->code, 0);
    p = run(state, "text tokenize --tokenizer t.json --decode ids");
    assert_string_equal(p->out, text);
    p = run(state, "text tokenize --tokenizer t.json --decode - < ids");
    assert_string_equal(p->out, text);
    p = run(state, "text tokenize --tokenizer t.json --text '\xc3\xbc\n\\'");
    assert_contains(p->out, "'\\xc3'");
    assert_contains(p->out, "'\\n'");
    assert_contains(p->out, "'\\\\'");
}

static void characters_and_bytes(void **state) {
    put_text(state);
    const program *p = run(state, "text tokenize t.txt --tokens characters --text 'go'");
    assert_contains(p->out, "characters, 20 tokens");
    assert_error(run(state, "text tokenize t.txt --tokens characters --text 'go!'"), 1,
                 "no token for '!' (U+0021), line 1, column 3");
    p = run(state, "text tokenize t.txt --tokens characters --text 'go!!' --skip-unknown");
    assert_contains(p->out, "left out       2 without a token");
    p = run(state, "text tokenize t.txt --tokens characters --text 'go!!' --skip-unknown --ids");
    assert_contains(p->err, "2 without a token were left out");
    p = run(state, "text tokenize t.txt --tokens characters --skip-unknown --show 0");
    assert_contains(p->out, "70, 1.00 characters each; 20 distinct");
    p = run(state, "text tokenize --tokens bytes --text 'az' --ids");
    assert_string_equal(p->out, "97 122\n");
    p = run(state, "text tokenize --tokens bytes --decode --text '[97, 122]'");
    assert_string_equal(p->out, "az");
}

static void wrong_usage(void **state) {
    static const char *const wrong[] = {
        "text tokenize",
        "text tokenize --text a",
        "text tokenize t.txt --tokens bytes --vocabulary 300",
        "text tokenize t.txt --tokenizer t.json --tokens bytes",
        "text tokenize t.txt --tokenizer t.json -o u.json",
        "text tokenize t.txt --tokenizer t.json --text a",
        "text tokenize t.txt --tokenizer t.json --vocabulary 300",
        "text tokenize t.txt --decode",
        "text tokenize t.txt --tokenizer t.json --decode --ids",
        "text tokenize t.txt --ids --json",
        "text tokenize t.txt --tokens words",
    };
    put_text(state);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(run(state, "%s", wrong[i])->code, 2);
    assert_error(run(state, "text tokenize none.txt"), 1, "none.txt");
    assert_error(run(state, "text tokenize t.txt --vocabulary 5000"), 1, "needs more text");
    assert_error(run(state, "text tokenize --tokenizer t.txt --text a"), 1, "t.txt: the tokenizer");
    assert_error(run(state, "text tokenize --tokens bytes --decode --text '1 x'"), 1, "'x' is no");
    assert_error(run(state, "text tokenize --tokens bytes --decode --text '1 256'"), 1,
                 "token 1 is 256");
    assert_error(run(state, "text tokenize --tokens bytes --decode --text 99999999999"), 1,
                 "99999999999");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_and_uses, folder_new, program_teardown),
        cmocka_unit_test_setup_teardown(characters_and_bytes, folder_new, program_teardown),
        cmocka_unit_test_setup_teardown(wrong_usage, folder_new, program_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
