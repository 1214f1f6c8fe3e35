/* Bundles: order, lookup among thousands, ownership of what is added, and what is refused. */
#include "basin/io.h"
#include "support/test.h"

TEST(finds_among_thousands_in_order) {
    enum { COUNT = 5000 };
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    const basin_tensor *first = NULL;
    char name[40];
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    assert_null(basin_bundle_find(bundle, "w0"));
    for (int i = 0; i < COUNT; i++) {
        basin_tensor tensor;
        assert_int_equal(basin_tensor_new(&tensor, BASIN_I32, BASIN_SCALAR, NULL), BASIN_OK);
        *(int32_t *)tensor.data = i;
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(basin_bundle_add(bundle, name, &tensor, NULL), BASIN_OK);
        assert_null(tensor.data);
        if (i == 0) first = basin_bundle_find(bundle, name);
    }
    assert_int_equal(basin_bundle_count(bundle), COUNT);
    assert_ptr_equal(first, basin_bundle_find(bundle, "w0"));
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "w%d", i);
        assert_string_equal(basin_bundle_name(bundle, (size_t)i), name);
        assert_int_equal(*(int32_t *)basin_bundle_at(bundle, (size_t)i)->data, i);
        assert_ptr_equal(basin_bundle_at(bundle, (size_t)i), basin_bundle_find(bundle, name));
    }
    assert_null(basin_bundle_find(bundle, "w5000"));
    assert_null(basin_bundle_at(bundle, COUNT));
    assert_null(basin_bundle_name(bundle, COUNT));
}

TEST(refuses) {
    static const struct {
        const char *name;
        int64_t dim;
        const char *text;
    } cases[] = {
        {"wk", 1, "tensor 'wk' is there twice"},
        {"__metadata__", 1, "tensor '__metadata__' has a reserved name"},
        {"\xff", 1, "tensor '\xff' has a name that is not UTF-8"},
        {"\xc0\xaf", 1, "tensor '\xc0\xaf' has a name that is not UTF-8"},
        {"\xed\xa0\x80", 1, "tensor '\xed\xa0\x80' has a name that is not UTF-8"},
        {"\xe2\x82", 1, "tensor '\xe2\x82' has a name that is not UTF-8"},
        {"\xf4\x90\x80\x80", 1, "tensor '\xf4\x90\x80\x80' has a name that is not UTF-8"},
        {"wq", -1, "tensor 'wq' has a shape without a valid size"},
    };
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    float value = 1;
    basin_tensor tensor = basin_tensor_borrow(&value, BASIN_F32, BASIN_SCALAR);
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    assert_ok(basin_bundle_add(bundle, "wk", &tensor, &failure));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensor = basin_tensor_borrow(&value, BASIN_F32, BASIN_SHAPE(cases[i].dim));
        assert_says(basin_bundle_add(bundle, cases[i].name, &tensor, &failure), BASIN_BAD_VALUE,
                    cases[i].text);
        assert_ptr_equal(tensor.data, &value);
    }
    tensor = basin_tensor_borrow(NULL, BASIN_F32, BASIN_SHAPE(2));
    assert_says(basin_bundle_add(bundle, "wq", &tensor, &failure), BASIN_BAD_VALUE,
                "tensor 'wq' has no data");
    tensor = basin_tensor_borrow(NULL, BASIN_F32, BASIN_SHAPE(2, 0));
    assert_ok(basin_bundle_add(bundle, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", &tensor, &failure));
    assert_int_equal(basin_bundle_count(bundle), 2);

    const basin_tensor *found;
    assert_says(basin_bundle_get(&found, bundle, "xi", &failure), BASIN_BAD_FILE,
                "no tensor 'xi' among its 2");
    assert_ok(basin_bundle_get(&found, bundle, "wk", &failure));
    assert_ptr_equal(found->data, &value);
    basin_bundle_free(NULL);
}

TEST(metadata) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    assert_null(basin_bundle_meta(bundle, "a"));
    assert_int_equal(basin_bundle_meta_set(bundle, "a", "1", NULL), BASIN_OK);
    assert_int_equal(basin_bundle_meta_set(bundle, "b", "2", NULL), BASIN_OK);
    assert_int_equal(basin_bundle_meta_set(bundle, "a", "3", NULL), BASIN_OK);
    assert_says(basin_bundle_meta_set(bundle, "c", "\xff", &failure), BASIN_BAD_VALUE,
                "metadata 'c' is not UTF-8");
    assert_string_equal(basin_bundle_meta(bundle, "a"), "3");
    const char *value;
    assert_string_equal(basin_bundle_meta_at(bundle, 0, NULL), "a");
    assert_non_null(basin_bundle_meta_at(bundle, 1, &value));
    assert_string_equal(value, "2");
    assert_null(basin_bundle_meta_at(bundle, 2, &value));
    assert_null(value);
}

/* Whatever a file's names hold, the message stays one line. */
TEST(messages_are_one_line) {
    basin_error error;
    basin_fail(&error, BASIN_BAD_FILE, "tensor '%s'", "a\nb\033[2Jc\177");
    assert_string_equal(error.text, "tensor 'a?b?[2Jc?'");
}
