/* basin image train, eval, export. */
#include <sys/stat.h>

#include "base/file.h"
#include "basin/tasks/metrics.h"
#include "program/cli.h"

/* ---- shared ---- */

basin_pictures_split basin_split_of(const char *part, bool hold_out) {
    if (hold_out || !strcmp(part, "train")) return BASIN_PICTURES_TRAIN;
    return !strcmp(part, "all") ? BASIN_PICTURES_ALL : BASIN_PICTURES_TEST;
}

bool basin_is_model(const char *path) {
    return basin_text_ends(path, ".safetensors") || basin_text_ends(path, ".npz");
}

basin_status basin_args_image(basin_image_model **model, const basin_args *args,
                              const basin_image_descent_options *descent, const char *path,
                              basin_error *error) {
    BASIN_TRY(basin_image_open(model, path, args->compute, error));
    return basin_image_set_descent(*model, descent, error);
}

/* ---- train ---- */

typedef struct train_options {
    BASIN_ARGS;
    const char *test;
    int64_t hold_out, limit;
} train_options;
#define OPTIONS train_options

static const basin_option train_table[] = {
    BASIN_TRAIN_OPTIONS(NULL),
    BASIN_TEXT(test, 0, "test", "PATH", .needs = "hold-out=0"),
    BASIN_INTEGER(hold_out, "hold-out", "N", 0, 1e12),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12),
    BASIN_OPTIONS_END,
};

static basin_image_source source_of(const basin_train_job *job) {
    const train_options *o = (void *)job->o;
    return (basin_image_source){.path = (const char *const *)o->operand,
                                .paths = o->operands,
                                .split = BASIN_PICTURES_TRAIN,
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
    basin_image_source test = {.path = &o->test, .paths = 1, .split = BASIN_PICTURES_TEST};
    basin_image_data_result *read;
    BASIN_TRY(BASIN_NEW(&read, 1, "a run", error));
    read->size = sizeof *read;
    job->more = read;
    basin_image_data data = {.train = &source,
                             .test = o->test ? &test : NULL,
                             .threads = o->ranks ? (int)o->threads : 0};
    BASIN_TRY(
        basin_image_train(NULL, &job->outcome, read, o->settings, &data, &o->training, error));
    job->things = "pictures", job->count = read->pictures;
    return BASIN_OK;
}

static void put_training(basin_record *r, const basin_train_job *job) {
    const basin_image_data_result *read = job->more;
    basin_record_fields(r, "unreadable=%lld;.seconds_waiting_for_pictures=%g",
                        (long long)read->unreadable, read->waited);
    basin_record_bytes(r, "pictures_kept_bytes|pictures kept", (int64_t)read->kept);
    if (read->mean_mse > 0)
        basin_record_number(r, "mean_mse|MSE of the mean colour", "%.4f", read->mean_mse);
}

static void close_training(basin_train_job *job) { free(job->more); }

const basin_command basin_command_image_train = {
    BASIN_COMMAND("image train", train_table),
    BASIN_TRAINS("image", .prepare = fit, .train = train, .print = put_training,
                 .close = close_training, .validates = true)};

/* ---- eval ---- */

#undef OPTIONS
typedef struct eval_options {
    BASIN_ARGS;
    const char *mask, *part;
    int64_t masks, hold_out, limit, batch, best;
    double ratio;
    basin_image_descent_options descent;
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
    basin_image_evaluate_result scores;
} evaluation;

/* The first of them by their error, or from the end. */
static void put_extremes(basin_record *r, const char *key, const char *title, const evaluation *e,
                         bool worst) {
    const basin_image_evaluate_result *s = &e->scores;
    char name[BASIN_MAX_PICTURE_NAME];
    basin_record_table(r, key, title);
    for (int64_t i = 0; i < e->o->best && i < s->pictures; i++) {
        int64_t at = s->order[worst ? s->pictures - 1 - i : i];
        basin_record_row(r);
        basin_record_text(r, "name", basin_pictures_name(name, e->pictures, s->index[at]));
        basin_record_number(r, "mse", "%.4f", s->picture_mse[at]);
    }
    basin_record_end(r);
}

#define F(member, ...) BASIN_FIELD(basin_image_evaluate_result, member, __VA_ARGS__)
static const basin_field score_fields[] = {
    F(pictures, "pictures"),
    F(unreadable, "unreadable"),
    F(masks, "masks"),
    F(mse, "mse|MSE on occluded patches", "%.4f"),
    F(mean_mse, "mean_mse|MSE of the mean colour", "%.4f"),
    F(psnr, "psnr", "%.2f dB"),
    F(psnr_deviation, ".psnr_deviation"),
    F(ssim, "ssim", "%.4f"),
    F(ssim_deviation, ".ssim_deviation"),
    {0},
};
#undef F

static void put_scores(basin_record *r, const void *context) {
    const evaluation *e = context;
    const basin_image_evaluate_result *s = &e->scores;
    double mean, deviation;
    basin_record_struct(r, score_fields, s);
    basin_mean_deviation(&mean, &deviation, s->picture_mse, s->pictures);
    if (s->masks > 1)
        basin_record_number(r, "mse_deviation|deviation over masks", "%.4f", s->mse_deviation);
    basin_record_number(r, "mse_deviation_pictures|deviation over pictures", "%.4f", deviation);
    if (s->trained_on >= 0) basin_record_integer(r, "trained_on", s->trained_on);
    if (s->trained_on > 0)
        basin_record_note(r, "this is not a held-out score%s",
                          s->trained_on_about ? "; trained on is an estimate" : "");
    put_extremes(r, "best", "best, by their MSE:", e, false);
    put_extremes(r, "worst", "worst:", e, true);
}

static basin_status score(void *context, basin_error *error) {
    evaluation *e = context;
    eval_options *o = e->o;
    basin_pictures_split split = basin_split_of(o->part, o->hold_out > 0);
    BASIN_TRY(basin_args_image(&e->model, &o->args, &o->descent, o->operand[0], error));
    basin_note_gamma(&o->args, o->operand[0]);
    BASIN_TRY(basin_pictures_open(&e->pictures, (const char *const *)o->operand + 1,
                                  o->operands - 1, split, error));
    if (split && !strcmp(o->part, "train") && !basin_pictures_divided(e->pictures))
        basin_note(o, "--part train has no effect: these pictures have no training part");
    basin_image_source source = {
        .pictures = e->pictures, .limit = o->limit, .hold_out = o->hold_out};
    basin_image_evaluate_options scoring = {.source = &source,
                                            .masks = (int)o->masks,
                                            .first_mask = (uint64_t)o->seed,
                                            .batch = o->batch,
                                            .watch = &o->watch.watch,
                                            .holes = o->mask[0] == 'h',
                                            .ratio = o->ratio};
    return basin_image_evaluate(&e->scores, e->model, &scoring, error);
}

static void close_eval(void *context) {
    evaluation *e = context;
    basin_image_evaluate_result_free(&e->scores);
    basin_pictures_close(e->pictures);
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
    BASIN_OPTIONS_LAST,
};

static void close_image(basin_image_model **model) { basin_image_close(*model); }

static void put_export(basin_record *r, const void *context) {
    const export_options *o = context;
    struct stat file = {0};
    (void)stat(o->operand[1], &file);
    basin_record_fields(r, "file=%s;model=%s;weights=%s", o->operand[1], o->operand[0], o->weights);
    basin_record_bytes(r, "bytes|size", (int64_t)file.st_size);
}

static basin_status run_export(void *context, basin_error *error) {
    export_options *o = context;
    BASIN_AT_EXIT(close_image) basin_image_model *model = NULL;
    const char *path = o->operand[1];
    bool same;
    if (!basin_text_ends(path, ".safetensors"))
        return basin_usage(error, "%s: needs a name that ends in .safetensors", path);
    BASIN_TRY(basin_file_same(&same, o->operand[0], path, error));
    if (same) return basin_usage(error, "%s would overwrite itself", path);
    BASIN_TRY(basin_backend_open(&o->compute, &(basin_compute){.threads = 1}, error));
    BASIN_TRY(basin_image_open(&model, o->operand[0], o->compute, error));
    BASIN_TRY(basin_image_write(path, model, basin_option_dtype(o->weights), error));
    if (o->quiet && !o->json) return BASIN_OK;
    return basin_record_print(o->json, put_export, o, error);
}

const basin_command basin_command_image_export = {BASIN_COMMAND("image export", export_table),
                                                  .run = run_export};
