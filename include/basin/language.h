/* Models of language: of the tokens of a text so far, what the next one is. NRGPT (Dehmamy et al.
 * 2025), a causal Energy Transformer whose tokens go down an energy, and the GPT that it is
 * compared with.
 *
 *     basin_language model;
 *     basin_language_config config = {.arch = BASIN_LANGUAGE_NRGPT, .vocabulary = 65,
 *                                     .context = 64, .dim = 128, .heads = 4, .steps = 6};
 *     basin_language_declare(&model, &params, &config);
 *     basin_expr x = basin_language_tokens(&model, ids, batch, NULL, NULL);
 *     basin_expr loss = basin_language_loss(basin_language_logits(&model, x), label);
 *
 * A token sees itself and those before it alone. */
#ifndef BASIN_LANGUAGE_H
#define BASIN_LANGUAGE_H

#include "basin/model.h"
#include "basin/zoo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_language_arch {
    /* x <- x - proj dE/dg, g = LN(x) + bias, with the energies of basin_zoo_nrgpt; the same block
     * in every step. */
    BASIN_LANGUAGE_NRGPT,
    /* Pre-norm layers: x <- x + attention(LN x), x <- x + perceptron(LN x), exact gelu. */
    BASIN_LANGUAGE_GPT,
} basin_language_arch;

typedef struct basin_language_config {
    basin_language_arch arch;
    int64_t vocabulary, context; /* V; the most tokens of a window */
    int64_t dim, heads;          /* D, H; of GPT, H divides D */
    int64_t hidden;              /* units of the feed-forward network; 0: 4 D */
    int steps;                   /* steps of the descent, or layers */
    bool tied;                   /* the head's matrix is that of the tokens */
    double dropout;              /* in training: of NRGPT, of attention's pull at a token; of GPT,
                                    of the first tokens, attention's shares and each layer's results */
    bool recompute;      /* keep one token tensor a step, compute the rest again in reverse */
    basin_zoo_feed feed; /* of NRGPT */
    bool strict;         /* of NRGPT: a token does not see itself */
    bool bias;           /* of GPT: biases in its maps and norms */
    double dropout_step; /* in training, of NRGPT: of the first tokens and of what a step adds */
    double beta;         /* of NRGPT: attention's inverse temperature; 0: 1, as published */
    double alpha;        /* of NRGPT: x <- x - alpha proj dE/dg; 0: 1, as published */
} basin_language_config;

typedef struct basin_language {
    basin_language_config config;
    basin_expr tok, pos;                     /* [V, D] [context, D] */
    basin_vit_norm norm;                     /* before the head */
    basin_expr head_w, head_b;               /* [V, D], the tokens' where tied; [V] or NULL */
    basin_zoo_nrgpt nrgpt;                   /* NRGPT's block */
    basin_vit_layer layer[BASIN_MAX_LAYERS]; /* GPT's, [steps]; heads Y = D / H wide */
} basin_language;

BASIN_API basin_status basin_language_declare(basin_language *model, basin_params *params,
                                              const basin_language_config *config);
/* Indices [batch N], N tokens a window and no more than the context -> tokens at the end, [batch,
 * N, D]. `seed`, an index tensor [2], turns dropout on; NULL: off. `energy`, or NULL, is for
 * NRGPT: energy[2 t] and energy[2 t + 1] become the tokens' energies [batch, N] in attention and in
 * the feed-forward network before step t, t = 0 .. steps (the last: at the end). */
BASIN_API basin_expr basin_language_tokens(const basin_language *model, basin_expr ids,
                                           int64_t batch, basin_expr seed, basin_expr *energy);
/* Tokens [.., D] -> what the next token is, [.., V]. */
BASIN_API basin_expr basin_language_logits(const basin_language *model, basin_expr tokens);
/* Mean cross entropy of logits [.., N, V] and labels [all rows]; those of -1 do not count, but as
 * zeros. */
BASIN_API basin_expr basin_language_loss(basin_expr logits, basin_expr label);

#ifdef __cplusplus
}
#endif
#endif
