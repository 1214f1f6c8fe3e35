/* The networks of masked images: the Energy Transformer of section 3 of the paper (Algorithm 1),
 * and what it is compared with in appendix G, a vision transformer and its weight-shared form:
 *
 *     x <- x + Wo attention(LN x) + bo,   x <- x + W2 gelu(W1 LN x + b1) + b2
 *
 * with softmax(Q K' / sqrt(Y)) V in each head and the exact gelu z (1 + erf(z / sqrt 2)) / 2. All
 * have the same affine encoder, MASK token and positions before, and a layer norm and the affine
 * decoder after. Steps of the descent and layers of a ViT are both called steps here. */
#ifndef BASIN_TASK_IMAGE_NET_H
#define BASIN_TASK_IMAGE_NET_H

#include "basin/energy.h"
#include "basin/params.h"

typedef enum basin_image_arch {
    BASIN_IMAGE_ET,
    BASIN_IMAGE_VIT,
    BASIN_IMAGE_ALBERT, /* a ViT with one layer's weights in all of them */
} basin_image_arch;

typedef struct basin_image_net_config {
    basin_image_arch arch;
    int64_t tokens, patch;      /* N patches of P numbers */
    basin_block_config block;   /* of a ViT only its sizes; `memories` are the hidden units */
    basin_descent_spec descent; /* of a ViT only steps and recompute */
    bool self_attention;        /* ET: a token attends to itself */
    bool cls;                   /* a CLS token before the patches, as in the published code */
    /* First values of ET: the paper draws all weights from N(0, 0.02^2), block.init_query included;
     * the published code, keys, queries and tokens from N(0, 0.002^2), the affine maps as LeCun. */
    bool published_init;
    /* A guess u of the hole is given: its tokens begin as MASK + enc_w u, and the picture is
     * u + g hole_w + hole_b, g the normalised tokens at the end. */
    bool holes_apart;
} basin_image_net_config;

typedef struct basin_vit_layer {
    basin_expr norm1_g, norm1_b, norm2_g, norm2_b; /* [D] each */
    basin_expr wq, wk, wv, wo;                     /* [D, HY] three times, [HY, D] */
    basin_expr bq, bk, bv, bo;                     /* [HY] three times, [D] */
    basin_expr mlp_w1, mlp_b1, mlp_w2, mlp_b2;     /* [D, U] [U] [U, D] [D] */
} basin_vit_layer;

enum { BASIN_MAX_LAYERS = 64 };
typedef struct basin_image_net {
    basin_image_net_config config;
    basin_expr enc_w, enc_b, mask;           /* [P, D] [D] [D] */
    basin_expr pos, cls;                     /* [N, D], with CLS [N + 1, D]; [D] or NULL */
    basin_block block;                       /* ET */
    basin_vit_layer layer[BASIN_MAX_LAYERS]; /* ViT: [1] where shared, else [steps] */
    basin_expr norm_g, norm_b;               /* ViT: the last norm, [D] [D] */
    basin_expr dec_w, dec_b;                 /* [D, P] [P] */
    basin_expr hole_w, hole_b;               /* the same; or NULL */
} basin_image_net;

basin_status basin_image_net_declare(basin_image_net *net, basin_params *params,
                                     const basin_image_net_config *config);
/* Patches [B, N, P], replaced [B, N] (1: the MASK token instead; 2, where holes are apart: the
 * patch is a guess) -> tokens [B, N (+ 1), D]. */
basin_expr basin_image_net_encode(const basin_image_net *net, basin_expr patches,
                                  basin_expr replaced);
/* Step number `step` of the tokens. */
basin_expr basin_image_net_step(const basin_image_net *net, basin_expr tokens, int step);
/* Tokens -> patches; the CLS token is dropped. */
basin_expr basin_image_net_decode(const basin_image_net *net, basin_expr tokens);
/* Encode, all steps, decode. `energy` of an ET is the trace of basin_descend; or NULL. */
basin_expr basin_image_net_forward(const basin_image_net *net, basin_expr patches,
                                   basin_expr replaced, basin_expr *energy);
/* Mean squared error over the pixels of occluded [B, N] patches. */
basin_expr basin_image_net_loss(basin_expr output, basin_expr patches, basin_expr occluded);

/* Shares of the keys in the attention of each query before a step, [B, H, N (+ 1), N (+ 1)]; the
 * sum of a row is 1. ET must have attention. */
basin_expr basin_image_net_attention(const basin_image_net *net, basin_expr tokens, int step);
/* The block's energy; `bound` and `pattern` are the caller's and must outlive it. */
basin_energy basin_image_net_energy(basin_block_bound *bound, basin_pattern *pattern,
                                    const basin_image_net *net);

#endif
