/* Inside a tokenizer. All kinds are byte-pair encoders: a text is cut at added tokens, then into
 * words, a word into units (bytes or characters), each of which is a token; then pairs are merged.
 * The tokenizers of characters and bytes have no merges, and one word. */
#ifndef BASIN_DATA_TEXT_TOKENIZER_H
#define BASIN_DATA_TEXT_TOKENIZER_H

#include "basin/tasks/tokenizer.h"
#include "data/text/merges.h"
#include "data/text/pieces.h"
#include "data/text/words.h"

enum {
    BASIN_TOKEN_MODEL = 1,   /* stands in the model's vocabulary */
    BASIN_TOKEN_ADDED = 2,   /* is cut out of the text before words are */
    BASIN_TOKEN_SPECIAL = 4, /* stands for no text */
    BASIN_TOKEN_LEFT = 8,    /* takes the spaces on its left along, */
    BASIN_TOKEN_RIGHT = 16,  /* and those on its right */
    BASIN_TOKEN_LATE = 32,   /* is looked for where no other added token was found */
    BASIN_TOKEN_RAW = 64,    /* is never part of a word */
};

struct basin_tokenizer {
    basin_pieces piece; /* the bytes of each token */
    uint8_t *flags;     /* [piece.count] BASIN_TOKEN_.. */
    size_t flags_room;
    bool bytes;          /* units are bytes, else characters */
    int32_t first[256];  /* the token of a unit of one byte, or -1 */
    basin_merges merges; /* by rank */
    basin_words words;   /* how a text is cut into words */
    bool prefix_space;   /* a text that does not begin with a blank gets one */
    bool whole_words;    /* a word that is a token is not merged (`ignore_merges`) */
    int32_t unknown;     /* stands for units without a token; -1: such are errors */
    bool fuse_unknown;   /* one for several side by side */
    char *around;        /* `post_processor` as JSON, for whoever reads the file next; or NULL */
    int32_t *added;      /* [added_count] tokens of the flag */
    int64_t added_count;
    size_t added_room;
    uint8_t added_start[32]; /* a bit for every byte that one begins with */
    bool added_late;         /* whether there are late ones */
};

basin_status basin_tokenizer_new(basin_tokenizer **tokenizer, basin_error *error);
/* Appends a token. Those of the model, but for raw ones, are found by
 * their bytes. */
basin_status basin_tokenizer_add(basin_tokenizer *tokenizer, const char *bytes, size_t length,
                                 int flags, basin_error *error);
/* Called once all tokens are there: what looking up needs. */
void basin_tokenizer_finish(basin_tokenizer *tokenizer);

/* Bytes as tokenizer.json has them, one printable character each: byte 32 is U+0120. */
uint32_t basin_byte_to_character(unsigned char byte);
int basin_byte_from_character(uint32_t point); /* -1: no byte */

#endif
