/* UTF-8, passwords, and lists of names in a line; see text.h. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void basin_text_hide(char *text) {
    while ((text = strstr(text, "://"))) {
        text += 3;
        char *end = text + strcspn(text, " \t\n'\""), *at = NULL;
        char *colon = memchr(text, ':', (size_t)(end - text));
        for (char *p = text; p < end; p++)
            if (*p == '@') at = p;
        if (at && colon && colon < at) memset(colon + 1, '*', (size_t)(at - colon - 1));
    }
}

bool basin_text_is_utf8(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        int more = *s < 0x80 ? 0 : *s >= 0xc2 && *s < 0xe0 ? 1 : (*s & 0xf0) == 0xe0 ? 2 : 3;
        if (more == 3 && (*s < 0xf0 || *s > 0xf4)) return false;
        unsigned char low = 0x80, high = 0xbf;
        if (*s == 0xe0) low = 0xa0;
        if (*s == 0xed) high = 0x9f;
        if (*s == 0xf0) low = 0x90;
        if (*s == 0xf4) high = 0x8f;
        for (s++; more > 0; more--, s++, low = 0x80, high = 0xbf)
            if (*s < low || *s > high) return false;
    }
    return true;
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
