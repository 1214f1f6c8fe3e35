/* basin zoo: verdicts that the mathematics says, energies of the oracle, and wrong usage. */
#include "program/program.h"

#include <math.h>

#include "basin/io.h"
#include "basin/random.h"

#define CASE(name) BASIN_SOURCE "/tests/golden/zoo/" name ".safetensors"

static const cJSON *model_of(const cJSON *tree, const char *name) {
    const cJSON *model;
    cJSON_ArrayForEach(model, json_at(tree, "models")) {
        if (!strcmp(json_at(model, "model")->valuestring, name)) return model;
    }
    fail_msg("no model %s", name);
    return NULL;
}

/* Exact gradients have the cosine 1; steps of size 1 of the convex ones never rise. */
TEST_WITH(verdicts_are_measured, folder_new, folder_remove) {
    static const char *const always[] = {"classical", "power",     "hopfield",
                                         "entmax15",  "sparsemax", "normmax2",
                                         "idp",       "et",        "graph_hopfield"};
    static const char *const never[] = {"nrgpt", "ebt_loop", "akorn_attention"};
    cJSON *tree = run_json(run(state, "zoo list --seeds 8 --json"));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        const cJSON *model = model_of(tree, always[i]);
        assert_string_equal(json_at(model, "descends")->valuestring, "always");
        assert_true(json_at(model, "least_cosine")->valuedouble > 1 - 1e-6);
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_string_equal(json_at(model_of(tree, never[i]), "descends")->valuestring,
                            "not at all");
    assert_true(json_at(model_of(tree, "hyperset"), "mean_cosine")->valuedouble < 0.9);
    const cJSON *wild = model_of(tree, "nrgpt"), *calm = model_of(tree, "hopfield");
    assert_true(json_at(wild, "rising_low")->valuedouble > 5);
    assert_true(json_at(calm, "rising_low")->valuedouble == 0);
    assert_float_equal(json_at(calm, "rising_high")->valuedouble, 32.4, 0.1); /* of 8 draws */
    assert_string_equal(json_at(model_of(tree, "akorn"), "descends")->valuestring,
                        "for small steps");
    const program *p = run(state, "zoo list --seeds 1 --steps 2");
    assert_contains(p->out, "Krotov and Hopfield 2016");
    assert_contains(p->out, "(--seeds)");
}

/* Forces: all of the Jacobian, and random directions where it is large. */
TEST_WITH(gradients_are_told, folder_new, folder_remove) {
    static const char *const no[] = {"nrgpt", "nrgpt_strict", "hyperset", "akorn_rotation"};
    static const char *const yes[] = {"et", "cet", "gaussians", "gated", "akorn", "crate"};
    cJSON *tree = run_json(run(state, "zoo list --seeds 2 --steps 1 --json"));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_true(json_at(model_of(tree, no[i]), "skew")->valuedouble > 0.05);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_string_equal(json_at(model_of(tree, yes[i]), "gradient")->valuestring, "yes");
    const cJSON *stack = model_of(tree, "et_stack");
    assert_string_equal(json_at(stack, "gradient")->valuestring, "yes");
    assert_true(json_at(stack, "step_skew")->valuedouble > 0.01);
    enum { N = 20, D = 15 };
    char path[PATH_TEXT];
    basin_bundle *file;
    const struct {
        const char *name;
        basin_shape shape;
    } part[] = {{"in.x0", BASIN_SHAPE(N, D)},   {"in.xi", BASIN_SHAPE(9, D)},
                {"in.h", BASIN_SHAPE(1, D, D)}, {"in.bias", BASIN_SHAPE(D)},
                {"in.proj", BASIN_SHAPE(D, D)}, {"in.w1", BASIN_SHAPE(4, D)},
                {"in.b1", BASIN_SHAPE(4)},      {"in.beta", BASIN_SCALAR},
                {"in.scale", BASIN_SCALAR}};
    assert_int_equal(basin_bundle_new(&file, NULL, NULL), BASIN_OK);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        basin_tensor drawn;
        assert_int_equal(basin_tensor_new(&drawn, BASIN_F64, part[i].shape, NULL), BASIN_OK);
        basin_random_fill_normal_f64(drawn.data, 3, i, 0, (size_t)basin_shape_count(drawn.shape));
        if (!drawn.shape.rank) *(double *)drawn.data = 1;
        assert_int_equal(basin_bundle_add(file, part[i].name, &drawn, NULL), BASIN_OK);
    }
    folder_path(path, state, "large.safetensors");
    assert_int_equal(basin_bundle_write(path, file, NULL), BASIN_OK);
    basin_bundle_free(file);
    tree = run_json(run(state, "zoo descend hopfield large.safetensors --steps 1 --json"));
    assert_string_equal(json_at(tree, "gradient")->valuestring, "yes");
    tree = run_json(run(state, "zoo descend nrgpt large.safetensors --steps 1 --json"));
    double skew = json_at(tree, "skew")->valuedouble, low = json_at(tree, "skew_low")->valuedouble;
    assert_true(skew > 0.3 && skew < 0.8 && low < skew && low > 0.9 * skew);
}

/* The documents list the program's models, and as many. */
TEST_WITH(documents_have_all_models, folder_new, folder_remove) {
    static const char *const pages[] = {BASIN_SOURCE "/docs/zoo.md", BASIN_SOURCE "/README.md"};
    cJSON *tree = run_json(run(state, "zoo list --seeds 1 --steps 1 --json"));
    const cJSON *model, *models = json_at(tree, "models");
    static char page[1 << 17];
    char words[200];
    for (int i = 0; i < 2; i++) {
        slurp(page, sizeof page, pages[i]);
        snprintf(words, sizeof words, "%d models", cJSON_GetArraySize(models));
        assert_contains(page, words);
        cJSON_ArrayForEach(model, models) {
            snprintf(words, sizeof words, "| %s | %s | ", json_at(model, "model")->valuestring,
                     json_at(model, "reference")->valuestring);
            const char *row = strstr(page, words);
            if (i == 0 && !row) fail_msg("docs/zoo.md lacks a row '%s'", words);
            if (i) continue;
            row = strstr(row + strlen(words), "| ") + 2;
            const char *gradient = json_at(model, "gradient")->valuestring;
            if (strncmp(row, gradient, strlen(gradient)) != 0)
                fail_msg("docs/zoo.md, %s: a gradient? %.3s", words, row);
        }
    }
}

TEST_WITH(energies_are_the_oracles, folder_new, folder_remove) {
    static const char *const file[][2] = {{"hopfield", CASE("hopfield")},
                                          {"sparsemax", CASE("sparse_sparsemax")},
                                          {"lsr", CASE("lsr")},
                                          {"drdam", CASE("drdam")},
                                          {"akorn", CASE("akorn")},
                                          {"akorn_attention", CASE("akorn_attention")},
                                          {"graph_hopfield", CASE("graph_hopfield")}};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        basin_bundle *golden;
        basin_error error;
        if (basin_bundle_read(&golden, file[i][1], &error)) fail_msg("%s", error.text);
        const basin_tensor *want = basin_bundle_find(golden, "out.energy");
        cJSON *tree = run_json(run(state, "zoo descend %s %s --steps %d --json", file[i][0],
                                   file[i][1], (int)want->shape.dim[0] - 1));
        for (int t = 0; t < (int)want->shape.dim[0]; t++) {
            double energy = cJSON_GetArrayItem(json_at(tree, "energy"), t)->valuedouble;
            double wanted = basin_tensor_at(want, t);
            assert_true(fabs(energy - wanted) < 1e-9 * (1 + fabs(wanted)));
        }
        basin_bundle_free(golden);
    }
}

TEST_WITH(shows_and_draws, folder_new, folder_remove) {
    const program *p = run_ok(state, "zoo list hyperset");
    assert_contains(p->out, "straight through the norms");
    assert_contains(p->out, "src/engine/energy/zoo_attention.c");
    run_ok(state, "zoo descend hyperset %s", CASE("hyperset"));
    run_ok(state, "zoo descend drdam %s", CASE("drdam_cos"));
    p = run_ok(state, "zoo descend hopfield --page e.html --seeds 2");
    assert_field(p->out, "descends", "always");
    char path[PATH_TEXT];
    FILE *file = fopen(folder_path(path, state, "e.html"), "rb");
    assert_non_null(file);
    fclose(file);
}

TEST_WITH(wrong_usage, folder_new, folder_remove) {
    assert_error(run(state, "zoo list unicorn"), 2, "no model 'unicorn' in the zoo");
    assert_error(run(state, "zoo list crate --json"), 2, "--json");
    assert_int_equal(run(state, "zoo descend hopfield %s --seed 3", CASE("hopfield"))->code, 2);
    assert_error(run(state, "zoo descend akorn %s", CASE("hopfield")), 1, "in.c");
    assert_error(run(state, "zoo descend crate %s", CASE("crate")), 1, "in.d");
    assert_error(run(state, "zoo descend nrgpt_inclusive %s", CASE("nrgpt_ff1")), 1, "strict");
}
