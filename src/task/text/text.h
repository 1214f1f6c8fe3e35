/* Models of text inside the library: settings, models (model.c), texts and tokens (corpus.c),
 * training, scores, generation; callers see include/basin/tasks/text.h. */
#ifndef BASIN_TASK_TEXT_TEXT_H
#define BASIN_TASK_TEXT_TEXT_H

/* What nearly every file needs of the C library. */

#include "basin/language.h"
#include "basin/tasks/text.h"
#include "train/run/run.h"
#include "train/trainer.h"

enum { BASIN_TEXT_MOST_TOKENS = 1 << 24 };

/* ---- settings ---- */

#define BASIN_TEXT_MODEL_SETTINGS(X)                                                               \
    X(CHOICE, arch, BASIN_CHOICES("nrgpt", "gpt"),                                                 \
      "The model: NRGPT, a causal Energy Transformer, or a GPT.")                                  \
    X(CHOICE, tokens, BASIN_CHOICES("characters", "bytes", "ids"),                                 \
      "What a token is: a character of the training text, a byte, or a number that another "       \
      "program "                                                                                   \
      "gave it, as an .npy file has them.")                                                        \
    X(INTEGER, vocabulary, "N", 0, BASIN_TEXT_MOST_TOKENS,                                         \
      "How many tokens there are; 0: up to the greatest number of the training text.",             \
      .needs = "tokens=ids")                                                                       \
    X(INTEGER, context, "N", 1, 1 << 20, "Tokens of a window: what the model sees at most.")       \
    X(INTEGER, dim, "D", 1, 65536, "Dimension of a token.")                                        \
    X(INTEGER, heads, "H", 1, 4096,                                                                \
      "Heads of attention. NRGPT has a matrix D x D for each; a GPT divides D among them.")        \
    X(INTEGER, hidden, "U", 0, 1 << 24, "Units of the feed-forward network; 0: 4 D.")              \
    X(INTEGER, steps, "T", 1, BASIN_MAX_LAYERS,                                                    \
      "Steps of the descent, all with the same weights; of a GPT its layers.")                     \
    X(CHOICE, feed, BASIN_CHOICES("ff1", "ff2", "ff2w"),                                           \
      "The feed-forward energy of NRGPT: -|gelu(W1 g)|^2, -|gelu(W2 gelu(W1 g))|^2, or -g . W2 "   \
      "gelu(W1 g).",                                                                               \
      .needs = "arch=nrgpt")                                                                       \
    X(SWITCH, strict,                                                                              \
      "A token does not attend to itself: only then is NRGPT's force the gradient of its energy.", \
      .needs = "arch=nrgpt")                                                                       \
    X(REAL, beta, "X", 1e-9, 1e3,                                                                  \
      "Inverse temperature of NRGPT's attention, which its scores are multiplied by: 1 as "        \
      "published; of wide tokens less, since their scores grow too fast to learn from.",           \
      .absent = "1", .needs = "arch=nrgpt")                                                        \
    X(REAL, alpha, "X", 1e-6, 1e6,                                                                 \
      "Size of a step of NRGPT, beside its learned matrix: 1 as published.", .absent = "1",        \
      .needs = "arch=nrgpt")                                                                       \
    X(SWITCH, tied, "The head has the tokens' own matrix.")                                        \
    X(SWITCH, bias, "Biases in a GPT's maps and norms.", .needs = "arch=gpt")                      \
    X(REAL, dropout, "SHARE", 0, 0.95,                                                             \
      "Dropout in training: of NRGPT, of attention's pull at each token; of a GPT, of the first "  \
      "tokens, of attention's shares and of what each layer adds.")                                \
    X(REAL, dropout_step, "SHARE", 0, 0.95,                                                        \
      "Dropout in training, of NRGPT: of the first tokens and of what each step adds.",            \
      .absent = "0", .needs = "arch=nrgpt")
#define BASIN_TEXT_TRAINING_SETTINGS(X)                                                            \
    BASIN_RUN_SETTINGS(X)                                                                          \
    BASIN_SHARD_SETTINGS(X)                                                                        \
    X(INTEGER, epoch_steps, "STEPS", 0, 1e9,                                                       \
      "Steps of an epoch, after which the validation text is scored; 0: so many as read as many "  \
      "tokens as the training text has.")                                                          \
    X(CHOICE, optimiser, BASIN_CHOICES("adamw", "lion", "sgd"),                                    \
      "How weights move: AdamW; Lion, by signs, at a tenth of AdamW's rate; or SGD with momentum " \
      "0.9.",                                                                                      \
      .absent = "adamw")                                                                           \
    X(REAL, embedding_rate, "X", 0, 1e3,                                                           \
      "What the rate is multiplied by for the vectors of tokens and places; 0: they stay as they " \
      "are.",                                                                                      \
      .absent = "1")

typedef struct basin_text_settings {
    BASIN_TEXT_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_TEXT_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
} basin_text_settings;

extern const basin_task_settings basin_text_task;

/* ---- a model in memory ---- */

/* The text that a model was trained on, so that nobody scores it by what it saw. */
typedef struct basin_text_origin {
    int64_t length; /* 0: not known */
    int64_t train;  /* the first so many bytes, or tokens, were trained on */
    char hash[17];  /* of all of it, in hexadecimal; "" in older files: known by its length */
} basin_text_origin;

typedef enum basin_text_tokens {
    BASIN_TEXT_CHARACTERS,
    BASIN_TEXT_BYTES,
    BASIN_TEXT_IDS,
} basin_text_tokens;

/* What the numbers 0 .. count - 1 stand for. */
typedef struct basin_vocabulary {
    basin_text_tokens tokens;
    int64_t count;
    uint32_t *point; /* [count] of characters: their code points, ascending; else NULL */
} basin_vocabulary;

struct basin_text_model {
    basin_text_settings settings;
    basin_settings described; /* the same, as callers see them */
    basin_backend *backend;   /* the caller's */
    basin_store *store;
    basin_vocabulary vocabulary;
    basin_text_origin origin;
    int64_t parameters;
};

/* Without weights: the caller writes them into the store. Takes the vocabulary, on failure, too. */
basin_status basin_text_model_bare(basin_text_model **model, const basin_text_settings *settings,
                                   basin_vocabulary *vocabulary, basin_backend *backend,
                                   basin_error *error);
/* The vocabulary and origin that a model file or a checkpoint holds; writing these and the
 * settings.
 */
basin_status basin_text_vocabulary_read(basin_vocabulary *vocabulary,
                                        const basin_text_settings *settings,
                                        const basin_bundle *bundle, basin_error *error);
/* All zeros where the file does not say. */
basin_text_origin basin_text_origin_read(const basin_bundle *bundle);
basin_status basin_text_describe(basin_bundle *bundle, const basin_text_model *model,
                                 basin_error *error);

/* The model on a graph for so many windows of so many tokens; parameters are the model's. */
typedef struct basin_text_graph {
    basin_graph *graph;
    basin_params params;
    basin_language net;
    int64_t windows, tokens;
    basin_expr ids;     /* index [windows tokens] */
    basin_expr seed;    /* index [2] of dropout; NULL: none */
    basin_expr x;       /* [windows, tokens, D] at the end */
    basin_expr *energy; /* [steps + 1, 2] each [windows, tokens]; NULL: not asked for */
} basin_text_graph;

typedef struct basin_text_wish {
    bool training; /* with dropout */
    bool energies;
} basin_text_wish;

basin_status basin_text_graph_new(basin_text_graph *graph, const basin_text_settings *settings,
                                  int64_t windows, int64_t tokens, basin_text_wish wish,
                                  basin_error *error);
void basin_text_graph_free(basin_text_graph *graph);

/* ---- a text in tokens (corpus.c) ---- */

basin_text_tokens basin_text_tokens_of(const basin_text_settings *settings);
/* Of a text: its characters, all bytes, or numbers below `most`, 0: up to its greatest. */
basin_status basin_vocabulary_make(basin_vocabulary *vocabulary, basin_text_tokens tokens,
                                   int64_t most, const basin_text *text, basin_error *error);
void basin_vocabulary_free(basin_vocabulary *vocabulary);
/* All characters in their order, as UTF-8; free() it. */
basin_status basin_vocabulary_print(char **text, const basin_vocabulary *vocabulary,
                                    basin_error *error);
/* The bytes of a token, and how many; `first`: it begins a text. */
enum { BASIN_TEXT_PIECE = 16 };
size_t basin_vocabulary_piece(char piece[BASIN_TEXT_PIECE], const basin_vocabulary *vocabulary,
                              int32_t id, bool first);

typedef struct basin_text_corpus {
    int32_t *id;          /* [count] */
    int64_t count, bytes; /* bytes 0: tokens are numbers */
} basin_text_corpus;

/* `what` begins errors: "the training text". */
basin_status basin_text_corpus_new(basin_text_corpus *corpus, const basin_vocabulary *vocabulary,
                                   const basin_text *text, const char *what, basin_error *error);
void basin_text_corpus_free(basin_text_corpus *corpus);
/* From `first` to before `end`; borrows. */
basin_text basin_text_slice(const basin_text *text, size_t first, size_t end);
basin_text_origin basin_text_origin_of(const basin_text *text, size_t train);
bool basin_text_origin_equal(const basin_text_origin *a, const basin_text_origin *b);

/* ---- scores of tokens ---- */

/* The same as basin_text_score, of tokens; the scores' part and bytes are left to the caller. */
basin_status basin_text_score_corpus(basin_text_scores *scores, basin_text_model *model,
                                     const basin_text_corpus *corpus,
                                     const basin_text_scoring *scoring, bool energies,
                                     basin_error *error);

#endif
