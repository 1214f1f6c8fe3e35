/* Molecules held in arrays: a model learns which of them are rings, is saved, opened again and
 * asked about larger ones. A ring has one bond more than a chain; atoms are all alike. */
#include <basin/tasks/graphs.h>

#include "must.h"

enum { MOST = 40, ATOMS = 13 };
static const char file[] = "example_molecules.safetensors";

/* Chains and rings in turn, of `smallest` to smallest + 7 atoms. Bonds are given once. */
static void draw(basin_graphset *set, int64_t smallest, int64_t count) {
    int64_t atoms[MOST], ring[MOST], from[MOST * ATOMS], to[MOST * ATOMS], bonds = 0, atom = 0;
    for (int64_t m = 0; m < count; atom += atoms[m++]) {
        atoms[m] = smallest + m / 2 % 8;
        ring[m] = m % 2;
        for (int64_t i = 0; i < atoms[m] - !ring[m]; i++, bonds++)
            from[bonds] = atom + i, to[bonds] = atom + (i + 1) % atoms[m];
    }
    basin_graphset_arrays arrays = {.graphs = count, .nodes = atoms};
    arrays.edges = bonds, arrays.from = from, arrays.to = to, arrays.undirected = true;
    arrays.graph_class = ring;
    must(basin_graphset_from_arrays(set, &arrays, &error));
}

static void learn(basin_backend *backend) {
    basin_settings *settings;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_graphset set;
    draw(&set, 3, MOST);
    must(basin_settings_new(&settings, "graphs", NULL, &error));
    must(basin_settings_set(settings, "readout", "cls", &error)); /* a CLS node sees all atoms */
    must(basin_settings_set(settings, "epochs", "30", &error));
    basin_graphs_train_data data = {.set = &set};
    basin_training_options training = {.backend = backend, .output = file};
    must(basin_graphs_train(NULL, &outcome, settings, &data, &training, &error));
    basin_settings_free(settings);
    basin_graphset_free(&set);
}

int main(void) {
    basin_backend *backend;
    must(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error));
    learn(backend);
    basin_graphs_model *model;
    basin_graphset set;
    float probability[6][2]; /* of a chain, of a ring */
    draw(&set, 11, 6);
    must(basin_graphs_open(&model, file, backend, &error));
    basin_graphs_data data = {.set = &set};
    basin_graphs_predict_result result = {.output = probability[0]};
    must(basin_graphs_predict(&result, model, &data, NULL, &error));
    for (int i = 0; i < 6; i++)
        printf("%d atoms, %d bonds: %s\n", (int)(set.node_start[i + 1] - set.node_start[i]),
               (int)(set.edge_start[i + 1] - set.edge_start[i]) / 2,
               probability[i][1] > 0.5f ? "a ring" : "a chain");
    basin_graphs_close(model);
    basin_graphset_free(&set);
    basin_backend_close(backend);
    return remove(file);
}
