/* Which nodes train, choose and judge: stratified splits, a pure function of seed and run, and
 * those that a file brings. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/random.h"
#include "data/network/network.h"

/* Cuts one class: the first `train` of a random order, then a third of the rest. */
static void cut_class(uint8_t *part, int64_t *node, int64_t count, double ratio, uint64_t seed,
                      uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    basin_random_shuffle(node, (size_t)count, &random);
    int64_t train = llround(ratio * (double)count);
    if (train < 1) train = 1;
    if (train > count) train = count;
    int64_t val = llround((double)(count - train) / 3);
    for (int64_t i = 0; i < count; i++)
        part[node[i]] = i < train         ? BASIN_PART_TRAIN
                        : i < train + val ? BASIN_PART_VAL
                                          : BASIN_PART_TEST;
}

basin_status basin_split_stratified(uint8_t *part, const basin_network *network, double ratio,
                                    uint64_t seed, uint64_t run, basin_error *error) {
    if (!(ratio > 0 && ratio < 1))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a training ratio of %g, wanted more than 0 and less than 1", ratio);
    int32_t most = basin_network_greatest_label(network);
    if (most < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no node has a label to split by",
                          network->path);
    int64_t *node = basin_array_new((size_t)network->nodes, sizeof *node);
    if (!node)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory to split %" PRId64 " nodes",
                          network->nodes);
    memset(part, BASIN_PART_NONE, (size_t)network->nodes);
    for (int32_t label = 0; label <= most; label++) {
        int64_t count = 0;
        for (int64_t i = 0; i < network->nodes; i++)
            if (network->label[i] == label) node[count++] = i;
        if (count) cut_class(part, node, count, ratio, seed, run << 16 | (uint64_t)(uint32_t)label);
    }
    free(node);
    return BASIN_OK;
}

basin_status basin_split_from_masks(uint8_t *part, const basin_network *network, int64_t split,
                                    basin_error *error) {
    if (!network->train)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no masks for training are in it",
                          network->path);
    if (split < 0 || split >= network->splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: split %" PRId64 ", wanted 0 to %" PRId64,
                          network->path, split, network->splits - 1);
    int64_t first = split * network->nodes;
    for (int64_t i = 0; i < network->nodes; i++) {
        bool train = network->train[first + i];
        bool val = network->val && network->val[first + i];
        bool test = network->test && network->test[first + i];
        if (train + val + test > 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: node %" PRId64 " is in two parts of split %" PRId64,
                              network->path, i, split);
        part[i] = train  ? BASIN_PART_TRAIN
                  : val  ? BASIN_PART_VAL
                  : test ? BASIN_PART_TEST
                         : BASIN_PART_NONE;
        if (!network->label || network->label[i] < 0) part[i] = BASIN_PART_NONE;
    }
    return BASIN_OK;
}

int64_t basin_split_nodes(int64_t *node, const uint8_t *part, int64_t nodes, int which) {
    int64_t count = 0;
    for (int64_t i = 0; i < nodes; i++)
        if (part[i] == which) {
            if (node) node[count] = i;
            count++;
        }
    return count;
}
