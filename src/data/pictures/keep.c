/* Kept pictures: decoding into the form that is kept, and drawing crops of it. See keep.h. */
#include "data/pictures/keep.h"

#include <math.h>

void basin_kept_sizes(int64_t *kept_height, int64_t *kept_width, int64_t height, int64_t width,
                      basin_cut cut, int64_t size) {
    int64_t shorter = height < width ? height : width, longer = height < width ? width : height;
    double by = 1, side = nearbyint((double)size * 8 / 7);
    if (cut == BASIN_CUT_REDUCED && (double)shorter > side) by = side / (double)shorter;
    if (by * (double)longer > (double)BASIN_KEPT_SIDES * (double)size)
        by = (double)BASIN_KEPT_SIDES * (double)size / (double)longer;
    *kept_height = by < 1 ? llrint(by * (double)height) : height;
    *kept_width = by < 1 ? llrint(by * (double)width) : width;
    if (*kept_height < 1) *kept_height = 1;
    if (*kept_width < 1) *kept_width = 1;
}

/* Reduces `from`, of which the box is the picture, to the sizes wanted; or hands it over. */
static basin_status reduce(basin_kept *kept, basin_picture *from, const basin_box *box,
                           int64_t height, int64_t width, basin_error *error) {
    if (from->height == height && from->width == width) {
        basin_picture handed = *from;
        *from = kept->picture;
        kept->picture = handed;
        return BASIN_OK;
    }
    return basin_picture_scale_box(&kept->picture, from, box, height, width, error);
}

/* A JPEG is decoded at twice the sizes kept at least, so that the reduction is the filter's. */
static basin_status load_encoded(basin_kept *kept, const basin_fetched *fetched, const char *name,
                                 basin_cut cut, int64_t size, basin_picture *spare,
                                 basin_error *error) {
    basin_decoder decoder;
    int64_t height, width;
    basin_box inside;
    basin_status status = basin_decoder_open(&decoder, fetched->bytes, fetched->size, name, error);
    if (status) return status;
    basin_box whole = {0, 0, (double)decoder.height, (double)decoder.width};
    kept->height = decoder.height;
    kept->width = decoder.width;
    basin_kept_sizes(&height, &width, decoder.height, decoder.width, cut, size);
    int by = decoder.png || decoder.webp
                 ? 1
                 : basin_decoder_reduction(&whole, 2 * (double)height, 2 * (double)width);
    status = basin_decoder_read(spare, &inside, &decoder, &whole, by, error);
    basin_decoder_close(&decoder);
    if (!status) status = reduce(kept, spare, &inside, height, width, error);
    return status;
}

basin_status basin_kept_load(basin_kept *kept, const basin_pictures *pictures, int64_t i,
                             basin_cut cut, int64_t size, basin_picture *spare,
                             basin_error *error) {
    char name[BASIN_PICTURE_NAME];
    basin_fetched fetched;
    basin_status status = basin_pictures_fetch(&fetched, spare, pictures, i, error);
    if (!status && fetched.bytes) {
        basin_pictures_name(name, pictures, i);
        status = load_encoded(kept, &fetched, name, cut, size, spare, error);
    } else if (!status) {
        int64_t height, width;
        basin_box whole = {0, 0, (double)spare->height, (double)spare->width};
        kept->height = spare->height;
        kept->width = spare->width;
        basin_kept_sizes(&height, &width, spare->height, spare->width, cut, size);
        status = reduce(kept, spare, &whole, height, width, error);
    }
    basin_map_close(&fetched.map);
    return status;
}

void basin_kept_draw(basin_drawn *drawn, const basin_augment *augment, int64_t height,
                     int64_t width, int64_t kept_height, int64_t kept_width, uint64_t seed,
                     int64_t epoch, int64_t index) {
    basin_box *box = &drawn->resize.box;
    basin_augment_draw(drawn, augment, height, width, seed, epoch, index);
    if (kept_height == height && kept_width == width) return;
    double down = (double)kept_height / (double)height, along = (double)kept_width / (double)width;
    *box = (basin_box){box->y * down, box->x * along, box->height * down, box->width * along};
}
