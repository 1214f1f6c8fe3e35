/* What the program `basin` does, for other programs.
 *
 * basin/basin.h has the engine. These headers read files, train and use models; what they open at
 * run time (libarchive, LAPACK, XGBoost) is listed in docs/dependencies.md. Once Basin is
 * installed: cc program.c $(pkg-config --cflags --libs basin-tasks).
 *
 * One header per topic:
 *
 *     settings.h    what is trained and how, by name
 *     run.h         training runs: progress, output files, results
 *     image.h       models that complete pictures: train, complete, score
 *     nodes.h       detectors of anomalous nodes, classes of nodes: train, score, explain, measure
 *     context.h     anomalies from a few labels, without training
 *     graphs.h      models of small graphs: train, predict, score, cross-validate
 *     networks.h    the paper's model of graphs as expressions
 *     metrics.h     how good predictions are: AUROC, macro-F1, ...
 *     metrics_picture.h  how similar pictures are: PSNR, SSIM
 *     calibration.h  scores as probabilities, thresholds that reach a goal
 *     ranks.h       several processes that share one task: mpirun, srun
 *     models.h      paths of the models that come with Basin
 *     picture.h     one picture: JPEG, PNG and WebP in, PNG out
 *     pictures.h    collections of them: folders, archives, idx, CIFAR, generated ones
 *     network.h     one graph of many nodes: features, labels, edges
 *     graphset.h    sets of many small graphs */
#ifndef BASIN_TASKS_TASKS_H
#define BASIN_TASKS_TASKS_H

#include "basin/tasks/calibration.h"
#include "basin/tasks/context.h"
#include "basin/tasks/graphs.h"
#include "basin/tasks/graphset.h"
#include "basin/tasks/image.h"
#include "basin/tasks/metrics.h"
#include "basin/tasks/metrics_picture.h"
#include "basin/tasks/models.h"
#include "basin/tasks/network.h"
#include "basin/tasks/networks.h"
#include "basin/tasks/nodes.h"
#include "basin/tasks/picture.h"
#include "basin/tasks/pictures.h"
#include "basin/tasks/ranks.h"
#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"
#include "basin/tasks/version.h"

#endif
