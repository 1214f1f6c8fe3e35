/* The Energy Transformer over cells [rows, cells, D]; see context.h. A block stores keys and values
 * and then descends, at g = layernorm(x), the energy of its kind:
 *
 *     columns, rows   - sum over cells i, heads h of 1/eps_h
 *                         [ lse_B(s_h q_i . k_B + eps_h v_i . w_B) - lse_B(s_h q_i . k_B) ]
 *     memories        - sum over cells i, memories m of (out_m . g_i) silu(eta_m . g_i + b_m)
 *
 * B are the cells of the same row, or the labelled rows in the same column: minus the log
 * likelihood of v_i in a mixture of the stored values w_B. After the last columns only the cell of
 * the label is read, so that the others go no further. docs/anomaly.md has the account of it. */
#include "base/bundle.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/energy.h"
#include "basin/tasks/models.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/context/context.h"

enum {
    NAME = 64,
    MAX_BLOCKS = 64,
    MAX_STEPS = 8,
    FEATURES = 49,
    WAVES = 5,
    CODE = 16,
    CELLS_OF_A_RUN = 4096,
    FEW = 16, /* rows that are computed one by one */
};
static const char what[] = "a context";
static const double epsilon = 1e-5; /* of layer norms, as in training */

typedef enum axis { COLUMNS, ROWS, MEMORIES } axis;
static const char *const axis_name[] = {"col", "row", "mem"};

typedef struct block {
    axis axis;
    int steps;
    double alpha[MAX_STEPS];
    int64_t heads, width; /* of a key; a value has the same width */
} block;

/* Plans for one number of labelled rows and cells, on a store that has the weights. */
typedef struct engine {
    basin_store *store;
    basin_graph *graph;
    int64_t stored, cells; /* labelled rows; cells per row, including the label's */
    struct run {
        int64_t rows;
        basin_expr row, code, label, count, ratio, energy, share, move;
        basin_plan *plan;
    } context, some, few, one;
} engine;

struct basin_context_net {
    basin_bundle *file;
    basin_backend *backend;
    int64_t dim;
    int blocks, last_columns, last_rows;
    block block[MAX_BLOCKS];
    basin_tensor *weight; /* [tensors of the file] F32; empty: not a weight */
    float *code;          /* [passes, max_cells, CODE] */
    int64_t passes, max_cells, pass;
    engine engine;
};

/* ---- the file ---- */

/* The tensor `name` of a block. */
static const basin_tensor *find(const basin_context_net *n, int number, const char *name) {
    char text[NAME];
    snprintf(text, sizeof text, "ls.%d.%s", number, name);
    return basin_bundle_find(n->file, text);
}

/* The file may hold more: codes, a golden case. */
static bool is_weight(const char *name) {
    static const char *const first[] = {"enc.", "ls.", "ln.", "o1.", "o2."};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (!strncmp(name, first[i], strlen(first[i]))) return true;
    return false;
}

static basin_status read_block(basin_context_net *n, int number, basin_error *error) {
    static const char *const first[] = {"col.qv", "row.qv", "mem.eta"};
    block *b = &n->block[number];
    const basin_tensor *alpha = find(n, number, "alpha"), *map = NULL, *eps = NULL;
    int terms = 0;
    for (axis a = COLUMNS; a <= MEMORIES; a++)
        if (find(n, number, first[a])) b->axis = a, map = find(n, number, first[a]), terms++;
    b->steps = (int)basin_int_min(basin_shape_count(alpha->shape), MAX_STEPS + 1);
    if (terms != 1 || b->steps < 1 || b->steps > MAX_STEPS)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: block %d has %d energies and %d steps; expected 1, and 1 to %d",
                          basin_bundle_path(n->file), number, terms, b->steps, MAX_STEPS);
    for (int t = 0; t < b->steps; t++) b->alpha[t] = exp(basin_tensor_at(alpha, t));
    if (b->axis == COLUMNS) n->last_columns = number;
    if (b->axis == ROWS) n->last_rows = number;
    if (b->axis == MEMORIES) return BASIN_OK;
    eps = find(n, number, b->axis == COLUMNS ? "col.eps" : "row.eps");
    b->heads = eps ? basin_shape_count(eps->shape) : 0;
    b->width = b->heads > 0 && map->shape.rank == 2 ? map->shape.dim[0] / b->heads / 2 : 0;
    if (b->width > 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: block %d has no heads",
                      basin_bundle_path(n->file), number);
}

static basin_status read_codes(basin_context_net *n, basin_error *error) {
    const basin_tensor *code;
    BASIN_TRY(basin_bundle_get(&code, n->file, "codes", error));
    if (code->shape.rank != 3 || code->shape.dim[2] != CODE || basin_tensor_first_bad(code) >= 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: codes are not numbers [passes, cells, %d]",
                          basin_bundle_path(n->file), CODE);
    n->passes = code->shape.dim[0], n->max_cells = code->shape.dim[1];
    BASIN_TRY(BASIN_NEW_RAW(&n->code, basin_shape_count(code->shape), what, error));
    basin_tensor copy = basin_tensor_borrow(n->code, BASIN_F32, code->shape);
    return basin_tensor_convert(&copy, code, error);
}

/* Converted once: every change of the number of labels writes them anew. */
static basin_status read_weights(basin_context_net *n, basin_error *error) {
    size_t count = basin_bundle_count(n->file);
    BASIN_TRY(BASIN_NEW(&n->weight, (int64_t)count, what, error));
    for (size_t i = 0; i < count; i++) {
        const basin_tensor *t = basin_bundle_at(n->file, i);
        if (!is_weight(basin_bundle_name(n->file, i))) continue;
        BASIN_TRY(basin_tensor_new(&n->weight[i], BASIN_F32, t->shape, error));
        BASIN_TRY(basin_tensor_convert(&n->weight[i], t, error));
    }
    return BASIN_OK;
}

static basin_status read_file(basin_context_net *n, const char *path, basin_error *error) {
    char found[4096];
    const basin_tensor *head;
    if (!path) BASIN_TRY(basin_models_find(found, sizeof found, "context", error));
    BASIN_TRY(basin_model_read(&n->file, path ? path : found, error));
    const char *kind = basin_bundle_meta(n->file, "kind");
    if (!kind || strcmp(kind, "context") != 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: is not a model of detection in context",
                          basin_bundle_path(n->file));
    BASIN_TRY(basin_bundle_get(&head, n->file, "ln.weight", error));
    n->dim = basin_shape_count(head->shape);
    n->last_columns = n->last_rows = -1;
    for (; n->blocks < MAX_BLOCKS && find(n, n->blocks, "alpha"); n->blocks++)
        BASIN_TRY(read_block(n, n->blocks, error));
    if (n->last_columns < 0 || n->last_rows < n->last_columns)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: needs a block over columns, and one over rows after it",
                          basin_bundle_path(n->file));
    BASIN_TRY(read_weights(n, error));
    return read_codes(n, error);
}

static void engine_close(engine *e) {
    basin_plan_free(e->context.plan);
    basin_plan_free(e->some.plan);
    basin_plan_free(e->few.plan);
    basin_plan_free(e->one.plan);
    basin_store_free(e->store);
    basin_graph_free(e->graph);
    *e = (engine){0};
}

basin_status basin_context_net_open(basin_context_net **net, const char *path,
                                    basin_backend *backend, basin_error *error) {
    BASIN_TRY(BASIN_NEW(net, 1, what, error));
    (*net)->backend = backend;
    BASIN_TRY_OR(read_file(*net, path, error), (basin_context_net_close(*net), *net = NULL));
    return BASIN_OK;
}

void basin_context_net_close(basin_context_net *n) {
    if (!n) return;
    engine_close(&n->engine);
    for (size_t i = 0; n->weight && i < basin_bundle_count(n->file); i++)
        basin_tensor_free(&n->weight[i]);
    free(n->weight);
    basin_bundle_free(n->file);
    free(n->code);
    free(n);
}

basin_context_shape basin_context_net_shape(const basin_context_net *n) {
    basin_context_shape s = {n->max_cells, n->passes, n->blocks, 0};
    for (size_t i = 0; i < basin_bundle_count(n->file); i++)
        if (is_weight(basin_bundle_name(n->file, i)))
            s.parameters += basin_shape_count(basin_bundle_at(n->file, i)->shape);
    return s;
}

/* ---- expressions ---- */

/* A weight of the file, with its shape; an error sticks in the graph. */
static basin_expr weight(const basin_context_net *n, const char *name) {
    const basin_tensor *t = basin_bundle_find(n->file, name);
    if (t) return basin_state(n->engine.graph, name, t->shape);
    return basin_graph_fail(n->engine.graph, BASIN_BAD_FILE, "%s: no tensor '%s'",
                            basin_bundle_path(n->file), name);
}

static basin_expr part(const basin_context_net *n, int number, const char *of, const char *name) {
    char text[NAME];
    snprintf(text, sizeof text, "ls.%d.%s.%s", number, of, name);
    return weight(n, text);
}

static basin_expr linear(const basin_context_net *n, const char *name, basin_expr x) {
    char text[NAME];
    snprintf(text, sizeof text, "%s.weight", name);
    basin_expr y = basin_matmul_t(x, false, weight(n, text), true);
    snprintf(text, sizeof text, "%s.bias", name);
    return basin_add(y, weight(n, text));
}

static basin_expr gelu(basin_expr x) {
    basin_expr share = basin_scale(basin_offset(basin_erf(basin_scale(x, sqrt(0.5))), 1), 0.5);
    return basin_mul(x, share);
}

static basin_expr norm(const void *context, basin_expr x) {
    const basin_context_net *n = context;
    return basin_layernorm(x, basin_scalar(n->engine.graph, 1), NULL, epsilon);
}

/* [rows, T, BASIN_CELL] -> [rows, T, FEATURES]: of each column the score, its size, ties, mark, and
 * waves of five lengths; differences between the columns. */
static basin_expr features(basin_expr row, int64_t rows, int64_t T) {
    basin_expr entry[BASIN_CELL_ENTRY], sine[WAVES], cosine[WAVES];
    basin_expr split =
        basin_reshape(row, BASIN_SHAPE(rows, T, BASIN_CELL_COLUMNS, BASIN_CELL_ENTRY));
    for (int i = 0; i < BASIN_CELL_ENTRY; i++)
        entry[i] = basin_reshape(basin_slice(split, 3, i, 1), BASIN_SHAPE(rows, T, 3));
    basin_expr v = entry[0], mark = entry[2], there = basin_square(mark);
    for (int i = 0; i < WAVES; i++) {
        basin_expr wave = basin_scale(v, (double)(1 << i));
        sine[i] = basin_sin(wave);
        cosine[i] = basin_mul(basin_cos(wave), there);
    }
    basin_expr difference = basin_sub(v, basin_roll(v, 2, -1));
    basin_expr all[] = {v,
                        basin_abs(v),
                        entry[1],
                        mark,
                        there,
                        basin_concat(sine, WAVES, 2),
                        basin_concat(cosine, WAVES, 2),
                        difference,
                        basin_slice(basin_abs(difference), 2, 0, 1)};
    return basin_concat(all, (int)(sizeof all / sizeof *all), 2);
}

/* Cells [rows, T + 1, D]; `label` index [rows], 2 for a query. */
static basin_expr encode(const basin_context_net *n, const struct run *r) {
    int64_t rows = r->rows, T = n->engine.cells - 1, D = n->dim;
    basin_expr cell = linear(n, "enc.b", gelu(linear(n, "enc.a", features(r->row, rows, T))));
    basin_expr code = basin_scale(linear(n, "enc.code", r->code), 0.3); /* [T, D] */
    basin_expr label = basin_take(weight(n, "enc.label.weight"), 0, r->label);
    basin_expr last = basin_take(weight(n, "enc.last.weight"), 0, r->label);
    cell = basin_add(basin_add(cell, code), basin_reshape(label, BASIN_SHAPE(rows, 1, D)));
    basin_expr both[] = {cell, basin_reshape(last, BASIN_SHAPE(rows, 1, D))};
    return basin_concat(both, 2, 1);
}

/* What a block descends with. */
typedef struct bound {
    const basin_context_net *net;
    int number;
    basin_expr stored; /* keys and values [.., B, H, 2 Y]: of each row's cells, or of each column */
    basin_expr count;  /* input [stored], 0: logarithms of how often rows count; or NULL */
} bound;

/* [a, b, D] by [H, 2 Y, D]. */
static basin_expr heads_of(basin_expr g, basin_expr map) {
    return basin_einsum("abd,hyd->abhy", g, map);
}

/* Of [rows, cells, D] the transpose [cells, rows, D]. */
static basin_expr by_column(basin_expr g) { return basin_permute(g, (const int[]){1, 0, 2}); }

static basin_expr maps(const basin_context_net *n, int number, const char *name) {
    const block *b = &n->block[number];
    return basin_reshape(part(n, number, axis_name[b->axis], name),
                         BASIN_SHAPE(b->heads, 2 * b->width, n->dim));
}

static basin_expr keys_of(const basin_context_net *n, int number, basin_expr g) {
    return heads_of(n->block[number].axis == ROWS ? by_column(g) : g, maps(n, number, "kw"));
}

static basin_expr eps_of(const basin_context_net *n, int number) {
    return basin_exp(part(n, number, axis_name[n->block[number].axis], "eps"));
}

/* s q and eps v, side by side. Over rows s grows with the number of labels. */
static basin_expr queries_of(const basin_context_net *n, int number, basin_expr g) {
    const block *b = &n->block[number];
    int64_t H = b->heads, Y = b->width;
    double more = b->axis == ROWS ? log((double)n->engine.stored / 200) : 0;
    basin_expr sharp = part(n, number, axis_name[b->axis], "sharp");
    basin_expr scale[] = {
        basin_scale(basin_offset(basin_scale(sharp, more), 1), 1 / sqrt((double)Y)),
        eps_of(n, number)};
    basin_expr factor = basin_broadcast_to(
        basin_reshape(basin_stack(scale, 2, 1), BASIN_SHAPE(H, 2, 1)), BASIN_SHAPE(H, 2, Y));
    basin_expr map =
        basin_mul(maps(n, number, "qv"), basin_reshape(factor, BASIN_SHAPE(H, 2 * Y, 1)));
    return heads_of(b->axis == ROWS ? by_column(g) : g, map);
}

/* lse over what is stored, [.., rows, H]. With `count` the scores are explicit, and stored row B
 * counts exp(count[B]) times. */
static basin_expr log_sum(const bound *o, basin_expr q, basin_expr k) {
    const block *b = &o->net->block[o->number];
    basin_expr one = basin_full(o->net->engine.graph, BASIN_SHAPE(b->heads), 1);
    if (!o->count || b->axis != ROWS) return basin_attention_lse(q, k, one, NULL, NULL);
    return basin_logsumexp(basin_add(basin_einsum("cbhy,cnhy->cbhn", q, k), o->count), 3);
}

/* Per row. */
static basin_expr attention(const void *context, basin_expr g) {
    const bound *o = context;
    const block *b = &o->net->block[o->number];
    basin_expr q = queries_of(o->net, o->number, g);
    basin_expr both = log_sum(o, q, o->stored);
    basin_expr keys =
        log_sum(o, basin_slice(q, 3, 0, b->width), basin_slice(o->stored, 3, 0, b->width));
    basin_expr e = basin_div(basin_sub(keys, both), eps_of(o->net, o->number));
    return b->axis == ROWS ? basin_sum(basin_sum(e, 2, 1), 0, 1) : basin_sum(e, 1, 2);
}

static basin_expr memories(const void *context, basin_expr g) {
    const bound *o = context;
    basin_expr h = basin_matmul_t(g, false, part(o->net, o->number, "mem", "eta"), true);
    h = basin_add(h, part(o->net, o->number, "mem", "bias"));
    basin_expr a = basin_matmul_t(g, false, part(o->net, o->number, "mem", "out"), true);
    return basin_neg(basin_sum(basin_mul(a, basin_mul(h, basin_sigmoid(h))), 1, 2));
}

/* One block: x goes down its energy; `ends` (or NULL) become the energies before and after. */
static basin_expr descend(const bound *o, basin_expr x, basin_expr *ends) {
    const block *b = &o->net->block[o->number];
    basin_expr trace[MAX_STEPS + 1];
    basin_term term = {"block", b->axis == MEMORIES ? memories : attention, o};
    basin_energy energy = {.term = &term, .terms = 1, .activation = norm, .context = o->net};
    basin_descent_spec spec = {.steps = b->steps, .schedule = b->alpha};
    x = basin_descend(&energy, x, &spec, ends ? trace : NULL);
    if (ends) ends[0] = trace[0], ends[1] = trace[b->steps];
    return x;
}

/* The state that keeps what labelled rows store in a block over rows. */
static basin_expr stored_of(const basin_context_net *n, int number) {
    char text[NAME];
    const block *b = &n->block[number];
    int64_t columns = number > n->last_columns ? 1 : n->engine.cells;
    snprintf(text, sizeof text, "stored.%d", number);
    return basin_state(n->engine.graph, text,
                       BASIN_SHAPE(columns, n->engine.stored, b->heads, 2 * b->width));
}

/* What the cells of one query, without the label's, retrieve from each labelled row: the mean over
 * cells and heads of the posterior weights, [stored]. */
static basin_expr share_of(const bound *o, basin_expr x) {
    const basin_context_net *n = o->net;
    basin_expr q = queries_of(n, o->number, norm(n, x));
    basin_expr p = basin_softmax(basin_einsum("cbhy,cnhy->cbhn", q, o->stored), 3);
    return basin_mean(basin_slice(p, 0, 0, n->engine.cells - 1), 0, 3);
}

/* All blocks. For the context: the updates that store it; NULL after the last block over rows. For
 * queries: the label's cell at the end [rows, 1, D]. */
static basin_expr run_blocks(const basin_context_net *n, struct run *r, basin_expr x,
                             basin_update *update, int *updates) {
    basin_expr energy[2 * MAX_BLOCKS];
    bool looks = r->count != NULL;
    for (int i = 0; i < n->blocks; i++) {
        bound o = {n, i, NULL, r->count};
        axis kind = n->block[i].axis;
        if (kind == COLUMNS) o.stored = keys_of(n, i, norm(n, x));
        if (kind == ROWS) o.stored = stored_of(n, i);
        if (kind == ROWS && update) {
            basin_expr found = keys_of(n, i, norm(n, x));
            update[(*updates)++] = (basin_update){o.stored, found};
            o.stored = found;
            if (i == n->last_rows) return NULL;
        }
        if (i == n->last_columns) x = basin_slice(x, 1, n->engine.cells - 1, 1);
        if (kind == ROWS && looks && !r->share) r->share = share_of(&o, x);
        x = descend(&o, x, looks ? energy + 2 * i : NULL);
    }
    if (looks) r->energy = basin_stack(energy, 2 * n->blocks, 0);
    return x;
}

static basin_expr head(const basin_context_net *n, basin_expr x, int64_t rows) {
    x = basin_reshape(x, BASIN_SHAPE(rows, n->dim));
    x = basin_layernorm(x, weight(n, "ln.weight"), weight(n, "ln.bias"), epsilon);
    return basin_reshape(linear(n, "o2", gelu(linear(n, "o1", x))), BASIN_SHAPE(rows));
}

/* ---- plans ---- */

static basin_status make_run(basin_context_net *n, struct run *r, int64_t rows, const char *prefix,
                             bool context, bool looks, basin_error *error) {
    basin_graph *graph = n->engine.graph;
    basin_update update[MAX_BLOCKS];
    int updates = 0;
    char text[NAME];
    int64_t T = n->engine.cells - 1;
    r->rows = rows;
    snprintf(text, sizeof text, "%s.row", prefix);
    r->row = basin_input(graph, text, BASIN_SHAPE(rows, T, BASIN_CELL));
    snprintf(text, sizeof text, "%s.label", prefix);
    r->label = basin_index(graph, text, BASIN_SHAPE(rows));
    r->code = basin_state(graph, "code", BASIN_SHAPE(T, CODE));
    if (looks) r->count = basin_input(graph, "count", BASIN_SHAPE(n->engine.stored));
    basin_expr x = run_blocks(n, r, encode(n, r), context ? update : NULL, &updates);
    if (!context) r->ratio = head(n, x, rows);
    if (looks) r->move = basin_grad(r->ratio, r->count);
    BASIN_TRY(basin_graph_check(graph, error));
    basin_expr output[] = {r->ratio, r->energy, r->share, r->move};
    basin_plan_spec spec = {.output = output,
                            .outputs = context ? 0
                                       : looks ? 4
                                               : 1,
                            .update = update,
                            .updates = updates};
    return basin_plan_new(&r->plan, n->engine.store, &spec, error);
}

static basin_status write_weights(const basin_context_net *n, basin_error *error) {
    for (size_t i = 0; i < basin_bundle_count(n->file); i++)
        if (n->weight[i].data)
            BASIN_TRY(basin_store_write(n->engine.store, basin_bundle_name(n->file, i),
                                        &n->weight[i], error));
    return BASIN_OK;
}

static basin_status engine_open(basin_context_net *n, int64_t stored, int64_t cells,
                                basin_error *error) {
    engine *e = &n->engine;
    if (e->graph && e->stored == stored && e->cells == cells) return BASIN_OK;
    engine_close(e);
    e->stored = stored, e->cells = cells;
    if (!(e->graph = basin_graph_new())) return basin_fail_memory(error, what);
    BASIN_TRY(basin_store_new(&e->store, n->backend, error));
    BASIN_TRY(write_weights(n, error));
    return make_run(n, &e->context, stored, "context", true, false, error);
}

static basin_status write_codes(const basin_context_net *n, basin_error *error) {
    int64_t T = n->engine.cells - 1;
    basin_tensor code =
        basin_tensor_view(n->code + n->pass * n->max_cells * CODE, BASIN_F32, BASIN_SHAPE(T, CODE));
    return basin_store_write(n->engine.store, "code", &code, error);
}

basin_status basin_context_net_store(basin_context_net *n, const float *row, const int32_t *label,
                                     int64_t rows, int64_t cells, int64_t pass,
                                     basin_error *error) {
    n->pass = pass;
    if (cells > n->max_cells || pass >= n->passes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld cells in pass %lld: %s has codes for %lld in %lld",
                          (long long)cells, (long long)pass, basin_bundle_path(n->file),
                          (long long)n->max_cells, (long long)n->passes);
    BASIN_TRY(engine_open(n, rows, cells + 1, error));
    struct run *r = &n->engine.context;
    BASIN_TRY(write_codes(n, error));
    BASIN_TRY(basin_values_write(r->plan, r->row, row, BASIN_F32, error));
    BASIN_TRY(basin_values_write(r->plan, r->label, label, BASIN_I32, error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    basin_plan_release(r->plan);
    return BASIN_OK;
}

/* One run over at most r->rows rows; the others of a run are zeros, which nothing reads. */
static basin_status run_some(struct run *r, double *ratio, const float *row, int64_t rows,
                             int64_t width, basin_error *error) {
    BASIN_SCRATCH(float, input, r->rows *width, what, error);
    BASIN_SCRATCH_RAW(int32_t, label, r->rows, what, error);
    BASIN_SCRATCH_RAW(double, found, r->rows, what, error);
    memcpy(input, row, (size_t)(rows * width) * sizeof *row);
    for (int64_t i = 0; i < r->rows; i++) label[i] = 2;
    BASIN_TRY(basin_values_write(r->plan, r->row, input, BASIN_F32, error));
    BASIN_TRY(basin_values_write(r->plan, r->label, label, BASIN_I32, error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    BASIN_TRY(basin_values_read(r->plan, r->ratio, found, BASIN_F64, error));
    memcpy(ratio, found, (size_t)rows * sizeof *ratio);
    return BASIN_OK;
}

basin_status basin_context_net_predict(double *ratio, basin_context_net *n, const float *row,
                                       int64_t rows, basin_error *error) {
    engine *e = &n->engine;
    int64_t width = (e->cells - 1) * BASIN_CELL, batch = CELLS_OF_A_RUN / e->cells + 1;
    struct run *r = rows < FEW ? &e->few : &e->some;
    if (rows < FEW) batch = 1;
    if (!r->plan)
        BASIN_TRY(make_run(n, r, batch, batch == 1 ? "few" : "some", false, false, error));
    for (int64_t first = 0; first < rows; first += batch)
        BASIN_TRY(run_some(r, ratio + first, row + first * width,
                           basin_int_min(batch, rows - first), width, error));
    return BASIN_OK;
}

basin_status basin_context_net_look(basin_context_look *look, basin_context_net *n,
                                    const float *row, basin_error *error) {
    struct run *r = &n->engine.one;
    BASIN_SCRATCH(double, none, n->engine.stored, what, error);
    if (!r->plan) BASIN_TRY(make_run(n, r, 1, "one", false, true, error));
    BASIN_TRY(basin_values_write(r->plan, r->count, none, BASIN_F64, error));
    BASIN_TRY(run_some(r, &look->ratio, row, 1, (n->engine.cells - 1) * BASIN_CELL, error));
    BASIN_TRY(basin_values_read(r->plan, r->energy, look->energy, BASIN_F64, error));
    BASIN_TRY(basin_values_read(r->plan, r->share, look->share, BASIN_F64, error));
    return basin_values_read(r->plan, r->move, look->move, BASIN_F64, error);
}
