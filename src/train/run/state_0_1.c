/* Checkpoints of 0.1: pictures kept the step alone, graphs a tensor of numbers by position,
 * detectors a few metadata; see state_0_1.h. */
#include "train/run/state_0_1.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const char NUMBERS[] = "run.numbers";

bool basin_run_is_numbers_0_1(const char *name) { return !strcmp(name, NUMBERS); }

static basin_status read_count(int64_t *value, const basin_bundle *bundle, const char *key,
                               basin_error *error) {
    const char *text = basin_bundle_meta(bundle, key);
    char *end = NULL;
    errno = 0;
    *value = text ? strtoll(text, &end, 10) : -1;
    if (text && !errno && end != text && !*end && *value >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s is '%.40s', wanted a number: not a checkpoint",
                      basin_bundle_path(bundle), key, text ? text : "absent");
}

/* [9]: epochs done, best epoch, its merit, items, accuracy, balanced accuracy, loss, deviation. */
static basin_status read_graphs(basin_run_state *s, const basin_bundle *bundle,
                                const basin_tensor *numbers, basin_error *error) {
    static const char *const name[] = {"validation_accuracy", "validation_balanced",
                                       "validation_loss", "validation_deviation"};
    double epoch = 0, best = 0;
    bool good = basin_shape_equal(numbers->shape, BASIN_SHAPE(9));
    if (good) epoch = basin_tensor_at(numbers, 0), best = basin_tensor_at(numbers, 1);
    if (!good || !(epoch >= 0 && epoch <= 0x1p53) || !(best >= 0 && best <= epoch))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is damaged", basin_bundle_path(bundle),
                          NUMBERS);
    s->epoch = (int64_t)epoch;
    s->best_epoch = (int64_t)best;
    s->best.merit = basin_tensor_at(numbers, 2);
    s->best.tie = -basin_tensor_at(numbers, 6);
    for (int i = 0; i < 4; i++) basin_score_add(&s->best, name[i], basin_tensor_at(numbers, 4 + i));
    return BASIN_OK;
}

/* "best_epoch epochs merit" of each finished member, by spaces. */
static basin_status read_members(basin_run_state *s, const basin_bundle *bundle,
                                 basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "members_done");
    for (int64_t m = 0; m < s->member; m++) {
        basin_run_member *how = &s->done[m];
        char *end = NULL;
        bool good = m < BASIN_MAX_MEMBERS && text && basin_integer_read(&how->best_epoch, &text) &&
                    basin_integer_read(&how->epochs, &text);
        if (good) how->merit = basin_real_read(text, &end);
        if (!good || end == text)
            return basin_fail(error, BASIN_BAD_FILE, "%s: members_done lacks member %lld",
                              basin_bundle_path(bundle), (long long)m);
        text = end;
    }
    return BASIN_OK;
}

static basin_status read_detector(basin_run_state *s, const basin_bundle *bundle,
                                  basin_error *error) {
    const char *best = basin_bundle_meta(bundle, "best");
    basin_status status = read_count(&s->member, bundle, "member", error);
    if (!status) status = read_count(&s->epoch, bundle, "epoch", error);
    if (!status) status = read_count(&s->best_epoch, bundle, "best_epoch", error);
    if (!status) s->best.merit = best ? basin_real_read(best, NULL) : NAN;
    s->best.tie = NAN;
    return status ? status : read_members(s, bundle, error);
}

basin_status basin_run_state_read_0_1(basin_run_state *state, const basin_bundle *bundle,
                                      int64_t steps, basin_error *error) {
    const basin_tensor *numbers = basin_bundle_find(bundle, NUMBERS);
    basin_status status = read_count(&state->step, bundle, "step", error);
    if (status) return status;
    if (numbers) return read_graphs(state, bundle, numbers, error);
    if (basin_bundle_meta(bundle, "members_done")) return read_detector(state, bundle, error);
    state->epoch = steps > 0 ? state->step / steps : 0;
    return BASIN_OK;
}
