/* BWGNN: two linear layers, then C + 1 Beta wavelets of the normalised Laplacian, side by side,
 * then a linear layer. L = 1 - D^-1/2 A D^-1/2 has its spectrum in [0, 2], and W_i = (L/2)^i (1 -
 * L/2)^(C - i) / B(i + 1, C + 1 - i),   i = 0 .. C, as the published code has it; its paper writes
 * half of that, which the next layer's weights absorb. */
#include <math.h>

#include "model/gnn/gnn.h"
#include "model/parts.h"

void basin_bwgnn_declare(basin_gnn *net, basin_params *params, const char *prefix) {
    const basin_gnn_config *c = &net->config;
    int64_t D = c->dim;
    basin_gnn_affine_add(&net->emb_w, &net->emb_b, params, prefix, "emb", c->features, D);
    basin_gnn_affine_add(&net->emb2_w, &net->emb2_b, params, prefix, "emb2", D, D);
    basin_gnn_affine_add(&net->mix_w, &net->mix_b, params, prefix, "mix", (c->layers + 1) * D, D);
}

/* n over k */
static double choose(int n, int k) {
    return round(exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)));
}

void basin_bwgnn_wavelets(double *theta, int order) {
    int n = order + 1;
    for (int i = 0; i < n; i++) {
        double scale = n * choose(order, i); /* 1 / B(i + 1, C + 1 - i) */
        for (int k = 0; k < n; k++) {
            double sign = (k - i) % 2 ? -1 : 1;
            theta[i * n + k] = k < i ? 0 : sign * scale * choose(order - i, k - i) * pow(0.5, k);
        }
    }
}

basin_expr basin_bwgnn_embed(const basin_gnn *net, basin_expr features) {
    basin_expr h = basin_relu(basin_model_affine(features, net->emb_w, net->emb_b));
    return basin_relu(basin_model_affine(h, net->emb2_w, net->emb2_b));
}

basin_expr basin_bwgnn_forward(const basin_gnn *net, basin_expr h, const basin_pattern *pattern) {
    int order = net->config.layers, n = order + 1;
    double theta[(BASIN_GNN_LAYERS + 1) * (BASIN_GNN_LAYERS + 1)];
    basin_expr power[BASIN_GNN_LAYERS + 1], wavelet[BASIN_GNN_LAYERS + 1];
    power[0] = h;
    for (int k = 1; k < n; k++) /* L^k h */
        power[k] = basin_sub(power[k - 1], basin_neighbour_smooth(power[k - 1], pattern));
    basin_bwgnn_wavelets(theta, order);
    for (int i = 0; i < n; i++) {
        wavelet[i] = basin_scale(power[order], theta[i * n + order]);
        for (int k = i; k < order; k++)
            wavelet[i] = basin_add(wavelet[i], basin_scale(power[k], theta[i * n + k]));
    }
    basin_expr all = basin_concat(wavelet, n, 1);
    return basin_relu(basin_model_affine(all, net->mix_w, net->mix_b));
}
