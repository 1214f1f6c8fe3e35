/* A trainer that tells of gradients while it computes: each once, with the value it has in the end,
 * those of the last layer long before those of the first, and to the bits of a run that does not
 * tell. */
#include <string.h>

#include "support/lab.h"
#include "support/test.h"
#include "train/gradients.h"

enum { ROWS = 6, WIDTH = 5, LAYERS = 4 };

typedef struct rig {
    lab lab;
    basin_trainer trainer;
    double value[LAYERS]; /* of a gradient when it was told of */
    int order[LAYERS], told, pauses, pauses_at[LAYERS];
} rig;

static basin_status never(void *context, basin_store *store, const char *const *name, int count,
                          basin_error *error) {
    (void)context, (void)store, (void)name, (void)count;
    return basin_fail(error, BASIN_UNSUPPORTED, "no reduction here");
}

/* Layers of relu, and the mean square behind them. */
static void rig_open(rig *r, const char *backend) {
    static const basin_reduction reduction = {.sum = never};
    static const char *const name[LAYERS] = {"a", "b", "c", "d"};
    *r = (rig){0};
    lab_open(&r->lab, backend, 1);
    basin_expr x = basin_input(r->lab.graph, "x", BASIN_SHAPE(ROWS, WIDTH)), h = x;
    for (int i = 0; i < LAYERS; i++)
        h = basin_relu(basin_matmul(h, lab_state(&r->lab, name[i], BASIN_SHAPE(WIDTH, WIDTH))));
    lab_fill(&r->lab, 5, 1);
    basin_trainer_spec spec = {
        .adamw = BASIN_ADAMW_DEFAULT, .schedule = {1, 9, 0, 0.1, 0.1}, .reduction = &reduction};
    assert_ok(basin_trainer_new(&r->trainer, r->lab.store, &r->lab.params,
                                basin_mean_all(basin_square(h)), &spec, &failure));
    float numbers[ROWS * WIDTH];
    basin_random_fill_normal(numbers, 11, 0, 0, ROWS * WIDTH);
    basin_tensor tensor = basin_tensor_borrow(numbers, BASIN_F32, BASIN_SHAPE(ROWS, WIDTH));
    assert_ok(basin_plan_write(r->trainer.plan, x, &tensor, &failure));
}

static void rig_close(rig *r) {
    basin_trainer_free(&r->trainer);
    lab_close(&r->lab);
}

static double sum_of(rig *r, int i) {
    basin_tensor tensor;
    double sum = 0;
    assert_ok(basin_store_read(r->lab.store, basin_expr_name(r->trainer.gradients.param[i].state),
                               &tensor, &failure));
    for (int64_t k = 0; k < WIDTH * WIDTH; k++)
        sum += (double)(k + 1) * basin_tensor_at(&tensor, k);
    basin_tensor_free(&tensor);
    return sum;
}

static basin_status done(void *context, int state, basin_error *error) {
    rig *r = context;
    if (r->told == LAYERS) return basin_fail(error, BASIN_BAD_VALUE, "told too often");
    r->value[state] = sum_of(r, state);
    r->pauses_at[state] = r->pauses;
    r->order[r->told++] = state;
    return BASIN_OK;
}

static basin_status meanwhile(void *context, basin_error *error) {
    (void)error;
    ((rig *)context)->pauses++;
    return BASIN_OK;
}

TEST(gradients_are_told_as_they_come) {
    static const char *const backends[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++) {
        rig r, silent;
        rig_open(&r, backends[b]);
        rig_open(&silent, backends[b]);
        basin_plan_listener listener = {done, meanwhile, &r};
        assert_ok(basin_trainer_differentiate_telling(&r.trainer, &listener, &failure));
        assert_ok(basin_trainer_differentiate(&silent.trainer, &failure));
        assert_int_equal(r.told, LAYERS);
        for (int i = 0; i < LAYERS; i++) {
            if (b == 1) assert_int_equal(r.order[i], LAYERS - 1 - i); /* ref copies at the end */
            assert_true(r.value[i] == sum_of(&r, i));
            assert_true(r.value[i] == sum_of(&silent, i));
            assert_true(r.value[i] != 0);
        }
        if (b == 1) assert_true(r.pauses_at[0] > r.pauses_at[LAYERS - 1] + LAYERS - 2);
        rig_close(&r);
        rig_close(&silent);
    }
}

static basin_status refuse(void *context, int state, basin_error *error) {
    (void)context;
    return basin_fail(error, BASIN_IO, "cannot send %d", state);
}

TEST(a_listener_that_fails_ends_the_run) {
    BASIN_AT_EXIT(rig_close) rig r;
    basin_error error = {0};
    rig_open(&r, "cpu");
    basin_plan_listener listener = {refuse, meanwhile, &r};
    assert_int_equal(basin_trainer_differentiate_telling(&r.trainer, &listener, &error), BASIN_IO);
    assert_string_equal(error.text, "cannot send 3");
}
