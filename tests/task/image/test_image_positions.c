/* Maps of positions: cosines that are known, several models in one picture, sizes that differ. */
#include <math.h>

#include "support/test.h"
#include "task/image/image.h"

enum { ACROSS = 3, N = ACROSS * ACROSS, D = 16 };

static basin_image_model *tiny(basin_backend *backend, int64_t size, bool cls) {
    basin_image_settings s;
    basin_image_model *model;
    assert_int_equal(basin_settings_preset(&s, &basin_image_task, "fashion", NULL), BASIN_OK);
    s.size = size, s.patch = 4, s.dim = D, s.heads = 2, s.head_dim = 8, s.memories = 24;
    s.occlude = 5, s.keep = 1, s.cls = cls;
    assert_ok(basin_image_model_new(&model, &s, backend, &failure));
    return model;
}

/* Patch i points along axis i / ACROSS: those of a row are alike, those of two rows have nothing in
 * common. A CLS token before them does not count. */
static void set_rows(basin_image_model *model, int skip) {
    static float row[(N + 1) * D];
    memset(row, 0, sizeof row);
    for (int i = 0; i < N; i++) row[(i + skip) * D + i / ACROSS] = 1 + (float)i;
    basin_tensor pos = basin_tensor_borrow(row, BASIN_F32, BASIN_SHAPE(N + skip, D));
    assert_ok(basin_store_write(model->store, "pos", &pos, &failure));
}

TEST(draws_models_side_by_side) {
    basin_backend *backend;
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    basin_image_model *model[2] = {tiny(backend, 12, false), tiny(backend, 12, true)};
    basin_image_positions_of figures[2];
    basin_picture picture = {0};
    for (int i = 0; i < 2; i++) set_rows(model[i], i);
    assert_ok(basin_image_positions(&picture, figures, model, 2, &failure));
    for (int i = 0; i < 2; i++) {
        assert_float_equal(figures[i].least, 0, 1e-12);
        assert_float_equal(figures[i].next, 0.5, 1e-12);     /* 6 of 12 are in one row */
        assert_float_equal(figures[i].any, 9.0 / 36, 1e-12); /* 3 in each row, of 36 pairs */
    }
    assert_true(picture.width > 2 * picture.height);
    assert_int_equal(picture.channels, 3);
    const uint8_t *pixel = picture.pixel; /* the first map's first patch: itself, cosine 1 */
    assert_int_equal(pixel[0], 253);
    basin_picture_free(&picture);
    basin_image_close(model[1]);
    model[1] = tiny(backend, 16, false);
    assert_failure(basin_image_positions(&picture, figures, model, 2, &failure), BASIN_BAD_VALUE,
                   "4 x 4 patches beside one of 3 x 3");
    assert_int_equal(basin_image_positions(&picture, figures, model, 0, &failure), BASIN_BAD_VALUE);
    for (int i = 0; i < 2; i++) basin_image_close(model[i]);
    basin_backend_close(backend);
}
