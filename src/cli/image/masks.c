/* What --mask says; see masks.h. */
#include "cli/image/masks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* "left,top,width,height"; *end is behind it. */
static bool read_rectangle(int64_t rectangle[4], const char *text, char **end) {
    for (int i = 0; i < 4; i++) {
        errno = 0;
        rectangle[i] = strtoll(text, end, 10);
        if (errno || *end == text || (i < 3 && **end != ',')) return false;
        text = *end + 1;
    }
    return rectangle[0] >= 0 && rectangle[1] >= 0 && rectangle[2] > 0 && rectangle[3] > 0;
}

static basin_status read_rectangles(basin_masks *m, basin_error *error) {
    size_t most = 1;
    for (const char *c = m->text; *c; c++) most += *c == ';';
    m->rectangle = calloc(most, 4 * sizeof *m->rectangle);
    if (!m->rectangle) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for rectangles");
    for (const char *at = m->text;; at++) {
        char *end;
        bool good = read_rectangle(m->rectangle + 4 * m->rectangles++, at, &end);
        if (!good || (*end && *end != ';'))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--mask %s: wanted four whole numbers X,Y,W,H from the upper left "
                              "corner, W and H above 0 (several apart by ';'), a PNG file, a "
                              "folder of them, or random",
                              m->text);
        if (!*end) return BASIN_OK;
        at = end;
    }
}

static basin_status read_file(basin_masks *m, const char *path, basin_error *error) {
    enum { NEARLY_BLACK = 32 };
    basin_status status = basin_picture_read(&m->picture, path, error);
    if (!status) status = basin_picture_set_channels(&m->picture, 1, error);
    m->dark = 0;
    for (int64_t i = 0; !status && i < m->picture.height * m->picture.width; i++)
        m->dark += m->picture.pixel[i] > 0 && m->picture.pixel[i] < NEARLY_BLACK;
    return status;
}

basin_status basin_masks_open(basin_masks *masks, const char *text, basin_error *error) {
    struct stat found;
    *masks = (basin_masks){.text = text};
    if (!strcmp(text, "random")) return BASIN_OK;
    if (text[strspn(text, "-0123456789,;. ")] == 0) return read_rectangles(masks, error);
    if (stat(text, &found) == 0 && S_ISDIR(found.st_mode)) {
        masks->folder = text;
        return BASIN_OK;
    }
    return read_file(masks, text, error);
}

void basin_masks_free(basin_masks *masks) {
    free(masks->rectangle);
    basin_picture_free(&masks->picture);
    *masks = (basin_masks){0};
}

basin_status basin_masks_set(basin_image_completing *how, basin_masks *masks, const char *name,
                             basin_error *error) {
    char path[4096];
    basin_status status = BASIN_OK;
    how->more_rectangles = masks->rectangle;
    how->rectangles = masks->rectangles;
    if (masks->folder) {
        snprintf(path, sizeof path, "%s/%s.png", masks->folder, name);
        status = read_file(masks, path, error);
    }
    how->mask = masks->picture.pixel ? &masks->picture : NULL;
    return status;
}
