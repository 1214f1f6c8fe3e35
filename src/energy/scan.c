/* Descents that are not unrolled, and their reverse; see include/basin/scan.h. Tokens are kept at
 * every k-th step; a segment of k steps is run again before it is reversed, and kept whole then. */
#include "basin/scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "energy/energy.h"
#include "energy/loop.h"

enum { STEP, BEGIN, REVERSE };

struct basin_scan {
    basin_loop loop;
    int steps, every;
    basin_plan *plan[BASIN_SCAN_PLANS];
    basin_expr x, next, t;   /* tokens, the step from there, its number (an input) */
    basin_expr a;            /* the gradient with respect to the tokens */
    basin_tensor *milestone; /* [steps / every + 1] tokens at 0, every, 2 every, .. */
    basin_tensor *segment;   /* [every] tokens within one */
};

static basin_status check_spec(const basin_scan_spec *spec, basin_error *error) {
    const basin_descent_spec *d = &spec->descent;
    if (d->noise > 0 || d->guard || d->accelerate)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a scan with %s; a step must depend on the tokens alone",
                          d->guard        ? "the guard"
                          : d->accelerate ? "momentum"
                                          : "noise");
    if (d->steps < 1 || !isfinite(d->alpha) || spec->every < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a scan of %d steps of size %g, every %d kept; wanted 1 step or more",
                          d->steps, d->alpha, spec->every);
    return BASIN_OK;
}

static basin_status build_step(basin_scan *scan, const basin_energy *energy, basin_shape shape,
                               const basin_descent_spec *spec, basin_error *error) {
    basin_graph *graph = scan->loop.graph;
    char number[100];
    snprintf(number, sizeof number, "%s.step", scan->loop.name);
    scan->x = basin_loop_state(&scan->loop, "x", shape);
    scan->t = basin_input(graph, number, BASIN_SCALAR);
    scan->next =
        basin_descent_step(energy, scan->x, basin_const(graph, spec->alpha), scan->t, spec);
    const basin_update update = {scan->x, scan->next};
    return basin_loop_plan(&scan->plan[STEP], &scan->loop, NULL, &update, 1, error);
}

basin_status basin_scan_new(basin_scan **scan, basin_store *store, const basin_energy *energy,
                            basin_graph *graph, basin_shape shape, const basin_scan_spec *spec,
                            basin_error *error) {
    *scan = NULL;
    basin_status status = check_spec(spec, error);
    if (status) return status;
    basin_scan *made = calloc(1, sizeof *made);
    if (!made) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a scan");
    made->loop = (basin_loop){.store = store, .graph = graph};
    snprintf(made->loop.name, sizeof made->loop.name, "%s", spec->name ? spec->name : "scan");
    made->steps = spec->descent.steps;
    made->every = spec->every > 0 ? spec->every : (int)ceil(sqrt(made->steps));
    if (made->every > made->steps) made->every = made->steps;
    made->milestone = calloc((size_t)(made->steps / made->every + 1), sizeof *made->milestone);
    made->segment = calloc((size_t)made->every, sizeof *made->segment);
    if (!made->milestone || !made->segment)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for a scan");
    if (!status) status = build_step(made, energy, shape, &spec->descent, error);
    if (status)
        basin_scan_free(made);
    else
        *scan = made;
    return status;
}

static void free_tensors(basin_tensor *list, int count) {
    for (int i = 0; list && i < count; i++) basin_tensor_free(&list[i]);
    free(list);
}

void basin_scan_free(basin_scan *scan) {
    if (!scan) return;
    for (int i = 0; i < BASIN_SCAN_PLANS; i++) basin_plan_free(scan->plan[i]);
    free_tensors(scan->milestone, scan->steps / scan->every + 1);
    free_tensors(scan->segment, scan->every);
    free(scan);
}

basin_expr basin_scan_tokens(const basin_scan *scan) { return scan->x; }
basin_expr basin_scan_start_gradient(const basin_scan *scan) { return scan->a; }
int basin_scan_kept(const basin_scan *scan) { return scan->steps / scan->every + 1 + scan->every; }
basin_plan *basin_scan_plan(basin_scan *scan, int i) {
    return i >= 0 && i < BASIN_SCAN_PLANS ? scan->plan[i] : NULL;
}

/* ---- gradients ---- */

/* What the steps add to the gradient of a parameter; NULL, and a message, where it has no name. */
static basin_expr sum_state(const basin_scan *scan, basin_expr parameter) {
    char text[300];
    if (!parameter) return NULL;
    if (!*basin_expr_name(parameter))
        return basin_graph_fail(scan->loop.graph, BASIN_BAD_VALUE,
                                "the gradient of a scan with respect to an expression; wanted "
                                "states or inputs");
    snprintf(text, sizeof text, "sum.%s", basin_expr_name(parameter));
    return basin_loop_state(&scan->loop, text, basin_expr_shape(parameter));
}

/* begin: a <- dloss/dx, sums <- 0; reverse: sums <- sums + a . dstep/dp, a <- a . dstep/dx. The
 * lists have room for count + 1. */
static basin_status build_reverse(basin_scan *scan, basin_expr *gradient, basin_expr loss,
                                  basin_expr *from, basin_update *update, int count,
                                  basin_error *error) {
    for (int i = 0; i < count; i++) {
        basin_shape shape = basin_expr_shape(from[i]);
        update[i] =
            (basin_update){sum_state(scan, from[i]), basin_fill(scan->loop.graph, shape, 0)};
    }
    update[count] = (basin_update){scan->a, basin_grad(loss, scan->x)};
    basin_status status =
        basin_loop_plan(&scan->plan[BEGIN], &scan->loop, NULL, update, count + 1, error);
    from[count] = scan->x;
    basin_vjp(gradient, scan->next, scan->a, from, count + 1);
    for (int i = 0; i < count; i++) update[i].value = basin_add(update[i].state, gradient[i]);
    update[count].value = gradient[count];
    if (!status)
        status = basin_loop_plan(&scan->plan[REVERSE], &scan->loop, NULL, update, count + 1, error);
    basin_grad_many(gradient, loss, from, count);
    for (int i = 0; i < count; i++) gradient[i] = basin_add(gradient[i], update[i].state);
    const basin_error *found = basin_graph_error(scan->loop.graph);
    return status || !found ? status : basin_fail(error, found->status, "%s", found->text);
}

basin_status basin_scan_gradients(basin_expr *gradient, basin_scan *scan, basin_expr loss,
                                  const basin_expr *parameter, int count, basin_error *error) {
    if (scan->a) return basin_fail(error, BASIN_BAD_VALUE, "a scan has the gradients of one loss");
    basin_status status = basin_loop_check_loss(loss, error);
    if (status) return status;
    size_t room = (size_t)count + 1;
    basin_expr *both = basin_array_new(2 * room, sizeof(basin_expr));
    basin_update *update = basin_array_new(room, sizeof *update);
    scan->a = basin_loop_state(&scan->loop, "gradient", basin_expr_shape(scan->x));
    if (both && update) {
        for (int i = 0; i < count; i++) both[i] = parameter[i];
        status = build_reverse(scan, both + room, loss, both, update, count, error);
        for (int i = 0; i < count; i++) gradient[i] = both[room + (size_t)i];
    } else {
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for the gradients of a scan");
    }
    free((void *)both);
    free(update);
    return status;
}

/* ---- running ---- */

static basin_status write_tokens(basin_scan *scan, const basin_tensor *x, basin_error *error) {
    return basin_store_write(scan->loop.store, basin_expr_name(scan->x), x, error);
}

static basin_status keep_tokens(basin_tensor *kept, basin_scan *scan, basin_error *error) {
    basin_tensor_free(kept);
    return basin_store_read(scan->loop.store, basin_expr_name(scan->x), kept, error);
}

static basin_status run_plan(basin_scan *scan, int which, int t, basin_error *error) {
    double number = t;
    basin_tensor step = basin_tensor_borrow(&number, BASIN_F64, BASIN_SCALAR);
    basin_status status = basin_plan_write(scan->plan[which], scan->t, &step, error);
    return status ? status : basin_plan_run(scan->plan[which], error);
}

basin_status basin_scan_run(basin_scan *scan, const basin_tensor *start, basin_error *error) {
    basin_status status = basin_loop_check_start(start, scan->x, error);
    if (!status) status = write_tokens(scan, start, error);
    for (int t = 0; t < scan->steps && !status; t++) {
        if (t % scan->every == 0)
            status = keep_tokens(&scan->milestone[t / scan->every], scan, error);
        if (!status) status = run_plan(scan, STEP, t, error);
    }
    return status;
}

/* Steps first .. last - 1, backwards. */
static basin_status reverse_segment(basin_scan *scan, int first, int last, basin_error *error) {
    basin_status status = write_tokens(scan, &scan->milestone[first / scan->every], error);
    for (int t = first; t < last && !status; t++) {
        status = keep_tokens(&scan->segment[t - first], scan, error);
        if (!status && t + 1 < last) status = run_plan(scan, STEP, t, error);
    }
    for (int t = last - 1; t >= first && !status; t--) {
        status = write_tokens(scan, &scan->segment[t - first], error);
        if (!status) status = run_plan(scan, REVERSE, t, error);
    }
    return status;
}

basin_status basin_scan_reverse(basin_scan *scan, basin_error *error) {
    basin_tensor end = {0};
    if (!scan->a) return basin_fail(error, BASIN_BAD_VALUE, "a scan without a loss to reverse");
    if (!scan->milestone[0].data)
        return basin_fail(error, BASIN_BAD_VALUE, "a scan is reversed before it was run");
    basin_status status = keep_tokens(&end, scan, error);
    if (!status) status = basin_plan_run(scan->plan[BEGIN], error);
    int first = (scan->steps - 1) / scan->every * scan->every, last = scan->steps;
    for (; first >= 0 && !status; last = first, first -= scan->every)
        status = reverse_segment(scan, first, last, error);
    if (!status) status = write_tokens(scan, &end, error); /* the loss reads them */
    basin_tensor_free(&end);
    return status;
}
