/* Joint values and their parts, and gangs of instructions that one instruction replaces. */
#include "plan/passes/joint.h"

#include "base/memory.h"

basin_joint *basin_joint_new(basin_joining *j, basin_shape shape, basin_kind kind) {
    int value = basin_ir_value_new(j->ir, shape, kind);
    if (value < 0 ||
        !basin_array_reserve((void **)&j->joint, &j->capacity, j->joints + 1, sizeof *j->joint))
        return NULL;
    j->joint[j->joints] = (basin_joint){.value = value, .turned = -1};
    return &j->joint[j->joints++];
}

void basin_joint_add(basin_joining *j, basin_joint *t, int root, int64_t length, int64_t width,
                     int64_t stride) {
    basin_ir *ir = j->ir;
    int64_t at = t->at[t->parts];
    t->part[t->parts++] = root;
    t->at[t->parts] = at + length;
    for (size_t i = 0; i < ir->values; i++) {
        basin_ir_value *v = &ir->value[i];
        if (v->root != root) continue;
        v->root = t->value;
        v->first = stride ? at : at * width;
        v->stride = stride;
    }
}

const basin_joint *basin_joint_of(const basin_joining *j, int value) {
    int root = basin_root_of(j->ir, value);
    for (size_t i = 0; i < j->joints; i++)
        if (j->joint[i].value == root) return &j->joint[i];
    return NULL;
}

int basin_joint_part(const basin_joining *j, const basin_joint *t, int value) {
    const basin_ir_value *v = &j->ir->value[value];
    for (int p = 0; p < t->parts; p++)
        if (v->first == j->ir->value[t->part[p]].first) return p;
    return -1;
}

int basin_joint_span(basin_joining *j, const basin_joint *t, int first, int last,
                     basin_shape shape) {
    if (first == 0 && last == t->parts - 1) return t->value;
    basin_ir_value like = j->ir->value[t->part[first]];
    int value = basin_ir_value_new(j->ir, shape, like.kind);
    if (value < 0) return -1;
    j->ir->value[value].root = t->value;
    j->ir->value[value].first = like.first;
    j->ir->value[value].stride = like.stride;
    return value;
}

bool basin_gang_sort(basin_gang *g) {
    for (int i = 1; i < g->instructions; i++)
        for (int k = i; k > 0 && g->part[k] < g->part[k - 1]; k--) {
            int part = g->part[k], instruction = g->instruction[k];
            g->part[k] = g->part[k - 1], g->instruction[k] = g->instruction[k - 1];
            g->part[k - 1] = part, g->instruction[k - 1] = instruction;
        }
    for (int i = 1; i < g->instructions; i++)
        if (g->part[i] != g->part[0] + i) return false;
    return g->instructions > 1;
}

int basin_gang_last(const basin_joining *j, const basin_gang *g) {
    const basin_ir *ir = j->ir;
    int last = g->instruction[0];
    for (int i = 1; i < g->instructions; i++)
        if (g->instruction[i] > last) last = g->instruction[i];
    for (int i = 0; i < g->instructions; i++) {
        int out = ir->instruction[g->instruction[i]].out[0];
        for (int s = g->instruction[i] + 1; s <= last; s++)
            for (int k = 0; k < ir->instruction[s].ins; k++)
                if (!ir->instruction[s].dead && ir->instruction[s].in[k] >= 0 &&
                    basin_root_of(ir, ir->instruction[s].in[k]) == out)
                    return -1;
    }
    return last;
}

void basin_gang_replace(basin_joining *j, const basin_gang *g, int last) {
    for (int i = 0; i < g->instructions; i++)
        j->ir->instruction[g->instruction[i]].dead = g->instruction[i] != last;
}
