/* Byte-pair encoding: training and encoding give what Hugging Face's tokenizers 0.23 gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basin/tasks/tokenizer.h"
#include "data/text/bpe_text.h"
#include "data/text/words.h"

/* Numbers by its BpeTrainer on the same text, with the same vocabulary. */
static const struct {
    const char *text;
    int count;
    int32_t id[16];
} golden[] = {
    {"the energy", 3, {83, 257, 280}},
    {" The  tokens", 4, {220, 268, 220, 267}},
    {"don't WE'LL", 10, {67, 78, 77, 310, 220, 54, 36, 6, 43, 43}},
    {"gr\xc3\xb6\xc3\x9f"
     "er e\xcc\x81\xc3\xa9",
     9,
     {70, 284, 301, 220, 68, 136, 223, 127, 102}},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80!",
     12,
     {162, 245, 98, 162, 250, 105, 164, 103, 252, 220, 279, 0}},
    {"12345 a1", 6, {312, 313, 20, 220, 64, 16}},
    {"\n\n  x\r\n", 7, {198, 198, 220, 220, 87, 201, 198}},
    {"'s's 'd", 5, {309, 309, 220, 6, 67}},
    {"", 0, {0}},
    {"\xe2\x85\xa7\xc2\xbd\xc2\xb2\xd9\xa3", 9, {158, 227, 100, 126, 121, 126, 110, 149, 96}},
    {"\xc2\xa0"
     "a\xe3\x80\x80\xe3\x80\x80"
     "b",
     10,
     {126, 254, 64, 159, 222, 222, 159, 222, 222, 65}},

};

static basin_tokenizer *trained(int64_t vocabulary) {
    basin_tokenizer *t;
    basin_error error;
    if (basin_tokenizer_train(&t, bpe_text, strlen(bpe_text), vocabulary, NULL, &error))
        fail_msg("%s", error.text);
    return t;
}

static void expect_ids(const basin_tokenizer *t, const char *text, size_t length,
                       const int32_t *want, int64_t wanted) {
    int32_t *id;
    int64_t count;
    basin_error error;
    if (basin_tokenizer_encode(&id, &count, NULL, t, text, length, &error))
        fail_msg("%s", error.text);
    if (count != wanted || (count && memcmp(id, want, (size_t)count * sizeof *id) != 0))
        fail_msg("'%s': other tokens than wanted", text);
    free(id);
}

/* The text comes back, whatever its bytes are. */
static void expect_back(const basin_tokenizer *t, const char *text, size_t length) {
    int32_t *id;
    int64_t count;
    char *back;
    size_t bytes;
    assert_int_equal(basin_tokenizer_encode(&id, &count, NULL, t, text, length, NULL), BASIN_OK);
    assert_int_equal(basin_tokenizer_decode(&back, &bytes, t, id, count, NULL), BASIN_OK);
    assert_int_equal(bytes, length);
    assert_memory_equal(back, text, length);
    free(back);
    free(id);
}

static void trains_and_encodes(void **state) {
    (void)state;
    basin_tokenizer *t = trained(BPE_VOCABULARY);
    assert_int_equal(basin_tokenizer_size(t), BPE_VOCABULARY);
    assert_string_equal(basin_tokenizer_kind(t), "bpe");
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        expect_ids(t, golden[i].text, strlen(golden[i].text), golden[i].id, golden[i].count);
    expect_ids(t, "a\0b", 3, (int32_t[]){64, 188, 65}, 3);
    expect_back(t, bpe_text, strlen(bpe_text));
    expect_back(t, "a\0\xff\xc3(\xe6\x97 x", 9);
    basin_tokenizer_free(t);
}

/* The slow way: all pairs are counted again for every merge. Words end with -1. */
enum { SLOW_VOCABULARY = 330, SLOW_TEXT = 2000 };

static int64_t slow_count[SLOW_VOCABULARY][SLOW_VOCABULARY];

static void slow_best(int32_t best[2], const int32_t *token, int64_t tokens) {
    memset(slow_count, 0, sizeof slow_count);
    for (int64_t i = 0; i + 1 < tokens; i++)
        if (token[i] >= 0 && token[i + 1] >= 0) slow_count[token[i]][token[i + 1]]++;
    best[0] = best[1] = 0;
    for (int32_t a = 0; a < SLOW_VOCABULARY; a++)
        for (int32_t b = 0; b < SLOW_VOCABULARY; b++)
            if (slow_count[a][b] > slow_count[best[0]][best[1]]) best[0] = a, best[1] = b;
}

static int64_t slow_merge(int32_t *token, int64_t tokens, const int32_t pair[2], int32_t becomes) {
    int64_t kept = 0;
    for (int64_t i = 0; i < tokens; i++) {
        bool here = i + 1 < tokens && token[i] == pair[0] && token[i + 1] == pair[1];
        token[kept++] = here ? becomes : token[i];
        i += here;
    }
    return kept;
}

/* Every pair that the slow way merges is the next token, or was one before. */
static void expect_slow(const basin_tokenizer *t, int32_t *token, int64_t tokens) {
    for (int64_t size = 256; size < SLOW_VOCABULARY;) {
        int32_t pair[2];
        size_t a, b;
        char both[SLOW_TEXT];
        slow_best(pair, token, tokens);
        const char *left = basin_tokenizer_piece(&a, t, pair[0]);
        const char *right = basin_tokenizer_piece(&b, t, pair[1]);
        memcpy(both, left, a);
        memcpy(both + a, right, b);
        int64_t id = basin_tokenizer_find(t, both, a + b);
        if (id < 0 || id > size) fail_msg("token %lld is another", (long long)size);
        size += id == size;
        tokens = slow_merge(token, tokens, pair, (int32_t)id);
    }
}

/* Texts of few letters, so that pairs overlap and tokens are found in two ways; of many words, and
 * of one. */
static void counts_stay_right(void **state) {
    (void)state;
    static const char *const letters[] = {"aaabbc a", "aaabbcca", "aaaaaaab"};
    for (int n = 0; n < 3; n++) {
        char text[SLOW_TEXT];
        int32_t token[2 * SLOW_TEXT];
        int64_t tokens = 0;
        uint32_t random = 7;
        for (size_t i = 0; i < sizeof text; i++) {
            random = random * 1664525u + 1013904223u;
            text[i] = letters[n][random >> 29];
        }
        basin_tokenizer *t;
        basin_error error;
        if (basin_tokenizer_train(&t, text, sizeof text, SLOW_VOCABULARY, NULL, &error))
            fail_msg("%s", error.text);
        for (size_t at = 0, bytes; at < sizeof text; at += bytes) {
            bytes = basin_words_next(BASIN_WORDS_GPT2, text + at, sizeof text - at);
            for (size_t i = 0; i < bytes; i++)
                token[tokens++] = (int32_t)basin_tokenizer_find(t, text + at + i, 1);
            token[tokens++] = -1;
        }
        expect_slow(t, token, tokens);
        basin_tokenizer_free(t);
    }
}

/* One word of a hundred thousand letters: merging is not quadratic. */
static void long_words(void **state) {
    (void)state;
    enum { LENGTH = 100000 };
    char *text = malloc(LENGTH);
    assert_non_null(text);
    for (int i = 0; i < LENGTH; i++) text[i] = "then these"[i % 10 == 4 ? 0 : i % 10];
    basin_tokenizer *t = trained(BPE_VOCABULARY);
    expect_back(t, text, LENGTH);
    basin_tokenizer_free(t);
    free(text);
}

static void expect_no_tokenizer(const char *text, int64_t vocabulary, const char *want) {
    basin_tokenizer *t;
    basin_error error;
    assert_int_equal(basin_tokenizer_train(&t, text, strlen(text), vocabulary, NULL, &error),
                     BASIN_BAD_VALUE);
    assert_null(t);
    if (!strstr(error.text, want)) fail_msg("wanted '%s' in '%s'", want, error.text);
}

static void wrong_vocabularies(void **state) {
    (void)state;
    expect_no_tokenizer("aaaa", 256, "256 tokens, wanted 257 ..");
    expect_no_tokenizer("aaaa", -1, "-1 tokens");
    expect_no_tokenizer("aaaa", 300, "300 tokens needs more text: this one gives 258");
    expect_no_tokenizer("", 300, "gives 256");
}

static int64_t told;
static void show(void *context, const basin_news *news) {
    (void)context;
    assert_true(news->done <= news->total);
    told++;
}

static void watched_and_stopped(void **state) {
    (void)state;
    basin_tokenizer *t;
    basin_error error;
    volatile sig_atomic_t stop = 0;
    basin_watch watch = {.show = show, .stop = &stop};
    assert_int_equal(basin_tokenizer_train(&t, bpe_text, strlen(bpe_text), 300, &watch, &error),
                     BASIN_OK);
    assert_true(told > 0);
    basin_tokenizer_free(t);
    stop = 1;
    assert_int_equal(basin_tokenizer_train(&t, bpe_text, strlen(bpe_text), 300, &watch, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "interrupted");
    assert_null(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_and_encodes),  cmocka_unit_test(counts_stay_right),
        cmocka_unit_test(long_words),          cmocka_unit_test(wrong_vocabularies),
        cmocka_unit_test(watched_and_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
