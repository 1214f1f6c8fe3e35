/* The vector exp against the C library's in double, and its edges. */
#include "engine/backend/cpu/simd/vector_math.h"
#include "support/test.h"

static float exp_of(float x) {
    float lane[VECTOR_LANES];
    vector_store(lane, vector_exp(vector_all(x)));
    return lane[VECTOR_LANES - 1];
}

TEST(test_exp_accuracy) {
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        float x = -87.3f + 176.0f * (float)i / 400000;
        double want = exp((double)x), error = fabs(exp_of(x) - want) / want;
        if (error > worst) worst = error;
    }
    print_message("exp: worst relative error %.3g\n", worst);
    assert_true(worst < 2e-7);
}

TEST(test_exp_edges) {
    assert_true(exp_of(0) == 1);
    assert_true(exp_of(-88) == 0 && exp_of(-1e4f) == 0 && exp_of(-INFINITY) == 0);
    assert_true(isinf(exp_of(89)) && isinf(exp_of(1e4f)) && isinf(exp_of(INFINITY)));
    assert_true(isfinite(exp_of(88.72f)));
    assert_true(isnan(exp_of(NAN)));
}

TEST(test_reductions) {
    float x[VECTOR_LANES + 1];
    for (int i = 0; i <= VECTOR_LANES; i++) x[i] = (float)(i % 3) - 5;
    float sum = 0, most = x[0];
    for (int i = 0; i < VECTOR_LANES; i++) {
        sum += x[i];
        most = x[i] > most ? x[i] : most;
    }
    assert_true(vector_sum(vector_load(x)) == sum);
    assert_true(vector_largest(vector_load(x)) == most);
    assert_true(vector_sum(vector_load_part(x, 2, 0)) == x[0] + x[1]);
    vector_store_part(x, vector_all(7), 1);
    assert_true(x[0] == 7 && x[1] == -4);
    assert_true(vector_largest(vector_max(vector_all(1), vector_all(2))) == 2);
}
