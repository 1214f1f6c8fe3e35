/* Text that comes from files and arguments, on its way to a terminal. */
#ifndef BASIN_BASE_TEXT_H
#define BASIN_BASE_TEXT_H

/* Replaces control characters by '?': line breaks, escapes, and the C1 set in UTF-8, which some
 * terminals obey as well. */
void basin_text_clean(char *text);

#endif
