/* Fuzz target: any bytes as a text, plain or packed, and as an .npy array of token ids. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "task/text/text.h"

static void read_one(const char *path) {
    basin_text text;
    basin_error error = {0};
    basin_status status = basin_text_read(&text, &path, 1, &error);
    if (status && (error.status != status || !*error.text || strchr(error.text, '\n'))) abort();
    if (status ? text.bytes || text.id : !text.length || !text.bytes == !text.id) abort();
    for (size_t i = 0; text.id && i < text.length; i++)
        if (text.id[i] < 0) abort();
    if (basin_text_cut(&text, 0.1) > text.length) abort();
    basin_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[MEMORY_PATH];
    int fd = memory_file(path, data, size);
    read_one(path);
    close(fd);
    temporary_name(path, "npy");
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
    read_one(path);
    unlink(path);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char npy[] = "\x93NUMPY\x01\x00\x36\x00{'descr': '<i2', 'fortran_order': False, "
                              "'shape': (2,)}\n\x05\x00\x07\x01";
    static const char gzip[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4a\x06\x00\xc2\x41"
        "\x24\x35\x03\x00\x00\x00";
    static const char words[] = "\xef\xbb\xbfto be\nor not \xc3\xa9";
    const struct {
        const char *bytes;
        size_t size;
    } seed[] = {{npy, sizeof npy - 1}, {gzip, sizeof gzip - 1}, {words, sizeof words - 1}};
    if (index > 2) return 0;
    memcpy(out, seed[index].bytes, seed[index].size);
    return seed[index].size;
}
