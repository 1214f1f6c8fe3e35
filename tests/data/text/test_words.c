/* Words and categories of characters, as Hugging Face's tokenizers 0.23 cuts and knows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/text/category.h"
#include "data/text/words.h"

/* The same text cut by each pattern; a bar stands for a cut. */
static const struct {
    const char *gpt2, *cl100, *qwen;
} golden[] = {
    {"don|'t| DON|'|T| we|'ll| '|s", "don|'t| DON|'T| we|'ll| '|s", "don|'t| DON|'T| we|'ll| '|s"},
    {"a| | b|  | c| ", "a| | b|  | c| ", "a| | b|  | c| "},
    {"x|\n|\n|y| \n| z|\r\n", "x|\n\n|y| \n| z|\r\n", "x|\n\n|y| \n| z|\r\n"},
    {"12345| 67|ab|8", "123|45| |67|ab|8", "1|2|3|4|5| |6|7|ab|8"},
    {"($|a|)| _|b| --|c|!|\n\n", "($|a|)| _|b| --|c|!\n\n", "($|a|)| _|b| --|c|!\n\n"},
    {"\xc3\xa9| e|\xcc\x81| \xc3\x9c| \xc3\x9f", "\xc3\xa9| e|\xcc\x81| \xc3\x9c| \xc3\x9f",
     "\xc3\xa9| e|\xcc\x81| \xc3\x9c| \xc3\x9f"},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e| \xed\x95\x9c\xea\xb5\xad\xec\x96\xb4",
     "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e| \xed\x95\x9c\xea\xb5\xad\xec\x96\xb4",
     "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e| \xed\x95\x9c\xea\xb5\xad\xec\x96\xb4"},
    {"\xe2\x85\xa7\xc2\xbd\xc2\xb2| \xd9\xa3\xd9\xa4\xd9\xa5\xd9\xa6",
     "\xe2\x85\xa7\xc2\xbd\xc2\xb2| |\xd9\xa3\xd9\xa4\xd9\xa5|\xd9\xa6",
     "\xe2\x85\xa7|\xc2\xbd|\xc2\xb2| |\xd9\xa3|\xd9\xa4|\xd9\xa5|\xd9\xa6"},
    {"\xf0\x9f\x98\x80| a|\xf0\x9f\x98\x80|b| \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9",
     "\xf0\x9f\x98\x80| a|\xf0\x9f\x98\x80"
     "b| \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9",
     "\xf0\x9f\x98\x80| a|\xf0\x9f\x98\x80"
     "b| \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9"},
    {"\xc2\xa0|a|\xe2\x80\x83|\xe3\x80\x80|b|\xc2\x85|c",
     "\xc2\xa0"
     "a|\xe2\x80\x83|\xe3\x80\x80"
     "b|\xc2\x85"
     "c",
     "\xc2\xa0"
     "a|\xe2\x80\x83|\xe3\x80\x80"
     "b|\xc2\x85"
     "c"},
    {"'|Sa| '|\xc5\xbf| '|lL| '|ll", "'S|a| '|\xc5\xbf| '|lL| '|ll",
     "'S|a| '|\xc5\xbf| '|lL| '|ll"},
    {"\t|\t|if| x|:|\n\t\t|\t|return| 1|\n", "\t|\tif| x|:\n|\t\t|\treturn| |1|\n",
     "\t|\tif| x|:\n|\t\t|\treturn| |1|\n"},
    {" ", " ", " "},
    {" \n", " \n", " \n"},
    {"...?!|\r\n\r\n| a", "...?!\r\n\r\n| a", "...?!\r\n\r\n| a"},
};

static void expect_words(basin_words words, const char *cut) {
    char text[200];
    size_t length = 0;
    for (const char *c = cut; *c; c++)
        if (*c != '|') text[length++] = *c;
    for (size_t at = 0; *cut; cut += *cut == '|') {
        size_t want = strcspn(cut, "|"), got = basin_words_next(words, text + at, length - at);
        if (got != want) fail_msg("'%.*s', wanted '%.*s'", (int)got, text + at, (int)want, cut);
        at += got;
        cut += want;
    }
}

static void cuts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        expect_words(BASIN_WORDS_GPT2, golden[i].gpt2);
        expect_words(BASIN_WORDS_CL100, golden[i].cl100);
        expect_words(BASIN_WORDS_QWEN, golden[i].qwen);
    }
    assert_int_equal(basin_words_next(BASIN_WORDS_NONE, "a b", 3), 3);
}

/* Bytes that are not UTF-8 are passed over one by one, and nothing behind the end is read. */
static void takes_any_bytes(void **state) {
    (void)state;
    assert_int_equal(basin_words_next(BASIN_WORDS_GPT2, " \xff\xfe!a", 5), 4);
    assert_int_equal(basin_words_next(BASIN_WORDS_CL100, "\xe6\x97", 2), 2);
    assert_int_equal(basin_words_next(BASIN_WORDS_GPT2, "\xe6\x97\xa5", 3), 3);
    assert_int_equal(basin_words_next(BASIN_WORDS_GPT2, "'l", 2), 1);
    assert_int_equal(basin_words_next(BASIN_WORDS_QWEN, "'", 1), 1);
}

static void categories(void **state) {
    (void)state;
    int64_t count[4] = {0};
    for (uint32_t point = 0; point < 0x110000; point++) count[basin_category_of(point)]++;
    assert_int_equal(count[BASIN_LETTER], 141028); /* of Unicode 16 */
    assert_int_equal(count[BASIN_NUMBER], 1911);
    assert_int_equal(count[BASIN_SPACE], 25);
    assert_int_equal(basin_category_of(0x1c89), BASIN_LETTER); /* new in 16 */
    assert_int_equal(basin_category_of(0x301), BASIN_OTHER);   /* a combining mark */
    assert_int_equal(basin_category_of(0x1c), BASIN_OTHER);    /* a space to Python alone */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts),
        cmocka_unit_test(takes_any_bytes),
        cmocka_unit_test(categories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
