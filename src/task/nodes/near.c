/* Scores of single nodes; see near.h.
 *
 * A step of descent reaches two hops: a node is a query over its neighbours, and a key of theirs,
 * whose log-sum-exps run over their own neighbours. All nodes within reach are taken, nearest first
 * up to the cap, and descend together as a stream (stream.c) does. What lies next to them has the
 * activations and log-sum-exps that it had in the base at each step, where these are kept. */

#include "task/nodes/near.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/walk.h"
#include "base/sort.h"
#include "base/team/team.h"
#include "base/try.h"
#include "plan/plan.h"

/* Nodes that a plan of a stream takes at once; and of how many of the cap's nodes one is computed
 * where others go on and have states: far ones hardly change. */
enum { BLOCK = 64, NEAREST = 8 };

/* An array that grows. */
typedef struct pool {
    void *data;
    size_t capacity;
} pool;

/* The lists of a neighbourhood along one relation of the model. */
typedef struct region_lists {
    pool row, col, back_row, back_col, entry;
    int64_t edges; /* along rows; those along back rows come behind them */
    pool from;     /* int64_t: which edge of the base each one is, or -1 - its place in `fact` */
    pool fact;
    int64_t facts; /* rows of it */
} region_lists;

/* What a thread needs, kept from one score to the next. */
typedef struct worker {
    struct worker *next;
    basin_backend *backend;
    basin_store *store[64];
    basin_nodes_stream *stream[64];
    basin_network network; /* of the neighbourhood; its relations are `relation` */
    basin_relation relation[BASIN_ANOMALY_RELATIONS];
    basin_node_inputs inputs; /* of the neighbourhood */
    basin_nodes_resources work;
    region_lists list[BASIN_ANOMALY_RELATIONS];
    pool node;  /* int64_t: the neighbourhood, then those next to it */
    pool local; /* int32_t: their numbers here, by node; -1: not here */
    pool table, row, probability, bias;
    int64_t nodes, halo, edges;
    bool capped;
    int64_t member; /* that runs */
    basin_near_scorer *scorer;
} worker;

struct basin_near_scorer {
    basin_near_rows *rows;
    basin_near_config config;
    int reach;     /* hops that the energy sees */
    int moments;   /* of rows that a run of a member shows */
    float **state; /* [members, moments] of all base nodes; or NULL */
    float **bias;  /* [members, relations, blocks] of all base edges */
    double *logit; /* [N] of the base by the network */
    size_t bytes;
    pthread_mutex_t lock; /* of the workers that wait */
    worker *free;
};

static basin_status grow(pool *p, int64_t count, size_t size, basin_error *error) {
    if (basin_array_reserve(&p->data, &p->capacity, (size_t)count, size)) return BASIN_OK;
    return basin_fail_memory(error, "a neighbourhood");
}

/* ---- states of the base ---- */

typedef struct keeping {
    basin_near_scorer *scorer;
    int64_t member; /* -1 before the first */
} keeping;

static void keep_rows(void *context, int moment, float *rows, int64_t width) {
    keeping *k = context;
    basin_near_scorer *s = k->scorer;
    k->member += moment == 0;
    memcpy(s->state[k->member * s->moments + moment], rows,
           (size_t)(s->rows->graph->base->nodes * width) * sizeof *rows);
}

static float **bias_at(const basin_near_scorer *s, int64_t member, int relation, int block) {
    const basin_near_rows *rows = s->rows;
    int64_t blocks = rows->model->settings.blocks, relations = rows->inputs.shape.relations;
    return &s->bias[(member * relations + relation) * blocks + block];
}

/* Biases come before the first rows of their block. */
static basin_status keep_bias(void *context, int block, int relation, const float *we, float *bias,
                              basin_error *error) {
    const keeping *k = context;
    basin_near_scorer *s = k->scorer;
    const basin_near_rows *rows = s->rows;
    int64_t member = k->member + (block + relation == 0);
    const basin_relation *r = &rows->graph->base->relation[rows->inputs.relation[relation]];
    size_t count = (size_t)(r->edges * rows->model->settings.heads);
    float **to = bias_at(s, member, relation, block);
    (void)we;
    BASIN_TRY(BASIN_NEW_RAW(to, count, "states", error));
    memcpy(*to, bias, count * sizeof *bias);
    s->bytes += count * sizeof *bias;
    return BASIN_OK;
}

static int64_t biases_of(const basin_near_scorer *s) {
    const basin_nodes_model *model = s->rows->model;
    return model->members * s->rows->inputs.shape.relations * model->settings.blocks;
}

static basin_status reserve_states(basin_near_scorer *s, basin_error *error) {
    const basin_nodes_model *model = s->rows->model;
    size_t N = (size_t)s->rows->graph->base->nodes;
    int64_t dim = model->settings.dim, align = BASIN_WALK_ALIGN;
    BASIN_TRY(BASIN_NEW(&s->state, model->members * s->moments, "states", error));
    BASIN_TRY(BASIN_NEW(&s->bias, biases_of(s), "states", error));
    for (int64_t i = 0; i < model->members * s->moments; i++) {
        int64_t width = i % 2 ? model->settings.heads : (dim + align - 1) / align * align;
        BASIN_TRY(BASIN_NEW_RAW(&s->state[i], N * (size_t)width, "states", error));
        s->bytes += N * (size_t)width * sizeof(float);
    }
    return BASIN_OK;
}

static void free_scorer(basin_nodes_scorer **scorer) { basin_nodes_scorer_free(*scorer); }

/* Scores of all base nodes as basin_nodes_score finds them; states by a stream. */
static basin_status pass_over_base(basin_near_scorer *s, basin_error *error) {
    basin_near_rows *rows = s->rows;
    const basin_nodes_model *model = rows->model;
    BASIN_AT_EXIT(free_scorer) basin_nodes_scorer *scorer = NULL;
    basin_nodes_resources work = {
        .backend = model->backend, .watch = s->config.watch, .memory = s->config.memory};
    basin_parted_inputs in = {
        .count = 1, .part = &rows->inputs, .whole = &rows->inputs, .shape = rows->inputs.shape};
    size_t limit = basin_nodes_memory_limit(&work), graph = basin_parted_inputs_bytes(&in);
    keeping k = {s, -1};
    basin_nodes_tap tap = {keep_rows, keep_bias, false, &k};
    for (int pass = 0; pass < 2; pass++) {
        size_t memory = pass || limit < graph ? 0 : limit - graph;
        basin_nodes_scorer_free(scorer), scorer = NULL;
        BASIN_TRY(basin_nodes_scorer_new(&scorer, &in, memory, &work, error));
        bool streams = basin_nodes_scorer_streams(scorer);
        BASIN_FREE_AT_EXIT double *logit = NULL;
        BASIN_TRY(BASIN_NEW_RAW(&logit, rows->graph->base->nodes, "scores", error));
        if (streams) basin_nodes_scorer_tap(scorer, &tap);
        BASIN_TRY(basin_nodes_scorer_mean(scorer, logit, model->ensemble.fits, model, error));
        if (!pass) s->logit = logit, logit = NULL;
        if (streams) break;
    }
    return BASIN_OK;
}

/* ---- opening ---- */

static basin_status check(const basin_nodes_model *model, basin_error *error) {
    const basin_nodes_settings *r = &model->settings;
    bool alone = r->classes || r->implicit || !basin_nodes_descends(r);
    if (model->ensemble.fits && model->ensemble.share <= 0) return BASIN_OK;
    if (alone || !basin_choice_is(r->position, "none"))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "single nodes need a detector of form energy with position none, not "
                          "implicit; this one has form %s, position %s%s",
                          r->form, r->position, r->implicit ? ", implicit" : "");
    return BASIN_OK;
}

static basin_status open_scorer(basin_near_scorer *s, basin_error *error) {
    const basin_nodes_settings *r = &s->rows->model->settings;
    BASIN_TRY(check(s->rows->model, error));
    if (!s->rows->network) return BASIN_OK;
    int steps = (int)(r->blocks * r->steps);
    s->reach = (int)basin_int_max(r->attention ? 2 * steps : 0, r->hops);
    s->moments = r->attention ? 2 * steps * s->rows->inputs.shape.relations : 0;
    s->bytes =
        (size_t)(s->rows->inputs.shape.columns * s->rows->graph->base->nodes) * sizeof(float);
    if (!s->config.states) return BASIN_OK;
    BASIN_TRY(reserve_states(s, error));
    return pass_over_base(s, error);
}

basin_status basin_near_scorer_new(basin_near_scorer **scorer, basin_near_rows *rows,
                                   const basin_near_config *config, basin_error *error) {
    BASIN_TRY(BASIN_NEW(scorer, 1, "single nodes", error));
    (*scorer)->rows = rows, (*scorer)->config = *config;
    pthread_mutex_init(&(*scorer)->lock, NULL);
    return open_scorer(*scorer, error);
}

static void worker_free(worker *w) {
    if (!w) return;
    for (int m = 0; m < 64; m++)
        basin_nodes_stream_free(w->stream[m]), basin_store_free(w->store[m]);
    basin_backend_close(w->backend);
    for (region_lists *l = w->list; l < w->list + BASIN_ANOMALY_RELATIONS; l++) {
        free(l->row.data), free(l->col.data), free(l->back_row.data), free(l->back_col.data);
        free(l->entry.data), free(l->from.data), free(l->fact.data);
    }
    free(w->node.data), free(w->local.data), free(w->table.data), free(w->row.data);
    free(w->probability.data), free(w->bias.data);
    free(w);
}

void basin_near_scorer_free(basin_near_scorer *s) {
    if (!s) return;
    for (worker *w = s->free, *next; w; w = next) next = w->next, worker_free(w);
    for (int64_t i = 0; s->state && i < s->rows->model->members * s->moments; i++)
        free(s->state[i]);
    for (int64_t i = 0; s->bias && i < biases_of(s); i++) free(s->bias[i]);
    free(s->state), free(s->bias), free(s->logit);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

size_t basin_near_scorer_bytes(const basin_near_scorer *scorer) { return scorer->bytes; }

/* ---- workers ---- */

/* Rows of those next to the neighbourhood, as they were in the base. */
static void fill_halo(void *context, int moment, float *rows, int64_t width) {
    const worker *w = context;
    const basin_near_scorer *s = w->scorer;
    const int64_t *node = w->node.data;
    if (!w->halo) return;
    const float *from = s->state[w->member * s->moments + moment];
    for (int64_t i = 0; i < w->halo; i++)
        memcpy(rows + (w->inputs.shape.nodes + i) * width, from + node[w->nodes + i] * width,
               (size_t)width * sizeof *rows);
}

/* Of edges of the base as they were there; of others by what they carry. */
static basin_status find_bias(void *context, int block, int relation, const float *we, float *bias,
                              basin_error *error) {
    worker *w = context;
    const region_lists *l = &w->list[relation];
    int64_t heads = w->inputs.settings->heads;
    const float *base = NULL;
    basin_relation facts = {.edges = l->facts, .fact = l->fact.data};
    basin_network network = w->network;
    basin_edge_reader reader = w->inputs.reader;
    network.relation = &facts;
    reader.relation[0] = 0;
    BASIN_TRY(grow(&w->bias, l->facts * heads + 1, sizeof(float), error));
    BASIN_TRY(basin_edge_bias(w->bias.data, &reader, &network, 0, we, heads, error));
    if (w->scorer->state) base = *bias_at(w->scorer, w->member, relation, block);
    for (int64_t e = 0; e < l->edges; e++) {
        int64_t from = ((const int64_t *)l->from.data)[e];
        const float *one =
            from < 0 ? (float *)w->bias.data - (1 + from) * heads : base + from * heads;
        memcpy(bias + e * heads, one, (size_t)heads * sizeof *bias);
    }
    return BASIN_OK;
}

static basin_status make_worker(worker *w, basin_error *error) {
    const basin_near_rows *rows = w->scorer->rows;
    const basin_nodes_model *model = rows->model;
    basin_nodes_tap tap = {fill_halo, find_bias, true, w};
    BASIN_TRY(basin_backend_open(&w->backend, &(basin_compute){.threads = 1}, error));
    if (!rows->network) return BASIN_OK;
    w->work = (basin_nodes_resources){.backend = w->backend};
    w->network = (basin_network){.path = rows->graph->base->path,
                                 .directed = rows->graph->base->directed,
                                 .facts = rows->graph->base->facts,
                                 .relation = w->relation};
    w->inputs = rows->inputs;
    w->inputs.network = &w->network;
    w->inputs.shape.nodes = w->inputs.shape.positions = BLOCK;
    for (int r = 0; r < rows->inputs.shape.relations; r++)
        w->inputs.relation[r] = w->inputs.reader.relation[r] = r;
    for (int64_t m = 0; m < model->members; m++) {
        BASIN_TRY(basin_store_new(&w->store[m], w->backend, error));
        BASIN_TRY(
            basin_nodes_stream_new(&w->stream[m], &w->inputs, NULL, w->store[m], &w->work, error));
        basin_nodes_stream_tap(w->stream[m], &tap);
        BASIN_TRY(basin_params_read(basin_nodes_stream_params(w->stream[m]), w->store[m],
                                    model->member[m], error));
    }
    w->network.relations = rows->inputs.shape.relations;
    return BASIN_OK;
}

static basin_status borrow(worker **w, basin_near_scorer *s, basin_error *error) {
    pthread_mutex_lock(&s->lock);
    *w = s->free;
    if (*w) s->free = (*w)->next;
    pthread_mutex_unlock(&s->lock);
    if (*w) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(w, 1, "single nodes", error));
    (*w)->scorer = s;
    basin_status status = make_worker(*w, error);
    if (status) worker_free(*w);
    return status;
}

static void give_back(worker *w) {
    pthread_mutex_lock(&w->scorer->lock);
    w->next = w->scorer->free;
    w->scorer->free = w;
    pthread_mutex_unlock(&w->scorer->lock);
}

/* ---- the neighbourhood ---- */

static const int *relations_of(const worker *w, int *count) {
    const basin_node_inputs *in = &w->scorer->rows->inputs;
    *count = in->shape.relations;
    return in->relation;
}

/* Takes a node into the neighbourhood, or says that the cap bit. */
static basin_status take(worker *w, int64_t node, basin_error *error) {
    const basin_near_config *c = &w->scorer->config;
    int32_t *local = w->local.data;
    if (local[node] >= 0) return BASIN_OK;
    int64_t edges = basin_near_degree(w->scorer->rows->graph, node);
    if (w->nodes && (w->nodes >= c->cap_nodes || w->edges + edges > c->cap_edges)) {
        w->capped = true;
        return BASIN_OK;
    }
    BASIN_TRY(grow(&w->node, w->nodes + 1, sizeof(int64_t), error));
    ((int64_t *)w->node.data)[w->nodes] = node;
    local[node] = (int32_t)w->nodes++;
    w->edges += edges;
    return BASIN_OK;
}

static basin_status take_next(worker *w, int64_t node, basin_error *error) {
    const basin_near_graph *g = w->scorer->rows->graph;
    int relations, ways = 1 + g->base->directed;
    const int *relation = relations_of(w, &relations);
    for (int i = 0; i < relations * ways; i++) {
        basin_near_list list = basin_near_sees(g, relation[i / ways], node, i % ways);
        for (int64_t k = 0; k < list.count; k++) BASIN_TRY(take(w, list.col[k], error));
    }
    return BASIN_OK;
}

/* A neighbourhood that goes on is cut short where the states of others are known. */
static void cut(worker *w) {
    const basin_near_config *c = &w->scorer->config;
    const int64_t *node = w->node.data;
    int64_t all = w->nodes;
    if (!w->capped || !w->scorer->state) return;
    w->edges = 0;
    for (w->nodes = 0; w->nodes < all; w->nodes++) {
        int64_t edges = basin_near_degree(w->scorer->rows->graph, node[w->nodes]);
        bool more = w->nodes < c->cap_nodes / NEAREST && w->edges + edges <= c->cap_edges / NEAREST;
        if (w->nodes && !more) break;
        w->edges += edges;
    }
    for (int64_t i = w->nodes; i < all; i++) ((int32_t *)w->local.data)[node[i]] = -1;
}

static basin_status gather(worker *w, int64_t node, basin_error *error) {
    const basin_near_graph *g = w->scorer->rows->graph;
    size_t had = w->local.capacity;
    int64_t most = w->scorer->config.cap_nodes, enough = w->scorer->state ? most / NEAREST : most;
    w->nodes = w->halo = w->edges = 0, w->capped = false;
    BASIN_TRY(grow(&w->local, g->nodes, sizeof(int32_t), error));
    for (size_t i = had; i < w->local.capacity; i++) ((int32_t *)w->local.data)[i] = -1;
    BASIN_TRY(take(w, node, error));
    for (int64_t first = 0, hop = 0; hop < w->scorer->reach; hop++) {
        int64_t last = w->nodes;
        for (; first < last && w->nodes < (w->capped ? enough : most); first++)
            BASIN_TRY(take_next(w, ((const int64_t *)w->node.data)[first], error));
        w->capped = w->capped || first < last;
    }
    cut(w);
    return BASIN_OK;
}

/* Who was taken is here no longer. */
static void leave(worker *w) {
    int32_t *local = w->local.data;
    const int64_t *node = w->node.data;
    for (int64_t i = 0; i < w->nodes + w->halo && local; i++) local[node[i]] = -1;
}

/* The place of a neighbour, which joins the halo if it must; -1: it does not count. */
static basin_status place_of(int32_t *place, worker *w, int64_t node, basin_error *error) {
    const basin_near_scorer *s = w->scorer;
    int32_t *local = w->local.data;
    if (local[node] < 0 && s->state && node < s->rows->graph->base->nodes) {
        int64_t all = w->nodes + w->halo;
        BASIN_TRY(grow(&w->node, all + 1, sizeof(int64_t), error));
        ((int64_t *)w->node.data)[all] = node;
        local[node] = (int32_t)(w->inputs.shape.nodes + w->halo++);
    }
    *place = local[node];
    return BASIN_OK;
}

/* Where edge e of the lists has its bias from. */
static basin_status put_fact(const worker *w, region_lists *l, int64_t e,
                             const basin_near_list *list, int64_t k, basin_error *error) {
    int64_t F = w->scorer->rows->graph->base->facts.count, *from = (int64_t *)l->from.data + e;
    *from = basin_near_entry(list, k);
    if (*from >= 0 && w->scorer->state) return BASIN_OK;
    *from = -1 - l->facts;
    BASIN_TRY(grow(&l->fact, (l->facts + 1) * F, sizeof(float), error));
    memcpy((float *)l->fact.data + l->facts++ * F, basin_near_fact(list, k, F),
           (size_t)F * sizeof(float));
    return BASIN_OK;
}

/* Lists of all nodes along a relation, one way. */
static basin_status list_way(worker *w, int r, bool back, basin_error *error) {
    const basin_near_graph *g = w->scorer->rows->graph;
    int64_t F = w->inputs.shape.facts ? g->base->facts.count : 0, n = 0;
    region_lists *l = &w->list[r];
    pool *rows = back ? &l->back_row : &l->row, *cols = back ? &l->back_col : &l->col;
    int relation = w->scorer->rows->inputs.relation[r];
    BASIN_TRY(grow(rows, w->inputs.shape.nodes + 1, sizeof(int64_t), error));
    int64_t *row = rows->data;
    for (int64_t i = 0; i < w->inputs.shape.nodes; i++) {
        basin_near_list list = {0};
        row[i] = n;
        if (i < w->nodes)
            list = basin_near_sees(g, relation, ((const int64_t *)w->node.data)[i], back);
        BASIN_TRY(grow(cols, n + list.count + 1, sizeof(int32_t), error));
        BASIN_TRY(grow(&l->from, l->edges + n + list.count + 1, sizeof(int64_t), error));
        for (int64_t k = 0; k < list.count; k++) {
            int32_t place;
            BASIN_TRY(place_of(&place, w, list.col[k], error));
            if (place < 0) continue;
            if (F) BASIN_TRY(put_fact(w, l, l->edges + n, &list, k, error));
            ((int32_t *)cols->data)[n++] = place;
        }
    }
    row[w->inputs.shape.nodes] = n;
    if (back) {
        BASIN_TRY(grow(&l->entry, n + 1, sizeof(int64_t), error));
        for (int64_t e = 0; e < n; e++) ((int64_t *)l->entry.data)[e] = l->edges + e;
    }
    l->edges += n;
    return BASIN_OK;
}

static basin_status make_lists(worker *w, basin_nodes_lists *list, basin_error *error) {
    bool directed = w->scorer->rows->graph->base->directed;
    for (int r = 0; r < w->inputs.shape.relations; r++) {
        region_lists *l = &w->list[r];
        l->edges = l->facts = 0;
        BASIN_TRY(list_way(w, r, false, error));
        if (directed) BASIN_TRY(list_way(w, r, true, error));
        w->relation[r] = (basin_relation){.edges = l->edges};
        list[r] = (basin_nodes_lists){.row = l->row.data,
                                      .column = directed ? l->back_row.data : l->row.data,
                                      .key = l->col.data,
                                      .query = directed ? l->back_col.data : l->col.data,
                                      .entry = directed ? l->entry.data : NULL};
    }
    return BASIN_OK;
}

/* ---- scores ---- */

static basin_status fill_table(worker *w, basin_error *error) {
    int64_t columns = w->inputs.shape.columns;
    BASIN_TRY(grow(&w->table, w->inputs.shape.nodes * columns, sizeof(float), error));
    w->inputs.table = w->table.data;
    for (int64_t i = 0; i < w->nodes; i++)
        BASIN_TRY(basin_near_inputs_row(w->inputs.table + i * columns, w->scorer->rows,
                                        ((const int64_t *)w->node.data)[i], error));
    memset(w->inputs.table + w->nodes * columns, 0,
           (size_t)((w->inputs.shape.nodes - w->nodes) * columns) * sizeof(float));
    return BASIN_OK;
}

/* As basin_nodes_scorer_mean has it. */
static basin_status run_members(double *logit, worker *w, basin_error *error) {
    const basin_nodes_model *model = w->scorer->rows->model;
    basin_nodes_lists list[BASIN_ANOMALY_RELATIONS];
    w->inputs.shape.nodes = basin_int_max(w->nodes, BLOCK);
    BASIN_TRY(make_lists(w, list, error));
    BASIN_TRY(fill_table(w, error));
    BASIN_TRY(grow(&w->probability, w->inputs.shape.nodes, sizeof(double), error));
    double *one = w->probability.data;
    *logit = 0;
    for (w->member = 0; w->member < model->members; w->member++) {
        basin_nodes_stream *stream = w->stream[w->member];
        basin_nodes_stream_give(stream, list, w->halo);
        BASIN_TRY(basin_nodes_streams_run(&stream, 1, NULL, &one, w->member, error));
        *logit += (model->ensemble.fits ? basin_logit(one[0]) : one[0]) / (double)model->members;
    }
    return BASIN_OK;
}

/* Whether additions lie among the nodes that were gathered. */
static bool any_touched(const worker *w) {
    for (int64_t i = 0; i < w->nodes; i++)
        if (basin_near_touched(w->scorer->rows, ((const int64_t *)w->node.data)[i])) return true;
    return false;
}

static basin_status score_network(double *logit, basin_nodes_live_score *score, worker *w,
                                  basin_error *error) {
    const basin_near_scorer *s = w->scorer;
    const basin_near_graph *g = s->rows->graph;
    bool grown = g->bytes > 0;
    score->nodes = 1;
    if (s->state && !grown) return *logit = s->logit[score->node], BASIN_OK;
    basin_status status = gather(w, score->node, error);
    score->nodes = w->nodes, score->edges = w->edges, score->capped = w->capped;
    if (!status && s->state && score->node < g->base->nodes && !any_touched(w))
        *logit = s->logit[score->node];
    else if (!status)
        status = run_members(logit, w, error);
    leave(w);
    return status;
}

static basin_status score_trees(double *logit, worker *w, int64_t node, basin_error *error) {
    const basin_near_rows *rows = w->scorer->rows;
    const basin_nodes_ensemble *e = &rows->model->ensemble;
    BASIN_TRY(grow(&w->row, rows->table.columns, sizeof(float), error));
    BASIN_TRY(basin_near_trees_row(w->row.data, rows, node, error));
    *logit = 0;
    for (int64_t k = 0; k < e->fits; k++) {
        double weight = basin_nodes_ensemble_weight(e, &rows->table, k), one;
        if (weight <= 0) continue;
        BASIN_TRY(
            basin_trees_predict(&one, e->trees[k], w->row.data, 1, rows->table.columns, error));
        *logit += weight * one;
    }
    return BASIN_OK;
}

typedef struct attempt {
    basin_nodes_live_score *score;
    worker *worker;
    basin_error *error;
    basin_status *status;
} attempt;

static basin_status score_one(basin_nodes_live_score *score, worker *w, basin_error *error) {
    const basin_near_rows *rows = w->scorer->rows;
    double network = 0, trees = 0;
    if (rows->network) BASIN_TRY(score_network(&network, score, w, error));
    if (rows->trees) BASIN_TRY(score_trees(&trees, w, score->node, error));
    score->probability = network;
    if (rows->model->ensemble.fits)
        basin_nodes_ensemble_mix(&score->probability, &rows->model->ensemble, &trees, &network, 1);
    return BASIN_OK;
}

static void score_alone(const void *context, int64_t first, int64_t last) {
    const attempt *a = context;
    (void)first, (void)last;
    *a->status = score_one(a->score, a->worker, a->error);
}

/* On this thread alone: others score other nodes. */
basin_status basin_near_score(basin_nodes_live_score *score, basin_near_scorer *s, int64_t node,
                              basin_error *error) {
    basin_status status;
    worker *w;
    *score = (basin_nodes_live_score){.node = node};
    BASIN_TRY(borrow(&w, s, error));
    attempt a = {score, w, error, &status};
    basin_team_run(score_alone, &a, 1, 1, 1);
    give_back(w);
    return status;
}
