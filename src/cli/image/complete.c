/* basin image complete: occludes parts of pictures and lets a model complete them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/image.h"
#include "cli/command.h"
#include "cli/folder.h"
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

enum { NAME = 400, PATH = 2000 };

typedef struct job {
    const options *o;
    basin_image_model *model;
    basin_pictures *pictures;
    basin_image_completing how;
    basin_picture mask;
    char (*name)[NAME]; /* [pictures] of what is written */
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

/* The picture's own name without folders and endings: "cat" of "photos/cat.jpg", "t10k-images-17"
 * of "t10k-images.gz[17]". */
static void stem(char name[NAME], const job *j, int64_t i) {
    char text[BASIN_PICTURE_NAME];
    const char *full = basin_pictures_name(text, j->pictures, i), *slash = strrchr(full, '/');
    const char *last = slash ? slash + 1 : full, *number = strrchr(last, '[');
    size_t length = number ? (size_t)(number - last) : strlen(last);
    for (size_t k = length; k > 1; k--)
        if (last[k - 1] == '.') length = k - 1;
    snprintf(name, NAME, "%.*s%s%.*s", (int)length, last, number ? "-" : "",
             number ? (int)strcspn(number + 1, "]") : 0, number ? number + 1 : "");
}

static bool is_taken(const job *j, const char *name, int64_t names) {
    for (int64_t i = 0; i < names; i++)
        if (!strcmp(j->name[i], name)) return true;
    return false;
}

/* No two pictures have one name: a second "cat" is "cat-2". */
static void name_picture(job *j, int64_t i) {
    char plain[NAME - 16];
    stem(j->name[i], j, i);
    snprintf(plain, sizeof plain, "%.*s", NAME - 17, j->name[i]);
    for (int k = 2; is_taken(j, j->name[i], i); k++) snprintf(j->name[i], NAME, "%s-%d", plain, k);
}

/* FOLDER/NAME.what */
static void target(char *path, size_t size, const job *j, int64_t i, const char *what) {
    snprintf(path, size, "%s/%s.%s", j->o->folder, j->name[i], what);
}

static basin_status write_frames(const job *j, int64_t i, const basin_image_completion *done,
                                 basin_error *error) {
    char path[PATH], what[40];
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
    char path[PATH];
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
    j->name = calloc((size_t)count + 1, sizeof *j->name);
    if (!j->name) return basin_fail(error, BASIN_NO_MEMORY, "no memory for names");
    for (int64_t i = 0; i < count && !status; i++) {
        basin_image_completion done;
        name_picture(j, i);
        j->how.stream = (uint64_t)i;
        status = basin_pictures_load(&picture, j->pictures, i, error);
        if (!status) status = basin_image_complete(&done, j->model, &picture, 1, &j->how, error);
        if (status) break;
        status = write_results(j, i, &done, error);
        basin_image_completion_free(&done);
    }
    basin_picture_free(&picture);
    free(j->name);
    return status;
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
    if (!status) status = basin_folder_make(o->folder, &error);
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
