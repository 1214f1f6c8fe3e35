/* Kriging from the rim of a hole: colours there are a Gaussian process whose correlation falls by
 * distance, slower along one direction than across it. Likelihood of known pixels around the hole
 * chooses the direction, the lengths and how much they differ; a better guess than the membrane,
 * which forgets the rim sooner and knows no direction. See complete.h. */
#include "base/sort.h"
#include "tasks/pictures/complete/complete.h"

enum {
    REACH = 16,    /* known pixels so far from the hole say which correlation it is */
    POINTS = 1300, /* at most: the work grows by their third power */
    ANGLES = 8,
    KERNELS = 2 * (1 + 2 * ANGLES),
    BEST = 3, /* kernels whose guesses are averaged */
};

/* exp(-(down y^2 + 2 both y x + right x^2)^0.4) */
typedef struct kernel {
    double down, both, right;
} kernel;

static kernel kernel_of(int number) {
    double length = number % 2 ? 45 : 18, slant = number < 2 ? 1 : number / 2 % 2 ? 1.3 : 1.8;
    double angle = number < 2 ? 0 : (number / 2 - 1) / 2 * acos(-1) / ANGLES;
    double along = pow(slant * length, -2), across = pow(slant / length, 2);
    double s = sin(angle), c = cos(angle);
    return (kernel){along * s * s + across * c * c, (along - across) * s * c,
                    along * c * c + across * s * s};
}

static double correlation(kernel k, double y, double x) {
    return exp(-pow(fmax(k.down * y * y + 2 * k.both * y * x + k.right * x * x, 0), 0.4));
}

/* ---- points: known pixels near the hole ---- */

typedef struct krige {
    const basin_picture *picture;
    int64_t points;
    int32_t y[POINTS + 1], x[POINTS + 1];
    double *matrix; /* [points, points] correlations, then their Cholesky factor; borrowed */
    double weight[4][POINTS + 1], mean[3]; /* of each channel; the last weights are of ones */
    double likelihood;                     /* its logarithm by points, up to a constant */
} krige;

/* Chessboard distances from the hole to the pixels of an area; one sweep each way. */
static void measure(int32_t *far, const basin_hole *hole, basin_area area) {
    int64_t count = area.height * area.width;
    for (int64_t i = 0; i < count; i++) {
        int64_t y = i / area.width, x = i % area.width;
        far[i] = basin_hole_depth(hole, area.top + y, area.left + x) > 0 ? 0 : REACH + 1;
    }
    for (int64_t k = 0; k < 2 * count; k++) {
        int64_t i = k < count ? k : 2 * count - 1 - k, y = i / area.width, x = i % area.width;
        for (int n = 0; n < 9; n++) {
            int64_t v = y + n / 3 - 1, u = x + n % 3 - 1;
            if (v < 0 || u < 0 || v >= area.height || u >= area.width) continue;
            if (far[i] > far[v * area.width + u] + 1) far[i] = far[v * area.width + u] + 1;
        }
    }
}

/* Those in the first two rows around the hole; or fewer of four rows, further apart (1, 3, 9 and 16
 * pixels), every `apart` pixels along rows, columns and diagonals. */
static void find_points(krige *k, const int32_t *far, basin_area area, int64_t apart) {
    k->points = 0;
    for (int64_t i = 0; i < area.height * area.width && k->points <= POINTS; i++) {
        int64_t y = area.top + i / area.width, x = area.left + i % area.width;
        bool in = apart ? (far[i] == 1 || far[i] == 3 || far[i] == 9 || far[i] == REACH) &&
                              (2 * y + x) % apart == 0
                        : far[i] == 1 || far[i] == 2;
        if (in) k->y[k->points] = (int32_t)y, k->x[k->points++] = (int32_t)x;
    }
}

/* ---- weights ---- */

static double dot(const double *a, const double *b, int64_t n) {
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum[0] += a[i] * b[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* Solves matrix b = b in place by the factor in the lower triangle. */
static void solve(const double *a, double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) b[i] = (b[i] - dot(a + i * n, b, i)) / a[i * n + i];
    for (int64_t i = n - 1; i >= 0; i--) {
        b[i] /= a[i * n + i];
        for (int64_t k = 0; k < i; k++) b[k] -= a[i * n + k] * b[i];
    }
}

static double value_at(const krige *k, int64_t i, int64_t c) {
    const basin_picture *p = k->picture;
    return p->pixel[(k->y[i] * p->width + k->x[i]) * p->channels + c];
}

static void krige_fit(krige *k, kernel by) {
    const double noise = 0.02;
    int64_t n = k->points, C = k->picture->channels;
    double *a = k->matrix, ones = 0, volume = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l <= i; l++) {
            double sum = correlation(by, k->y[i] - k->y[l], k->x[i] - k->x[l]) + (i == l) * noise;
            sum -= dot(a + i * n, a + l * n, l);
            a[i * n + l] = i == l ? sqrt(sum) : sum / a[l * n + l];
            if (i == l) volume += log(sum);
        }
    for (int64_t c = C; c >= 0; c--) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) k->weight[c][i] = c < C ? value_at(k, i, c) : 1;
        solve(a, k->weight[c], n);
        for (int64_t i = 0; i < n; i++) sum += k->weight[c][i];
        if (c == C) {
            ones = sum;
            continue;
        }
        k->mean[c] = sum / ones;
        for (int64_t i = 0; i < n; i++) {
            k->weight[c][i] -= k->mean[c] * k->weight[C][i];
            square += k->weight[c][i] * value_at(k, i, c);
        }
    }
    k->likelihood = -1.5 * (log(square / (double)(n * C) + 1e-3) + volume / (double)n);
}

/* Adds `share` of the guesses for the missing pixels of a box. */
static void add_guesses(float *guess, const krige *k, kernel by, double share,
                        const basin_hole *hole, basin_area box) {
    int64_t C = k->picture->channels;
    for (int64_t i = 0; i < box.height * box.width; i++) {
        int64_t y = box.top + i / box.width, x = box.left + i % box.width;
        if (!basin_hole_depth(hole, y, x)) continue;
        double sum[3] = {k->mean[0], k->mean[1], k->mean[2]};
        for (int64_t n = 0; n < k->points; n++) {
            double near = correlation(by, (double)(y - k->y[n]), (double)(x - k->x[n]));
            for (int64_t c = 0; c < C; c++) sum[c] += near * k->weight[c][n];
        }
        for (int64_t c = 0; c < C; c++) guess[i * C + c] += (float)(share * sum[c]);
    }
}

/* The likeliest kernels, each with its share. */
static void choose(int *best, double *share, krige *k) {
    const double temperature = 0.05;
    double likely[KERNELS], sum = 0;
    for (int n = 0; n < KERNELS; n++) {
        krige_fit(k, kernel_of(n));
        likely[n] = k->likelihood;
    }
    for (int b = 0; b < BEST; b++) {
        best[b] = 0;
        for (int n = 1; n < KERNELS; n++)
            if (likely[n] > likely[best[b]]) best[b] = n;
        share[b] = b ? exp((likely[best[b]] - share[0]) / temperature) : likely[best[b]];
        likely[best[b]] = -INFINITY;
    }
    share[0] = 1;
    for (int b = 0; b < BEST; b++) sum += share[b];
    for (int b = 0; b < BEST; b++) share[b] /= sum;
}

basin_status basin_krige(float *guess, const basin_picture *picture, const basin_hole *hole,
                         basin_area box, basin_error *error) {
    krige k = {.picture = picture};
    int best[BEST];
    double share[BEST];
    int64_t top = basin_int_max(box.top - REACH, 0), left = basin_int_max(box.left - REACH, 0);
    basin_area area = {top, left,
                       basin_int_min(box.top + box.height + REACH, picture->height) - top,
                       basin_int_min(box.left + box.width + REACH, picture->width) - left};
    BASIN_SCRATCH_RAW(int32_t, far, area.height * area.width, "kriging", error);
    measure(far, hole, area);
    find_points(&k, far, area, 0);
    int64_t max = k.points;
    find_points(&k, far, area, 5);
    if (max > POINTS || !k.points) return BASIN_OK;
    max = basin_int_max(max, k.points);
    BASIN_SCRATCH_RAW(double, matrix, max *max, "kriging", error);
    k.matrix = matrix;
    choose(best, share, &k);
    find_points(&k, far, area, 0);
    for (int64_t i = 0; i < box.height * box.width; i++)
        for (int c = 0; c < picture->channels; c++)
            if (basin_hole_depth(hole, box.top + i / box.width, box.left + i % box.width))
                guess[i * picture->channels + c] = 0;
    for (int b = 0; b < BEST; b++) {
        krige_fit(&k, kernel_of(best[b]));
        add_guesses(guess, &k, kernel_of(best[b]), share[b], hole, box);
    }
    return BASIN_OK;
}
