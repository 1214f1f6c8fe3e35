/* Anomalous nodes of a graph that lies in arrays. Every seventh account is a fraud; its amounts are
 * a little higher, and it trades with its like. A small detector learns from the labels of half of
 * them, and is saved; then the file is opened, and says which of the others are frauds. */
#include <basin/tasks/nodes.h>

#include "must.h"

enum { NODES = 210, EDGES = 1260 };

static int fraud(int64_t node) { return node % 7 == 3; }

int main(void) {
    static float amount[NODES];
    static int32_t label[NODES], from[EDGES], to[EDGES];
    for (int i = 0; i < NODES; i++) {
        amount[i] = (float)basin_random_normal_at(1, 0, (uint64_t)i) + (fraud(i) ? 1.5F : 0);
        label[i] = i < NODES / 2 ? fraud(i) : -1; /* the others' labels are not known */
    }
    for (int e = 0; e < EDGES; e++) {
        from[e] = e % NODES;
        to[e] = (e % NODES + 7 * (1 + e / NODES)) % NODES; /* same remainder: same kind */
    }
    basin_edges edges = {from, to, BASIN_I32, 1, EDGES};
    basin_network_arrays arrays = {.nodes = NODES,
                                   .features = 1,
                                   .feature = amount,
                                   .label = label,
                                   .relations = 1,
                                   .edges = &edges};
    basin_backend *cpu;
    basin_network *network;
    must(basin_backend_open(&cpu, &(basin_compute){.threads = 1}, &error));
    must(basin_network_from_arrays(&network, &arrays, NULL, &error));

    basin_settings *settings;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_nodes_data data = {.network = network, .split = BASIN_NODES_SPLIT_NONE};
    basin_training_options training = {.backend = cpu, .output = "nodes.safetensors"};
    must(basin_settings_new(&settings, "anomaly", NULL, &error));
    must(basin_settings_set(settings, "members", "1", &error));
    must(basin_settings_set(settings, "epochs", "60", &error));
    must(basin_nodes_train(NULL, &outcome, settings, &data, &training, &error));

    basin_nodes_model *model;
    double probability[NODES];
    int found = 0, wrong = 0;
    must(basin_nodes_open(&model, "anomaly", "nodes.safetensors", cpu, &error));
    must(basin_nodes_predict(probability, model, network, NULL, &error));
    for (int i = NODES / 2; i < NODES; i++)
        if (probability[i] > basin_nodes_get_info(model)->threshold) fraud(i) ? found++ : wrong++;
    printf("of 15 frauds that were not known %d are found, %d others flagged\n", found, wrong);
    basin_nodes_close(model);
    basin_settings_free(settings);
    basin_network_close(network);
    basin_backend_close(cpu);
    return remove("nodes.safetensors");
}
