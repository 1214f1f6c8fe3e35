/* Kept pictures: decoding into the kept form, drawing crops of it. See pictures.h. */
#include "base/file.h"
#include "base/try.h"
#include "tasks/pictures/sets/pictures.h"

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

/* Reduces `from`, of which the box is the picture, to the sizes kept; or hands it over. */
static basin_status reduce(basin_kept *kept, basin_picture *from, const basin_box *box,
                           basin_cut cut, int64_t size, basin_error *error) {
    int64_t height, width;
    basin_kept_sizes(&height, &width, kept->height, kept->width, cut, size);
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
    BASIN_TRY(basin_decoder_open(&decoder, fetched->bytes, fetched->size, name, error));
    basin_box whole = {0, 0, (double)decoder.height, (double)decoder.width};
    kept->height = decoder.height;
    kept->width = decoder.width;
    basin_kept_sizes(&height, &width, decoder.height, decoder.width, cut, size);
    int by = decoder.png || decoder.webp
                 ? 1
                 : basin_decoder_reduction(&whole, 2 * (double)height, 2 * (double)width);
    basin_status status = basin_decoder_read(spare, &inside, &decoder, &whole, by, error);
    basin_decoder_close(&decoder);
    return status ? status : reduce(kept, spare, &inside, cut, size, error);
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
        basin_box whole = {0, 0, (double)spare->height, (double)spare->width};
        kept->height = spare->height;
        kept->width = spare->width;
        status = reduce(kept, spare, &whole, cut, size, error);
    }
    basin_map_close(&fetched.map);
    return status;
}

void basin_kept_draw(basin_drawn *drawn, const basin_augment *augment, const basin_kept *kept,
                     uint64_t seed, int64_t epoch, int64_t index) {
    const basin_picture *p = &kept->picture;
    basin_box *box = &drawn->resize.box;
    basin_augment_draw(drawn, augment, kept->height, kept->width, seed, epoch, index);
    if (p->height == kept->height && p->width == kept->width) return;
    double down = (double)p->height / (double)kept->height;
    double along = (double)p->width / (double)kept->width;
    *box = (basin_box){box->y * down, box->x * along, box->height * down, box->width * along};
}

/* ---- estimating ---- */

enum { SAMPLE = 512 };

static double page_bytes(const basin_pictures *pictures, int64_t i, basin_cut cut, int64_t size,
                         basin_picture *spare) {
    basin_fetched fetched;
    basin_decoder decoder;
    int64_t height = 0, width = 0, kept_height, kept_width, channels = 0;
    if (basin_pictures_fetch(&fetched, spare, pictures, i, NULL)) return 0;
    if (!fetched.bytes) {
        height = spare->height, width = spare->width, channels = spare->channels;
    } else if (!basin_decoder_open(&decoder, fetched.bytes, fetched.size, "", NULL)) {
        height = decoder.height, width = decoder.width, channels = decoder.channels;
        basin_decoder_close(&decoder);
    }
    basin_map_close(&fetched.map);
    if (!channels) return 0;
    basin_kept_sizes(&kept_height, &kept_width, height, width, cut, size);
    return (double)kept_height * (double)kept_width * (double)channels;
}

double basin_kept_estimate(const basin_pictures *pictures, const int64_t *item, int64_t items,
                           basin_cut cut, int64_t size) {
    basin_picture spare = {0};
    double sum = 0;
    int64_t max = items < SAMPLE ? items : SAMPLE;
    for (int64_t i = 0; i < max; i++) {
        int64_t at = i * (items / max) + i * (items % max) / max;
        sum += page_bytes(pictures, item ? item[at] : at, cut, size, &spare);
    }
    basin_picture_free(&spare);
    return max > 0 ? sum / (double)max * (double)items : 0;
}
