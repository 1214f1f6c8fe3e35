/* When a setting or an option has an effect: conditions on the values of others, as a text.
 * Space-separated clauses must all hold; commas separate alternatives within a clause:
 *
 *     "arch=et|vit attention=on,smoothing!=0"
 *
 * `name=` holds where the value is empty. Conditions on names that are not there are passed over.
 */
#ifndef BASIN_BASE_NEEDS_H
#define BASIN_BASE_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

enum { BASIN_NEEDS_VALUE = 200 };

/* Prints the value of `name` [length]; false: there is no such name. */
typedef bool basin_needs_value(char text[BASIN_NEEDS_VALUE], const void *context, const char *name,
                               size_t length);

/* Whether one of the words "a|b|c" [length] is `value`. */
bool basin_word_among(const char *words, size_t length, const char *value);
/* The first condition of the first clause that does not hold, of a name that is there; NULL: all
 * hold. */
const char *basin_needs_unmet(const char *needs, basin_needs_value *value, const void *context);
/* What follows the clause that `condition` belongs to. */
const char *basin_needs_next(const char *condition);
/* Whether `condition` is about that name. */
bool basin_needs_names(const char *condition, const char *name);
/* The words of `condition`, "et|vit", their length, and whether one of them is requested ('=') or
 * none may be ('!='). */
const char *basin_needs_words(const char *condition, size_t *length, bool *expected);

#endif
