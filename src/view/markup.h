/* Text within HTML and SVG: whatever a name holds, the page stays well-formed. */
#ifndef BASIN_VIEW_MARKUP_H
#define BASIN_VIEW_MARKUP_H

#include <stdio.h>

/* Escaped, so that it is right between tags and in attributes; bytes that are not UTF-8, and
 * control characters but line ends and tabs, become U+FFFD. At most so many characters, with an
 * ellipsis behind a longer text; 0: all of it. */
void basin_markup_text(FILE *file, const char *text, int most);

#endif
