/* basin zoo: verdicts that the mathematics says, energies of the oracle, and wrong usage. */
#include "program/program.h"

#include <math.h>

#include "basin/io.h"

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
    assert_string_equal(json_at(model_of(tree, "akorn"), "descends")->valuestring,
                        "for small steps");
    const program *p = run(state, "zoo list --seeds 1 --steps 2");
    assert_contains(p->out, "Krotov and Hopfield 2016");
    assert_contains(p->out, "(--seeds)");
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
