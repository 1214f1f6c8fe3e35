/* One result in three forms: what each prints of the same fields, CSV that a reader reads back to
 * the same cells whatever they hold, tables without memory. */
#include <math.h>

#include "program/record.h"
#include "support/test.h"

/* What `fill` prints in a form; free it. */
static char *print(basin_print_form form, basin_record_fill *fill, const void *context) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    basin_record *r = basin_record_open(file, form);
    assert_non_null(r);
    fill(r, context);
    assert_int_equal(basin_record_close(r, NULL), BASIN_OK);
    fclose(file);
    return text;
}

static void fill_all(basin_record *r, const void *context) {
    (void)context;
    basin_record_note(r, "a \x1b[2J title");
    basin_record_text(r, "model", "m\x07.st");
    basin_record_number(r, "loss", "%.2f", 1 / 3.0);
    basin_record_number(r, "auroc", "%.1f", NAN);
    basin_record_integer(r, ".steps", 12);
    basin_record_integer(r, "|for_people", 7);
    basin_record_bytes(r, "memory_bytes|memory", 3 << 20);
    basin_record_object(r, "validation");
    basin_record_number(r, "macro_f1", "%.2f", 91.5);
    basin_record_flag(r, "best", true);
    basin_record_end(r);
    basin_record_list(r, "classes");
    basin_record_text(r, NULL, "a");
    basin_record_text(r, NULL, "b");
    basin_record_end(r);
    basin_record_table(r, "nodes", "nodes:");
    for (int i = 0; i < 2; i++) {
        basin_record_row(r);
        basin_record_text(r, "node", i ? "second" : "one");
        basin_record_spread(r, "f1", 1, 10.25 * i, 0.5);
        basin_record_object(r, "why");
        basin_record_integer(r, "rank", i + 1);
        basin_record_end(r);
        if (i) basin_record_flag(r, "odd", true);
    }
    basin_record_end(r);
}

TEST(prints_text) {
    char *text = print(BASIN_FORM_TEXT, fill_all, NULL);
    assert_string_equal(text, "a ?[2J title\n"
                              "model       m?.st\n"
                              "loss        0.33\n"
                              "AUROC       -\n"
                              "for people  7\n"
                              "memory      3.00 MiB\n"
                              "validation  macro-F1 91.50  best yes\n"
                              "classes     a, b\n"
                              "nodes:\n"
                              "  node             F1  odd\n"
                              "  one      0.0 +- 0.5\n"
                              "  second  10.2 +- 0.5  yes\n");
    free(text);
}

TEST(prints_json) {
    char *text = print(BASIN_FORM_JSON, fill_all, NULL);
    assert_non_null(strstr(text, "\"model\": \"m\\u0007.st\",\n"));
    assert_non_null(
        strstr(text, "\"auroc\": null,\n  \"steps\": 12,\n  \"memory_bytes\": 3145728"));
    assert_non_null(strstr(text, "\"f1\": [10.25, 0.5]"));
    assert_non_null(strstr(text, "\"why\": {\n        \"rank\": 2\n      },\n      \"odd\": true"));
    assert_null(strstr(text, "title"));
    free(text);
}

typedef struct sample {
    double share, missing;
    int64_t count, none;
    int rank;
    bool good;
    size_t memory;
    const char *word;
    char name[8];
} sample;

static void fill_struct(basin_record *r, const void *context) {
#define F(member, ...) BASIN_FIELD(sample, member, __VA_ARGS__)
    static const basin_field fields[] = {F(share, "share|part", "%.1f %%", 100),
                                         F(missing, "?missing", "%.1f"),
                                         F(count, "count"),
                                         F(none, "?none"),
                                         F(rank, ".rank"),
                                         F(good, "good"),
                                         F(memory, "memory_bytes|memory"),
                                         F(word, "word"),
                                         F(name, "name"),
                                         {0}};
    basin_record_struct(r, fields, context);
    basin_record_rows(r, "rows", NULL, fields, context, 1, sizeof(sample));
    basin_record_interval(r, "interval_95", "%.1f", (double[]){0.25, 0.5});
    basin_record_fields(r, "yes=%d;text=%s", true, "word");
}

TEST(prints_structs) {
    const sample one = {.share = 0.25,
                        .missing = NAN,
                        .count = 3,
                        .rank = 2,
                        .memory = 2048,
                        .word = "w",
                        .name = "n"};
    char *text = print(BASIN_FORM_TEXT, fill_struct, &one);
    assert_non_null(strstr(text, "part    25.0 %\ncount   3\ngood    no\nmemory  2.00 KiB\n"
                                 "word    w\nname    n\n"));
    assert_non_null(strstr(text, "interval 95  0.2 to 0.5\nyes          yes\n"));
    free(text);
    text = print(BASIN_FORM_JSON, fill_struct, &one);
    assert_non_null(strstr(text, "\"share\": 25,\n  \"count\": 3,\n  \"rank\": 2,\n"
                                 "  \"good\": false,\n  \"memory_bytes\": 2048,"));
    assert_null(strstr(text, "missing"));
    assert_null(strstr(text, "none"));
    free(text);
    text = print(BASIN_FORM_CSV, fill_struct, &one);
    assert_string_equal(text, "share,count,good,memory_bytes,word,name\n25,3,0,2048,w,n\n");
    free(text);
}

/* ---- CSV ---- */

enum { IDS = 10 };
static const char *const ids[IDS] = {
    "=,0.0001,999,0,", "+49-170-0",      "=1+1",   "-3",        "@x",
    "say \"no\"",      "two\nlines\r\n", " blank", "\ttab\x01", ""};

static void fill_ids(basin_record *r, const void *context) {
    (void)context;
    basin_record_text(r, "data", "left out");
    basin_record_table(r, "nodes", NULL);
    for (int i = 0; i < IDS; i++) {
        basin_record_row(r);
        basin_record_text(r, "node", ids[i]);
        basin_record_number(r, "probability", "%.1f", i / 16.0);
        basin_record_object(r, "of");
        basin_record_flag(r, "anomalous", i == 3);
        basin_record_end(r);
    }
    basin_record_end(r);
}

/* The next cell of a CSV by RFC 4180; *end is what ended it. */
static const char *read_cell(char cell[100], const char *at, char *end) {
    size_t n = 0;
    bool quoted = *at == '"';
    at += quoted;
    while (*at && (quoted || (*at != ',' && *at != '\n'))) {
        if (quoted && *at == '"') {
            if (at[1] != '"') break;
            at++;
        }
        cell[n++] = *at++;
    }
    cell[n] = 0;
    at += quoted;
    *end = *at;
    return *at ? at + 1 : at;
}

TEST(csv_reads_back) {
    char *text = print(BASIN_FORM_CSV, fill_ids, NULL), cell[100], end;
    const char *at = text;
    static const char *const heading[] = {"node", "probability", "anomalous"};
    for (int c = 0; c < 3; c++) {
        at = read_cell(cell, at, &end);
        assert_string_equal(cell, heading[c]);
    }
    for (int i = 0; i < IDS; i++) {
        at = read_cell(cell, at, &end);
        assert_string_equal(cell, ids[i]);
        assert_int_equal(end, ',');
        at = read_cell(cell, at, &end);
        assert_true(strtod(cell, NULL) == i / 16.0);
        at = read_cell(cell, at, &end);
        assert_string_equal(cell, i == 3 ? "1" : "0");
        assert_int_equal(end, '\n');
    }
    assert_int_equal(*at, 0);
    free(text);
}
