/* Escaped text; see markup.h. */
#include "view/markup.h"

#include <stddef.h>

/* How many bytes the UTF-8 sequence at `s` has; 0 where it is none. */
static int sequence(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    int count = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (int i = 1; i < count; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return count;
}

static const char *entity_of(unsigned char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void basin_markup_text(FILE *file, const char *text, int most) {
    const unsigned char *s = (const unsigned char *)text;
    for (int i = 0; *s && (!most || i < most); i++) {
        int count = sequence(s);
        const char *entity = entity_of(*s);
        if (entity)
            fputs(entity, file);
        else if (count == 0 || (*s < ' ' && *s != '\n' && *s != '\t'))
            fputs("\xef\xbf\xbd", file);
        else
            fwrite(s, 1, (size_t)count, file);
        s += count ? count : 1;
    }
    if (*s) fputs("\xe2\x80\xa6", file);
}
