/* Names that are nearly others; see spelling.h. */
#include "base/spelling.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

int basin_name_distance(const char *a, const char *b) {
    enum { LIMIT = 31 };
    int rows[3][LIMIT + 1], *before = rows[0], *last = rows[1], *next = rows[2];
    int m = (int)strlen(a), n = (int)strlen(b);
    if (m > LIMIT || n > LIMIT) return m > n ? m : n;
    for (int j = 0; j <= n; j++) before[j] = 0, last[j] = j;
    for (int i = 1; i <= m; i++) {
        next[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (next[j - 1] + 1 < best) best = next[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            next[j] = best;
        }
        int *spare = before;
        before = last, last = next, next = spare;
    }
    return last[n];
}

bool basin_name_near(int distance, const char *name) {
    int length = (int)strlen(name);
    return distance <= (length < 3 ? 1 : length < 6 ? 2 : 3) && distance < length;
}

basin_near basin_near_begin(const char *typed) {
    return (basin_near){.typed = typed, .distance = INT_MAX};
}

void basin_near_see(basin_near *near, const char *name) {
    int distance = basin_name_distance(near->typed, name);
    if (distance >= near->distance || !basin_name_near(distance, near->typed)) return;
    near->distance = distance;
    near->name = name;
}
