/* Settings that fit the pictures, or the model to begin with, where the caller has not said any:
 * see basin_image_fit in include/basin/tasks/image.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/image/set.h"

/* ---- looking at pictures ---- */

/* Grey pictures are often stored in three channels; compression leaves a trace of colour. */
static bool has_colour(const basin_picture *p) {
    enum { TRACE = 8 };
    int64_t area = p->height * p->width;
    for (int64_t i = 0; i < area && p->channels == 3; i++) {
        const uint8_t *c = p->pixel + 3 * i;
        if (abs(c[0] - c[1]) > TRACE || abs(c[1] - c[2]) > TRACE) return true;
    }
    return false;
}

static void see(basin_image_look *look, const basin_picture *p) {
    int64_t side = p->height < p->width ? p->height : p->width;
    look->colour = look->colour || has_colour(p);
    if (!look->side || side < look->side) look->side = side;
}

basin_status basin_image_set_look(basin_image_look *look, const basin_image_set *set,
                                  basin_error *error) {
    enum { MOST = 16 };
    basin_picture picture = {0};
    basin_status status = BASIN_OK;
    int64_t most = set->items < MOST ? set->items : MOST;
    *look = (basin_image_look){0};
    for (int64_t i = 0; i < most && status != BASIN_NO_MEMORY; i++) {
        int64_t at = i * (set->items / most);
        status = basin_pictures_load(&picture, set->pictures, set->item[at], error);
        if (!status) see(look, &picture);
    }
    basin_picture_free(&picture);
    if (look->side && status != BASIN_NO_MEMORY) return BASIN_OK;
    return status ? status : basin_fail(error, BASIN_BAD_VALUE, "no pictures to look at");
}

/* ---- choosing ---- */

/* Small pictures keep their size, cut to whole patches; of larger ones parts are trained on. */
static basin_status from_pictures(basin_image_settings *s, const char **preset,
                                  const basin_image_set *set, basin_error *error) {
    enum { SMALL = 48, LEAST = 8 };
    basin_image_look look;
    basin_status status = basin_image_set_look(&look, set, error);
    if (status) return status;
    *preset = look.side > SMALL ? "photos" : look.colour ? "cifar10" : "fashion";
    status = basin_settings_preset(s, &basin_image_task, *preset, error);
    if (status) return status;
    int64_t size = look.side < s->size || look.side <= SMALL ? look.side : s->size;
    size -= size % s->patch;
    s->size = size < LEAST ? LEAST : size;
    s->channels = look.colour ? 3 : 1;
    return BASIN_OK;
}

static basin_status from_model(basin_image_settings *s, const char *path, basin_error *error) {
    basin_bundle *bundle;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (!status) status = basin_image_settings_read(s, bundle, error);
    basin_bundle_free(bundle);
    return status;
}

/* Settings under those that were given; a batch that is larger than the set is halved until it
 * fits. */
static basin_status fit(basin_settings *settings, const char **preset, const basin_image_set *set,
                        const char *from, basin_error *error) {
    basin_image_settings s;
    basin_status status =
        from ? from_model(&s, from, error) : from_pictures(&s, preset, set, error);
    if (status) return status;
    while (s.batch > set->items && s.batch > 1) s.batch /= 2;
    s.shards = 0; /* of that run's ranks */
    basin_settings_underlay(settings, &s);
    return BASIN_OK;
}

basin_status basin_image_fit(basin_settings *settings, char *told, size_t size,
                             const basin_image_source *source, const char *from,
                             basin_error *error) {
    const basin_image_settings *s = settings->values;
    const char *preset = NULL;
    basin_image_set set;
    if (size) *told = 0;
    if (settings->kind != &basin_image_task)
        return basin_fail(error, BASIN_BAD_VALUE, "the settings are of the task '%s', wanted image",
                          settings->kind->task);
    basin_status status = basin_image_set_open(&set, source, false, (uint64_t)s->seed, error);
    if (status) return status;
    status = fit(settings, &preset, &set, from, error);
    basin_image_set_close(&set);
    if (status) return status;
    snprintf(told, size, "%s %s, %lld channel%s, %lld pixels, batch %lld: from the %s",
             from ? "settings of" : "preset", from ? from : preset, (long long)s->channels,
             s->channels == 1 ? "" : "s", (long long)s->size, (long long)s->batch,
             from ? "model" : "pictures");
    return BASIN_OK;
}
