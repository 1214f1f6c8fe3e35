/* basin image complete: occludes parts of pictures and lets a model complete them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "basin/tasks/image.h"
#include "cli/command.h"
#include "view/strip.h"

typedef struct options {
    const char *folder, *mask, *fit, *backend, *products, *dtype;
    double ratio;
    int64_t limit, threads, seed;
    bool frames, quiet;
} options;

static const options defaults = {
    .folder = ".",
    .mask = "random",
    .fit = "tile",
    .backend = "cpu",
    .products = "f32",
    .ratio = 0.5,
    .limit = 8,
};

static const basin_option table[] = {
    BASIN_TEXT(options, folder, 'o', "output", "FOLDER", "Where the pictures are written."),
    BASIN_TEXT(options, mask, 0, "mask", "random|FILE|X,Y,W,H",
               "What is occluded: patches drawn at random; what is not black in a PNG of the "
               "picture's size; or a rectangle of pixels."),
    BASIN_REAL(options, ratio, "ratio", "SHARE", 0, 1, "Share of the patches that are drawn."),
    BASIN_CHOICE(options, fit, "fit", "tile|resize",
                 "Cut the picture into tiles of the model's size, or resize all of it to that "
                 "size; the result has the picture's own size either way."),
    BASIN_FLAG(options, frames, 0, "frames",
               "Write every step of the descent, as PNG frames and as an animated PNG."),
    BASIN_INTEGER(options, limit, "limit", "N", 1, 1e9, "At most so many pictures."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    basin_image_model *model;
    basin_pictures *pictures;
    basin_image_completing how;
    basin_picture mask;
} job;

/* "left,top,width,height" */
static bool read_rectangle(int64_t rectangle[4], const char *text) {
    for (int i = 0; i < 4; i++) {
        char *end;
        errno = 0;
        rectangle[i] = strtoll(text, &end, 10);
        if (errno || end == text || *end != (i < 3 ? ',' : 0)) return false;
        text = end + 1;
    }
    return rectangle[0] >= 0 && rectangle[1] >= 0 && rectangle[2] > 0 && rectangle[3] > 0;
}

static basin_status read_mask(job *j, basin_error *error) {
    const char *text = j->o->mask;
    if (!strcmp(text, "random") || read_rectangle(j->how.rectangle, text)) return BASIN_OK;
    memset(j->how.rectangle, 0, sizeof j->how.rectangle);
    if (text[strspn(text, "-0123456789,. ")] == 0)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "--mask %s: wanted four whole numbers X,Y,W,H from the upper left corner, "
            "W and H above 0, a PNG file, or random",
            text);
    basin_status status = basin_picture_read(&j->mask, text, error);
    if (!status) status = basin_picture_set_channels(&j->mask, 1, error);
    j->how.mask = &j->mask;
    return status;
}

/* FOLDER/NAME.what, NAME being the picture's own without folders and endings: "cat" of
 * "photos/cat.jpg", "t10k-images-17" of "t10k-images.gz[17]". */
static void target(char *path, size_t size, const job *j, int64_t i, const char *what) {
    char text[BASIN_PICTURE_NAME];
    const char *full = basin_pictures_name(text, j->pictures, i), *slash = strrchr(full, '/');
    const char *name = slash ? slash + 1 : full, *number = strrchr(name, '[');
    size_t length = number ? (size_t)(number - name) : strlen(name);
    for (size_t k = length; k > 1; k--)
        if (name[k - 1] == '.') length = k - 1;
    snprintf(path, size, "%s/%.*s%s%.*s.%s", j->o->folder, (int)length, name, number ? "-" : "",
             number ? (int)strcspn(number + 1, "]") : 0, number ? number + 1 : "", what);
}

static basin_status write_frames(const job *j, int64_t i, const basin_image_completion *done,
                                 basin_error *error) {
    char path[2000], what[40];
    basin_status status = BASIN_OK;
    for (int t = 0; t < done->frames && !status; t++) {
        snprintf(what, sizeof what, "step%02d.png", t);
        target(path, sizeof path, j, i, what);
        status = basin_picture_write_png(path, &done->frame[t], error);
    }
    target(path, sizeof path, j, i, "descent.png");
    if (!status)
        status = basin_picture_write_apng(path, done->frame, done->frames, 120, 1500, error);
    if (!status) printf("%s\n", path);
    return status;
}

static basin_status write_results(const job *j, int64_t i, const basin_image_completion *done,
                                  basin_error *error) {
    char path[2000];
    basin_picture strip = {0};
    const basin_picture *row[] = {&done->masked, &done->completed, &done->original};
    int64_t zoom = basin_strip_zoom(done->original.height, done->original.width);
    target(path, sizeof path, j, i, "completed.png");
    basin_status status = basin_picture_write_png(path, &done->completed, error);
    if (!status) printf("%s\n", path);
    if (!status) status = basin_strip_draw(&strip, row, 3, 8, zoom, error);
    target(path, sizeof path, j, i, "strip.png");
    if (!status) status = basin_picture_write_png(path, &strip, error);
    if (!status) printf("%s\n", path);
    if (!status && done->frames) status = write_frames(j, i, done, error);
    basin_picture_free(&strip);
    return status;
}

static basin_status complete_all(job *j, basin_error *error) {
    int64_t count = basin_pictures_count(j->pictures);
    if (count > j->o->limit) count = j->o->limit;
    basin_picture picture = {0};
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < count && !status; i++) {
        basin_image_completion done;
        j->how.stream = (uint64_t)i;
        status = basin_pictures_load(&picture, j->pictures, i, error);
        if (!status) status = basin_image_complete(&done, j->model, &picture, 1, &j->how, error);
        if (status) break;
        status = write_results(j, i, &done, error);
        basin_image_completion_free(&done);
    }
    basin_picture_free(&picture);
    return status;
}

static basin_status make_folder(const char *path, basin_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_backend *backend;
    job j = {.o = o,
             .how = {.size = sizeof j.how,
                     .ratio = o->ratio,
                     .seed = (uint64_t)o->seed,
                     .resize = !strcmp(o->fit, "resize"),
                     .frames = o->frames}};
    if (basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, &error))
        return basin_report(&error);
    basin_status status = basin_image_open(&j.model, operand[0], backend, &error);
    if (!status)
        status = basin_pictures_open(&j.pictures, (const char *const *)operand + 1, operands - 1,
                                     "test", &error);
    if (!status) status = read_mask(&j, &error);
    if (!status) status = make_folder(o->folder, &error);
    if (!status) status = complete_all(&j, &error);
    basin_picture_free(&j.mask);
    basin_pictures_free(j.pictures);
    basin_image_close(j.model);
    basin_backend_close(backend);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_image_complete = {
    .name = "image complete",
    .summary = "Let a model complete occluded pictures",
    .operands = "MODEL PICTURES...",
    .operands_least = 2,
    .operands_most = 1000,
    .text = "For each picture, writes NAME.completed.png, at the picture's own size, and "
            "NAME.strip.png: masked, completed, original. The paths written are printed. PICTURES "
            "are what basin image train takes; of a set with a test half, that half.",
    .example =
        "  basin image complete fashion.safetensors /usr/share/datasets/fashion-mnist -o out\n"
        "  basin image complete model.safetensors cat.jpg --mask 40,60,80,80 --frames\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
