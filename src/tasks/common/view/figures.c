/* Strips of pictures; see figures.h. */
#include "tasks/common/view/figures.h"
#include "base/try.h"

int64_t basin_strip_zoom(int64_t height, int64_t width) {
    enum { SEEN = 168 };
    int64_t longer = height > width ? height : width;
    return longer >= SEEN ? 1 : SEEN / longer;
}

static void draw(basin_picture *strip, const basin_picture *p, int64_t left, int64_t zoom) {
    for (int64_t y = 0; y < p->height * zoom; y++)
        for (int64_t x = 0; x < p->width * zoom; x++)
            memcpy(strip->pixel + (y * strip->width + left + x) * p->channels,
                   p->pixel + (y / zoom * p->width + x / zoom) * p->channels, (size_t)p->channels);
}

basin_status basin_strip_draw(basin_picture *strip, const basin_picture *const *picture, int count,
                              int64_t gap, int64_t zoom, basin_error *error) {
    int64_t width = gap * (count - 1), height = picture[0]->height * zoom;
    int channels = picture[0]->channels;
    for (int i = 0; i < count; i++) width += picture[i]->width * zoom;
    BASIN_TRY(basin_picture_resize_memory(strip, height, width, channels, error));
    memset(strip->pixel, 255, (size_t)(height * width * channels));
    int64_t left = 0;
    for (int i = 0; i < count; i++) {
        draw(strip, picture[i], left, zoom);
        left += picture[i]->width * zoom + gap;
    }
    return BASIN_OK;
}

double basin_tensor_norm(const basin_tensor *tensor) {
    int64_t count = basin_shape_count(tensor->shape);
    double size = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = basin_tensor_at(tensor, i);
        size += value * value;
    }
    return sqrt(size);
}

double basin_tensor_distance(const basin_tensor *a, const basin_tensor *b) {
    int64_t count = basin_shape_count(b->shape);
    double away = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double want = basin_tensor_at(b, i), off = basin_tensor_at(a, i) - want;
        away += off * off;
        size += want * want;
    }
    return size > 0 ? sqrt(away / size) : sqrt(away);
}
