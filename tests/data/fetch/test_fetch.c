/* Digests, and fetching from file: URLs: checked, resumed, nothing left behind. */
#include "data/network/networks.h"

#include "data/fetch/catalog.h"
#include "data/fetch/fetch.h"

static const char abc_digest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void digests(void **state) {
    (void)state;
    char text[BASIN_SHA256_TEXT];
    basin_sha256 sha = basin_sha256_start();
    basin_sha256_end(text, &sha);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha = basin_sha256_start();
    basin_sha256_add(&sha, "abc", 3);
    basin_sha256_end(text, &sha);
    assert_string_equal(text, abc_digest);
    sha = basin_sha256_start(); /* a million times a, in pieces of 17 */
    for (int left = 1000000; left > 0; left -= 17)
        basin_sha256_add(&sha, "aaaaaaaaaaaaaaaaa", left < 17 ? (size_t)left : 17);
    basin_sha256_end(text, &sha);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static char source[PATH_TEXT], url[PATH_TEXT + 8], path[PATH_TEXT], part[PATH_TEXT + 8],
    record[PATH_TEXT + 8];

static void place(void **state, const char *content) {
    folder_path(source, state, "source");
    folder_path(path, state, "got");
    snprintf(url, sizeof url, "file://%s", source);
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(record, sizeof record, "%s.sha256", path);
    unlink(path);
    unlink(part);
    unlink(record);
    assert_int_equal(file_put(source, content, strlen(content)), 0);
}

static bool exists(const char *name) { return access(name, F_OK) == 0; }

static void fetches_and_resumes(void **state) {
    basin_fetch_result r;
    basin_error error;
    place(state, "abc");
    basin_fetch_spec spec = {.url = url, .path = path, .sha256 = abc_digest, .size = -1};
    if (basin_fetch(&r, &spec, &error)) fail_msg("%s", error.text);
    assert_false(r.was_there || r.first_fetch);
    assert_true(exists(path) && !exists(part) && !exists(record));
    assert_int_equal(basin_fetch(&r, &spec, NULL), BASIN_OK);
    assert_true(r.was_there);
    /* from the middle; from the end; from beyond it */
    const char *begun[] = {"a", "abc", "abcdefg"};
    for (int i = 0; i < 3; i++)
        for (int known = 0; known < 2; known++) {
            place(state, "abc");
            spec.size = known ? 3 : -1;
            assert_int_equal(file_put(part, begun[i], strlen(begun[i])), 0);
            if (basin_fetch(&r, &spec, &error)) fail_msg("%s", error.text);
            assert_true(exists(path) && !exists(part));
        }
}

static void removes_what_is_wrong(void **state) {
    basin_fetch_result r;
    basin_error error;
    place(state, "abd");
    basin_fetch_spec spec = {.url = url, .path = path, .sha256 = abc_digest, .size = -1};
    assert_int_equal(basin_fetch(&r, &spec, &error), BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "wanted ba7816bf"));
    assert_false(exists(path) || exists(part) || exists(record));
    assert_int_equal(file_put(path, "xyz", 3), 0); /* what was there is not touched */
    assert_int_equal(basin_fetch(&r, &spec, &error), BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "remove it to fetch it again"));
    assert_true(exists(path));
    place(state, "abc");
    unlink(source);
    spec.sha256 = NULL;
    assert_int_equal(basin_fetch(&r, &spec, &error), BASIN_IO);
    assert_null(strchr(error.text, '\n'));
    assert_false(exists(path) || exists(part) || exists(record));
}

static void trusts_the_first_fetch(void **state) {
    basin_fetch_result r;
    basin_error error;
    place(state, "abc");
    basin_fetch_spec spec = {.url = url, .path = path, .size = -1};
    assert_int_equal(basin_fetch(&r, &spec, NULL), BASIN_OK);
    assert_true(r.first_fetch && exists(record));
    assert_string_equal(r.sha256, abc_digest);
    unlink(path);
    assert_int_equal(basin_fetch(&r, &spec, NULL), BASIN_OK);
    assert_false(r.first_fetch);
    unlink(path);
    assert_int_equal(file_put(source, "other", 5), 0);
    assert_int_equal(basin_fetch(&r, &spec, &error), BASIN_BAD_FILE);
    assert_false(exists(path) || exists(part));
}

/* A first fetch cannot be told right from wrong by a digest, so that what surely is wrong is. */
static void refuses_web_pages(void **state) {
    static const char *const page[] = {"<!DOCTYPE html><html>sign in</html>", "\n  <HTML>moved",
                                       "\xef\xbb\xbf<html lang=en>"};
    basin_fetch_result r;
    basin_error error;
    for (int i = 0; i < 3; i++) {
        place(state, page[i]);
        basin_fetch_spec spec = {.url = url, .path = path, .size = -1};
        assert_int_equal(basin_fetch(&r, &spec, &error), BASIN_BAD_FILE);
        assert_non_null(strstr(error.text, "a web page of"));
        assert_non_null(strstr(error.text, "wanted got; removed"));
        assert_false(exists(path) || exists(part) || exists(record));
    }
}

static void stops_at_the_known_size(void **state) {
    basin_fetch_result r;
    basin_error error;
    for (int digest = 0; digest < 2; digest++) {
        place(state, "abcabc");
        basin_fetch_spec spec = {
            .url = url, .path = path, .size = 5, .sha256 = digest ? abc_digest : NULL};
        assert_int_equal(basin_fetch(&r, &spec, &error), BASIN_BAD_FILE);
        assert_non_null(strstr(error.text, "more than 5 bytes came; removed"));
        assert_false(exists(path) || exists(part) || exists(record));
    }
}

static void stays_with_https(void **state) {
    (void)state;
    assert_string_equal(basin_fetch_redirects("https://a.b/c"), "https");
    assert_string_equal(basin_fetch_redirects("HTTPS://a.b/c"), "https");
    assert_string_equal(basin_fetch_redirects("http://a.b/c"), "http,https");
}

static void knows_its_catalog(void **state) {
    (void)state;
    for (const basin_catalog_set *set = basin_catalog; set->name; set++) {
        assert_ptr_equal(basin_catalog_find(set->name), set);
        assert_true(!set->by_hand == (set->file[0].url != NULL));
        for (int i = 0; i < BASIN_CATALOG_FILES && set->file[i].url; i++) {
            const basin_catalog_file *f = &set->file[i];
            assert_true(!f->sha256 || strspn(f->sha256, "0123456789abcdef") == 64);
            assert_true(!strncmp(f->url, "https://", 8) && !strchr(f->name, '/'));
        }
    }
    assert_null(basin_catalog_find("no such set"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests),
        cmocka_unit_test(fetches_and_resumes),
        cmocka_unit_test(removes_what_is_wrong),
        cmocka_unit_test(trusts_the_first_fetch),
        cmocka_unit_test(refuses_web_pages),
        cmocka_unit_test(stops_at_the_known_size),
        cmocka_unit_test(stays_with_https),
        cmocka_unit_test(knows_its_catalog),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
