/* Reports in tests: the document of a file, and what is found in it. */
#ifndef TESTS_CLI_REPORT_H
#define TESTS_CLI_REPORT_H

#include <sys/stat.h>

#include "program/program.h"

/* The file's text; free it. */
static inline char *report_text(void **state, const char *name) {
    char *path = folder_path(state, name);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    char *text = malloc((size_t)file.st_size + 1);
    assert_non_null(text);
    slurp(text, (size_t)file.st_size + 1, path);
    assert_int_equal(strlen(text), file.st_size);
    return text;
}

/* The document of a page or of a bare file; see json_read. */
static inline cJSON *report_read(void **state, const char *name) {
    char *text = report_text(state, name), *at = strstr(text, "id=\"document\">\n");
    cJSON *tree = json_read(at ? strchr(at, '\n') : text);
    free(text);
    return tree;
}

static inline int report_count(const char *text, const char *part) {
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) found++;
    return found;
}

/* Nothing is fetched: every picture is data, the policy forbids the rest, the element is closed. */
static inline void assert_self_contained(const char *page) {
    for (const char *at = page; (at = strstr(at, "\"src\":\"")); at++)
        assert_int_equal(strncmp(at, "\"src\":\"data:image/", 18), 0);
    assert_contains(page, "default-src 'none'");
    assert_null(strstr(page, "http://") == strstr(page, "http://www.w3.org/2000/svg") ? NULL : "");
    assert_null(strstr(page, "https://"));
    assert_null(strstr(page, "@import"));
    assert_null(strstr(page, "url("));
    assert_int_equal(report_count(page, "<script"), report_count(page, "</script>"));
    assert_string_equal(page + strlen(page) - 8, "</html>\n");
}

#endif
