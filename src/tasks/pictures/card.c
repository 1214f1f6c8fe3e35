/* What a model remembers of its training; see image.h. */
#include "base/bundle.h"
#include "tasks/pictures/image.h"

#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sort.h"

static const char tensor_name[] = "trained_on", card_name[] = "basin.card";

/* ---- fingerprints ---- */

/* Prints of at most BASIN_IMAGE_PRINTS pictures, evenly spread; unreadable ones are left out. */
static basin_status find_prints(int64_t **print, int64_t *prints, const basin_image_set *set,
                                basin_error *error) {
    int64_t max = set->items < BASIN_IMAGE_PRINTS ? set->items : BASIN_IMAGE_PRINTS;
    basin_status status = BASIN_OK;
    *prints = 0;
    if (!max) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(print, max, "a model's card", error));
    for (int64_t i = 0; i < max && status != BASIN_NO_MEMORY; i++) {
        int64_t at = i * (set->items / max) + i * (set->items % max) / max;
        uint64_t found;
        status = basin_pictures_print(&found, set->pictures, set->item[at], error);
        if (!status) (*print)[(*prints)++] = (int64_t)found;
    }
    return status == BASIN_NO_MEMORY ? status : BASIN_OK;
}

/* Ascending, each once, no more than a file keeps: the smallest are as good a choice as any. */
static void tidy(basin_image_card *card) {
    int64_t kept = 0;
    if (card->prints > 0)
        qsort(card->print, (size_t)card->prints, sizeof *card->print, basin_compare_int64);
    for (int64_t i = 0; i < card->prints; i++)
        if (!kept || card->print[i] != card->print[kept - 1]) card->print[kept++] = card->print[i];
    card->prints = kept < BASIN_IMAGE_PRINTS ? kept : BASIN_IMAGE_PRINTS;
}

/* A sum does not depend on the order. */
static uint64_t sum_of(const int64_t *print, int64_t prints) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < prints; i++) sum += (uint64_t)print[i];
    return sum;
}

static bool trained_on(const basin_image_card *card, int64_t print) {
    return bsearch(&print, card->print, (size_t)card->prints, sizeof print, basin_compare_int64) !=
           NULL;
}

/* Adds what the model that a run begins with was trained on. */
static basin_status inherit(basin_image_card *card, const basin_bundle *from, basin_error *error) {
    BASIN_AT_EXIT(basin_image_card_free) basin_image_card before = {0};
    if (from) BASIN_TRY(basin_image_card_read(&before, from, error));
    card->views = before.views;
    if (!before.prints) return BASIN_OK;
    tidy(card);
    size_t count = (size_t)(card->prints + before.prints);
    int64_t *both = realloc(card->print, count * sizeof *both);
    if (!both) return basin_fail_memory(error, "a model's card");
    card->print = both;
    int64_t fresh = 0; /* where a file keeps some of its prints, an estimate */
    for (int64_t i = 0; i < before.prints; i++) fresh += !trained_on(card, before.print[i]);
    card->pictures += llround((double)before.pictures * (double)fresh / (double)before.prints);
    memcpy(both + card->prints, before.print, (size_t)before.prints * sizeof *both);
    card->prints += before.prints;
    return BASIN_OK;
}

basin_status basin_image_card_begin(basin_image_card *card, const basin_image_set *train,
                                    const basin_image_set *held, const basin_bundle *from,
                                    basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *print = NULL;
    int64_t prints;
    basin_image_card_free(card);
    card->pictures = train->items;
    BASIN_TRY(find_prints(&card->print, &card->prints, train, error));
    card->run = sum_of(card->print, card->prints);
    BASIN_TRY(inherit(card, from, error));
    BASIN_TRY(find_prints(&print, &prints, held, error));
    card->held = sum_of(print, prints);
    tidy(card);
    return BASIN_OK;
}

void basin_image_card_free(basin_image_card *card) {
    BASIN_FREE(card->print, card->text);
    *card = (basin_image_card){0};
}

/* ---- comparing ---- */

basin_status basin_image_card_compare(basin_image_overlap *overlap, const basin_image_card *card,
                                      const basin_image_set *set, basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *print = NULL;
    int64_t prints = 0, hits = 0;
    *overlap = (basin_image_overlap){.trained_on = -1};
    if (!card->prints) return BASIN_OK;
    BASIN_TRY(find_prints(&print, &prints, set, error));
    if (!prints) return BASIN_OK;
    for (int64_t i = 0; i < prints; i++) hits += trained_on(card, print[i]);
    double share =
        fmin(1, (double)hits / (double)prints * (double)card->pictures / (double)card->prints);
    overlap->exact = card->pictures <= BASIN_IMAGE_PRINTS && set->items <= BASIN_IMAGE_PRINTS;
    overlap->trained_on = overlap->exact ? hits : llround(share * (double)set->items);
    overlap->held_out = card->held && card->held == sum_of(print, prints);
    return BASIN_OK;
}

/* ---- files ---- */

static void put_facts(basin_json *json, const basin_image_card *card,
                      const basin_image_facts *facts) {
    char held[32], day[BASIN_DAY_TEXT]; /* not the hour: files of equal runs are equal */
    const basin_training_result *o = facts->outcome;
    basin_json_text(json, "date", basin_day_print(day, time(NULL)));
    basin_json_array(json, "paths");
    for (int i = 0; i < facts->train->paths && !facts->train->pictures; i++)
        basin_json_text(json, NULL, facts->train->path[i]);
    basin_json_end(json);
    if (facts->from) basin_json_text(json, "from", facts->from);
    basin_json_integer(json, "pictures", card->pictures);
    basin_json_integer(json, "held_out", facts->held_out);
    snprintf(held, sizeof held, "%016llx", (unsigned long long)card->held);
    if (card->held) basin_json_text(json, "held_out_digest", held);
    basin_json_integer(json, "epochs", o->epochs);
    basin_json_integer(json, "views", card->views + o->steps * facts->batch);
    for (int i = 0; i < o->best.measures; i++)
        if (isfinite(o->best.measure[i].value))
            basin_json_number(json, o->best.measure[i].name, o->best.measure[i].value);
}

basin_status basin_image_card_end(basin_image_card *card, const basin_image_facts *facts,
                                  basin_error *error) {
    basin_memory_file memory;
    if (!basin_memory_file_open(&memory)) return basin_fail_memory(error, "a model's card");
    basin_json json = basin_json_begin_line(memory.file);
    put_facts(&json, card, facts);
    basin_json_end(&json);
    free(card->text);
    card->text = basin_memory_file_close(&memory);
    if (!card->text) return basin_fail_memory(error, "a model's card");
    card->text[strcspn(card->text, "\n")] = 0;
    return BASIN_OK;
}

/* The numbers that are asked for again. */
static basin_status parse(basin_image_card *card, const char *path, basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *object;
    BASIN_TRY(basin_json_parse(&object, card->text, strlen(card->text), path, "the card", error));
    const cJSON *pictures = cJSON_GetObjectItemCaseSensitive(object, "pictures");
    const cJSON *views = cJSON_GetObjectItemCaseSensitive(object, "views");
    const cJSON *held = cJSON_GetObjectItemCaseSensitive(object, "held_out_digest");
    if (cJSON_IsNumber(views) && views->valuedouble >= 0 && views->valuedouble < 1e15)
        card->views = (int64_t)views->valuedouble;
    if (cJSON_IsNumber(pictures) && pictures->valuedouble >= 1 && pictures->valuedouble < 1e15)
        card->pictures = (int64_t)pictures->valuedouble;
    if (cJSON_IsString(held)) card->held = strtoull(held->valuestring, NULL, 16);
    return BASIN_OK;
}

static basin_status read_prints(basin_image_card *card, const basin_bundle *bundle,
                                basin_error *error) {
    const basin_tensor *tensor;
    if (!basin_bundle_find(bundle, tensor_name)) return BASIN_OK;
    BASIN_TRY(basin_bundle_expect(&tensor, bundle, tensor_name, BASIN_I64, BASIN_SHAPE(-1), error));
    card->prints = tensor->shape.dim[0];
    BASIN_TRY(BASIN_NEW_RAW(&card->print, card->prints, "a model's card", error));
    memcpy(card->print, tensor->data, (size_t)card->prints * sizeof *card->print);
    tidy(card);
    if (card->pictures < card->prints) card->pictures = card->prints;
    return BASIN_OK;
}

basin_status basin_image_card_read(basin_image_card *card, const basin_bundle *bundle,
                                   basin_error *error) {
    const char *text = basin_bundle_meta(bundle, card_name);
    *card = (basin_image_card){0};
    if (!text) return BASIN_OK;
    card->text = basin_string_copy(text);
    if (!card->text) return basin_fail_memory(error, "a model's card");
    BASIN_TRY_OR(parse(card, basin_bundle_path(bundle), error), basin_image_card_free(card));
    BASIN_TRY_OR(read_prints(card, bundle, error), basin_image_card_free(card));
    return BASIN_OK;
}

basin_status basin_image_card_add(basin_bundle *bundle, const basin_image_card *card,
                                  basin_error *error) {
    if (!card->text) return BASIN_OK;
    BASIN_TRY(basin_bundle_meta_set(bundle, card_name, card->text, error));
    if (!card->prints) return BASIN_OK;
    return basin_bundle_put(bundle, tensor_name, card->print, BASIN_I64, BASIN_SHAPE(card->prints),
                            error);
}
