/* Files of Basin 0.1 (tests/files-0.1): its model scores as it did, its checkpoint goes on to its
 * finished model; also one of a run without validation. */
#include <math.h>
#include <string.h>

#include "io/folder.h"
#include "task/anomaly/fraud.h"
#include "train/run/run.h"

#define FILES BASIN_SOURCE "/tests/files-0.1/"

static basin_network *open_accounts(void) {
    const char *file[] = {FILES "accounts.basin"};
    basin_network *network;
    basin_error error;
    must(basin_network_open(&network, file, 1, NULL, &error), &error);
    if (basin_network_main_relation(network) < 0)
        must(basin_network_add_union(network, &error), &error);
    return network;
}

static void its_model_scores_as_before(void **state) {
    (void)state;
    basin_training training = fraud_training();
    basin_network *network = open_accounts();
    basin_anomaly_model *model;
    basin_error error;
    double *score = calloc((size_t)network->nodes, sizeof *score);
    must(basin_anomaly_open(&model, FILES "anomaly.safetensors", training.backend, &error), &error);
    must(basin_anomaly_score(score, model, network, NULL, &error), &error);
    FILE *file = fopen(FILES "anomaly.csv", "r");
    char line[200];
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    for (int64_t i = 0; i < network->nodes; i++) {
        long long node, rank;
        double wanted;
        int anomalous;
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(sscanf(line, "%lld,%lf,%lld,%d", &node, &wanted, &rank, &anomalous), 4);
        assert_int_equal(node, i);
        if (fabs(score[i] - wanted) > 1e-6) fail_msg("node %lld: %g, %g", node, score[i], wanted);
        if (fabs(wanted - model->threshold) > 1e-6)
            assert_int_equal(score[i] > basin_anomaly_threshold(model), anomalous);
    }
    fclose(file);
    free(score);
    basin_anomaly_close(model);
    basin_network_free(network);
    basin_backend_close(training.backend);
}

/* Other processors round differently. */
static void assert_near(const basin_anomaly_model *a, const basin_anomaly_model *b) {
    assert_int_equal(a->members, b->members);
    assert_true(fabs(a->threshold - b->threshold) < 1e-5);
    for (int64_t m = 0; m < a->members; m++)
        for (size_t i = 0; i < basin_bundle_count(a->member[m]); i++) {
            const char *name = basin_bundle_name(a->member[m], i);
            const basin_tensor *x = basin_bundle_at(a->member[m], i);
            const basin_tensor *y = basin_bundle_find(b->member[m], name);
            assert_true(y && basin_shape_equal(x->shape, y->shape));
            for (int64_t k = 0; k < basin_shape_count(x->shape); k++)
                if (fabs(basin_tensor_at(x, k) - basin_tensor_at(y, k)) > 1e-5)
                    fail_msg("member %d, %s: %g, %g", (int)m, name, basin_tensor_at(x, k),
                             basin_tensor_at(y, k));
        }
}

/* The settings of the README there. */
static basin_anomaly_settings their_settings(void) {
    basin_anomaly_settings s;
    basin_anomaly_task.fill(&s, "default");
    s.dim = 8, s.heads = 1, s.head_dim = 4, s.memories = 8, s.blocks = 1, s.hidden = 8;
    s.epochs = 6, s.members = 2, s.scaling = "standard", s.hops = 0, s.evaluate = 1;
    s.patience = 0, s.rate = 3e-3, s.trees = 0, s.labels = false, s.calibrate = "none";
    return s;
}

static void its_checkpoint_goes_on(void **state) {
    char path[PATH_TEXT];
    basin_training training = fraud_training();
    basin_network *network = open_accounts();
    basin_anomaly_settings settings = their_settings();
    basin_anomaly_data data = {.size = sizeof data, .network = network};
    basin_anomaly_model *resumed, *finished;
    basin_outcome outcome;
    basin_error error;
    training.checkpoint = folder_path(path, state, "anomaly.checkpoint");
    training.resume = true;
    copy_file(path, FILES "anomaly.checkpoint");
    must(basin_anomaly_train_with(&resumed, &outcome, &settings, &data, &training, false, &error),
         &error);
    assert_true(outcome.resumed);
    assert_int_equal(outcome.epochs, 6);
    must(basin_anomaly_open(&finished, FILES "anomaly.safetensors", training.backend, &error),
         &error);
    assert_near(finished, resumed);
    basin_anomaly_close(resumed);
    basin_anomaly_close(finished);
    basin_network_free(network);
    basin_backend_close(training.backend);
}

/* ---- without validation ---- */

/* A checkpoint as 0.1 wrote it: the numbers apart, and weights called the best of every epoch,
 * though nothing had judged them. */
static void write_as_0_1(const char *path) {
    static const basin_meta meta[] = {{"step", "3"},
                                      {"member", "0"},
                                      {"epoch", "3"},
                                      {"best_epoch", "2"},
                                      {"best", "nan"},
                                      {"members_done", ""},
                                      {"basin.model", "anomaly checkpoint"}};
    basin_bundle *found, *made;
    basin_error error;
    must(basin_bundle_read(&found, path, &error), &error);
    must(basin_bundle_new(&made, &error), &error);
    for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
        must(basin_bundle_meta_set(made, meta[i].key, meta[i].value, &error), &error);
    must(basin_bundle_meta_set(made, "basin.config", basin_bundle_meta(found, "basin.config"),
                               &error),
         &error);
    for (size_t i = 0; i < basin_bundle_count(found); i++) {
        const basin_tensor *t = basin_bundle_at(found, i);
        const char *name = basin_bundle_name(found, i);
        char best[300];
        basin_tensor copy = basin_tensor_borrow(t->data, t->dtype, t->shape);
        must(basin_bundle_add(made, name, &copy, &error), &error);
        if (strchr(name, '.')) continue;
        snprintf(best, sizeof best, "best.%s", name);
        copy = basin_tensor_borrow(t->data, t->dtype, t->shape);
        must(basin_bundle_add(made, best, &copy, &error), &error);
    }
    must(basin_safetensors_write(path, made, &error), &error);
    basin_bundle_free(made);
    basin_bundle_free(found);
}

static void a_run_without_validation_ends_with_its_last_weights(void **state) {
    char path[PATH_TEXT];
    basin_training training = fraud_training();
    basin_network *network = open_accounts();
    basin_anomaly_settings settings = their_settings();
    basin_anomaly_data data = {.size = sizeof data, .network = network, .validation = -1};
    basin_anomaly_model *straight, *model;
    basin_outcome outcome;
    basin_error error;
    stopper stop = {0, 3};
    basin_watch watch = {.show = stop_later, .context = &stop, .stop = &stop.stop};
    settings.members = 1;
    must(basin_anomaly_train_with(&straight, &outcome, &settings, &data, &training, false, &error),
         &error);
    training.checkpoint = folder_path(path, state, "unjudged.checkpoint");
    training.watch = &watch;
    must(basin_anomaly_train_with(&model, &outcome, &settings, &data, &training, false, &error),
         &error);
    basin_anomaly_close(model);
    write_as_0_1(path);
    training.watch = NULL, training.resume = true;
    must(basin_anomaly_train_with(&model, &outcome, &settings, &data, &training, false, &error),
         &error);
    assert_same_members(straight, model);
    basin_anomaly_close(straight);
    basin_anomaly_close(model);
    basin_network_free(network);
    basin_backend_close(training.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_model_scores_as_before),
        cmocka_unit_test(its_checkpoint_goes_on),
        cmocka_unit_test(a_run_without_validation_ends_with_its_last_weights),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
