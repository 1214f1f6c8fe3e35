/* Messages and sums of ranks. Alone it checks what needs no other; then it starts itself under
 * mpirun, as 1 to 5 ranks, which check the rest and end with 0. */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "basin/random.h"
#include "support/test.h"
#include "tasks/common/ranks/ranks.h"

enum { NUMBERS = 1003, SHARDS_MOST = 13 };

/* ---- what one process can check ---- */

TEST(shares_make_up_the_whole) {
    for (int64_t items = 0; items < 20; items++)
        for (int64_t count = 1; count < 8; count++) {
            int64_t next = 0;
            for (int64_t rank = 0; rank < count; rank++) {
                basin_ranks_share s = basin_ranks_deal_to(rank, count, items);
                assert_int_equal(s.first, next);
                next += s.count;
            }
            assert_int_equal(next, items);
        }
    assert_int_equal(basin_ranks_deal(NULL, 9).count, 9);
}

static float number(int64_t shard, int64_t i) {
    return (float)basin_random_uniform_at(7, (uint64_t)shard, (uint64_t)i) - 0.3f;
}

/* The tree as its definition has it. */
static float tree_sum(int64_t first, int64_t count, int64_t shards, int64_t i) {
    if (count == 1) return number(first, i);
    float left = tree_sum(first, count / 2, shards, i);
    if (first + count / 2 >= shards) return left;
    return left + tree_sum(first + count / 2, count / 2, shards, i);
}

static int64_t power_above(int64_t n) {
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
}

/* Whether the sums of `shards` shards are the tree's, twice, since a tree is used again. */
static bool sums_are_right(basin_ranks *ranks, int64_t shards) {
    basin_ranks_tree *tree;
    basin_error error;
    bool right = !basin_ranks_tree_new(&tree, ranks, shards, NUMBERS, NULL, NULL, &error);
    basin_ranks_share share = basin_ranks_deal(ranks, shards);
    for (int time = 0; time < 2 && right; time++) {
        float *sum;
        for (int64_t s = 0; s < share.count; s++) {
            float *to = basin_ranks_tree_next(tree);
            for (int64_t i = 0; i < NUMBERS; i++) to[i] = number(share.first + s, i);
            basin_ranks_tree_push(tree);
        }
        right = right && !basin_ranks_tree_sum(&sum, tree, &error);
        for (int64_t i = 0; i < NUMBERS && right; i++)
            right = sum[i] == tree_sum(0, power_above(shards), shards, i);
    }
    basin_ranks_tree_free(tree);
    return right;
}

TEST(sums_follow_the_tree) {
    for (int64_t shards = 1; shards <= SHARDS_MOST; shards++)
        assert_true(sums_are_right(NULL, shards));
}

TEST(a_tree_wants_all_its_shards) {
    basin_ranks_tree *tree;
    float *sum;
    assert_ok(basin_ranks_tree_new(&tree, NULL, 4, 1, NULL, NULL, &failure));
    basin_ranks_tree_next(tree)[0] = 1;
    basin_ranks_tree_push(tree);
    assert_says(basin_ranks_tree_sum(&sum, tree, &failure), BASIN_BAD_VALUE,
                "1 shards were pushed, needs 4");
    basin_ranks_tree_free(tree);
}

TEST(alone_is_one_rank) {
    int64_t numbers[2] = {3, 4};
    char all[4];
    bool value = true;
    basin_error error;
    assert_int_equal(basin_ranks_count(NULL), 1);
    assert_int_equal(basin_ranks_rank(NULL), 0);
    assert_ok(basin_ranks_barrier(NULL, &failure));
    assert_ok(basin_ranks_sum_integers(NULL, numbers, 2, &failure));
    assert_int_equal(numbers[1], 4);
    assert_ok(basin_ranks_gather(NULL, all, "abc", 4, &failure));
    assert_string_equal(all, "abc");
    assert_ok(basin_ranks_any(NULL, &value, &failure));
    assert_true(value);
    assert_int_equal(basin_ranks_agree(NULL, BASIN_IO, &error), BASIN_IO);
    basin_ranks_close(NULL);
}

/* ---- what ranks check ---- */

/* Every rank sends rank r so many bytes of its own letter, in two parts of different sizes. */
static bool messages_arrive(basin_ranks *ranks) {
    int64_t n = basin_ranks_count(ranks), self = basin_ranks_rank(ranks);
    char sent[300], got[8][2][300];
    basin_ranks_part send[16], receive[16];
    basin_error error;
    memset(sent, 'a' + (int)self, sizeof sent);
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < 2; k++) {
            send[2 * r + k] = (basin_ranks_part){sent, (size_t)(k * 200 + r), r};
            receive[2 * r + k] = (basin_ranks_part){got[r][k], (size_t)(k * 200 + self), r};
        }
    bool right = !basin_ranks_exchange(ranks, send, 2 * n, receive, 2 * n, &error);
    for (int64_t r = 0; r < n && right; r++) {
        right = self == 0 || (got[r][0][self - 1] == 'a' + (int)r);
        right = right && got[r][1][199 + self] == 'a' + (int)r;
    }
    return right;
}

static bool words_spread(basin_ranks *ranks) {
    int64_t n = basin_ranks_count(ranks), self = basin_ranks_rank(ranks);
    char word[8] = "";
    double sums[2] = {(double)self, 1};
    bool last = self == n - 1;
    basin_error error = {0};
    if (last) strcpy(word, "last");
    bool right = !basin_ranks_broadcast(ranks, word, sizeof word, n - 1, &error) &&
                 !strcmp(word, "last") && !basin_ranks_sum(ranks, sums, 2, &error) &&
                 sums[0] == (double)(n * (n - 1) / 2) && sums[1] == (double)n;
    right = right && !basin_ranks_any(ranks, &last, &error) && last;
    return right && !basin_ranks_barrier(ranks, &error);
}

/* The lowest rank that failed is named on all. */
static bool failures_are_agreed(basin_ranks *ranks) {
    int64_t n = basin_ranks_count(ranks), self = basin_ranks_rank(ranks);
    basin_error error = {0};
    char wanted[200];
    basin_status mine = BASIN_OK;
    if (basin_ranks_agree(ranks, mine, &error)) return false;
    if (self >= n / 2) mine = basin_fail(&error, BASIN_BAD_FILE, "bad at %lld", (long long)self);
    basin_status status = basin_ranks_agree(ranks, mine, &error);
    snprintf(wanted, sizeof wanted, "rank %lld on %s: bad at %lld", (long long)n / 2,
             basin_ranks_host(ranks), (long long)n / 2);
    return status == BASIN_BAD_FILE && (n == 1 || !strcmp(error.text, wanted));
}

static int be_a_rank(int64_t count) {
    basin_ranks *ranks;
    basin_error error = {0};
    if (basin_ranks_open(&ranks, &error)) return fprintf(stderr, "%s\n", error.text), 1;
    bool right = basin_ranks_count(ranks) == count && messages_arrive(ranks) &&
                 words_spread(ranks) && failures_are_agreed(ranks);
    for (int64_t shards = count; shards <= SHARDS_MOST && right; shards++)
        right = sums_are_right(ranks, shards);
    if (!right) fprintf(stderr, "rank %lld is wrong\n", (long long)basin_ranks_rank(ranks));
    basin_ranks_close(ranks);
    return right ? 0 : 1;
}

TEST(ranks_agree_with_the_tree) {
    char self[1000] = "", line[1600];
    if (system("command -v mpirun >/dev/null") != 0 || getenv("LD_PRELOAD")) skip();
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    if (strstr(self, "valgrind")) skip();
    for (int n = 1; n <= 5; n++) {
        snprintf(line, sizeof line,
                 "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" OMPI_ALLOW_RUN_AS_ROOT=1 "
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
                 "OMPI_MCA_hwloc_base_binding_policy=none timeout 60 mpirun -n %d '%s' %d",
                 n, self, n);
        int status = system(line);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("%d ranks failed", n);
    }
}

int main(int count, char **argument) {
    if (count == 2) return be_a_rank(atoi(argument[1]));
    return tests_run(NULL, NULL);
}
