/* Basin: you write the energy; Basin derives the network.
 *
 * A model is a scalar energy of tokens. Its forward pass is the descent of that energy, and
 * training differentiates through the descent. A complete program (examples/00_first_program.c):
 *
 *     #include <basin/basin.h>
 *     #include <stdio.h>
 *
 *     // Two basins: E(g) = 1/4 sum of (g^2 - 1)^2 is lowest at -1 and at 1.
 *     static basin_expr wells(const void *context, basin_expr g, int part) {
 *         (void)context, (void)part;
 *         return basin_scale(basin_sum_all(basin_square(basin_offset(basin_square(g), -1))), 0.25);
 *     }
 *
 *     int main(void) {
 *         double start[4] = {-1.5, -0.2, 0.1, 2};
 *         basin_tensor tokens = basin_tensor_borrow(start, BASIN_F64, BASIN_SHAPE(4));
 *         basin_energy energy = {.parts = 1, .name = {"wells"}, .part = wells};
 *         basin_descent_spec spec = {.steps = 200, .alpha = 0.1, .tolerance = 1e-4};
 *
 *         basin_error error;
 *         basin_backend *backend = NULL;
 *         basin_store *store = NULL;
 *         basin_descent *descent = NULL;
 *         basin_descent_result result = {0};
 *         basin_graph *graph = basin_graph_new();
 *         basin_expr x = basin_input(graph, "x", BASIN_SHAPE(4));
 *         basin_status status = basin_backend_open(&backend, NULL, &error);
 *         if (!status) status = basin_store_new(&store, backend, &error);
 *         if (!status) status = basin_descent_new(&descent, store, &energy, x, &spec, &error);
 *         if (!status) status = basin_descent_run(descent, &result, &tokens, &error);
 *         for (int i = 0; i < 4 && !status; i++)
 *             printf("%4.1f falls to %5.2f\n", start[i], basin_tensor_at(&result.x, i));
 *         if (status)
 *             fprintf(stderr, "%s\n", error.text);
 *         else
 *             printf("energy %.3f, then %.3f\n", basin_descent_total(&result, 0),
 *                    basin_descent_total(&result, result.steps));
 *
 *         basin_descent_result_free(&result);
 *         basin_descent_free(descent);
 *         basin_graph_free(graph);
 *         basin_store_free(store);
 *         basin_backend_close(backend);
 *         return status ? 1 : 0;
 *     }
 *
 * Once Basin is installed: cc program.c $(pkg-config --cflags --libs basin). It prints
 *
 *     -1.5 falls to -1.00
 *     -0.2 falls to -1.00
 *      0.1 falls to  1.00
 *      2.0 falls to  1.00
 *     energy 3.116, then 0.000
 *
 * This header includes all of libbasin's, one a topic, from the ground up:
 *
 *     status.h      what a function returns, and the one line that says why it failed
 *     tensor.h      numbers in the host's memory: type, shape, data
 *     random.h      counter-based random numbers, the same on every machine
 *     io.h          safetensors and npz
 *     expr.h        expressions: what will be computed, and its gradients
 *     backend.h     what plans run on: ref, cpu, cuda
 *     plan.h        stores of states, plans: expressions compiled and run
 *     params.h      parameters: states with a recipe for their first values
 *     pairs.h       lists of pairs, the edges of a graph
 *     eager.h       energy attention at once, on the caller's memory and stream
 *     energy.h      energies, the paper's block, descent
 *     lagrangian.h  the eleven Lagrangians: activations and the neurons' own energy
 *     rest.h        descents until nothing moves, and gradients there
 *     scan.h        descents of many steps from a plan of one
 *     zoo.h         published models that go down an energy
 *     ham.h         hierarchical associative memories: layers, synapses, networks
 *     metrics.h     how good predictions are: AUROC, macro-F1, ...
 *     calibration.h  scores as probabilities, thresholds for a goal, drift
 *     metrics_picture.h  how near pictures are: PSNR, SSIM
 *     model.h       the paper's three models
 *     gnn.h         graph networks to compare with
 *     language.h    models of language: NRGPT, and a GPT to compare with
 *     train.h       AdamW, Lion and SGD as updates of a plan, learning rates, checkpoints
 *     version.h     which Basin this is
 *
 * Readers of data and the tasks are another library, with headers of its own:
 * basin/tasks/tasks.h. docs/abi.md says what stays the same between versions.
 *
 * The examples are numbered in teaching order; docs/energies.md has the equations. */
#ifndef BASIN_BASIN_H
#define BASIN_BASIN_H

#include "basin/backend.h"
#include "basin/calibration.h"
#include "basin/eager.h"
#include "basin/energy.h"
#include "basin/expr.h"
#include "basin/gnn.h"
#include "basin/ham.h"
#include "basin/io.h"
#include "basin/lagrangian.h"
#include "basin/language.h"
#include "basin/metrics.h"
#include "basin/metrics_picture.h"
#include "basin/model.h"
#include "basin/pairs.h"
#include "basin/params.h"
#include "basin/plan.h"
#include "basin/random.h"
#include "basin/rest.h"
#include "basin/scan.h"
#include "basin/status.h"
#include "basin/tensor.h"
#include "basin/train.h"
#include "basin/version.h"
#include "basin/zoo.h"

#endif
