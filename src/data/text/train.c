/* Training of byte-level BPE. Each distinct word is kept once, with how often it occurs; each pair
 * of neighbouring tokens with how often, and the words that have it. Merging a pair then changes
 * those words and the counts of their pairs alone. A heap gives the most frequent pair; its entries
 * are corrected when they come up. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/text/tokenizer.h"
#include "train/run/watch.h"

typedef struct word {
    size_t begin; /* in `symbol` */
    int32_t length;
    int64_t count;
} word;

typedef struct pair {
    int64_t count;
    int32_t *word; /* [words] those that had it, perhaps more than once */
    size_t words, room;
    bool risen; /* is on the list of those to be pushed */
} pair;

typedef struct trainer {
    basin_tokenizer *tokenizer;
    const basin_watch *watch;
    basin_pieces seen;  /* distinct words */
    word *word;         /* [seen.count] */
    int32_t *symbol;    /* tokens of all words */
    basin_merges known; /* all pairs; what they would become is not used */
    pair *pair;         /* [known.count] */
    size_t *risen;      /* [rises] pairs to be pushed */
    basin_queue queue;  /* pairs, by -count when they were pushed, then by their tokens */
    size_t word_room, symbol_room, symbols, pair_room, rises, risen_room;
} trainer;

/* ---- pairs ---- */

static bool push(trainer *t, size_t p) {
    const basin_token_merge *m = t->known.merge + p;
    basin_queued entry = {-t->pair[p].count, (int64_t)basin_pair_number(m->left, m->right), p};
    return t->pair[p].count <= 0 || basin_queue_push(&t->queue, entry);
}

/* Pushes the pairs that became more frequent. */
static bool push_risen(trainer *t) {
    bool ok = true;
    for (size_t i = 0; i < t->rises && ok; i++) {
        t->pair[t->risen[i]].risen = false;
        ok = push(t, t->risen[i]);
    }
    t->rises = 0;
    return ok;
}

/* The place of a pair in the list, which it is put on if it is new; -1: no memory. */
static int64_t place_of(trainer *t, int32_t left, int32_t right) {
    int64_t at = basin_merges_find(&t->known, left, right);
    size_t need = (size_t)t->known.count + 1;
    if (at >= 0) return at;
    if (!basin_array_reserve((void **)&t->pair, &t->pair_room, need, sizeof *t->pair) ||
        !basin_merges_add(&t->known, (basin_token_merge){left, right, -1}))
        return -1;
    t->pair[need - 1] = (pair){0};
    return (int64_t)need - 1;
}

/* Adds to how often a pair occurs, in word `w`. */
static bool change(trainer *t, int32_t left, int32_t right, int64_t by, int32_t w) {
    int64_t at = place_of(t, left, right);
    if (at < 0) return false;
    pair *p = t->pair + at;
    p->count += by;
    if (by < 0) return true;
    bool listed = p->words && p->word[p->words - 1] == w;
    if (!basin_array_reserve((void **)&p->word, &p->room, p->words + !listed, sizeof *p->word) ||
        !basin_array_reserve((void **)&t->risen, &t->risen_room, t->rises + 1, sizeof *t->risen))
        return false;
    if (!listed) p->word[p->words++] = w;
    if (!p->risen) t->risen[t->rises++] = (size_t)at;
    p->risen = true;
    return true;
}

/* ---- words ---- */

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to train a tokenizer");
}

static basin_status tell(const trainer *t, const char *what, int64_t done, int64_t total,
                         const char *unit, basin_error *error) {
    basin_news news = {.what = what,
                       .done = done,
                       .total = total,
                       .loss = NAN,
                       .speed = NAN,
                       .unit = unit,
                       .seconds_left = NAN};
    basin_watch_show(t->watch, &news);
    if (!basin_watch_stopped(t->watch)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "interrupted");
}

static bool count_word(trainer *t, const char *text, size_t length) {
    int64_t w = basin_pieces_find(&t->seen, text, length);
    size_t need = (size_t)t->seen.count + 1;
    if (w < 0) {
        if (length > INT32_MAX || !basin_pieces_add(&t->seen, text, length, true) ||
            !basin_array_reserve((void **)&t->word, &t->word_room, need, sizeof *t->word))
            return false;
        w = t->seen.count - 1;
        t->word[w] = (word){.length = (int32_t)length};
    }
    t->word[w].count++;
    return true;
}

static basin_status count_words(trainer *t, const char *text, size_t length, basin_error *error) {
    enum { OFTEN = 1 << 24 }; /* bytes between two looks at the watch */
    size_t told = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        bytes = basin_words_next(t->tokenizer->words, text + at, length - at);
        if (!count_word(t, text + at, bytes)) return no_memory(error);
        if (at - told < OFTEN) continue;
        told = at;
        basin_status status =
            tell(t, "counting words", (int64_t)at, (int64_t)length, "bytes", error);
        if (status) return status;
    }
    return BASIN_OK;
}

/* The tokens of all words, and their pairs. */
static basin_status count_pairs(trainer *t, basin_error *error) {
    for (int64_t w = 0; w < t->seen.count; w++) {
        size_t length;
        const char *text = basin_pieces_get(&length, &t->seen, w);
        if (!basin_array_reserve((void **)&t->symbol, &t->symbol_room, t->symbols + length,
                                 sizeof *t->symbol))
            return no_memory(error);
        int32_t *symbol = t->symbol + t->symbols;
        t->word[w].begin = t->symbols;
        t->symbols += length;
        for (size_t i = 0; i < length; i++) {
            symbol[i] = t->tokenizer->first[(unsigned char)text[i]];
            if (i && !change(t, symbol[i - 1], symbol[i], t->word[w].count, (int32_t)w))
                return no_memory(error);
        }
    }
    return push_risen(t) ? BASIN_OK : no_memory(error);
}

/* Replaces a pair in a word, and changes the counts of its neighbours. */
static bool merge_word(trainer *t, int32_t w, basin_token_merge m) {
    word *at = t->word + w;
    int32_t *s = t->symbol + at->begin, n = at->length, to = 0;
    int64_t c = at->count;
    bool ok = true;
    for (int32_t i = 0; i < n && ok;) {
        if (i + 1 == n || s[i] != m.left || s[i + 1] != m.right) {
            s[to++] = s[i++];
            continue;
        }
        ok = change(t, m.left, m.right, -c, w);
        if (to)
            ok = ok && change(t, s[to - 1], m.left, -c, w) && change(t, s[to - 1], m.token, c, w);
        if (i + 2 < n)
            ok = ok && change(t, m.right, s[i + 2], -c, w) && change(t, m.token, s[i + 2], c, w);
        s[to++] = m.token;
        i += 2;
    }
    at->length = to;
    return ok;
}

/* ---- merges ---- */

/* The token that a pair becomes; another pair may have given the same bytes before. */
static bool name_pair(basin_token_merge *m, trainer *t) {
    basin_tokenizer *k = t->tokenizer;
    size_t a, b;
    const char *left = basin_pieces_get(&a, &k->piece, m->left);
    const char *right = basin_pieces_get(&b, &k->piece, m->right);
    char *bytes = basin_array_new(a + b, 1);
    if (!bytes) return false;
    memcpy(bytes, left, a);
    memcpy(bytes + a, right, b);
    int64_t id = basin_pieces_find(&k->piece, bytes, a + b);
    bool ok = id >= 0 || !basin_tokenizer_add(k, bytes, a + b, BASIN_TOKEN_MODEL, NULL);
    free(bytes);
    m->token = (int32_t)(id >= 0 ? id : k->piece.count - 1);
    if (ok && basin_merges_find(&k->merges, m->left, m->right) < 0)
        ok = basin_merges_add(&k->merges, *m);
    return ok;
}

static bool merge_pair(trainer *t, size_t p) {
    basin_token_merge m = t->known.merge[p];
    int32_t *list = t->pair[p].word;
    size_t count = t->pair[p].words;
    t->pair[p].word = NULL;
    t->pair[p].words = t->pair[p].room = 0;
    bool ok = name_pair(&m, t);
    for (size_t i = 0; i < count && ok; i++) ok = merge_word(t, list[i], m);
    free(list);
    return ok && push_risen(t);
}

static basin_status merge_until(trainer *t, int64_t vocabulary, basin_error *error) {
    enum { OFTEN = 64 };
    basin_tokenizer *k = t->tokenizer;
    for (int64_t round = 0; k->piece.count < vocabulary;) {
        if (!t->queue.count)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "a vocabulary of %lld tokens needs more text: this one gives "
                              "%lld",
                              (long long)vocabulary, (long long)k->piece.count);
        basin_queued top = basin_queue_pop(&t->queue);
        int64_t then = -top.first, now = t->pair[top.value].count;
        bool ok = now == then  ? merge_pair(t, top.value)
                  : now < then ? push(t, top.value)
                               : true; /* it has been pushed again since */
        if (!ok) return no_memory(error);
        if (round++ % OFTEN) continue;
        basin_status status = tell(t, "merging pairs", k->piece.count, vocabulary, "tokens", error);
        if (status) return status;
    }
    return BASIN_OK;
}

static void trainer_free(trainer *t) {
    for (int64_t i = 0; i < t->known.count; i++) free(t->pair[i].word);
    basin_pieces_free(&t->seen);
    basin_merges_free(&t->known);
    free(t->word);
    free(t->symbol);
    free(t->pair);
    free(t->risen);
    free(t->queue.entry);
}

/* Bytes in the order of the characters that tokenizer.json writes for them, as others have them. */
static basin_status add_bytes(basin_tokenizer *t, basin_error *error) {
    basin_status status = BASIN_OK;
    for (uint32_t point = 0; point < 0x200 && !status; point++) {
        int byte = basin_byte_from_character(point);
        if (byte >= 0)
            status = basin_tokenizer_add(t, (char[]){(char)byte}, 1, BASIN_TOKEN_MODEL, error);
    }
    basin_tokenizer_finish(t);
    return status;
}

basin_status basin_tokenizer_train(basin_tokenizer **tokenizer, const char *text, size_t length,
                                   int64_t vocabulary, const basin_watch *watch,
                                   basin_error *error) {
    enum { LEAST = 257, MOST = 1 << 24 };
    trainer t = {.watch = watch};
    *tokenizer = NULL;
    if (vocabulary < LEAST || vocabulary > MOST)
        return basin_fail(error, BASIN_BAD_VALUE, "a vocabulary of %lld tokens, wanted %d .. %d",
                          (long long)vocabulary, LEAST, MOST);
    basin_status status = basin_tokenizer_new(&t.tokenizer, error);
    if (!status) {
        t.tokenizer->bytes = true;
        t.tokenizer->words = BASIN_WORDS_GPT2;
        status = add_bytes(t.tokenizer, error);
    }
    if (!status) status = count_words(&t, text, length, error);
    if (!status) status = count_pairs(&t, error);
    if (!status) status = merge_until(&t, vocabulary, error);
    trainer_free(&t);
    if (status)
        basin_tokenizer_free(t.tokenizer);
    else
        *tokenizer = t.tokenizer;
    return status;
}
