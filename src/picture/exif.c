/* The orientation tag of EXIF data: a TIFF header, and in its first directory tag 0x0112. */
#include "picture/decoder.h"

static unsigned number(const uint8_t *at, int bytes, bool big) {
    unsigned value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[big ? i : bytes - 1 - i];
    return value;
}

int basin_exif_orientation(const uint8_t *tiff, size_t size) {
    enum { ENTRY = 12, TAG = 0x0112, SHORT = 3 };
    if (size < 8) return 1;
    bool big = tiff[0] == 'M';
    if (tiff[0] != tiff[1] || (!big && tiff[0] != 'I') || number(tiff + 2, 2, big) != 42) return 1;
    size_t at = number(tiff + 4, 4, big);
    if (at > size - 2) return 1;
    unsigned entries = number(tiff + at, 2, big);
    at += 2;
    for (unsigned i = 0; i < entries && size - at >= ENTRY; i++, at += ENTRY) {
        const uint8_t *entry = tiff + at;
        if (number(entry, 2, big) != TAG || number(entry + 2, 2, big) != SHORT) continue;
        unsigned value = number(entry + 8, 2, big);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
