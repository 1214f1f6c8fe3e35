/* Fuzz target: any bytes as an npz file, once as they are and once with their checksums made
 * right, since no mutation gets past those by itself. */
#include "engine/io/archive.h"
#include "engine/io/bundle.h"
#include "engine/io/zip.h"
#include "fuzz/fuzz.h"
#include "fuzz/touch.h"

static void parse(const uint8_t *data, size_t size) {
    basin_bundle *bundle;
    basin_error error;
    basin_status status = basin_npz_parse(&bundle, data, size, "fuzz", false, &error);
    outcome_check(bundle, status, &error);
    basin_bundle_free(bundle);
}

/* The checksum of what an entry unpacks to, as far as it does. */
static uint32_t checksum(const basin_zip *zip, const basin_zip_entry *entry) {
    basin_zip_stream stream;
    unsigned char byte;
    if (basin_zip_stream_open(&stream, zip, entry, NULL) != BASIN_OK) return 0;
    while (stream.taken < entry->size &&
           basin_zip_stream_read(&stream, &byte, 1, NULL) == BASIN_OK) {}
    basin_zip_stream_close(&stream);
    return stream.crc;
}

/* The checksum stands at byte 16 of each record of the directory. */
static void repair(uint8_t *data, size_t size) {
    basin_zip zip;
    basin_zip_entry entry;
    bool more = true;
    if (basin_zip_open(&zip, data, size, "fuzz", NULL) != BASIN_OK) return;
    for (;;) {
        size_t at = zip.at;
        if (basin_zip_next(&entry, &more, &zip, NULL) != BASIN_OK || !more) return;
        le(data + at + 16, checksum(&zip, &entry), 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    repair(copy, size);
    parse(copy, size);
    free(copy);
    return 0;
}

#define HEADER(type, order, shape)                                                                 \
    "{'descr': '" type "', 'fortran_order': " order ", 'shape': " shape ", }"

/* Stored and deflated, each version, both orders, types that are widened and swapped. */
static void seed_fill(archive *a, int index) {
    static const unsigned char data[48] = "0123456789abcdefghijklmnopqrstuvwxyz";
    static const char meta[] = "{\"config\": \"{}\", \"\\u00e9\": \"\"}";
    switch (index) {
    case 0: break;
    case 1:
        archive_add_npy(a, "wk.npy", HEADER("<f4", "False", "(2, 3)"), data, 24, 1, 0);
        archive_add_npy(a, "wq.npy", HEADER("<f4", "False", "(2, 3)"), data, 24, 1, 1);
        break;
    case 2:
        archive_add_npy(a, "a.npy", HEADER(">u2", "True", "(2, 3, 2)"), data, 24, 2, 1);
        archive_add_npy(a, "b/c.npy", HEADER(">f8", "True", "(2, 3)"), data, 48, 3, 0);
        archive_add_npy(a, "d.npy", HEADER("|b1", "False", "()"), data, 1, 1, 1);
        break;
    default:
        archive_add_npy(a, "__metadata__.npy", HEADER("|u1", "False", "(30,)"), meta, 30, 1, 0);
        archive_add_npy(a, "e.npy", HEADER("<u8", "False", "(0, 4)"), data, 0, 1, 1);
        archive_add_npy(a, "f.npy", HEADER("<u4", "True", "(1, 2)"), data, 8, 1, 0);
        break;
    }
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static archive zip;
    if (index > 3) return 0;
    memset(&zip, 0, sizeof zip);
    seed_fill(&zip, index);
    archive_end(&zip);
    if (zip.size > FUZZ_ROOM) abort();
    memcpy(out, zip.bytes, zip.size);
    return zip.size;
}
