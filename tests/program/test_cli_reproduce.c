/* basin reproduce: each command that trains, on one and two threads; data that changed. */
#include "program/accounts.h"

#include "base/bundle.h"
#include "support/xgboost.h"

#define FILES BASIN_SOURCE "/tests/files/"

/* The smallest of each task, with options of the command's own and a setting. */
static const struct {
    const char *train, *data;
} task[] = {
    {"image train --size 8 --channels 1 --patch 4 --dim 8 --heads 1 --head-dim 8 --memories 8 "
     "--steps 2 --occlude 2 "
     "--keep 0 --batch 8 --epochs 2 --warmup 0 --hold-out 5 --seed 3",
     "shapes:32"},
    {"graph train --dim 8 --heads 1 --head-dim 4 --memories 8 --blocks 1 --epochs 2 --batch 8 "
     "--validation 0.2",
     FILES "rings"},
    {"anomaly train --dim 8 --heads 1 --head-dim 4 --memories 8 --blocks 1 --hidden 8 --epochs 2 "
     "--trees 3 --validation 0.25 "
     "--threshold-for recall=0.8",
     FILES "accounts.basin"},
    {"node train --dim 8 --heads 1 --head-dim 4 --memories 8 --blocks 1 --hidden 8 --epochs 2 "
     "--ratio 0.5",
     FILES "accounts.basin"},
};

TEST_WITH(models_of_all_tasks_are_reproduced, folder_new, program_teardown) {
    bool trees = has_xgboost();
    for (size_t i = 0; i < sizeof task / sizeof *task; i++) {
        if (i == 2 && !trees) continue;
        run_ok(state, "%s %s --threads 1 -q -o model.safetensors", task[i].train, task[i].data);
        cJSON *got = run_json(
            run(state, "reproduce model.safetensors %s --threads 2 -q --json", task[i].data));
        assert_true(cJSON_IsTrue(json_at(got, "equal")));
        assert_true(json_number(got, "tensors") > 8);
    }
    run_ok(state, "reproduce model.safetensors %s --threads 1 -q", task[3].data);
}

TEST_WITH(another_run_is_not_the_same, folder_new, program_teardown) {
    run_ok(state, "%s %s -q -o model.safetensors", task[1].train, task[1].data);
    run_ok(state, "%s %s -q -o parent.safetensors --seed 8", task[1].train, task[1].data);
    run_ok(state, "%s %s -q -o child.safetensors --from parent.safetensors", task[1].train,
           task[1].data);
    run_ok(state, "reproduce child.safetensors %s -q", task[1].data);
    char line[PATH_TEXT + 100];
    snprintf(line, sizeof line, "cp '%s/model.safetensors' '%s/parent.safetensors'", (char *)*state,
             (char *)*state);
    assert_int_equal(system(line), 0);
    assert_error(run(state, "reproduce child.safetensors %s -q", task[1].data), 1,
                 "--from=parent.safetensors");
#if defined(__x86_64__)
    /* A portable build of the same kernels rounds in another order; on arm64 it may not. */
    setenv("BASIN_ISA", "portable", 1);
    const program *p = run(state, "reproduce model.safetensors %s", task[1].data);
    unsetenv("BASIN_ISA");
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "this is machine portable");
    assert_contains(p->out, "NOT reproduced");
#endif
}

TEST_WITH(other_data_are_refused, folder_new, program_teardown) {
    char line[3 * PATH_TEXT];
    snprintf(line, sizeof line, "cp -r " FILES "rings '%s/rings' && chmod -R u+w '%s/rings'",
             (char *)*state, (char *)*state);
    assert_int_equal(system(line), 0);
    run_ok(state, "%s rings -q -o model.safetensors", task[1].train);
    run_ok(state, "reproduce model.safetensors " FILES "rings -q");
    snprintf(line, sizeof line, "echo >>'%s/rings/rings_A.txt'", (char *)*state);
    assert_int_equal(system(line), 0);
    const program *p = run_ok(state, "%s rings -q -o model.safetensors --resume", task[1].train);
    assert_contains(p->err, "model.safetensors was trained on other data");
    assert_error(run(state, "reproduce model.safetensors rings -q"), 1, "rings: found 'data ");
    assert_error(run(state, "reproduce model.safetensors rings rings -q"), 1,
                 "rings: found 'data ");
    assert_error(run(state, "reproduce model.safetensors nowhere -q"), 1, "nowhere");
    assert_error(run(state, "reproduce " FILES "graph.safetensors rings -q"), 1, "does not record");
    assert_error(run(state, "reproduce rings/rings_A.txt rings -q"), 1, "rings_A.txt");
}

/* What came from a pipe cannot be read again. */
TEST_WITH(pipes_are_not_recorded, make_table, program_teardown) {
    needs_xgboost();
    run_ok(state, "%s accounts.csv - -q -o model.safetensors <'%s/transfers.csv'", task[2].train,
           (char *)*state);
    assert_error(run(state, "reproduce model.safetensors accounts.csv transfers.csv -q"), 1,
                 "does not record");
}

/* A record that names a file to write, by hand: refused before anything is trained or written. */
TEST_WITH(records_do_not_write, folder_new, program_teardown) {
    char *path = folder_path(state, "model.safetensors");
    basin_bundle *bundle;
    run_ok(state, "%s %s -q -o model.safetensors", task[1].train, task[1].data);
    assert_ok(basin_bundle_read(&bundle, path, &failure));
    assert_ok(basin_bundle_meta_set(bundle, "trained.command",
                                    "version 1\nmachine z\ncommand graph train\n"
                                    "option --log=written\n",
                                    &failure));
    basin_bundle *copy;
    assert_ok(basin_bundle_new(&copy, "copy", &failure));
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const basin_tensor *t = basin_bundle_at(bundle, i);
        assert_ok(basin_bundle_put(copy, basin_bundle_name(bundle, i), t->data, t->dtype, t->shape,
                                   &failure));
    }
    const char *key, *value;
    for (size_t i = 0; (key = basin_bundle_meta_at(bundle, i, &value)); i++)
        if (strcmp(key, "basin.digests") != 0)
            assert_ok(basin_bundle_meta_set(copy, key, value, &failure));
    assert_ok(basin_bundle_write(path, copy, &failure));
    basin_bundle_free(copy), basin_bundle_free(bundle);
    assert_error(run(state, "reproduce model.safetensors %s -q", task[1].data), 1, "--log=written");
    assert_int_equal(access(folder_path(state, "written"), F_OK), -1);
}
