/* basin image complete: lets a model complete what is missing in pictures. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/sort.h"
#include "basin/tasks/models.h"
#include "program/cli.h"
#include "tasks/pictures/sets/pictures.h"

typedef struct options {
    BASIN_ARGS;
    const char *model, *mask;
    int64_t limit;
    double max_hidden;
    bool plain, smooth;
    basin_image_descent_options descent;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_TEXT(output, 'o', "output", "FOLDER|FILE.png", .text = "."),
    BASIN_TEXT(model, 0, "model", "FILE"),
    BASIN_TEXT(mask, 0, "mask", "transparent|FILE|FOLDER|X,Y,W,H", .text = "transparent"),
    BASIN_REAL(max_hidden, "most-hidden", "SHARE", 0, 1, .initial = 0.5),
    BASIN_FLAG(smooth, "smooth", .needs = "plain=off"),
    BASIN_FLAG(plain, "plain"),
    BASIN_OPTIONS_DESCENT,
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_SEED,
    BASIN_OPTIONS_LAST,
};

/* ---- what --mask says: rectangles, a PNG, or a folder of PNGs ---- */

typedef struct mask_set {
    const char *text, *folder; /* the option; the same where it is a folder */
    int64_t *rectangle;        /* [rectangles, 4] */
    int64_t rectangles;
    basin_picture picture; /* read from the file, or from the folder for one picture */
    int64_t dark;          /* its pixels that are nearly black, not quite */
} mask_set;

/* "left,top,width,height"; *end is after it. */
static bool read_rectangle(int64_t rectangle[4], const char *text, char **end) {
    for (int i = 0; i < 4; i++) {
        errno = 0;
        rectangle[i] = strtoll(text, end, 10);
        if (errno || *end == text || (i < 3 && **end != ',')) return false;
        text = *end + 1;
    }
    return rectangle[0] >= 0 && rectangle[1] >= 0 && rectangle[2] > 0 && rectangle[3] > 0;
}

static basin_status read_rectangles(mask_set *m, basin_error *error) {
    size_t max = 1;
    for (const char *c = m->text; *c; c++) max += *c == ';';
    BASIN_TRY(BASIN_NEW(&m->rectangle, 4 * max, "rectangles", error));
    for (const char *at = m->text;; at++) {
        char *end;
        bool good = read_rectangle(m->rectangle + 4 * m->rectangles++, at, &end);
        if (!good || (*end && *end != ';'))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--mask %s: needs four whole numbers X,Y,W,H from the upper left "
                              "corner, W and H above 0 (several separated by ';'), a PNG file, a "
                              "folder of them, or transparent",
                              m->text);
        if (!*end) return BASIN_OK;
        at = end;
    }
}

/* In a mask without black that is transparent somewhere, painted pixels are missing. */
static basin_status read_paint(mask_set *m, const char *path, basin_error *error) {
    int64_t all = m->picture.height * m->picture.width, clear = 0;
    basin_pictures *own;
    BASIN_AT_EXIT(basin_picture_free) basin_picture alpha = {0};
    BASIN_TRY(basin_pictures_open(&own, &path, 1, BASIN_PICTURES_ALL, error));
    basin_status status = basin_pictures_transparency(&alpha, own, 0, error);
    basin_pictures_close(own);
    BASIN_TRY(status);
    for (int64_t i = 0; alpha.pixel && i < all; i++) clear += alpha.pixel[i] > 0;
    for (int64_t i = 0; clear && i < all; i++) m->picture.pixel[i] = 255 - alpha.pixel[i];
    return BASIN_OK;
}

static basin_status read_file(mask_set *m, const char *path, basin_error *error) {
    enum { NEARLY_BLACK = 32 };
    m->dark = 0;
    BASIN_TRY(basin_picture_read(&m->picture, path, error));
    BASIN_TRY(basin_picture_set_channels(&m->picture, 1, error));
    if (!memchr(m->picture.pixel, 0, (size_t)(m->picture.height * m->picture.width)))
        return read_paint(m, path, error);
    for (int64_t i = 0; i < m->picture.height * m->picture.width; i++)
        m->dark += m->picture.pixel[i] > 0 && m->picture.pixel[i] < NEARLY_BLACK;
    return BASIN_OK;
}

static basin_status masks_open(mask_set *masks, const char *text, basin_error *error) {
    struct stat found;
    *masks = (mask_set){.text = text};
    if (!strcmp(text, "transparent")) return BASIN_OK;
    if (text[strspn(text, "-0123456789,;. ")] == 0) return read_rectangles(masks, error);
    if (stat(text, &found) == 0 && S_ISDIR(found.st_mode)) {
        masks->folder = text;
        return BASIN_OK;
    }
    return read_file(masks, text, error);
}

/* What is not opaque in picture i itself. */
static basin_status read_transparency(mask_set *m, const basin_pictures *pictures, int64_t i,
                                      basin_error *error) {
    char text[BASIN_MAX_PICTURE_NAME];
    BASIN_TRY(basin_pictures_transparency(&m->picture, pictures, i, error));
    for (int64_t k = 0; m->picture.pixel && k < m->picture.height * m->picture.width; k++)
        if (m->picture.pixel[k]) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE,
        "%s: nothing is transparent in it, so what is missing? --mask FILE.png (white "
        "is missing) or --mask X,Y,W,H says it",
        basin_pictures_name(text, pictures, i));
}

/* Refuses a mask that hides more than `max` of its picture. */
static basin_status check_share(const mask_set *m, double max, basin_error *error) {
    int64_t all = m->picture.height * m->picture.width, hidden = 0;
    for (int64_t i = 0; i < all; i++) hidden += m->picture.pixel[i] > 0;
    if ((double)hidden <= max * (double)all || hidden == all) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the mask hides %.0f %% of the picture: is it inverted? White is missing, "
                      "black is known; --most-hidden 1 completes it as it is",
                      100 * (double)hidden / (double)all);
}

/* The hole of picture i, which is called `name` here. `how` borrows from `masks`. */
static basin_status masks_set(basin_image_complete_options *how, mask_set *masks, const char *name,
                              const basin_pictures *pictures, int64_t i, double max,
                              basin_error *error) {
    char path[4096];
    how->more_rectangles = masks->rectangle;
    how->rectangles = masks->rectangles;
    if (masks->folder) {
        snprintf(path, sizeof path, "%s/%s.png", masks->folder, name);
        BASIN_TRY(read_file(masks, path, error));
    }
    if (!strcmp(masks->text, "transparent"))
        BASIN_TRY(read_transparency(masks, pictures, i, error));
    how->mask = masks->picture.pixel ? &masks->picture : NULL;
    return how->mask ? check_share(masks, max, error) : BASIN_OK;
}

/* ---- names of results: the pictures' own, without folders and endings, no two alike ---- */

enum { STEM = 400 };
static const char ending[] = ".completed.png";

/* The end of a file's name: its last ending, of a numbered picture of a set all of them. */
static size_t stem_length(const char *last, const char *number) {
    size_t length = number ? (size_t)(number - last) : strlen(last);
    for (size_t k = length; k > 1; k--)
        if (last[k - 1] == '.') {
            length = k - 1;
            if (!number) break;
        }
    return length;
}

/* The name of picture i: "cat" of "photos/cat.jpg", "t10k-images-17" of "t10k-images.gz[17]". A
 * second "cat" is "cat-2". */
static basin_status give_stem(basin_dictionary *given, const basin_pictures *pictures, int64_t i,
                              basin_error *error) {
    char text[BASIN_MAX_PICTURE_NAME], plain[STEM - 16], name[STEM];
    const char *full = basin_pictures_name(text, pictures, i), *slash = strrchr(full, '/');
    const char *last = slash ? slash + 1 : full, *number = strrchr(last, '[');
    int32_t place;
    snprintf(plain, sizeof plain, "%.*s%s%.*s", (int)stem_length(last, number), last,
             number ? "-" : "", number ? (int)strcspn(number + 1, "]") : 0,
             number ? number + 1 : "");
    snprintf(name, STEM, "%s", plain);
    for (int k = 2; basin_dictionary_find(given, name) >= 0; k++)
        snprintf(name, STEM, "%s-%d", plain, k);
    return basin_dictionary_add(given, &place, name, error);
}

enum { PATH = 4096 };

typedef struct job {
    options *o;
    basin_image_model *model;
    basin_pictures *pictures;
    basin_image_complete_options how;
    mask_set masks;
    basin_dictionary stems; /* the name of each picture */
    basin_progress progress;
    basin_watch watch;
    int64_t at, count;              /* the picture that is completed, of how many */
    int64_t done, skipped, results; /* pictures; results of an earlier run are left out */
    int64_t replaced;               /* files that were there before */
    bool single;                    /* -o names the one file to write */
    bool made;                      /* its folder was not there before */
    basin_error first;              /* why the first of the skipped was */
    basin_record *record;           /* of --json, a row per picture; or NULL */
    double began;                   /* the picture, by basin_clock */
} job;

/* ---- writing ---- */

/* FOLDER/NAME.completed.png; counts a file that is in its place, removes what a killed process
 * left. */
static basin_status target(char path[PATH], job *j, const char *name, basin_error *error) {
    if (j->single)
        snprintf(path, PATH, "%s", j->o->output);
    else
        snprintf(path, PATH, "%s/%s%s", j->o->output, name, ending);
    j->replaced += access(path, F_OK) == 0;
    return basin_writer_sweep(path, error);
}

/* A PNG file keeps its depth, its transparency and its profile. */
static basin_status write_completed(const char *path, const job *j, int64_t i,
                                    const basin_image_complete_result *done, basin_error *error) {
    char original[BASIN_MAX_PICTURE_NAME];
    basin_pictures_name(original, j->pictures, i);
    if (access(original, R_OK) == 0) {
        basin_status status =
            basin_picture_patch_png(path, original, &done->completed, &done->hole, error);
        if (status != BASIN_UNSUPPORTED) return status;
    }
    return basin_picture_write_png(path, &done->completed, error);
}

/* A row of the record: the picture's name, and what follows. */
static basin_record *put_picture(const job *j, int64_t i) {
    char name[BASIN_MAX_PICTURE_NAME];
    basin_record_row(j->record);
    basin_record_text(j->record, "picture", basin_pictures_name(name, j->pictures, i));
    return j->record;
}

static basin_status write_result(job *j, int64_t i, const char *name,
                                 const basin_image_complete_result *done, basin_error *error) {
    char path[PATH];
    BASIN_TRY(target(path, j, name, error));
    BASIN_TRY(write_completed(path, j, i, done, error));
    basin_progress_clear();
    if (!j->record) return printf("%s\n", path), BASIN_OK;
    basin_record_fields(
        put_picture(j, i), "file=%s;width=%lld;height=%lld;missing=%lld;windows=%lld;seconds=%g",
        path, (long long)done->completed.width, (long long)done->completed.height,
        (long long)done->missing, (long long)done->windows, basin_clock() - j->began);
    basin_record_numbers(j->record, "energy", done->energy, done->energies);
    basin_record_numbers(j->record, "model_energy", done->model_energy, done->energies);
    return BASIN_OK;
}

/* ---- pictures ---- */

/* What the model did not see. */
static void note_narrow(job *j, const char *name, const basin_image_complete_result *done) {
    if (done->windows == 0)
        basin_note(j->o,
                   "%s: no part of the mask is wide enough for the model: filled with the "
                   "smoothest surface from its rim",
                   name);
}

/* Once for a mask of all pictures. A black and white JPEG has such pixels along its edges. */
static void note_dark(job *j) {
    if (j->masks.dark)
        basin_note(j->o,
                   "%lld pixels of the mask are nearly black and count as missing: only black is "
                   "not missing",
                   (long long)j->masks.dark);
    j->masks.dark = 0;
}

/* A picture that cannot be read or has no usable mask is left out; a failure that all pictures
 * would share is an error. */
static basin_status skip(job *j, int64_t i, basin_status status, basin_error *error) {
    char text[BASIN_MAX_PICTURE_NAME];
    const char *name = basin_pictures_name(text, j->pictures, i);
    if (status == BASIN_NO_MEMORY || status == BASIN_UNSUPPORTED) return status;
    bool named = !strncmp(error->text, name, strlen(name)); /* by what could not be read */
    basin_error why = {0};
    basin_fail(&why, status, "%s%s%s", named ? "" : name, named ? "" : ": ", error->text);
    if (j->skipped++ == 0) j->first = why;
    if (j->record) basin_record_text(put_picture(j, i), "error", why.text);
    if (basin_pictures_count(j->pictures) > 1) basin_say("basin: skipped: %s", why.text);
    return BASIN_OK;
}

static basin_status complete_one(job *j, basin_picture *picture, int64_t i, basin_error *error) {
    const char *name = j->stems.names.text + j->stems.names.at[i];
    basin_image_complete_result done = {.size = sizeof done};
    j->began = basin_clock();
    basin_status status = basin_pictures_load(picture, j->pictures, i, error);
    if (!status)
        status = masks_set(&j->how, &j->masks, name, j->pictures, i, j->o->max_hidden, error);
    if (!status) status = basin_image_complete(&done, j->model, picture, 1, &j->how, error);
    if (status) return skip(j, i, status, error);
    note_narrow(j, name, &done);
    note_dark(j);
    status = write_result(j, i, name, &done, error);
    basin_image_complete_result_free(&done);
    j->done++;
    return status;
}

/* Whether this run writes over picture i: it is the result of another one. A file that is named is
 * completed in any case. */
static bool is_result(const job *j, int64_t i) {
    char text[BASIN_MAX_PICTURE_NAME], written[PATH];
    const char *path = basin_pictures_name(text, j->pictures, i), *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    bool same = false;
    basin_error error;
    if (j->single || !basin_text_ends(path, ending)) return false;
    for (int k = 0; k < j->o->operands; k++)
        if (!strcmp(path, j->o->operand[k])) return false;
    snprintf(written, PATH, "%s/%s", j->o->output, last);
    if (basin_file_same(&same, path, written, &error) || !same) return false;
    snprintf(written, PATH, "%.*s", (int)(strlen(last) - strlen(ending)), last);
    return basin_dictionary_find(&j->stems, written) >= 0;
}

static void note_end(const job *j) {
    if (j->skipped && j->done && !j->o->quiet)
        basin_say("basin: %lld picture%s completed, %lld skipped", (long long)j->done,
                  j->done == 1 ? "" : "s", (long long)j->skipped);
    if (j->replaced)
        basin_note(j->o, "%s: replaced %lld file%s of the same name", j->o->output,
                   (long long)j->replaced, j->replaced == 1 ? "" : "s");
}

enum { PARTS = 100 }; /* of a picture, for the bar */

/* Also within a picture, since a large hole takes a while. */
static void show(void *context, const basin_progress_report *news) {
    job *j = context;
    char part[80];
    int64_t done = news->total > 0 ? PARTS * news->done / news->total : 0;
    snprintf(part, sizeof part, "picture %lld/%lld, %lld %% of it", (long long)j->at + 1,
             (long long)j->count, (long long)done);
    basin_progress_show(&j->progress, PARTS * j->at + done, (const char *const[]){part, NULL});
}

static void note(void *context, const char *line) { basin_note(((job *)context)->o, "%s", line); }

static basin_status complete_all(job *j, basin_error *error) {
    int64_t all = basin_pictures_count(j->pictures);
    for (int64_t i = 0; i < all; i++) BASIN_TRY(give_stem(&j->stems, j->pictures, i, error));
    for (int64_t i = 0; i < all; i++) j->results += is_result(j, i);
    if (j->results)
        basin_note(j->o, "%s: %lld picture%s left out: results of an earlier run", j->o->output,
                   (long long)j->results, j->results == 1 ? "" : "s");
    j->count = all - j->results;
    if (j->o->limit && j->count > j->o->limit) j->count = j->o->limit;
    j->watch = (basin_watch){.show = show, .note = note, .context = j};
    j->how.watch = &j->watch;
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    basin_status status = BASIN_OK;
    j->progress = basin_progress_begin("completing", PARTS * j->count, j->o->quiet);
    for (int64_t i = 0; j->at < j->count && !status; i++)
        if (!is_result(j, i)) status = complete_one(j, &picture, i, error), j->at++;
    basin_progress_end(&j->progress);
    if (status) return status;
    note_end(j);
    if (j->done) return BASIN_OK;
    if (j->skipped == 1) return basin_fail(error, j->first.status, "%s", j->first.text);
    return basin_fail(error, BASIN_BAD_FILE,
                      "none of %lld pictures could be completed; the first: %.300s",
                      (long long)j->skipped, j->first.text);
}

/* With --json the record is written as work goes on, and closed whatever happens. */
static basin_status complete_recorded(job *j, const char *model, basin_error *error) {
    if (!j->o->json) return complete_all(j, error);
    j->record = basin_record_open(stdout, BASIN_FORM_JSON);
    if (!j->record) return basin_fail_memory(error, "a result");
    basin_record_text(j->record, "model", model);
    basin_record_table(j->record, "pictures", NULL);
    basin_status status = complete_all(j, error);
    basin_record_end(j->record);
    basin_record_fields(j->record, "completed=%lld;skipped=%lld;replaced=%lld;left_out=%lld",
                        (long long)j->done, (long long)j->skipped, (long long)j->replaced,
                        (long long)j->results);
    basin_status closed = basin_record_close(j->record, status ? NULL : error);
    return status ? status : closed;
}

/* ---- the command ---- */

/* Whether the first operand is the model. */
static int model_first(const options *o) { return !o->model && basin_is_model(o->operand[0]); }

static basin_status check(void *context, basin_error *error) {
    const options *o = ((job *)context)->o;
    if (o->model && basin_is_model(o->operand[0]))
        return basin_usage(error,
                           "both --model %s and the model %s are given; expected one of them",
                           o->model, o->operand[0]);
    if (o->operands > model_first(o)) return BASIN_OK;
    return basin_usage(error, "no pictures given after %s", o->operand[0]);
}

/* A folder, which is made; or one file, for one picture, that is none of those read. */
static basin_status open_output(job *j, basin_error *error) {
    static const char *const other[] = {".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"};
    const char *output = j->o->output;
    struct stat found;
    bool folder = stat(output, &found) == 0 && S_ISDIR(found.st_mode);
    for (size_t i = 0; i < sizeof other / sizeof *other && !folder; i++)
        if (basin_text_ends(output, other[i]))
            return basin_usage(
                error, "-o %s: results are PNG files; needs a name that ends in .png", output);
    j->single = !folder && basin_text_ends(output, ".png");
    int64_t count = j->o->limit == 1 ? 1 : basin_pictures_count(j->pictures);
    if (j->single && count > 1)
        return basin_usage(error, "-o %s is a file, and there are %lld pictures; needs a folder",
                           output, (long long)count);
    for (int i = 0; i <= j->o->operands && j->single; i++) {
        const char *read = i < j->o->operands ? j->o->operand[i] : j->o->mask;
        bool same;
        BASIN_TRY(basin_file_same(&same, output, read, error));
        if (same) return basin_usage(error, "-o %s is read; name another file", output);
    }
    j->made = !folder && !j->single;
    if (!j->single) return basin_folder_make(output, error);
    char parent[PATH];
    const char *slash = strrchr(output, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - output) : 0, output);
    if (*parent) BASIN_TRY(basin_folder_make(parent, error));
    return basin_writer_try(output, error);
}

static basin_status complete(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    char shipped[4096];
    int first = model_first(o);
    const char *model = first ? o->operand[0] : o->model;
    j->how = (basin_image_complete_options){
        .seed = (uint64_t)o->seed, .plain = o->plain, .smooth = o->smooth};
    if (!model) BASIN_TRY(basin_models_find(shipped, sizeof shipped, "photos", error));
    BASIN_TRY(basin_args_image(&j->model, &o->args, &o->descent, model ? model : shipped, error));
    BASIN_TRY(basin_pictures_open(&j->pictures, (const char *const *)o->operand + first,
                                  o->operands - first, BASIN_PICTURES_TEST, error));
    BASIN_TRY(masks_open(&j->masks, o->mask, error));
    BASIN_TRY(open_output(j, error));
    basin_status status = complete_recorded(j, model ? model : shipped, error);
    if (status && j->made) rmdir(o->output); /* stays where something is in it */
    return status;
}

static void close_all(void *context) {
    job *j = context;
    free(j->masks.rectangle);
    basin_picture_free(&j->masks.picture);
    basin_dictionary_free(&j->stems);
    basin_pictures_close(j->pictures);
    basin_image_close(j->model);
}

const basin_command basin_command_image_complete = {
    BASIN_COMMAND("image complete", table),
    BASIN_USES(job, .prepare = check, .work = complete, .close = close_all, .no_stop = true)};
