/* What comes after training a detector: back-tests on new labels, what the model remembers, drift,
 * reasons; and what needs no training, oddness without labels. */
#include <math.h>

#include "base/file.h"
#include "basin/version.h"
#include "program/accounts.h"
#include "support/xgboost.h"

#define QUICK                                                                                      \
    "--epochs 15 --rate 0.003 --members 1 --hops 1 --scaling standard --blocks 1 --trees 2 "       \
    "--threads 1 --quiet"

static int make_model(void **state) {
    program_needs_xgboost();
    if (make_table(state)) return -1;
    const program *p =
        run(state, "anomaly train accounts.csv transfers.csv " QUICK " -o m.safetensors --json");
    return p->code;
}

/* ---- what a model records ---- */

static const char *text_at(const cJSON *tree, const char *path) {
    return cJSON_GetStringValue(json_at(tree, path));
}

/* The accounts once more, changed by an awk program. */
static void copy_accounts(void **state, const char *name, const char *how) {
    char line[PATH_TEXT + 300];
    snprintf(line, sizeof line, "cd '%s' && awk -F, -v OFS=, '%s' accounts.csv >%s",
             (const char *)*state, how, name);
    assert_int_equal(system(line), 0);
}

#define FROM                                                                                       \
    "--epochs 2 --rate 0.003 --ratio 0.3 --hops 1 --scaling standard --blocks 1 --trees 0 "        \
    "--threads 1 --from m.safetensors -o "

/* The parent's nodes count as trained on, its id is that of its file, columns go by their names. */
TEST(a_model_inherits_what_its_parent_saw) {
    char other[BASIN_SHA256_TEXT], id[BASIN_SHA256_TEXT];
    assert_ok(basin_file_sha256(id, folder_path(state, "m.safetensors"), &failure));
    id[16] = 0;
    const program *p = run_ok(state, "anomaly train accounts.csv transfers.csv " FROM "c.st");
    assert_contains(p->err, "took part in the training of the model that this one begins with");
    cJSON *tree = run_json(run(state, "info c.st --json"));
    assert_string_equal(text_at(tree, "files.0.parents.0.id"), id);
    assert_string_equal(text_at(tree, "files.0.files.1.path"), "transfers.csv");
    assert_ok(basin_file_sha256(id, folder_path(state, "transfers.csv"), &failure));
    assert_string_equal(text_at(tree, "files.0.files.1.sha256"), id);
    assert_string_equal(text_at(tree, "files.0.cuts.0.cut"), "ratio");
    assert_string_equal(text_at(tree, "files.0.cuts.0.value"), "0.3");
    p = run(state, "anomaly eval --model c.st accounts.csv transfers.csv --unseen -q");
    assert_error(p, 1, "0 labelled nodes"); /* all took part in one or the other */
    run_ok(state, "anomaly score c.st accounts.csv transfers.csv -o c.csv -q");
    copy_accounts(state, "swapped.csv", "{print $1, $4, $3, $2}");
    run_ok(state, "anomaly train swapped.csv transfers.csv " FROM "s.st");
    run_ok(state, "anomaly score s.st accounts.csv transfers.csv -o s.csv -q");
    assert_int_equal(basin_file_sha256(id, folder_path(state, "c.csv"), NULL), 0);
    assert_int_equal(basin_file_sha256(other, folder_path(state, "s.csv"), NULL), 0);
    assert_string_equal(id, other);
    copy_accounts(state, "renamed.csv", "NR == 1 {$4 = \"years\"} {print}");
    p = run(state, "anomaly train renamed.csv transfers.csv --quiet " FROM "r.st");
    assert_error(p, 1, "renamed.csv: no column 'age'");
}

/* A checkpoint goes on with the data, and the parent, that it began with. */
TEST(a_run_resumes_on_the_same_data_alone) {
    copy_accounts(state, "flipped.csv", "NR == 2 {$2 = 1} {print}");
#define BRIEF                                                                                      \
    "transfers.csv --epochs 2 --members 1 --hops 1 --scaling standard --blocks 1 --trees 0 "       \
    "--threads 1 --quiet --keep-checkpoint "
    run_ok(state, "anomaly train accounts.csv " BRIEF "--from m.safetensors -o r.safetensors");
    const char *again = BRIEF "--resume -o r.safetensors";
    assert_error(run(state, "anomaly train flipped.csv %s --from m.safetensors", again), 1,
                 "trains on other nodes");
    assert_error(run(state, "anomaly train accounts.csv %s --from r.safetensors", again), 1,
                 "r.safetensors.checkpoint: its run did not begin with r.safetensors, model ");
    run_ok(state, "anomaly train accounts.csv %s --from m.safetensors", again);
    cJSON *tree = run_json(run(state, "info r.safetensors --json"));
    assert_string_equal(text_at(tree, "files.0.parents.0.data"), "accounts.csv");
}

/* JSON says it once, CSV in each row where that is asked for. */
TEST(scores_name_the_model_and_the_day) {
    char id[BASIN_SHA256_TEXT], row[100];
    assert_ok(basin_file_sha256(id, folder_path(state, "m.safetensors"), &failure));
    snprintf(row, sizeof row, ",%.16s,%s,20", id, basin_version());
    static const char line[] = "anomaly score m.safetensors accounts.csv transfers.csv -q --top 2";
    cJSON *tree = run_json(run(state, "%s --json", line));
    assert_memory_equal(text_at(tree, "model_id"), id, 16);
    assert_int_equal(strlen(text_at(tree, "date")), 10);
    const program *p = run_ok(state, "%s --stamp", line);
    assert_contains(p->out, "node,probability,rank,anomalous,model_id,version,date\n");
    assert_contains(p->out, row);
    p = run_ok(state, "%s", line);
    assert_contains(p->out, "node,probability,rank,anomalous\n");
}

/* ---- back-tests ---- */

/* All figures against those counted here from the scores. */
TEST(eval_judges_a_saved_model) {
    const program *p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet "
                                  "--json");
    cJSON *scores = run_json(p);
    double threshold = json_number(scores, "threshold");
    int alerts = 0, right = 0, frauds = 0, labelled = 0, i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(scores, "nodes")) {
        int account = i++;
        if (account % 10 == 9) continue; /* no label */
        bool alert = json_number(item, "probability") > threshold;
        labelled++;
        frauds += fraud(account);
        alerts += alert;
        right += alert && fraud(account);
    }
    p = run(state, "anomaly eval --model m.safetensors accounts.csv transfers.csv --quiet --json");
    cJSON *tree = run_json(p);
    assert_int_equal(json_number(tree, "nodes"), labelled);
    assert_int_equal(json_number(tree, "anomalous"), frauds);
    assert_int_equal(json_number(tree, "alerts"), alerts);
    assert_float_equal(json_number(tree, "precision"), 100.0 * right / alerts, 1e-9);
    assert_float_equal(json_number(tree, "recall"), 100.0 * right / frauds, 1e-9);
    assert_true(json_number(tree, "auroc") > 80 && json_number(tree, "auprc") > 50);
    assert_int_equal(json_number(tree, "budgets.0.alerts"), 10);
    assert_float_equal(json_number(tree, "budgets.0.recall"),
                       json_number(tree, "budgets.0.precision") * 10 / frauds, 1e-9);
    assert_int_equal(json_number(tree, "budgets.2.alerts"), 100);
    assert_true(json_number(tree, "reliability.ece") >= 0);
    /* four in five of the labelled nodes trained, the others validated */
    assert_int_equal(json_number(tree, "trained_on") + json_number(tree, "validated_on"), labelled);
    assert_true(json_number(tree, "trained_on") > 3 * json_number(tree, "validated_on"));
}

TEST(eval_says_what_was_trained_on) {
    const program *p =
        run_ok(state, "anomaly eval --model m.safetensors accounts.csv transfers.csv");
    assert_contains(p->out, "were trained on");
    assert_contains(p->out, "not a held-out score");
    p = run(state,
            "anomaly eval --model m.safetensors accounts.csv transfers.csv --unseen --quiet");
    assert_error(p, 1, "0 labelled nodes, 0 of them anomalous; needs some of both");
    /* Two new months of accounts: other ids, the same columns in another order. */
    FILE *nodes = fopen(folder_path(state, "june.csv"), "w");
    FILE *edges = fopen(folder_path(state, "june-transfers.csv"), "w");
    fputs("age,id,amount,label\n", nodes);
    fputs("source,target\n", edges);
    for (uint64_t i = 0; i < 60; i++) {
        fprintf(nodes, "%.3f,new%d,%.3f,%d\n", basin_random_normal_at(5, 0, i), (int)i,
                basin_random_normal_at(5, 1, i) + (i % 6 == 0) * 3, i % 6 == 0);
        fprintf(edges, "new%d,new%d\n", (int)i, (int)((i + 6) % 60));
    }
    fclose(nodes);
    fclose(edges);
    p = run_ok(state, "anomaly eval --model m.safetensors june.csv june-transfers.csv --unseen "
                      "--threshold-for alerts=7");
    assert_contains(p->out, "0 that took part in training are left out");
    assert_contains(p->out, "alerts     7\n");
    p = run(state, "anomaly eval --model m.safetensors june.csv june-transfers.csv");
    assert_contains(p->out, "none of them took part in training");
}

/* An option that a back-test does not look at is wrong usage, and the other way round. */
/* Without ids nodes go by number, in the very network of training alone. */
TEST(eval_does_not_guess_what_was_trained_on) {
    char line[2 * PATH_TEXT];
    snprintf(line, sizeof line, "cd '%s' && head -n 900 transfers.csv >fewer.csv", (char *)*state);
    assert_int_equal(system(line), 0);
    const program *p = run_ok(state, "data convert accounts.csv transfers.csv all.npz --quiet");
    p = run_ok(state, "data convert accounts.csv fewer.csv fewer.npz --quiet");
    p = run_ok(state, "anomaly train all.npz --epochs 1 --members 1 --hops 0 --trees 0 --quiet "
                      "--threads 1 -o n.safetensors");
    p = run(state, "anomaly eval --model n.safetensors all.npz --quiet");
    assert_contains(p->out, " of them were trained on, ");
    p = run(state, "anomaly eval --model n.safetensors fewer.npz --quiet");
    assert_contains(p->out, "which nodes took part in training is not known");
    p = run(state, "anomaly eval --model n.safetensors fewer.npz --quiet --unseen");
    assert_error(p, 1, "fewer.npz: which of its nodes took part in training is not known");
}

TEST(eval_refuses_options_without_effect) {
    static const char *const idle[] = {
        "--runs 3",       "--ratio 0.3",           "--epochs 7",
        "--rivals all",   "--preset paper-amazon", "--trees 9",
        "--no-baselines", "--split-seed 4",        "--split-time opened"};
    const program *p;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        p = run(state, "anomaly eval --model m.safetensors accounts.csv transfers.csv %s", idle[i]);
        assert_error(p, 2, "has no effect with --model");
    }
    p = run(state, "anomaly eval accounts.csv transfers.csv --unseen --quiet");
    assert_error(p, 2, "--unseen has no effect without --model");
    p = run(state, "anomaly eval accounts.csv transfers.csv --split ratio --split-time opened");
    assert_error(p, 2, "--split-time has no effect with --split ratio");
    p = run(state, "anomaly eval accounts.csv transfers.csv --in-context --split masks");
    assert_error(p, 2, "--split has no effect with --in-context");
    p = run(state, "anomaly score --in-context accounts.csv --no-header");
    assert_error(p, 1, "the option no_header has no effect");
    p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --max-categories 3");
    assert_error(p, 1, "max_categories has no effect: columns are those of training");
    p = run(state, "anomaly train accounts.csv transfers.csv --validation 0 --select auroc");
    assert_error(p, 2, "--select has no effect with --validation 0");
    p = run(state, "anomaly eval --model accounts.csv accounts.csv transfers.csv");
    assert_int_equal(p->code, 1);
}

/* ---- what a model remembers ---- */

/* Of two ways to split one would go unheard. */
TEST(train_refuses_two_splits) {
    static const char *const both[][2] = {{"--ratio 0.4 --validation 0.3", "--ratio and --val"},
                                          {"--split 0 --ratio 0.4", "--split and --ratio"},
                                          {"--split 0 --split-time opened", "--split-time"}};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        const program *p = run(state, "anomaly train accounts.csv transfers.csv %s", both[i][0]);
        assert_error(p, 2, both[i][1]);
    }
    assert_error(run(state, "node train accounts.csv transfers.csv --ratio 0.4 --split 0"), 2,
                 "--split and --ratio exclude");
}

TEST(info_shows_date_data_and_figures) {
    const program *p = run(state, "info m.safetensors --json");
    cJSON *tree = run_json(p);
    static const char *const key[] = {"trained.date", "trained.version",  "trained.data",
                                      "base_rate",    "validation.auroc", "validation.ece"};
    const cJSON *card = json_at(tree, "files.0.configuration");
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        if (!cJSON_GetObjectItemCaseSensitive(card, key[i])) fail_msg("no %s", key[i]);
    const char *rate = cJSON_GetObjectItemCaseSensitive(card, "base_rate")->valuestring;
    assert_float_equal(atof(rate), 1.0 / 7, 0.01);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(card, "trained.data")->valuestring,
                        "accounts.csv");
    const char *date = cJSON_GetObjectItemCaseSensitive(card, "trained.date")->valuestring;
    assert_true(strlen(date) == 10 && date[4] == '-' && date[7] == '-');
}

/* ---- drift ---- */

/* Accounts with a category; those of June hold three times as much and have a country that training
 * did not know. */
static void write_month(void **state, const char *name, double times, const char *third) {
    char file[100];
    static const char *country[] = {"DE", "FR", NULL};
    snprintf(file, sizeof file, "%s.csv", name);
    FILE *nodes = fopen(folder_path(state, file), "w");
    snprintf(file, sizeof file, "%s-edges.csv", name);
    FILE *edges = fopen(folder_path(state, file), "w");
    assert_true(nodes && edges);
    fputs("id,label,amount,age,country\n", nodes);
    fputs("source,target,kind\n", edges);
    for (uint64_t i = 0; i < 400; i++) {
        bool bad = i % 8 == 1;
        fprintf(nodes, "n%d,%d,%.4f,%.4f,%s\n", (int)i, bad,
                times * (1 + basin_random_uniform_at(3, 0, i) + 2 * bad),
                basin_random_normal_at(3, 1, i), i % 4 == 0 ? third : country[i % 2]);
        for (uint64_t k = 0; k < 3; k++)
            fprintf(edges, "n%d,n%d,%s\n", (int)i,
                    (int)(basin_random_uniform_at(3, 2, 3 * i + k) * 400),
                    k ? "wire" : third); /* a third of a kind that June alone knows */
    }
    fclose(nodes);
    fclose(edges);
}

static const cJSON *drift_of(const cJSON *tree, const char *column) {
    const cJSON *item;
    cJSON_ArrayForEach(
        item, json_at(tree, "drift.columns")) if (!strcmp(json_at(item, "column")->valuestring,
                                                          column)) return item;
    fail_msg("no drift of %s", column);
    return NULL;
}

TEST(score_tells_of_drift) {
    write_month(state, "may", 1, "IT");
    write_month(state, "june", 3, "JP");
    const program *p =
        run_ok(state, "anomaly train may.csv may-edges.csv " QUICK " -o may.safetensors --trees 0");
    p = run(state, "anomaly score may.safetensors may.csv may-edges.csv -o s.csv");
    assert_contains(p->err, "little drift against training");
    p = run_ok(state, "anomaly score may.safetensors june.csv june-edges.csv -o s.csv");
    assert_contains(p->err,
                    "LARGE drift against training: stability index above 0.25 in 4 of 8 columns");
    assert_contains(p->err, "kind of edges");
    assert_contains(p->err, "amount");
    assert_contains(p->err, "country");
    p = run(state, "anomaly score may.safetensors june.csv june-edges.csv --json --quiet");
    cJSON *tree = run_json(p);
    assert_true(json_number(drift_of(tree, "amount"), "index") > 0.25);
    assert_true(json_number(drift_of(tree, "amount"), "median") >
                2.5 * json_number(drift_of(tree, "amount"), "median_in_training"));
    assert_float_equal(json_number(drift_of(tree, "country"), "unknown"), 0.25, 1e-6);
    assert_float_equal(json_number(drift_of(tree, "country"), "unknown_in_training"), 0, 1e-6);
    assert_true(json_number(drift_of(tree, "age"), "index") < 1e-6); /* the same numbers */
    assert_true(json_number(drift_of(tree, "number of neighbours"), "index") < 1e-6);
    /* One account says nothing about drift. */
    p = run(state, "data convert may.csv may-edges.csv may.basin --keep-gaps");
    folder_put(state, "one.csv", "id,amount,age,country\nx,9,1,DE\n");
    folder_put(state, "pay.csv", "source,target,kind\nx,n3,wire\n");
    p = run_ok(state, "anomaly score may.safetensors --base may.basin --new one.csv pay.csv");
    assert_contains(p->err, "1 node is too few to compare");
}

/* ---- reasons ---- */

TEST(score_names_reasons) {
    static const char line[] = "anomaly score m.safetensors accounts.csv transfers.csv --quiet";
    const program *p = run_ok(state, "%s --top 20 --explain --reasons 2", line);
    assert_true(!strncmp(p->out, "node,probability,rank,anomalous,reason_1,reason_2\n", 49));
    assert_contains(p->out, "(typical ");
    int rows = -1;
    for (const char *c = p->out; *c; c++) rows += *c == '\n';
    assert_int_equal(rows, 20);
    p = run(state, "%s --top 3 --explain --reasons 100 --json", line);
    cJSON *tree = run_json(p);
    const cJSON *node, *item;
    cJSON_ArrayForEach(node, json_at(tree, "nodes")) {
        double sum = json_number(node, "typical_logit") + json_number(node, "rest");
        double through = sum + json_number(node, "own"), logit = json_number(node, "logit");
        cJSON_ArrayForEach(item, json_at(node, "features")) sum += json_number(item, "moves");
        cJSON_ArrayForEach(item, json_at(node, "neighbours")) through += json_number(item, "moves");
        double distance = logit - json_number(node, "typical_logit");
        assert_true(distance > 0.5);
        assert_true(fabs(sum - logit) < 0.03 * distance);
        assert_true(fabs(through - logit) < 0.03 * distance);
    }
    p = run(state, "%s --explain", line);
    assert_error(p, 2, "--explain has no effect without --top or --new");
    p = run(state, "%s --top 3 --reasons 5", line);
    assert_error(p, 2, "--reasons has no effect without --explain");
}

/* Days are shown as days, categories as yes and no, amounts as they stand in the table. */
TEST(reasons_are_in_the_users_units) {
    FILE *nodes = fopen(folder_path(state, "dated.csv"), "w");
    assert_non_null(nodes);
    fputs("id,label,opened,country,balance\n", nodes);
    for (int i = 0; i < 200; i++)
        fprintf(nodes, "acc%d,%d,%s,%s,\"%d,%03d.50\"\n", i, i % 5 == 0,
                i % 5 ? "2019-03-04" : "2026-11-01", i % 5 ? "DE" : "XX", i % 5 ? 1 : 9, i);
    fclose(nodes);
    FILE *edges = fopen(folder_path(state, "dated-edges.csv"), "w");
    fputs("source,target\n", edges);
    for (int i = 0; i < 200; i++) fprintf(edges, "acc%d,acc%d\n", i, (i + 5) % 200);
    fclose(edges);
    const program *p = run_ok(state, "anomaly train dated.csv dated-edges.csv " QUICK
                                     " --trees 4 -o d.safetensors");
    p = run_ok(state, "anomaly explain d.safetensors acc5 dated.csv dated-edges.csv --quiet "
                      "--features 100");
    assert_contains(p->out, "2026-11-01  2019-03-04"); /* its own, a typical one */
    assert_contains(p->out, "9005.5");
    assert_contains(p->out, "yes");
    assert_contains(p->out, "number of neighbours");
    p = run(state,
            "anomaly score d.safetensors dated.csv dated-edges.csv --quiet --top 1 --explain "
            "--reasons 30");
    assert_contains(p->out, "opened 2026-11-01 (typical 2019-03-04) +");
    /* Its neighbours are two frauds; what is known of them can be recounted. */
    cJSON *tree = run_json(run(state, "anomaly explain d.safetensors acc5 dated.csv "
                                      "dated-edges.csv -q --features 100 --json"));
    const cJSON *item;
    int found = 0;
    cJSON_ArrayForEach(item, json_at(tree, "features")) {
        if (json_number(item, "column") >= 0 || json_number(item, "hop") != 1) continue;
        char name[60];
        double known = json_number(item, "known");
        assert_true(known <= 2 && json_number(item, "anomalous") == known);
        snprintf(name, sizeof name, "known anomalies, %.0f of %.0f known neighbours", known, known);
        assert_string_equal(text_at(item, "feature"), name);
        found++;
    }
    assert_int_equal(found, 1);
}

int main(void) { return tests_run(make_model, program_teardown); }
