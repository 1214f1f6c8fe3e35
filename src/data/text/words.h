/* Cutting a text into words, before pairs are merged: the patterns of GPT-2 and of its successors.
 */
#ifndef BASIN_DATA_TEXT_WORDS_H
#define BASIN_DATA_TEXT_WORDS_H

#include <stddef.h>

typedef enum basin_words {
    BASIN_WORDS_NONE,  /* the whole text is one word */
    BASIN_WORDS_GPT2,  /* GPT-2, RoBERTa, OPT */
    BASIN_WORDS_CL100, /* Llama 3: digits by threes */
    BASIN_WORDS_QWEN,  /* as that, digits one by one */
} basin_words;

/* The bytes of the first word of `text` [length], which is not empty. Bytes that are not UTF-8 are
 * punctuation to it. */
size_t basin_words_next(basin_words words, const char *text, size_t length);
/* A pattern as regular expression, as tokenizer.json has it; NULL for none. */
const char *basin_words_pattern(basin_words words);

#endif
