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

basin_patching basin_image_patching(const basin_image_settings *s) {
    basin_patching p = {.size = s->size, .patch = s->patch, .channels = s->channels};
    for (int c = 0; c < 3; c++) p.mean[c] = s->mean[c], p.deviation[c] = s->deviation[c];
    return p;
}
