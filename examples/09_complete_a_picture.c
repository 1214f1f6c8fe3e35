/* Completing a picture: a model is trained for a second and saved; then its file is opened and
 * fills a hole in a picture that it never saw. */
#include <basin/tasks/image.h>

#include "cloth.h"

static const char path[] = "example_cloth.safetensors";

static void train(basin_backend *backend) {
    basin_settings *settings = small_settings("15");
    basin_pictures *pictures = weave_many(192);
    basin_image_source source = {.pictures = pictures};
    basin_image_data data = {.train = &source};
    basin_training_options training = {.backend = backend, .output = path};
    basin_training_result outcome = {.size = sizeof outcome};
    must(basin_image_train(NULL, &outcome, NULL, settings, &data, &training, &error));
    printf("trained for %d epochs, %d parameters\n", (int)outcome.epochs, (int)outcome.parameters);
    basin_pictures_close(pictures);
    basin_settings_free(settings);
}

/* Mean difference of the two in the hole, of 255. */
static double difference(const basin_picture *a, const basin_picture *b, const int64_t hole[4]) {
    double sum = 0;
    for (int64_t y = hole[1]; y < hole[1] + hole[3]; y++)
        for (int64_t x = hole[0]; x < hole[0] + hole[2]; x++)
            sum += fabs((double)a->pixel[y * SIDE + x] - b->pixel[y * SIDE + x]);
    return sum / (double)(hole[2] * hole[3]);
}

int main(void) {
    basin_backend *backend;
    basin_picture picture = {0};
    must(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error));
    train(backend);
    weave(&picture, 1003);

    basin_image_model *model;
    basin_image_complete_result done = {0};
    basin_image_complete_options how = {.rectangle = {5, 4, 6, 5}};
    must(basin_image_open(&model, path, backend, &error));
    must(basin_image_complete(&done, model, &picture, 1, &how, &error));
    printf("%d of %d pixels are missing\n", (int)done.missing,
           (int)(picture.height * picture.width));
    double grey = difference(&done.masked, &picture, how.rectangle);
    double filled = difference(&done.completed, &picture, how.rectangle);
    printf("the completed hole is %s than grey\n",
           filled < grey / 5 ? "more than five times nearer to the truth" : "hardly better");

    basin_image_complete_result_free(&done);
    basin_image_close(model);
    basin_picture_free(&picture);
    basin_backend_close(backend);
    return remove(path);
}
