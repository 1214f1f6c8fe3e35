/* Fuzz target: any bytes as an archive of pictures; every small picture it then has is decoded. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/pack.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/sets/pictures.h"

enum { PIXELS = 1 << 16, ROOM = 1 << 24 };

static int64_t big(const uint8_t *at) {
    return (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | at[3];
}

/* Larger pictures would only make the fuzzer slow. */
static void decode(const basin_entry *entry) {
    uint8_t head[24] = {0};
    basin_picture picture = {0};
    memcpy(head, entry->data, entry->size < sizeof head ? entry->size : sizeof head);
    int64_t width = big(head + 16), height = big(head + 20);
    if (width <= 0 || height <= 0 || width > PIXELS / height) return;
    (void)basin_picture_decode(&picture, entry->data, entry->size, "fuzz", NULL);
    basin_picture_free(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_error error = {0};
    basin_shelf shelf = {.limit = ROOM, .name = strdup("fuzz")};
    basin_status status = basin_archive_parse(&shelf, data, size, &error);
    if (status && (error.status != status || strncmp(error.text, "fuzz", 4) != 0)) abort();
    for (int64_t i = 0; i < shelf.count && !status; i++) {
        if (!basin_name_is_picture(shelf.entry[i].name)) abort();
        decode(&shelf.entry[i]);
    }
    bool divided;
    if (!status) basin_shelf_divide(&shelf, "test", &divided);
    basin_shelf_free(&shelf);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    uint8_t *bytes;
    size_t size;
    if (index >= PACK_FORMS) return 0;
    basin_picture picture = make_picture(9, 7, 3, index);
    if (basin_png_encode(&bytes, &size, &picture, NULL)) abort();
    const packed_file file[] = {
        {"train/a.png", bytes, size}, {"test/b.png", bytes, size}, {"README", "none", 4}};
    size_t used = pack(out, FUZZ_ROOM, index, file, 3);
    free(bytes);
    basin_picture_free(&picture);
    return used;
}
