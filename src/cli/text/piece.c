/* Tokens on a line; see piece.h. */
#include "cli/text/piece.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"

enum { WIDEST = 8 }; /* bytes of a character or an escape, and of the mark behind the last */

/* One character, or one byte of what does not print; returns how many bytes of the token it took.
 */
static size_t print_one(char *to, int *columns, const char *bytes, size_t length) {
    uint32_t point;
    size_t count = basin_text_character(&point, bytes, length);
    bool prints = count && point >= 0x20 && !(point >= 0x7f && point < 0xa0) && point != '\\';
    if (prints) {
        snprintf(to, WIDEST, "%.*s", (int)count, bytes);
        ++*columns;
        return count;
    }
    const char *known = point == '\n'   ? "\\n"
                        : point == '\t' ? "\\t"
                        : point == '\\' ? "\\\\"
                                        : NULL;
    if (count && known)
        *columns += snprintf(to, WIDEST, "%s", known);
    else
        *columns += snprintf(to, WIDEST, "\\x%02x", (unsigned char)*bytes);
    return 1;
}

int basin_piece_print(char line[BASIN_PIECE_TEXT], const char *bytes, size_t length) {
    int columns = 0;
    char *to = line;
    *to = '\0';
    for (size_t at = 0; at < length;) {
        if (to - line > BASIN_PIECE_TEXT - 2 * WIDEST) return columns + snprintf(to, WIDEST, "..");
        at += print_one(to, &columns, bytes + at, length - at);
        while (*to) to++;
    }
    return columns;
}
