/* A heap; see queue.h. */
#include "data/text/queue.h"

#include "base/memory.h"

static bool before(const basin_queued *a, const basin_queued *b) {
    return a->first != b->first ? a->first < b->first : a->second < b->second;
}

bool basin_queue_push(basin_queue *q, basin_queued entry) {
    size_t i = q->count;
    if (!basin_array_reserve((void **)&q->entry, &q->room, i + 1, sizeof *q->entry)) return false;
    for (; i && before(&entry, q->entry + (i - 1) / 2); i = (i - 1) / 2)
        q->entry[i] = q->entry[(i - 1) / 2];
    q->entry[i] = entry;
    q->count++;
    return true;
}

basin_queued basin_queue_pop(basin_queue *q) {
    basin_queued top = q->entry[0], last = q->entry[--q->count];
    size_t i = 0;
    for (size_t child = 1; child < q->count; child = 2 * i + 1) {
        if (child + 1 < q->count && before(q->entry + child + 1, q->entry + child)) child++;
        if (!before(q->entry + child, &last)) break;
        q->entry[i] = q->entry[child];
        i = child;
    }
    q->entry[i] = last;
    return top;
}
