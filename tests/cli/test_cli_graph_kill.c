/* basin graph train killed without warning, again and again, and resumed. */
#include "cli/kill.h"
#include "task/graphs/graph_world.h"

#define TRAIN                                                                                      \
    "graph train set.safetensors --dim 16 --heads 2 --head-dim 8 --memories 16 --blocks 1 "        \
    "--hidden 8 --walks 4 --edge-walks 2 --cache none --threads 1 -q --save-every 0.02 "

static int make_set(void **state) {
    char path[PATH_TEXT];
    basin_graphset set;
    if (folder_new(state)) return -1;
    world_new(&set, BASIN_GRAPHS_CLASSES, 60, 4, NULL);
    assert_ok(basin_graphset_write(folder_path(path, state, "set.safetensors"), &set, &failure));
    basin_graphset_free(&set);
    return 0;
}

TEST_WITH(killed_again_and_again, make_set, program_teardown) {
    survive_kills(state, TRAIN "--batch 4 --epochs 200", 3, 120, 1);
}

TEST_WITH(killed_without_validation, make_set, program_teardown) {
    survive_kills(state, TRAIN "--batch 4 --epochs 200 --validation 0", 3, 120, 1);
}

/* A write that a kill cut short leaves a file aside, which the next run removes. */
TEST_WITH(nothing_is_left_aside, make_set, program_teardown) {
    char path[PATH_TEXT];
    static const char *const left[] = {"m.safetensors.tmp-1-0", "m.safetensors.checkpoint.tmp-1-0"};
    for (int i = 0; i < 2; i++)
        assert_int_equal(file_put(folder_path(path, state, left[i]), "x", 1), 0);
    run_ok(state, TRAIN "--epochs 1 -o m.safetensors");
    assert_int_equal(folder_count(state), 2);
}

TEST_WITH(a_finished_run_is_left_alone, make_set, program_teardown) {
    run_ok(state, TRAIN "--epochs 1 -o m.safetensors --resume");
    const program *p = run_ok(state, TRAIN "--epochs 1 -o m.safetensors --resume");
    assert_contains(p->out, "m.safetensors: already finished; nothing to resume");
}
