/* basin text generate: text that goes on from a prompt, as it comes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/try.h"
#include "basin/tasks/text.h"
#include "cli/command.h"
#include "cli/watch.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "view/svg.h"

typedef struct options {
    const char *prompt, *prompt_file, *svg, *backend, *products, *dtype;
    int64_t tokens, top_k, seed, threads;
    double temperature;
    bool energies, json, quiet;
} options;

static const options defaults = {
    .backend = "cpu", .products = "f32", .tokens = 500, .temperature = 0.8};

static const basin_option table[] = {
    BASIN_TEXT(options, prompt, 'p', "prompt", "TEXT",
               "What the text begins with [a line end]; of a model of token ids, numbers.",
               .needs = "prompt-file="),
    BASIN_TEXT(options, prompt_file, 0, "prompt-file", "FILE",
               "The same from a file (.npy: token ids); - for standard input."),
    BASIN_INTEGER(options, tokens, "tokens", "N", 0, 1 << 30,
                  "How many tokens follow; 0: look at the prompt alone."),
    BASIN_REAL(options, temperature, "temperature", "X", 0, 1000,
               "Below 1 the likely becomes likelier; 0: always the likeliest token.",
               .needs = "tokens!=0"),
    BASIN_INTEGER(options, top_k, "top-k", "K", 0, 1 << 24,
                  "Draw among the K likeliest tokens; 0: among all.",
                  .needs = "tokens!=0 temperature!=0"),
    BASIN_OPTION_SEED_FOR(options, "tokens!=0 temperature!=0"),
    BASIN_FLAG(options, energies, 0, "energies",
               "A line for each token instead: its surprise (-log p) and, of an NRGPT, its energy "
               "before the first and after the last step."),
    BASIN_TEXT(options, svg, 0, "svg", "FILE",
               "Write a picture (SVG) of the energy of each token of an NRGPT.", .writes = true),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

/* ---- telling of tokens ---- */

typedef struct teller {
    const options *options;
    basin_json json;
    char *text; /* all of it, for JSON */
    size_t length, room;
    double *place, *start, *end; /* [points] energies, for the plot */
    size_t points, points_room[3];
    bool failed; /* for want of memory */
} teller;

static double energy_at(const basin_text_token *t, int64_t step) {
    return t->energy[2 * step] + t->energy[2 * step + 1];
}

static void keep_text(teller *k, const basin_text_token *t) {
    if (!basin_array_reserve((void **)&k->text, &k->room, k->length + t->length + 1, 1)) {
        k->failed = true;
        return;
    }
    memcpy(k->text + k->length, t->text, t->length);
    k->length += t->length;
    k->text[k->length] = 0;
}

static void keep_energy(teller *k, const basin_text_token *t) {
    double **list[] = {&k->place, &k->start, &k->end};
    double value[] = {(double)t->place, energy_at(t, 0), energy_at(t, t->steps)};
    for (int i = 0; i < 3; i++) {
        if (!basin_array_reserve((void **)list[i], &k->points_room[i], k->points + 1,
                                 sizeof **list[i])) {
            k->failed = true;
            return;
        }
        (*list[i])[k->points] = value[i];
    }
    k->points++;
}

/* Characters as they are, what does not print or is not UTF-8 as \n, \t, \\ or \x1b; returns the
 * columns that it takes, a character one. */
static int print_piece(const char *bytes, size_t length) {
    int columns = 0;
    for (size_t at = 0, count; at < length; at += count) {
        uint32_t point = 0;
        count = basin_text_character(&point, bytes + at, length - at);
        if (count && point >= 0x20 && !(point >= 0x7f && point < 0xa0) && point != '\\') {
            printf("%.*s", (int)count, bytes + at);
            columns++;
            continue;
        }
        count = 1;
        const char *escape = strchr("\nn\tt\\\\", point);
        if (point && escape)
            columns += printf("\\%c", escape[1]);
        else
            columns += printf("\\x%02x", (unsigned char)bytes[at]);
    }
    return columns;
}

static void print_token(const basin_text_token *t) {
    enum { WIDTH = 12 };
    printf("'");
    int width = 2 + print_piece(t->text, t->length);
    printf("'%*s", width < WIDTH ? WIDTH - width : 1, "");
}

static void print_line(const basin_text_token *t) {
    printf("%6lld %c ", (long long)t->place, t->given ? '.' : ' ');
    print_token(t);
    if (isfinite(t->surprise))
        printf(" %8.3f", t->surprise);
    else
        printf(" %8s", "-");
    if (t->steps)
        printf("  %9.3f to %9.3f  %9.3f %9.3f", energy_at(t, 0), energy_at(t, t->steps),
               t->energy[2 * t->steps], t->energy[2 * t->steps + 1]);
    printf("\n");
}

static void put_token(basin_json *json, const basin_text_token *t) {
    enum { TEXT = 400 };
    char text[TEXT];
    snprintf(text, sizeof text, "%.*s", (int)t->length, t->text);
    basin_json_object(json, NULL);
    basin_json_integer(json, "id", t->id);
    basin_json_text(json, "text", text);
    basin_json_boolean(json, "given", t->given);
    basin_json_number(json, "surprise", t->surprise);
    if (t->steps) {
        basin_json_array(json, "energy");
        for (int64_t i = 0; i <= t->steps; i++) basin_json_number(json, NULL, energy_at(t, i));
        basin_json_end(json);
    }
    basin_json_end(json);
}

/* Text goes out as it comes, so that a reader sees it grow. */
static bool tell(void *context, const basin_text_token *t) {
    teller *k = context;
    if (k->options->svg && t->steps) keep_energy(k, t);
    if (k->options->json) {
        keep_text(k, t);
        if (k->options->energies) put_token(&k->json, t);
        return !k->failed;
    }
    if (k->options->energies)
        print_line(t);
    else
        fwrite(t->text, 1, t->length, stdout);
    return fflush(stdout) == 0 && !k->failed;
}

/* ---- what stands around them ---- */

static void begin(teller *k, const basin_text_model *model) {
    const options *o = k->options;
    if (o->json) {
        k->json = basin_json_begin(stdout);
        if (o->energies) basin_json_array(&k->json, "tokens");
    } else if (o->energies)
        printf("%6s   %-12s %8s%s\n", "place", "token", "surprise",
               basin_text_has_energy(model) ? "  energy: start       end  attention feed-forward"
                                            : "");
}

static void end(teller *k, const basin_text_generated *r) {
    const options *o = k->options;
    double speed = r->seconds > 0 ? (double)r->tokens / r->seconds : NAN;
    if (o->json) {
        if (o->energies) basin_json_end(&k->json);
        basin_json_text(&k->json, "text", k->text ? k->text : "");
        basin_json_integer(&k->json, "prompt_tokens", r->prompt);
        basin_json_integer(&k->json, "prompt_tokens_cropped", r->cropped);
        basin_json_integer(&k->json, "generated", r->tokens);
        basin_json_number(&k->json, "mean_surprise", r->surprise);
        basin_json_number(&k->json, "tokens_per_second", speed);
        basin_json_end(&k->json);
        return;
    }
    if (!o->energies) printf("\n");
    fflush(stdout);
    if (!o->quiet && r->tokens)
        basin_say("basin: %lld tokens, %.0f per second; mean surprise %.3f nats",
                  (long long)r->tokens, speed, r->surprise);
}

static basin_status draw(const teller *k, basin_error *error) {
    basin_writer writer;
    basin_plot_line line[] = {
        {.name = "before the first step",
         .x = k->place,
         .y = k->start,
         .count = (int64_t)k->points,
         .form = BASIN_PLOT_DASHED},
        {.name = "after the last step", .x = k->place, .y = k->end, .count = (int64_t)k->points}};
    basin_plot plot = {.title = "Energy of each token",
                       .x_label = "place in the text",
                       .y_label = "energy",
                       .line = line,
                       .lines = 2,
                       .x_whole = true};
    basin_status status = basin_writer_create(&writer, k->options->svg, error);
    if (status) return status;
    basin_plot_write(writer.file, &plot);
    return basin_writer_commit(&writer, error);
}

/* ---- the command ---- */

static basin_status generate(const options *o, basin_text_model *model, const basin_text *prompt,
                             const basin_watch *watch, basin_error *error) {
    teller k = {.options = o};
    basin_text_generated result;
    bool has_energy = basin_text_has_energy(model);
    basin_text_generation wish = {.tokens = o->tokens,
                                  .temperature = o->temperature,
                                  .top_k = o->top_k,
                                  .seed = (uint64_t)o->seed,
                                  .energies = o->svg || (o->energies && has_energy),
                                  .tell = tell,
                                  .context = &k,
                                  .watch = watch};
    if (o->energies && !has_energy && !o->quiet)
        basin_say("basin: note: a GPT has no energy; printing surprisal only");
    begin(&k, model);
    basin_status status = basin_text_generate(&result, model, prompt, &wish, error);
    if (!status && k.failed)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for what was generated");
    if (!status) end(&k, &result);
    if (!status && o->svg) status = draw(&k, error);
    free(k.text);
    free(k.place);
    free(k.start);
    free(k.end);
    return status;
}

/* Of --prompt-file the last line end is left out: editors add it. */
static basin_status read_prompt(basin_text *prompt, const options *o, basin_error *error) {
    *prompt = (basin_text){.bytes = o->prompt ? basin_string_copy(o->prompt) : NULL};
    if (o->prompt && !prompt->bytes) return basin_fail_memory(error, "the prompt");
    if (prompt->bytes) prompt->length = strlen(prompt->bytes);
    if (!o->prompt_file) return BASIN_OK;
    BASIN_TRY(basin_text_read(prompt, &o->prompt_file, 1, error));
    bool line = prompt->bytes && prompt->length > 1 && prompt->bytes[prompt->length - 1] == '\n';
    if (line) prompt->length--;
    return BASIN_OK;
}

static basin_status open_and_generate(const options *o, const char *path, const basin_text *prompt,
                                      const basin_watch *watch, basin_error *error) {
    basin_backend *backend;
    basin_text_model *model;
    BASIN_TRY(basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error));
    basin_status status = basin_text_open(&model, path, backend, error);
    if (!status) status = generate(o, model, prompt, watch, error);
    basin_text_close(model);
    basin_backend_close(backend);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_cli_watch watch;
    basin_text prompt;
    (void)operands;
    if (read_prompt(&prompt, o, &error)) return basin_report(&error);
    basin_cli_watch_begin(&watch, o->quiet);
    basin_status status = open_and_generate(o, operand[0], &prompt, &watch.watch, &error);
    basin_cli_watch_end(&watch);
    basin_text_free(&prompt);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_text_generate = {
    .name = "text generate",
    .summary = "Write text that goes on from a prompt",
    .operands = "MODEL",
    .operands_least = 1,
    .operands_most = 1,
    .text = "Prompt and continuation are printed as they come. The same model, prompt and --seed "
            "give the same text on the same kind of processor. Of a prompt that is longer than the "
            "context the end is seen, which is said; a character that the model does not know is "
            "an error.",
    .example = "  basin text generate shakespeare.safetensors --prompt 'ROMEO:' --tokens 300\n"
               "  basin text generate shakespeare.safetensors -p 'To be' --energies --svg e.svg\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
