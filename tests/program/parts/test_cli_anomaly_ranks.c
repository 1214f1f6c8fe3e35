/* Detectors of a graph in parts with mpirun: one and two ranks write the same bytes, on a folder of
 * parts and on tables; a run that was killed goes on with another number of ranks; parts agree with
 * the whole graph; what parts cannot do is refused. */
#include <unistd.h>

#include "program/parts/mpirun.h"

#define SIZE "--blocks 2 --dim 16 --head-dim 8 --memories 16 --hidden 16 --threads 1 "
#define TRAIN "anomaly train parts " SIZE "--trees 0 --members 2 --patience 0 --evaluate 5 --quiet "
enum { LIMIT = 120 }; /* seconds */

static int make_parts(void **state) {
    int status = make_table(state);
    if (!status)
        succeeded(run(state, "data part accounts.csv transfers.csv -n 4 -o parts --quiet"));
    return status;
}

TEST_WITH(two_ranks_train_as_one, make_parts, remove_parts) {
    const char *how = "--epochs 3 --hops 1 --scaling quantile --dropout 0.2";
    succeeded(run(state, TRAIN "%s -o one.safetensors", how));
    if (ranks_absent()) skip();
    succeeded(run_parts(state, 2, LIMIT, TRAIN "%s -o two.safetensors", how));
    succeeded(run_parts(state, 3, LIMIT, TRAIN "%s -o three.safetensors", how));
    same_file(state, "one.safetensors", "two.safetensors");
    same_file(state, "one.safetensors", "three.safetensors");
}

TEST_WITH(two_ranks_score_as_one, make_parts, remove_parts) {
    succeeded(run(state, TRAIN "--epochs 3 --hops 1 --scaling standard -o m.safetensors"));
    succeeded(run(state, "anomaly score m.safetensors parts -o one.csv"));
    succeeded(run(state, "anomaly score m.safetensors accounts.csv transfers.csv --parts 4 -o "
                         "tables.csv"));
    same_file(state, "one.csv", "tables.csv");
    if (ranks_absent()) skip();
    succeeded(run_parts(state, 2, LIMIT, "anomaly score m.safetensors parts -o two.csv"));
    same_file(state, "one.csv", "two.csv");
    succeeded(run_parts(state, 2, LIMIT,
                        "anomaly score m.safetensors accounts.csv transfers.csv --parts 4 -o "
                        "both.csv"));
    same_file(state, "one.csv", "both.csv");
}

TEST_WITH(parts_are_read_as_they_were_cut, make_parts, remove_parts) {
    assert_error(run(state, TRAIN "--epochs 1 --missing zero -o n.safetensors"), 1,
                 "parts: parts are read as they were cut; the option missing has no effect");
    assert_error(run(state, TRAIN "--epochs 1 --id account -o n.safetensors"), 1,
                 "parts: is not a CSV file; the option id has no effect");
    succeeded(run(state, TRAIN "--epochs 1 --hops 1 --scaling standard -o m.safetensors"));
    assert_error(run(state, "anomaly score m.safetensors parts --label x"), 1,
                 "parts: is not a CSV file; the option label has no effect");
}

/* Without a word of settings: with trees and members, on tables and on parts. */
TEST_WITH(defaults_train_and_score_as_one, make_parts, remove_parts) {
    const char *how = "--epochs 1 --threads 1 --quiet";
    succeeded(run(state, "anomaly train parts %s -o one.safetensors", how));
    succeeded(run(state, "anomaly score one.safetensors parts -o one.csv"));
    if (ranks_absent()) skip();
    succeeded(run_parts(state, 2, LIMIT, "anomaly train parts %s -o two.safetensors", how));
    same_file(state, "one.safetensors", "two.safetensors");
    succeeded(run_parts(state, 2, LIMIT, "anomaly score two.safetensors parts -o two.csv"));
    same_file(state, "one.csv", "two.csv");
}

TEST_WITH(a_killed_run_goes_on_with_other_ranks, make_parts, remove_parts) {
#define LONG TRAIN "--epochs 20 --hops 1 --scaling standard --save-every 0 "
    succeeded(run(state, LONG "-o whole.safetensors"));
    if (ranks_absent()) skip();
    for (int i = 0; i < 2; i++) { /* 50 ms after its first checkpoint */
        run_and_kill_rank(state, 2 - i, 1 - i, 0, "cut.safetensors",
                          LONG "--resume -o cut.safetensors");
        assert_int_not_equal(access(folder_path(state, "cut.safetensors"), F_OK), 0);
    }
    succeeded(run_parts(state, 2, LIMIT, LONG "--resume -o cut.safetensors"));
    same_file(state, "whole.safetensors", "cut.safetensors");
}

/* The graph whole and in 1, 3 and 4 parts: the same scores but for rounding. */
TEST_WITH(parts_agree_with_the_whole, make_parts, remove_parts) {
    static double wanted[2000], found;
    succeeded(run(state,
                  "anomaly train accounts.csv transfers.csv " SIZE "--trees 0 --members 1 --epochs "
                  "5 --hops 2 --scaling quantile --dropout 0 --quiet -o m.safetensors"));
    for (int parts = 1; parts <= 4; parts += parts == 1 ? 2 : 1) {
        succeeded(run(state,
                      "anomaly score m.safetensors accounts.csv transfers.csv --parts %d -o s.csv",
                      parts));
        FILE *file = fopen(folder_path(state, "s.csv"), "r");
        char line[200];
        int count = 0;
        assert_non_null(fgets(line, sizeof line, file));
        while (fgets(line, sizeof line, file) && count < 2000) {
            found = strtod(strchr(line, ',') + 1, NULL);
            if (parts == 1) wanted[count] = found;
            if (!(found - wanted[count] < 1e-6 && wanted[count] - found < 1e-6))
                fail_msg("%d parts: node %d scores %.9g, wanted %.9g", parts, count, found,
                         wanted[count]);
            count++;
        }
        fclose(file);
        assert_true(count > 50);
    }
}

TEST_WITH(what_parts_lack_is_said, make_parts, remove_parts) {
    const struct {
        const char *arguments, *wanted;
    } cases[] = {
        {"--position learned", "use position none"},
        {"--sampling subgraph", "use sampling full"},
        {"--parts 3", "4 parts, and the setting parts is 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_error(run(state, TRAIN "--epochs 1 --hops 0 --scaling standard %s -o x.safetensors",
                         cases[i].arguments),
                     1, cases[i].wanted);
    if (ranks_absent()) skip();
    const program *p = run_parts(state, 5, LIMIT, TRAIN "--epochs 1 -o x.safetensors");
    assert_int_not_equal(p->code, 0);
    assert_contains(p->err, "5 ranks for a graph in 4 parts");
}
