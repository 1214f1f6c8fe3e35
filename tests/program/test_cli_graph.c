/* basin graph: train, eval, predict, cv and make on small sets of the test's own. */
#include <math.h>

#include "program/program.h"
#include "tasks/graphs/graph_world.h"
#include "tasks/graphs/set/tiny_tu.h"

enum { GRAPHS = 30 };

/* Small enough for a test: options that every run here has. */
#define SMALL                                                                                      \
    "--dim 16 --heads 2 --head-dim 8 --memories 16 --blocks 1 --hidden 8 --walks 4 "               \
    "--eigenvectors 2 "                                                                            \
    "--edge-walks 2 --couplings 1 --threads 1 -q "

static void put_set(void **state, const char *name, basin_graphs_target task, bool split) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    world_new(&set, task, GRAPHS, 4, NULL);
    if (split) set.split[0] = 20, set.split[1] = 5, set.split[2] = 5;
    assert_ok(basin_graphset_write(folder_path(state, name), &set, &failure));
}

static double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(item)) fail_msg("no number '%s'", name);
    return item->valuedouble;
}

static int lines(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

/* The rows of a table, numbers up to rounding (other batches), are the last ones of another. */
static void ends_with(const char *all, const char *rows) {
    int more = lines(all) - lines(rows);
    assert_true(more > 0 && lines(rows) > 1);
    for (; more >= 0; all++) more -= *all == '\n';
    rows = strchr(rows, '\n') + 1;
    while (*rows) {
        char *a, *b;
        double x = strtod(all, &a), y = strtod(rows, &b);
        assert_true(a > all && b > rows && *a == *b &&
                    (x == y || fabs(x - y) < 1e-4 * (1 + fabs(x))));
        all = a + 1, rows = b + 1;
    }
}

/* The rows that --json prints have the columns of the CSV, in their order, and its numbers. */
static void same_as_json(const cJSON *rows, const char *csv) {
    const char *row = strchr(csv, '\n') + 1;
    assert_int_equal(cJSON_GetArraySize(rows), lines(row));
    for (const cJSON *r = rows->child; r; r = r->next, row = strchr(row, '\n') + 1) {
        const char *head = csv, *at = row;
        for (const cJSON *cell = r->child; cell; cell = cell->next) {
            size_t length = strcspn(head, ",\n");
            assert_true(strlen(cell->string) == length && !strncmp(head, cell->string, length));
            if (cJSON_IsNumber(cell)) assert_true(strtod(at, NULL) == cell->valuedouble);
            head += length + 1, at += strcspn(at, ",\n") + 1;
        }
        assert_true(head[-1] == '\n');
    }
}

/* What the data leave a setting, or a share for validation, no part in is told. */
TEST_WITH(what_a_set_has_no_use_for_is_noted, folder_new, folder_remove) {
    static const char line[] =
        "graph train set.safetensors -o n.safetensors --epochs 1 --dim 8 --heads 1 --head-dim 4 "
        "--memories 8 --blocks 1 --walks 2 --threads 1 --weight-classes --readout "
        "mean --smoothing 0.1";
    static const char *const idle[3] = {
        "weight_classes has no effect: ", "readout has no effect: ", "smoothing has no effect: "};
    for (int task = 0; task < 3; task++) {
        put_set(state, "set.safetensors", (basin_graphs_target)task, true);
        const program *p = run_ok(state, line);
        assert_contains(p->err, ": trains on the split that it brings");
        for (int i = 0; i < 3; i++) {
            bool noted = strstr(p->err, idle[i]) != NULL;
            bool wanted = i == task || (i == 0 && task != BASIN_GRAPHS_NODE_CLASSES);
            if (noted != wanted) fail_msg("task %d, \"%s\": %s", task, idle[i], p->err);
        }
    }
}

TEST_WITH(trains_and_uses, folder_new, folder_remove) {
    static const char *const head[3] = {"graph,class,p_0,p_1,nearest,nearest_id,set\n",
                                        "graph,node,class,p_0,p_1\n",
                                        "graph,value1,value1_low,value1_high\n"};
    for (int task = 0; task < 3; task++) {
        put_set(state, "set.safetensors", (basin_graphs_target)task, true);
        const program *p =
            run_ok(state, "graph train set.safetensors -o m.safetensors --log log.jsonl "
                          "--epochs 3 " SMALL);
        assert_field(p->out, "graphs", "20");
        assert_field(p->out, "epochs", "3");
        assert_null(strstr(p->out, "set size"));
        p = run(state, "graph eval m.safetensors set.safetensors --json");
        cJSON *json = run_json(p);
        assert_string_equal(cJSON_GetObjectItem(json, "part")->valuestring, "test");
        if (task != BASIN_GRAPHS_NODE_CLASSES) assert_int_equal((int)number(json, "graphs"), 5);
        number(json, task == BASIN_GRAPHS_VALUES ? "mae" : "balanced_accuracy");
        assert_int_equal((int)number(json, "trained_on"), 0);
        p = run(state, "graph eval m.safetensors set.safetensors --part all");
        assert_field(p->out, "trained on", "20");
        assert_contains(p->out, "(--unseen)");
        p = run_ok(state, "graph predict m.safetensors set.safetensors --part all");
        assert_memory_equal(p->out, head[task], strlen(head[task]));
        if (task != BASIN_GRAPHS_NODE_CLASSES) assert_int_equal(lines(p->out), GRAPHS + 1);
        char *all = strdup(p->out);
        p = run_ok(state, "graph predict m.safetensors set.safetensors --part all --json");
        same_as_json(json_at(run_json(p), task == BASIN_GRAPHS_NODE_CLASSES ? "nodes" : "graphs"),
                     all);
        p = run(state, "graph predict m.safetensors set.safetensors");
        ends_with(all, p->out);
        free(all);
        p = run_ok(state, "info m.safetensors");
    }
    assert_error(run(state, "graph eval m.safetensors missing.zip"), 1, "missing.zip");
    put_set(state, "set.safetensors", BASIN_GRAPHS_CLASSES, false);
    assert_error(run(state, "graph eval m.safetensors set.safetensors"), 1,
                 "the model expects graph values");
}

/* The picture is written, the parts make up the output. */
TEST_WITH(explains, folder_new, folder_remove) {
    put_set(state, "set.safetensors", BASIN_GRAPHS_CLASSES, false);
    const program *p =
        run_ok(state, "graph train set.safetensors -o m.safetensors --epochs 2 " SMALL);
    p = run_ok(state, "graph explain m.safetensors set.safetensors --graph 2 --json "
                      "--page why.html --nodes 100 --edges 100");
    cJSON *json = run_json(p);
    double p_class = number(json, "predicted");
    assert_true(fabs(log(p_class / (1 - p_class)) - number(json, "output")) < 1e-3);
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(json, "edges")) > 2);
    assert_true(number(json, "predicted") > 0 && number(json, "predicted") <= 1);
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(json, "nodes")) > 2);
    assert_int_equal(access(folder_path(state, "why.html"), R_OK), 0);
    p = run(state, "graph explain m.safetensors set.safetensors --about 1");
    assert_contains(p->out, "class 1 with probability");
    assert_error(run(state, "graph explain m.safetensors set.safetensors --about 5"), 1,
                 "is not a class of the training data");
    assert_error(run(state, "graph explain m.safetensors set.safetensors --graph 999"), 1,
                 "--graph 999");
}

TEST_WITH(cross_validates, folder_new, folder_remove) {
    put_set(state, "set.safetensors", BASIN_GRAPHS_CLASSES, false);
    const program *p = run_ok(
        state, "graph cv set.safetensors --folds 3 --epochs 2 --members 1 --jobs 2 --json " SMALL
               "--threads 2");
    cJSON *json = run_json(p);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "held_out")));
    cJSON *folds = cJSON_GetObjectItem(json, "folds"), *fold;
    assert_int_equal(cJSON_GetArraySize(folds), 3);
    double sum = 0, tested = 0;
    cJSON_ArrayForEach(fold, folds) {
        const cJSON *test = cJSON_GetObjectItem(fold, "test");
        sum += number(test, "accuracy"), tested += number(test, "graphs");
    }
    assert_int_equal((int)tested, GRAPHS);
    assert_true(fabs(sum / 3 - number(json, "test_mean")) < 1e-9);
    double apart = number(json, "test_mean");
    /* the same folds, one after the other in this process */
    p = run(state,
            "graph cv set.safetensors --folds 3 --epochs 2 --members 1 --jobs 1 --json " SMALL);
    json = run_json(p);
    assert_true(number(json, "test_mean") == apart);
}

TEST_WITH(averages_members, folder_new, folder_remove) {
    put_set(state, "set.safetensors", BASIN_GRAPHS_VALUES, false);
#define ONE "graph cv set.safetensors --folds 2 --fold 2 --epochs 1 --members 2 " SMALL
    cJSON *json = run_json(run_ok(state, ONE " --json"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "folds")), 1);
    assert_string_equal(cJSON_GetObjectItem(json, "score")->valuestring, "mean absolute error");
    assert_null(strstr(run_ok(state, ONE)->out, "population deviation")); /* of one fold, none */
    assert_error(run(state, "graph cv set.safetensors --folds 2 --fold 3 " SMALL), 1,
                 "fold 3 of 2");
}

/* What was trained on is never called a test. */
TEST_WITH(labels_the_paper_protocol, folder_new, folder_remove) {
    put_set(state, "set.safetensors", BASIN_GRAPHS_CLASSES, false);
    const program *p = run_ok(
        state, "graph cv set.safetensors --protocol paper --epochs 1 --members 1 --jobs 1 " SMALL);
    assert_field(p->out, "protocol", "paper (training graphs)");
    assert_contains(p->out, "TRAINING score");
    assert_null(strstr(p->out, "test score"));
    p = run(
        state,
        "graph cv set.safetensors --protocol paper --epochs 1 --members 1 --jobs 1 --json " SMALL);
    cJSON *json = run_json(p);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(json, "held_out")));
    assert_null(cJSON_GetObjectItem(json, "test_mean"));
    number(json, "training_mean");
}

/* Without folds, and with a fold that is not there. */
TEST_WITH(whole_protocols, folder_new, folder_remove) {
    put_set(state, "set.safetensors", BASIN_GRAPHS_CLASSES, false);
    const program *p = run(state, "graph cv set.safetensors --folds 3 --epochs 1 --members 1 "
                                  "--json " SMALL);
    cJSON *json = run_json(p);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "test_interval_95")), 2);
    assert_error(run(state, "graph cv set.safetensors --folds 3 --protocol paper " SMALL), 2,
                 "--folds has no effect with --protocol paper");
}

TEST_WITH(presets, folder_new, folder_remove) {
    static const char *const name[] = {"default",        "molecules",     "sbm",
                                       "communities",    "superpixels",   "paper-tu",
                                       "paper-zinc",     "paper-pattern", "paper-cluster",
                                       "paper-mnist",    "published-tu",  "published-zinc",
                                       "published-mnist"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const program *p =
            run(state, "graph train --preset %s --alpha 0.75 --print-config", name[i]);
        cJSON *json = run_json(p);
        assert_true(json_number(json, "settings.alpha") == 0.75);
        assert_true(json_number(json, "settings.epochs") >= 0);
    }
    assert_error(run(state, "graph train --preset none"), 2, "preset");
    assert_error(run(state, "graph train"), 2, "needs data to train on");
}

TEST_WITH(reports_bad_folders, folder_new, folder_remove) {
    tiny_write(state, "T_node_attributes.txt", "1, 2\n3\n");
    assert_error(run(state, "graph cv . --folds 2"), 1,
                 "T_node_attributes.txt, line 2: 1 numbers; expected 2");
    tiny_write(state, "T_graph_labels.txt", "4\n4\n4\n");
    assert_error(run(state, "graph cv . --folds 2"), 1,
                 "all graphs have the class 4; expected at least two classes");
    assert_error(run(state, "graph train ."), 1, "all graphs have the class 4");
    assert_error(run(state, "graph train . -o none/m.safetensors"), 1, "none/m.safetensors");
}

/* What a model does not see, or sees otherwise than was meant, is said. */
TEST_WITH(tells_what_it_does_not_see, folder_new, folder_remove) {
    tiny_write(state, NULL, NULL);
    const program *p = run_ok(state, "graph train . -o m.safetensors --epochs 1 " SMALL);
    tiny_write(state, "T_node_labels.txt", "3\n5\n3\n4\n4\n4\n6\n2\n");
    p = run(state, "graph predict m.safetensors .");
    assert_contains(p->err, "note: 2 nodes with a label that is not in the training data");
    assert_null(strstr(p->err, "edges with"));
    assert_string_equal(run(state, "graph predict m.safetensors . -q")->err, "");
    p = run_ok(state, "graph train . --from m.safetensors -o f.safetensors --epochs 1 --dim 16 "
                      "--heads 2 --head-dim 8 --memories 16 --blocks 1 --hidden 8 --walks 4 "
                      "--eigenvectors 2 --edge-walks 2 --couplings 1 --threads 1");
    assert_contains(p->err, "does not know the labels of 2 of the nodes and 0 of the edges");
    const char once[] = "1 2\n2 3\n1 3\n4 5\n5 6\n6 7\n", six[] = "1\n1\n1\n1\n1\n1\n";
    folder_put(state, "T_A.txt", once);
    folder_put(state, "T_edge_labels.txt", six);
    folder_put(state, "T_edge_attributes.txt", six);
    p = run_ok(state, "graph train . -o n.safetensors --epochs 1 --threads 1");
    assert_contains(p->err, "no edge of T has its reverse");
}

/* New graphs have no labels: they are predicted, and nothing else is done with them. */
TEST_WITH(predicts_without_labels, folder_new, folder_remove) {
    tiny_write(state, NULL, NULL);
    const program *p = run_ok(state, "graph train . -o m.safetensors --epochs 1 " SMALL);
    tiny_write(state, "T_graph_labels.txt", NULL);
    p = run_ok(state, "graph predict m.safetensors .");
    assert_memory_equal(p->out, "graph,class,p_-1,p_7,nearest,nearest_id\n", 40);
    assert_int_equal(lines(p->out), 4);
    assert_error(run(state, "graph eval m.safetensors ."), 1, "no labels");
    assert_error(run(state, "graph train ."), 1, "no labels");
    assert_error(run(state, "graph cv . --folds 2"), 1, "no labels");
}

/* Too few to set any aside: it is said, and there is no score of validation, which was 0. */
TEST_WITH(three_graphs, folder_new, folder_remove) {
    tiny_write(state, NULL, NULL);
    const program *p = run_ok(state, "graph cv . --folds 3 --epochs 1 --members 1 --json " SMALL);
    assert_contains(p->out, "\"test_mean\"");
    assert_null(strstr(p->out, "validation"));
    p = run_ok(state, "graph train . -o m.safetensors --epochs 1 --threads 1");
    assert_contains(p->err, "3 graphs are too few to set 0.1 of them aside for validation");
    assert_null(strstr(p->err, "reverse"));
    tiny_write(state, "T_graph_labels.txt", "-1\n7\n8\n");
    p = run(state, "graph eval m.safetensors .");
    assert_field(p->out, "without known truth", "1");
    p = run(state, "graph eval m.safetensors . --json");
    assert_contains(p->out, "\"missing\": 1");
}

TEST_WITH(refuses_idle_options, folder_new, folder_remove) {
    put_set(state, "set.safetensors", BASIN_GRAPHS_VALUES, true);
    static const char *const idle[] = {"train",  "--values", "train",
                                       "--id x", "convert",  "--stereo --quiet"};
    for (int i = 0; i < 6; i += 2) {
        char line[200];
        snprintf(line, sizeof line, "graph %s set.safetensors%s %s", idle[i],
                 i == 4 ? " o.safetensors" : "", idle[i + 1]);
        assert_error(run(state, line), 2, "applies to tables of molecules");
    }
    assert_error(run(state, "graph eval m.safetensors set.safetensors --index x --split time"), 2,
                 "--index has no effect with --split time");
}

/* Mistakes get one line; what is learnt is called as in the table; scores stay within their range.
 */
TEST_WITH(says_what_molecules_have, folder_new, folder_remove) {
    static const char table[] = "smiles,y,w,one\nCCO,1.5,a,x\nCCN,2,b,x\nCCC,2.5,a,x\nC#N,3,b,x\n"
                                "C=O,1,a,x\nCCCC,7,a,x\n";
    static const char *const line[][2] = {
        {"graph train m.csv --target smiles", "column 'smiles' has the SMILES"},
        {"graph train m.csv --target z",
         "no column 'z' of targets; its columns: smiles, y, w, one"},
        {"graph train i.csv --target y",
         "line 3: column 'y' has '1e400', expected a number of at "},
        {"graph train m.csv --target one", "expected at least two classes"},
        {"graph train m.csv --target y --split scaffold", "in 1 fold: too few graphs"},
        {"graph cv m.csv --target y --split scaffold --folds 3", "in 3 folds: too few graphs"},
        {"graph train m.csv --target y --cls-self --no-attention", "has no effect"},
        {"graph train m.csv --target y --edge-dropout 0.1 --reconstruct --all-pairs "
         "--adjacency edges",
         "edge_dropout has no effect with all_pairs on"},
    };
    folder_put(state, "m.csv", table);
    folder_put(state, "i.csv", "smiles,y\nC,1\nCC,1e400\n");
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        assert_error(run(state, "%s -q", line[i][0]), 1, line[i][1]);
    folder_put(state, "cut.sdf", "x\n\n\n  2  1  0  0  0 V2000\n    0.0");
    assert_error(run(state, "data info cut.sdf"), 1, "without 'M  END'");
    static const char sdf[] = "x\n\n\n  1  0  0  0  0 V2000\n    0.0000    0.0000    0.0000 C   "
                              "0  0\nM  END\n> <y>\n12.5\n\n$$$$\n";
    file_put(folder_path(state, "cut.sdf"), sdf, sizeof sdf - 1);
    assert_contains(run_ok(state, "data info cut.sdf --target y")->out, "12.5");
    file_put(folder_path(state, "cut.sdf"), sdf, sizeof sdf - 9);
    assert_error(run(state, "data info cut.sdf"), 1, "without '$$$$'");
    assert_error(run(state, "graph train m.csv --target y --norm batch"), 2, "layer|graph");
    assert_contains(run_ok(state, "graph convert m.csv n.safetensors --target y")->out, "\n  y ");
    assert_contains(run_ok(state, "graph convert m.csv n.safetensors --target w")->out, "a 4  b 2");
    assert_contains(run_ok(state, "graph convert m.csv n.safetensors")->out,
                    "none (of molecules: --target)");
    const program *p = run_ok(state, "graph cv m.csv --target w --folds 3 --epochs 1 --members 1 "
                                     "--edge-dropout 0.2 " SMALL);
    assert_contains(p->out, "AUROC: left out");
    cJSON *json = run_json(run(state, "graph cv m.csv --target w --folds 2 --epochs 1 --json "
                                      "--members 2 --norm graph " SMALL));
    assert_true(json_number(json, "test_mean") <= 1);
    cJSON *ends = cJSON_GetObjectItem(json, "test_interval_95");
    assert_true(cJSON_GetArrayItem(ends, 0)->valuedouble >= 0);
    assert_true(cJSON_GetArrayItem(ends, 1)->valuedouble <= 1);
}

/* Chains with and without oxygen: the memory knows them at once, and colours the picture. */
/* Epochs of values are chosen by the split's own part, the rarest scaffolds but the test's. */
TEST_WITH(scaffolds_of_values, folder_new, folder_remove) {
    static const char rings[][12] = {"C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccccc1"};
    static const int count[] = {12, 4, 2, 1, 1}; /* 16 to train on, 2, 2 */
    char table[2000];
    size_t n = (size_t)snprintf(table, sizeof table, "smiles,y\n");
    for (int g = 0; g < 5; g++)
        for (int i = 0; i < count[g]; i++)
            n += (size_t)snprintf(table + n, sizeof table - n, "%.*s%s,%d.5\n", i, "CCCCCCCCCCC",
                                  rings[g], i);
    file_put(folder_path(state, "s.csv"), table, n);
    run_ok(state, "graph train s.csv --target y --split scaffold -o s.safetensors --epochs 1 "
                  "--members 2 " SMALL);
    const char *out =
        run_ok(state, "graph eval s.safetensors s.csv --split scaffold --part validation --json")
            ->out;
    cJSON *found = cJSON_Parse(out);
    assert_true(number(found, "validated_on") == 2);
    assert_true(number(cJSON_GetObjectItem(found, "memory_only"), "rmse") > 0);
    cJSON_Delete(found);
}

TEST_WITH(explains_molecules, folder_new, folder_remove) {
    char table[8000] = "smiles,y\n";
    static char drawn[1 << 16];
    for (int i = 0; i < 60; i++)
        sprintf(table + strlen(table), "%.*s%s,%d\n", 3 + i / 2,
                "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", i % 2 ? "O" : "", i % 2);
    folder_put(state, "t.csv", table);
    run_ok(state, "graph train t.csv --target y --validation 0.5 --members 2 "
                  "--epochs 1 -o t.safetensors " SMALL);
    const program *p = run_ok(state, "graph explain t.safetensors t.csv --graph 5 --page t.json");
    assert_contains(p->out, "mean of the training molecules");
    assert_contains(p->out, "OH");
    slurp(drawn, sizeof drawn, folder_path(state, "t.json"));
    folder_put(state, "i.csv", "smiles,id\nCO,a\nCC,b\n");
    p = run_ok(state, "graph explain t.safetensors i.csv --molecule b");
    assert_field(p->out, "graph", "1");
    assert_error(run(state, "graph explain t.safetensors i.csv --molecule c"), 1,
                 "no molecule is called 'c'");
}

/* A table with a bad molecule becomes a set that is used in its place; its molecules are drawn. */
TEST_WITH(converts_and_draws_molecules, folder_new, folder_remove) {
    static const char table[] =
        "\xef\xbb\xbf"
        "id;smiles;y\r\na;CCO;1,5\r\nb;C1CC;2\r\nc;"
        "C[N+](C)(C)CC([O-])=O;2,5\r\nd;c1ccccc1C#N;3\r\ne;CCCCCC;\r\nf;CC=O;1\r\n";
    folder_put(state, "m.csv", table);
    const program *p = run_ok(state, "graph convert m.csv m.safetensors --target y --json");
    assert_contains(p->err, "line 3");
    assert_contains(p->out, "\"graphs\": 4");
    p = run_ok(state, "data info m.safetensors");
    assert_field(p->out, "graphs", "4");
    p = run_ok(state, "data info m.csv");
    assert_field(p->out, "graphs", "5");
    assert_contains(p->out, "note: 1 of 6 molecules could not be read and are left out");
    assert_error(run(state, "graph convert m.safetensors m.csv"), 2, "comes last");
    assert_error(run(state, "graph convert m.safetensors m.safetensors"), 2,
                 "would overwrite itself");
    assert_error(run(state, "graph train m.safetensors --target z"), 2, "--target applies to");
    run_ok(state, "graph train m.safetensors -o o.safetensors --stereo --epochs 1 " SMALL);
    p = run_ok(state, "graph predict o.safetensors m.safetensors");
    assert_contains(p->err, "graph convert --stereo");
    run_ok(state, "graph train m.safetensors -o n.safetensors --epochs 1 --members 2 " SMALL);
    p = run_ok(state, "graph explain n.safetensors m.safetensors --graph 1 --page n.json");
    assert_contains(p->out, "N+");
    assert_contains(p->out, "is replaced by hydrogen");
    static char drawn[1 << 16];
    slurp(drawn, sizeof drawn, folder_path(state, "n.json"));
    assert_contains(drawn, "\"charge\":[0,1,0,0,0,0,-1,0]");
    assert_contains(drawn, "\"edge\":[[0,1,1,");
    p = run_ok(state, "graph predict n.safetensors m.csv");
    assert_contains(p->out, "id,line,graph,y,nearest,nearest_id,y_spread,unknown_atoms\na,2,0,");
    p = run_ok(state, "graph report n.safetensors m.csv --training m.csv -o r.json");
    assert_contains(p->out, "MAE");
    assert_contains(p->out, "\ntrained on");
    static char page[1 << 20];
    slurp(page, sizeof page, folder_path(state, "r.json"));
    assert_contains(page, "\"measured\":");
    cJSON *json = cJSON_Parse(page);
    cJSON *graphs = cJSON_GetObjectItem(json, "graphs");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(graphs, "drawings")), 4);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(graphs, "error")), 4);
    cJSON_Delete(json);
    assert_contains(page, "\"hydrogens\":");
    assert_error(run(state, "graph report n.safetensors m.safetensors --unseen"), 1,
                 "graphs took part in training");
    assert_error(run(state, "graph report n.safetensors m.safetensors --about 3"), 1,
                 "is not a value");
    folder_put(state, "w.txt", "smiles,y\nCCO,1\nCCN,2\n");
    assert_contains(run_ok(state, "graph eval n.safetensors w.txt")->out, "graph values");
    folder_put(state, "k.csv", "smiles,.a|b,.a|c\nCCO,1,2\nCCN,2,3\nCC,3,1\nC,4,2\n");
    run_ok(state, "graph train k.csv --target '.a|b,.a|c' -o k.safetensors --epochs 1 " SMALL);
    p = run_ok(state, "graph predict k.safetensors k.csv --json -o k.json");
    assert_string_equal(p->out, "");
    slurp(drawn, sizeof drawn, folder_path(state, "k.json"));
    assert_non_null(cJSON_GetObjectItem(json_at(json_read(drawn), "graphs.3"), ".a|c"));
    assert_contains(run_ok(state, "graph predict k.safetensors k.csv")->out, ",.a|b,.a|c,");
    folder_put(state, "u.smi", "[U] u\n"); /* like no training molecule */
    assert_contains(run_ok(state, "graph predict n.safetensors u.smi")->out, ",0,,");
    folder_put(state, "l.smi", "CCO a\nCCCCCCN b\nC c\n");
    p = run_ok(state, "graph predict n.safetensors l.smi --sort --top 2");
    assert_int_equal(lines(p->out), 3);
    p = run_ok(state, "graph eval n.safetensors m.csv --split time");
    assert_field(p->out, "part", "test");
    assert_field(p->out, "graphs", "1");
    assert_contains(run_ok(state, "graph explain n.safetensors m.csv --about y")->out, "output");
    assert_error(run(state, "graph explain n.safetensors l.smi --about z"), 1, "--about z");
    assert_error(run(state, "graph train m.safetensors --smiles y"), 2,
                 "--smiles applies to tables of molecules; m.safetensors");
    folder_put(state, "m.dat", table);
    assert_error(run(state, "graph predict n.safetensors m.dat"), 1, "column of SMILES");
    p = run_ok(state, "graph cv m.csv --target y --folds 2 --epochs 1 --members 1 " SMALL);
    assert_contains(p->out, "\nmeans");
    assert_contains(p->out, "MAE");
    assert_contains(p->out, "RMSE");
    assert_error(run(state, "graph train m.csv --target y,y"), 1, "'y' is a target twice");
    char rows[600] = "smiles,c,d\n", name[20] = "";
    for (int i = 0; i < 12; i++) { /* words are classes, unless nearly all differ */
        name[i] = 'C';
        snprintf(rows + strlen(rows), 50, "%s,%s,w%d\n", name, i % 2 ? "on" : "off", i);
    }
    folder_put(state, "c.csv", rows);
    folder_put(state, "s.csv", "smiles,y\nF/C=C/F,1.5\nCC,2\n");
    run_ok(state, "graph convert s.csv s.safetensors --stereo --target y");
    assert_error(run(state, "graph train s.safetensors"), 1, "the setting stereo must be on");
    assert_error(run(state, "graph train c.csv --target d"), 1, "12 different words in 12");
    folder_put(state, "u.csv", "smiles,y\nCC,\"1,5 %\"\nC,2\n");
    assert_error(run(state, "graph train u.csv --target y"), 1, "has '2', after words");
    assert_error(run(state, "graph report n.safetensors m.csv --training c.csv -o r.json -q"), 1,
                 "trained on 0 of its 12 molecules");
    run_ok(state, "graph train c.csv --target c -o c.safetensors --epochs 1 --members 1 " SMALL);
    folder_put(state, "b.csv", "smiles,y\nCC,1\nC,0\nCCC,1\nCO,0\n");
    p = run_ok(state, "graph train b.csv --target y --values -o b.safetensors --epochs 1 " SMALL);
    p = run_ok(state, "graph eval b.safetensors b.csv");
    assert_contains(p->out, "MAE");
    assert_null(strstr(p->out, "AUROC"));
    p = run_ok(state, "graph predict c.safetensors c.csv");
    assert_true(strstr(p->out, ",on,") || strstr(p->out, ",off,"));
    p = run_ok(state, "graph predict c.safetensors c.csv --sort");
    assert_contains(p->err, "sorted by p_on, highest first");
    assert_error(run(state, "graph predict c.safetensors c.csv --sort --about neither"), 1,
                 "is not a class of the training data");
    assert_error(run(state, "graph predict c.safetensors c.csv --about off"), 2, "--sort");
    double last = 2; /* line, graph, class, p_off */
    p = run_ok(state, "graph predict c.safetensors c.csv --sort --about off");
    assert_null(strstr(p->err, "sorted by"));
    for (const char *row = strchr(p->out, '\n') + 1; *row; row = strchr(row, '\n') + 1) {
        double own = -1;
        assert_int_equal(sscanf(row, "%*d,%*d,%*[a-z],%lf", &own), 1);
        assert_true(own <= last);
        last = own;
    }
    p = run_ok(state, "graph explain c.safetensors c.csv --about on");
    assert_contains(p->out, "class on");
}
