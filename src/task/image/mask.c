/* Masks and patches of masked image completion; see image.h. */
#include "basin/random.h"
#include "task/image/image.h"

/* Selection sampling: patch i is taken with the chance that leaves every subset equally likely,
 * then the kept ones are chosen among the taken in the same way. */
void basin_image_mask_draw(uint8_t *mask, int64_t tokens, int64_t occlude, int64_t keep,
                           uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t open = occlude, kept = keep;
    for (int64_t i = 0; i < tokens; i++) {
        mask[i] = BASIN_PATCH_SHOWN;
        if ((int64_t)basin_random_below(&random, (uint64_t)(tokens - i)) >= open) continue;
        bool stays = (int64_t)basin_random_below(&random, (uint64_t)open) < kept;
        mask[i] = stays ? BASIN_PATCH_KEPT : BASIN_PATCH_REPLACED;
        kept -= stays;
        open--;
    }
}

void basin_image_hole_draw(uint8_t *mask, int64_t side, uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t least = (side + 3) / 7, most = (4 * side + 3) / 7, size[2], from[2];
    if (least < 1) least = 1;
    if (most < least) most = least;
    for (int i = 0; i < 2; i++) {
        size[i] = least + (int64_t)basin_random_below(&random, (uint64_t)(most - least + 1));
        from[i] = (int64_t)basin_random_below(&random, (uint64_t)(side - size[i] + 1));
    }
    for (int64_t i = 0; i < side * side; i++) {
        int64_t y = i / side - from[0], x = i % side - from[1];
        bool inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
        mask[i] = inside ? BASIN_PATCH_REPLACED : BASIN_PATCH_SHOWN;
    }
}

/* The choice has a seed of its own, so that scattered masks do not depend on `holes`. */
void basin_image_mask_train(uint8_t *mask, const basin_image_settings *s, uint64_t seed,
                            uint64_t stream) {
    enum { HOLE_SALT = 0x686f6c65 };
    if ((double)basin_random_uniform_at(seed ^ HOLE_SALT, stream, 0) < s->holes)
        basin_image_hole_draw(mask, s->size / s->patch, seed, stream);
    else
        basin_image_mask_draw(mask, basin_image_tokens(s), basin_image_occluded(s),
                              basin_image_kept(s), seed, stream);
}

basin_patching basin_image_patching(const basin_image_settings *s) {
    basin_patching p = {.size = s->size, .patch = s->patch, .channels = s->channels};
    for (int c = 0; c < 3; c++) p.mean[c] = s->mean[c], p.deviation[c] = s->deviation[c];
    return p;
}
