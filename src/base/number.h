/* Numbers in texts, from names, files and the system. */
#ifndef BASIN_BASE_NUMBER_H
#define BASIN_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the decimal integer at *text, spaces before it skipped, and moves *text behind it. False,
 * with nothing changed, where there is none or it does not fit; sscanf would not tell. */
bool basin_integer_read(int64_t *value, const char **text);

#endif
