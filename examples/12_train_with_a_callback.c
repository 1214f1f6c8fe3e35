/* Training with a callback: it is called after every step with the progress, and stops the run when
 * the loss has fallen far enough. The model stays in memory. */
#include <basin/tasks/image.h>

#include "cloth.h"

typedef struct watcher {
    double first, loss; /* mean loss of the first epoch, and of this one so far */
} watcher;

static void show(void *context, const basin_progress_report *news) {
    watcher *w = context;
    w->loss = news->loss;
    if (news->epoch == 1) w->first = news->loss;
}

static bool stop(void *context) {
    const watcher *w = context;
    return w->loss < w->first / 4;
}

int main(void) {
    basin_backend *backend;
    must(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error));
    basin_settings *settings = small_settings("100");
    basin_pictures *pictures = weave_many(192);
    basin_image_source source = {.pictures = pictures, .hold_out = 32};
    basin_image_data data = {.train = &source};
    watcher w = {0};
    basin_watch watch = {.show = show, .context = &w, .stop = stop};
    basin_training_options training = {.backend = backend, .watch = &watch};

    basin_image_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    must(basin_image_train(&model, &outcome, NULL, settings, &data, &training, &error));
    printf("%s, %s\n", outcome.stopped ? "stopped by the callback" : "ran to its end",
           outcome.epochs < 50 ? "in less than half of the epochs" : "late");

    /* What was learnt until then is in the model. */
    basin_image_evaluate_result scores = {0};
    basin_image_evaluate_options scoring = {.source = &source, .masks = 2};
    must(basin_image_evaluate(&scores, model, &scoring, &error));
    printf("%d pictures that it never saw: the error is %s half of the first epoch's\n",
           (int)scores.pictures, scores.mse < w.first / 2 ? "below" : "above");

    basin_image_evaluate_result_free(&scores);
    basin_image_close(model);
    basin_pictures_close(pictures);
    basin_settings_free(settings);
    basin_backend_close(backend);
    return 0;
}
