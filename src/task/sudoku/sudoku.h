/* The Sudoku task inside the library: settings, the model on a graph, a model in memory, descents
 * step by step. What callers see is in include/basin/tasks/sudoku.h.
 *
 * Tokens x [B, 81, D] begin as u, the embedding of what a cell shows, and descend
 *     E(g) = sum over houses of (E_attention(g of the house) + E_houses(sum of g over the house))
 *            + E_memories(g) - <u, g>,
 * g = layernorm(x), by x <- x + alpha (-dE/dg - leak x). A linear map of g says the digits. With
 * arch hyperset, tokens follow Hyper-SET's turns instead, with learned step sizes (basin/zoo.h). */
#ifndef BASIN_TASK_SUDOKU_SUDOKU_H
#define BASIN_TASK_SUDOKU_SUDOKU_H

#include "basin/energy.h"
#include "basin/params.h"
#include "basin/tasks/sudoku.h"
#include "basin/zoo.h"
#include "train/run/settings.h"
#include "train/run/watch.h"

/* ---- settings ---- */

#define BASIN_SUDOKU_MODEL_SETTINGS(X)                                                             \
    X(CHOICE, arch, BASIN_CHOICES("et", "hyperset"),                                               \
      "The model: Energy Transformer over houses, or Hyper-SET, which sees all pairs and has "     \
      "`memories` hidden units.")                                                                  \
    X(CHOICE, tokens, BASIN_CHOICES("cells", "candidates"),                                        \
      "What a token is: a cell; or a digit in a cell, 729 of them, all with the same weights, "    \
      "in houses of which exactly one is true: a digit in a row, column or box, or a cell.",       \
      .absent = "cells", .needs = "arch=et")                                                       \
    X(CHOICE, pairs, BASIN_CHOICES("houses", "all"),                                               \
      "Which cells attend to each other: those of a row, of a column and of a box, with a "        \
      "log-sum-exp for each of the three; or all 81, with one.",                                   \
      .needs = "arch=et attention=on")                                                             \
    X(INTEGER, repel, "N", 0, 4096,                                                                \
      "Heads, the last ones, whose attention energy is positive: cells push off those that are "   \
      "like them, as Hyper-SET's do.",                                                             \
      .absent = "0", .needs = "arch=et attention=on")                                              \
    X(INTEGER, house_memories, "N", 0, 1 << 24,                                                    \
      "Memories of a Hopfield network that sees the sum of the cells of each house; 0: none.",     \
      .needs = "arch=et")                                                                          \
    X(SWITCH, house_members,                                                                       \
      "Memories of houses see each token of a house beside the sum; half of them push: their "     \
      "energy is positive.",                                                                       \
      .absent = "off", .needs = "arch=et")                                                         \
    X(SWITCH, places, "Learn a vector for each of the 81 cells.")                                  \
    X(SWITCH, inject, "Add -<u, g> to the energy, u being what the cells show at first.",          \
      .needs = "arch=et")                                                                          \
    X(SWITCH, leak, "Tokens also decay, by alpha a step: they stay bounded over many steps.",      \
      .needs = "arch=et")                                                                          \
    BASIN_BLOCK_SETTINGS(X)
#define BASIN_SUDOKU_TRAINING_SETTINGS(X)                                                          \
    BASIN_RUN_SETTINGS(X)                                                                          \
    X(INTEGER, supervise, "N", 0, 10000,                                                           \
      "Steps, the last ones, after which the answer counts in the loss; 0: after every step.")     \
    X(INTEGER, ahead, "N", 0, 10000,                                                               \
      "Every other board, as drawn, takes N steps before those that are trained through: so the "  \
      "answer stays when a board takes more steps than in training. 0: none does.")                \
    X(SWITCH, augment,                                                                             \
      "Draw one of the symmetries of Sudoku for a board whenever it is trained on: digits "        \
      "renamed, rows, columns, bands and stacks exchanged, transposed.")                           \
    X(REAL, reveal, "SHARE", 0, 1,                                                                 \
      "Show a part of a board's empty cells whenever it is trained on: a share drawn from 0 to "   \
      "this. Boards that are nearly full are learnt first.")                                       \
    X(REAL, average, "X", 0, 0.99999,                                                              \
      "Averaging of weights over steps, w' = X w' + (1 - X) w; averages are scored and kept. 0: "  \
      "none.")

typedef struct basin_sudoku_settings {
    BASIN_SUDOKU_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_SUDOKU_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
} basin_sudoku_settings;

extern const basin_task_settings basin_sudoku_task;

/* ---- the model on a graph ---- */

enum { BASIN_SUDOKU_BATCH = 100000 }; /* pairs are numbered by int32 */

typedef struct basin_sudoku_net {
    basin_sudoku_settings settings;
    basin_graph *graph;
    basin_params params;
    int64_t batch;
    basin_block block;
    basin_expr digit, place;   /* [10, D] ([3, D] for candidates), [81, D] or NULL */
    basin_expr zeta, eta;      /* [house_memories, D], of sums and of members, or NULL */
    basin_expr head_w, head_b; /* [D, 9], [9]; [D, 1], NULL for candidates */
    basin_expr board;          /* index input [B * 81]: 0 to 9 */
    basin_expr start;          /* u [B, N, D], N = 81 or 729 */
    basin_pattern houses;      /* constant: 3 * B * 81 queries, by kind of house; B * 81 keys */
    basin_zoo_hyperset hyperset;
    basin_expr gain; /* [D] of its last norm */
} basin_sudoku_net;

basin_status basin_sudoku_net_new(basin_sudoku_net *net, const basin_sudoku_settings *settings,
                                  int64_t batch, basin_error *error);
void basin_sudoku_net_free(basin_sudoku_net *net);
/* Parts "attention", "memories", "houses" and "givens", those that the settings leave out missing;
 * [B]. */
basin_energy basin_sudoku_net_energy(const basin_sudoku_net *net);
/* Step number t [] from tokens x [B, N, D]. */
basin_expr basin_sudoku_net_step(const basin_sudoku_net *net, basin_expr x, basin_expr t);
/* Scores of the digits 1 to 9, [B, 81, 9]. */
basin_expr basin_sudoku_net_read(const basin_sudoku_net *net, basin_expr x);
/* What the loss reads: label index [B * 81], digit - 1 or -1 for a given cell; share [] one over
 * the empty cells; late [B, 1, 1] 1 for boards that are ahead by some steps, or NULL. */
typedef struct basin_sudoku_target {
    basin_expr label, share, late;
} basin_sudoku_target;
/* Declares these inputs. */
basin_sudoku_target basin_sudoku_net_target(const basin_sudoku_net *net);
/* Mean cross entropy over empty cells and supervised steps. */
basin_expr basin_sudoku_net_loss(const basin_sudoku_net *net, const basin_sudoku_target *target);
/* Whether all could be built. */
basin_status basin_sudoku_net_check(const basin_sudoku_net *net, basin_error *error);

/* Tokens that are cells or candidates, and the energy of their houses (houses.c): how many digits a
 * token of a cell is one of, 1 or 9; tokens of a board; [B] at g [B, N, D]; what a cell shows as
 * candidates, [10, 9 D]. */
bool basin_sudoku_is_candidates(const basin_sudoku_settings *settings);
int64_t basin_sudoku_net_digits(const basin_sudoku_settings *settings);
int64_t basin_sudoku_net_tokens(const basin_sudoku_settings *settings);
void basin_sudoku_houses_declare(basin_sudoku_net *net);
basin_expr basin_sudoku_net_houses(const basin_sudoku_net *net, basin_expr g);
basin_expr basin_sudoku_net_candidates(const basin_sudoku_net *net);

/* The same for arch hyperset (hyperset.c). */
bool basin_sudoku_is_hyperset(const basin_sudoku_settings *settings);
void basin_sudoku_hyperset_declare(basin_sudoku_net *net);
basin_expr basin_sudoku_hyperset_step(const basin_sudoku_net *net, basin_expr x, basin_expr t);
basin_expr basin_sudoku_hyperset_norm(const basin_sudoku_net *net, basin_expr x);

/* ---- a model in memory ---- */

struct basin_sudoku_model {
    basin_sudoku_settings settings;
    basin_settings described; /* the same, as callers see them */
    basin_backend *backend;   /* the caller's */
    basin_store *store;
    int64_t parameters;
};

/* Without weights: the caller writes them into the store. */
basin_status basin_sudoku_model_bare(basin_sudoku_model **model,
                                     const basin_sudoku_settings *settings, basin_backend *backend,
                                     basin_error *error);
/* The settings of a model file or a checkpoint. */
basin_status basin_sudoku_settings_read(basin_sudoku_settings *settings, const basin_bundle *bundle,
                                        basin_error *error);
basin_status basin_sudoku_settings_write(basin_bundle *bundle,
                                         const basin_sudoku_settings *settings, basin_error *error);

/* ---- descents ---- */

/* Boards in batches of one size, step by step; a short batch is filled up with empty boards. */
typedef struct basin_sudoku_runner {
    basin_sudoku_net net;
    basin_plan *begin, *step;
    basin_expr tokens, t, next, scores;              /* [B, 81, D] twice, [B, 81, 9] */
    basin_expr energy[BASIN_SUDOKU_PARTS];           /* [B] */
    basin_tensor x, score, part[BASIN_SUDOKU_PARTS]; /* what was read last */
    int parts;
    int64_t taken; /* steps so far */
} basin_sudoku_runner;

basin_status basin_sudoku_runner_new(basin_sudoku_runner *runner, basin_sudoku_model *model,
                                     int64_t batch, basin_error *error);
void basin_sudoku_runner_free(basin_sudoku_runner *runner);
/* Begins with `count` boards [count, 81], at most the batch. */
basin_status basin_sudoku_runner_begin(basin_sudoku_runner *runner, const uint8_t *given,
                                       int64_t count, basin_error *error);
/* Reads scores and energies of the tokens as they are into `score` and `part`, and moves on. */
basin_status basin_sudoku_runner_step(basin_sudoku_runner *runner, basin_error *error);
/* The digit, 1 to 9, with the highest of nine scores. */
int basin_sudoku_likeliest(const float *score);

#endif
