/* Fuzz target: any bytes as tokenizer.json, and what was read used on a text; or, where the bytes
 * are not JSON, as a text that a tokenizer is trained on. */
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/tokenizer.h"
#include "fuzz/fuzz.h"

static const char text[] = "ab  <end> abab \xc3\xbc\xff 12\n'll  \xe6\x97\xa5";

/* Tokens are those of the tokenizer; where nothing was skipped or put before it, decoding gives the
 * text back. */
static void use(const basin_tokenizer *t, const char *bytes, size_t length, bool back) {
    int32_t *id;
    int64_t count, skipped;
    char *decoded;
    size_t size;
    if (basin_tokenizer_encode(&id, &count, &skipped, t, bytes, length, NULL)) return;
    for (int64_t i = 0; i < count; i++)
        if (id[i] < 0 || id[i] >= basin_tokenizer_size(t)) abort();
    if (basin_tokenizer_decode(&decoded, &size, t, id, count, NULL)) abort();
    if (back && (size != length || memcmp(decoded, bytes, length) != 0)) abort();
    free(decoded);
    free(id);
}

/* Printed and read again, it prints the same. */
static void print_again(const basin_tokenizer *t) {
    basin_tokenizer *read;
    char *first, *second;
    basin_error error;
    if (basin_tokenizer_print(&first, t, &error) ||
        basin_tokenizer_parse(&read, first, "again", &error) ||
        basin_tokenizer_print(&second, read, &error) || strcmp(first, second) != 0)
        abort();
    free(first);
    free(second);
    basin_tokenizer_free(read);
}

static void train(const uint8_t *data, size_t size) {
    basin_tokenizer *t;
    basin_error error;
    int64_t vocabulary = 257 + (int64_t)size % 40;
    basin_status status =
        basin_tokenizer_train(&t, (const char *)data, size, vocabulary, NULL, &error);
    if (status) {
        if (error.status != status || t) abort();
        return;
    }
    use(t, (const char *)data, size, true);
    print_again(t);
    basin_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_tokenizer *t;
    basin_error error = {0};
    char *json = malloc(size + 1);
    if (!json) abort();
    if (size) memcpy(json, data, size);
    json[size] = '\0';
    basin_status status = basin_tokenizer_parse(&t, json, "fuzz", &error);
    free(json);
    if (status) {
        if (error.status != status || !*error.text || t) abort();
        if (size && data[0] != '{') train(data, size);
        return 0;
    }
    use(t, text, strlen(text), false);
    print_again(t);
    basin_tokenizer_free(t);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char *const seed[] = {
        "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":null,"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"b\",\"fuse_unk\":true,\"vocab\":{\"a\":0,"
        "\"b\":"
        "1,\"ab\":2,\"abab\":3,\" \":4},\"merges\":[\"a b\",[\"ab\",\"ab\"]]}}",
        "{\"added_tokens\":[{\"id\":4,\"content\":\"<end>\",\"lstrip\":true,\"rstrip\":true,"
        "\"special\":true}],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},"
        "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"ignore_merges\":true,\"vocab\":{\"a\":0,"
        "\"b\":1,\"\xc4\xa0\":2,\"\xc4\xa0\xc4\xa0\":3},\"merges\":[\"\xc4\xa0 \xc4\xa0\"]}}",
        "{\"added_tokens\":[{\"id\":1,\"content\":\"\xe6\x97\xa5\",\"normalized\":true}],"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},"
        "\"model\":{\"vocab\":{\"a\":0,\"\xe6\x97\xa5\":1},\"merges\":[]}}",
        "the then these those, and the others there; aaaa aaaa",
    };
    if (index > 3) return 0;
    memcpy(out, seed[index], strlen(seed[index]));
    return strlen(seed[index]);
}
