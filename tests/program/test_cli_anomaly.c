/* basin anomaly train, score, eval, explain on a small table of accounts and transfers, with ids
 * that are words; and what each of them says about data it cannot use. */
#define _GNU_SOURCE /* memmem */
#include <math.h>

#include "program/accounts.h"
#include "support/xgboost.h"
#include "tasks/nodes/network/network.h"

#define QUICK                                                                                      \
    "--epochs 25 --rate 0.003 --members 1 --hops 1 --scaling standard --blocks 1 "                 \
    "--threads 1 "                                                                                 \
    "--quiet"
/* The tests that do not look at what the trees learn have few of them and no teacher. */
#define FEW_TREES QUICK " --trees 4 --no-teacher"

TEST(from_a_table_to_reasons) {
    const program *p = run(state, "anomaly train accounts.csv transfers.csv " QUICK
                                  " -o m.safetensors --log log.jsonl --json");
    cJSON *tree = run_json(p);
    assert_true(json_number(tree, "validation.auroc") > 80);
    p = run_ok(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet");
    assert_true(strncmp(p->out, "node,probability,rank,anomalous\nacc0,", 37) == 0);
    int lines = 0;
    for (const char *c = p->out; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, NODES + 1);
    /* The highest ranks are frauds, also among those whose label was not given. */
    p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet --top 20");
    int found = 0, row = 0;
    for (const char *c = strchr(p->out, '\n'); c && c[1]; c = strchr(c + 1, '\n'), row++)
        found += fraud(atoi(c + 4));
    assert_int_equal(row, 20);
    assert_true(found >= 15);
    /* The first row is the most anomalous, also where N is more than all. */
    char first[40];
    snprintf(first, sizeof first, "%.30s", p->out);
    p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet --top 99999");
    assert_int_equal(strncmp(p->out, first, strlen(first)), 0);
    p = run(state, "anomaly explain m.safetensors acc3 accounts.csv transfers.csv --quiet --json "
                   "--features 100 --neighbours 1000");
    tree = run_json(p);
    assert_string_equal(json_at(tree, "node")->valuestring, "acc3");
    double rest = json_number(tree, "rest") + json_number(tree, "typical_logit"), shares = 0;
    double sum = rest, through = rest + json_number(tree, "own");
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(tree, "features")) sum += json_number(item, "moves");
    cJSON_ArrayForEach(item, json_at(tree, "neighbours")) through += json_number(item, "moves");
    double logit = json_number(tree, "logit"),
           distance = logit - json_number(tree, "typical_logit");
    double missed = json_number(tree, "missed");
    assert_true(fabs(missed) < 0.03 * fabs(distance));
    assert_true(fabs(sum + missed - logit) < 1e-6); /* both lists add up */
    assert_true(fabs(through + missed - logit) < 1e-6);
    cJSON_ArrayForEach(item, json_at(tree, "neighbours")) shares += json_number(item, "attention");
    assert_true(shares > 0 && shares < 1.001);
    assert_true(json_number(tree, "energy.below") >= 0);
    p = run(state, "anomaly explain m.safetensors acc3 accounts.csv transfers.csv --quiet");
    assert_contains(p->out, "node         acc3\nprobability  0.");
    assert_contains(p->out, "amount, mean 1 hop away");
}

/* Of several members, too. */
TEST(reasons_of_a_mixture_add_up) {
    const program *p = run_ok(state, "anomaly train accounts.csv transfers.csv " QUICK
                                     " --scaling quantile --members 3 --trees 0 "
                                     "-o x.safetensors");
    p = run(state, "anomaly explain x.safetensors acc3 accounts.csv transfers.csv --quiet --json");
    cJSON *tree = run_json(p);
    double typical = json_number(tree, "typical_logit");
    double sum = typical + json_number(tree, "rest");
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(tree, "features")) sum += json_number(item, "moves");
    double logit = json_number(tree, "logit"), way = fabs(logit - typical);
    if (!(fabs(sum - logit) < 0.02 * fmax(way, 0.5))) /* what the integral may miss */
        fail_msg("reasons add up from %g to %g, the logit is %g", typical, sum, logit);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "features")), 9); /* 2, neighbours; 2 hops */
}

static int flagged(const char *csv) {
    int count = 0;
    for (const char *c = strchr(csv, '\n'); c && c[1]; c = strchr(c + 1, '\n'))
        count += strchr(c + 1, '\n')[-1] == '1';
    return count;
}

/* m.safetensors with a network that has no share: there is no attention to print. */
TEST(attention_without_a_share_is_not_printed) {
    needs_xgboost();
    static const char key[] = "\"network.share\":\"";
    static char bytes[1 << 23];
    size_t size = file_get(bytes, sizeof bytes, folder_path(state, "m.safetensors"));
    char *share = memmem(bytes, size, key, sizeof key - 1);
    assert_true(share && size < sizeof bytes);
    *(char *)memmem(bytes, size, "basin.digests", 13) = 'B'; /* as of a file without any */
    for (share += sizeof key - 1; *share != '"'; share++)
        if (*share != '.') *share = '0';
    assert_int_equal(file_put(folder_path(state, "none.safetensors"), bytes, size), 0);
    const program *p = run_ok(state, "anomaly explain none.safetensors acc3 accounts.csv "
                                     "transfers.csv -q");
    assert_null(strstr(p->out, "returned"));
}

TEST(thresholds_follow_a_goal) {
    needs_xgboost();
    const program *p = run_ok(state, "anomaly train accounts.csv transfers.csv " FEW_TREES
                                     " -o t.safetensors --threshold-for recall=0.9 --reliability");
    assert_contains(p->out, "for recall=0.9; expected on new accounts: precision ");
    assert_contains(p->out, "\ntrees only  ");
    assert_contains(p->out, "expected calibration error");
    static const char line[] = "anomaly score t.safetensors accounts.csv transfers.csv --quiet";
    p = run(state, "%s --threshold-for alerts=12", line);
    assert_int_equal(flagged(p->out), 12);
    p = run(state, "%s --threshold-for recall=1", line);
    int all = flagged(p->out);
    p = run(state, "%s", line); /* the model's own: that of training */
    assert_true(flagged(p->out) > 0 && flagged(p->out) <= all);
    p = run(state, "%s --threshold-for recall=90", line);
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "threshold for 'recall=90'; needs");
}

TEST(eval_prints_figures_and_baselines) {
    needs_xgboost();
    const program *p =
        run(state, "anomaly eval accounts.csv transfers.csv " FEW_TREES " --runs 2 --json");
    cJSON *tree = run_json(p);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models")), 7);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models.0.runs")), 2);
    assert_true(json_number(tree, "models.0.auroc.0") > 70);
    assert_string_equal(json_at(tree, "models.1.model")->valuestring, "- trees only");
    assert_string_equal(json_at(tree, "models.6.model")->valuestring, "rival-mlp");
    assert_true(json_number(tree, "models.0.runs.0.reliability.ece") < 0.2);
}

/* A detector of another form is not called by the preset alone. */
TEST(eval_names_the_form) {
    const program *p =
        run_ok(state, "anomaly eval accounts.csv transfers.csv --epochs 2 --members 1 "
                      "--trees 0 --runs 1 --no-baselines --threads 1 --quiet --form "
                      "linear");
    assert_contains(p->out, "default, form linear");
}

TEST(eval_gives_intervals) {
    static const char line[] = "anomaly eval accounts.csv transfers.csv " QUICK
                               " --runs 3 --epochs 3 --trees 0 --no-baselines";
    cJSON *tree = run_json(run(state, "%s --json", line));
    assert_true(json_number(tree, "models.0.runs.2.test.auprc") > 0);
    double mean = json_number(tree, "models.0.auroc.0");
    assert_true(json_number(tree, "models.0.interval_95.auroc.0") < mean);
    assert_true(json_number(tree, "models.0.interval_95.auroc.1") > mean);
}

/* One table where two are needed: the line says which one is missing. */
TEST(names_the_table_that_is_missing) {
    run_ok(state, "anomaly train accounts.csv transfers.csv " QUICK " --trees 0 -o two.st --quiet");
    assert_error(run(state, "anomaly train accounts.csv -o n.st --quiet"), 1,
                 "accounts.csv: no table of transfers is given");
    assert_error(run(state, "anomaly eval accounts.csv --quiet"), 1,
                 "accounts.csv: no table of transfers is given");
    assert_error(run(state, "anomaly eval transfers.csv --quiet"), 1,
                 "transfers.csv: no labels to compare with; needs a table of nodes");
    assert_error(run(state, "anomaly eval transfers.csv --model two.st --quiet"), 1,
                 "transfers.csv: no table of nodes is given beside it; the detector was trained "
                 "with its column 'amount'");
}

/* XGBoost stands beside the detector, after the plain models; a wrong name is told at once. */
TEST(eval_prints_rivals) {
    const program *p = run(state, "anomaly eval accounts.csv transfers.csv " QUICK
                                  " --runs 1 --json --no-baselines --rivals xgboost --trees 0");
    if (!strstr(p->err, "XGBoost, ")) { /* it is there */
        cJSON *tree = run_json(p);
        assert_int_equal(cJSON_GetArraySize(json_at(tree, "models")), 2);
        assert_string_equal(json_at(tree, "models.1.model")->valuestring, "xgboost");
        assert_true(json_number(tree, "models.1.auroc.0") > 50);
    }
    assert_error(run(state, "anomaly eval accounts.csv transfers.csv --quiet --rivals x"), 1,
                 "--rivals: 'x' is not one of all, linear-hops, linear");
}

/* The amount that marks frauds is paid on their last day: whoever trains without the days of the
 * test cannot learn from it, and scores of the test see it. */
TEST(an_inductive_split_reads_no_edge_of_the_test) {
    static const char line[] = "anomaly eval days.csv paid.csv " QUICK
                               " --trees 0 --no-baselines --split-time time --runs 1 --directed";
    FILE *nodes = fopen(folder_path(state, "days.csv"), "w");
    FILE *edges = fopen(folder_path(state, "paid.csv"), "w");
    assert_true(nodes && edges);
    fputs("id,label,age\n", nodes);
    fputs("src,dst,amount,time\n", edges);
    for (int i = 0; i < 300; i++) {
        bool fraud = i % 4 == 0;
        fprintf(nodes, "n%d,%d,%d\n", i, fraud, i * 7 % 50);
        fprintf(edges, "n%d,n%d,%d,%d\n", (i * 31 + 5) % 300, i, 1 + i % 3, 1 + i);
        fprintf(edges, "n%d,n%d,%d,%d\n", (i * 17 + 3) % 300, i, fraud ? 900 : 2, 600 + i);
    }
    fclose(nodes), fclose(edges);
    cJSON *seen = run_json(run(state, "%s --json", line));
    const program *p = run(state, "%s --json --inductive", line);
    cJSON *past = run_json(p);
    assert_true(json_number(seen, "models.0.auroc.0") > 95);
    assert_true(json_number(past, "models.0.runs.0.validation.auroc") < 80);
    assert_error(run(state, "anomaly eval accounts.csv transfers.csv --inductive"), 2,
                 "--inductive has no effect without --split-time");
}

/* Two rows say what edges are worth; what each node has by itself stays. */
TEST(eval_measures_what_edges_are_worth) {
    static const char line[] = "anomaly eval accounts.csv transfers.csv " QUICK
                               " --runs 2 --trees 0 --no-baselines --no-edges --shuffle-edges";
    cJSON *tree = run_json(run(state, "%s --json", line));
    assert_string_equal(json_at(tree, "models.1.model")->valuestring, "no edges");
    assert_string_equal(json_at(tree, "models.2.model")->valuestring, "edges shuffled");
    double with = json_number(tree, "models.0.auprc.0");
    double without = json_number(tree, "models.1.auprc.0");
    assert_true(json_number(tree, "models.2.auprc.0") < with && without < with);
    const program *p = run_ok(state, "%s -q", line);
    char gain[60];
    snprintf(gain, sizeof gain, "gain of the edges, over no edges: AUPRC %+.2f", with - without);
    assert_contains(p->out, gain);
}

/* Trees read the labels: without trees there is nobody to. */
TEST(labels_want_trees) {
    assert_error(run(state, "anomaly train accounts.csv transfers.csv --labels --trees 0 --quiet"),
                 1, "labels has no effect with trees 0; leave it out");
}

TEST(settings_without_effect_are_refused) {
    static const struct {
        const char *options, *line;
    } trial[] = {{"--no-attention --heads 2 --self-loops add",
                  "self_loops and heads have no effect with attention off; leave them out"},
                 {"--no-hopfield --memories 8", "memories has no effect with hopfield off"},
                 {"--form mlp --dim 8", "dim has no effect with form mlp"},
                 {"--form linear --hidden 8", "hidden has no effect with form linear"},
                 {"--warmup 0 --rate-first 0.1", "rate_first has no effect with warmup 0"},
                 {"--epochs 1 --log-every 3", "log_every is 3, "}};
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++)
        assert_error(run(state,
                         "anomaly train accounts.csv transfers.csv --quiet --members 1 "
                         "--trees 0 --hops 0 --scaling standard %s",
                         trial[i].options),
                     1, trial[i].line);
    const program *p =
        run_ok(state, "anomaly train accounts.csv transfers.csv --epochs 1 --members 1 --trees 0 "
                      "--hops 0 --scaling standard --position learned --fanout 4");
    assert_contains(p->err, "fanout has no effect with sampling full; leave it out");
}

/* A goal that is none is told before the hours of training, not after them. */
TEST(goals_are_read_first) {
    static const char *const goal[] = {"presicion=0.9", "recall=2", "alerts=1.5", "recall="};
    for (int i = 0; i < 4; i++)
        assert_error(run(state,
                         "anomaly train accounts.csv transfers.csv --epochs 1 --members 1 --trees "
                         "0 --quiet --threshold-for %s -o goal.safetensors",
                         goal[i]),
                     1, "needs precision=X, recall=X or fpr=X with X up to 1, cost=X:Y ");
    assert_int_not_equal(access(folder_path(state, "goal.safetensors"), F_OK), 0);
}

TEST(presets_give_way_to_options) {
    const program *p =
        run_ok(state, "anomaly train --heads 5 --preset paper-amazon --print-config");
    assert_null(strstr(p->out, "estimate"));
    assert_contains(p->out, "\"memories\":\t640");
    assert_contains(p->out, "\"heads\":\t5");
    assert_contains(p->out, "\"position\":\t\"learned\"");
}

/* With data the run is rehearsed: how large, how long. All members count, and nothing is written.
 */
TEST(a_configuration_tells_what_a_run_would_take) {
    const program *p = run(state, "anomaly train accounts.csv transfers.csv " FEW_TREES
                                  " --members 3 -o never.safetensors --print-config");
    cJSON *tree = run_json(p);
    assert_true(json_number(tree, "estimate.parameters") > 1000);
    assert_true(json_number(tree, "estimate.memory_bytes") > 10000);
    assert_true(json_number(tree, "estimate.steps") == 300); /* four batches of 64 */
    assert_true(json_number(tree, "estimate.seconds") > 0);
    assert_int_not_equal(access(folder_path(state, "never.safetensors"), F_OK), 0);
}

/* Fine-tuning from a model, more epochs after the end, a finished run that is resumed. */
TEST(a_run_begins_with_a_model_and_goes_on) {
    const program *p =
        run_ok(state, "anomaly train accounts.csv transfers.csv " FEW_TREES
                      " --from m.safetensors --keep-checkpoint --epochs 3 -o f.safetensors");
    p = run_ok(state, "anomaly train accounts.csv transfers.csv " FEW_TREES
                      " --resume --epochs 5 -o f.safetensors");
    assert_contains(p->out, "\nseconds since resumed  ");
    assert_contains(p->out, "\nepochs                 5\n");
    p = run_ok(state, "anomaly train accounts.csv transfers.csv " FEW_TREES
                      " --resume --epochs 5 -o f.safetensors");
    assert_contains(p->out, "f.safetensors: already finished");
}

/* Before data are read and long before a model is there. */
TEST(an_output_that_cannot_be_written_is_told_first) {
    assert_error(run(state, "anomaly train nowhere.csv " QUICK " -o none/m.safetensors"), 1,
                 "none/m.safetensors");
}

static void write_one_split(void **state) {
    const char *file[] = {folder_path(state, "accounts.csv"), folder_path(state, "transfers.csv")};
    BASIN_AT_EXIT(free_network) basin_network *network;
    basin_error error;
    uint8_t part[NODES], mask[NODES];
    if (basin_network_open(&network, file, 2, NULL, &error) ||
        basin_split_stratified(part, network, 0.4, 1, 0, &error))
        fail_msg("%s", error.text);
    static const char *const name[] = {"train", "val", "test"};
    for (int p = 0; p < 3; p++) {
        for (int i = 0; i < NODES; i++) mask[i] = part[i] == p + 1;
        basin_tensor tensor = basin_tensor_borrow(mask, BASIN_U8, BASIN_SHAPE(NODES));
        assert_ok(basin_network_set_masks(network, name[p], &tensor, &failure));
    }
    assert_ok(basin_network_write(folder_path(state, "one.npz"), network, &failure));
}

/* A file with one split: the runs have different seeds. */
TEST(one_split_serves_all_runs) {
    write_one_split(state);
    const program *p =
        run(state, "anomaly eval one.npz " FEW_TREES " --runs 2 --no-baselines --json");
    cJSON *tree = run_json(p);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models.0.runs")), 2);
    assert_true(json_number(tree, "models.0.runs.1.test.auroc") > 50);
}

TEST(wrong_data_get_one_line) {
    FILE *file = fopen(folder_path(state, "one.csv"), "w");
    fputs("id,label,amount\n", file);
    for (int i = 0; i < 20; i++) fprintf(file, "a%d,0,%d\n", i, i);
    fclose(file);
    folder_put(state, "few.csv", "source,target\na0,a1\na1,a2\n");
    assert_error(run(state, "anomaly train one.csv few.csv -o n.safetensors " QUICK), 1,
                 "0 anomalous");
    assert_error(run(state, "anomaly train " QUICK), 2, "needs data to train on");
    assert_error(run(state, "anomaly score accounts.csv transfers.csv --quiet"), 1, "accounts.csv");
    assert_error(run(state, "anomaly explain m.safetensors nobody accounts.csv transfers.csv -q"),
                 1, "no node 'nobody'");
    assert_error(run(state, "anomaly score m.safetensors one.csv few.csv --quiet"), 1,
                 "one.csv: no column 'age' with which the detector was trained");
    assert_error(run(state, "anomaly train accounts.csv transfers.csv --form published --blocks 2 "
                            "-o n.safetensors --quiet"),
                 1, "published form");
    assert_error(run(state, "anomaly train accounts.csv transfers.csv " QUICK " --memory 1e-8"), 1,
                 "accounts.csv: needs"); /* the bound holds for reading, too */
    assert_error(run(state,
                     "anomaly train accounts.csv transfers.csv " FEW_TREES " --memory 0.0001 "
                     "--sampling neighbours -o n.safetensors"),
                 1, "of 0.0001 allowed; needs more memory");
    assert_error(run(state, "anomaly train accounts.csv transfers.csv " QUICK " --sampling full "
                            "--fraction 0.1 -o n.safetensors"),
                 1, "fraction has no effect with sampling full");
}

int main(void) { return tests_run(make_table, program_teardown); }
