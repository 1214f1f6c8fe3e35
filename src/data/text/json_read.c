/* tokenizer.json in: what kind of tokenizer it is. Whatever Basin would do otherwise than the file
 * says is an error. See json_read.h. */
#include "data/text/json_read.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/file.h"

typedef basin_tokenizer_source source;

const cJSON *basin_json_member(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

basin_status basin_json_flag(bool *value, const cJSON *object, const char *name, bool absent,
                             const source *s) {
    const cJSON *item = basin_json_member(object, name);
    *value = item ? cJSON_IsTrue(item) : absent;
    if (!item || cJSON_IsBool(item)) return BASIN_OK;
    return basin_fail(s->error, BASIN_BAD_FILE, "%s: %s is not true or false", s->path, name);
}

basin_status basin_json_only(const cJSON *object, const char *what, const char *const *known,
                             const source *s) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        const char *const *k = known;
        while (*k && strcmp(*k, item->string) != 0) k++;
        if (!*k)
            return basin_fail(s->error, BASIN_UNSUPPORTED, "%s: %s has '%.60s', unknown here",
                              s->path, what, item->string);
    }
    return BASIN_OK;
}

/* Fails where a part of the file is there although Basin has none of its kind. */
static basin_status want_absent(const cJSON *object, const char *name, const source *s) {
    const cJSON *item = basin_json_member(object, name), *type = basin_json_member(item, "type");
    if (!item || (cJSON_IsString(item) && !*item->valuestring) || cJSON_IsFalse(item))
        return BASIN_OK;
    const char *kind = cJSON_GetStringValue(type);
    return basin_fail(s->error, BASIN_UNSUPPORTED, "%s: %s%s%.60s is not supported, wanted null",
                      s->path, name, kind ? " " : "", kind ? kind : "");
}

static basin_status want_all_absent(const cJSON *object, const char *const *name, const source *s) {
    basin_status status = BASIN_OK;
    for (; *name && !status; name++) status = want_absent(object, *name, s);
    return status;
}

/* The "type" of a part of the file; "" where it has none. */
static const char *type_of(const cJSON *object) {
    const char *type = cJSON_GetStringValue(basin_json_member(object, "type"));
    return type ? type : "";
}

/* ---- how a text is cut into words ---- */

static basin_status read_byte_level(bool *regex, const cJSON *object, const source *s) {
    static const char *const known[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                        NULL};
    basin_status status = basin_json_only(object, "ByteLevel", known, s);
    s->tokenizer->bytes = true;
    if (!status)
        status = basin_json_flag(&s->tokenizer->prefix_space, object, "add_prefix_space", true, s);
    if (!status) status = basin_json_flag(regex, object, "use_regex", true, s);
    return status;
}

static basin_status read_split(const cJSON *object, const source *s) {
    const char *regex =
        cJSON_GetStringValue(basin_json_member(basin_json_member(object, "pattern"), "Regex"));
    const char *behaviour = cJSON_GetStringValue(basin_json_member(object, "behavior"));
    bool invert;
    basin_status status = basin_json_flag(&invert, object, "invert", false, s);
    if (status) return status;
    if (!regex || invert || !behaviour || strcmp(behaviour, "Isolated") != 0)
        return basin_fail(s->error, BASIN_UNSUPPORTED,
                          "%s: pre_tokenizer Split is not supported but for an Isolated Regex that "
                          "is not inverted",
                          s->path);
    for (basin_words w = BASIN_WORDS_GPT2; w <= BASIN_WORDS_QWEN; w++)
        if (!strcmp(regex, basin_words_pattern(w))) s->tokenizer->words = w;
    if (s->tokenizer->words) return BASIN_OK;
    return basin_fail(s->error, BASIN_UNSUPPORTED,
                      "%s: pre_tokenizer Split has a pattern that is not supported: %.200s",
                      s->path, regex);
}

static basin_status fail_words(const char *type, const source *s) {
    return basin_fail(s->error, BASIN_UNSUPPORTED,
                      "%s: pre_tokenizer %.60s is not supported, wanted ByteLevel, a Sequence of "
                      "Split and ByteLevel, or null",
                      s->path, *type ? type : "without a type");
}

/* Split, then ByteLevel that splits no further. */
static basin_status read_sequence(const cJSON *object, const source *s) {
    const cJSON *list = basin_json_member(object, "pretokenizers"), *first, *second;
    bool regex;
    first = cJSON_GetArrayItem(list, 0);
    second = cJSON_GetArrayItem(list, 1);
    if (strcmp(type_of(first), "Split") != 0) return fail_words(type_of(first), s);
    if (strcmp(type_of(second), "ByteLevel") != 0) return fail_words(type_of(second), s);
    if (cJSON_GetArraySize(list) > 2) return fail_words(type_of(cJSON_GetArrayItem(list, 2)), s);
    basin_status status = read_split(first, s);
    if (!status) status = read_byte_level(&regex, second, s);
    if (!status && (regex || s->tokenizer->prefix_space))
        status = basin_fail(s->error, BASIN_UNSUPPORTED,
                            "%s: ByteLevel behind Split is supported only with use_regex and "
                            "add_prefix_space false",
                            s->path);
    return status;
}

static basin_status read_words(const cJSON *root, const source *s) {
    const cJSON *object = basin_json_member(root, "pre_tokenizer");
    const char *type = type_of(object);
    bool regex = false;
    if (!object) return BASIN_OK;
    if (!strcmp(type, "Sequence")) return read_sequence(object, s);
    if (strcmp(type, "ByteLevel") != 0) return fail_words(type, s);
    basin_status status = read_byte_level(&regex, object, s);
    s->tokenizer->words = regex ? BASIN_WORDS_GPT2 : BASIN_WORDS_NONE;
    return status;
}

/* Tokens become text by putting their bytes side by side; decoders that say so are right. */
static basin_status read_decoder(const cJSON *root, const source *s) {
    const cJSON *object = basin_json_member(root, "decoder");
    const char *type = type_of(object), *want = s->tokenizer->bytes ? "ByteLevel" : "Fuse";
    if (!object || !strcmp(type, want)) return BASIN_OK;
    return basin_fail(s->error, BASIN_UNSUPPORTED,
                      "%s: decoder '%.60s' is not supported here, wanted %s", s->path, type, want);
}

/* What would add tokens around a text, which is left to those who ask for it: Basin has texts
 * without them. It is kept, so that writing the tokenizer loses nothing. */
static basin_status read_post_processor(const cJSON *root, const source *s) {
    static const char *const known[] = {"ByteLevel",      "TemplateProcessing", "RobertaProcessing",
                                        "BertProcessing", "Sequence",           NULL};
    const cJSON *object = basin_json_member(root, "post_processor");
    const char *const *k = known;
    if (!object) return BASIN_OK;
    while (*k && strcmp(*k, type_of(object)) != 0) k++;
    if (!*k)
        return basin_fail(s->error, BASIN_UNSUPPORTED,
                          "%s: post_processor '%.60s' is not supported", s->path, type_of(object));
    char *text = cJSON_PrintUnformatted(object);
    bool valid = text && basin_text_is_utf8(text);
    if (valid) s->tokenizer->around = basin_string_copy(text);
    cJSON_free(text);
    if (text && !valid)
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: post_processor is not UTF-8", s->path);
    if (s->tokenizer->around) return BASIN_OK;
    return basin_fail(s->error, BASIN_NO_MEMORY, "%s: out of memory for the post_processor",
                      s->path);
}

/* ---- the model ---- */

static basin_status read_unknown(const cJSON *model, const source *s) {
    const cJSON *item = basin_json_member(model, "unk_token");
    int64_t id;
    basin_status status = basin_json_flag(&s->tokenizer->fuse_unknown, model, "fuse_unk", false, s);
    if (status || !item) return status;
    if (!cJSON_IsString(item))
        return basin_fail(s->error, BASIN_BAD_FILE, "%s: unk_token is not a string", s->path);
    status = basin_tokenizer_read_name(&id, s, item->valuestring);
    if (!status && id < 0)
        status = basin_fail(s->error, BASIN_BAD_FILE, "%s: unk_token '%.60s' is not in the vocab",
                            s->path, item->valuestring);
    s->tokenizer->unknown = (int32_t)id;
    return status;
}

static basin_status read_model(const cJSON *root, const source *s) {
    static const char *const known[] = {"type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL};
    static const char *const unsupported[] = {"dropout", "continuing_subword_prefix",
                                              "end_of_word_suffix", "byte_fallback", NULL};
    const cJSON *model = basin_json_member(root, "model");
    const char *type = type_of(model);
    if (!model) return basin_fail(s->error, BASIN_BAD_FILE, "%s: there is no model", s->path);
    if (*type && strcmp(type, "BPE") != 0) /* early files leave the type out */
        return basin_fail(s->error, BASIN_UNSUPPORTED,
                          "%s: model %.60s is not supported, wanted BPE", s->path, type);
    basin_status status = basin_json_only(model, "the model", known, s);
    if (!status) status = want_all_absent(model, unsupported, s);
    if (!status)
        status = basin_json_flag(&s->tokenizer->whole_words, model, "ignore_merges", false, s);
    if (!status)
        status = basin_tokenizer_read_tokens(s, basin_json_member(model, "vocab"),
                                             basin_json_member(root, "added_tokens"));
    if (!status) status = basin_tokenizer_read_merges(s, basin_json_member(model, "merges"));
    if (!status) status = read_unknown(model, s);
    return status;
}

static basin_status read_root(const cJSON *root, const source *s) {
    static const char *const known[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    static const char *const unsupported[] = {"truncation", "padding", "normalizer", NULL};
    basin_status status = basin_json_only(root, "the file", known, s);
    if (!status) status = want_all_absent(root, unsupported, s);
    if (!status) status = read_words(root, s);
    if (!status) status = read_decoder(root, s);
    if (!status) status = read_post_processor(root, s);
    if (!status) status = read_model(root, s);
    return status;
}

static basin_status parse(basin_tokenizer **tokenizer, const void *json, size_t length,
                          const char *path, basin_error *error) {
    enum { TREE = 24 }; /* bytes of the tree for one of the text, about */
    cJSON *root = NULL;
    source s = {.path = path, .error = error};
    *tokenizer = NULL;
    basin_status status =
        basin_memory_check(TREE * (double)length, 0, path, BASIN_NO_MEMORY, error);
    if (!status)
        status = basin_json_parse(&root, json ? json : "", length, path, "the tokenizer", error);
    if (!status) status = basin_tokenizer_new(&s.tokenizer, error);
    if (!status) status = read_root(root, &s);
    cJSON_Delete(root);
    if (status) {
        basin_tokenizer_free(s.tokenizer);
        return status;
    }
    basin_tokenizer_finish(s.tokenizer);
    *tokenizer = s.tokenizer;
    return BASIN_OK;
}

basin_status basin_tokenizer_parse(basin_tokenizer **tokenizer, const char *json, const char *path,
                                   basin_error *error) {
    return parse(tokenizer, json, strlen(json), path, error);
}

basin_status basin_tokenizer_open(basin_tokenizer **tokenizer, const char *path,
                                  basin_error *error) {
    basin_map map;
    *tokenizer = NULL;
    basin_status status = basin_map_open(&map, path, error);
    if (!status) status = parse(tokenizer, map.data, map.size, path, error);
    basin_map_close(&map);
    return status;
}
