/* Random numbers: the published vectors of Philox, the contract of element addresses, and the
 * distribution of what is made from them. */
#include <math.h>

#include "basin/random.h"
#include "engine/core/philox.h"
#include "support/test.h"

/* The known answers that come with Random123 (kat_vectors, philox4x32 10). */
TEST(known_answers) {
    static const uint32_t vectors[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint32_t out[4];
        basin_philox(out, vectors[i], vectors[i] + 4);
        assert_memory_equal(out, vectors[i] + 6, sizeof out);
    }
}

TEST(element_addresses) {
    uint64_t seed = 0x299f31d0a4093822, stream = 0x0370734413198a2e, call = 0x05a308d3243f6a88;
    uint32_t counter[4] = {0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344}, out[4];
    basin_philox(out, counter, (uint32_t[]){0xa4093822, 0x299f31d0});
    for (unsigned lane = 0; lane < 4; lane++)
        assert_int_equal(basin_random_word_at(seed, stream, 4 * call + lane), out[lane]);
    assert_int_equal(basin_random_word_at(0, 0, 2), 0xbc57ac4c);
    assert_true(basin_random_uniform_at(0, 0, 1) == (float)(0xe169c58d >> 8) / 16777216.0f);
}

TEST(fill_equals_elements) {
    enum { MOST = 300 };
    float single[MOST];
    double wide[MOST];
    for (uint64_t first = 0; first < 9; first++)
        for (size_t count = 0; count < MOST; count += 1 + count / 3) {
            uint64_t start = first + (first == 8 ? ((uint64_t)1 << 34) - 70 : 0);
            basin_random_fill_uniform(single, 7, 3, start, count);
            for (size_t i = 0; i < count; i++)
                assert_true(single[i] == basin_random_uniform_at(7, 3, start + i));
            basin_random_fill_normal(single, 7, 3, start, count);
            basin_random_fill_normal_f64(wide, 7, 3, start, count);
            for (size_t i = 0; i < count; i++) {
                assert_true(wide[i] == basin_random_normal_at(7, 3, start + i));
                assert_true(single[i] == (float)wide[i]);
            }
        }
}

/* The library's own polynomials against libm, at random words and at the ends of the range. */
TEST(normals_are_box_muller) {
    double worst = 0;
    for (uint64_t k = 0; k < 20000; k++) {
        double a = basin_random_word_at(1, 2, 2 * k), b = basin_random_word_at(1, 2, 2 * k + 1);
        double radius = sqrt(-2 * log((a + 1) * 0x1p-32)), angle = 2 * acos(-1.0) * b * 0x1p-32;
        double even = basin_random_normal_at(1, 2, 2 * k) - radius * cos(angle);
        double odd = basin_random_normal_at(1, 2, 2 * k + 1) - radius * sin(angle);
        worst = fmax(worst, fmax(fabs(even), fabs(odd)));
    }
    assert_true(worst < 4e-15);
}

/* Bits, not tolerances: these must hold on every machine, compiler and backend. */
TEST(normals_are_the_same_everywhere) {
    uint64_t digest = 0xcbf29ce484222325;
    for (uint64_t i = 0; i < 100000; i++) {
        double value = basin_random_normal_at(2024, 5, i);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        digest = (digest ^ bits) * 0x100000001b3;
    }
    assert_int_equal(digest, 0x2dc15987c4143390);
}

TEST(distributions) {
    enum { COUNT = 200000 };
    static double values[COUNT];
    double mean = 0, square = 0, fourth = 0;
    basin_random_fill_normal_f64(values, 11, 0, 0, COUNT);
    for (int i = 0; i < COUNT; i++) {
        mean += values[i] / COUNT;
        square += values[i] * values[i] / COUNT;
        fourth += pow(values[i], 4) / COUNT;
    }
    assert_true(fabs(mean) < 0.01 && fabs(square - 1) < 0.02 && fabs(fourth - 3) < 0.15);

    int bin[64] = {0};
    double chi2 = 0;
    for (int i = 0; i < COUNT; i++) {
        values[i] = basin_random_uniform_at(11, 1, (uint64_t)i);
        assert_true(values[i] >= 0 && values[i] < 1);
        bin[(int)(values[i] * 64)]++;
    }
    for (int i = 0; i < 64; i++) chi2 += pow(bin[i] - COUNT / 64.0, 2) / (COUNT / 64.0);
    assert_true(chi2 < 110); /* 63 degrees of freedom: exceeded once in 5000 seeds */
}

TEST(streams_and_seeds_differ) {
    uint32_t word = basin_random_word_at(1, 1, 0);
    assert_int_not_equal(word, basin_random_word_at(2, 1, 0));
    assert_int_not_equal(word, basin_random_word_at(1, 2, 0));
    assert_int_not_equal(word, basin_random_word_at(1 + ((uint64_t)1 << 32), 1, 0));
    assert_int_not_equal(word, basin_random_word_at(1, 1 + ((uint64_t)1 << 32), 0));
}

TEST(reader_goes_on_where_it_stopped) {
    basin_random random = basin_random_start(5, 6, 0);
    for (uint64_t i = 0; i < 21; i++) {
        basin_random resumed = basin_random_start(5, 6, i);
        assert_int_equal(basin_random_next(&resumed), basin_random_word_at(5, 6, i));
        assert_int_equal(basin_random_next(&random), basin_random_word_at(5, 6, i));
    }
}

TEST(integers_below) {
    basin_random random = basin_random_start(3, 0, 0);
    int bin[7] = {0};
    double chi2 = 0;
    for (int i = 0; i < 70000; i++) bin[basin_random_below(&random, 7)]++;
    for (int i = 0; i < 7; i++) chi2 += pow(bin[i] - 10000.0, 2) / 10000.0;
    assert_true(chi2 < 25);
    assert_int_equal(basin_random_below(&random, 0), 0);
    assert_int_equal(basin_random_below(&random, 1), 0);
    /* n = 3 * 2^62: a plain remainder would put half of all draws into the lowest third */
    int low = 0;
    for (int i = 0; i < 3000; i++)
        low += basin_random_below(&random, (uint64_t)3 << 62) < (uint64_t)1 << 62;
    assert_in_range(low, 850, 1150);
}

TEST(shuffles) {
    enum { N = 1000 };
    int64_t order[N], again[N], seen[N] = {0};
    basin_random_permutation(order, N, 9, 1);
    basin_random_permutation(again, N, 9, 1);
    assert_memory_equal(order, again, sizeof order);
    for (int i = 0; i < N; i++) seen[order[i]]++;
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);

    int count[6] = {0}; /* each of the 3! orders */
    for (uint64_t stream = 0; stream < 6000; stream++) {
        basin_random_permutation(order, 3, 4, stream);
        count[2 * order[0] + (order[1] > order[2])]++;
    }
    for (int i = 0; i < 6; i++) assert_in_range(count[i], 850, 1150);
    basin_random_permutation(NULL, 0, 4, 0);
}
