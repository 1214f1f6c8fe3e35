/* Sets of graphs when memory is short: reading, positions, encodings, batches, folds. */
#include "support/alloc_fail.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/tiny_tu.h"

/* Everything between a folder and a batch. */
static basin_status scenario(void *context) {
    static const int64_t graph[] = {2, 0, 1};
    basin_graphset set = {0};
    basin_positions positions = {0};
    basin_graphset_encoding encoding = {0};
    basin_graphset_batch batch = {0};
    basin_folds folds = {0};
    float *walks = NULL;
    basin_position_options spec = {.vectors = 2, .walks = 2};
    basin_encoding_spec how = {.standardise = true, .degrees = 4};
    basin_status status = basin_graphset_read(&set, context, NULL, NULL);
    if (!status) status = basin_graphset_edge_walks(&walks, &set, 2, 0, set.graphs, NULL);
    if (!status) status = basin_positions_new(&positions, &set, &spec, 0, set.graphs, NULL);
    if (!status) status = basin_graphset_encoding_new(&encoding, &set, graph, 3, &how, NULL);
    if (!status)
        status = basin_graphset_batch_fill(&batch, &set, &encoding, &positions, graph, 3, true, 1,
                                           1, NULL);
    basin_folds_options split = {.count = 3, .folds = 3, .inner = 0.5, .seed = 1};
    split.class_of = set.class_of;
    if (!status) status = basin_folds_new(&folds, &split, NULL);
    basin_folds_free(&folds);
    free(walks);
    basin_graphset_batch_free(&batch);
    basin_graphset_encoding_free(&encoding);
    basin_positions_free(&positions);
    basin_graphset_free(&set);
    return status;
}

TEST_WITH(all_of_it, folder_new, folder_remove) {
    tiny_write(state, NULL, NULL);
    assert_true(alloc_fail_sweep(scenario, *state) > 40);
}

static basin_status molecules(void *context) {
    static const char *const text[] = {"c1ccc2[nH]ccc2c1", "[H]N(=O)=O", "C1CC"};
    basin_graphset set;
    (void)context;
    basin_status status =
        basin_graphset_read(&set, NULL, &(basin_graphset_options){.text = text, .count = 3}, NULL);
    basin_graphset_free(&set);
    return status;
}

TEST(molecules_of_smiles) { assert_true(alloc_fail_sweep(molecules, NULL) > 20); }
