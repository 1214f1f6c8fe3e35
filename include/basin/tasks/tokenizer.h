/* Text as numbers: tokenizers of characters, of bytes, and of byte pairs (BPE), and what reads
 * text.
 *
 *     char *text;
 *     size_t length;
 *     const char *path[] = {"shakespeare.txt"};
 *     basin_tokenizer *tokenizer;
 *     int32_t *id;
 *     int64_t count;
 *     basin_text_read(&text, &length, path, 1, &error);
 *     basin_tokenizer_train(&tokenizer, text, length, 4096, NULL, &error);
 *     basin_tokenizer_encode(&id, &count, NULL, tokenizer, text, length, &error);
 *     basin_tokenizer_write("tokenizer.json", tokenizer, &error);
 *
 * Files are Hugging Face's tokenizer.json: its package `tokenizers` gives the same numbers for
 * them, without special tokens around a text (add_special_tokens=False). A tokenizer does not
 * change once it is made, so threads may share it. What functions hand out is released by free().
 */
#ifndef BASIN_TASKS_TOKENIZER_H
#define BASIN_TASKS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/tasks/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading text ---- */

/* The files one behind the other, as `cat` would join them, with a NUL behind the last byte that
 * `length` does not count. A path is a file, plain or packed by gzip or zstd; "-" for standard
 * input; or a folder: every .txt, .txt.gz and .txt.zst below it, in the order of their paths'
 * bytes. A byte-order mark at the start of a file is left out; UTF-16 and no text at all are
 * errors. */
BASIN_API basin_status basin_text_read(char **text, size_t *length, const char *const *path,
                                       int count, basin_error *error);

/* ---- tokenizers ---- */

typedef struct basin_tokenizer basin_tokenizer;

/* One token a distinct character of `text`, in the order of code points. Invalid UTF-8 and NUL are
 * errors that name the place. */
BASIN_API basin_status basin_tokenizer_characters(basin_tokenizer **tokenizer, const char *text,
                                                  size_t length, basin_error *error);
/* 256 tokens: token i is byte i. */
BASIN_API basin_status basin_tokenizer_bytes(basin_tokenizer **tokenizer, basin_error *error);
/* Byte-level BPE with GPT-2's way of splitting text into words: 256 bytes, then the most frequent
 * pair again and again, the pair of smaller numbers among equals, until there are `vocabulary`
 * tokens. A text that has no pairs left before that is an error that says how many it gives. */
BASIN_API basin_status basin_tokenizer_train(basin_tokenizer **tokenizer, const char *text,
                                             size_t length, int64_t vocabulary,
                                             const basin_watch *watch, basin_error *error);
BASIN_API void basin_tokenizer_free(basin_tokenizer *tokenizer);

/* tokenizer.json. What Basin cannot do as the file says is an error that names it. */
BASIN_API basin_status basin_tokenizer_open(basin_tokenizer **tokenizer, const char *path,
                                            basin_error *error);
BASIN_API basin_status basin_tokenizer_write(const char *path, const basin_tokenizer *tokenizer,
                                             basin_error *error);
/* The same as text, for the metadata of a model file; `path` is what errors call it. */
BASIN_API basin_status basin_tokenizer_parse(basin_tokenizer **tokenizer, const char *json,
                                             const char *path, basin_error *error);
BASIN_API basin_status basin_tokenizer_print(char **json, const basin_tokenizer *tokenizer,
                                             basin_error *error);

/* "characters", "bytes" or "bpe". */
BASIN_API const char *basin_tokenizer_kind(const basin_tokenizer *tokenizer);
/* How many tokens: numbers are 0 .. size - 1. */
BASIN_API int64_t basin_tokenizer_size(const basin_tokenizer *tokenizer);
/* The bytes of a token, not ended by a NUL; NULL where there is no such token. They live as long
 * as the tokenizer. */
BASIN_API const char *basin_tokenizer_piece(size_t *length, const basin_tokenizer *tokenizer,
                                            int64_t id);
/* The number of the token with exactly these bytes, special ones included; -1: none. */
BASIN_API int64_t basin_tokenizer_find(const basin_tokenizer *tokenizer, const char *bytes,
                                       size_t length);
/* Whether a token is special, as <|endoftext|> is: it stands for no text. */
BASIN_API bool basin_tokenizer_is_special(const basin_tokenizer *tokenizer, int64_t id);

/* The tokens of a text. A character without a token (with BPE: a byte that the file has none for)
 * is an error that names it, its line and its column; where `skipped` is given such are left out,
 * and counted there. Tokenizers of characters want UTF-8, the others take any bytes. */
BASIN_API basin_status basin_tokenizer_encode(int32_t **id, int64_t *count, int64_t *skipped,
                                              const basin_tokenizer *tokenizer, const char *text,
                                              size_t length, basin_error *error);
/* The bytes of tokens, special ones included, with a NUL behind them. A token may be part of a
 * character, so that some ids give invalid UTF-8. */
BASIN_API basin_status basin_tokenizer_decode(char **text, size_t *length,
                                              const basin_tokenizer *tokenizer, const int32_t *id,
                                              int64_t count, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
