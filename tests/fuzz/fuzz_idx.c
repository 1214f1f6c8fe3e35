/* Fuzz target: any bytes as an idx file; every picture it then has is looked at. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "tasks/pictures/sets/pictures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char name[] = "fuzz";
    basin_shelf shelf = {.name = name};
    basin_error error = {0};
    basin_status status = basin_idx_parse(&shelf, data, size, &error);
    if (status) {
        if (error.status != status || strncmp(error.text, "fuzz: ", 6) != 0) abort();
        return 0;
    }
    basin_pictures pictures = {.shelf = &shelf, .shelves = 1, .count = shelf.count};
    basin_picture picture = {0};
    for (int64_t i = 0; i < shelf.count && i < 1000; i++)
        if (basin_pictures_load(&picture, &pictures, i, &error)) abort();
    basin_picture_free(&picture);
    return 0;
}

/* Ranks 3 and 4, channels last and second. */
size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const uint8_t shape[3][4] = {{3, 4, 5, 0}, {2, 4, 5, 3}, {2, 3, 4, 5}};
    if (index > 2) return 0;
    size_t rank = index ? 4 : 3, count = 1;
    memcpy(out, (uint8_t[]){0, 0, 8, (uint8_t)rank}, 4);
    for (size_t i = 0; i < rank; i++) {
        memcpy(out + 4 + 4 * i, (uint8_t[]){0, 0, 0, shape[index][i]}, 4);
        count *= shape[index][i];
    }
    for (size_t i = 0; i < count; i++) out[4 + 4 * rank + i] = (uint8_t)i;
    return 4 + 4 * rank + count;
}
