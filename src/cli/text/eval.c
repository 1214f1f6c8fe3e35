/* basin text eval: how well a model predicts the next token of a text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/text.h"
#include "cli/command.h"
#include "cli/watch.h"
#include "io/json_writer.h"

typedef struct options {
    const char *part, *backend, *products, *dtype;
    int64_t stride, limit, batch, threads;
    bool json, quiet;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_CHOICE(options, part, "part", "auto|all|validation|train",
                 "Which part of the text that the model was trained on: what was kept from "
                 "training, what was not. auto: validation of that text, all of any other."),
    BASIN_INTEGER(options, stride, "stride", "TOKENS", 0, 1 << 20,
                  "From window to window; below the context only the last so many of a window "
                  "count, so that they have more before them. 0: the context."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only N windows, evenly spaced; 0: all."),
    BASIN_INTEGER(options, batch, "batch", "N", 0, 1 << 20,
                  "Windows at a time; 0: as many as in training."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static const char *const part_name[] = {"auto", "all", "validation", "train"};

static basin_text_part part_named(const char *name) {
    int part = 0;
    while (strcmp(part_name[part], name) != 0) part++;
    return (basin_text_part)part;
}

static void print_json(const basin_text_scores *s, const basin_text_model *model) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "part", part_name[s->part]);
    basin_json_boolean(&json, "trained_on", s->trained_on);
    basin_json_integer(&json, "bytes", s->bytes);
    basin_json_integer(&json, "tokens", s->tokens);
    basin_json_integer(&json, "windows", s->windows);
    basin_json_number(&json, "loss", s->loss);
    basin_json_number(&json, "perplexity", s->perplexity);
    basin_json_number(&json, "bits_per_token", s->loss / log(2));
    basin_json_number(&json, "bits_per_byte", s->bits);
    basin_json_number(&json, "accuracy", s->accuracy);
    if (basin_text_has_energy(model)) {
        basin_json_number(&json, "energy", s->energy);
        basin_json_number(&json, "descent", s->descent);
        basin_json_number(&json, "rises", s->rises);
    }
    basin_json_numbers(&json, "position_loss", s->position_loss, s->context);
    basin_json_end(&json);
}

/* Positions 1, 2, 3-4, 5-8, ..: the mean of each group. */
static void print_positions(const basin_text_scores *s) {
    printf("  loss by the place in a window of %lld tokens\n", (long long)s->context);
    for (int64_t first = 0, end = 1; first < s->context; first = end, end *= 2) {
        double sum = 0;
        int64_t count = 0, last = end < s->context ? end : s->context;
        for (int64_t n = first; n < last; n++)
            if (isfinite(s->position_loss[n])) sum += s->position_loss[n], count++;
        if (!count) continue;
        printf("    %5lld to %-5lld  %.4f\n", (long long)first + 1, (long long)last,
               sum / (double)count);
    }
}

static void print_text(const basin_text_scores *s, const basin_text_model *model) {
    static const char *const what[] = {"", "the text", "the part of it that was kept from training",
                                       "the part of it that was trained on"};
    printf("%lld tokens in %lld windows, %s\n", (long long)s->tokens, (long long)s->windows,
           what[s->part]);
    if (s->trained_on) printf("  it was trained on: this is no test\n");
    printf("  loss           %.4f nats per token\n", s->loss);
    printf("  perplexity     %.3f\n", s->perplexity);
    printf("  bits           %.4f per token", s->loss / log(2));
    if (isfinite(s->bits)) printf(", %.4f per byte", s->bits);
    printf("\n");
    printf("  accuracy       %.2f %% of tokens are the likeliest\n", 100 * s->accuracy);
    if (basin_text_has_energy(model))
        printf(
            "  energy         %.3f per token at the end, %.3f %s the start; it rose in %.1f %% of "
            "the steps\n",
            s->energy, fabs(s->descent), s->descent < 0 ? "above" : "below", 100 * s->rises);
    print_positions(s);
}

static basin_status evaluate(const options *o, basin_backend *backend, const char *path,
                             const basin_text *text, const basin_watch *watch, basin_error *error) {
    basin_text_model *model;
    basin_text_scores scores = {0};
    basin_text_scoring scoring = {.part = part_named(o->part),
                                  .stride = o->stride,
                                  .limit = o->limit,
                                  .batch = o->batch,
                                  .watch = watch};
    basin_status status = basin_text_open(&model, path, backend, error);
    if (!status) status = basin_text_score(&scores, model, text, &scoring, error);
    if (!status) (o->json ? print_json : print_text)(&scores, model);
    basin_text_scores_free(&scores);
    basin_text_close(model);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_backend *backend;
    basin_cli_watch watch;
    basin_text text;
    /* Read before signals are caught: they end it at once. */
    if (basin_text_read(&text, (const char *const *)operand + 1, operands - 1, &error))
        return basin_report(&error);
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status) {
        basin_cli_watch_begin(&watch, o->quiet);
        status = evaluate(o, backend, operand[0], &text, &watch.watch, &error);
        basin_cli_watch_end(&watch);
        basin_backend_close(backend);
    }
    basin_text_free(&text);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_text_eval = {
    .name = "text eval",
    .summary = "Score how well a model predicts the next token of a text",
    .operands = "MODEL TEXT...",
    .operands_least = 2,
    .operands_most = 1000,
    .text = "The mean cross entropy of the next token in nats, its perplexity, and bits a byte, "
            "which models with other tokens can be compared by; by the place in a window, too: the "
            "first tokens have little before them. Of an NRGPT also what its energy does on the "
            "way. Of the text that the model was trained on, only what it did not see is scored, "
            "unless --part says otherwise.",
    .example = "  basin text eval shakespeare.safetensors shakespeare.txt\n"
               "  basin text eval shakespeare.safetensors other.txt --stride 16 --json\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
