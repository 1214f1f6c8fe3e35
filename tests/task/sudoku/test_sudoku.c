/* The Sudoku task: it learns a few boards, a cut run ends with the same bytes, whole boards are
 * counted exactly, the energy is the one that is written down, and it falls. */
#include <math.h>

#include "task/sudoku/sudoku_bench.h"

static void learns_a_few_boards(void **state, const char *tokens, int64_t epochs) {
    bench b;
    basin_error error;
    uint8_t answer[81];
    basin_sudoku_path path;
    bench_open(&b, state, "learnt", 4);
    if (!strcmp(tokens, "candidates")) bench_candidates(&b);
    b.s->dim = 24, b.s->memories = 64, b.s->epochs = epochs, b.s->batch = 4, b.s->average = 0;
    b.s->augment = false;
    basin_sudoku_model *model = bench_model(&b);
    for (int64_t i = 0; i < b.boards.count; i++) {
        must(basin_sudoku_descend(&path, model, b.boards.given + i * 81, 0, &error), &error);
        assert_int_equal(path.steps, 5);
        basin_sudoku_path_answer(answer, &path, path.steps);
        assert_true(basin_sudoku_solved(answer, b.boards.given + i * 81));
        assert_memory_equal(answer, b.boards.solution + i * 81, 81);
        basin_sudoku_path_free(&path);
    }
    basin_sudoku_close(model);
    bench_close(&b);
}

static void cells_learn(void **state) { learns_a_few_boards(state, "cells", 150); }
static void candidates_learn(void **state) { learns_a_few_boards(state, "candidates", 50); }

static char *slurp(size_t *size, const char *path) {
    static char text[1 << 17];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *size = fread(text, 1, sizeof text, file);
    assert_int_equal(fclose(file), 0);
    char *copy = malloc(*size);
    assert_non_null(copy);
    memcpy(copy, text, *size);
    return copy;
}

static void a_cut_run_ends_with_the_same_bytes(void **state) {
    bench whole, cut;
    bench_open(&whole, state, "whole", 7);
    bench_open(&cut, state, "cut", 7);
    whole.s->ahead = cut.s->ahead = 2, whole.s->reveal = cut.s->reveal = 0.5;
    basin_outcome a = bench_train(&whole, -1, false);
    assert_int_equal(a.steps, 12); /* 3 batches of 2 an epoch */
    const int64_t stops[] = {2, 7};
    for (int i = 0; i < 2; i++) assert_true(bench_train(&cut, stops[i], i > 0).stopped);
    basin_outcome o = bench_train(&cut, -1, true);
    assert_true(o.resumed && !o.stopped && o.loss == a.loss);
    size_t sizes[2];
    char *one = slurp(&sizes[0], whole.out), *two = slurp(&sizes[1], cut.out);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(one, two, sizes[0]);
    free(one);
    free(two);
    assert_true(bench_train(&cut, -1, true).finished_before);
    bench_close(&whole);
    bench_close(&cut);
}

/* As many boards, but others. */
static void a_run_goes_on_with_its_boards(void **state) {
    bench b;
    basin_error error = {0};
    basin_outcome outcome;
    bench_open(&b, state, "boards", 7);
    assert_true(bench_train(&b, 2, false).stopped);
    uint8_t *cell = b.boards.given;
    while (!*cell) cell++;
    *cell = 0;
    b.training.resume = true;
    assert_int_equal(basin_sudoku_train(NULL, &outcome, b.settings, &b.data, &b.training, &error),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "its run trains on other boards than these"));
    bench_close(&b);
}

/* Boards that have their solution after `most` steps or sooner. */
static int64_t solved_by(basin_sudoku_model *model, const bench *b, int64_t most) {
    int64_t solved = 0;
    for (int64_t i = 0; i < b->boards.count; i++) {
        basin_error error;
        uint8_t answer[81];
        basin_sudoku_path path;
        bool found = false;
        must(basin_sudoku_descend(&path, model, b->boards.given + i * 81, most, &error), &error);
        for (int64_t t = 0; t <= most; t++) {
            basin_sudoku_path_answer(answer, &path, t);
            found = found || basin_sudoku_solved(answer, b->boards.given + i * 81);
        }
        solved += found;
        basin_sudoku_path_free(&path);
    }
    return solved;
}

static void boards_are_counted_exactly(void **state) {
    bench b;
    basin_error error;
    basin_sudoku_scores s, other;
    bench_open(&b, state, "counted", 9);
    bench_candidates(&b);
    b.s->epochs = 20, b.s->alpha = 0.5;
    basin_sudoku_model *model = bench_model(&b);
    basin_sudoku_scoring how = {.size = sizeof how, .boards = &b.boards, .steps = {1, 5, 12}};
    must(basin_sudoku_score(&s, model, &how, &error), &error);
    how.batch = 4; /* the last batch is short */
    must(basin_sudoku_score(&other, model, &how, &error), &error);
    assert_int_equal(s.rows, 3);
    for (int r = 0; r < s.rows; r++) {
        int64_t solved = 0, right = 0, empty = 0, by_givens = 0;
        double energy = 0;
        for (int64_t i = 0; i < b.boards.count; i++) {
            const uint8_t *given = b.boards.given + i * 81, *wanted = b.boards.solution + i * 81;
            uint8_t answer[81];
            basin_sudoku_path path;
            must(basin_sudoku_descend(&path, model, given, 12, &error), &error);
            basin_sudoku_path_answer(answer, &path, how.steps[r]);
            solved += !memcmp(answer, wanted, 81);
            energy += basin_sudoku_path_energy(&path, how.steps[r]) / 9;
            for (int k = 0; k < 81; k++)
                if (!given[k]) empty++, right += answer[k] == wanted[k];
            basin_sudoku_path_free(&path);
        }
        for (int n = 0; n <= 81; n++) by_givens += s.row[r].by_givens[n];
        assert_int_equal(s.row[r].solved, solved);
        assert_int_equal(by_givens, solved);
        assert_int_equal(s.row[r].right, right);
        assert_int_equal(s.empty, empty);
        assert_int_equal(other.row[r].solved, solved);
        assert_int_equal(other.row[r].right, right);
        assert_true(fabs(s.row[r].energy - energy) < 1e-4 * fabs(energy));
    }
    how.steps[2] = 60; /* so many steps lose answers again */
    must(basin_sudoku_score(&s, model, &how, &error), &error);
    how.stop = true;
    must(basin_sudoku_score(&other, model, &how, &error), &error);
    for (int r = 0; r < s.rows; r++)
        assert_int_equal(other.row[r].solved, solved_by(model, &b, s.row[r].steps));
#if defined(__x86_64__) /* so that stopping shows; what a model learns differs by the rounding */
    assert_true(s.row[1].solved > 0 && other.row[2].solved > s.row[2].solved);
#endif
    b.boards.solutions[3] = 2;
    assert_int_equal(basin_sudoku_score(&s, model, &how, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "board 3 has several solutions"));
    how.steps[2] = 5;
    assert_int_equal(basin_sudoku_score(&s, model, &how, &error), BASIN_BAD_VALUE);
    basin_sudoku_close(model);
    bench_close(&b);
}

/* ---- the energy ---- */

enum { D = 6, H = 2, Y = 3 };

static double at(basin_sudoku_model *model, const char *name, int64_t i) {
    basin_error error;
    basin_tensor tensor;
    must(basin_store_read(model->store, name, &tensor, &error), &error);
    double value = basin_tensor_at(&tensor, i);
    basin_tensor_free(&tensor);
    return value;
}

/* What token k of a board is: the digit that a cell shows, or whether a candidate is open (0), true
 * or false. */
static int kind_of(const uint8_t *given, int k, int digits) {
    int shown = given[k / digits];
    return digits == 1 || shown == 0 ? shown : shown == k % digits + 1 ? 1 : 2;
}

/* g [81 digits, D] of a board's first tokens, with gamma 1 and delta 0. */
static void first_tokens(double (*g)[D], double (*u)[D], basin_sudoku_model *model,
                         const uint8_t *given, int digits) {
    double digit[10][D];
    int kinds = digits == 1 ? 10 : 3;
    for (int i = 0; i < kinds * D; i++) digit[i / D][i % D] = at(model, "digit", i);
    for (int k = 0; k < 81 * digits; k++) {
        double mean = 0, square = 0;
        for (int d = 0; d < D; d++) {
            u[k][d] = digit[kind_of(given, k, digits)][d];
            mean += u[k][d] / D;
        }
        for (int d = 0; d < D; d++) square += (u[k][d] - mean) * (u[k][d] - mean) / D;
        for (int d = 0; d < D; d++) g[k][d] = (u[k][d] - mean) / sqrt(square + 1e-5);
    }
}

/* -(1 / beta) log sum over the other cells of a house of exp(beta K . Q); the last `repel` heads
 * have the opposite sign */
static double attention_of(double g[81][D], basin_sudoku_model *model, int repel) {
    double wq[H * Y][D], wk[H * Y][D], q[81][H * Y], k[81][H * Y], sum = 0, beta = 1 / sqrt(Y);
    for (int i = 0; i < H * Y * D; i++) {
        wq[i / D][i % D] = at(model, "block.wq", i);
        wk[i / D][i % D] = at(model, "block.wk", i);
    }
    for (int c = 0; c < 81; c++)
        for (int i = 0; i < H * Y; i++) {
            q[c][i] = k[c][i] = 0;
            for (int d = 0; d < D; d++) {
                q[c][i] += wq[i][d] * g[c][d];
                k[c][i] += wk[i][d] * g[c][d];
            }
        }
    for (int house = 0; house < 27; house++)
        for (int h = 0; h < H; h++)
            for (int a = 0; a < 9; a++) {
                double all = 0;
                for (int b = 0; b < 9; b++) {
                    double dot = 0;
                    for (int y = 0; y < Y; y++)
                        dot += q[basin_sudoku_house_cell(house, a)][h * Y + y] *
                               k[basin_sudoku_house_cell(house, b)][h * Y + y];
                    if (a != b) all += exp(beta * dot);
                }
                sum -= (h < H - repel ? 1 : -1) * log(all) / beta;
            }
    return sum;
}

/* -relu(zeta . s)^2 / 2 of the sums s over houses, a third of them */
static double houses_of(double g[81][D], basin_sudoku_model *model, int memories) {
    double sum = 0;
    for (int m = 0; m < memories; m++)
        for (int house = 0; house < 27; house++) {
            double dot = 0;
            for (int d = 0; d < D; d++)
                for (int a = 0; a < 9; a++)
                    dot +=
                        at(model, "zeta", m * D + d) * g[basin_sudoku_house_cell(house, a)][d] / 3;
            if (dot > 0) sum -= dot * dot / 2;
        }
    return sum;
}

/* Token number `a` of a house: 27 of cells, 324 of candidates. */
static int member(int house, int a, int digits) {
    if (digits == 1) return basin_sudoku_house_cell(house, a);
    if (house >= 243) return (house - 243) * 9 + a;
    return basin_sudoku_house_cell(house / 9, a) * 9 + house % 9;
}

/* -s relu(eta . g + zeta . s)^2 / 2 of every token and its house; s is 1 for the first of two
 * memories, -1 for the second */
static double members_of(double (*g)[D], basin_sudoku_model *model, int digits) {
    double eta[2][D], zeta[2][D], sum = 0;
    for (int i = 0; i < 2 * D; i++) {
        eta[i / D][i % D] = at(model, "eta", i);
        zeta[i / D][i % D] = at(model, "zeta", i);
    }
    for (int m = 0; m < 2; m++)
        for (int house = 0; house < (digits == 1 ? 27 : 324); house++) {
            double whole = 0;
            for (int i = 0; i < 9 * D; i++)
                whole += zeta[m][i % D] * g[member(house, i / D, digits)][i % D] / 3;
            for (int a = 0; a < 9; a++) {
                double h = whole;
                for (int d = 0; d < D; d++) h += eta[m][d] * g[member(house, a, digits)][d];
                if (h > 0) sum -= (m == 0 ? 1 : -1) * h * h / 2;
            }
        }
    return sum;
}

static void check_members(void **state, int digits) {
    static double g[729][D], u[729][D];
    bench b;
    basin_error error;
    basin_sudoku_path path;
    bench_open(&b, state, "members", 2);
    if (digits == 9) bench_candidates(&b);
    b.s->dim = D, b.s->attention = b.s->hopfield = false, b.s->rate = 0, b.s->decay = 0;
    b.s->epochs = 1, b.s->house_memories = 2, b.s->house_members = true;
    basin_sudoku_model *model = bench_model(&b);
    must(basin_sudoku_descend(&path, model, b.boards.given, 3, &error), &error);
    first_tokens(g, u, model, b.boards.given, digits);
    double wanted = members_of(g, model, digits);
    assert_int_equal(path.parts, 2);
    assert_string_equal(path.part[0], "houses");
    assert_true(fabs(path.energy[0] - wanted) < 1e-4 * fabs(wanted));
    basin_sudoku_path_free(&path);
    basin_sudoku_close(model);
    bench_close(&b);
}

static void members_are_as_written(void **state) {
    check_members(state, 1);
    check_members(state, 9);
}

static void check_energy(void **state, int repel) {
    bench b;
    basin_error error;
    basin_sudoku_path path;
    double g[81][D], u[81][D], givens = 0;
    bench_open(&b, state, "energy", 2);
    b.s->dim = D, b.s->heads = H, b.s->head_dim = Y, b.s->hopfield = false, b.s->rate = 0;
    b.s->decay = 0, b.s->epochs = 1, b.s->house_memories = 2, b.s->repel = repel;
    basin_sudoku_model *model = bench_model(&b);
    must(basin_sudoku_descend(&path, model, b.boards.given, 3, &error), &error);
    first_tokens(g, u, model, b.boards.given, 1);
    for (int i = 0; i < 81 * D; i++) givens -= u[i / D][i % D] * g[i / D][i % D];
    double attention = attention_of(g, model, repel), houses = houses_of(g, model, 2);
    assert_int_equal(path.parts, 3);
    assert_string_equal(path.part[0], "attention");
    assert_string_equal(path.part[1], "houses");
    assert_string_equal(path.part[2], "givens");
    assert_true(fabs(path.energy[0] - attention) < 1e-4 * fabs(attention));
    assert_true(fabs(path.energy[1] - houses) < 1e-4 * fabs(houses));
    assert_true(fabs(path.energy[2] - givens) < 1e-4 * fabs(givens));
    basin_sudoku_path_free(&path);
    basin_sudoku_close(model);
    bench_close(&b);
}

static void the_energy_is_as_written(void **state) {
    check_energy(state, 0);
    check_energy(state, 1);
}

/* In small steps, whatever the kind of pairs, with and without the leak. */
static void the_energy_falls(void **state) {
    for (int kind = 0; kind < 8; kind++) {
        bench b;
        basin_error error;
        basin_sudoku_path path;
        bench_open(&b, state, "falls", 2);
        b.s->alpha = 0.02, b.s->epochs = 3, b.s->leak = kind & 1;
        if (kind == 2 || kind == 3) b.s->pairs = "all", b.s->places = true;
        if (kind == 4) b.s->attention = false, b.s->house_memories = 12;
        if (kind > 4) bench_candidates(&b), b.s->house_memories = 12;
        if (kind == 7) b.s->house_members = false;
        basin_sudoku_model *model = bench_model(&b);
        must(basin_sudoku_descend(&path, model, b.boards.given, 40, &error), &error);
        for (int64_t t = 0; t < path.steps; t++) {
            double now = basin_sudoku_path_energy(&path, t);
            assert_true(basin_sudoku_path_energy(&path, t + 1) <= now + 1e-6 * fabs(now));
        }
        assert_true(basin_sudoku_path_energy(&path, 40) < basin_sudoku_path_energy(&path, 0) - 1);
        basin_sudoku_path_free(&path);
        basin_sudoku_close(model);
        bench_close(&b);
    }
}

/* Hyper-SET begins as the identity; trained, its tokens move, and a board's do not depend on the
 * others of its batch. */
static void hyperset_trains(void **state) {
    for (int trained = 0; trained < 2; trained++) {
        bench b;
        basin_error error;
        basin_sudoku_path path;
        basin_sudoku_scores one, all;
        bench_open(&b, state, "hyperset", 4);
        b.s->arch = "hyperset", b.s->places = true, b.s->epochs = trained ? 30 : 1;
        b.s->supervise = 1, b.s->average = 0, b.s->rate = b.s->rate_last = trained ? 1e-2 : 0;
        basin_sudoku_model *model = bench_model(&b);
        must(basin_sudoku_descend(&path, model, b.boards.given, 5, &error), &error);
        assert_int_equal(path.parts, 2);
        assert_string_equal(path.part[1], "feed-forward");
        bool moved = memcmp(path.probability, path.probability + 5 * 81 * 9, 81 * 9 * 4) != 0;
        assert_int_equal(moved, trained);
        basin_sudoku_path_free(&path);
        basin_sudoku_scoring how = {.size = sizeof how, .boards = &b.boards, .batch = 1};
        must(basin_sudoku_score(&one, model, &how, &error), &error);
        how.batch = 4;
        must(basin_sudoku_score(&all, model, &how, &error), &error);
        assert_int_equal(one.row[0].right, all.row[0].right);
        assert_true(fabs(one.row[0].energy - all.row[0].energy) < 1e-4 * fabs(all.row[0].energy));
        basin_sudoku_close(model);
        bench_close(&b);
    }
}

/* ---- files, and what is refused ---- */

static void a_file_gives_the_same_model(void **state) {
    bench b;
    basin_error error;
    basin_sudoku_path one, two;
    basin_sudoku_model *again;
    char text[64];
    bench_open(&b, state, "file", 2);
    basin_sudoku_model *model = bench_model(&b);
    must(basin_sudoku_write(b.out, model, &error), &error);
    must(basin_sudoku_open(&again, b.out, b.training.backend, &error), &error);
    assert_int_equal(basin_sudoku_parameters(again), basin_sudoku_parameters(model));
    must(basin_settings_get(text, sizeof text, basin_sudoku_get_settings(again), "dim", &error),
         &error);
    assert_string_equal(text, "16");
    must(basin_sudoku_descend(&one, model, b.boards.given, 4, &error), &error);
    must(basin_sudoku_descend(&two, again, b.boards.given, 4, &error), &error);
    assert_memory_equal(one.probability, two.probability, 5 * 81 * 9 * sizeof(float));
    basin_sudoku_path_free(&one);
    basin_sudoku_path_free(&two);
    assert_int_equal(basin_sudoku_descend(&one, model, b.boards.given, -1, &error),
                     BASIN_BAD_VALUE);
    basin_sudoku_close(again);
    basin_sudoku_close(model);
    bench_close(&b);
}

static void refused(bench *b, const char *wanted) {
    basin_error error;
    basin_outcome outcome;
    assert_int_not_equal(
        basin_sudoku_train(NULL, &outcome, b->settings, &b->data, &b->training, &error), BASIN_OK);
    if (!strstr(error.text, wanted)) fail_msg("'%s' has no '%s'", error.text, wanted);
}

static void wrong_input_has_its_own_line(void **state) {
    bench b;
    basin_error error;
    basin_sudoku_model *model;
    bench_open(&b, state, "wrong", 3);
    b.s->batch = 4;
    refused(&b, "batch is 4, wanted at most 3");
    b.s->batch = 2, b.s->supervise = 6;
    refused(&b, "supervise is 6, wanted at most 5");
    b.s->supervise = 0, b.s->pairs = "all";
    refused(&b, "places is off");
    b.s->pairs = "houses", b.s->attention = false, b.s->house_memories = 0;
    refused(&b, "no cell would see another");
    b.s->house_members = true, b.s->attention = true;
    refused(&b, "house_members is on and house_memories is 0");
    b.s->house_memories = 2, b.s->tokens = "candidates";
    refused(&b, "tokens is candidates and attention is on");
    b.s->house_memories = 0, b.s->house_members = false, b.s->tokens = "cells";
    b.boards.solutions[1] = 0;
    refused(&b, "training board 1 has no solution");
    b.s->arch = "hyperset", b.s->places = true, b.s->heads = 3;
    refused(&b, "3 heads of 8, wanted 16");
    b.s->heads = 2, b.s->ahead = 1;
    refused(&b, "ahead is 1, wanted 0");
    b.s->arch = "et", b.s->ahead = 0;
    b.boards.solutions[1] = 1, b.data.validation = NULL, b.s->patience = 2;
    refused(&b, "patience is 2");
    assert_int_equal(file_put(b.out, "no model", 8), 0);
    assert_int_not_equal(basin_sudoku_open(&model, b.out, b.training.backend, &error), BASIN_OK);
    assert_null(model);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_learn),
        cmocka_unit_test(candidates_learn),
        cmocka_unit_test(a_cut_run_ends_with_the_same_bytes),
        cmocka_unit_test(a_run_goes_on_with_its_boards),
        cmocka_unit_test(boards_are_counted_exactly),
        cmocka_unit_test(the_energy_is_as_written),
        cmocka_unit_test(members_are_as_written),
        cmocka_unit_test(the_energy_falls),
        cmocka_unit_test(hyperset_trains),
        cmocka_unit_test(a_file_gives_the_same_model),
        cmocka_unit_test(wrong_input_has_its_own_line),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
