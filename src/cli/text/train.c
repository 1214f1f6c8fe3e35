/* basin text train: a model that predicts the next token of a text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/text.h"
#include "cli/training.h"
#include "io/json_writer.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    basin_training_flags training;
    const char *validation_text, *backend, *products, *dtype;
    double validation;
    int64_t threads;
    bool json, quiet;
} options;

static const options defaults = {
    .training = BASIN_TRAINING_DEFAULT, .backend = "cpu", .products = "f32", .validation = 0.1};

static const basin_option table[] = {
    BASIN_TRAINING_OPTIONS(options),
    BASIN_OPTION_DIVIDE(options, training),
    BASIN_OPTIONS_START(options),
    BASIN_REAL(options, validation, "validation", "SHARE", 0, 0.5,
               "The last part of the text, which is scored after every epoch and not trained on; "
               "its best epoch is kept. 0: none.",
               .needs = "validation-text="),
    BASIN_TEXT(options, validation_text, 0, "validation-text", "FILE",
               "Score this text in place of a part of the other."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

/* What a run reads. */
typedef struct input {
    basin_text train, validation;
} input;

static void input_free(input *in) {
    basin_text_free(&in->train);
    basin_text_free(&in->validation);
}

static basin_status read_input(input *in, const options *o, const char *const *path, int paths,
                               basin_error *error) {
    basin_status status = basin_text_read(&in->train, path, paths, error);
    if (status || !o->validation_text) return status;
    return basin_text_read(&in->validation, &o->validation_text, 1, error);
}

/* Without --preset or --config, a run that begins with a model has its settings. */
static basin_status fit(const options *o, basin_error *error) {
    if (!o->training.from || o->start.preset || o->start.config) return BASIN_OK;
    return basin_text_fit(o->settings, o->training.from, error);
}

/* Trains, or with --print-config tries what training would take. */
static basin_status train(basin_outcome *outcome, const options *o, const input *in,
                          basin_error *error) {
    basin_text_data data = {.train = in->train,
                            .validation = in->validation,
                            .hold_out = in->validation.length ? 0 : o->validation};
    basin_training_work work;
    basin_status status =
        basin_training_open(&work, &o->training, o->backend, o->threads, o->products, o->dtype,
                            o->quiet, o->start.print_config, error);
    if (status) return status;
    status = basin_text_train(NULL, outcome, o->settings, &data, &work.training, error);
    basin_training_close(&work);
    return status;
}

/* Bytes, or tokens, that were trained on. */
static int64_t seen_of(const options *o, const input *in) {
    return (int64_t)basin_text_cut(&in->train, in->validation.length ? 0 : o->validation);
}

static void print_json(const basin_outcome *r, const options *o, const input *in) {
    basin_json json = basin_json_begin(stdout);
    basin_training_fields(&json, r, &o->training, seen_of(o, in),
                          in->train.id ? "tokens" : "bytes");
    basin_json_object(&json, "validation");
    for (int i = 0; i < r->best.measures; i++)
        basin_json_number(&json, r->best.measure[i].name, r->best.measure[i].value);
    basin_json_end(&json);
    basin_json_end(&json);
}

static void print_text(const basin_outcome *r, const options *o, const input *in) {
    double loss = basin_score_get(&r->best, "validation_loss");
    double bits = basin_score_get(&r->best, "validation_bits");
    basin_training_line(r, &o->training, "", seen_of(o, in), in->train.id ? "tokens" : "bytes",
                        "tokens");
    if (isfinite(loss)) printf("; validation loss %.4f", loss);
    if (isfinite(bits)) printf(", %.3f bits per byte", bits);
    if (r->best_epoch) printf(" (epoch %lld)", (long long)r->best_epoch);
    printf("\n");
}

static int print(const basin_outcome *outcome, const options *o, const input *in) {
    if (o->start.print_config) return basin_print_config(o->settings, outcome);
    if (basin_training_is_told(outcome, o->json))
        (o->json ? print_json : print_text)(outcome, o, in);
    return basin_training_end(outcome, &o->training);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_outcome outcome;
    input in = {0};
    if (!operands && o->start.print_config) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_text_train, "wants TEXT...");
    basin_status status = fit(o, &error);
    if (!status) status = read_input(&in, o, (const char *const *)operand, operands, &error);
    if (!status) status = train(&outcome, o, &in, &error);
    int code = status ? basin_report(&error) : print(&outcome, o, &in);
    input_free(&in);
    return code;
}

const basin_command basin_command_text_train = {
    .name = "text train",
    .summary = "Train a model of text: a causal Energy Transformer (NRGPT) or a GPT",
    .operands = "TEXT...",
    .operands_least = 0,
    .operands_most = 1000,
    .text =
        "TEXT is files, plain or packed by gzip or zstd, folders of .txt, or - for standard input; "
        "several are one text; or one .npy file, an array of token ids. The model learns to "
        "predict "
        "the next token: a character, a byte (--tokens), or an id. The end of the text is kept "
        "from training and scored after "
        "every epoch (--validation). The model file holds settings and characters. A checkpoint "
        "stands beside it while it is trained: after a kill, the same command with --resume goes "
        "on. --print-config with TEXT trains for a moment and tells parameters, memory and time. "
        "published-*: sizes of NRGPT's released code; rival-gpt: what it is compared with.",
    .example = "  basin text train shakespeare.txt -o shakespeare.safetensors\n"
               "  basin text train shakespeare.txt --preset small-gpt -o gpt.safetensors\n"
               "  basin text train books/ --tokens bytes --context 128\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof(options),
    .task = "text",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .ranks_at = offsetof(options, training.ranks),
    .run_old = run,
};
