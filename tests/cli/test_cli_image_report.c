/* basin image report, export and import: the page is whole and needs nothing else, for each
 * architecture and for several models; it says what it shows; a model goes out under the published
 * names and comes back. */
#include <sys/stat.h>

#include "cli/program.h"
#include "task/image/image.h"

static void train(void **state, const char *name, const char *options) {
    const program *p = run(state,
                           "image train shapes:64:1:12x12x3 -q --channels 3 --size 12 --dim 16 "
                           "%s %s --steps 3 --occlude 4 --keep 1 "
                           "--batch 16 --warmup 0 --epochs 1 --threads 1 --log log.jsonl -o %s %s",
                           strstr(options, "--no-attention") ? "" : "--heads 2 --head-dim 8",
                           strstr(options, "--no-hopfield") ? "" : "--memories 120", name, options);
    if (p->code) fail_msg("%s", p->err);
}

/* The page's text; free it. */
static char *read_page(void **state, const char *name) {
    char path[PATH_TEXT];
    struct stat file;
    assert_int_equal(stat(folder_path(path, state, name), &file), 0);
    char *text = malloc((size_t)file.st_size + 1);
    assert_non_null(text);
    slurp(text, (size_t)file.st_size + 1, path);
    assert_int_equal(strlen(text), file.st_size);
    return text;
}

static int count(const char *text, const char *part) {
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) found++;
    return found;
}

/* Nothing is fetched: every address is data or a place on the page. */
static void assert_self_contained(const char *page) {
    for (const char *at = page; (at = strstr(at, "src=\"")); at++)
        assert_int_equal(strncmp(at, "src=\"data:image/", 16), 0);
    for (const char *at = page; (at = strstr(at, "href=\"")); at++)
        assert_int_equal(strncmp(at, "href=\"#", 7), 0);
    assert_null(strstr(page, "@import"));
    assert_null(strstr(page, "url("));
    assert_int_equal(count(page, "<img "), count(page, " alt=\""));
    assert_int_equal(count(page, "<section"), count(page, "</section>"));
    assert_int_equal(count(page, "<figure"), count(page, "</figure>"));
    assert_int_equal(count(page, "<div"), count(page, "</div>"));
    assert_string_equal(page + strlen(page) - 8, "</html>\n");
}

static void pages_of_all_models(void **state) {
    static const struct {
        const char *options, *has, *lacks;
    } trial[] = {{"", "id=\"memories\"", "Layer by layer"},
                 {"--no-hopfield --cls", "Attention force", "Hopfield force"},
                 {"--no-attention", "Hopfield force", "id=\"attention\""},
                 {"--arch vit", "Layer by layer", "id=\"memories\""},
                 {"--arch albert --cls", "data-keys=\"10\"", "id=\"heads\""}};
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        train(state, "m.safetensors", trial[i].options);
        const program *p =
            run(state, "image report m.safetensors shapes:100:1:12x12x3 -q --limit 30 "
                       "--shown 3 --traced 2 --extremes 2 --log log.jsonl -o page.html");
        if (p->code) fail_msg("%s", p->err);
        assert_contains(p->out, "page.html: ");
        assert_contains(p->out, "on 30 pictures");
        char *page = read_page(state, "page.html");
        assert_self_contained(page);
        assert_non_null(strstr(page, trial[i].has));
        assert_null(strstr(page, trial[i].lacks));
        assert_int_equal(count(page, "class=\"card\""), 3 + 2 + 2);
        assert_non_null(strstr(page, "id=\"positions\""));
        assert_non_null(strstr(page, "id=\"training\""));
        free(page);
    }
}

static void names_are_escaped(void **state) {
    train(state, "'<i>.safetensors'", "");
    const program *p = run(state, "image report '<i>.safetensors' --data shapes:8:1:12x12x3 -q "
                                  "--shown 1 --extremes 0 -o page.html");
    if (p->code) fail_msg("%s", p->err);
    char *page = read_page(state, "page.html");
    assert_null(strstr(page, "<i>"));
    assert_non_null(strstr(page, "<h1>&lt;i&gt;.safetensors</h1>"));
    assert_null(strstr(page, "id=\"extremes\""));
    free(page);
}

/* Two folders are two names; the units of errors are those of the model; one force is one. */
static void pages_say_what_is(void **state) {
    train(state, "m.safetensors", "--no-hopfield --mean 0.5,0.5,0.5 --deviation 0.2,0.2,0.25");
    const program *p = run(state, "image report m.safetensors shapes:8:1:12x12x3 "
                                  "shapes:9:2:12x12x3 -q --extremes 0 -o page.html");
    if (p->code) fail_msg("%s", p->err);
    char *page = read_page(state, "page.html");
    assert_non_null(strstr(page, "<code>shapes:8:1:12x12x3, shapes:9:2:12x12x3</code>"));
    assert_null(strstr(page, "variance"));
    assert_non_null(strstr(page, "deviations (0.2, 0.2, 0.25 of a range of 1)"));
    assert_null(strstr(page, "two forces"));
    assert_non_null(strstr(page, "<small>mean colour "));
    assert_non_null(strstr(page, "<span class=\"number\">MSE&nbsp;"));
    assert_non_null(strstr(page, "The energy rose in none of the "));
    free(page);
}

/* The same pictures and masks for both; each model's descent, attention and positions. */
static void models_are_compared(void **state) {
    train(state, "a.safetensors", "");
    train(state, "b.safetensors", "--no-attention --seed 3");
    train(state, "c.safetensors", "--arch vit");
    const program *p = run(state, "image report a.safetensors b.safetensors shapes:20:1:12x12x3 "
                                  "c.safetensors --shown 2 --traced 2 --extremes 1 -o page.html");
    if (p->code) fail_msg("%s", p->err);
    assert_contains(p->out, "  A  a.safetensors: masked MSE ");
    assert_contains(p->out, "  C  c.safetensors: masked MSE ");
    char *page = read_page(state, "page.html");
    assert_self_contained(page);
    assert_non_null(strstr(page, "<h1>a.safetensors, b.safetensors and c.safetensors</h1>"));
    assert_int_equal(count(page, "class=\"card\""), 2 + 1 + 1);
    assert_int_equal(count(page, "class=\"stepper\""), 3);
    assert_int_equal(count(page, "class=\"attend\""), 2); /* b has no attention */
    assert_int_equal(count(page, "Maps of the cosine similarity"), 3);
    assert_int_equal(count(page, "<td>mean colour</td>"), 1);
    assert_non_null(strstr(page, "<tr class=\"differs\"><td>arch</td>"));
    assert_null(strstr(page, "<tr class=\"differs\"><td>size</td>"));
    free(page);
    p = run(state, "image report a.safetensors b.safetensors shapes:20:1:12x12x3 --hold-out 5 "
                   "--shown 1 --extremes 0 -o page.html");
    assert_contains(p->err, "b.safetensors has another seed than a.safetensors");
    train(state, "d.safetensors", "--patch 6 --occlude 2");
    assert_error(run(state, "image report a.safetensors d.safetensors shapes:8:1:12x12x3 -q"), 1,
                 "d.safetensors: patch is 6, wanted 4 as in a.safetensors");
    assert_error(run(state, "image report $(yes a.safetensors | head -n 9) shapes:8 -q"), 1,
                 "9 models for a page, wanted 1 to 8");
}

/* 576 patches of 576 shares, 2 heads: six maps fill what a page has for them. */
static void attention_is_limited(void **state) {
    train(state, "m.safetensors", "--size 48 --patch 2 --occlude 100");
    const program *p = run(state, "image report m.safetensors shapes:8:1:12x12x3 -q --shown 3 "
                                  "--traced 3 --extremes 0 -o page.html");
    if (p->code) fail_msg("%s", p->err);
    char *page = read_page(state, "page.html");
    assert_non_null(strstr(page, "the first 2 of 3 pictures, 3 of 4 steps"));
    assert_non_null(strstr(page, "data-steps=\"0 1 3\""));
    assert_int_equal(count(page, "<script type=\"text/plain\""), 2);
    free(page);
}

/* A gain below 0 climbs: nothing in the training forbids it, the page says it. */
static void climbing_is_told(void **state) {
    char path[PATH_TEXT];
    basin_error error;
    basin_backend *backend;
    basin_image_model *model;
    double gamma = -1.3;
    basin_tensor value = basin_tensor_borrow(&gamma, BASIN_F64, BASIN_SCALAR);
    train(state, "m.safetensors", "");
    folder_path(path, state, "m.safetensors");
    assert_int_equal(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error),
                     BASIN_OK);
    assert_int_equal(basin_image_open(&model, path, backend, &error), BASIN_OK);
    assert_int_equal(basin_store_write(model->store, "gamma", &value, &error), BASIN_OK);
    assert_int_equal(basin_image_write(path, model, &error), BASIN_OK);
    basin_image_close(model);
    basin_backend_close(backend);
    const program *p = run(state, "image report m.safetensors shapes:8:1:12x12x3 -q --shown 4 "
                                  "--extremes 0 -o page.html");
    if (p->code) fail_msg("%s", p->err);
    char *page = read_page(state, "page.html");
    assert_non_null(strstr(page, "gamma of the layer norm is -1.3."));
    assert_non_null(strstr(page, "the energy rose in 12 of 12 steps"));
    free(page);
}

static void what_cannot_be_shown(void **state) {
    train(state, "m.safetensors", "");
    assert_error(run(state, "image report m.safetensors"), 2, "needs pictures");
    assert_error(run(state, "image report m.safetensors a --data b"), 2, "needs pictures");
    assert_error(run(state, "image report m.safetensors --data nowhere -q"), 1, "nowhere");
    assert_error(run(state, "image report nowhere.safetensors --data shapes:8 -q"), 1, "nowhere");
    assert_error(run(state, "image report m.safetensors --data shapes:8:1:12x12x3 -q "
                            "--log m.safetensors"),
                 1, "not a log");
    char path[PATH_TEXT]; /* the line alone, not what lies behind it */
    const char cut[] = "{\"step\":1,\"loss\":1}\n{bad}\n{\"step\":2,\"loss\":1}\n";
    file_put(folder_path(path, state, "cut.jsonl"), cut, strlen(cut));
    assert_error(run(state, "image report m.safetensors --data shapes:8:1:12x12x3 -q "
                            "--log cut.jsonl"),
                 1, "cut.jsonl: a line cannot be read: {bad}\n");
}

static void models_are_exchanged(void **state) {
    train(state, "m.safetensors", "--cls --self-attention");
    assert_int_equal(run(state, "image export m.safetensors out.npz")->code, 0);
    const program *p = run(state, "info out.npz");
    assert_contains(p->out, "LNORM_gamma");
    assert_contains(p->out, "[16, 120]"); /* Xi, memories as columns */
    p = run(state, "image import out.npz back.safetensors");
    assert_contains(p->out, "size 12, channels 3, patch 4, dim 16");
    char *page[3];
    static const char *const model[] = {"m.safetensors", "out.npz", "back.safetensors"};
    for (int i = 0; i < 3; i++) {
        p = run(state, "image report %s --data shapes:8:1:12x12x3 -q --threads 1 -o p%d.html",
                model[i], i);
        if (p->code) fail_msg("%s", p->err);
        char name[16];
        snprintf(name, sizeof name, "p%d.html", i);
        page[i] = read_page(state, name);
    }
    for (int i = 1; i < 3; i++) /* all but the model's name */
        assert_string_equal(strstr(page[0], "<main>"), strstr(page[i], "<main>"));
    for (int i = 0; i < 3; i++) free(page[i]);
    train(state, "b.safetensors", "--learn-beta --hopfield-kind softmax");
    assert_error(run(state, "image export b.safetensors out.npz"), 1, "'softmax'");
    train(state, "v.safetensors", "--arch vit");
    assert_error(run(state, "image export v.safetensors out.npz"), 1, "'vit'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_all_models),  cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(pages_say_what_is),    cmocka_unit_test(models_are_compared),
        cmocka_unit_test(attention_is_limited), cmocka_unit_test(climbing_is_told),
        cmocka_unit_test(what_cannot_be_shown), cmocka_unit_test(models_are_exchanged),
    };
    return cmocka_run_group_tests(tests, folder_new, program_teardown);
}
