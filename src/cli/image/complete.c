/* basin image complete: lets a model complete what is missing in pictures. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "basin/tasks/image.h"
#include "basin/tasks/models.h"
#include "cli/command.h"
#include "cli/image/descent.h"
#include "cli/image/masks.h"
#include "cli/image/stems.h"
#include "cli/progress.h"
#include "io/file.h"
#include "view/strip.h"

typedef struct options {
    const char *folder, *model, *mask, *fit, *backend, *products, *dtype;
    basin_descent_flags descent;
    double ratio;
    int64_t limit, threads, seed, looks;
    bool frames, plain, quiet;
} options;

static const options defaults = {
    .folder = ".",
    .mask = "random",
    .fit = "windows",
    .backend = "cpu",
    .products = "f32",
    .looks = 8,
};

static const basin_option table[] = {
    BASIN_TEXT(options, folder, 'o', "output", "FOLDER", "Where the pictures are written."),
    BASIN_TEXT(options, model, 0, "model", "FILE",
               "The model; without it the first operand if that is a .safetensors or .npz file, "
               "else the model of photographs that came with Basin."),
    BASIN_TEXT(options, mask, 0, "mask", "random|FILE|FOLDER|X,Y,W,H",
               "What is missing: patches drawn at random; what is not black in a PNG of the "
               "picture's size; in the folder's NAME.png; or rectangles of pixels, several apart "
               "by ';'."),
    BASIN_REAL(options, ratio, "ratio", "SHARE", 0, 1,
               "Share of the patches that are drawn; 0: half of them.", .needs = "mask=random"),
    BASIN_CHOICE(options, fit, "fit", "windows|resize",
                 "Lay windows of the model's size around what is missing, or resize the whole "
                 "picture to that size; the result has the picture's own size either way."),
    BASIN_INTEGER(options, looks, "looks", "N", 1, 8,
                  "Looks at each window, moved by parts of a patch and mirrored; fewer are faster.",
                  .needs = "plain=off mask!=random"),
    BASIN_FLAG(options, plain, 0, "plain",
               "What the model says and no more: one look a window, the rim is not asked. So it "
               "always is with patches drawn at random."),
    BASIN_OPTIONS_DESCENT(options),
    BASIN_FLAG(options, frames, 0, "frames",
               "Write every step of the descent, as PNG frames and as an animated PNG."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N pictures; 0: all."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_SEED_FOR(options, "mask=random"),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

enum { PATH = 4096 };

typedef struct job {
    const options *o;
    basin_image_model *model;
    basin_pictures *pictures;
    basin_image_completing how;
    basin_masks masks;
    basin_stems stems;
    basin_progress progress;
    int64_t done, skipped, replaced; /* pictures; files that were there before */
    basin_error first;               /* why the first of the skipped was */
} job;

/* ---- writing ---- */

/* FOLDER/NAME.what; counts a file that is in its place. */
static void target(char path[PATH], job *j, const char *name, const char *what) {
    snprintf(path, PATH, "%s/%s.%s", j->o->folder, name, what);
    j->replaced += access(path, F_OK) == 0;
}

static basin_status write_frames(job *j, const char *name, const basin_image_completion *done,
                                 basin_error *error) {
    char path[PATH], what[40];
    basin_status status = BASIN_OK;
    for (int t = 0; t < done->frames && !status; t++) {
        snprintf(what, sizeof what, "step%02d.png", t);
        target(path, j, name, what);
        status = basin_picture_write_png(path, &done->frame[t], error);
    }
    target(path, j, name, "descent.png");
    if (!status)
        status = basin_picture_write_apng(path, done->frame, done->frames, 120, 1500, error);
    if (!status) printf("%s\n", path);
    return status;
}

/* A PNG file keeps its depth, its transparency and its profile. */
static basin_status write_completed(const char *path, const job *j, int64_t i,
                                    const basin_image_completion *done, basin_error *error) {
    char original[BASIN_PICTURE_NAME];
    basin_pictures_name(original, j->pictures, i);
    if (access(original, R_OK) == 0) {
        basin_status status =
            basin_picture_patch_png(path, original, &done->completed, &done->hole, error);
        if (status != BASIN_UNSUPPORTED) return status;
    }
    return basin_picture_write_png(path, &done->completed, error);
}

static basin_status write_results(job *j, int64_t i, const char *name,
                                  const basin_image_completion *done, basin_error *error) {
    char path[PATH];
    basin_picture strip = {0};
    const basin_picture *row[] = {&done->masked, &done->completed, &done->original};
    int64_t zoom = basin_strip_zoom(done->original.height, done->original.width);
    target(path, j, name, "completed.png");
    basin_status status = write_completed(path, j, i, done, error);
    if (!status) printf("%s\n", path);
    if (!status) status = basin_strip_draw(&strip, row, 3, 8, zoom, error);
    target(path, j, name, "strip.png");
    if (!status) status = basin_picture_write_png(path, &strip, error);
    if (!status) printf("%s\n", path);
    if (!status && done->frames) status = write_frames(j, name, done, error);
    basin_picture_free(&strip);
    return status;
}

/* ---- pictures ---- */

static void tell_steps(job *j, const char *name, int64_t steps) {
    int64_t most = j->o->descent.steps ? j->o->descent.steps : 1000;
    char text[400];
    basin_rests rests = basin_image_take_rests(j->model);
    if (basin_rests_tell(text, sizeof text, &rests) && !j->o->quiet) {
        basin_progress_end(&j->progress);
        basin_say("basin: note: %s: %s", name, text);
    }
    if (rests.points || j->o->descent.until <= 0 || j->o->quiet) return;
    basin_progress_end(&j->progress);
    basin_say("%s: %lld steps%s", name, (long long)steps,
              steps < most ? "" : ", and tokens still move");
}

/* A hole that the model has no part in is worth a word. */
static void tell_share(job *j, const char *name, double share) {
    if (share >= 0.05 || j->o->quiet) return;
    basin_progress_end(&j->progress);
    basin_say("basin: note: %s: the model failed where its guesses could be checked; the hole is "
              "filled smoothly from its rim",
              name);
}

/* Of a mask of all pictures once. A JPEG of black and white has such pixels along its edges. */
static void tell_dark(job *j) {
    if (j->masks.dark && !j->o->quiet) {
        basin_progress_end(&j->progress);
        basin_say("basin: note: %lld pixels of the mask are nearly black, and count as missing: "
                  "what is not black does",
                  (long long)j->masks.dark);
    }
    j->masks.dark = 0;
}

/* A picture that cannot be read or has no usable mask is left out; what would fail for all others,
 * too, is an error. */
static basin_status skip(job *j, int64_t i, basin_status status, basin_error *error) {
    char text[BASIN_PICTURE_NAME];
    const char *name = basin_pictures_name(text, j->pictures, i);
    if (status == BASIN_NO_MEMORY || status == BASIN_UNSUPPORTED) return status;
    if (j->skipped++ == 0) j->first = *error;
    basin_progress_end(&j->progress);
    bool named = !strncmp(error->text, name, strlen(name)); /* by what could not be read */
    if (basin_pictures_count(j->pictures) > 1)
        basin_say("basin: skipped: %s%s%s", named ? "" : name, named ? "" : ": ", error->text);
    return BASIN_OK;
}

static basin_status complete_one(job *j, basin_picture *picture, int64_t i, basin_error *error) {
    char name[BASIN_STEM];
    basin_image_completion done;
    basin_stems_give(name, &j->stems, j->pictures, i);
    j->how.stream = (uint64_t)i;
    basin_status status = basin_pictures_load(picture, j->pictures, i, error);
    if (!status) status = basin_masks_set(&j->how, &j->masks, name, error);
    if (!status) status = basin_image_complete(&done, j->model, picture, 1, &j->how, error);
    if (status) return skip(j, i, status, error);
    tell_steps(j, name, done.steps);
    tell_share(j, name, done.share);
    tell_dark(j);
    status = write_results(j, i, name, &done, error);
    basin_image_completion_free(&done);
    j->done++;
    return status;
}

static void tell_end(const job *j) {
    if (j->o->quiet) return;
    if (j->skipped && j->done)
        basin_say("basin: %lld pictures completed, %lld skipped", (long long)j->done,
                  (long long)j->skipped);
    if (j->replaced)
        basin_say("basin: note: %lld files of these names were in %s and have been replaced",
                  (long long)j->replaced, j->o->folder);
}

static basin_status complete_all(job *j, basin_error *error) {
    int64_t count = basin_pictures_count(j->pictures);
    if (j->o->limit && count > j->o->limit) count = j->o->limit;
    basin_picture picture = {0};
    basin_status status = basin_stems_new(&j->stems, count, error);
    j->progress = basin_progress_begin("completing", count, j->o->quiet);
    for (int64_t i = 0; i < count && !status; i++) {
        basin_progress_show(&j->progress, i, (const char *const[]){NULL});
        status = complete_one(j, &picture, i, error);
    }
    basin_progress_end(&j->progress);
    basin_picture_free(&picture);
    basin_stems_free(&j->stems);
    if (status) return status;
    tell_end(j);
    if (j->done) return BASIN_OK;
    if (j->skipped == 1) return basin_fail(error, j->first.status, "%s", j->first.text);
    return basin_fail(error, BASIN_BAD_FILE,
                      "none of %lld pictures could be completed; the first: %.300s",
                      (long long)j->skipped, j->first.text);
}

/* ---- the command ---- */

static bool is_model(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".safetensors") || !strcmp(dot, ".npz"));
}

static basin_status open_model(job *j, const char *path, basin_backend *backend,
                               basin_error *error) {
    char shipped[BASIN_MODEL_PATH];
    basin_image_descent descent = basin_descent_make(&j->o->descent);
    basin_status status = path ? BASIN_OK : basin_models_find(shipped, "photos", error);
    if (!status) status = basin_image_open(&j->model, path ? path : shipped, backend, error);
    if (!status) status = basin_image_set_descent(j->model, &descent, error);
    return status;
}

static basin_status work(job *j, const char *model, char **picture, int pictures,
                         basin_error *error) {
    const options *o = j->o;
    basin_backend *backend;
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error);
    if (status) return status;
    status = open_model(j, model, backend, error);
    if (!status)
        status = basin_pictures_open(&j->pictures, (const char *const *)picture, pictures, "test",
                                     error);
    if (!status) status = basin_masks_open(&j->masks, o->mask, error);
    if (!status) status = basin_folder_make(o->folder, error);
    if (!status) status = complete_all(j, error);
    basin_masks_free(&j->masks);
    basin_pictures_free(j->pictures);
    basin_image_close(j->model);
    basin_backend_close(backend);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    job j = {.o = o,
             .how = {.size = sizeof j.how,
                     .ratio = o->ratio > 0 ? o->ratio : 0.5,
                     .seed = (uint64_t)o->seed,
                     .resize = !strcmp(o->fit, "resize"),
                     .plain = o->plain,
                     .looks = (int)o->looks,
                     .frames = o->frames}};
    int first = !o->model && is_model(operand[0]);
    if (o->model && is_model(operand[0]))
        return basin_report_usage(&basin_command_image_complete,
                                  "--model %s and the model %s: wanted one of them", o->model,
                                  operand[0]);
    if (operands == first)
        return basin_report_usage(&basin_command_image_complete, "wanted pictures behind %s",
                                  operand[0]);
    const char *model = first ? operand[0] : o->model;
    basin_status status = work(&j, model, operand + first, operands - first, &error);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_image_complete = {
    .name = "image complete",
    .summary = "Let a model complete what is missing in pictures",
    .operands = "[MODEL] PICTURES...",
    .operands_least = 1,
    .operands_most = 1000,
    .text = "For each picture, writes NAME.completed.png, at the picture's own size, and "
            "NAME.strip.png: masked, completed, original. The paths written are printed. PICTURES "
            "are what basin image train takes; of a set with a test half, that half. What is not "
            "missing stays as it is. Pictures that cannot be read, or whose mask does not fit, are "
            "skipped and counted; the exit code is 1 only where none could be completed.",
    .example =
        "  basin image complete cat.jpg --mask 40,60,80,80\n"
        "  basin image complete photos/ --mask masks/ -o out\n"
        "  basin image complete fashion.safetensors /usr/share/datasets/fashion-mnist --limit 8\n"
        "  basin image complete model.safetensors cat.jpg --mask hole.png --frames\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
