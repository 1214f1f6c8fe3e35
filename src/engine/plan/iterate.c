/* Running iterations; see plan.h. One that does not end in time is counted, no error. */
#include "base/info.h"
#include "engine/plan/plan.h"

#include "base/try.h"

/* ---- making ---- */

/* Marks ITERATED nodes that the outputs need, also through what plans themselves do not read. */
static int find(bool *live, const basin_graph *graph, const basin_plan_spec *spec) {
    int found = 0;
    for (int i = 0; i < spec->outputs; i++) live[spec->output[i]->node->id] = true;
    for (int i = 0; i < spec->updates; i++) live[spec->update[i].value->node->id] = true;
    for (size_t n = graph->nodes; n-- > 0;) {
        const basin_node *node = graph->node[n];
        for (int i = 0; i < node->ins && live[n]; i++)
            if (node->in[i]) live[node->in[i]->node->id] = true;
        found += live[n] && node->op == BASIN_OP_ITERATED;
    }
    return found;
}

static basin_status make_plan(basin_plan **plan, const basin_iteration *what, bool first,
                              basin_store *store, basin_error *error) {
    basin_update update[BASIN_ITERATION_STATES];
    basin_expr output = first ? what->size : what->left;
    basin_plan_spec spec = {.output = &output, .outputs = output != NULL, .update = update};
    for (int i = 0; i < what->carries; i++) {
        basin_expr value = first ? what->carry[i].first : what->carry[i].next;
        if (value) update[spec.updates++] = (basin_update){what->carry[i].state, value};
    }
    return basin_plan_new_inner(plan, store, &spec, error);
}

basin_status basin_iterations_make(basin_plan_iterations *made, const basin_graph *graph,
                                   basin_store *store, const basin_plan_spec *spec,
                                   basin_error *error) {
    *made = (basin_plan_iterations){0};
    if (!graph->iterations) return BASIN_OK;
    BASIN_SCRATCH(bool, live, graph->nodes, "a plan", error);
    BASIN_TRY(BASIN_NEW(&made->list, find(live, graph, spec), "a plan", error));
    for (size_t n = 0; n < graph->nodes; n++) {
        const basin_node *node = graph->node[n];
        if (!live[n] || node->op != BASIN_OP_ITERATED) continue;
        basin_plan_iteration *one = &made->list[made->count++];
        one->what = graph->iteration[node->attr.start];
        BASIN_TRY(make_plan(&one->begin, &one->what, true, store, error));
        BASIN_TRY(make_plan(&one->again, &one->what, false, store, error));
    }
    return BASIN_OK;
}

void basin_iterations_free(basin_plan_iterations *iterations) {
    for (int i = 0; i < iterations->count; i++) {
        basin_plan_free(iterations->list[i].begin);
        basin_plan_free(iterations->list[i].again);
    }
    free(iterations->list);
    *iterations = (basin_plan_iterations){0};
}

basin_plan *basin_iterations_plan(const basin_plan_iterations *iterations, int i) {
    if (i >= 2 * iterations->count) return NULL;
    const basin_plan_iteration *one = &iterations->list[i / 2];
    return i % 2 ? one->again : one->begin;
}

/* Iterations share states; each is counted where it comes first. */
static bool is_new(const basin_plan_iterations *iterations, int last, int carry) {
    basin_expr state = iterations->list[last].what.carry[carry].state;
    for (int i = 0; i <= last; i++)
        for (int k = 1; k < (i < last ? iterations->list[i].what.carries : carry); k++)
            if (iterations->list[i].what.carry[k].state == state) return false;
    return true;
}

basin_expr basin_iterations_state(const basin_plan_iterations *iterations, int i) {
    for (int n = 0; n < iterations->count; n++)
        for (int k = 1; k < iterations->list[n].what.carries; k++)
            if (is_new(iterations, n, k) && i-- == 0)
                return iterations->list[n].what.carry[k].state;
    return NULL;
}

/* ---- running ---- */

static void count(basin_convergence *convergence, const basin_iteration *what, int steps,
                  double left) {
    bool good = left <= what->accuracy;
    if (what->solves) {
        convergence->solutions++;
        convergence->products += steps;
        convergence->unsolved += !good;
        if (!(left <= convergence->residual)) convergence->residual = left;
    } else {
        convergence->points++;
        convergence->steps += steps;
        if (steps > convergence->max_steps) convergence->max_steps = steps;
        convergence->not_converged += !good;
        if (!(left <= convergence->change)) convergence->change = left;
    }
}

/* What is left, as a share. */
static double share(basin_plan_iteration *one, double size) {
    double left = basin_plan_scalar(one->again, one->what.left);
    return one->what.size ? sqrt(left / size) : left;
}

static basin_status run(basin_convergence *convergence, basin_plan_iteration *one,
                        basin_error *error) {
    basin_status status = BASIN_OK;
    BASIN_TRY(basin_plan_run(one->begin, error));
    double size = one->what.size ? basin_plan_scalar(one->begin, one->what.size) : 1;
    double left = size > 0 ? INFINITY : 0;
    int steps = 0;
    while (!status && left > one->what.accuracy && steps < one->what.max) {
        status = basin_plan_run(one->again, error);
        if (!status) left = share(one, size);
        steps++;
    }
    count(convergence, &one->what, steps, left);
    return status;
}

basin_status basin_iterations_run(basin_plan_iterations *iterations, basin_convergence *convergence,
                                  basin_error *error) {
    for (int i = 0; i < iterations->count; i++)
        BASIN_TRY(run(convergence, &iterations->list[i], error));
    return BASIN_OK;
}
