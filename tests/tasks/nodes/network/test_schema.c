/* Schemas: in files and out, damaged ones, networks of files and arrays matched to one. */
#include "tasks/nodes/network/networks.h"

static basin_schema *must_parse(const char *json) {
    basin_schema *schema;
    assert_ok(basin_schema_parse(&schema, json, "s", &failure));
    return schema;
}

#define COLUMNS(list) "{\"version\":1,\"nodes\":{\"columns\":[" list "]}}"

/* Days before 1970 are days, and so is the last one with four digits of the year. */
TEST(prints_days) {
    char text[BASIN_TIME_TEXT];
    basin_time_print(text, -3027, true);
    assert_string_equal(text, "1961-09-18");
    basin_time_print(text, -0.25, true);
    assert_string_equal(text, "1969-12-31T18:00:00");
    basin_time_print(text, 2932896, true);
    assert_string_equal(text, "9999-12-31");
}

TEST(refuses_damaged_ones) {
    const struct {
        const char *json, *wanted;
    } trial[] = {
        {"", "is empty"},
        {"[]", "is not a JSON object"},
        {"{}", "another version than 1"},
        {"{\"version\":2}", "another version than 1"},
        {COLUMNS("{\"type\":\"number\"}"), "a column without a name"},
        {COLUMNS("{\"name\":\"a\"}"), "a column of type 'absent'"},
        {COLUMNS("{\"name\":\"a\",\"type\":\"colour\"}"), "a column of type 'colour'"},
        {COLUMNS("{\"name\":\"a\",\"type\":\"category\",\"values\":[1]}"),
         "a name that is not a text"},
        {"{\"version\":1,\"missing\":\"sometimes\"}", "missing 'sometimes'"},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_schema *schema;
        assert_failed(basin_schema_parse(&schema, trial[i].json, "s", &failure), trial[i].wanted);
        assert_null(schema);
    }
}

TEST(keeps_what_it_says) {
    const char *json =
        "{\"version\":1,\"named\":true,\"directed\":true,\"missing\":\"mean\",\"unknown\":\"add\","
        "\"date_format\":\"%d.%m.%Y\",\"nodes\":{\"columns\":["
        "{\"name\":\"a\",\"type\":\"number\",\"mean\":0.1,\"decimal\":\",\"},"
        "{\"name\":\"b\",\"type\":\"category\",\"values\":[\"x\",\"\\\"y\\n\"]},"
        "{\"name\":\"c\",\"type\":\"date\",\"mean\":null},{\"name\":\"d\",\"type\":\"id\"}]},"
        "\"edges\":{\"relations\":[\"r\",\"s\"],\"columns\":[{\"name\":\"u\",\"type\":\"source\"}]}"
        "}";
    basin_schema *first = must_parse(json), *copy;
    assert_int_equal(first->features, 4);
    assert_int_equal(basin_schema_copy(&copy, first, NULL), BASIN_OK);
    char *text = basin_schema_print(copy);
    assert_string_equal(text, json);
    free(text);
    basin_schema_free(first);
    basin_schema_free(copy);
}

static basin_status from_arrays(basin_network **n, const char *const *column,
                                const basin_schema *schema, basin_error *error) {
    basin_edges edges = {small_edges_a, small_edges_a + 1, BASIN_I32, 2, 5};
    basin_network_arrays arrays = {.nodes = 5,
                                   .features = 2,
                                   .feature = small_x,
                                   .relations = 1,
                                   .edges = &edges,
                                   .column = column};
    basin_network_options o = {.schema = schema};
    return basin_network_from_arrays(n, &arrays, &o, error);
}

/* Arrays with names are matched by them, arrays without by their place. */
TEST(arrays_are_matched) {
    const char *const turned[] = {"b", "a"};
    basin_network *n;
    basin_error error;
    basin_schema *two = must_parse(COLUMNS("{\"name\":\"a\",\"type\":\"number\"},"
                                           "{\"name\":\"b\",\"type\":\"number\"}"));
    assert_ok(from_arrays(&n, turned, two, &failure));
    assert_true(n->feature[0] == small_x[1] && n->feature[1] == small_x[0]);
    assert_int_equal(basin_network_check_schema(n, two, &error), BASIN_OK);
    basin_network_close(n);
    assert_ok(from_arrays(&n, NULL, two, &failure));
    assert_true(n->feature[0] == small_x[0]);
    basin_network_close(n);
    assert_ok(from_arrays(&n, turned, NULL, &failure));
    assert_failed(basin_network_check_schema(n, two, &failure),
                  "feature 1 is 'b'; the detector was trained with 'a'");

    basin_network_close(n);
    basin_schema_free(two);
}

/* Arrays have no types: dates are numbers there. */
TEST(dates_in_arrays_are_days) {
    const char *const names[] = {"amount", "opened"};
    BASIN_AT_EXIT(free_network) basin_network *n;
    basin_schema *schema = must_parse(COLUMNS("{\"name\":\"opened\",\"type\":\"date\"},"
                                              "{\"name\":\"amount\",\"type\":\"number\"}"));
    assert_ok(from_arrays(&n, names, schema, &failure));
    assert_true(n->feature[0] == small_x[1] && n->feature[1] == small_x[0]);
    basin_schema_free(schema);
}

TEST(what_does_not_match_is_named) {
    const char *const names[] = {"amount", "age"};
    const struct {
        const char *json, *wanted;
    } trial[] = {
        {COLUMNS("{\"name\":\"ammount\",\"type\":\"number\"}"),
         "no column 'ammount', which the detector was trained with (did you mean 'amount'?)"},
        {COLUMNS("{\"name\":\"age\",\"type\":\"category\",\"values\":[\"old\"]}"),
         "column 'age' is a number; the detector was trained with a category there"},
        {COLUMNS("{\"name\":\"city\",\"type\":\"category\",\"values\":[\"x\"]}"),
         "no column 'city'"},
        {"{\"version\":1,\"named\":false,\"nodes\":{\"columns\":[{\"name\":\"0\",\"type\":"
         "\"number\"}]}}",
         "2 features a node; the detector was trained on 1, and there are no names"},
        {"{\"version\":1,\"directed\":true}", "its edges go both ways"},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_network *n;
        basin_error error;
        basin_schema *schema = must_parse(trial[i].json);
        assert_int_equal(from_arrays(&n, names, NULL, &error), BASIN_OK);
        assert_failed(basin_network_match(n, schema, &failure), trial[i].wanted);

        basin_network_close(n);
        basin_schema_free(schema);
    }
}

/* Arrays hold a category as its indicators alone. */
TEST(categories_are_matched_by_their_indicators) {
    const char *const names[] = {"city=Rome", "city=Oslo"};
    basin_network *n;
    basin_error error;
    char *path = folder_path(state, "arrays.basin");
    assert_int_equal(from_arrays(&n, names, NULL, &error), BASIN_OK);
    assert_ok(basin_network_write(path, n, &failure));
    basin_network_close(n);
    basin_schema *schema = must_parse(COLUMNS(
        "{\"name\":\"city\",\"type\":\"category\",\"values\":[\"Lima\",\"Oslo\",\"Rome\"]}"));
    basin_network_options o = {.schema = schema};
    assert_ok(open_one(&n, path, &o, &failure));
    assert_int_equal(n->features, 3);
    for (int i = 0; i < 5; i++) {
        assert_true(n->feature[3 * i] == 0 && n->feature[3 * i + 1] == small_x[2 * i + 1]);
        assert_true(n->feature[3 * i + 2] == small_x[2 * i]);
    }
    assert_string_equal(n->column.text, "city=Lima");
    basin_network_close(n);
    basin_schema_free(schema);
}

int main(void) { return tests_run(folder_new, folder_remove); }
