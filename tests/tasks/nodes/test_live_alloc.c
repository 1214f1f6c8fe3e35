/* Single nodes when memory is short: opening, adding, scoring with a cap and without, and
 * explaining; an error each time, and nothing leaks. */
#include <string.h>

#include "support/alloc_fail.h"
#include "tasks/nodes/fraud.h"
#include "tasks/nodes/nodes.h"

typedef struct scene {
    fraud_scene fraud;
    basin_nodes_live_options options;
} scene;

static basin_status use(basin_nodes_live *live) {
    basin_nodes_explanation *why = NULL;
    basin_nodes_live_score score[2];
    basin_status status = basin_nodes_live_add(live, "id,age\nn1,3\n",
                                               "source,target,amount\n"
                                               "n1,a3,2\na3,a4,5\n",
                                               NULL);
    if (!status)
        status = basin_nodes_live_predict(score, live, (const char *const[]){"n1", "a3"}, 2, NULL);
    if (!status) status = basin_nodes_live_explain(&why, live, "a3", NULL);
    basin_nodes_explanation_free(why);
    return status;
}

static basin_status run(void *context) {
    const scene *s = context;
    basin_nodes_live *live = NULL;
    basin_status status =
        basin_nodes_live_open(&live, s->fraud.model, s->fraud.network, &s->options, NULL);
    if (!status) status = use(live);
    basin_nodes_live_close(live);
    return status;
}

/* States and a cap that bites, neither, and a directed graph. */
TEST(live) {
    for (int kind = 0; kind < 3; kind++) {
        char nodes[2000] = "id,age,label\n", edges[3000] = "source,target,amount\n";
        for (int i = 0; i < 40; i++) {
            sprintf(nodes + strlen(nodes), "a%d,%d,%d\n", i, i % 7, i % 4 == 0);
            sprintf(edges + strlen(edges), "a%d,a%d,%d\n", i, (i * 7 + 3) % 40, 1 + i % 5);
        }
        basin_csv_source source[] = {{.path = "nodes", .data = nodes, .size = strlen(nodes)},
                                     {.path = "edges", .data = edges, .size = strlen(edges)}};
        basin_network_options options = {.directed = kind == 2};
        basin_network *network;
        assert_ok(basin_network_csv_read(&network, source, 2, &options, &failure));
        assert_ok(basin_network_finish(network, &options, &failure));
        scene s = {.fraud = fraud_scene_of(network),
                   .options = {.states = kind == 1, .cap_nodes = kind == 1 ? 0 : 8}};
        s.fraud.settings.epochs = 1, s.fraud.settings.hops = 1, s.fraud.settings.facts = "both";
        s.fraud.model = fraud_train(network, s.fraud.part, &s.fraud.settings, &s.fraud.training);
        assert_true(alloc_fail_sample(run, &s, 60) > 100);
        fraud_scene_free(&s.fraud);
    }
}

int main(void) { return tests_run(NULL, NULL); }
