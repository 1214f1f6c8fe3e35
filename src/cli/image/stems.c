/* Names for what is made of pictures; see stems.h. */
#include "cli/image/stems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

basin_status basin_stems_new(basin_stems *stems, int64_t most, basin_error *error) {
    stems->slots = 64;
    while (stems->slots < 2 * (size_t)most) stems->slots *= 2;
    stems->taken = calloc(stems->slots, sizeof *stems->taken);
    return stems->taken ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "out of memory for names");
}

void basin_stems_free(basin_stems *stems) {
    free(stems->taken);
    *stems = (basin_stems){0};
}

/* FNV-1a. Two names of one hash cost a number behind the second, no more. */
static uint64_t hash_of(const char *name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* Whether the name was free; it is taken then. */
static bool take(basin_stems *stems, const char *name) {
    uint64_t hash = hash_of(name);
    size_t at = hash & (stems->slots - 1);
    for (; stems->taken[at]; at = (at + 1) & (stems->slots - 1))
        if (stems->taken[at] == hash) return false;
    stems->taken[at] = hash;
    return true;
}

/* The end of a file's name: its last ending, of a numbered picture of a set all of them. */
static size_t stem_length(const char *last, const char *number) {
    size_t length = number ? (size_t)(number - last) : strlen(last);
    for (size_t k = length; k > 1; k--)
        if (last[k - 1] == '.') {
            length = k - 1;
            if (!number) break;
        }
    return length;
}

void basin_stems_give(char name[BASIN_STEM], basin_stems *stems, const basin_pictures *pictures,
                      int64_t i) {
    char text[BASIN_PICTURE_NAME], plain[BASIN_STEM - 16];
    const char *full = basin_pictures_name(text, pictures, i), *slash = strrchr(full, '/');
    const char *last = slash ? slash + 1 : full, *number = strrchr(last, '[');
    snprintf(plain, sizeof plain, "%.*s%s%.*s", (int)stem_length(last, number), last,
             number ? "-" : "", number ? (int)strcspn(number + 1, "]") : 0,
             number ? number + 1 : "");
    snprintf(name, BASIN_STEM, "%s", plain);
    for (int k = 2; !take(stems, name); k++) snprintf(name, BASIN_STEM, "%s-%d", plain, k);
}
