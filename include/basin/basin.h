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
 * This header includes the whole API of the engine, one header per topic, from the ground up:
 *
 *     status.h      what a function returns, and the one line that says why it failed
 *     version.h     the version of the library
 *     parallel.h    loops shared by the threads of the process
 *     random.h      counter-based random numbers, the same on every machine
 *     tensor.h      numbers in the host's memory: type, shape, data
 *     io.h          safetensors and npz
 *     expr.h        expressions: what will be computed, and its gradients
 *     machine.h     what this machine offers
 *     backend.h     what plans run on: ref, cpu, cuda
 *     collective.h  sums and exchanges between processes, one device each
 *     plan.h        stores of states, plans: expressions compiled and run
 *     params.h      parameters: states with a recipe for their first values
 *     pairs.h       lists of pairs, the edges of a graph
 *     eager.h       energy attention at once, on the caller's memory and stream
 *     walk.h        energy attention along the edges of a graph too large for a plan
 *     energy.h      energies, the paper's block, descent
 *     lagrangian.h  the eleven Lagrangians: activations and the energy of the neurons
 *     zoo.h         published models that descend an energy
 *     ham.h         hierarchical associative memories: layers, synapses, networks
 *     train.h       AdamW, Lion and SGD as updates of a plan, learning rates, checkpoints
 *
 * Readers of data, models and training runs are another library, libbasin_tasks, over this one:
 * basin/tasks/tasks.h. docs/abi.md says what stays the same between versions.
 *
 * The examples are numbered in teaching order; docs/energies.md has the equations. */
#ifndef BASIN_BASIN_H
#define BASIN_BASIN_H

#include "basin/backend.h"
#include "basin/collective.h"
#include "basin/eager.h"
#include "basin/energy.h"
#include "basin/expr.h"
#include "basin/ham.h"
#include "basin/io.h"
#include "basin/lagrangian.h"
#include "basin/machine.h"
#include "basin/pairs.h"
#include "basin/parallel.h"
#include "basin/params.h"
#include "basin/plan.h"
#include "basin/random.h"
#include "basin/status.h"
#include "basin/tensor.h"
#include "basin/train.h"
#include "basin/version.h"
#include "basin/walk.h"
#include "basin/zoo.h"

#endif
