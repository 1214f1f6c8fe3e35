/* Every allocation of a descent, and many of a training step of each model, fail once: an error
 * each time, nothing leaks, nothing is forgotten. `make test-slow` lets all of them fail. */
#include "basin/train.h"
#include "engine/expr/graph.h"
#include "engine/train/optimizer.h"
#include "support/alloc_fail.h"
#include "support/test.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/pictures/net.h"

static const basin_block_config block_config = {
    .dim = 4, .heads = 2, .head_dim = 2, .memories = 3, .learn_beta = true};
static const int32_t edges[] = {0, 1, 1, 2};
enum { TOKENS = 3, EDGES = 2, POINTS = 300 };

/* What a scenario holds; all of it is freed whatever happened. */
typedef struct rig {
    basin_graph *graph;
    basin_params params;
    basin_backend *backend;
    basin_store *store;
    basin_pairs pairs;
    basin_plan *plan;
    basin_error error;
} rig;

static basin_status rig_open(rig *r, const char *backend) {
    *r = (rig){.graph = basin_graph_new()};
    if (!r->graph) return BASIN_NO_MEMORY;
    basin_params_begin(&r->params, r->graph);
    basin_status status = basin_backend_open(
        &r->backend, &(basin_compute){.backend = backend, .threads = 1}, &r->error);
    if (!status) status = basin_store_new(&r->store, r->backend, &r->error);
    if (!status)
        status = basin_pairs_new(&r->pairs, TOKENS, TOKENS, edges, EDGES, BASIN_PAIRS_BOTH_WAYS,
                                 &r->error);
    return status;
}

static void rig_close(rig *r) {
    basin_plan_free(r->plan);
    basin_pairs_free(&r->pairs);
    basin_store_free(r->store);
    if (r->backend) basin_backend_close(r->backend);
    basin_params_free(&r->params);
    basin_graph_free(r->graph);
}

/* The status of what was built so far. */
static basin_status built(rig *r) {
    const basin_error *error = basin_graph_error(r->graph);
    return error ? error->status : BASIN_OK;
}

/* ---- a descent along a list of pairs ---- */

static basin_status descend(rig *r, basin_descent **descent, basin_descent_result *result) {
    basin_block block;
    double number[TOKENS * 4] = {1, 2, 3, 4, 0, 1, 0, 1, 2, 0, 1, 1};
    basin_tensor tokens = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(TOKENS, 4));
    basin_pattern pattern = basin_pairs_declare(r->graph, "p", TOKENS, TOKENS, 6);
    basin_block_declare(&block, &r->params, "", &block_config);
    if (built(r)) return built(r);
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_stop stop = {.guard = true};
    basin_status status = basin_params_init(&r->params, r->store, 1, &r->error);
    if (!status)
        status = basin_descent_new(descent, r->store, &energy, r->graph, tokens.shape, &spec, &stop,
                                   &r->error);
    if (!status)
        status = basin_pairs_write(basin_descent_plan(*descent), &pattern, &r->pairs, &r->error);
    if (!status) status = basin_descent_run(*descent, result, &tokens, &r->error);
    return status;
}

static basin_status run_descent(void *backend) {
    rig r;
    basin_descent *descent = NULL;
    basin_descent_result result = {0};
    basin_status status = rig_open(&r, backend);
    if (!status) status = descend(&r, &descent, &result);
    bool good = status == BASIN_OK ? result.steps == 2 : result.energy == NULL;
    basin_descent_result_free(&result);
    basin_descent_free(descent);
    rig_close(&r);
    return good ? status : BASIN_BAD_VALUE;
}

/* ---- models, each trained for a step ---- */

static const basin_descent_spec one_step = {.steps = 1, .alpha = 0.1, .recompute = true};

static basin_expr image_loss(rig *r) {
    basin_image_net model;
    basin_image_net_config config = {
        .tokens = TOKENS, .patch = 2, .block = block_config, .descent = one_step, .cls = true};
    basin_image_net_declare(&model, &r->params, &config);
    basin_expr patches = basin_input(r->graph, "patches", BASIN_SHAPE(1, TOKENS, 2));
    basin_expr mask = basin_input(r->graph, "occluded", BASIN_SHAPE(1, TOKENS));
    if (built(r)) return NULL;
    basin_expr trace[4];
    basin_expr output = basin_image_net_forward(&model, patches, mask, trace);
    return basin_image_net_loss(output, patches, mask);
}

static basin_expr anomaly_loss(rig *r) {
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = TOKENS,
                                   .features = 2,
                                   .block = block_config,
                                   .descent = one_step,
                                   .position = BASIN_POSITION_LEARNED,
                                   .hidden = 2};
    basin_anomaly_declare(&model, &r->params, &config);
    basin_expr features = basin_input(r->graph, "features", BASIN_SHAPE(TOKENS, 2));
    basin_expr label = basin_input(r->graph, "label", BASIN_SHAPE(TOKENS));
    basin_pattern pattern = basin_pairs_declare(r->graph, "p", TOKENS, TOKENS, r->pairs.pairs);
    if (built(r)) return NULL;
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &pattern});
    return basin_weighted_cross_entropy(logits, label, label);
}

static basin_expr graphs_loss(rig *r) {
    basin_graph_net model;
    basin_graph_net_config config = {.features = 2,
                                     .edge_features = 1,
                                     .positions = 1,
                                     .outputs = 2,
                                     .blocks = 1,
                                     .block = block_config,
                                     .descent = one_step};
    config.block.mix = true;
    if (basin_graph_net_declare(&model, &r->params, &config)) return NULL;
    basin_graph_net_batch batch;
    basin_graph_net_inputs(&batch, &model, r->graph, 1, TOKENS - 1, 4);
    basin_expr target = basin_input(r->graph, "target", BASIN_SHAPE(1, 2));
    if (built(r)) return NULL;
    return basin_cross_entropy(basin_graph_net_forward(&model, &batch), target);
}

/* Zeros for every input of the plan. */
static basin_status write_inputs(rig *r) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < r->graph->nodes && !status; i++) {
        const basin_node *node = r->graph->node[i];
        basin_tensor zeros;
        if (node->op != BASIN_OP_INPUT) continue;
        status = basin_tensor_new(&zeros, BASIN_F64, node->out[0]->shape, &r->error);
        if (status) break;
        status = basin_plan_write(r->plan, node->out[0], &zeros, &r->error);
        basin_tensor_free(&zeros);
    }
    return status;
}

static basin_status train(rig *r, basin_optimizer *adamw, basin_expr loss) {
    basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
    if (built(r)) return built(r);
    basin_status status = basin_params_init(&r->params, r->store, 1, &r->error);
    if (!status) status = basin_optimizer_new(adamw, &r->params, loss, &config, &r->error);
    if (status) return status;
    basin_plan_spec spec = {
        .output = &loss, .outputs = 1, .update = adamw->update, .updates = adamw->updates};
    status = basin_plan_new(&r->plan, r->store, &spec, &r->error);
    if (!status) status = write_inputs(r);
    if (!status) status = basin_optimizer_write(adamw, r->plan, 1, 0.1, &r->error);
    if (!status) status = basin_plan_run(r->plan, &r->error);
    return status;
}

typedef struct training {
    const char *backend;
    basin_expr (*loss)(rig *r);
} training;

static basin_status run_training(void *context) {
    const training *l = context;
    rig r;
    basin_optimizer adamw = {0};
    basin_status status = rig_open(&r, l->backend);
    if (!status) status = train(&r, &adamw, l->loss(&r));
    bool good = r.error.status == BASIN_OK || r.error.status == status;
    basin_optimizer_free(&adamw);
    rig_close(&r);
    return good ? status : BASIN_BAD_VALUE;
}

TEST(descents) {
    assert_true(alloc_fail_sweep(run_descent, "ref") > 100);
    assert_true(alloc_fail_sweep(run_descent, "cpu") > 100);
}

TEST(images) {
    training cpu = {"cpu", image_loss};
    assert_true(alloc_fail_sample(run_training, &cpu, POINTS) > 200);
}

TEST(anomalies) {
    training cpu = {"cpu", anomaly_loss};
    assert_true(alloc_fail_sample(run_training, &cpu, POINTS) > 200);
}

TEST(graphs) {
    training cpu = {"cpu", graphs_loss};
    assert_true(alloc_fail_sample(run_training, &cpu, POINTS) > 200);
}
