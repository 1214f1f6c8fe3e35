/* Basin: you write the energy; Basin derives the network.
 *
 * A model is a scalar energy of tokens. Its forward pass is the descent of that energy, and
 * training differentiates through the descent. A complete program (examples/00_first_program.c):
 *
 *     #include <basin/basin.h>
 *     #include <stdio.h>
 *
 *     static basin_expr wells(const void *height, basin_expr g) { // E = height sum of (g^2 - 1)^2
 *         basin_expr gap = basin_offset(basin_square(g), -1);
 *         return basin_scale(basin_sum_all(basin_square(gap)), *(const double *)height);
 *     }
 *
 *     int main(void) {
 *         double at[4] = {-1.5, -0.2, 0.1, 2}, height = 0.25;
 *         basin_term term = {"wells", wells, &height};
 *         basin_energy well = {.term = &term, .terms = 1};
 *         basin_tensor x = basin_tensor_borrow(at, BASIN_F64, BASIN_SHAPE(4));
 *         basin_descent_spec how = {.steps = 200, .alpha = 0.1};
 *         basin_descent_result r;
 *         basin_error e;
 *         if (basin_engine_descend(NULL, &r, &well, &x, &how, NULL, &e)) return puts(e.text), 1;
 *         for (int i = 0; i < 4; i++) printf("%g falls to %.2f\n", at[i], basin_tensor_at(r.x, i));
 *         printf("energy %.3f, then %.3f\n", r.energy[0], r.energy[r.steps]);
 *         basin_descent_result_free(&r);
 *     }
 *
 * Once Basin is installed: cc program.c $(pkg-config --cflags --libs basin). It prints
 *
 *     -1.5 falls to -1.00
 *     -0.2 falls to -1.00
 *     0.1 falls to 1.00
 *     2 falls to 1.00
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
 *     zoo.h         published models that go down an energy
 *     ham.h         hierarchical associative memories: layers, synapses, networks
 *     metrics.h     how good predictions are: AUROC, macro-F1, ...
 *     calibration.h  scores as probabilities, thresholds for a goal, drift
 *     metrics_picture.h  how near pictures are: PSNR, SSIM
 *     model.h       the paper's three models
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

#include "basin/status.h"
#include "basin/tensor.h"
#include "basin/train.h"
#include "basin/version.h"
#include "basin/zoo.h"

#endif
