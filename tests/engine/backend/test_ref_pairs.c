/* Pairs and random draws on the reference backend: small cases by hand. */
#include "basin/random.h"
#include "engine/backend/rig.h"

static void add_list(rig *r) {
    rig_index(r, BASIN_SHAPE(4), INDICES(0, 2, 2, 3));
    rig_index(r, BASIN_SHAPE(4), INDICES(1, 0, 1, -9)); /* the last one is padding */
    for (int i = 0; i < 3; i++) rig_in_absent(r);
}

/* Three queries, two keys, two heads of width 1; pairs (0, 1), (0, 0), (2, 1). */
TEST(pairs) {
    rig r = rig_new(BASIN_OP_PAIR_DOT);
    rig_in(&r, BASIN_SHAPE(3, 2, 1), VALUES(1, 2, 3, 4, 5, 6));
    rig_in(&r, BASIN_SHAPE(2, 2, 1), VALUES(1, 10, 2, 20));
    add_list(&r);
    rig_out(&r, BASIN_SHAPE(4, 2));
    rig_expect(&r, VALUES(2, 40, 1, 20, 10, 120, 0, 0));

    r = rig_new(BASIN_OP_PAIR_SUM);
    rig_in(&r, BASIN_SHAPE(4, 2), VALUES(1, 2, 3, 4, 5, 6, 99, 99));
    rig_in(&r, BASIN_SHAPE(2, 2, 1), VALUES(1, 10, 2, 20));
    add_list(&r);
    rig_out(&r, BASIN_SHAPE(3, 2, 1));
    rig_expect(&r, VALUES(5, 80, 0, 0, 10, 120));

    r = rig_new(BASIN_OP_PAIR_SUM);
    r.call.attr.transpose_a = true;
    rig_in(&r, BASIN_SHAPE(4, 2), VALUES(1, 2, 3, 4, 5, 6, 99, 99));
    rig_in(&r, BASIN_SHAPE(3, 2, 1), VALUES(1, 2, 3, 4, 5, 6));
    add_list(&r);
    rig_out(&r, BASIN_SHAPE(2, 2, 1));
    rig_expect(&r, VALUES(3, 8, 26, 40));
}

TEST(pairs_of_wide_heads) {
    rig r = rig_new(BASIN_OP_PAIR_DOT);
    rig_in(&r, BASIN_SHAPE(1, 1, 3), VALUES(1, 2, 3));
    rig_in(&r, BASIN_SHAPE(1, 1, 3), VALUES(4, 5, 6));
    rig_index(&r, BASIN_SHAPE(2), INDICES(0, 1));
    rig_index(&r, BASIN_SHAPE(1), INDICES(0));
    rig_out(&r, BASIN_SHAPE(1, 1));
    rig_expect(&r, VALUES(32));
}

TEST(random_draws) {
    const uint64_t seed = 0x80000001fffffff2u;
    for (int uniform = 0; uniform < 2; uniform++) {
        double wanted[6];
        rig r = rig_new(uniform ? BASIN_OP_UNIFORM : BASIN_OP_NORMAL);
        r.call.attr.stream = 5;
        rig_index(&r, BASIN_SHAPE(2), INDICES(-14, INT32_MIN + 1)); /* the words of the seed */
        rig_out(&r, BASIN_SHAPE(2, 3));
        for (uint64_t i = 0; i < 6; i++)
            wanted[i] = uniform ? (double)basin_random_uniform_at(seed, 5, i)
                                : basin_random_normal_at(seed, 5, i);
        rig_run(&r);
        rig_check(&r, 0, wanted, 0);
        rig_free(&r);
    }
}
