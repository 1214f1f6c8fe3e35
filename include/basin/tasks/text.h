/* Text: models that predict the next token of a text, a causal Energy Transformer (NRGPT) or a GPT:
 * train, score, generate. A token is a character, a byte, or a number that another program gave it.
 *
 *     basin_error error;
 *     basin_backend *backend;
 *     basin_text_model *model;
 *     basin_backend_open(&backend, NULL, &error);
 *     basin_text_open(&model, "model.safetensors", backend, &error);
 *     basin_text prompt = {.bytes = "ROMEO:", .length = 6};
 *     basin_text_generation wish = {.tokens = 200, .temperature = 0.8, .tell = print};
 *     basin_text_generate(NULL, model, &prompt, &wish, &error); */
#ifndef BASIN_TASKS_TEXT_H
#define BASIN_TASKS_TEXT_H

#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- texts ---- */

/* Bytes, or the numbers of tokens: one of the two. */
typedef struct basin_text {
    char *bytes; /* [length] */
    int32_t *id; /* [length] */
    size_t length;
} basin_text;

/* Reads files one behind the other, as `cat` would join them; basin_text_free it. A path is a file,
 * plain or packed by gzip or zstd; "-" for standard input. A byte-order mark at the start of a file
 * is left out; UTF-16, no text at all, and more than memory has room for are errors. Or one .npy
 * file, a one-dimensional array of integers: the numbers of tokens. */
BASIN_API basin_status basin_text_read(basin_text *text, const char *const *path, int count,
                                       basin_error *error);
BASIN_API void basin_text_free(basin_text *text);
/* How much of a text is left for training where this share of it is held out: bytes, cut between
 * characters, or tokens. */
BASIN_API size_t basin_text_cut(const basin_text *text, double hold_out);

/* ---- a model ---- */

/* It belongs to its backend, which must outlive it, and with it to one thread at a time. */
typedef struct basin_text_model basin_text_model;

BASIN_API basin_status basin_text_open(basin_text_model **model, const char *path,
                                       basin_backend *backend, basin_error *error);
BASIN_API void basin_text_close(basin_text_model *model);
BASIN_API basin_status basin_text_write(const char *path, basin_text_model *model,
                                        basin_error *error);
/* What it is. */
typedef struct basin_text_info {
    const basin_settings *settings; /* the model's */
    int64_t parameters;
    bool energies; /* whether it goes down an energy, as NRGPT does and a GPT does not */
} basin_text_info;
BASIN_API basin_text_info basin_text_about(const basin_text_model *model);

/* ---- training ---- */

typedef struct basin_text_data {
    basin_text train;
    basin_text validation; /* empty: `hold_out` of train */
    double hold_out; /* the last part of `train` that is scored instead of trained on, 0 to 0.5 */
} basin_text_data;

/* Gives every setting that was not set by its name (basin_settings_set) the value that it has in
 * the model file `from`, which training is to begin with. */
BASIN_API basin_status basin_text_fit(basin_settings *settings, const char *from,
                                      basin_error *error);
/* Trains a model; `model` NULL: only its file is wanted. Where the run was stopped, the model is
 * what it has learnt by then. The outcome's scores are validation_loss, in nats per token, and
 * validation_bits, in bits per byte (NaN where tokens are numbers). Items are tokens. */
BASIN_API basin_status basin_text_train(basin_text_model **model, basin_outcome *outcome,
                                        const basin_settings *settings, const basin_text_data *data,
                                        const basin_training *training, basin_error *error);

/* ---- scores ---- */

/* Which part of a text: all of it, or what training on that text did not see, or did. AUTO: what it
 * did not see where it is the text that the model was trained on, else all. */
typedef enum basin_text_part {
    BASIN_TEXT_AUTO,
    BASIN_TEXT_ALL,
    BASIN_TEXT_VALIDATION,
    BASIN_TEXT_TRAIN,
} basin_text_part;

typedef struct basin_text_scoring {
    basin_text_part part;
    int64_t stride; /* tokens from window to window; 0: the context, each token is scored once with
                       what its window has before it. Less: only the last `stride` of a window
                       count, so that they have more before them */
    int64_t limit;  /* windows, evenly spaced; 0: all */
    int64_t batch;  /* windows at a time; 0: as many as in training */
    const basin_watch *watch;
} basin_text_scoring;

typedef struct basin_text_scores {
    basin_text_part part;  /* what was scored */
    bool trained_on;       /* the text is that of training, and the part one that it saw */
    int64_t tokens, bytes; /* that were scored, and the text that they stand for */
    int64_t windows;
    double loss;            /* nats per token */
    double perplexity;      /* e to the loss */
    double bits;            /* per byte; NaN where tokens are numbers */
    double accuracy;        /* share of tokens that were the likeliest, 0 to 1 */
    int64_t context;        /* [context] positions in a window: */
    double *position_loss;  /* mean loss; NaN where none was scored */
    double energy, descent; /* of NRGPT: mean energy of a token at the end, and how far it went down
                               from the start; NaN of others */
    double rises;           /* of NRGPT: share of all steps of tokens in which it rose */
} basin_text_scores;

/* Free the scores with basin_text_scores_free. */
BASIN_API basin_status basin_text_score(basin_text_scores *scores, basin_text_model *model,
                                        const basin_text *text, const basin_text_scoring *scoring,
                                        basin_error *error);
BASIN_API void basin_text_scores_free(basin_text_scores *scores);

/* ---- generation ---- */

/* One token of a prompt or of what follows. */
typedef struct basin_text_token {
    int32_t id;
    const char *text; /* [length] bytes, perhaps a part of a character; where tokens are numbers,
                       * the number, behind a blank but for the first */
    size_t length;
    bool given;           /* of the prompt */
    int64_t place;        /* from 0, in prompt and continuation */
    double surprise;      /* -log p of the model, at temperature 1; NaN of the first */
    int64_t steps;        /* of energies; 0: none */
    const double *energy; /* [steps + 1, 2] attention and feed-forward, before each step, at the end
                           */
} basin_text_token;

typedef struct basin_text_generation {
    int64_t tokens;     /* how many; 0: none, the prompt is looked at alone */
    double temperature; /* what logits are divided by; 0: the likeliest token always */
    int64_t top_k;      /* of the likeliest so many; 0: of all */
    uint64_t seed;
    bool energies; /* tell those of each token; of NRGPT alone */
    /* Told of each token in turn, those of the prompt first; false: that is enough. With energies a
     * token is told when the next one is chosen. */
    bool (*tell)(void *context, const basin_text_token *token);
    void *context;
    const basin_watch *watch; /* for notes and to stop */
} basin_text_generation;

typedef struct basin_text_generated {
    int64_t prompt, cropped; /* tokens of the prompt; those that the context has no room for */
    int64_t tokens;          /* generated */
    double seconds;
    double surprise; /* mean of the generated tokens, nats */
} basin_text_generated;

/* Goes on from a prompt; from an empty one as from a line end. Where tokens are numbers a prompt of
 * bytes has them in decimal. `generated` may be NULL. */
BASIN_API basin_status basin_text_generate(basin_text_generated *generated, basin_text_model *model,
                                           const basin_text *prompt,
                                           const basin_text_generation *generation,
                                           basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
