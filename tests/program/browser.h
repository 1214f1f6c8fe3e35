/* Pages in a real browser (chromium, headless): a script is added to a page, which sends its
 * verdict to the page around it. */
#ifndef TESTS_CLI_BROWSER_H
#define TESTS_CLI_BROWSER_H

#include <stdbool.h>

#include "program/report.h"

static inline bool browser_there(void) {
    bool there = system("command -v chromium >/dev/null 2>&1") == 0;
    if (!there) print_message("skipped: no chromium here\n");
    return there;
}

/* The page with scripts (NULL-terminated) before its end, which its policy would forbid. */
static inline void browser_add(void **state, const char *from, const char *to,
                               const char *const *script) {
    char *text = report_text(state, from);
    char *end = strstr(text, "</body>"), *policy = strstr(text, "default-src");
    assert_true(end && policy);
    memset(policy, ' ', strcspn(policy, "\""));
    FILE *out = fopen(folder_path(state, to), "wb");
    assert_non_null(out);
    fwrite(text, 1, (size_t)(end - text), out);
    for (; *script; script++) fputs(*script, out);
    fputs(end, out);
    assert_int_equal(fclose(out), 0);
    free(text);
}

/* The verdict on a page of that width; free it. A window cannot be as narrow as a phone, a frame
 * can. */
static inline char *browser_visit(void **state, int width) {
    char line[2000];
    FILE *around = fopen(folder_path(state, "around.html"), "wb");
    assert_non_null(around);
    fprintf(around,
            "<script>onmessage = e => document.body.append('ver' + 'dict: ' + e.data)</script>"
            "<iframe src=\"check.html\" width=\"%d\" height=\"900\"></iframe>",
            width);
    assert_int_equal(fclose(around), 0);
    snprintf(line, sizeof line,
             "cd '%s' && timeout 120 chromium --headless --no-sandbox --disable-gpu "
             "--user-data-dir=\"$PWD/.profile\" --window-size=1700,1000 --enable-logging=stderr "
             "--virtual-time-budget=20000 --dump-dom \"file://$PWD/around.html\" >.dom 2>.log",
             (const char *)*state);
    assert_int_equal(system(line), 0);
    char *text = report_text(state, ".dom"), *verdict = malloc(4096);
    assert_non_null(verdict);
    const char *at = strstr(text, "verdict: ");
    snprintf(verdict, 4096, "%.*s", at ? (int)strcspn(at, "<") : 10, at ? at : "no verdict");
    free(text);
    return verdict;
}

/* check.html on a page of that width must say that all is well, and the console nothing. */
static inline void browser_judge(void **state, int width) {
    char log[65536];
    char *verdict = browser_visit(state, width);
    if (!strstr(verdict, "all is well")) fail_msg("%d wide: %s", width, verdict);
    free(verdict);
    slurp(log, sizeof log, folder_path(state, ".log"));
    if (strstr(log, "CONSOLE")) fail_msg("the console: %s", strstr(log, "CONSOLE"));
}

/* The page as it is, with its policy: it draws sections, and the console says nothing. */
static inline void browser_open(void **state, const char *name) {
    char line[1000], *dom = calloc(1, 1 << 24);
    assert_non_null(dom);
    snprintf(line, sizeof line,
             "cd '%s' && timeout 120 chromium --headless --no-sandbox --disable-gpu "
             "--user-data-dir=\"$PWD/.profile\" --enable-logging=stderr "
             "--virtual-time-budget=20000 --dump-dom \"file://$PWD/%s\" >.dom 2>.log",
             (const char *)*state, name);
    assert_int_equal(system(line), 0);
    slurp(dom, 1 << 24, folder_path(state, ".dom"));
    if (!strstr(dom, "<section id=")) fail_msg("%s: no sections", name);
    slurp(dom, 1 << 24, folder_path(state, ".log"));
    if (strstr(dom, "CONSOLE")) fail_msg("the console: %s", strstr(dom, "CONSOLE"));
    free(dom);
}

static inline int browser_teardown(void **state) {
    char line[PATH_TEXT + 80];
    snprintf(line, sizeof line, "cd '%s' && rm -rf .profile .dom .log", (const char *)*state);
    if (system(line) != 0) return -1;
    return program_teardown(state);
}

#endif
