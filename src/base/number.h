/* Numbers in texts, from names, files and the system. */
#ifndef BASIN_BASE_NUMBER_H
#define BASIN_BASE_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the decimal integer at *text, skipping spaces before it, and moves *text past it. False,
 * with nothing changed, where there is none or it overflows, which sscanf does not report. */
bool basin_integer_read(int64_t *value, const char **text);

/* strtod and snprintf's %.*g with a decimal point: a program that calls the library may have set a
 * locale that writes 1,5, and files must not depend on it. */
double basin_real_read(const char *text, char **end);
void basin_real_print(char *text, size_t size, int digits, double value);

/* Between the two, printf in this thread also writes decimal points. */
locale_t basin_numbers_begin(void);
void basin_numbers_end(locale_t *before);

#endif
