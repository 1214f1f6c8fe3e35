/* basin text train, eval and generate. */
#include "basin/tasks/text.h"
#include "cli/cli.h"

/* ---- train ---- */

static const basin_option train_table[] = {
    BASIN_TRAIN_OPTIONS(NULL),
    BASIN_REAL(validation, "validation", "SHARE", 0, 0.5,
               .needs = "validation-text=", .initial = 0.1),
    BASIN_TEXT(validation_text, 0, "validation-text", "FILE"),
    BASIN_OPTIONS_END,
};

/* Reads the texts before signals are caught: they end that at once. Without --preset or --config, a
 * run that begins with a model has its settings. */
static basin_status prepare(basin_train_job *job, basin_error *error) {
    basin_args *o = job->o;
    basin_text_data *data;
    BASIN_TRY(BASIN_NEW(&data, 1, "a run", error));
    job->more = data;
    if (o->training.from && !o->start.preset && !o->start.config)
        BASIN_TRY(basin_text_fit(o->settings, o->training.from, error));
    BASIN_TRY(basin_text_read(&data->train, (const char *const *)o->operand, o->operands, error));
    if (o->validation_text)
        BASIN_TRY(basin_text_read(&data->validation, &o->validation_text, 1, error));
    data->hold_out = data->validation.length ? 0 : o->validation;
    return BASIN_OK;
}

static basin_status train(basin_train_job *job, basin_error *error) {
    const basin_text_data *data = job->more;
    job->things = data->train.id ? "tokens" : "bytes";
    job->count = (int64_t)basin_text_cut(&data->train, data->hold_out);
    return basin_text_train(NULL, &job->outcome, job->o->settings, data, &job->o->training, error);
}

static void close_training(basin_train_job *job) {
    basin_text_data *data = job->more;
    if (!data) return;
    basin_text_free(&data->train);
    basin_text_free(&data->validation);
    free(data);
}

const basin_command basin_command_text_train = {
    "text train", train_table,
    BASIN_TRAINS("text", .prepare = prepare, .train = train, .close = close_training,
                 .validates = true)};

/* ---- eval ---- */

static const basin_option eval_table[] = {
    BASIN_CHOICE(part, "part", "auto|all|validation|train", .text = "auto"),
    BASIN_INTEGER(stride, "stride", "TOKENS", 0, 1 << 20),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12),
    BASIN_INTEGER(batch, "batch", "N", 0, 1 << 20),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTIONS_LAST,
};

static const char *const part_name[] = {"auto", "all", "validation", "train"};

typedef struct evaluation {
    basin_args *o;
    basin_text text;
    basin_text_model *model;
    basin_text_scores scores;
} evaluation;

static void put_scores(basin_record *r, const void *context) {
    const evaluation *e = context;
    const basin_text_scores *s = &e->scores;
    basin_record_text(r, "part", part_name[s->part]);
    basin_record_flag(r, ".trained_on", s->trained_on);
    if (s->trained_on) basin_record_note(r, "it was trained on: this is no test");
    basin_record_integer(r, s->bytes ? "bytes" : ".bytes", s->bytes);
    basin_record_integer(r, "tokens", s->tokens);
    basin_record_integer(r, "windows", s->windows);
    basin_record_number(r, "loss", "%.4f nats per token", s->loss);
    basin_record_number(r, "perplexity", "%.3f", s->perplexity);
    basin_record_number(r, "bits_per_token", "%.4f", s->loss / log(2));
    basin_record_number(r, isfinite(s->bits) ? "bits_per_byte" : ".bits_per_byte", "%.4f", s->bits);
    basin_record_number(r, "accuracy", "%.4f", s->accuracy);
    if (basin_text_about(e->model).energies) {
        basin_record_number(r, "energy|energy per token at the end", "%.3f", s->energy);
        basin_record_number(r, "descent|below the start by", "%.3f", s->descent);
        basin_record_number(r, "rises|share of steps that rose", "%.4f", s->rises);
    }
    basin_record_numbers(r, "position_loss", s->position_loss, s->context);
}

/* Read before signals are caught: they end it at once. */
static basin_status read_texts(void *context, basin_error *error) {
    evaluation *e = context;
    return basin_text_read(&e->text, (const char *const *)e->o->operand + 1, e->o->operands - 1,
                           error);
}

static basin_status score(void *context, basin_error *error) {
    evaluation *e = context;
    basin_args *o = e->o;
    int part = 0;
    while (strcmp(part_name[part], o->part) != 0) part++;
    basin_text_scoring scoring = {.part = (basin_text_part)part,
                                  .stride = o->stride,
                                  .limit = o->limit,
                                  .batch = o->batch,
                                  .watch = &o->watch.watch};
    BASIN_TRY(basin_text_open(&e->model, o->operand[0], o->compute, error));
    return basin_text_score(&e->scores, e->model, &e->text, &scoring, error);
}

static void close_eval(void *context) {
    evaluation *e = context;
    basin_text_scores_free(&e->scores);
    basin_text_close(e->model);
    basin_text_free(&e->text);
}

const basin_command basin_command_text_eval = {"text eval", eval_table,
                                               BASIN_USES(evaluation, .prepare = read_texts,
                                                          .work = score, .print = put_scores,
                                                          .close = close_eval)};

/* ---- generate ---- */

static const basin_option generate_table[] = {
    BASIN_TEXT(prompt, 'p', "prompt", "TEXT"),
    BASIN_INTEGER(tokens, "tokens", "N", 0, 1 << 30, .initial = 500),
    BASIN_REAL(temperature, "temperature", "X", 0, 1000, .needs = "tokens!=0", .initial = 0.8),
    BASIN_INTEGER(top_k, "top-k", "K", 0, 1 << 24, .needs = "tokens!=0 temperature!=0"),
    BASIN_OPTION_SEED_FOR("tokens!=0 temperature!=0"),
    BASIN_FLAG(energies, "energies"),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTIONS_LAST,
};

/* Prints what comes; keeps what is printed at the end. */

typedef struct teller {
    basin_args *o;
    basin_text_model *model;
    basin_text prompt;
    basin_record *r; /* of JSON */
    FILE *whole;     /* all of it, for JSON, in `text` */
    char *text;
    size_t length;
    bool failed; /* out of memory */
} teller;

static double energy_at(const basin_text_token *t, int64_t step) {
    return t->energy[2 * step] + t->energy[2 * step + 1];
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

static void print_line(const basin_text_token *t) {
    enum { WIDTH = 12 };
    printf("%6lld %c '", (long long)t->place, t->given ? '.' : ' ');
    int width = 2 + print_piece(t->text, t->length);
    printf("'%*s", width < WIDTH ? WIDTH - width : 1, "");
    if (isfinite(t->surprise))
        printf(" %8.3f", t->surprise);
    else
        printf(" %8s", "-");
    if (t->steps)
        printf("  %9.3f to %9.3f  %9.3f %9.3f", energy_at(t, 0), energy_at(t, t->steps),
               t->energy[2 * t->steps], t->energy[2 * t->steps + 1]);
    printf("\n");
}

static void put_token(basin_record *r, const basin_text_token *t) {
    basin_record_row(r);
    basin_record_integer(r, "id", t->id);
    basin_record_format(r, "text", "%.*s", (int)t->length, t->text);
    basin_record_flag(r, "given", t->given);
    basin_record_number(r, "surprise", "%g", t->surprise);
    if (t->steps) {
        basin_record_list(r, "energy");
        for (int64_t i = 0; i <= t->steps; i++) basin_record_number(r, NULL, "%g", energy_at(t, i));
        basin_record_end(r);
    }
}

/* Text goes out as it comes, so that a reader sees it grow. */
static bool print_next(void *context, const basin_text_token *t) {
    teller *k = context;
    if (k->o->json) {
        if (fwrite(t->text, 1, t->length, k->whole) != t->length) k->failed = true;
        if (k->o->energies) put_token(k->r, t);
        return !k->failed;
    }
    if (k->o->energies)
        print_line(t);
    else
        fwrite(t->text, 1, t->length, stdout);
    return fflush(stdout) == 0 && !k->failed;
}

static basin_status begin(teller *k, basin_error *error) {
    basin_args *o = k->o;
    if (o->json) {
        k->r = basin_record_open(stdout, BASIN_FORM_JSON);
        k->whole = open_memstream(&k->text, &k->length);
        if (!k->r || !k->whole) return basin_fail_memory(error, "a result");
        if (o->energies) basin_record_table(k->r, "tokens", NULL);
    } else if (o->energies)
        printf("%6s   %-12s %8s%s\n", "place", "token", "surprise",
               basin_text_about(k->model).energies
                   ? "  energy: start       end  attention feed-forward"
                   : "");
    return BASIN_OK;
}

static basin_status end(teller *k, const basin_text_generated *g, basin_error *error) {
    basin_args *o = k->o;
    basin_record *r = k->r;
    double speed = g->seconds > 0 ? (double)g->tokens / g->seconds : NAN;
    if (o->json) {
        if (o->energies) basin_record_end(r);
        fflush(k->whole);
        basin_record_text(r, "text", k->text ? k->text : "");
        basin_record_integer(r, "prompt_tokens", g->prompt);
        basin_record_integer(r, "prompt_tokens_cropped", g->cropped);
        basin_record_integer(r, "generated", g->tokens);
        basin_record_number(r, "mean_surprise", "%g", g->surprise);
        basin_record_number(r, "tokens_per_second", "%g", speed);
        k->r = NULL;
        return basin_record_close(r, error);
    }
    if (!o->energies) printf("\n");
    fflush(stdout);
    if (!o->quiet && g->tokens)
        basin_say("basin: %lld tokens, %.0f per second; mean surprisal %.3f nats",
                  (long long)g->tokens, speed, g->surprise);
    return BASIN_OK;
}

static basin_status read_prompt(void *context, basin_error *error) {
    const basin_args *o = ((teller *)context)->o;
    basin_text *prompt = &((teller *)context)->prompt;
    if (o->prompt && !(prompt->bytes = basin_string_copy(o->prompt)))
        return basin_fail_memory(error, "the prompt");
    if (o->prompt) prompt->length = strlen(prompt->bytes);
    return BASIN_OK;
}

static basin_status generate(void *context, basin_error *error) {
    teller *k = context;
    basin_args *o = k->o;
    basin_text_generated result;
    BASIN_TRY(basin_text_open(&k->model, o->operand[0], o->compute, error));
    bool has_energy = basin_text_about(k->model).energies;
    basin_text_generation wish = {.tokens = o->tokens,
                                  .temperature = o->temperature,
                                  .top_k = o->top_k,
                                  .seed = (uint64_t)o->seed,
                                  .energies = o->energies && has_energy,
                                  .tell = print_next,
                                  .context = k,
                                  .watch = &o->watch.watch};
    if (o->energies && !has_energy) basin_note(o, "a GPT has no energy; printing surprisal only");
    BASIN_TRY(begin(k, error));
    BASIN_TRY(basin_text_generate(&result, k->model, &k->prompt, &wish, error));
    if (k->failed) return basin_fail_memory(error, "what was generated");
    return end(k, &result, error);
}

static void close_generate(void *context) {
    teller *k = context;
    if (k->r) basin_record_close(k->r, NULL);
    if (k->whole) fclose(k->whole);
    free(k->text);
    basin_text_close(k->model);
    basin_text_free(&k->prompt);
}

const basin_command basin_command_text_generate = {
    "text generate", generate_table,
    BASIN_USES(teller, .prepare = read_prompt, .work = generate, .close = close_generate)};
