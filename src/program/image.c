/* basin image train, eval, export. */
#include "base/file.h"
#include "basin/tasks/metrics.h"
#include "program/cli.h"

/* ---- shared ---- */

bool basin_is_model(const char *path) {
    return basin_text_ends(path, ".safetensors") || basin_text_ends(path, ".npz");
}

basin_status basin_args_image(basin_image_model **model, const basin_args *args,
                              const basin_image_descent *descent, const char *path,
                              basin_error *error) {
    BASIN_TRY(basin_image_open(model, path, args->compute, error));
    return basin_image_set_descent(*model, descent, error);
}

/* ---- train ---- */

typedef struct train_options {
    BASIN_ARGS;
    const char *test, *keep_decoded, *cut_from;
    int64_t hold_out, limit;
} train_options;
#define OPTIONS train_options

static const basin_option train_table[] = {
    BASIN_TRAIN_OPTIONS(NULL),
    BASIN_TEXT(test, 0, "test", "PATH", .needs = "hold-out=0"),
    BASIN_INTEGER(hold_out, "hold-out", "N", 0, 1e12),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12),
    BASIN_CHOICE(keep_decoded, "keep-decoded", "auto|off|host", .more = true, .text = "auto"),
    BASIN_CHOICE(cut_from, "cut-from", "auto|files|whole|reduced", .more = true, .text = "auto"),
    BASIN_OPTIONS_END,
};

static basin_image_source source_of(const basin_train_job *job) {
    const train_options *o = (void *)job->o;
    return (basin_image_source){.path = (const char *const *)o->operand,
                                .paths = o->operands,
                                .split = "train",
                                .limit = o->limit,
                                .hold_out = o->hold_out};
}

/* Without --preset or --config, settings come from the pictures, or from the model of --from. */
static basin_status fit(basin_train_job *job, basin_error *error) {
    train_options *o = (void *)job->o;
    char chosen[600];
    basin_image_source source = source_of(job);
    if (o->start.preset || o->start.config) return BASIN_OK;
    BASIN_TRY(
        basin_image_fit(o->settings, chosen, sizeof chosen, &source, o->training.from, error));
    basin_note(o, "%s; --preset overrides this", chosen);
    return BASIN_OK;
}

static basin_status train(basin_train_job *job, basin_error *error) {
    train_options *o = (void *)job->o;
    basin_image_source source = source_of(job);
    basin_image_source test = {.path = &o->test, .paths = 1, .split = "test"};
    basin_image_feeding *feeding;
    BASIN_TRY(BASIN_NEW(&feeding, 1, "a run", error));
    job->more = feeding;
    basin_image_data data = {.train = &source,
                             .test = o->test ? &test : NULL,
                             .keep_decoded = o->keep_decoded,
                             .cut_from = o->cut_from,
                             .threads = o->ranks ? (int)o->threads : 0,
                             .feeding = feeding};
    BASIN_TRY(basin_image_train(NULL, &job->outcome, o->settings, &data, &o->training, error));
    job->things = "pictures", job->count = feeding->pictures;
    return BASIN_OK;
}

static void put_training(basin_record *r, const basin_train_job *job) {
    const basin_image_feeding *f = job->more;
    basin_record_fields(
        r, "unreadable=%lld;.seconds_waiting_for_pictures=%g;.pictures_kept=%s;.crops_cut_from=%s",
        (long long)f->unreadable, f->waited, f->keep_decoded, f->cut_from);
    basin_record_bytes(r, "pictures_kept_bytes|pictures kept", (int64_t)f->kept);
}

static void close_training(basin_train_job *job) { free(job->more); }

const basin_command basin_command_image_train = {
    BASIN_COMMAND("image train", train_table),
    BASIN_TRAINS("image", .prepare = fit, .train = train, .print = put_training,
                 .close = close_training, .validates = true)};

/* ---- sample ---- */

#undef OPTIONS
typedef struct sample_options {
    BASIN_ARGS;
    const char *folder;
    int64_t count, steps;
    double alpha;
} sample_options;
#define OPTIONS sample_options

static const basin_option sample_table[] = {
    BASIN_INTEGER(count, "count", "N", 1, 1e6, .letter = 'n', .initial = 64),
    BASIN_TEXT(output, 'o', "output", "FILE.png", .writes = true, .text = "samples.png"),
    BASIN_TEXT(folder, 0, "folder", "FOLDER"),
    BASIN_INTEGER(steps, "steps", "N", 0, 10000),
    BASIN_REAL(alpha, "alpha", "X", 0, 1e6),
    BASIN_INTEGER(seed, "seed", "N", 0, 9007199254740991.0),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTIONS_LAST,
};

typedef struct sampling {
    sample_options *o;
    basin_image_model *model;
    basin_picture *picture; /* [count] */
    double *energy;         /* [steps + 1] */
    int64_t steps;
} sampling;

static basin_status check_sample(void *context, basin_error *error) {
    const sample_options *o = ((sampling *)context)->o;
    if (basin_text_ends(o->output, ".png")) return BASIN_OK;
    return basin_usage(error, "--output %s: needs a name that ends in .png", o->output);
}

static basin_status sample(void *context, basin_error *error) {
    sampling *j = context;
    sample_options *o = j->o;
    j->steps = o->steps ? o->steps : BASIN_IMAGE_SAMPLE_STEPS;
    BASIN_TRY(BASIN_NEW(&j->picture, o->count, "samples", error));
    BASIN_TRY(BASIN_NEW(&j->energy, j->steps + 1, "samples", error));
    basin_image_descent how = {o->steps, o->alpha, (uint64_t)o->seed};
    BASIN_TRY(basin_image_open(&j->model, o->operand[0], o->compute, error));
    BASIN_TRY(basin_image_set_descent(j->model, &how, error));
    return basin_image_sample(j->picture, j->energy, j->model, o->count, &o->watch.watch, error);
}

/* Rows of about as many pictures as there are rows, with a grey line between them. */
static basin_status draw_sheet(basin_picture *sheet, const basin_picture *p, int64_t count,
                               basin_error *error) {
    int64_t columns = 1, each = p->width + 1, size = p->channels;
    while (columns * columns < count) columns++;
    int64_t rows = (count + columns - 1) / columns;
    BASIN_TRY(basin_picture_resize_memory(sheet, rows * each + 1, columns * each + 1, p->channels,
                                          error));
    memset(sheet->pixel, 128, (size_t)(sheet->height * sheet->width * size));
    for (int64_t y = 0; y < count * p->height; y++) {
        int64_t i = y / p->height, line = i / columns * each + 1 + y % p->height;
        memcpy(sheet->pixel + (line * sheet->width + i % columns * each + 1) * size,
               p[i].pixel + y % p->height * p->width * size, (size_t)(p->width * size));
    }
    return BASIN_OK;
}

static basin_status write_samples(void *context, basin_error *error) {
    const sampling *j = context;
    const sample_options *o = j->o;
    char path[4096];
    BASIN_AT_EXIT(basin_picture_free) basin_picture sheet = {0};
    BASIN_TRY(draw_sheet(&sheet, j->picture, o->count, error));
    BASIN_TRY(basin_picture_write_png(o->output, &sheet, error));
    if (o->folder) BASIN_TRY(basin_folder_make(o->folder, error));
    for (int64_t i = 0; o->folder && i < o->count; i++) {
        snprintf(path, sizeof path, "%s/%04lld.png", o->folder, (long long)i);
        BASIN_TRY(basin_picture_write_png(path, &j->picture[i], error));
    }
    return BASIN_OK;
}

static void put_samples(basin_record *r, const void *context) {
    const sampling *j = context;
    basin_record_fields(r, "pictures=%lld;sheet=%s", (long long)j->o->count, j->o->output);
    if (j->o->folder) basin_record_text(r, "folder", j->o->folder);
    if (!isfinite(j->energy[0])) basin_record_note(r, "the field is free: there is no energy");
    if (!isfinite(j->energy[0])) return;
    basin_record_numbers(r, ".energies", j->energy, j->steps + 1);
    for (int64_t i = 0; i <= 4; i++) {
        char key[60];
        snprintf(key, sizeof key, "|mean energy before step %lld", (long long)(i * j->steps / 4));
        basin_record_number(r, key, "%.3f", j->energy[i * j->steps / 4]);
    }
}

static void close_sample(void *context) {
    sampling *j = context;
    for (int64_t i = 0; j->picture && i < j->o->count; i++) basin_picture_free(&j->picture[i]);
    BASIN_FREE(j->picture, j->energy);
    basin_image_close(j->model);
}

const basin_command basin_command_image_sample = {
    BASIN_COMMAND("image sample", sample_table),
    BASIN_USES(sampling, .prepare = check_sample, .work = sample, .print = put_samples,
               .finish = write_samples, .close = close_sample)};

/* ---- eval ---- */

#undef OPTIONS
typedef struct eval_options {
    BASIN_ARGS;
    const char *mask, *part;
    int64_t masks, hold_out, limit, batch, best;
    double ratio;
    basin_image_descent descent;
} eval_options;
#define OPTIONS eval_options

static const basin_option eval_table[] = {
    BASIN_INTEGER(masks, "masks", "K", 1, 1000, .initial = 10),
    BASIN_CHOICE(mask, "mask", "scattered|holes", .text = "scattered"),
    BASIN_REAL(ratio, "ratio", "SHARE", 0, 1, .needs = "mask=scattered"),
    BASIN_OPTIONS_DESCENT,
    BASIN_INTEGER(seed, "seed", "N", 0, 1e9),
    BASIN_CHOICE(part, "part", "test|train|all", .needs = "hold-out=0", .text = "test"),
    BASIN_INTEGER(hold_out, "hold-out", "N", 0, 1e12),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12),
    BASIN_INTEGER(batch, "batch", "N", 0, 1 << 20),
    BASIN_INTEGER(best, "best", "N", 0, 1e9, .initial = 5),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTIONS_LAST,
};

typedef struct evaluation {
    eval_options *o;
    basin_image_model *model;
    basin_pictures *pictures;
    basin_image_scores scores;
} evaluation;

/* The first of them by their error, or from the end. */
static void put_extremes(basin_record *r, const char *key, const char *title, const evaluation *e,
                         bool worst) {
    const basin_image_scores *s = &e->scores;
    char name[BASIN_PICTURE_NAME];
    basin_record_table(r, key, title);
    for (int64_t i = 0; i < e->o->best && i < s->pictures; i++) {
        int64_t at = s->order[worst ? s->pictures - 1 - i : i];
        basin_record_row(r);
        basin_record_text(r, "name", basin_pictures_name(name, e->pictures, s->index[at]));
        if (s->match) basin_record_number(r, "outlier", "%.4f", s->picture_outlier[at]);
        if (s->picture_energy) basin_record_number(r, "energy", "%.3f", s->picture_energy[at]);
        basin_record_number(r, s->match ? "error" : "mse", "%.4f", s->picture_mse[at]);
    }
    basin_record_end(r);
}

#define F(member, ...) BASIN_FIELD(basin_image_scores, member, __VA_ARGS__)
static const basin_field
    score_fields[] = {F(pictures, "pictures"), F(unreadable, "unreadable"), F(masks, "masks"), {0}},
    match_fields[] = {F(mse, "match|squared error of the gradient", "%.4f"),
                      F(mse_deviation, "match_deviation|its deviation", "%.4f"),
                      {0}},
    completion_fields[] = {F(mse, "mse|MSE on occluded patches", "%.4f"),
                           F(mse_deviation, "mse_deviation|deviation over masks", "%.4f"),
                           F(mean_mse, "mean_mse|MSE of the mean colour", "%.4f"),
                           F(psnr, "psnr", "%.2f dB"),
                           F(psnr_deviation, ".psnr_deviation"),
                           F(ssim, "ssim", "%.4f"),
                           F(ssim_deviation, ".ssim_deviation"),
                           {0}};
#undef F

static void put_scores(basin_record *r, const void *context) {
    const evaluation *e = context;
    const basin_image_scores *s = &e->scores;
    double mean, deviation, *each = s->match ? s->picture_energy : s->picture_mse;
    basin_record_struct(r, score_fields, s);
    basin_record_struct(r, s->match ? match_fields : completion_fields, s);
    if (each) basin_mean_deviation(&mean, &deviation, each, s->pictures);
    if (!s->match)
        basin_record_number(r, "mse_deviation_pictures|deviation over pictures", "%.4f", deviation);
    else if (each)
        basin_record_fields(r, "energy=%.3f;energy_deviation=%.3f", mean, deviation);
    if (s->trained_on >= 0) basin_record_integer(r, "trained_on", s->trained_on);
    if (s->trained_on > 0)
        basin_record_note(r, "this is not a held-out score%s",
                          s->trained_on_about ? "; trained on is an estimate" : "");
    put_extremes(r, "best", s->match ? "best, by their outlier score:" : "best, by their MSE:", e,
                 false);
    put_extremes(r, "worst", "worst:", e, true);
}

static basin_status score(void *context, basin_error *error) {
    evaluation *e = context;
    eval_options *o = e->o;
    const char *split = o->hold_out ? "train" : o->part[0] == 'a' ? NULL : o->part;
    BASIN_TRY(basin_args_image(&e->model, &o->args, &o->descent, o->operand[0], error));
    basin_note_gamma(&o->args, o->operand[0]);
    BASIN_TRY(basin_pictures_open(&e->pictures, (const char *const *)o->operand + 1,
                                  o->operands - 1, split, error));
    if (split && !strcmp(o->part, "train") && !basin_pictures_divided(e->pictures))
        basin_note(o, "--part train has no effect: these pictures have no training part");
    basin_image_source source = {
        .pictures = e->pictures, .limit = o->limit, .hold_out = o->hold_out};
    basin_image_scoring scoring = {.source = &source,
                                   .masks = (int)o->masks,
                                   .first_mask = (uint64_t)o->seed,
                                   .batch = o->batch,
                                   .watch = &o->watch.watch,
                                   .holes = o->mask[0] == 'h',
                                   .ratio = o->ratio};
    return basin_image_score(&e->scores, e->model, &scoring, error);
}

static void close_eval(void *context) {
    evaluation *e = context;
    basin_image_scores_free(&e->scores);
    basin_pictures_free(e->pictures);
    basin_image_close(e->model);
}

const basin_command basin_command_image_eval = {
    BASIN_COMMAND("image eval", eval_table),
    BASIN_USES(evaluation, .work = score, .print = put_scores, .close = close_eval)};

/* ---- export ---- */

#undef OPTIONS
typedef struct export_options {
    BASIN_ARGS;
    const char *weights;
} export_options;
#define OPTIONS export_options

static const basin_option export_table[] = {
    BASIN_CHOICE(weights, "weights", "f32|bf16", .text = "f32"),
    BASIN_OPTIONS_END,
};

static void close_image(basin_image_model **model) { basin_image_close(*model); }

static basin_status run_export(void *context, basin_error *error) {
    export_options *o = context;
    BASIN_AT_EXIT(close_image) basin_image_model *model = NULL;
    const char *path = o->operand[1];
    if (!basin_text_ends(path, ".safetensors"))
        return basin_usage(error, "%s: needs a name that ends in .safetensors", path);
    BASIN_TRY(basin_backend_open(&o->compute, &(basin_compute){.threads = 1}, error));
    BASIN_TRY(basin_image_open(&model, o->operand[0], o->compute, error));
    return basin_image_write(path, model, basin_option_dtype(o->weights), error);
}

const basin_command basin_command_image_export = {BASIN_COMMAND("image export", export_table),
                                                  .run = run_export};
