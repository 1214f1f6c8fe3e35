/* Several ranks under mpirun: the same bits as one, one that prints, errors in one line. */
#include "program/ranks_work.h"

/* As one process with as many shards, and as 2 ranks; the log as well, but for times. */
static void same_bits(void **state, const char *command) {
    char line[2000];
    const program *p = run_ok(state, "%s --shards 8 -o one.safetensors --log one.log", command);
    snprintf(line, sizeof line, "%s -o two.safetensors --log two.log", command);
    p = succeeded(run_ranks(state, 2, line));
    assert_int_equal(basin_lines(p->err), 0);
    const char *printed = strstr(p->out, "parameters");
    assert_non_null(printed);
    assert_null(strstr(printed + 1, "parameters")); /* one rank has printed */
    same_file(state, "one.safetensors", "two.safetensors");
    snprintf(line, sizeof line,
             "cd '%s' && for i in one two; do sed 's/\"items_per_second.*//; s/\"seconds.*//' "
             "$i.log >$i.cut; done; cmp one.cut two.cut",
             (const char *)*state);
    assert_int_equal(system(line), 0);
}

TEST_WITH(images_have_the_same_bits, world_folder, program_teardown) {
    same_bits(state, IMAGES(2));
}
TEST_WITH(graphs_have_the_same_bits, world_folder, program_teardown) {
    same_bits(state, GRAPHS(3));
    const program *p =
        succeeded(run_ranks(state, 2, "reproduce one.safetensors set.safetensors --quiet"));
    assert_contains(p->out, "reproduced: the same bits");
}

/* A model of one shard is what it was before there were shards: no gradient passes through sums. */
TEST_WITH(shards_are_settings, world_folder, program_teardown) {
    const program *p = run(state, IMAGES(1) "--shards 3 -o m.safetensors");
    assert_error(p, 1, "shards is 3, expected a divisor of the batch, 16");
    p = run(state, GRAPHS(1) "--shards 17 -o m.safetensors");
    assert_error(p, 1, "shards is 17; expected at most the batch, 16");
}

/* The failure of any rank is printed once, with the rank and its host, and whole: also where a
 * name has the word that lines begin with. */
TEST_WITH(failures_are_told_once, world_folder, program_teardown) {
    static const char words[] = "graph train t.basin --dim 16 --heads 2 --head-dim 8 --memories 16 "
                                "--epochs 900 --threads 1 --quiet -o m.safetensors";
    char host[64] = "", wanted[200], line[PATH_TEXT + 60];
    snprintf(line, sizeof line, "cd '%s' && mv set.safetensors t.basin", (const char *)*state);
    assert_int_equal(system(line), 0);
    double began = seconds_now();
    const program *p =
        run_mpi(state, "-n 1 $PROGRAM %s : -n 1 sh -c 'cd / && exec $PROGRAM %s'", words, words);
    gethostname(host, sizeof host - 1);
    snprintf(wanted, sizeof wanted, "basin: rank 1 on %s: t.basin: ", host);
    assert_int_equal(p->code, 1);
    assert_int_equal(basin_lines(p->err), 1);
    assert_contains(p->err, wanted);
    assert_true(seconds_now() - began < 60); /* of 10 s on a free machine */
}

/* Hosts whose files are not alike, and words that differ: a line that says what. */
TEST_WITH(ranks_must_be_asked_for_the_same, world_folder, program_teardown) {
    const program *p = run_mpi(
        state, "-n 1 $PROGRAM " GRAPHS(9) "-o m.safetensors : -n 1 "
                                          "$PROGRAM " GRAPHS(9) "-o m.safetensors --seed 3");
    assert_int_not_equal(p->code, 0);
    assert_int_equal(basin_lines(p->err), 1);
    assert_contains(p->err, "the command's words differ from those of rank 0: '--seed'");
    const char *config = "{\"basin\": \"0.2.0\", \"task\": \"graphs\", \"settings\": {\"rate\": "
                         "%s}}\n";
    const char *rate[2] = {"0.001", "0.002"}, *name[2] = {"one/c.json", "two/c.json"};
    char path[PATH_TEXT];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "mkdir -p '%s/%.3s'", (const char *)*state, name[i]);
        assert_int_equal(system(path), 0);
        FILE *file = fopen(folder_path(state, name[i]), "w");
        assert_non_null(file);
        fprintf(file, config, rate[i]);
        fclose(file);
    }
    const char *each = "-n 1 sh -c 'cd %s && exec $PROGRAM graph train ../set.safetensors --config "
                       "c.json --threads 1 --quiet -o m.safetensors'";
    char one[400], two[400];
    snprintf(one, sizeof one, each, "one");
    snprintf(two, sizeof two, each, "two");
    p = run_mpi(state, "%s : %s", one, two);
    assert_int_not_equal(p->code, 0);
    assert_int_equal(basin_lines(p->err), 1);
    assert_contains(p->err, "the settings differ from those of rank 0");
    assert_int_equal(truncate(folder_path(state, "two/c.json"), 20), 0);
    p = run_mpi(state, "%s : %s", one, two);
    assert_int_not_equal(p->code, 0);
    assert_int_equal(basin_lines(p->err), 1);
    assert_contains(p->err, "c.json");
    snprintf(path, sizeof path, "rm -r '%s/one' '%s/two'", (const char *)*state,
             (const char *)*state);
    assert_int_equal(system(path), 0);
}

/* As many graphs, one of which has another class. */
TEST_WITH(ranks_must_have_the_same_data, world_folder, program_teardown) {
    static const char *const folder[] = {"one", "two"};
    static const char *const file[] = {"one/set.safetensors", "two/set.safetensors"};
    char line[2 * PATH_TEXT];
    basin_graphset set;
    world_new(&set, BASIN_GRAPHS_CLASSES, 60, 4, NULL);
    for (int i = 0; i < 2; i++) {
        if (i) set.class_of[0] = !set.class_of[0];
        snprintf(line, sizeof line, "mkdir '%s/%s'", (const char *)*state, folder[i]);
        assert_int_equal(system(line), 0);
        assert_ok(basin_graphset_write(folder_path(state, file[i]), &set, &failure));
    }
    basin_graphset_free(&set);
    const program *p = run_mpi(state, "-n 1 --wdir one $PROGRAM " GRAPHS(
                                          1) "-o m.safetensors : -n "
                                             "1 --wdir two $PROGRAM " GRAPHS(1) "-o m.safetensors");
    assert_int_not_equal(p->code, 0);
    assert_int_equal(basin_lines(p->err), 1);
    assert_contains(p->err, "data and sizes differ from those of rank 0: 'digest ");
    snprintf(line, sizeof line, "cd '%s' && rm -r one two", (const char *)*state);
    assert_int_equal(system(line), 0);
}

TEST_WITH(usage_is_told_once, world_folder, program_teardown) {
    const program *p = run_ranks(state, 2, "image train --nonsense");
    assert_int_equal(p->code, 2);
    assert_int_equal(basin_lines(p->err), 1);
    p = run_ranks(state, 2, "info set.safetensors");
    assert_int_equal(p->code, 2);
    assert_contains(p->err, "does not run under mpirun or srun");
    p = run_ranks(state, 3, GRAPHS(1) "--shards 2 -o m.safetensors");
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "shards is 2, and there are 3 ranks");
}

/* Nothing of MPI is looked at by a process that no launcher started. */
TEST_WITH(alone_needs_no_mpi, world_folder, program_teardown) {
    setenv("BASIN_MPI", "/nowhere", 1);
    const program *p = run(state, IMAGES(1) "-o m.safetensors");
    unsetenv("BASIN_MPI");
    succeeded(p);
    p = run_mpi(state, "-n 2 -x BASIN_MPI=/nowhere $PROGRAM " IMAGES(1) "-o m.safetensors");
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "MPI, needed for several ranks, cannot be used: /nowhere");
}

int main(void) {
    int absent = ranks_absent();
    return absent ? absent : tests_run(NULL, NULL);
}
