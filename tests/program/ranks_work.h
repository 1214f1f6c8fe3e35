/* Small things to train on as several ranks: pictures and graphs. */
#ifndef TESTS_CLI_RANKS_WORK_H
#define TESTS_CLI_RANKS_WORK_H

#include "program/ranks.h"
#include "tasks/graphs/graph_world.h"

#define IMAGES(epochs)                                                                             \
    "image train shapes:320:5:16x16x1 --size 16 --dim 16 --heads 2 --head-dim 8 --memories 32 "    \
    "--steps 3 --occlude 6 --keep 1 --holes 0.3 --batch 16 --epochs " #epochs                      \
    " --warmup 1 --crop random --average 0.9 --hold-out 20 --quiet --threads 1 "
#define GRAPHS(epochs)                                                                             \
    "graph train set.safetensors --dim 16 --heads 2 --head-dim 8 --memories 16 --blocks 1 "        \
    "--hidden 8 --walks 4 --edge-walks 2 --batch 16 --epochs " #epochs " --threads 1 --quiet "

#endif
