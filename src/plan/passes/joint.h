/* Joint values in the making: matrices that several values of a plan become rows or columns of. See
 * join.c. */
#ifndef BASIN_PLAN_PASSES_JOINT_H
#define BASIN_PLAN_PASSES_JOINT_H

#include "plan/ir.h"

enum { BASIN_JOINT_PARTS = 8 };

typedef struct basin_joint {
    int value;                   /* the joint value */
    int part[BASIN_JOINT_PARTS]; /* the roots that became parts of it, in their order */
    int64_t at[BASIN_JOINT_PARTS + 1];
    int parts;
    int turned; /* of a joint weight: its transpose, -1 before that is needed */
} basin_joint;

typedef struct basin_joining {
    basin_ir *ir;
    basin_joint *joint;
    size_t joints, capacity;
    int *reader;   /* [values] of roots: the last instruction that reads it */
    bool *bound;   /* [values] of roots: read or written by something that wants it dense */
    size_t values; /* how many there were; joint ones follow */
    int64_t small; /* elements of the largest gradient that is joined */
} basin_joining;

/* Instructions of the same kind that one instruction will replace, in their order. */
typedef struct basin_gang {
    int instruction[BASIN_JOINT_PARTS],
        part[BASIN_JOINT_PARTS]; /* part: which of the joint each belongs to */
    int instructions;
} basin_gang;

/* A joint value without parts; NULL when out of memory. It moves when another one is made. */
basin_joint *basin_joint_new(basin_joining *j, basin_shape shape, basin_kind kind);
/* Makes `root` the next part: `length` rows or columns; stride 0: dense rows of `width`. */
void basin_joint_add(basin_joining *j, basin_joint *t, int root, int64_t length, int64_t width,
                     int64_t stride);
/* The joint value that this one is, or is a part of; NULL. */
const basin_joint *basin_joint_of(const basin_joining *j, int value);
/* Which part of it; -1. */
int basin_joint_part(const basin_joining *j, const basin_joint *t, int value);
/* Parts first .. last of a joint value, as one operand of the given shape; -1 when out of memory.
 */
int basin_joint_span(basin_joining *j, const basin_joint *t, int first, int last,
                     basin_shape shape);

/* Parts ascending; false unless they are neighbours, at least two. */
bool basin_gang_sort(basin_gang *g);
/* The last instruction of the gang, which becomes the joint one, provided that nobody reads the
 * result of another before it; -1. */
int basin_gang_last(const basin_joining *j, const basin_gang *g);
/* The last one takes the place of all. */
void basin_gang_replace(basin_joining *j, const basin_gang *g, int last);

#endif
