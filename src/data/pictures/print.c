/* Fingerprints of pictures: 64 bits of what is stored, so that a model can remember what it was
 * trained on. Not decoded: a copy of a file has the same, the same picture compressed anew not. */
#include "data/pictures/pictures.h"

/* FNV-1a; goes on from `hash`. */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

/* Spreads what the last bytes changed over all bits. */
static uint64_t finish(uint64_t hash) {
    hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
    hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
    return hash ^ (hash >> 33);
}

/* The first bytes and the number of all: large files are not read whole. */
basin_status basin_pictures_print(uint64_t *print, const basin_pictures *pictures, int64_t i,
                                  basin_error *error) {
    enum { MOST = 1 << 16 };
    basin_fetched fetched;
    basin_picture picture = {0};
    basin_status status = basin_pictures_fetch(&fetched, &picture, pictures, i, error);
    const uint8_t *bytes = fetched.bytes ? fetched.bytes : picture.pixel;
    uint64_t size[3] = {fetched.size, 0, 0};
    if (!fetched.bytes) {
        size[0] = (uint64_t)(picture.height * picture.width * picture.channels);
        size[1] = (uint64_t)picture.height, size[2] = (uint64_t)picture.channels;
    }
    *print = 0;
    if (!status) {
        uint64_t hash = add_bytes(0xcbf29ce484222325u, size, sizeof size);
        *print = finish(add_bytes(hash, bytes, size[0] < MOST ? size[0] : MOST));
    }
    basin_map_close(&fetched.map);
    basin_picture_free(&picture);
    return status;
}
