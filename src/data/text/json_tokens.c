/* tokenizer.json in: tokens and merges. Tokens have the numbers 0 .. n - 1, each once. Files of
 * tokenizers over bytes write one printable character a byte. See json_read.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/text/json_read.h"

typedef basin_tokenizer_source source;

/* A token as the file has it. */
typedef struct entry {
    const char *name; /* NULL: none has this number */
    int flags;
} entry;

static basin_status no_memory(const source *s) {
    return basin_fail(s->error, BASIN_NO_MEMORY, "%s: out of memory for its tokens", s->path);
}

/* The bytes that a name stands for, in a buffer of its length; false where it stands for none. */
static bool spell(char *bytes, size_t *length, const char *name, const basin_tokenizer *t) {
    size_t left = strlen(name), step;
    *length = 0;
    if (!t->bytes) {
        memcpy(bytes, name, left);
        *length = left;
        return basin_text_is_utf8(name);
    }
    for (; left; name += step, left -= step) {
        uint32_t point;
        step = basin_text_character(&point, name, left);
        int byte = step ? basin_byte_from_character(point) : -1;
        if (byte < 0) return false;
        bytes[(*length)++] = (char)byte;
    }
    return true;
}

/* ---- tokens ---- */

/* The number of a token, which must be below `total` and free. */
static basin_status read_id(int64_t *id, const cJSON *item, const char *name, int64_t total,
                            const source *s) {
    double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
    *id = value >= 0 && value < (double)total ? (int64_t)value : -1;
    if (*id >= 0 && (double)*id == value) return BASIN_OK;
    if (!cJSON_IsNumber(item))
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: the id of token '%.60s' is not a number",
                          s->path, name);
    return basin_fail(
        s->error, BASIN_BAD_FILE,
        "%s: token '%.60s' has id %.15g, wanted 0 .. %lld: as many as there are tokens", s->path,
        name, value, (long long)total - 1);
}

static basin_status fail_twice(int64_t id, const char *a, const char *b, const source *s) {
    return basin_fail(s->error, BASIN_BAD_FILE, "%s: tokens '%.60s' and '%.60s' both have id %lld",
                      s->path, a, b, (long long)id);
}

static basin_status list_vocab(entry *list, int64_t total, const cJSON *vocab, const source *s) {
    const cJSON *item;
    cJSON_ArrayForEach(item, vocab) {
        int64_t id;
        basin_status status = read_id(&id, item, item->string, total, s);
        if (!status && list[id].name) status = fail_twice(id, list[id].name, item->string, s);
        if (status) return status;
        list[id] = (entry){item->string, BASIN_TOKEN_MODEL};
    }
    return BASIN_OK;
}

static basin_status read_flags(int *flags, const cJSON *item, const source *s) {
    static const struct {
        const char *name;
        int flag;
        bool absent;
    } known[] = {{"lstrip", BASIN_TOKEN_LEFT, false},
                 {"rstrip", BASIN_TOKEN_RIGHT, false},
                 {"normalized", BASIN_TOKEN_LATE, true},
                 {"special", BASIN_TOKEN_SPECIAL, false}};
    bool on;
    basin_status status = basin_json_flag(&on, item, "single_word", false, s);
    if (!status && on)
        status = basin_fail(s->error, BASIN_UNSUPPORTED,
                            "%s: added token with single_word true is not supported", s->path);
    *flags = BASIN_TOKEN_ADDED;
    for (size_t i = 0; i < sizeof known / sizeof *known && !status; i++) {
        status = basin_json_flag(&on, item, known[i].name, known[i].absent, s);
        if (on) *flags |= known[i].flag;
    }
    return status;
}

static basin_status list_one_added(entry *list, int64_t total, const cJSON *item, const source *s) {
    static const char *const known[] = {"id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL};
    const char *content = cJSON_GetStringValue(basin_json_member(item, "content"));
    int64_t id;
    int flags;
    if (!content)
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: an added token has no content", s->path);
    basin_status status = basin_json_only(item, "an added token", known, s);
    if (!status) status = read_id(&id, basin_json_member(item, "id"), content, total, s);
    if (!status) status = read_flags(&flags, item, s);
    if (status) return status;
    entry *e = list + id;
    if (e->flags & BASIN_TOKEN_ADDED || (e->name && strcmp(e->name, content) != 0))
        return fail_twice(id, e->name, content, s);
    *e = (entry){content, e->flags | flags};
    return BASIN_OK;
}

static basin_status list_added(entry *list, int64_t total, const cJSON *added, const source *s) {
    basin_status status = BASIN_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, added) {
        status = list_one_added(list, total, item, s);
        if (status) break;
    }
    return status;
}

/* An added token of the vocabulary is found in texts by its name. If that name also spells other
 * bytes, it would be two tokens. */
static basin_status take_token(const source *s, const entry *e, int64_t id, char *bytes) {
    basin_tokenizer *t = s->tokenizer;
    size_t length, plain = strlen(e->name);
    int flags = e->flags;
    bool spelt = spell(bytes, &length, e->name, t);
    bool same = spelt && length == plain && !memcmp(bytes, e->name, length);
    const char *reason = NULL;
    if (!plain)
        reason = "is empty";
    else if (!basin_text_is_utf8(e->name))
        reason = "is not UTF-8";
    else if (!spelt && !(flags & BASIN_TOKEN_ADDED))
        reason = "has characters that stand for no byte";
    else if (flags & BASIN_TOKEN_MODEL && spelt && basin_pieces_find(&t->piece, bytes, length) >= 0)
        reason = "is there twice";
    else if (flags & BASIN_TOKEN_MODEL && flags & BASIN_TOKEN_ADDED && spelt && !same)
        reason = "is an added token and other bytes, too";
    if (reason)
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: token '%.60s' (id %lld) %s", s->path,
                          e->name, (long long)id, reason);
    if (flags & BASIN_TOKEN_ADDED)
        return basin_tokenizer_add(t, e->name, plain, spelt ? flags : flags | BASIN_TOKEN_RAW,
                                   s->error);
    return basin_tokenizer_add(t, bytes, length, flags, s->error);
}

/* An added token must not stand in the vocabulary under another number, nor be there twice. */
static basin_status check_added(const source *s, char *bytes) {
    const basin_tokenizer *t = s->tokenizer;
    basin_status status = BASIN_OK;
    basin_pieces seen = {0};
    for (int64_t i = 0; i < t->added_count && !status; i++) {
        size_t length, size;
        const char *name = basin_pieces_get(&length, &t->piece, t->added[i]);
        memcpy(bytes, name, length);
        bytes[length] = '\0';
        bool twice = basin_pieces_find(&seen, name, length) >= 0;
        if (spell(bytes + length + 1, &size, bytes, t)) {
            int64_t other = basin_pieces_find(&t->piece, bytes + length + 1, size);
            twice = twice || (other >= 0 && other != t->added[i]);
        }
        if (twice)
            status = basin_fail(s->error, BASIN_BAD_FILE,
                                "%s: added token '%.60s' (id %d) has another id, too", s->path,
                                bytes, t->added[i]);
        else if (!basin_pieces_add(&seen, name, length, true))
            status = no_memory(s);
    }
    basin_pieces_free(&seen);
    return status;
}

static basin_status take_tokens(const source *s, const entry *list, int64_t total) {
    basin_status status = BASIN_OK;
    size_t longest = 0;
    for (int64_t id = 0; id < total && !status; id++) {
        if (!list[id].name)
            status = basin_fail(s->error, BASIN_BAD_FILE,
                                "%s: no token has id %lld, although there are %lld tokens", s->path,
                                (long long)id, (long long)total);
        size_t length = list[id].name ? strlen(list[id].name) : 0;
        longest = length > longest ? length : longest;
    }
    char *bytes = status ? NULL : basin_array_new(longest + 1, 2);
    if (!status && !bytes) status = no_memory(s);
    for (int64_t id = 0; id < total && !status; id++) status = take_token(s, list + id, id, bytes);
    if (!status) status = check_added(s, bytes);
    free(bytes);
    return status;
}

/* How many distinct tokens there are: added ones may stand in the vocabulary. */
static int64_t count_tokens(const cJSON *vocab, const cJSON *added) {
    int64_t total = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, vocab) total++;
    int64_t model = total;
    cJSON_ArrayForEach(item, added) {
        const cJSON *id = basin_json_member(item, "id");
        total += cJSON_IsNumber(id) && id->valuedouble >= (double)model;
    }
    return total;
}

basin_status basin_tokenizer_read_tokens(const source *s, const cJSON *vocab, const cJSON *added) {
    if (!cJSON_IsObject(vocab))
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: the model has no vocab", s->path);
    if (added && !cJSON_IsArray(added))
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: added_tokens is no list", s->path);
    int64_t total = count_tokens(vocab, added);
    if (!total) return basin_fail(s->error, BASIN_BAD_FILE, "%s: there are no tokens", s->path);
    if (total > INT32_MAX) return no_memory(s);
    entry *list = calloc((size_t)total, sizeof *list);
    if (!list) return no_memory(s);
    basin_status status = list_vocab(list, total, vocab, s);
    if (!status) status = list_added(list, total, added, s);
    if (!status) status = take_tokens(s, list, total);
    free(list);
    return status;
}

basin_status basin_tokenizer_read_name(int64_t *id, const source *s, const char *name) {
    size_t length;
    char *bytes = basin_array_new(strlen(name) + 1, 1);
    *id = -1;
    if (!bytes) return no_memory(s);
    if (spell(bytes, &length, name, s->tokenizer))
        *id = basin_pieces_find(&s->tokenizer->piece, bytes, length);
    free(bytes);
    return BASIN_OK;
}

/* ---- merges ---- */

/* The two names of a merge: "a b", or a list of two strings. */
static bool merge_names(const char **left, const char **right, size_t *left_length,
                        const cJSON *item) {
    const char *text = cJSON_GetStringValue(item);
    if (text) {
        const char *blank = strchr(text, ' ');
        if (!blank || strchr(blank + 1, ' ')) return false;
        *left = text;
        *left_length = (size_t)(blank - text);
        *right = blank + 1;
    } else {
        *left = cJSON_GetStringValue(cJSON_GetArrayItem(item, 0));
        *right = cJSON_GetStringValue(cJSON_GetArrayItem(item, 1));
        if (cJSON_GetArraySize(item) != 2 || !*left || !*right) return false;
        *left_length = strlen(*left);
    }
    return *left_length > 0 && **right;
}

/* A merge in numbers, by the names of left, right and both together. */
static basin_status find_merge(basin_token_merge *merge, const source *s,
                               const char *const part[3]) {
    int64_t id[3];
    basin_status status = BASIN_OK;
    for (int i = 0; i < 3 && !status; i++) {
        status = basin_tokenizer_read_name(&id[i], s, part[i]);
        if (!status && id[i] < 0)
            status =
                basin_fail(s->error, BASIN_BAD_FILE,
                           "%s: a merge has '%.60s', which is not in the vocab", s->path, part[i]);
    }
    if (!status) *merge = (basin_token_merge){(int32_t)id[0], (int32_t)id[1], (int32_t)id[2]};
    return status;
}

static basin_status take_merge(const source *s, const cJSON *item) {
    const char *left, *right;
    size_t length;
    basin_token_merge merge;
    basin_merges *merges = &s->tokenizer->merges;
    if (!merge_names(&left, &right, &length, item))
        return basin_fail(s->error, BASIN_BAD_FILE,
                          "%s: merge %lld is not two tokens: \"a b\" or [\"a\", \"b\"]", s->path,
                          (long long)merges->count);
    char *first = basin_array_new(length + 1, 1),
         *both = basin_array_new(length + strlen(right) + 1, 1);
    basin_status status = first && both ? BASIN_OK : no_memory(s);
    if (!status) {
        memcpy(first, left, length);
        first[length] = '\0';
        memcpy(both, left, length);
        memcpy(both + length, right, strlen(right) + 1);
        status = find_merge(&merge, s, (const char *const[]){first, right, both});
    }
    free(first);
    free(both);
    if (status) return status;
    if (basin_merges_find(merges, merge.left, merge.right) >= 0)
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: merge %lld is there twice", s->path,
                          (long long)merges->count);
    return basin_merges_add(merges, merge) ? BASIN_OK : no_memory(s);
}

basin_status basin_tokenizer_read_merges(const source *s, const cJSON *merges) {
    const cJSON *item;
    if (!cJSON_IsArray(merges))
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: the model has no merges", s->path);
    cJSON_ArrayForEach(item, merges) {
        basin_status status = take_merge(s, item);
        if (status) return status;
    }
    return BASIN_OK;
}
