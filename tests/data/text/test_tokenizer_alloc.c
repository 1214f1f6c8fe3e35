/* Tokenizers when memory is short: made, trained, read, used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basin/tasks/tokenizer.h"
#include "io/folder.h"
#include "support/alloc_fail.h"

static const char text[] = "the then these, the those <end> \xc3\xbc 12";
static const char json[] =
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<end>\",\"special\":true}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},"
    "\"model\":{\"vocab\":{\"t\":0,\"h\":1,\"th\":2,\"\xc4\xa0\":3},\"merges\":[\"t h\"]}}";

static basin_status use(const basin_tokenizer *t) {
    int32_t *id = NULL;
    int64_t count, skipped;
    char *back = NULL;
    size_t length;
    basin_status status =
        basin_tokenizer_encode(&id, &count, &skipped, t, text, strlen(text), NULL);
    if (!status) status = basin_tokenizer_decode(&back, &length, t, id, count, NULL);
    free(back);
    free(id);
    return status;
}

static basin_status make(void *context) {
    basin_tokenizer *t;
    (void)context;
    basin_status status = basin_tokenizer_characters(&t, text, strlen(text), NULL);
    if (!status) status = use(t);
    basin_tokenizer_free(t);
    if (!status) status = basin_tokenizer_train(&t, text, strlen(text), 265, NULL, NULL);
    if (!status) {
        status = use(t);
        basin_tokenizer_free(t);
    }
    return status;
}

static basin_status parse(void *context) {
    basin_tokenizer *t;
    (void)context;
    basin_status status = basin_tokenizer_parse(&t, json, "x", NULL);
    if (!status) status = use(t);
    basin_tokenizer_free(t);
    return status;
}

static basin_status files(void *context) {
    basin_tokenizer *t;
    char *got = NULL;
    size_t length;
    basin_status status = basin_tokenizer_bytes(&t, NULL);
    if (!status) status = basin_tokenizer_write(context, t, NULL);
    if (!status) status = basin_text_read(&got, &length, (const char *[]){context}, 1, NULL);
    free(got);
    basin_tokenizer_free(t);
    return status;
}

static void short_of_memory(void **state) {
    char path[PATH_TEXT];
    assert_true(alloc_fail_sweep(make, NULL) > 20);
    assert_true(alloc_fail_sweep(parse, NULL) > 10);
    assert_true(alloc_fail_sweep(files, folder_path(path, state, "t.txt")) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_of_memory, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
