/* UTF-8, lists of names in a line, misspelt names (text.h), messages. */
#include "base/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "basin/status.h"

bool basin_text_ends(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length >= size && !strcasecmp(text + length - size, end);
}

void basin_text_clean(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 127) *c = '?';
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) c[0] = c[1] = '?';
    }
}

size_t basin_text_character(uint32_t *point, const char *text, size_t length) {
    static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    *point = 0;
    if (!length) return 0;
    size_t bytes = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (!bytes || bytes > length || s[0] > 0xf4) return 0;
    *point = bytes == 1 ? s[0] : s[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *point = *point << 6 | (s[i] & 0x3f);
    }
    if (*point < min[bytes] || *point > 0x10ffff || *point >> 11 == 0x1b) return 0;
    return bytes;
}

bool basin_text_is_utf8(const char *text) {
    uint32_t point;
    size_t bytes = 1;
    for (size_t left = strlen(text); left && bytes; text += bytes, left -= bytes)
        bytes = basin_text_character(&point, text, left);
    return bytes > 0;
}

void basin_list_add(basin_list *list, const char *name) {
    enum { REST = 40 }; /* room for the number of others */
    int used = list->length, room = BASIN_LIST_TEXT - used - REST;
    list->count++;
    if (list->shown == list->count - 1 && (int)strlen(name) + 2 < room) {
        list->length +=
            snprintf(list->text + used, (size_t)room, "%s%s", list->shown ? ", " : "", name);
        list->shown++;
    } else {
        snprintf(list->text + used, REST, " and %d more", list->count - list->shown);
    }
}

/* ---- misspelt names ---- */

int basin_name_distance(const char *a, const char *b) {
    enum { LIMIT = 31 };
    int rows[3][LIMIT + 1], *before = rows[0], *last = rows[1], *next = rows[2];
    int m = (int)strlen(a), n = (int)strlen(b);
    if (m > LIMIT || n > LIMIT) return m > n ? m : n;
    for (int j = 0; j <= n; j++) before[j] = 0, last[j] = j;
    for (int i = 1; i <= m; i++) {
        next[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (next[j - 1] + 1 < best) best = next[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            next[j] = best;
        }
        int *spare = before;
        before = last, last = next, next = spare;
    }
    return last[n];
}

bool basin_name_near(int distance, const char *name) {
    int length = (int)strlen(name);
    return distance <= (length < 3 ? 1 : length < 6 ? 2 : 3) && distance < length;
}

basin_near basin_near_begin(const char *typed) {
    return (basin_near){.typed = typed, .distance = INT_MAX};
}

void basin_near_see(basin_near *near, const char *name) {
    int distance = basin_name_distance(near->typed, name);
    if (distance >= near->distance || !basin_name_near(distance, near->typed)) return;
    near->distance = distance;
    near->name = name;
}
