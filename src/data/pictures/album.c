/* Albums: see pictures.h. Decoded in rounds, a few a thread, put into slabs by the caller. */
#include <unistd.h>

#include "base/sort.h"
#include "base/team/team.h"
#include "base/try.h"
#include "data/pictures/pictures.h"

enum { THREADS_MOST = 64, EACH = 4, ALIGN = 64, SAMPLE = 512 };
static const size_t SLAB = (size_t)256 << 20;

/* One picture under way. */
typedef struct leaf {
    basin_kept kept;
    basin_picture spare;
    basin_status status;
    basin_error error;
} leaf;

typedef struct slab {
    void *memory;
    size_t used, bytes;
} slab;

struct basin_album {
    basin_album_config config;
    int64_t *item;    /* [items] */
    basin_kept *page; /* [items] */
    int64_t items, steps, bad;
    slab *slab; /* [slabs] */
    size_t slabs, slab_capacity, bytes;
};

/* ---- decoding, in rounds ---- */

typedef struct decoding {
    const basin_album *album;
    leaf *leaf; /* [count] */
    int64_t from;
} decoding;

static void decode(const void *context, int64_t first, int64_t last) {
    const decoding *r = context;
    const basin_feed_config *c = &r->album->config.feed;
    for (int64_t i = first; i < last; i++) {
        leaf *l = &r->leaf[i];
        l->status = basin_kept_load(&l->kept, c->pictures, r->album->item[r->from + i], c->cut,
                                    c->augment.size, &l->spare, &l->error);
    }
}

/* ---- putting away ---- */

static void *place(basin_album *album, size_t bytes, basin_error *error) {
    const basin_album_memory *m = &album->config.memory;
    slab *last = album->slabs ? &album->slab[album->slabs - 1] : NULL;
    size_t aligned = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (!last || last->bytes - last->used < aligned) {
        size_t wanted = aligned > SLAB ? aligned : SLAB;
        void *memory = NULL;
        if (BASIN_RESERVE(&album->slab, &album->slab_capacity, album->slabs + 1))
            memory = m->alloc(m->context, wanted);
        if (!memory) {
            basin_fail(error, BASIN_NO_MEMORY,
                       "out of memory to keep pictures decoded, after %.1f GiB of them",
                       (double)album->bytes / 1073741824.0);
            return NULL;
        }
        last = &album->slab[album->slabs++];
        *last = (slab){memory, 0, wanted};
    }
    void *at = (char *)last->memory + last->used;
    last->used += aligned;
    album->bytes += aligned;
    return at;
}

static void note_bad(basin_album *album, int64_t k, const leaf *l) {
    const basin_feed_config *c = &album->config.feed;
    char name[BASIN_PICTURE_NAME];
    album->bad++;
    basin_pictures_name(name, c->pictures, album->item[k]);
    if (c->unreadable) c->unreadable(c->context, name, l->error.text);
}

static basin_status put_away(basin_album *album, int64_t k, const leaf *l, basin_error *error) {
    const basin_album_memory *m = &album->config.memory;
    const basin_picture *p = &l->kept.picture;
    if (l->status == BASIN_NO_MEMORY) return basin_fail(error, l->status, "%s", l->error.text);
    if (l->status) {
        note_bad(album, k, l);
        return BASIN_OK;
    }
    size_t bytes = (size_t)p->height * (size_t)p->width * (size_t)p->channels;
    void *pixel = place(album, bytes, error);
    if (!pixel) return BASIN_NO_MEMORY;
    m->write(m->context, pixel, p->pixel, bytes);
    album->page[k] = l->kept;
    album->page[k].picture.pixel = pixel;
    return BASIN_OK;
}

int basin_pictures_threads(int asked, int most) {
    int64_t threads = asked > 0 ? asked : sysconf(_SC_NPROCESSORS_ONLN);
    return (int)basin_int_max(1, basin_int_min(threads, most));
}

/* *stopped where the watcher stops the run. */
static basin_status fill(basin_album *album, bool *stopped, basin_error *error) {
    const basin_album_config *c = &album->config;
    int threads = basin_pictures_threads(c->feed.threads, THREADS_MOST);
    int64_t most = (int64_t)threads * EACH;
    BASIN_FREE_AT_EXIT leaf *leaves = NULL;
    basin_status status = BASIN_OK;
    BASIN_TRY(BASIN_NEW(&leaves, most, "decoded pictures", error));
    for (int64_t at = 0; at < album->items && !status && !*stopped; at += most) {
        int64_t count = basin_int_min(album->items - at, most);
        basin_team_run(decode, &(decoding){album, leaves, at}, count, 1, threads);
        for (int64_t i = 0; i < count && !status; i++)
            status = put_away(album, at + i, &leaves[i], error);
        if (c->progress) *stopped = !c->progress(c->progress_context, at + count, album->items);
    }
    for (int64_t i = 0; i < most; i++) {
        basin_picture_free(&leaves[i].kept.picture);
        basin_picture_free(&leaves[i].spare);
    }
    if (!status && !*stopped && album->bad == album->items)
        status = basin_fail(error, BASIN_BAD_FILE, "none of %lld pictures can be read",
                            (long long)album->items);
    return status;
}

/* ---- making and freeing ---- */

basin_status basin_album_new(basin_album **out, const basin_album_config *config,
                             basin_error *error) {
    const basin_feed_config *c = &config->feed;
    int64_t items = c->item ? c->items : basin_pictures_count(c->pictures);
    bool stopped = false;
    basin_album *album = NULL;
    *out = NULL;
    BASIN_TRY(basin_augment_check(&c->augment, error));
    if (c->batch < 1 || c->batch > items)
        return basin_fail(error, BASIN_BAD_VALUE, "batches of %lld from %lld pictures",
                          (long long)c->batch, (long long)items);
    BASIN_TRY(BASIN_NEW(&album, 1, "an album", error));
    album->config = *config;
    album->items = items;
    album->steps = items / c->batch;
    basin_status status = BASIN_NEW_RAW(&album->item, items, "an album", error);
    if (!status) status = BASIN_NEW(&album->page, items, "an album", error);
    for (int64_t i = 0; i < items && !status; i++) album->item[i] = c->item ? c->item[i] : i;
    album->config.feed.item = NULL;
    if (!status) status = fill(album, &stopped, error);
    if (status || stopped)
        basin_album_free(album);
    else
        *out = album;
    return status;
}

void basin_album_free(basin_album *album) {
    if (!album) return;
    const basin_album_memory *m = &album->config.memory;
    for (size_t i = 0; i < album->slabs; i++) m->free(m->context, album->slab[i].memory);
    BASIN_FREE(album->slab, album->item, album->page, album);
}

/* ---- drawing ---- */

void basin_album_draw(const basin_kept **page, basin_drawn *drawn, int64_t *index,
                      const basin_album *album, int64_t step, int64_t at) {
    const basin_feed_config *c = &album->config.feed;
    int64_t epoch = step / album->steps, k = 0;
    int64_t first = step % album->steps * c->batch + at;
    for (int64_t i = 0; i < album->items; i++) {
        k = basin_order_at((first + i) % album->items, album->items, c->seed, epoch);
        if (album->page[k].picture.pixel) break;
    }
    *page = &album->page[k];
    basin_kept_draw(drawn, &c->augment, *page, c->seed, epoch, album->item[k]);
    *index = album->item[k];
}

basin_feed_counts basin_album_count(const basin_album *album) {
    return (basin_feed_counts){.unreadable = album->bad, .kept = album->bytes};
}

/* ---- estimating ---- */

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

double basin_album_estimate(const basin_pictures *pictures, const int64_t *item, int64_t items,
                            basin_cut cut, int64_t size) {
    basin_picture spare = {0};
    double sum = 0;
    int64_t most = items < SAMPLE ? items : SAMPLE;
    for (int64_t i = 0; i < most; i++) {
        int64_t at = i * (items / most) + i * (items % most) / most;
        sum += page_bytes(pictures, item ? item[at] : at, cut, size, &spare);
    }
    basin_picture_free(&spare);
    return most > 0 ? sum / (double)most * (double)items : 0;
}

/* ---- Kept pictures: decoding into the kept form, drawing crops of it. See pictures.h ---- */

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
