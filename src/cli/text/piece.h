/* A token on one line. */
#ifndef BASIN_CLI_TEXT_PIECE_H
#define BASIN_CLI_TEXT_PIECE_H

#include <stddef.h>

/* Prints bytes: characters as they are, what does not print or is not UTF-8 as \n, \t, \\ or \x1b.
 * What does not fit is left out, and ends in "..". Returns the columns that it takes, a character
 * one. */
enum { BASIN_PIECE_TEXT = 200 };
int basin_piece_print(char line[BASIN_PIECE_TEXT], const char *bytes, size_t length);

#endif
