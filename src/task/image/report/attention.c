/* Shares of attention as bytes (equation 3's softmax over keys); see look.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/image/report/look.h"

/* As many of the steps 0 .. last as `steps` says, evenly spread. */
static basin_status choose_steps(basin_image_attention *a, int last, basin_error *error) {
    a->step = basin_array_new((size_t)a->steps, sizeof *a->step);
    if (!a->step) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for steps");
    for (int i = 0; i < a->steps; i++)
        a->step[i] = a->steps > 1 ? (int)((int64_t)i * last / (a->steps - 1)) : last;
    return BASIN_OK;
}

basin_status basin_image_attention_new(basin_image_attention *a, const basin_image_settings *s,
                                       int64_t pictures, int last, size_t bytes,
                                       basin_error *error) {
    int64_t N = basin_image_tokens(s);
    *a = (basin_image_attention){0};
    if (!strcmp(s->arch, "et") && !s->attention) return BASIN_OK;
    *a = (basin_image_attention){.heads = s->heads, .tokens = N, .keys = N + s->cls};
    size_t one = 1, all;
    int64_t size[] = {a->heads, a->tokens, a->keys};
    bool fits = true;
    for (int i = 0; i < 3; i++) fits = fits && basin_size_multiply(&one, one, (size_t)size[i]);
    int64_t maps = fits ? (int64_t)(bytes / one) : 0; /* pictures times steps */
    if (maps < 1) return BASIN_OK;                    /* even one is too much for a page */
    int64_t few = pictures < 2 ? pictures : 2, whole = maps / (last + 1);
    a->pictures = whole > pictures ? pictures : whole > few ? whole : few;
    if (a->pictures > maps) a->pictures = maps;
    a->steps = (int)(maps / a->pictures < last + 1 ? maps / a->pictures : last + 1);
    basin_status status = choose_steps(a, last, error);
    if (!status && basin_size_multiply(&all, one, (size_t)(a->pictures * a->steps)))
        a->share = basin_array_new(all, 1);
    if (!status && !a->share)
        status =
            basin_fail(error, BASIN_NO_MEMORY, "out of memory for the attention of %lld pictures",
                       (long long)a->pictures);
    if (status) basin_image_attention_free(a);
    return status;
}

void basin_image_attention_free(basin_image_attention *a) {
    free(a->step);
    free(a->share);
    *a = (basin_image_attention){0};
}

static int place_of(const basin_image_attention *a, int step) {
    for (int i = 0; i < a->steps; i++)
        if (a->step[i] == step) return i;
    return -1;
}

bool basin_image_attention_wants(const basin_image_attention *a, int step) {
    return a && place_of(a, step) >= 0;
}

/* exp(score - greatest) of one query and all keys, and the bytes of it. */
static void set_row(uint8_t *share, double *score, const float *query, const float *key,
                    const basin_image_attention *a, int64_t self, int64_t head_dim) {
    double most = -INFINITY;
    for (int64_t k = 0; k < a->keys; k++) {
        score[k] = k == self ? -INFINITY : 0;
        for (int64_t y = 0; y < head_dim && k != self; y++)
            score[k] += (double)query[y] * key[k * a->heads * head_dim + y];
        most = fmax(most, score[k]);
    }
    for (int64_t k = 0; k < a->keys; k++)
        share[k] = k == self ? 0 : (uint8_t)lrint(255 * exp(score[k] - most));
}

basin_status basin_image_attention_set(basin_image_attention *a, int step, const float *query,
                                       const float *key, int64_t head_dim, bool exclude_self,
                                       basin_error *error) {
    int at = place_of(a, step);
    int64_t row = a->heads * head_dim, skip = a->keys - a->tokens;
    double *score = basin_array_new((size_t)a->keys, sizeof *score);
    if (!score) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores of attention");
    for (int64_t b = 0; b < a->pictures && at >= 0; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t n = 0; n < a->tokens; n++) {
                int64_t to = ((b * a->steps + at) * a->heads + h) * a->tokens + n;
                int64_t from = (b * a->keys + skip + n) * row + h * head_dim;
                set_row(a->share + to * a->keys, score, query + from,
                        key + b * a->keys * row + h * head_dim, a, exclude_self ? skip + n : -1,
                        head_dim);
            }
    free(score);
    return BASIN_OK;
}
