/* Smooth surfaces over a hole; see membrane.h: successive over-relaxation, begun with the solution
 * on a grid of half the size. Four free pixels that become one add up their pulls and springs; the
 * two links between neighbours are twice as long, so that they count as one. */
#include "task/image/complete/membrane.h"

#include <stdlib.h>

#include "base/memory.h"

basin_status basin_membrane_new(basin_membrane *m, int64_t height, int64_t width,
                                basin_error *error) {
    size_t count = (size_t)(height * width);
    *m = (basin_membrane){.height = height, .width = width};
    m->free = calloc(count, sizeof *m->free);
    m->pull = calloc(count, sizeof *m->pull);
    m->toward = calloc(count, sizeof *m->toward);
    m->u = calloc(count, sizeof *m->u);
    if (m->free && m->pull && m->toward && m->u) return BASIN_OK;
    basin_membrane_free(m);
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a membrane over a hole");
}

void basin_membrane_free(basin_membrane *m) {
    free(m->free);
    free(m->pull);
    free(m->toward);
    free(m->u);
    *m = (basin_membrane){0};
}

static void relax(basin_membrane *m, int64_t y, int64_t x, float over) {
    int64_t i = y * m->width + x;
    float sum = m->toward[i], weight = m->pull[i] + (float)m->spring;
    if (y > 0 && m->free[i - m->width]) sum += m->u[i - m->width], weight += 1;
    if (x > 0 && m->free[i - 1]) sum += m->u[i - 1], weight += 1;
    if (x + 1 < m->width && m->free[i + 1]) sum += m->u[i + 1], weight += 1;
    if (y + 1 < m->height && m->free[i + m->width]) sum += m->u[i + m->width], weight += 1;
    if (weight > 0) m->u[i] += over * (sum / weight - m->u[i]);
}

/* Over-relaxation first, then plain sweeps, which smooth what it leaves. */
static void sweep(basin_membrane *m) {
    enum { SWEEPS = 40, PLAIN = 8 };
    for (int k = 0; k < SWEEPS; k++)
        for (int64_t i = 0; i < m->height * m->width; i++)
            if (m->free[i]) relax(m, i / m->width, i % m->width, k < SWEEPS - PLAIN ? 1.7F : 1);
}

static void reduce(basin_membrane *half, const basin_membrane *m) {
    half->spring = 4 * m->spring;
    for (int64_t i = 0; i < m->height * m->width; i++) {
        int64_t to = i / m->width / 2 * half->width + i % m->width / 2;
        if (!m->free[i]) continue;
        half->free[to] = 1;
        half->pull[to] += m->pull[i];
        half->toward[to] += m->toward[i];
    }
}

static void enlarge(basin_membrane *m, const basin_membrane *half) {
    for (int64_t i = 0; i < m->height * m->width; i++)
        if (m->free[i]) m->u[i] = half->u[i / m->width / 2 * half->width + i % m->width / 2];
}

basin_status basin_membrane_solve(basin_membrane *m, basin_error *error) {
    enum { SMALL = 8 };
    basin_membrane half;
    if (m->height > SMALL || m->width > SMALL) {
        basin_status status =
            basin_membrane_new(&half, (m->height + 1) / 2, (m->width + 1) / 2, error);
        if (status) return status;
        reduce(&half, m);
        status = basin_membrane_solve(&half, error);
        if (!status) enlarge(m, &half);
        basin_membrane_free(&half);
        if (status) return status;
    }
    sweep(m);
    return BASIN_OK;
}
