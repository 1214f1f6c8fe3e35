/* Calls in parts (backend/kernel.h): threads share the parts, not the calls, and meet at the end
 * alone. A thread stays with a part while that is little ahead of the others, so that its tokens
 * stay near, and then takes the one that is furthest behind: cores of unequal speed all work to the
 * end. */
#include <pthread.h>

#include "backend/cpu/cpu.h"

enum { AHEAD = 8 }; /* calls: about a step of a descent */

typedef struct sharing {
    basin_cpu_part_step *step;
    const void *context;
    size_t calls;
    int parts;
    pthread_mutex_t lock;     /* of these two */
    size_t next[BASIN_PARTS]; /* call of each part */
    bool taken[BASIN_PARTS];  /* some thread is at it */
} sharing;

/* The part to go on with after part `own` (-1: none); -1: nothing is left for this thread. */
static int choose(const sharing *s, int own) {
    int best = -1;
    for (int i = 0; i < s->parts; i++)
        if (!s->taken[i] && s->next[i] < s->calls && (best < 0 || s->next[i] < s->next[best]))
            best = i;
    bool stays =
        best >= 0 && own >= 0 && s->next[own] < s->calls && s->next[own] < s->next[best] + AHEAD;
    return stays ? own : best;
}

/* Gives part `own` back, one call further, and takes the next. */
static int take(sharing *s, int own, size_t *call) {
    pthread_mutex_lock(&s->lock);
    if (own >= 0) s->taken[own] = false, s->next[own]++;
    int part = choose(s, own);
    if (part >= 0) s->taken[part] = true, *call = s->next[part];
    pthread_mutex_unlock(&s->lock);
    return part;
}

static void work(const void *context, int64_t first, int64_t last, int place) {
    sharing *s = *(sharing *const *)context;
    size_t call;
    (void)first, (void)last;
    for (int part = take(s, -1, &call); part >= 0; part = take(s, part, &call))
        s->step(s->context, call, part, place);
}

void basin_cpu_run_parts(basin_cpu_part_step *step, const void *context, size_t calls, int parts,
                         int threads) {
    sharing all = {.step = step, .context = context, .calls = calls, .parts = parts}, *s = &all;
    pthread_mutex_init(&all.lock, NULL);
    basin_team_run(work, &s, threads < parts ? threads : parts, 1, threads);
    pthread_mutex_destroy(&all.lock);
}
