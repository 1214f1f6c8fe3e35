/* Slips of the finger: how far a name is from another, and the nearest of many. */
#ifndef BASIN_BASE_SPELLING_H
#define BASIN_BASE_SPELLING_H

#include <stdbool.h>

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
