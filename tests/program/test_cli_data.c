/* basin data convert, info, make and get. */
#include "program/program.h"

#include <stdbool.h>

TEST(converts_csv) {
    folder_put(state, "pay.csv", "payer,payee,kind\nann,bob,card\nbob,cem,cash\nann,ann,card\n");
    folder_put(state, "people.csv",
               "who,age,is_fraud,note\nann,30,1,x\nbob,41,0,y\ncem,,,x\ndee,9,0,\n");
    const program *p = run_ok(state, "data convert pay.csv people.csv out.basin --id who "
                                     "--relation-column kind --missing mean --homo");
    assert_contains(p->out, "nodes      4\nedges      10\nfeatures   3\n");
    cJSON *tree = run_json(run(state, "data info out.basin --json"));
    assert_true(json_number(tree, "nodes") == 4);
    assert_true(json_number(tree, "labels.unknown") == 1);
    assert_true(json_number(tree, "labels.count.1") == 1);
    assert_string_equal(json_at(tree, "columns.1")->valuestring, "note=x");
    assert_string_equal(json_at(tree, "relations.2.name")->valuestring, "homo");
    assert_true(json_number(tree, "relations.2.edges") == 5);
    assert_true(json_number(tree, "relations.2.mean_degree") == 1.25);
    assert_true(cJSON_IsTrue(json_at(tree, "mapped")));
    run_ok(state, "data convert -q out.basin again.npz");
    run_ok(state, "data convert -q again.npz again.basin");
    p = run(state, "data info again.basin");
    assert_contains(p->out, "nodes     4\nfeatures  3\ndirected  no\nmapped    yes\n");
    assert_contains(p->out, "labels    unknown 1  of 0 2  of 1 1\n");
}

TEST(reports_bad_input) {
    folder_put(state, "e.csv", "src,dst\na,b\n");
    folder_put(state, "nan.csv", "id,f\na,1\nb,\n");
    folder_put(state, "one.csv", "id,f,label\na,1,0\nb,2,0\n");
    folder_put(state, "far.csv", "src,dst\na,z\n");
    folder_put(state, "empty.csv", "");
    folder_put(state, "cut.npz", "PK\3\4 and no more");
    folder_put(state, "cut.dgl", "\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd and no more");
    assert_error(run(state, "data convert missing.npz x.basin"), 1, "missing.npz");
    assert_error(run(state, "data convert e.csv nan.csv x.basin"), 1, "missing or NaN");
    assert_error(run(state, "data convert far.csv one.csv x.basin"), 1, "node 'z' is in no file");
    assert_error(run(state, "data convert empty.csv x.basin"), 1, "the file is empty");
    assert_error(run(state, "data convert cut.npz x.basin"), 1, "cut.npz");
    assert_error(run(state, "data convert cut.dgl x.basin"), 1,
                 "is a graph file of DGL, expected npz");
    folder_put(state, "fraud.mat", "MATLAB 5.0 MAT-file");
    assert_error(
        run(state, "anomaly train fraud.mat"), 1,
        "is a MATLAB file, expected npz, which this command makes: python3 share/basin/mat.py "
        "'fraud.mat' 'fraud.mat.npz'");
    assert_error(run(state, "data info ."), 1, ".");
    assert_error(run(state, "data info e.csv one.csv --label id"), 1,
                 "column 'id' is given for two things (ids, labels)");
    assert_error(run(state, "data info e.csv --source src --target src"), 1,
                 "column 'src' is given for two things (sources, targets)");
    folder_put(state, "odd.csv", "src,dst\na\033[2J,b\n");
    const program *odd = run(state, "data info odd.csv");
    assert_int_equal(odd->code, 0);
    assert_null(strchr(odd->out, '\033'));
    char line[PATH_TEXT + 100];
    snprintf(line, sizeof line,
             "cd '%s' && { echo src,dst; yes $(printf 'a%%01000d,b' 0); } | head -c 80000000 | "
             "gzip >bomb.csv.gz",
             (const char *)*state);
    assert_int_equal(system(line), 0);
    assert_error(run(state, "data info bomb.csv.gz"), 1, "unpacks to more than 200 times its size");
    assert_error(run(state, "data convert e.csv"), 2, "needs IN... OUT");
    assert_false(is_there(state, "x.basin"));
    /* one class alone is worth a word, but not an error here */
    const program *p = run_ok(state, "data convert e.csv one.csv x.basin");
    assert_contains(p->err, "note: one.csv: all labels are 0");
}

TEST(makes_fraud) {
    char line[3 * PATH_TEXT];
    if (system("python3 -c 'import numpy' 2>/dev/null") != 0) {
        print_message("NumPy is not there\n");
        skip();
    }
    for (int twin = 0; twin < 2; twin++) {
        char *out = folder_path(state, twin ? "twin.npz" : "made.npz");
        snprintf(line, sizeof line,
                 "python3 '%s/share/basin/fraud.py' --like yelp --scale 0.02 --seed 3 '%s'",
                 BASIN_SOURCE, out);
        assert_int_equal(system(line), 0);
        run_ok(state, "data convert -q %s.npz %s.basin", twin ? "twin" : "made",
               twin ? "twin" : "made");
    }
    const program *p = run_ok(state, "data info made.basin");
    assert_contains(p->out, "nodes     919\nfeatures  32\n");
    assert_contains(p->out, "of 1 134");
    assert_contains(p->out, "homo      153880       167.44      0.773");
    snprintf(line, sizeof line, "cd '%s' && cmp -s made.basin twin.basin", (const char *)*state);
    assert_int_equal(system(line), 0);
}

TEST(gets_sets) {
    folder_put(state, "tolokers.npz", "not really");
    folder_put(state, "t10k-labels-idx1-ubyte.gz", "not really");
    folder_put(state, "train-images-idx3-ubyte.gz", "not really");
    const char *folder = *state;
    const program *p = run_ok(state, "data get tolokers -o got --mirror file://%s", folder);
    assert_contains(p->err, "Basin knows no digest of this file");
    assert_true(is_there(state, "got/tolokers.npz") && is_there(state, "got/tolokers.npz.sha256"));
    run_ok(state, "data get -q tolokers -o got --mirror file://%s", folder);
    assert_error(run(state, "data get -q mnist -o got --mirror file://%s", folder), 1,
                 "wanted 440fcabf73cc");
    assert_false(is_there(state, "got/train-images-idx3-ubyte.gz"));
    assert_false(is_there(state, "got/train-images-idx3-ubyte.gz.part"));
    assert_error(run(state, "data get -q questions -o got --mirror file://%s", folder), 1,
                 "questions.npz");
    assert_false(is_there(state, "got/questions.npz.part"));
    /* A page in place of the file; a link where the file is written aside is not followed. */
    folder_put(state, "questions.npz", "\n <!DOCTYPE html>sign in");
    folder_put(state, "kept", "kept");
    char line[3 * PATH_TEXT];
    snprintf(line, sizeof line, "ln -s ../kept '%s/got/questions.npz.part'", folder);
    assert_int_equal(system(line), 0);
    assert_error(run(state, "data get -q questions -o got --mirror file://%s", folder), 1,
                 "a web page came");
    assert_false(is_there(state, "got/questions.npz"));
    snprintf(line, sizeof line, "test \"$(cat '%s/kept')\" = kept", folder);
    assert_int_equal(system(line), 0);
    /* The digest of the first fetch counts. */
    folder_put(state, "got/tolokers.npz", "another");
    assert_error(run(state, "data get -q tolokers -o got"), 1, "remove it to fetch it again");
    unlink(folder_path(state, "got/tolokers.npz"));
    folder_put(state, "tolokers.npz", "another");
    assert_error(run(state, "data get -q tolokers -o got --mirror file://%s", folder), 1,
                 "came with SHA-256 ");
    assert_false(is_there(state, "got/tolokers.npz"));
    folder_put(state, "Amazon.mat", "a matrix");
    snprintf(line, sizeof line, "cd '%s' && zip -q FraudAmazon.zip Amazon.mat", folder);
    if (system("command -v zip unzip >/dev/null") == 0) {
        assert_int_equal(system(line), 0);
        run_ok(state, "data get amazon -o got --mirror file://%s", folder);
        assert_true(is_there(state, "got/Amazon.mat"));
    }
    assert_error(run(state, "data get tsocial"), 1, "get it with a browser");
    assert_error(run(state, "data get nothing"), 2, "no set 'nothing'");
    assert_error(run(state, "data get"), 2, "--list");
    assert_contains(run(state, "data get --list")->out, "amazon");
    p = run_ok(state, "data get --list --json");
    assert_contains(p->out, "\"url\": \"https://data.dgl.ai/dataset/FraudAmazon.zip\"");
    assert_contains(p->out, "\"sha256\": \"440fcabf73cc546f");
    assert_contains(p->out, "\"by_hand\": \"https://drive.google.com/");
    snprintf(line, sizeof line, "rm -r '%s/got'", folder);
    assert_int_equal(system(line), 0);
}

int main(void) { return tests_run(folder_new, program_teardown); }
