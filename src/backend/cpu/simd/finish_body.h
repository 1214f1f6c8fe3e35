/* What becomes of a finished tile of a product, in one pass; see basin_finish. */
#ifndef BASIN_BACKEND_CPU_SIMD_FINISH_BODY_H
#define BASIN_BACKEND_CPU_SIMD_FINISH_BODY_H

#include "backend/cpu/simd/simd.h"
#include "backend/cpu/simd/vector_math.h"

/* Up to VECTOR_LANES elements. The flags are constants wherever this is inlined. */
VECTOR_INLINE void finish_vector(const basin_finish *f, const float *tile, int64_t at, int64_t n,
                                 bool narrow, bool other, bool masks, bool relu) {
    vfloat value = f->alpha * vector_load_part(tile, n, 0.0F), x = {0};
    if (other && narrow) x = vector_widen_part((const uint16_t *)f->other + at, n);
    if (other && !narrow) x = vector_load_part((const float *)f->other + at, n, 0.0F);
    if (other && masks) value = vector_select(x > 0.0F, value, (vfloat){0});
    if (other && !masks) value += f->beta * x;
    if (relu) value = vector_max((vfloat){0}, value); /* NaN stays */
    if (narrow)
        vector_narrow_part((uint16_t *)f->to + at, value, n);
    else
        vector_store_part((float *)f->to + at, value, n);
}

VECTOR_INLINE void finish_rows(const basin_finish *f, const float *tile, int64_t tile_row,
                               int64_t first, int64_t rows, int64_t cols, bool narrow, bool other,
                               bool masks, bool relu) {
    for (int64_t r = 0; r < rows; r++, first += f->row, tile += tile_row)
        for (int64_t i = 0; i < cols; i += VECTOR_LANES)
            finish_vector(f, tile + i, first + i, cols - i, narrow, other, masks, relu);
}

#define FINISH(NARROW, OTHER, MASKS, RELU)                                                         \
    finish_rows(f, tile, tile_row, first, rows, cols, NARROW, OTHER, MASKS, RELU)

static void finish(const basin_finish *f, const float *tile, int64_t tile_row, int64_t first,
                   int64_t rows, int64_t cols) {
    if (f->narrow && !f->other && f->relu)
        FINISH(true, false, false, true);
    else if (f->narrow && !f->other)
        FINISH(true, false, false, false);
    else if (f->narrow && f->masks)
        FINISH(true, true, true, false);
    else if (f->narrow)
        FINISH(true, true, false, f->relu);
    else if (!f->other)
        FINISH(false, false, false, f->relu);
    else if (f->masks)
        FINISH(false, true, true, false);
    else
        FINISH(false, true, false, f->relu);
}
#undef FINISH

#endif
