/* How near one picture is to another: PSNR and SSIM (Wang et al., 2004), by the definitions of
 * scikit-image, whose numbers they give.
 *
 *     PSNR = 10 log10(range^2 / mean squared difference)
 *     SSIM = mean over windows of (2 ma mb + C1) (2 Sab + C2) / ((ma^2 + mb^2 + C1) (Sa + Sb + C2))
 *
 * with means m, variances and covariance S in a window, C1 = (0.01 range)^2, C2 = (0.03 range)^2.
 * The window is 7 x 7, uniform, with the unbiased S (divided by n - 1). Windows that reach over the
 * border are left out of the mean; channels count the same. */
#ifndef BASIN_METRICS_PICTURE_H
#define BASIN_METRICS_PICTURE_H

#include <stdint.h>

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Infinite where the pictures are equal. */
BASIN_API double basin_psnr(const float *a /* [count] */, const float *b /* [count] */,
                            int64_t count, double range);

/* Planes [channels, height, width]; `range` is that of the values, 1 or 255. Fails where the
 * picture is smaller than a window. */
BASIN_API basin_status basin_ssim(double *ssim, const float *a, const float *b, int64_t channels,
                                  int64_t height, int64_t width, double range, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
