/* A report in a real browser (chromium, headless): every picture loads, the slider moves and the
 * pictures change, play plays, toggles and thumbnails work, nothing overflows a phone's width, and
 * the console stays empty. Skipped where there is no chromium. */
#include <sys/stat.h>

#include "cli/program.h"

/* Runs in the page, after its own script; sends its verdict to the page around it. */
static const char check[] =
    "<script>\n"
    "(async () => {\n"
    "  const wrong = [], say = (good, what) => { if (!good) wrong.push(what) };\n"
    "  const wait = ms => new Promise(done => setTimeout(done, ms));\n"
    "  if (document.readyState !== 'complete') await new Promise(d => addEventListener('load', "
    "d));\n"
    "  for (const i of document.images) say(i.complete && i.naturalWidth > 0, 'img ' + i.alt);\n"
    "  const slider = document.querySelector('input[type=range]');\n"
    "  const seen = () => Array.from(document.querySelectorAll('.scene.chosen img[data-step]'))\n"
    "    .filter(i => i.getClientRects().length).map(i => i.src).join();\n"
    "  const looks = [];\n"
    "  for (let t = 0; t <= Number(slider.max); t++) {\n"
    "    slider.value = t;\n"
    "    slider.dispatchEvent(new Event('input'));\n"
    "    looks.push(seen());\n"
    "  }\n"
    "  say(looks.every(l => l.length > 0), 'a step shows nothing');\n"
    "  say(new Set(looks).size === looks.length, 'two steps look the same');\n"
    "  say(document.querySelector('output').textContent.includes(slider.max), 'output');\n"
    "  document.querySelector('.stepper button').click();\n"
    "  await wait(100);\n"
    "  say(document.querySelector('.stepper button').textContent === 'Pause', 'no pause');\n"
    "  await wait(8000);\n"
    "  say(document.querySelector('.stepper button').textContent === 'Play', 'plays for ever');\n"
    "  say(slider.value === slider.max, 'did not play to the end');\n"
    "  document.querySelector('.stepper button').dispatchEvent(\n"
    "    new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));\n"
    "  say(Number(slider.value) === Number(slider.max) - 1, 'arrow key');\n"
    "  const before = seen(), picks = document.querySelectorAll('.picks input');\n"
    "  picks[1].click();\n"
    "  say(seen() !== before && seen().length > 0, 'thumbnail');\n"
    "  const box = document.querySelector('input[data-toggle=memory-sheets]');\n"
    "  const all = document.querySelector('#memory-sheets .second');\n"
    "  say(!all.getClientRects().length, 'all memories at first');\n"
    "  box.click();\n"
    "  say(all.getClientRects().length, 'all memories');\n"
    "  say(document.querySelector('.marker').getAttribute('d'), 'marker');\n"
    "  say(document.documentElement.scrollWidth <= innerWidth, 'wider than the page: '\n"
    "    + document.documentElement.scrollWidth + ' of ' + innerWidth);\n"
    "  parent.postMessage(wrong.join('; ') || 'all is well', '*');\n"
    "})();\n"
    "</script>\n";

/* The page with the check before its end. */
static void add_check(void **state, const char *from, const char *to) {
    char path[PATH_TEXT];
    struct stat file;
    assert_int_equal(stat(folder_path(path, state, from), &file), 0);
    char *text = malloc((size_t)file.st_size + 1);
    assert_non_null(text);
    slurp(text, (size_t)file.st_size + 1, path);
    char *end = strstr(text, "</body>");
    assert_non_null(end);
    FILE *out = fopen(folder_path(path, state, to), "wb");
    assert_non_null(out);
    fwrite(text, 1, (size_t)(end - text), out);
    fputs(check, out);
    fputs(end, out);
    assert_int_equal(fclose(out), 0);
    free(text);
}

/* The verdict on a page of that width; free it. A window cannot be as narrow as a phone, a frame
 * can. */
static char *visit(void **state, int width) {
    char line[2000], path[PATH_TEXT];
    FILE *around = fopen(folder_path(path, state, "around.html"), "wb");
    assert_non_null(around);
    fprintf(around,
            "<script>onmessage = e => document.body.append('ver' + 'dict: ' + e.data)</script>"
            "<iframe src=\"check.html\" width=\"%d\" height=\"900\"></iframe>",
            width);
    assert_int_equal(fclose(around), 0);
    snprintf(line, sizeof line,
             "cd '%s' && timeout 120 chromium --headless --no-sandbox --disable-gpu "
             "--user-data-dir=\"$PWD/.profile\" --window-size=1400,1000 --enable-logging=stderr "
             "--virtual-time-budget=20000 --dump-dom \"file://$PWD/around.html\" >.dom 2>.log",
             (const char *)*state);
    assert_int_equal(system(line), 0);
    struct stat file;
    assert_int_equal(stat(folder_path(path, state, ".dom"), &file), 0);
    char *text = malloc((size_t)file.st_size + 1), *verdict = malloc(4096);
    assert_non_null(text);
    assert_non_null(verdict);
    slurp(text, (size_t)file.st_size + 1, path);
    const char *at = strstr(text, "verdict: ");
    snprintf(verdict, 4096, "%.*s", at ? (int)strcspn(at, "<") : 10, at ? at : "no verdict");
    free(text);
    return verdict;
}

static void a_report_works_in_a_browser(void **state) {
    if (system("command -v chromium >/dev/null 2>&1") != 0) {
        print_message("skipped: no chromium here\n");
        skip();
    }
    const program *p =
        run(state, "image train shapes:128:1:16x16x3 -q --channels 3 --size 16 --dim 16 --heads 3 "
                   "--head-dim 8 --memories 150 --steps 5 --occlude 6 --keep 1 --batch 16 "
                   "--warmup 0 --epochs 2 --threads 1 --log log.jsonl -o m.safetensors");
    if (p->code) fail_msg("%s", p->err);
    p = run(state, "image report m.safetensors --data shapes:20:1:16x16x3 -q --traced 2 "
                   "--log log.jsonl -o page.html");
    if (p->code) fail_msg("%s", p->err);
    add_check(state, "page.html", "check.html");
    static const int width[] = {320, 1280};
    for (int i = 0; i < 2; i++) {
        char log[65536], path[PATH_TEXT];
        char *verdict = visit(state, width[i]);
        if (!strstr(verdict, "all is well")) fail_msg("%d wide: %s", width[i], verdict);
        free(verdict);
        slurp(log, sizeof log, folder_path(path, state, ".log"));
        if (strstr(log, "CONSOLE")) fail_msg("the console: %s", strstr(log, "CONSOLE"));
    }
}

static int teardown(void **state) {
    char line[PATH_TEXT + 80];
    snprintf(line, sizeof line, "cd '%s' && rm -rf .profile .dom .log", (const char *)*state);
    if (system(line) != 0) return -1;
    return program_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_report_works_in_a_browser)};
    return cmocka_run_group_tests(tests, folder_new, teardown);
}
