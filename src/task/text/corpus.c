/* A text in tokens, its parts, and how a model knows it again; see text.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/text/text.h"

basin_status basin_text_corpus_new(basin_text_corpus *corpus, const basin_tokenizer *tokenizer,
                                   const char *text, size_t length, const char *what,
                                   basin_error *error) {
    basin_error inner;
    *corpus = (basin_text_corpus){.bytes = (int64_t)length};
    basin_status status =
        basin_tokenizer_encode(&corpus->id, &corpus->count, NULL, tokenizer, text, length, &inner);
    return status ? basin_fail(error, status, "%s: %s", what, inner.text) : BASIN_OK;
}

void basin_text_corpus_free(basin_text_corpus *corpus) {
    free(corpus->id);
    *corpus = (basin_text_corpus){0};
}

size_t basin_text_cut(const char *text, size_t length, double hold_out) {
    enum { FORM = 0xC0, FOLLOWS = 0x80 };
    double left = hold_out > 0 ? fmax(1 - hold_out, 0) : 1;
    size_t at = (size_t)((double)length * left + 1e-6);
    if (at > length) at = length;
    while (at < length && ((unsigned char)text[at] & FORM) == FOLLOWS) at++;
    return at;
}

basin_text_origin basin_text_origin_of(const char *text, size_t length, size_t train) {
    basin_text_origin origin = {.bytes = (int64_t)length, .train = (int64_t)train};
    basin_sha256 sha = basin_sha256_start();
    basin_sha256_add(&sha, text, length);
    basin_sha256_end(origin.digest, &sha);
    return origin;
}

bool basin_text_origin_equal(const basin_text_origin *a, const basin_text_origin *b) {
    return a->bytes == b->bytes && !strcmp(a->digest, b->digest);
}
