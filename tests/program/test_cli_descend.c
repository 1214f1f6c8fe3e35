/* basin descend: the same end and energies as the oracle, on both backends, from every form of
 * weights; the trace in its four forms; and wrong inputs, each with its own line. */
#include "program/program.h"

#include <math.h>

#include "basin/io.h"

#define CASE(name) BASIN_SOURCE "/tests/golden/" name ".safetensors"

static basin_bundle *bundle_read(void **state, const char *name) {
    basin_bundle *bundle;
    if (*name != '/') name = folder_path(state, name);
    assert_ok(basin_bundle_read(&bundle, name, &failure));
    return bundle;
}

static double distance(const basin_tensor *a, const basin_tensor *b) {
    double away = 0, size = 0;
    assert_true(basin_shape_equal(a->shape, b->shape));
    for (int64_t i = 0; i < basin_shape_count(a->shape); i++) {
        double y = basin_tensor_at(b, i), d = basin_tensor_at(a, i) - y;
        away += d * d, size += y * y;
    }
    return sqrt(away / size);
}

static void agrees(void **state, const char *path, const char *options, double tolerance) {
    run_ok(state, "descend %s --prefix in. -o o.safetensors %s", path, options);
    BASIN_AT_EXIT(free_bundle)
    basin_bundle *want = bundle_read(state, path), *got = bundle_read(state, "o.safetensors");
    assert_true(distance(basin_bundle_find(got, "x"), basin_bundle_find(want, "out.xT")) <
                tolerance);
    if (basin_bundle_find(got, "energy")->shape.dim[1] == 2)
        assert_true(distance(basin_bundle_find(got, "energy"),
                             basin_bundle_find(want, "out.energy")) < tolerance);
    assert_non_null(basin_bundle_meta(got, "alpha"));
}

TEST(agrees_with_the_oracle) {
    agrees(state, CASE("block_relu"), "--steps 4 --backend ref", 1e-12);
    agrees(state, CASE("block_relu"), "--steps 4 --backend cpu", 1e-4);
    agrees(state, CASE("block_relu"), "--steps 4 --backend ref --guard", 1e-12);
    agrees(state, CASE("block_relu_self"), "--steps 4 --self", 1e-4);
    agrees(state, CASE("block_power3"), "--steps 3 --alpha 0.02 --hopfield-kind power", 1e-4);
    agrees(state, CASE("block_softmax"), "--steps 4 --hopfield-kind softmax", 1e-4);
    agrees(state, CASE("block_attention_only"), "--steps 4 --no-hopfield", 1e-4);
    agrees(state, CASE("block_hopfield_only"), "--steps 4 --no-attention", 1e-4);
}

/* The golden block, beta left out, tokens in another file. */
static void write_apart(void **state, bool with_nan) {
    BASIN_AT_EXIT(free_bundle)
    basin_bundle *from = bundle_read(state, CASE("block_relu")), *weights, *tokens;
    const char *name[][2] = {{"in.wk", "wk"}, {"in.wq", "wq"}, {"in.xi", "xi"}};
    assert_int_equal(basin_bundle_new(&weights, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_new(&tokens, NULL, NULL), BASIN_OK);
    for (int k = 0; k < 3; k++) {
        const basin_tensor *t = basin_bundle_find(from, name[k][0]);
        basin_tensor copy;
        assert_int_equal(basin_tensor_new(&copy, BASIN_F32, t->shape, NULL), BASIN_OK);
        assert_int_equal(basin_tensor_convert(&copy, t, NULL), BASIN_OK);
        if (with_nan && k == 1) ((float *)copy.data)[5] = NAN;
        assert_int_equal(basin_bundle_add(weights, name[k][1], &copy, NULL), BASIN_OK);
    }
    basin_tensor x = *basin_bundle_find(from, "in.x0");
    x.owned = false;
    assert_int_equal(basin_bundle_add(tokens, "patches", &x, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_write(folder_path(state, "w.npz"), weights, NULL), 0);
    assert_int_equal(basin_bundle_write(folder_path(state, "t.npz"), tokens, NULL), 0);
}

TEST(reads_weights_apart) {
    write_apart(state, false);
    cJSON *tree = run_json(run(state, "descend t.npz --weights w.npz --json --steps 3"));
    assert_true(json_number(tree, "steps") == 3);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "trace")), 4);
    double first = json_number(tree, "trace.0.energy"), last = json_number(tree, "trace.3.energy");
    assert_true(last < first);
    assert_true(fabs(json_number(tree, "trace.3.attention") +
                     json_number(tree, "trace.3.hopfield") - last) < 1e-3);
    assert_true(cJSON_IsNull(json_at(tree, "trace.3.change")));
    write_apart(state, true);
    assert_error(run(state, "descend t.npz --weights w.npz"), 1,
                 "w.npz: tensor 'wq' has nan at element 5");
}

TEST(writes_the_trace) {
    const program *p = run_ok(state, "descend " CASE("block_relu") " --prefix in. --steps 5");
    assert_contains(p->out, "change of g\n");
    assert_contains(p->out, "-337.54");
}

TEST(stops_and_guards) {
    cJSON *tree = run_json(run(
        state, "descend " CASE(
                   "block_softmax") " --prefix in. --json --steps 100000 --hopfield-kind softmax"
                                    " --alpha 1 --tolerance 1e-2"));
    assert_true(cJSON_IsTrue(json_at(tree, "converged")));
    assert_true(json_number(tree, "steps") < 100000);
    /* steps so long that they overshoot, unless the guard halves them */
    tree = run_json(
        run(state, "descend " CASE("block_power3") " --prefix in. --json --steps 30"
                                                   " --hopfield-kind power --alpha 500 --guard"));
    for (int t = 0; t < 30; t++) {
        char before[40], after[40];
        snprintf(before, sizeof before, "trace.%d.energy", t);
        snprintf(after, sizeof after, "trace.%d.energy", t + 1);
        assert_true(json_number(tree, after) <= json_number(tree, before));
    }
}

TEST(repeats_noise) {
    const char *line = "descend " CASE("block_relu") " --prefix in. --noise 0.3 --seed %d -o o.npz";
    double energy[3];
    for (int i = 0; i < 3; i++) {
        run_ok(state, line, i / 2);
        basin_bundle *got = bundle_read(state, "o.npz");
        energy[i] = basin_tensor_at(basin_bundle_find(got, "energy"), 24);
        basin_bundle_free(got);
    }
    assert_true(energy[0] == energy[1]);
    assert_true(energy[0] != energy[2]);
}

TEST(rejects_wrong_input) {
    assert_error(run(state, "descend"), 2, "needs TOKENS");
    assert_error(run(state, "descend x --hopfield-kind power --hopfield-power 1"), 2,
                 "--hopfield-power: 1 is");
    assert_error(run(state, "descend x --hopfield-kind gelu"), 2, "'gelu' is not");
    assert_error(run(state, "descend x --no-attention --no-hopfield"), 2, "--no-hopfield");
    assert_error(run(state, "descend x --guard --noise 1"), 2, "guard");
    assert_error(run(state, "descend x --steps -1"), 2, "--steps: -1 is too small");
    assert_error(run(state, "descend x --steps many"), 2, "'many' is not a whole number");
    assert_error(run(state, "descend x --alpha nan"), 2, "'nan' is not a number");
    assert_error(run(state, "descend x --backend gpu"), 2, "'gpu' is not one of ref|cpu");
    assert_error(run(state, "descend x"), 1, "x: ");
    assert_error(run(state, "descend " CASE("image")), 1, "no tensor 'x' or 'x0'");
    assert_error(run(state, "descend " CASE("block_relu") " --prefix in. -w " CASE("ham")), 1,
                 "no tensor 'in.wk'");
    assert_error(run(state, "descend " CASE("block_relu") " --prefix in. -w " CASE("block_wide")),
                 1, "the last axis must be 96");
    const program *p =
        run(state, "descend " CASE("block_power3") " --prefix in. --hopfield-kind power "
                                                   "--hopfield-power 9 --alpha 1e300 -o never.npz");
    assert_error(p, 1, "not finite");
    assert_int_not_equal(access(folder_path(state, "never.npz"), F_OK), 0);
}

int main(void) { return tests_run(folder_new, program_teardown); }
