/* Recalling: the descent of a memory's energy from damaged cues, and what its end stands for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/zoo.h"
#include "task/given.h"
#include "task/memory/memory.h"

/* The memory as expressions. */
typedef struct formula {
    const basin_memory *memory;
    basin_zoo_dense dense;
    basin_zoo_hopfield hopfield;
    basin_zoo_lsr lsr;
    basin_energy inner; /* of the zoo */
    basin_energy energy;
    basin_turn turn;
} formula;

/* ---- energies and steps ---- */

static bool is_dense(const basin_memory *m) { return m->kind <= BASIN_SEPARATION_POWER; }

/* Without |x|^2 / 2: on the cube that is a constant, and what is not known has no length. */
static basin_expr convex_part(const void *context, basin_expr x, int part) {
    const formula *f = context;
    basin_expr half = basin_scale(basin_sum(basin_square(x), -1, 1), 0.5);
    return basin_sub(f->inner.part(f->inner.context, x, part), half);
}

/* The force itself becomes the state. */
static basin_expr replace(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

/* To the mean of the memories in reach. Where they are as many on either side, a sign stays. */
static basin_expr to_mean(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const formula *f = context;
    const basin_zoo_lsr *m = &f->lsr;
    (void)t;
    basin_energy energy = basin_zoo_lsr_energy(m);
    basin_expr inside = basin_exp(basin_neg(basin_mul(m->beta, energy.part(m, x, 0))));
    basin_graph *graph = basin_expr_graph(x);
    basin_expr count = basin_max(basin_zoo_lsr_support(m, x), basin_const(graph, 1));
    basin_expr move = basin_mul(force, basin_axes_insert(basin_div(inside, count), -1, 1));
    return f->memory->spec.binary ? basin_add(move, basin_scale(x, 1e-4)) : move;
}

static basin_expr to_signs(const void *context, basin_expr x, basin_expr t) {
    const formula *f = context;
    (void)t;
    return basin_scale(basin_sign(x), 1 / sqrt((double)basin_memory_dim(f->memory)));
}

static basin_expr to_sphere(const void *context, basin_expr x, basin_expr t) {
    (void)t;
    return basin_to_sphere(x, basin_memory_dim(((const formula *)context)->memory));
}

static void write_formula(formula *f, const basin_memory *m, basin_graph *graph) {
    basin_expr xi = basin_state(graph, "keys", m->keys.shape);
    basin_expr beta = basin_const(graph, m->spec.beta);
    f->memory = m;
    f->dense = (basin_zoo_dense){.xi = xi, .power = m->spec.power};
    f->hopfield = (basin_zoo_hopfield){.xi = xi, .beta = beta};
    f->hopfield.entropy =
        (basin_zoo_entropy)((int)m->kind - (int)BASIN_SEPARATION_SOFTMAX + BASIN_ZOO_SOFTMAX);
    f->lsr = (basin_zoo_lsr){.xi = xi, .beta = beta, .epsilon = 1e-12};
    f->turn = (basin_turn){.context = f};
    if (is_dense(m)) {
        f->inner = basin_zoo_dense_energy(&f->dense);
        f->turn.move = replace;
        f->turn.land = to_sphere;
    } else if (m->kind == BASIN_SEPARATION_LSR) {
        f->inner = basin_zoo_lsr_energy(&f->lsr);
        f->turn.move = to_mean;
    } else {
        f->inner = basin_zoo_hopfield_energy(&f->hopfield);
        if (m->spec.binary) f->turn.move = replace;
    }
    if (m->spec.binary) f->turn.land = to_signs;
    f->energy = f->inner;
    if (m->spec.binary && !is_dense(m) && m->kind != BASIN_SEPARATION_LSR) {
        f->energy.part = convex_part;
        f->energy.context = f;
    }
}

/* What each memory has of a state, [cues, M]; it sums to 1 at most. */
static basin_expr shares(const formula *f, basin_expr x) {
    const basin_memory *m = f->memory;
    basin_graph *graph = basin_expr_graph(x);
    basin_expr overlap = basin_matmul_t(x, false, f->dense.xi, true), w;
    if (m->kind > BASIN_SEPARATION_POWER && m->kind < BASIN_SEPARATION_LSR)
        return basin_zoo_hopfield_recall(&f->hopfield, x);
    if (m->kind == BASIN_SEPARATION_CLASSICAL) {
        w = overlap;
    } else if (m->kind == BASIN_SEPARATION_POWER) {
        w = basin_pow(basin_relu(overlap), m->spec.power - 1);
    } else { /* 1 where 1 - beta/2 (|x|^2 + 1 - 2 overlap) > 0 */
        basin_expr length = basin_axes_insert(basin_sum(basin_square(x), -1, 1), -1, 1);
        basin_expr gap = basin_offset(basin_sub(length, basin_scale(overlap, 2)), 1);
        w = basin_heaviside(basin_offset(basin_scale(gap, -m->spec.beta / 2), 1));
    }
    basin_expr total = basin_axes_insert(basin_sum(basin_abs(w), -1, 1), -1, 1);
    return basin_div(w, basin_max(total, basin_const(graph, 1e-30)));
}

/* ---- running ---- */

typedef struct job {
    const basin_memory *memory;
    basin_memory_recalling how;
    basin_graph *graph;
    basin_store *store;
    formula formula;
    basin_expr x;
    basin_tensor start; /* [cues, D] */
    basin_descent *descent;
    basin_descent_result result;
    basin_plan *plan; /* of what the end stands for */
} job;

static void job_free(job *j) {
    basin_plan_free(j->plan);
    basin_descent_result_free(&j->result);
    basin_descent_free(j->descent);
    basin_store_free(j->store);
    basin_graph_free(j->graph);
    basin_tensor_free(&j->start);
}

static basin_status begin(job *j, const float *cue, const unsigned char *known, int64_t cues,
                          basin_error *error) {
    const basin_memory *m = j->memory;
    int64_t dim = basin_memory_dim(m);
    basin_status status = basin_tensor_new(&j->start, BASIN_F32, BASIN_SHAPE(cues, dim), error);
    for (int64_t i = 0; i < cues && !status; i++)
        basin_memory_encode((float *)j->start.data + i * dim, m, cue + i * dim,
                            known ? known + i * dim : NULL);
    int64_t bad = status ? -1 : basin_tensor_first_bad(&j->start);
    if (bad >= 0)
        status = basin_fail(error, BASIN_BAD_VALUE,
                            "cue %lld has a number that is not finite, its %lldth",
                            (long long)(bad / dim), (long long)(bad % dim));
    j->graph = basin_graph_new();
    if (!status && !j->graph)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    if (!status) status = basin_store_new(&j->store, j->how.backend, error);
    if (!status) status = basin_store_write(j->store, "keys", &m->keys, error);
    if (status) return status;
    j->x = basin_input(j->graph, "x", j->start.shape);
    write_formula(&j->formula, m, j->graph);
    return BASIN_OK;
}

static basin_status descend(job *j, basin_error *error) {
    const formula *f = &j->formula;
    basin_descent_spec spec = {.steps = (int)j->how.steps,
                               .alpha = 1,
                               .tolerance = j->how.tolerance,
                               .turn = &f->turn,
                               .turns = 1};
    basin_status status = basin_descent_new(&j->descent, j->store, &f->energy, j->x, &spec, error);
    return status ? status : basin_descent_run(j->descent, &j->result, &j->start, error);
}

static void fill_value(float *value, const basin_memory *m, const double *end, const float *centred,
                       int64_t cues) {
    int64_t dim = basin_memory_dim(m);
    for (int64_t i = 0; i < cues * dim; i++) {
        float sign = end[i] > 0 ? m->high : end[i] < 0 ? m->low : (m->low + m->high) / 2;
        value[i] = m->spec.binary ? sign : m->mean[i % dim] + centred[i];
    }
}

static void find_nearest(basin_memory_recalled *r, const float *overlap, int64_t memories) {
    for (int64_t i = 0; i < r->cues; i++) {
        const float *row = overlap + i * memories;
        for (int64_t k = 1; k < memories; k++)
            if (row[k] > row[r->nearest[i]]) r->nearest[i] = k;
        r->overlap[i] = row[r->nearest[i]];
    }
}

/* Reads overlaps and the shares' mean of the patterns off the end. */
static basin_status look(job *j, basin_memory_recalled *r, basin_error *error) {
    const basin_memory *m = j->memory;
    int64_t memories = basin_memory_count(m);
    basin_expr length = basin_input(j->graph, "length", BASIN_SHAPE(memories));
    basin_expr xi = j->formula.dense.xi;
    basin_expr out[2] = {basin_matmul_t(j->x, false, xi, true),
                         basin_matmul(basin_mul(shares(&j->formula, j->x), length), xi)};
    basin_tensor lengths = basin_tensor_borrow(m->length, BASIN_F32, BASIN_SHAPE(memories));
    basin_tensor overlap = {0}, centred = {0};
    const basin_error *found = basin_graph_error(j->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_status status =
        basin_plan_new(&j->plan, j->store, &(basin_plan_spec){.output = out, .outputs = 2}, error);
    if (!status) status = basin_plan_write(j->plan, j->x, &j->result.x, error);
    if (!status) status = basin_plan_write(j->plan, length, &lengths, error);
    if (!status) status = basin_plan_run(j->plan, error);
    if (!status)
        status = basin_tensor_new(&overlap, BASIN_F32, BASIN_SHAPE(r->cues, memories), error);
    if (!status) status = basin_tensor_new(&centred, BASIN_F32, j->start.shape, error);
    if (!status) status = basin_plan_read(j->plan, out[0], &overlap, error);
    if (!status) status = basin_plan_read(j->plan, out[1], &centred, error);
    if (!status) {
        find_nearest(r, overlap.data, memories);
        fill_value(r->value, m, j->result.x.data, centred.data, r->cues);
    }
    basin_tensor_free(&overlap);
    basin_tensor_free(&centred);
    return status;
}

static basin_status keep(basin_memory_recalled *r, const job *j, basin_error *error) {
    size_t cues = (size_t)j->start.shape.dim[0], dim = (size_t)j->start.shape.dim[1];
    size_t rows = (size_t)j->result.steps + 1;
    r->cues = (int64_t)cues;
    r->dim = (int64_t)dim;
    r->steps = j->result.steps;
    r->rested = j->result.converged;
    r->energy = basin_array_new(rows * cues, sizeof *r->energy);
    r->value = basin_array_new(cues * dim, sizeof *r->value);
    r->nearest = calloc(cues, sizeof *r->nearest);
    r->overlap = calloc(cues, sizeof *r->overlap);
    if (!r->energy || !r->value || !r->nearest || !r->overlap)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %zu recalled patterns", cues);
    memcpy(r->energy, j->result.energy, rows * cues * sizeof *r->energy);
    return BASIN_OK;
}

static basin_status take_how(job *j, int64_t cues, const basin_memory_recalling *how,
                             basin_error *error) {
    basin_status status =
        basin_given_take(&j->how, sizeof j->how, how, "basin_memory_recalling", error);
    if (status) return status;
    if (!j->how.backend || cues < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a recall of %lld cues %s a backend; wanted both",
                          (long long)cues, j->how.backend ? "with" : "without");
    if (j->how.steps < 0 || j->how.steps > 1000000 || !(j->how.tolerance >= 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a recall of %lld steps with the tolerance %g; wanted none below 0, and "
                          "at most 1000000",
                          (long long)j->how.steps, j->how.tolerance);
    if (j->how.steps == 0) j->how.steps = 100;
    if (j->how.tolerance == 0) j->how.tolerance = 1e-6;
    return BASIN_OK;
}

basin_status basin_memory_recall(basin_memory_recalled *recalled, const basin_memory *memory,
                                 const float *cue, const unsigned char *known, int64_t cues,
                                 const basin_memory_recalling *how, basin_error *error) {
    job j = {.memory = memory};
    memset(recalled, 0, sizeof *recalled);
    basin_status status = take_how(&j, cues, how, error);
    if (!status) status = begin(&j, cue, known, cues, error);
    if (!status) status = descend(&j, error);
    if (!status) status = keep(recalled, &j, error);
    if (!status) status = look(&j, recalled, error);
    if (status) basin_memory_recalled_free(recalled);
    job_free(&j);
    return status;
}

void basin_memory_recalled_free(basin_memory_recalled *recalled) {
    free(recalled->energy);
    free(recalled->value);
    free(recalled->nearest);
    free(recalled->overlap);
    memset(recalled, 0, sizeof *recalled);
}
