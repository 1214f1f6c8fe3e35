/* A user's program that trains a model of pictures and uses it, in C and in C++17: what is promised
 * of the tasks. */
#include <stdio.h>
#include <string.h>

#include <basin/tasks/tasks.h>

static basin_error error;

static basin_settings *small_settings(void) {
    static const char *const value[][2] = {{"size", "8"},  {"patch", "4"},    {"dim", "8"},
                                           {"heads", "1"}, {"head_dim", "8"}, {"memories", "8"},
                                           {"steps", "2"}, {"occlude", "2"},  {"keep", "0"},
                                           {"batch", "8"}, {"epochs", "2"}};
    basin_settings *settings;
    if (basin_settings_new(&settings, "image", NULL, &error)) return NULL;
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        if (basin_settings_set(settings, value[i][0], value[i][1], &error)) return NULL;
    return settings;
}

static basin_status train(basin_image_model **model, const basin_pictures *pictures,
                          basin_backend *backend, const basin_settings *settings) {
    basin_image_source source;
    basin_image_data data;
    basin_training_options training;
    basin_training_result outcome;
    memset(&source, 0, sizeof source);
    memset(&data, 0, sizeof data);
    memset(&training, 0, sizeof training);
    memset(&outcome, 0, sizeof outcome);
    outcome.size = sizeof outcome;
    source.pictures = pictures;
    data.train = &source;
    training.backend = backend;
    return basin_image_train(model, &outcome, NULL, settings, &data, &training, &error);
}

static basin_status use(basin_image_model *model, const basin_pictures *pictures) {
    basin_image_complete_options how;
    basin_image_complete_result done = {0};
    basin_picture picture;
    memset(&how, 0, sizeof how);
    memset(&picture, 0, sizeof picture);
    how.rectangle[2] = how.rectangle[3] = 4;
    basin_status status = basin_pictures_load(&picture, pictures, 0, &error);
    if (!status) status = basin_image_complete(&done, model, &picture, 1, &how, &error);
    if (!status) {
        printf("%d pixels completed\n", (int)done.missing);
        basin_image_complete_result_free(&done);
    }
    basin_picture_free(&picture);
    return status;
}

int main(void) {
    basin_compute compute;
    const char *path = "shapes:16:1:8x8x1";
    basin_pictures *pictures;
    basin_backend *backend;
    basin_image_model *model = NULL;
    basin_settings *settings = small_settings();
    memset(&compute, 0, sizeof compute);
    compute.threads = 1;
    if (!settings || basin_backend_open(&backend, &compute, &error) ||
        basin_pictures_open(&pictures, &path, 1, BASIN_PICTURES_ALL, &error) ||
        train(&model, pictures, backend, settings) || use(model, pictures))
        return fprintf(stderr, "%s\n", error.text), 1;
    basin_image_close(model);
    basin_pictures_close(pictures);
    basin_backend_close(backend);
    basin_settings_free(settings);
    return 0;
}
