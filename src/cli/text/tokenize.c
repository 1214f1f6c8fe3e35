/* basin text tokenize: makes a tokenizer, or shows what one makes of a text. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "basin/tasks/tokenizer.h"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/text/piece.h"
#include "cli/watch.h"
#include "io/json_writer.h"

enum { VOCABULARY = 1024 };

typedef struct options {
    const char *tokens, *tokenizer, *text, *output;
    int64_t vocabulary, show;
    bool ids, decode, skip_unknown, json, quiet;
} options;

static const options defaults = {.show = 20};

static const basin_option table[] = {
    BASIN_TEXT(options, tokenizer, 0, "tokenizer", "FILE", "Use this tokenizer.json."),
    BASIN_CHOICE(
        options, tokens, "tokens", "characters|bytes|bpe",
        "Make a tokenizer of TEXT: its characters, bytes, or what byte-pair encoding finds "
        "in it [bpe, where there is no --tokenizer].",
        .needs = "tokenizer="),
    BASIN_INTEGER(options, vocabulary, "vocabulary", "N", 0, 1 << 24,
                  "How many tokens byte-pair encoding has; 0: 1024.",
                  .needs = "tokenizer= tokens=|bpe"),
    BASIN_TEXT(options, output, 'o', "output", "FILE",
               "Write the tokenizer that is made there, as tokenizer.json.", .writes = true,
               .needs = "tokenizer="),
    BASIN_TEXT(options, text, 't', "text", "STRING", "What is cut into tokens, in place of TEXT."),
    BASIN_INTEGER(options, show, "show", "N", 0, 1e9,
                  "Print the first N tokens with their numbers.", .needs = "ids=off decode=off"),
    BASIN_FLAG(options, ids, 0, "ids", "Print nothing but the numbers of all tokens.",
               .needs = "decode=off json=off"),
    BASIN_FLAG(options, decode, 0, "decode",
               "The other way round: TEXT is numbers, and their text is printed."),
    BASIN_FLAG(options, skip_unknown, 0, "skip-unknown",
               "Leave characters without a token out, and count them; else they are errors.",
               .needs = "decode=off"),
    BASIN_OPTION_JSON_FOR(options, "decode=off"),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

/* What a run holds. */
typedef struct work {
    const options *o;
    basin_tokenizer *tokenizer;
    char *read;       /* the operands' text */
    const char *text; /* what is cut into tokens */
    size_t read_length, length;
    int32_t *id;
    int64_t count, skipped;
} work;

static void work_free(work *w) {
    basin_tokenizer_free(w->tokenizer);
    free(w->read);
    free(w->id);
}

static basin_status make(work *w, const basin_watch *watch, basin_error *error) {
    const char *tokens = w->o->tokens ? w->o->tokens : "bpe";
    int64_t vocabulary = w->o->vocabulary ? w->o->vocabulary : VOCABULARY;
    if (!strcmp(tokens, "bytes")) return basin_tokenizer_bytes(&w->tokenizer, error);
    if (!strcmp(tokens, "characters"))
        return basin_tokenizer_characters(&w->tokenizer, w->read, w->read_length, error);
    return basin_tokenizer_train(&w->tokenizer, w->read, w->read_length, vocabulary, watch, error);
}

static basin_status prepare(work *w, char **path, int paths, const basin_watch *watch,
                            basin_error *error) {
    basin_status status = BASIN_OK;
    if (paths)
        status =
            basin_text_read(&w->read, &w->read_length, (const char *const *)path, paths, error);
    if (!status && w->o->tokenizer)
        status = basin_tokenizer_open(&w->tokenizer, w->o->tokenizer, error);
    else if (!status)
        status = make(w, watch, error);
    if (!status && w->o->output) status = basin_tokenizer_write(w->o->output, w->tokenizer, error);
    w->text = w->o->text ? w->o->text : w->read;
    w->length = w->o->text ? strlen(w->o->text) : w->read_length;
    return status;
}

/* ---- numbers to text ---- */

/* Numbers between blanks, commas or brackets. */
static basin_status read_ids(work *w, basin_error *error) {
    const char *at = w->text, *between = " \t\r\n,[]";
    w->id = malloc((w->length / 2 + 1) * sizeof *w->id);
    if (!w->id) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the numbers");
    for (at += strspn(at, between); *at; at += strspn(at, between)) {
        int64_t id;
        const char *word = at;
        bool number = basin_integer_read(&id, &at) && id >= INT32_MIN && id <= INT32_MAX;
        if (!number || (*at && !strchr(between, *at)))
            return basin_fail(error, BASIN_BAD_VALUE, "'%.*s' is no number of a token",
                              (int)strcspn(word, between), word);
        w->id[w->count++] = (int32_t)id;
    }
    return BASIN_OK;
}

static basin_status decode(work *w, basin_error *error) {
    char *text;
    size_t length;
    basin_status status = read_ids(w, error);
    if (!status)
        status = basin_tokenizer_decode(&text, &length, w->tokenizer, w->id, w->count, error);
    if (status) return status;
    fwrite(text, 1, length, stdout);
    free(text);
    return BASIN_OK;
}

/* ---- what a text became ---- */

typedef struct facts {
    int64_t characters, used; /* distinct tokens */
} facts;

static basin_status gather(facts *f, const work *w, basin_error *error) {
    size_t size = (size_t)basin_tokenizer_size(w->tokenizer);
    char *seen = calloc(size, 1);
    if (!seen) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to count tokens");
    *f = (facts){0};
    for (int64_t i = 0; i < w->count; i++) {
        f->used += !seen[w->id[i]];
        seen[w->id[i]] = 1;
    }
    for (size_t i = 0; i < w->length; i++) f->characters += (w->text[i] & 0xc0) != 0x80;
    free(seen);
    return BASIN_OK;
}

static void print_piece(char line[BASIN_PIECE_TEXT], const work *w, int32_t id) {
    size_t length;
    const char *bytes = basin_tokenizer_piece(&length, w->tokenizer, id);
    basin_piece_print(line, bytes, length);
}

static double each(int64_t things, int64_t tokens) {
    return tokens ? (double)things / (double)tokens : 0;
}

static int64_t shown(const work *w) { return w->count < w->o->show ? w->count : w->o->show; }

static void print_json(const work *w, const facts *f) {
    char piece[BASIN_PIECE_TEXT];
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "tokenizer", basin_tokenizer_kind(w->tokenizer));
    basin_json_integer(&json, "vocabulary", basin_tokenizer_size(w->tokenizer));
    basin_json_integer(&json, "bytes", (int64_t)w->length);
    basin_json_integer(&json, "characters", f->characters);
    basin_json_integer(&json, "tokens", w->count);
    basin_json_integer(&json, "skipped", w->skipped);
    basin_json_integer(&json, "used", f->used);
    basin_json_number(&json, "characters_per_token", each(f->characters, w->count));
    basin_json_array(&json, "first");
    for (int64_t i = 0; i < shown(w); i++) {
        print_piece(piece, w, w->id[i]);
        basin_json_object(&json, NULL);
        basin_json_integer(&json, "id", w->id[i]);
        basin_json_text(&json, "piece", piece);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static bool print_text(const work *w, const facts *f) {
    char piece[BASIN_PIECE_TEXT];
    basin_table rows = {.layout = "rl"};
    printf("%s, %lld tokens\n", basin_tokenizer_kind(w->tokenizer),
           (long long)basin_tokenizer_size(w->tokenizer));
    printf("  text           %lld characters, %zu bytes\n", (long long)f->characters, w->length);
    printf("  in tokens      %lld, %.2f characters each; %lld distinct\n", (long long)w->count,
           each(f->characters, w->count), (long long)f->used);
    if (w->skipped) printf("  left out       %lld without a token\n", (long long)w->skipped);
    if (!shown(w)) return true;
    basin_table_add(&rows, "id");
    basin_table_add(&rows, "token");
    for (int64_t i = 0; i < shown(w); i++) {
        print_piece(piece, w, w->id[i]);
        basin_table_add(&rows, "%d", w->id[i]);
        basin_table_add(&rows, "'%s'", piece);
    }
    bool ok = basin_table_print(&rows, stdout, 2);
    if (ok && shown(w) < w->count) printf("  and %lld more\n", (long long)(w->count - shown(w)));
    return ok;
}

static void print_ids(const work *w) {
    for (int64_t i = 0; i < w->count; i++) printf("%s%d", i ? " " : "", w->id[i]);
    printf("\n");
}

static basin_status encode(work *w, basin_error *error) {
    facts f;
    basin_status status =
        basin_tokenizer_encode(&w->id, &w->count, w->o->skip_unknown ? &w->skipped : NULL,
                               w->tokenizer, w->text, w->length, error);
    if (!status) status = gather(&f, w, error);
    if (status) return status;
    if (w->o->ids) {
        print_ids(w);
        if (w->skipped && !w->o->quiet)
            basin_say("basin: note: %lld without a token were left out", (long long)w->skipped);
    } else if (w->o->json) {
        print_json(w, &f);
    } else if (!print_text(w, &f)) {
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory to print a table");
    }
    return status;
}

/* ---- usage ---- */

/* What does not go together; NULL where all is well. */
static const char *wrong_usage(const options *o, int operands) {
    bool bytes = o->tokens && !strcmp(o->tokens, "bytes");
    if (o->decode && !o->tokenizer && !bytes)
        return "--decode needs the --tokenizer of the numbers";
    if (!operands && !o->text) return "a TEXT is needed, or --text";
    if (!operands && !o->tokenizer && !bytes) return "a TEXT is needed to make a tokenizer of";
    if (operands && o->text && (o->tokenizer || bytes)) return "TEXT and --text: one is enough";
    return NULL;
}

static int run(const void *values, int operands, char **operand) {
    work w = {.o = values};
    basin_error error;
    basin_cli_watch watch;
    const char *wrong = wrong_usage(w.o, operands);
    if (wrong) return basin_report_usage(&basin_command_text_tokenize, "%s", wrong);
    basin_cli_watch_plain(&watch, w.o->quiet);
    basin_status status = prepare(&w, operand, operands, &watch.watch, &error);
    basin_cli_watch_end(&watch);
    if (!status) status = w.o->decode ? decode(&w, &error) : encode(&w, &error);
    if (!status && w.o->output && !w.o->quiet) basin_say("wrote %s", w.o->output);
    work_free(&w);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_text_tokenize = {
    .name = "text tokenize",
    .summary = "Make a tokenizer, or show what one makes of a text",
    .operands = "[TEXT...]",
    .operands_least = 0,
    .operands_most = 1000,
    .text = "TEXT is files, plain or packed by gzip or zstd, folders of .txt, or - for standard "
            "input. Tokenizers are files as Hugging Face's tokenizers reads and writes them "
            "(tokenizer.json); both give the same numbers. Read are those of byte-pair encoding, "
            "over bytes as GPT-2 and its successors have it or over characters; what a file asks "
            "for and Basin does not do is an error.",
    .example = "  basin text tokenize shakespeare.txt --vocabulary 4096 -o tokenizer.json\n"
               "  basin text tokenize --tokenizer tokenizer.json --text \"To be, or not to be\"\n"
               "  basin text tokenize --tokenizer tokenizer.json other.txt --json\n"
               "  basin text tokenize --tokenizer tokenizer.json other.txt --ids > ids\n"
               "  basin text tokenize --tokenizer tokenizer.json --decode ids\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
