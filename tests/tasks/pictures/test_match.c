/* Energies of pictures trained by matching: gradients in pixels and in weights against finite
 * differences, values against a plain loop, backends against each other. */
#include <math.h>

#include "support/lab.h"
#include "tasks/common/layers.h"

enum { B = 2, SIZE = 6, SIDE = 2, C = 1, N = 9, P = 4, D = 4 };

typedef struct scene {
    lab lab;
    basin_match match;
    basin_expr x, energy, field, errors;
} scene;

/* The picture is a state, so that gradients are checked with respect to it, too. */
static void scene_open(scene *s, const char *backend, bool no_energy, bool vit) {
    static const int32_t seed[2] = {3, 4};
    basin_match_config c = {
        .size = SIZE, .channels = C, .side = SIDE, .scales = 4, .free = no_energy};
    c.net.et =
        (basin_image_et_config){.tokens = N,
                                .patch = P,
                                .block = {.dim = D, .heads = 2, .head_dim = 3, .memories = 7},
                                .descent = {.steps = 2, .alpha = 0.1}};
    c.net.vit = (basin_vit_config){
        .tokens = N, .patch = P, .dim = D, .heads = 2, .head_dim = 3, .hidden = 7, .depth = 2};
    c.net.arch = vit ? BASIN_IMAGE_VIT : BASIN_IMAGE_ET;
    lab_open(&s->lab, backend, 1);
    if (basin_match_declare(&s->match, &s->lab.params, &c))
        fail_msg("%s", basin_graph_error(s->lab.graph)->text);
    s->x = lab_state(&s->lab, "x", BASIN_SHAPE(B, N, P));
    s->energy = basin_match_energy(&s->match, s->x);
    s->field = basin_match_field(&s->match, s->x, s->energy);
    s->errors = basin_match_errors(&s->match, s->x, lab_index(&s->lab, "seed", seed, 2));
    lab_fill(&s->lab, 11, 0.7);
}

static const struct {
    bool no_energy, vit;
    const char *name;
} form[] = {{false, false, "energy"}, {true, false, "free"}, {true, true, "free, ViT"}};
enum { FORMS = sizeof form / sizeof *form };

TEST(gradients) {
    for (int i = 0; i < FORMS; i++) {
        scene s;
        scene_open(&s, "ref", form[i].no_energy, form[i].vit);
        assert_true(!s.energy == form[i].no_energy);
        if (s.energy) lab_check_gradients(&s.lab, s.energy, 1e-6, form[i].name);
        lab_check_gradients(&s.lab, s.errors, 1e-6, form[i].name);
        lab_close(&s.lab);
    }
}

TEST(backends_agree) {
    for (int i = 0; i < FORMS; i++) {
        scene ref, cpu;
        scene_open(&ref, "ref", form[i].no_energy, form[i].vit);
        scene_open(&cpu, "cpu", form[i].no_energy, form[i].vit);
        basin_tensor a = lab_value(&ref.lab, ref.errors), b = lab_value(&cpu.lab, cpu.errors);
        basin_tensor f = lab_value(&ref.lab, ref.field), g = lab_value(&cpu.lab, cpu.field);
        lab_assert_near(&b, &a, 1e-5, form[i].name);
        lab_assert_near(&g, &f, 1e-5, form[i].name);
        basin_tensor_free(&a), basin_tensor_free(&b), basin_tensor_free(&f), basin_tensor_free(&g);
        lab_close(&ref.lab);
        lab_close(&cpu.lab);
    }
}

/* The quadratic part alone, every block silent: E = sum of curve x^2 / 2 + slope x. Sizes of
 * patches are cut from the same pixels: with memories alone that read the mean of a patch, the
 * energy of a picture of one colour is known. */
TEST(what_the_energy_is) {
    scene s;
    double zeros[256] = {0}, want = 0;
    scene_open(&s, "ref", false, false);
    for (int i = 0; i < 3; i++) {
        const basin_block *b = &s.match.scale[i].block;
        lab_set(&s.lab, b->xi, zeros);
        if (b->wk) lab_set(&s.lab, b->wk, zeros);
        assert_true(!b->wk == (i == 2)); /* of one token */
    }
    basin_tensor curve = lab_value(&s.lab, s.match.curve), slope = lab_value(&s.lab, s.match.slope);
    basin_tensor x = lab_value(&s.lab, s.x), energy = lab_value(&s.lab, s.energy);
    for (int i = 0; i < N * P; i++) {
        double v = basin_tensor_at(&x, i);
        want += v * (basin_tensor_at(&curve, i) * v / 2 + basin_tensor_at(&slope, i));
    }
    /* scores of 0: log-sum-exp of N - 1 keys for each of N queries and 2 heads, over beta */
    for (int i = 0; i < 2; i++) {
        int tokens = i ? 4 : N;
        want -= 2 * tokens * log(tokens - 1) * sqrt(3);
    }
    assert_float_equal(basin_tensor_at(&energy, 0), want, 1e-9);
    assert_true(s.match.scale[1].side == 3 && s.match.scale[2].side == 6);
    assert_float_equal(basin_match_speed(0.5), 1, 0);
    assert_float_equal(basin_match_speed(0.9), 0.5, 1e-12);
    assert_float_equal(basin_match_speed(1.5), 0, 0);
    basin_tensor_free(&curve), basin_tensor_free(&slope);
    basin_tensor_free(&x), basin_tensor_free(&energy);
    lab_close(&s.lab);
}
