/* Whether ranks were asked for the same; see ranks.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ranks/inside.h"

/* The line of `a` in which it first differs from `b`, and that of `b`. */
static void find_difference(const char **a, const char **b) {
    const char *x = *a, *y = *b;
    while (*x && *x == *y) {
        if (*x == '\n') *a = x + 1, *b = y + 1;
        x++, y++;
    }
}

static int line_length(const char *text) {
    enum { MOST = 100 };
    size_t length = strcspn(text, "\n");
    return length < MOST ? (int)length : MOST;
}

static basin_status compare(const char *mine, const char *first, const char *what,
                            basin_error *error) {
    if (!strcmp(mine, first)) return BASIN_OK;
    find_difference(&mine, &first);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s differ from those of rank 0: '%.*s', and there '%.*s'; wanted the same "
                      "on all ranks",
                      what, line_length(mine), mine, line_length(first), first);
}

basin_status basin_ranks_alike(basin_ranks *ranks, const char *text, const char *what,
                               basin_error *error) {
    uint64_t size = strlen(text) + 1;
    bool first = basin_ranks_rank(ranks) == 0;
    if (basin_ranks_count(ranks) == 1) return BASIN_OK;
    basin_status status = basin_ranks_broadcast(ranks, &size, sizeof size, 0, error);
    if (status) return status;
    char *copy = basin_array_new(size, 1);
    if (!copy) status = basin_fail(error, BASIN_NO_MEMORY, "out of memory to compare ranks");
    if (copy && first) memcpy(copy, text, size);
    status = basin_ranks_agree(ranks, status, error);
    if (!status) status = basin_ranks_broadcast(ranks, copy, size, 0, error);
    if (!status) status = compare(text, copy, what, error);
    free(copy);
    return basin_ranks_agree(ranks, status, error);
}
