/* The feed: a ring of batches that workers fill ahead of the reader, small runs of places in order.
 * One lock guards the counters; decoding runs outside of it. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/try.h"
#include "basin/random.h"
#include "tasks/pictures/sets/pictures.h"

enum { MAX_THREADS = 16, AHEAD = 4, MAX_AHEAD = 64, RUN = 8 };

/* One batch of the ring. */
typedef struct slot {
    float *values;  /* [batch, values of a picture] */
    int64_t *index; /* [batch], -1 where there is none */
    int64_t done;   /* places filled */
} slot;

typedef struct report {
    int64_t item;
    char why[BASIN_ERROR_TEXT];
    struct report *next;
} report;

struct basin_picture_feed {
    basin_picture_feed_config config;
    int64_t *item; /* [items] */
    int64_t items, steps, values;
    int64_t width; /* places of a step that this feed fills */
    slot *slot;    /* [ring] */
    int ring;
    pthread_t worker[MAX_THREADS];
    int workers;
    basin_picture *kept; /* [items] decoded pictures, NULL where none are kept */
    atomic_uchar *noted; /* [items] 1 once it could not be read */
    atomic_uchar *held;  /* [items] 1 while one thread keeps it, 2 once it is there */
    atomic_size_t kept_bytes;

    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* there may be places to fill; a batch may be complete */
    int64_t issued;             /* places given out, from the first of step 0 */
    int64_t consumed;           /* steps the reader is through with */
    int64_t next;               /* the step it gets next */
    int busy;                   /* workers outside of the lock */
    bool stop, pause;
    basin_error failure; /* the first that does not concern a single picture */
    report *reports;     /* not reported yet */
    int64_t bad;
    double waited;
};

/* ---- one picture ---- */

static void keep(basin_picture_feed *feed, int64_t k, const basin_picture *picture) {
    size_t bytes = (size_t)picture->height * (size_t)picture->width * (size_t)picture->channels;
    unsigned char none = 0;
    if (!feed->kept || !atomic_compare_exchange_strong(&feed->held[k], &none, 1)) return;
    if (atomic_fetch_add(&feed->kept_bytes, bytes) + bytes > feed->config.keep_bytes) {
        atomic_fetch_sub(&feed->kept_bytes, bytes);
        return; /* stays 1: nobody tries again */
    }
    if (!basin_picture_copy(&feed->kept[k], picture, NULL)) atomic_store(&feed->held[k], 2);
}

/* Whether some crop of a JPEG is reduced while it is decoded; such pictures are not kept, so that
 * a crop has the same values whether there is memory to keep pictures or not. */
static bool may_reduce(const basin_augment *a, const basin_decoder *d) {
    basin_drawn drawn;
    if (d->png || d->webp) return false;
    basin_augment_draw(&drawn, a, d->height, d->width, 0, 0, 0);
    drawn.resize.box = (basin_box){0, 0, (double)d->height, (double)d->width};
    return basin_augment_reduction(a, &drawn.resize) > 1;
}

/* Decodes what the crop needs; or all, to keep it, where `all` is set. */
static basin_status fill_encoded(float *values, basin_picture_feed *feed, int64_t k, int64_t epoch,
                                 const basin_fetched *fetched, bool all, basin_scratch *scratch,
                                 basin_error *error) {
    const basin_picture_feed_config *c = &feed->config;
    char name[BASIN_MAX_PICTURE_NAME];
    basin_decoder decoder;
    basin_drawn drawn;
    int64_t index = feed->item[k];
    basin_pictures_name(name, c->pictures, index);
    BASIN_TRY(basin_decoder_open(&decoder, fetched->bytes, fetched->size, name, error));
    basin_augment_draw(&drawn, &c->augment, decoder.height, decoder.width, c->seed, epoch, index);
    all = all && !may_reduce(&c->augment, &decoder);
    basin_status status =
        basin_augment_decode(&scratch->picture, &drawn, &c->augment, &decoder, all, error);
    basin_decoder_close(&decoder);
    if (status) return status;
    if (all) keep(feed, k, &scratch->picture);
    return basin_augment_run(values, &c->augment, &drawn, &scratch->picture, scratch, error);
}

static basin_status fill_pixels(float *values, basin_picture_feed *feed, int64_t k, int64_t epoch,
                                const basin_picture *picture, basin_scratch *scratch,
                                basin_error *error) {
    const basin_picture_feed_config *c = &feed->config;
    basin_drawn drawn;
    basin_augment_draw(&drawn, &c->augment, picture->height, picture->width, c->seed, epoch,
                       feed->item[k]);
    return basin_augment_run(values, &c->augment, &drawn, picture, scratch, error);
}

/* Item k of this epoch into `values`. */
static basin_status fill(float *values, basin_picture_feed *feed, int64_t k, int64_t epoch,
                         basin_scratch *scratch, basin_error *error) {
    const basin_picture_feed_config *c = &feed->config;
    basin_fetched fetched;
    if (feed->kept && atomic_load(&feed->held[k]) == 2)
        return fill_pixels(values, feed, k, epoch, &feed->kept[k], scratch, error);
    basin_status status =
        basin_pictures_fetch(&fetched, &scratch->picture, c->pictures, feed->item[k], error);
    bool all = feed->kept && atomic_load(&feed->held[k]) == 0;
    if (!status && fetched.bytes)
        status = fill_encoded(values, feed, k, epoch, &fetched, all, scratch, error);
    /* Damage beyond the crop does no harm, whether pictures are kept or not. */
    if (status == BASIN_BAD_FILE && all && fetched.bytes)
        status = fill_encoded(values, feed, k, epoch, &fetched, false, scratch, error);
    basin_map_close(&fetched.map);
    if (status || fetched.bytes) return status;
    return fill_pixels(values, feed, k, epoch, &scratch->picture, scratch, error);
}

/* Records that an item cannot be read, with the reason, for the reader to report. */
static void note_bad(basin_picture_feed *feed, int64_t k, const basin_error *error) {
    if (atomic_exchange(&feed->noted[k], 1)) return;
    report *r = malloc(sizeof *r);
    pthread_mutex_lock(&feed->lock);
    feed->bad++;
    if (r) {
        r->item = k;
        memcpy(r->why, error->text, sizeof r->why);
        r->next = feed->reports;
        feed->reports = r;
    }
    pthread_mutex_unlock(&feed->lock);
}

/* Fills one place of an epoch. In training the next picture replaces a bad one (*index -1: none
 * left); bad ones are tried again, so that resumed runs see the same. */
static basin_status fill_place(float *values, int64_t *index, basin_picture_feed *feed,
                               int64_t epoch, int64_t place, basin_scratch *scratch,
                               basin_error *error) {
    const basin_picture_feed_config *c = &feed->config;
    int64_t tries = c->training ? feed->items : 1;
    *index = -1;
    for (int64_t i = 0; i < tries; i++) {
        int64_t k = (place + i) % feed->items;
        if (c->training) k = basin_order_at(k, feed->items, c->seed, epoch);
        basin_status status = fill(values, feed, k, epoch, scratch, error);
        if (!status) {
            *index = feed->item[k];
            return BASIN_OK;
        }
        if (status == BASIN_NO_MEMORY) return status;
        note_bad(feed, k, error);
    }
    if (!c->training) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "none of %lld pictures can be read",
                      (long long)feed->items);
}

/* ---- workers ---- */

/* How many places a step has; the last batch of an evaluation is smaller. */
static int64_t places(const basin_picture_feed *feed, int64_t step) {
    if (feed->config.training) return feed->width;
    int64_t left = feed->items - step * feed->config.batch;
    return basin_int_max(0, basin_int_min(left, feed->config.batch));
}

/* Takes the next run of places within one step; false where there is none now. */
static bool take(int64_t *step, int64_t *from, int64_t *count, basin_picture_feed *feed) {
    *step = feed->issued / feed->width;
    *from = feed->issued % feed->width;
    if (feed->pause || feed->failure.status || *step >= feed->consumed + feed->ring) return false;
    *count = places(feed, *step) - *from;
    if (*count <= 0) return false;
    if (*count > RUN) *count = RUN;
    feed->issued += *count;
    return true;
}

static void work(basin_picture_feed *feed, basin_scratch *scratch, int64_t step, int64_t from,
                 int64_t count) {
    slot *s = &feed->slot[step % feed->ring];
    int64_t epoch = feed->config.training ? step / feed->steps : 0;
    int64_t place = step % feed->steps * feed->config.batch + feed->config.first;
    basin_error error = {0};
    basin_status status = BASIN_OK;
    for (int64_t i = from; i < from + count && !status; i++)
        status = fill_place(s->values + i * feed->values, &s->index[i], feed, epoch, place + i,
                            scratch, &error);
    pthread_mutex_lock(&feed->lock);
    if (status && !feed->failure.status) feed->failure = error;
    s->done += count;
    feed->busy--;
    if (s->done == places(feed, step) || status || feed->busy == 0)
        pthread_cond_broadcast(&feed->ready);
}

static void *worker(void *context) {
    basin_picture_feed *feed = context;
    basin_scratch scratch = {0};
    int64_t step, from, count;
    pthread_mutex_lock(&feed->lock);
    while (!feed->stop) {
        if (!take(&step, &from, &count, feed)) {
            pthread_cond_wait(&feed->work, &feed->lock);
            continue;
        }
        feed->busy++;
        pthread_mutex_unlock(&feed->lock);
        work(feed, &scratch, step, from, count); /* returns with the lock */
    }
    pthread_mutex_unlock(&feed->lock);
    basin_scratch_free(&scratch);
    return NULL;
}

/* ---- the reader ---- */

/* Pictures that gave no values are closed up, so that a batch is dense. */
static int64_t close_up(slot *s, int64_t count, int64_t values) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (s->index[i] < 0) continue;
        if (kept < i) {
            s->index[kept] = s->index[i];
            memcpy(s->values + kept * values, s->values + i * values,
                   (size_t)values * sizeof *s->values);
        }
        kept++;
    }
    return kept;
}

/* Calls back for what was found; without the lock, in the order of the items. */
static void report_unreadable(basin_picture_feed *feed) {
    pthread_mutex_lock(&feed->lock);
    report *list = feed->reports;
    feed->reports = NULL;
    pthread_mutex_unlock(&feed->lock);
    while (list) {
        report **min = &list;
        for (report **at = &list; *at; at = &(*at)->next)
            if ((*at)->item < (*min)->item) min = at;
        report *r = *min;
        *min = r->next;
        char name[BASIN_MAX_PICTURE_NAME];
        basin_pictures_name(name, feed->config.pictures, feed->item[r->item]);
        if (feed->config.unreadable) feed->config.unreadable(feed->config.context, name, r->why);
        free(r);
    }
}

/* Waits for a step's places and hands the slot over; a failure of another step waits its turn. */
static basin_status await(basin_picture_feed *feed, int64_t step, basin_error *error) {
    slot *s = &feed->slot[step % feed->ring];
    basin_status status = BASIN_OK;
    double start = basin_clock();
    pthread_mutex_lock(&feed->lock);
    if (feed->consumed < step) { /* the batch before is free now */
        feed->slot[(step - 1) % feed->ring].done = 0;
        feed->consumed = step;
        pthread_cond_broadcast(&feed->work);
    }
    while (s->done < places(feed, step) && !feed->failure.status)
        pthread_cond_wait(&feed->ready, &feed->lock);
    if (feed->failure.status) {
        status = feed->failure.status;
        if (error) *error = feed->failure;
    }
    feed->waited += basin_clock() - start;
    pthread_mutex_unlock(&feed->lock);
    return status;
}

basin_status basin_picture_feed_next(basin_picture_feed_batch *batch, basin_picture_feed *feed,
                                     basin_error *error) {
    int64_t count, kept = 0, step;
    BASIN_TRY(BASIN_SIZE_CHECK(batch, "basin_picture_feed_batch", error));
    *batch = (basin_picture_feed_batch){.size = batch->size};
    do { /* a batch of which nothing could be read is passed over */
        step = feed->next;
        count = places(feed, step);
        if (count == 0) break;
        basin_status status = await(feed, step, error);
        report_unreadable(feed);
        if (status) return status;
        feed->next++;
        kept = close_up(&feed->slot[step % feed->ring], count, feed->values);
    } while (kept == 0);
    if (count == 0 && basin_picture_feed_count(feed).unreadable == feed->items)
        return basin_fail(error, BASIN_BAD_FILE, "none of %lld pictures can be read",
                          (long long)feed->items);
    const slot *s = &feed->slot[step % feed->ring];
    *batch = (basin_picture_feed_batch){.size = batch->size,
                                        .values = s->values,
                                        .index = s->index,
                                        .count = kept,
                                        .step = step,
                                        .epoch = feed->config.training ? step / feed->steps : 0};
    return BASIN_OK;
}

void basin_picture_feed_seek(basin_picture_feed *feed, int64_t step) {
    pthread_mutex_lock(&feed->lock);
    feed->pause = true;
    while (feed->busy > 0) pthread_cond_wait(&feed->ready, &feed->lock);
    for (int i = 0; i < feed->ring; i++) feed->slot[i].done = 0;
    feed->issued = step * feed->width;
    feed->consumed = feed->next = step;
    feed->pause = false;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
}

basin_picture_feed_counts basin_picture_feed_count(const basin_picture_feed *feed) {
    basin_picture_feed *f = (basin_picture_feed *)feed;
    pthread_mutex_lock(&f->lock);
    basin_picture_feed_counts counts = {f->bad, atomic_load(&f->kept_bytes), f->waited};
    pthread_mutex_unlock(&f->lock);
    return counts;
}

/* ---- making and freeing ---- */

static basin_status check(const basin_picture_feed_config *c, int64_t items, basin_error *error) {
    int64_t count = basin_pictures_count(c->pictures);
    BASIN_TRY(basin_augment_check(&c->augment, error));
    if (c->batch < 1 || items < 1 || (c->training && c->batch > items))
        return basin_fail(error, BASIN_BAD_VALUE, "batches of %lld from %lld pictures",
                          (long long)c->batch, (long long)items);
    if (c->first < 0 || c->count < 0 || c->first + c->count > c->batch ||
        (c->count && !c->training) || (c->first && !c->count))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "places %lld to %lld of batches of %lld; expected places within a batch, in training",
            (long long)c->first, (long long)(c->first + c->count - 1), (long long)c->batch);
    for (int64_t i = 0; c->item && i < items; i++)
        if (c->item[i] < 0 || c->item[i] >= count)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "item %lld is picture %lld; expected 0 to %lld", (long long)i,
                              (long long)c->item[i], (long long)count - 1);
    return BASIN_OK;
}

static basin_status allocate(basin_picture_feed *feed, basin_error *error) {
    static const char what[] = "batches of pictures";
    const basin_picture_feed_config *c = &feed->config;
    size_t values;
    if (!basin_size_multiply(&values, (size_t)feed->width, (size_t)feed->values))
        return basin_fail_memory(error, what);
    BASIN_TRY(BASIN_NEW_RAW(&feed->item, feed->items, what, error));
    BASIN_TRY(BASIN_NEW(&feed->noted, feed->items, what, error));
    BASIN_TRY(BASIN_NEW(&feed->slot, feed->ring, what, error));
    if (c->keep_bytes > 0 && !basin_pictures_is_raw(c->pictures, c->item ? c->item[0] : 0)) {
        BASIN_TRY(BASIN_NEW(&feed->kept, feed->items, what, error));
        BASIN_TRY(BASIN_NEW(&feed->held, feed->items, what, error));
    }
    for (int i = 0; i < feed->ring; i++) {
        BASIN_TRY(BASIN_NEW_RAW(&feed->slot[i].values, values, what, error));
        BASIN_TRY(BASIN_NEW_RAW(&feed->slot[i].index, feed->width, what, error));
    }
    for (int64_t i = 0; i < feed->items; i++) feed->item[i] = c->item ? c->item[i] : i;
    return BASIN_OK;
}

static basin_status start(basin_picture_feed *feed, basin_error *error) {
    int64_t threads =
        feed->config.threads > 0 ? feed->config.threads : sysconf(_SC_NPROCESSORS_ONLN);
    threads = basin_int_max(1, basin_int_min(threads, MAX_THREADS));
    while (feed->workers < threads &&
           pthread_create(&feed->worker[feed->workers], NULL, worker, feed) == 0)
        feed->workers++;
    if (feed->workers > 0) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "no thread could be started to read pictures");
}

basin_status basin_picture_feed_new(basin_picture_feed **out,
                                    const basin_picture_feed_config *config, basin_error *error) {
    int64_t items = config->item ? config->items : basin_pictures_count(config->pictures);
    basin_picture_feed *feed = NULL;
    *out = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(config, "basin_picture_feed_config", error));
    BASIN_TRY(check(config, items, error));
    BASIN_TRY(BASIN_NEW(&feed, 1, "a feed of pictures", error));
    feed->config = *config;
    feed->items = items;
    feed->values = basin_augment_values(&config->augment);
    feed->width = config->count ? config->count : config->batch;
    feed->steps =
        config->training ? items / config->batch : (items + config->batch - 1) / config->batch;
    feed->ring = (int)basin_int_min(MAX_AHEAD, basin_int_max(config->ahead, 2));
    if (config->ahead <= 0) feed->ring = AHEAD;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->work, NULL);
    pthread_cond_init(&feed->ready, NULL);
    BASIN_TRY_OR(allocate(feed, error), basin_picture_feed_free(feed));
    BASIN_TRY_OR(start(feed, error), basin_picture_feed_free(feed));
    feed->config.item = NULL;
    *out = feed;
    return BASIN_OK;
}

void basin_picture_feed_free(basin_picture_feed *feed) {
    if (!feed) return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    for (int i = 0; i < feed->workers; i++) pthread_join(feed->worker[i], NULL);
    for (report *r = feed->reports, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    for (int i = 0; feed->slot && i < feed->ring; i++) {
        BASIN_FREE(feed->slot[i].values, feed->slot[i].index);
    }
    for (int64_t i = 0; feed->kept && i < feed->items; i++) basin_picture_free(&feed->kept[i]);
    pthread_cond_destroy(&feed->work);
    pthread_cond_destroy(&feed->ready);
    pthread_mutex_destroy(&feed->lock);
    BASIN_FREE(feed->item, feed->noted, feed->held, feed->kept, feed->slot, feed);
}

/* ---- A Feistel network over Philox, a bijection of 2^(2h) numbers; a number beyond n is sent
 * through again until it falls inside: a bijection of 0 .. n - 1 ---- */

enum { ROUNDS = 8 };

static uint64_t shuffle(uint64_t value, unsigned half, uint64_t seed, uint64_t epoch) {
    uint32_t mask = half == 32 ? 0xffffffffU : ((uint32_t)1 << half) - 1;
    uint32_t left = (uint32_t)(value >> half) & mask, right = (uint32_t)value & mask;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        /* the high bit keeps these draws apart from those of other streams */
        uint64_t call = (uint64_t)round << 32 | right;
        uint32_t word = basin_random_word_at(seed, epoch | UINT64_C(0xc000000000000000), 4 * call);
        uint32_t next = left ^ (word & mask);
        left = right;
        right = next;
    }
    return (uint64_t)left << half | right;
}

int64_t basin_order_at(int64_t place, int64_t n, uint64_t seed, int64_t epoch) {
    unsigned half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < (uint64_t)n) half++;
    uint64_t value = (uint64_t)place;
    do value = shuffle(value, half, seed, (uint64_t)epoch);
    while (value >= (uint64_t)n);
    return (int64_t)value;
}
