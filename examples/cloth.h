/* Pictures for examples 09 and 12: cloth of one weave, brighter or darker each time. */
#ifndef CLOTH_H
#define CLOTH_H

#include <math.h>

#include <basin/tasks/image.h>

#include "must.h"

enum { SIDE = 16 };

static void weave(basin_picture *picture, int number) {
    float value[SIDE * SIDE], bright = 0.2F + 0.6F * fmodf(0.618F * (float)number, 1);
    for (int i = 0; i < SIDE * SIDE; i++)
        value[i] = bright + 0.15F * sinf(0.8F * (float)(i % SIDE)) * sinf(0.8F * (float)(i / SIDE));
    must(basin_picture_from_floats(picture, value, SIDE, SIDE, 1, &error));
}

/* A collection of so many, in memory. */
static basin_pictures *weave_many(int count) {
    basin_pictures *pictures;
    basin_picture *picture = calloc((size_t)count, sizeof *picture);
    if (!picture) exit(1);
    for (int i = 0; i < count; i++) weave(&picture[i], i);
    must(basin_pictures_from_memory(&pictures, picture, count, &error));
    for (int i = 0; i < count; i++) basin_picture_free(&picture[i]);
    free(picture);
    return pictures;
}

/* Settings of a model that trains in a second. */
static basin_settings *small_settings(const char *epochs) {
    static const char *const set[][2] = {{"size", "16"},     {"dim", "32"},      {"heads", "2"},
                                         {"head_dim", "16"}, {"memories", "64"}, {"steps", "4"},
                                         {"occlude", "6"},   {"keep", "1"},      {"batch", "32"},
                                         {"warmup", "1"},    {"rate", "0.01"}};
    basin_settings *settings;
    must(basin_settings_new(&settings, "image", "default", &error));
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        must(basin_settings_set(settings, set[i][0], set[i][1], &error));
    must(basin_settings_set(settings, "epochs", epochs, &error));
    return settings;
}

#endif
