/* tokenizer.json in and out: what is read, what is refused by name, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basin/tasks/tokenizer.h"
#include "data/text/bpe_text.h"
#include "io/folder.h"

/* Over characters; small enough to see through. */
#define SMALL                                                                                      \
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":null,"         \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abab\":3,\" \":4},"         \
    "\"merges\":[\"a b\",[\"ab\",\"ab\"]]}}"
/* Over bytes, with added tokens of every kind. U+0120 is a blank. */
#define BYTES                                                                                      \
    "{\"added_tokens\":["                                                                          \
    "{\"id\":1,\"content\":\"b\",\"normalized\":true},"                                            \
    "{\"id\":6,\"content\":\"<end>\",\"special\":true,\"normalized\":false},"                      \
    "{\"id\":7,\"content\":\"<l>\",\"lstrip\":true,\"normalized\":false},"                         \
    "{\"id\":8,\"content\":\"<r>\",\"rstrip\":true,\"normalized\":false},"                         \
    "{\"id\":9,\"content\":\"<end>a\",\"normalized\":false},"                                      \
    "{\"id\":10,\"content\":\"  \",\"normalized\":true}],"                                         \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"                       \
    "\"decoder\":{\"type\":\"ByteLevel\"},"                                                        \
    "\"post_processor\":{\"type\":\"ByteLevel\",\"trim_offsets\":false},"                          \
    "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"\u0120\":2,\"\u0120a\":3,\"\u0120\u0120\":4,"         \
    "\"aaa\":5},\"merges\":[\"\u0120 a\",\"\u0120 \u0120\"]}}"

/* A copy of `json` with the first `from` replaced. */
static char *swap(const char *json, const char *from, const char *to) {
    const char *at = strstr(json, from);
    char *copy = malloc(strlen(json) + strlen(to) + 1);
    assert_non_null(copy);
    if (!at) fail_msg("no '%s' in '%s'", from, json);
    sprintf(copy, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
    return copy;
}

static basin_tokenizer *parsed(const char *json) {
    basin_tokenizer *t;
    basin_error error;
    if (basin_tokenizer_parse(&t, json, "x.json", &error)) fail_msg("%s", error.text);
    return t;
}

static void expect_ids(const basin_tokenizer *t, const char *text, const char *want) {
    int32_t *id;
    int64_t count;
    basin_error error;
    char got[200] = "";
    size_t used = 0;
    if (basin_tokenizer_encode(&id, &count, NULL, t, text, strlen(text), &error))
        fail_msg("%s", error.text);
    for (int64_t i = 0; i < count; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%d", i ? " " : "", id[i]);
    if (strcmp(got, want) != 0) fail_msg("'%s' is %s, wanted %s", text, got, want);
    free(id);
}

/* Also of what is printed and read again. */
static void expect_both(const char *json, const char *text, const char *want) {
    char *printed, *again;
    basin_tokenizer *t = parsed(json);
    assert_int_equal(basin_tokenizer_print(&printed, t, NULL), BASIN_OK);
    assert_null(strchr(printed, '\n')); /* one line, for metadata */
    expect_ids(t, text, want);
    basin_tokenizer_free(t);
    t = parsed(printed);
    expect_ids(t, text, want);
    assert_int_equal(basin_tokenizer_print(&again, t, NULL), BASIN_OK);
    assert_string_equal(again, printed);
    basin_tokenizer_free(t);
    free(printed);
    free(again);
}

static void expect_swapped(const char *json, const char *from, const char *to, const char *text,
                           const char *want) {
    char *other = swap(json, from, to);
    expect_both(other, text, want);
    free(other);
}

static void over_characters(void **state) {
    (void)state;
    expect_both(SMALL, "abab ba", "3 4 1 0");
    expect_both(SMALL, "ababab", "3 2");
    expect_swapped(SMALL, "\"type\":\"BPE\"", "\"type\":\"BPE\",\"ignore_merges\":true", "ab", "2");
    expect_swapped(SMALL, "[\"a b\",[\"ab\",\"ab\"]]", "[]", "ab", "0 1");
    expect_swapped(SMALL, "\"BPE\"", "\"BPE\",\"unk_token\":\" \"", "axy", "0 4 4");
    expect_swapped(SMALL, "\"BPE\"", "\"BPE\",\"unk_token\":\" \",\"fuse_unk\":true", "axyb",
                   "0 4 1");
}

static void over_bytes(void **state) {
    (void)state;
    expect_both(BYTES, "a aa", "0 3 0");
    expect_both(BYTES, "aba", "0 1 0");
    expect_both(BYTES, "<end><end>a <end>", "6 9 2 6");
    expect_both(BYTES, "a  <l>  a", "0 7 10 0");
    expect_both(BYTES, "a  <r> \n a", "0 10 8 0");
    expect_both(BYTES, "a   a", "0 10 3");
    expect_both(BYTES, "aaa", "0 0 0");
    expect_swapped(BYTES, "\"model\":{", "\"model\":{\"ignore_merges\":true,", "aaa aaa",
                   "5 3 0 0");
    expect_swapped(BYTES, "space\":false", "space\":true", "a<end>a<end> a", "3 9 6 3");
    expect_swapped(BYTES, "space\":false", "space\":false,\"use_regex\":false", " a aa", "3 3 0");
    basin_tokenizer *t = parsed(BYTES);
    assert_true(basin_tokenizer_is_special(t, 6));
    assert_false(basin_tokenizer_is_special(t, 7) || basin_tokenizer_is_special(t, 99));
    assert_int_equal(basin_tokenizer_find(t, "<end>", 5), 6);
    assert_int_equal(basin_tokenizer_find(t, " a", 2), 3);
    int32_t *id;
    int64_t count;
    basin_error error;
    assert_int_equal(basin_tokenizer_encode(&id, &count, NULL, t, "a\nac", 4, &error),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "no token for byte 0x0a, line 1, column 2"));
    basin_tokenizer_free(t);
}

/* The place of an unknown character does not count the blank that was put before the text. */
static void places(void **state) {
    (void)state;
    int32_t *id;
    int64_t count;
    basin_error error;
    char *json = swap(BYTES, "space\":false", "space\":true");
    basin_tokenizer *t = parsed(json);
    assert_int_equal(basin_tokenizer_encode(&id, &count, NULL, t, "<end>aaz", 8, &error),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "byte 0x7a, line 1, column 8"));
    basin_tokenizer_free(t);
    free(json);
}

/* Tokens around a text are not added, but who reads the file next finds how. */
static void keeps_what_is_around(void **state) {
    (void)state;
    char *json = swap(SMALL, "\"normalizer\":null",
                      "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
                      "{\"SpecialToken\":{\"id\":\"\u00fc\",\"type_id\":0}}]}");
    char *printed;
    basin_tokenizer *t = parsed(json);
    expect_ids(t, "ab", "2");
    assert_int_equal(basin_tokenizer_print(&printed, t, NULL), BASIN_OK);
    assert_non_null(strstr(printed,
                           "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
                           "{\"SpecialToken\":{\"id\":\"\u00fc\",\"type_id\":0}}]}"));
    expect_both(printed, "ab", "2");
    basin_tokenizer_free(t);
    free(printed);
    free(json);
}

static void files(void **state) {
    char path[PATH_TEXT], *first, *second;
    basin_tokenizer *made[3], *read;
    basin_error error;
    folder_path(path, state, "tokenizer.json");
    assert_int_equal(basin_tokenizer_bytes(&made[0], NULL), BASIN_OK);
    assert_int_equal(basin_tokenizer_characters(&made[1], bpe_text, strlen(bpe_text), NULL), 0);
    assert_int_equal(basin_tokenizer_train(&made[2], bpe_text, strlen(bpe_text), 300, NULL, NULL),
                     0);
    for (int i = 0; i < 3; i++) {
        if (basin_tokenizer_write(path, made[i], &error) ||
            basin_tokenizer_open(&read, path, &error))
            fail_msg("%s", error.text);
        assert_int_equal(basin_tokenizer_print(&first, made[i], NULL), BASIN_OK);
        assert_int_equal(basin_tokenizer_print(&second, read, NULL), BASIN_OK);
        assert_string_equal(first, second);
        assert_string_equal(basin_tokenizer_kind(read), basin_tokenizer_kind(made[i]));
        free(first);
        free(second);
        basin_tokenizer_free(read);
        basin_tokenizer_free(made[i]);
    }
    assert_int_equal(basin_tokenizer_open(&read, "none.json", &error), BASIN_IO);
    assert_null(read);
}

/* ---- what is refused ---- */

static void expect_refused(const char *json, const char *from, const char *to, const char *want) {
    basin_tokenizer *t;
    basin_error error;
    char *other = swap(json, from, to);
    basin_status status = basin_tokenizer_parse(&t, other, "x.json", &error);
    if (!status) fail_msg("taken, wanted an error: %s", want);
    assert_null(t);
    if (!strstr(error.text, want) || !strstr(error.text, "x.json: "))
        fail_msg("wanted '%s' in '%s'", want, error.text);
    free(other);
}

static void unsupported(void **state) {
    (void)state;
    static const char *const root[][3] = {
        {"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", "normalizer NFC"},
        {"\"normalizer\":null", "\"truncation\":{\"max_length\":5}", "truncation is not supported"},
        {"\"normalizer\":null", "\"padding\":{}", "padding is not supported"},
        {"\"normalizer\":null", "\"extra\":1", "the file has 'extra'"},
        {"\"normalizer\":null", "\"decoder\":{\"type\":\"WordPiece\"}", "decoder 'WordPiece'"},
        {"\"normalizer\":null", "\"post_processor\":{\"type\":\"New\"}",
         "post_processor 'New' is not supported"},
        {"\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"Metaspace\"}", "Metaspace"},
        {"\"pre_tokenizer\":null", "\"pre_tokenizer\":[]", "without a type"},
        {"\"type\":\"BPE\"", "\"type\":\"WordPiece\"", "model WordPiece is not supported"},
        {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", "model Unigram"},
        {"\"type\":\"BPE\"", "\"dropout\":0.1", "dropout is not supported"},
        {"\"type\":\"BPE\"", "\"byte_fallback\":true", "byte_fallback is not supported"},
        {"\"type\":\"BPE\"", "\"end_of_word_suffix\":\"</w>\"", "end_of_word_suffix"},
        {"\"type\":\"BPE\"", "\"continuing_subword_prefix\":\"##\"", "continuing_subword_prefix"},
        {"\"type\":\"BPE\"", "\"new\":0", "the model has 'new'"},
        {"\"type\":\"BPE\"", "\"unk_token\":\"?\"", "unk_token '?' is not in the vocab"},
        {"\"added_tokens\":[]",
         "\"added_tokens\":[{\"id\":5,\"content\":\"c\",\"single_word\":true}]", "single_word"},
    };
    for (size_t i = 0; i < sizeof root / sizeof *root; i++)
        expect_refused(SMALL, root[i][0], root[i][1], root[i][2]);
}

#define SEQUENCE(regex, more)                                                                      \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","             \
    "\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}" more "]}"
#define PLAIN ",{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"

static void sequences(void **state) {
    (void)state;
    const char *from = "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    expect_refused(BYTES, from, SEQUENCE("\\\\s+", PLAIN), "a pattern that is not supported: \\s+");
    expect_refused(BYTES, from, SEQUENCE("a", ""), "pre_tokenizer without a type");
    expect_refused(BYTES, from, SEQUENCE("a", ",{\"type\":\"Digits\"}"), "Digits");
    expect_swapped(
        BYTES, from,
        SEQUENCE("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
                 "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
                 "\\\\s+(?!\\\\S)|\\\\s+",
                 PLAIN),
        "a a", "0 3");
}

static void damaged(void **state) {
    (void)state;
    static const char *const change[][3] = {
        {"\"a\":0", "\"a\":-1", "token 'a' has id -1, wanted 0 .. 4"},
        {"\"a\":0", "\"a\":1e9", "token 'a' has id 1000000000"},
        {"\"a\":0", "\"a\":0.5", "token 'a' has id 0.5"},
        {"\"a\":0", "\"a\":\"0\"", "the id of token 'a' is not a number"},
        {"\"a\":0", "\"a\":1", "tokens 'a' and 'b' both have id 1"},
        {"\"a\":0", "\"a\":0,\"a\":5", "token 'a' (id 5) is there twice"},
        {"\"a\":0", "\"\":0", "token '' (id 0) is empty"},
        {"\"a\":0", "\"a\":7", "token 'a' has id 7"},
        {"\"a\":0", "\"\xff\":0", "is not UTF-8"},
        {"\"a b\"", "\"a c\"", "a merge has 'c', which is not in the vocab"},
        {"\"a b\"", "\"b a\"", "a merge has 'ba', which is not in the vocab"},
        {"\"a b\"", "\"a b\",\"a b\"", "merge 1 is there twice"},
        {"\"a b\"", "\" ab\"", "merge 0 is not two tokens"},
        {"\"a b\"", "[\"\",\"a\"]", "merge 0 is not two tokens"},
        {"\"a b\"", "[\"a\",\"b\",\"a\"]", "merge 0 is not two tokens"},
        {"\"a b\"", "7", "merge 0 is not two tokens"},
        {"\"merges\"", "\"ignore_merges\"", "ignore_merges is not true or false"},
        {"\"vocab\"", "\"dropout\"", "dropout is not supported"},
        {"\"merges\":[\"a b\",[\"ab\",\"ab\"]]", "\"fuse_unk\":false", "the model has no merges"},
        {"\"model\"", "\"padding\"", "padding BPE is not supported"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":5}]", "an added token has no content"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":-2,\"content\":\"c\"}]",
         "token 'c' has id -2"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":0,\"content\":\"c\"}]",
         "tokens 'a' and 'c' both have id 0"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":5,\"content\":\"a\"}]",
         "added token 'a' (id 5) has another id, too"},
        {"\"added_tokens\":[]",
         "\"added_tokens\":[{\"id\":5,\"content\":\"c\"},{\"id\":6,\"content\":\"c\"}]",
         "added token 'c' (id 6) has another id, too"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":6,\"content\":\"c\"}]",
         "token 'c' has id 6, wanted 0 .. 5"},
        {"\"added_tokens\":[]", "\"added_tokens\":{}", "added_tokens is no list"},
        {"{\"version\"", "[\"version\"", "is not JSON"},
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++)
        expect_refused(SMALL, change[i][0], change[i][1], change[i][2]);
    expect_refused(BYTES, "\"aaa\"", "\"\u4e16\"", "has characters that stand for no byte");
    expect_refused(BYTES, "\"content\":\"b\"", "\"content\":\"\u00e9\"", "both have id 1");
}

/* Every beginning of a file is an error, never a crash. */
static void truncated(void **state) {
    (void)state;
    char part[sizeof BYTES];
    basin_tokenizer *t;
    for (size_t length = 0; length + 1 < sizeof BYTES; length++) {
        memcpy(part, BYTES, length);
        part[length] = '\0';
        assert_int_equal(basin_tokenizer_parse(&t, part, "x", NULL), BASIN_BAD_FILE);
        assert_null(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_characters),
        cmocka_unit_test(over_bytes),
        cmocka_unit_test(places),
        cmocka_unit_test(keeps_what_is_around),
        cmocka_unit_test(unsupported),
        cmocka_unit_test(sequences),
        cmocka_unit_test(damaged),
        cmocka_unit_test(truncated),
        cmocka_unit_test_setup_teardown(files, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
