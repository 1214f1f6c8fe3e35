/* Plans of parts that run together: the energy of a graph cut in two, its force, and the gradients
 * of a loss on a descent are those of the whole graph, whatever travels in between. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "engine/expr/graph.h"
#include "support/lab.h"

enum { NODES = 7, HALF = 4, DIM = 6, EDGES = 10, STEPS = 2, PARTS = 2 };

/* Nodes 0 to 3 are one part, 4 to 6 the other. */
static const int32_t edges[2 * EDGES] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5,
                                         5, 6, 6, 0, 1, 4, 2, 6, 0, 3};

/* ---- the parts, by hand ---- */

typedef struct piece {
    int32_t own[HALF], count;
    int32_t halo[NODES], halos;
    int32_t edge[4 * EDGES], edges; /* (query, key); keys from HALF on are the halo's */
} piece;

static int32_t place_in(const int32_t *list, int32_t count, int32_t node) {
    for (int32_t i = 0; i < count; i++)
        if (list[i] == node) return i;
    return -1;
}

static void add_pair(piece *p, int32_t query, int32_t key) {
    int32_t q = place_in(p->own, p->count, query), k = place_in(p->own, p->count, key);
    if (q < 0) return;
    if (k < 0) {
        k = place_in(p->halo, p->halos, key);
        if (k < 0) p->halo[k = p->halos++] = key;
        k += HALF;
    }
    p->edge[2 * p->edges] = q;
    p->edge[2 * p->edges++ + 1] = k;
}

static void make_pieces(piece p[PARTS]) {
    memset(p, 0, PARTS * sizeof *p);
    for (int32_t i = 0; i < NODES; i++) {
        piece *to = &p[i >= HALF];
        to->own[to->count++] = i;
    }
    for (int part = 0; part < PARTS; part++)
        for (int e = 0; e < EDGES; e++) {
            add_pair(&p[part], edges[2 * e], edges[2 * e + 1]);
            add_pair(&p[part], edges[2 * e + 1], edges[2 * e]);
        }
}

/* What basin_plans_run asks for. */
static basin_status move(void *context, const basin_exchange_rows *rows, int plans,
                         basin_error *error) {
    const piece *p = context;
    size_t bytes = (size_t)rows[0].width * sizeof(double);
    (void)error;
    for (int i = 0; i < plans; i++) {
        memcpy(rows[i].to, rows[i].from, (size_t)rows[i].own * bytes);
        if (!rows[i].back)
            memset((char *)rows[i].to + HALF * bytes, 0, (size_t)rows[i].halo * bytes);
    }
    for (int i = 0; i < plans; i++)
        for (int32_t h = 0; h < p[i].halos; h++) {
            int32_t at = place_in(p[!i].own, p[!i].count, p[i].halo[h]);
            if (!rows[i].back) {
                memcpy((char *)rows[i].to + (size_t)(HALF + h) * bytes,
                       (const char *)rows[!i].from + (size_t)at * bytes, bytes);
                continue;
            }
            const double *from = (const double *)rows[i].from + (HALF + h) * rows[i].width;
            double *to = (double *)rows[!i].to + at * rows[i].width;
            for (int64_t d = 0; d < rows[i].width; d++) to[d] += from[d];
        }
    return BASIN_OK;
}

/* ---- a model over either ---- */

typedef struct model {
    lab l;
    basin_expr x, target;
    basin_block block;
    basin_expr end, loss, gradient[16];
    int params;
    basin_pattern pattern;
} model;

static void open_model(model *m, int64_t nodes, int64_t halo, int64_t pairs) {
    basin_block_config config = {
        .dim = DIM, .heads = 2, .head_dim = 3, .memories = 5, .learn_beta = true};
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.3};
    *m = (model){0};
    lab_open(&m->l, "ref", 1);
    assert_int_equal(basin_block_declare(&m->block, &m->l.params, "", &config), BASIN_OK);
    lab_fill(&m->l, 3, 0.5);
    m->x = basin_input(m->l.graph, "x", BASIN_SHAPE(nodes, DIM));
    m->target = basin_input(m->l.graph, "target", BASIN_SHAPE(nodes, DIM));
    m->pattern = basin_pairs_declare(m->l.graph, "pairs", nodes, nodes + halo, pairs);
    m->pattern.halo = halo;
    basin_block_bound bound = {.block = &m->block, .pattern = &m->pattern};
    basin_energy energy = basin_block_energy(&bound);
    m->end = basin_descend(&energy, m->x, &spec, NULL);
    m->loss = basin_sum_all(basin_mul(m->target, m->end));
    m->params = (int)m->l.params.count;
    for (int i = 0; i < m->params; i++)
        m->gradient[i] = basin_grad(m->loss, m->l.params.param[i].state);
}

static basin_plan *plan_of(model *m) {
    basin_expr output[18] = {m->end, m->loss};
    basin_plan *plan;
    for (int i = 0; i < m->params; i++) output[i + 2] = m->gradient[i];
    basin_plan_spec spec = {.output = output, .outputs = m->params + 2};
    assert_ok(basin_plan_new(&plan, m->l.store, &spec, &failure));
    return plan;
}

/* Rows of numbers that belong to nodes, zero beyond them. */
static void write_rows(basin_plan *plan, basin_expr input, const int32_t *node, int32_t count,
                       uint64_t stream) {
    double number[NODES * DIM] = {0};
    basin_tensor t = basin_tensor_borrow(number, BASIN_F64, basin_expr_shape(input));
    for (int32_t i = 0; i < count; i++)
        for (int d = 0; d < DIM; d++)
            number[i * DIM + d] = basin_random_normal_at(5, stream, (uint64_t)(node[i] * DIM + d));
    assert_int_equal(basin_plan_write(plan, input, &t, NULL), BASIN_OK);
}

static void write_part(basin_plan *plan, const model *m, const int32_t *node, int32_t count,
                       const int32_t *edge, int32_t edge_count, int64_t keys) {
    basin_pairs pairs;
    basin_error error;
    write_rows(plan, m->x, node, count, 1);
    write_rows(plan, m->target, node, count, 2);
    int64_t queries = basin_expr_shape(m->x).dim[0];
    if (basin_pairs_new(&pairs, queries, keys, edge, edge_count, 0, &error) ||
        basin_pairs_write(plan, &m->pattern, &pairs, &error))
        fail_msg("%s", error.text);
    basin_pairs_free(&pairs);
}

static basin_plan *whole_plan(model *m) {
    static const int32_t all[NODES] = {0, 1, 2, 3, 4, 5, 6};
    int32_t both[4 * EDGES];
    open_model(m, NODES, 0, 2 * EDGES);
    for (int e = 0; e < EDGES; e++) {
        both[4 * e] = both[4 * e + 3] = edges[2 * e];
        both[4 * e + 1] = both[4 * e + 2] = edges[2 * e + 1];
    }
    basin_plan *plan = plan_of(m);
    write_part(plan, m, all, NODES, both, 2 * EDGES, NODES);
    lab_run(plan);
    return plan;
}

/* ---- the same numbers ---- */

static void assert_near(double found, double wanted) {
    if (!(fabs(found - wanted) < 1e-12)) fail_msg("%.17g, expected %.17g", found, wanted);
}

static void check_rows(const basin_tensor *whole, const basin_tensor *part, const piece *p) {
    for (int32_t i = 0; i < p->count; i++)
        for (int d = 0; d < DIM; d++)
            assert_near(((double *)part->data)[i * DIM + d],
                        ((double *)whole->data)[p->own[i] * DIM + d]);
}

TEST(parts_compute_what_the_whole_does) {
    piece p[PARTS];
    model whole, apart;
    basin_plan *one = whole_plan(&whole), *two[PARTS];
    basin_exchange_callback way = {move, p};
    basin_error error;
    make_pieces(p);
    int64_t halo = p[0].halos > p[1].halos ? p[0].halos : p[1].halos;
    open_model(&apart, HALF, halo, 2 * EDGES);
    for (int i = 0; i < PARTS; i++) {
        two[i] = plan_of(&apart);
        write_part(two[i], &apart, p[i].own, p[i].count, p[i].edge, p[i].edges, HALF + halo);
    }
    assert_int_equal(basin_plan_run(two[0], &error), BASIN_BAD_VALUE); /* not alone */
    assert_ok(basin_plans_run(two, PARTS, &way, &failure));
    basin_tensor end = lab_read(one, whole.end);
    for (int i = 0; i < PARTS; i++) {
        basin_tensor part = lab_read(two[i], apart.end);
        check_rows(&end, &part, &p[i]);
        basin_tensor_free(&part);
    }
    double loss = basin_plan_scalar(two[0], apart.loss) + basin_plan_scalar(two[1], apart.loss);
    assert_near(loss, basin_plan_scalar(one, whole.loss));
    for (int g = 0; g < whole.params; g++) {
        basin_tensor a = lab_read(one, whole.gradient[g]);
        basin_tensor b = lab_read(two[0], apart.gradient[g]);
        basin_tensor c = lab_read(two[1], apart.gradient[g]);
        for (int64_t k = 0; k < basin_shape_count(a.shape); k++)
            assert_near(((double *)b.data)[k] + ((double *)c.data)[k], ((double *)a.data)[k]);
        basin_tensor_free(&a), basin_tensor_free(&b), basin_tensor_free(&c);
    }
    basin_tensor_free(&end);
    basin_plan_free(one);
    for (int i = 0; i < PARTS; i++) basin_plan_free(two[i]);
    lab_close(&whole.l);
    lab_close(&apart.l);
}

TEST(plans_that_differ_are_refused) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_plan *plan[2];
    basin_exchange_callback way = {move, NULL};
    lab_open(&l, "cpu", 1);
    basin_expr x = basin_input(l.graph, "x", BASIN_SHAPE(3, 2));
    basin_expr wide = basin_exchange(x, 2), more = basin_exp(basin_exchange(x, 2));
    basin_expr two[2] = {wide, basin_matmul_t(more, true, more, false)};
    for (int i = 0; i < 2; i++) {
        basin_plan_spec spec = {.output = &two[i], .outputs = 1};
        assert_ok(basin_plan_new(&plan[i], l.store, &spec, &failure));
    }
    assert_failure(basin_plans_run(plan, 2, &way, &failure), BASIN_BAD_VALUE,
                   "differs from the first");
    assert_null(basin_exchange(x, -1));
    assert_non_null(basin_graph_error(l.graph));
    for (int i = 0; i < 2; i++) basin_plan_free(plan[i]);
}
