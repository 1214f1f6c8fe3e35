/* Text that comes from files and arguments, on its way to a terminal; misspelt names. */
#ifndef BASIN_BASE_TEXT_H
#define BASIN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it ends so, in letters of any case. */
bool basin_text_ends(const char *text, const char *end);

/* Replaces control characters by '?': line breaks, escapes, and the C1 set in UTF-8, which some
 * terminals obey as well. */
void basin_text_clean(char *text);

/* The bytes of the first character of `text` [length], 1 .. 4, and its code point; 0 where it is
 * not UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing above U+10FFFF. */
size_t basin_text_character(uint32_t *point, const char *text, size_t length);
bool basin_text_is_utf8(const char *text);

/* Names in a line, "a, b and 7 more": the first ones, and how many others. All zeros is empty. */
enum { BASIN_LIST_TEXT = 400 };
typedef struct basin_list {
    int count;
    char text[BASIN_LIST_TEXT];
    int shown, length; /* how many names the text has, and where the last one ends */
} basin_list;

void basin_list_add(basin_list *list, const char *name);

/* ---- misspelt names ---- */

/* How many letters to insert, delete, replace or swap to make one name of the other. */
int basin_name_distance(const char *a, const char *b);
/* Whether two names are near enough to take one for a slip of the other. */
bool basin_name_near(int distance, const char *name);

/* The nearest name to what was typed, of all that were seen. */
typedef struct basin_near {
    const char *typed;
    const char *name; /* NULL: none is near enough */
    int distance;
} basin_near;

basin_near basin_near_begin(const char *typed);
/* `name` must outlive `near`. */
void basin_near_see(basin_near *near, const char *name);

#endif
