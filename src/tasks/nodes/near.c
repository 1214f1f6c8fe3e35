/* Scores of single nodes; see near.h.
 *
 * A step of descent reaches two hops: a node is a query over its neighbours, and a key of theirs,
 * whose log-sum-exps run over their own neighbours. There are three ways to a score:
 *
 *   - where states are kept and nothing was added, the logit that the pass over the base found;
 *   - all nodes within reach of energy and inputs, nearest first, as a network that the ordinary
 *     scorer scores, where they stay below the caps;
 *   - else a descent as a stream has it (stream.c) with the inputs of the whole. Where states are
 *     kept, only nodes descend that additions changed; nodes next to them have the activations and
 *     log-sum-exps that they had in the base at each step.
 *
 * The trees' share is their logit of the node's row of the table in any case. */

#include "tasks/nodes/near.h"

#include <pthread.h>

#include "base/parallel.h"
#include "base/sort.h"
#include "basin/walk.h"

/* Nodes of a block of streams; which part of the caps changed nodes may take. */
enum { BLOCK = 32, CHANGED = 8, CHANGED_EDGES = 64, MEMBERS = 64 };

typedef struct pool {
    void *data;
    size_t capacity;
} pool;

/* Lists along a relation; `fact` has what edges carry, along rows and then along back rows. */
typedef struct region_lists {
    pool row[2], col[2], entry, fact;
} region_lists;

/* What a thread needs, kept from one score to the next. */
typedef struct worker {
    struct worker *next;
    basin_near_scorer *scorer;
    basin_nodes_model model; /* on a backend of one thread */
    basin_store *store[MEMBERS];
    basin_nodes_stream *stream[MEMBERS];
    basin_network network; /* of what descends */
    basin_relation relation[BASIN_MAX_RELATIONS];
    basin_node_inputs inputs;
    basin_nodes_resources work;
    region_lists list[BASIN_MAX_RELATIONS];
    pool node;  /* int64_t: who was gathered, or descends and then is next to these */
    pool local; /* int32_t: their places, by node; -1: not here */
    pool table, probability;
    int64_t nodes, halo, edges;
    bool capped;
    int64_t member; /* that runs */
} worker;

struct basin_near_scorer {
    const basin_near_rows *rows;
    basin_nodes_live_options config;
    bool descends;          /* the network has a share, and an energy */
    int64_t reach, moments; /* hops; rows that a run of a member shows */
    float **state;          /* [members, moments] of all base nodes; or NULL */
    int64_t member;         /* whose states are being kept; -1 before the first */
    double *logit;          /* [base nodes] by the network */
    size_t bytes;
    pthread_mutex_t lock;
    worker *free; /* workers that wait */
};

static basin_status grow(pool *p, int64_t count, size_t size, basin_error *error) {
    if (basin_array_reserve(&p->data, &p->capacity, (size_t)count, size)) return BASIN_OK;
    return basin_fail_memory(error, "a neighbourhood");
}

/* ---- states of the base ---- */

static void keep_rows(void *context, int moment, float *rows, int64_t width) {
    basin_near_scorer *s = context;
    s->member += moment == 0;
    memcpy(s->state[s->member * s->moments + moment], rows,
           (size_t)(s->rows->graph->base->nodes * width) * sizeof *rows);
}

static void free_scorer(basin_nodes_scorer **scorer) { basin_nodes_scorer_free(*scorer); }

/* Scores of all base nodes as basin_nodes_predict finds them; states by a stream. */
static basin_status pass_over_base(basin_near_scorer *s, basin_error *error) {
    const basin_nodes_model *model = s->rows->model;
    basin_node_inputs inputs = s->rows->inputs;
    basin_nodes_resources work = {
        .backend = model->backend, .watch = s->config.watch, .memory = s->config.memory};
    basin_parted_inputs in = {.count = 1, .part = &inputs, .whole = &inputs, .shape = inputs.shape};
    basin_nodes_tap tap = {keep_rows, s};
    /* The last of these: it reads them when it is freed. */
    BASIN_AT_EXIT(free_scorer) basin_nodes_scorer *scorer = NULL;
    size_t limit = basin_nodes_memory_limit(&work), graph = basin_parted_inputs_bytes(&in);
    BASIN_TRY(BASIN_NEW_RAW(&s->logit, inputs.shape.nodes, "scores", error));
    BASIN_SCRATCH_RAW(double, again, inputs.shape.nodes, "scores", error);
    for (int pass = 0; pass < 2; pass++) {
        size_t memory = pass || limit < graph ? 0 : limit - graph;
        basin_nodes_scorer_free(scorer), scorer = NULL;
        BASIN_TRY(basin_nodes_scorer_new(&scorer, &in, memory, &work, error));
        bool streams = basin_nodes_scorer_streams(scorer);
        if (streams) basin_nodes_scorer_tap(scorer, &tap);
        BASIN_TRY(basin_nodes_scorer_mean(scorer, pass ? again : s->logit, model->ensemble.fits,
                                          model, error));
        if (streams) break;
    }
    return BASIN_OK;
}

static basin_status keep_states(basin_near_scorer *s, basin_error *error) {
    const basin_nodes_settings *r = &s->rows->model->settings;
    int64_t members = s->rows->model->members, align = BASIN_WALK_ALIGN;
    size_t N = (size_t)s->rows->graph->base->nodes;
    s->moments = r->attention ? 2 * r->blocks * r->steps * s->rows->inputs.shape.relations : 0;
    BASIN_TRY(BASIN_NEW(&s->state, members * s->moments, "states", error));
    for (int64_t i = 0; i < members * s->moments; i++) {
        size_t width = (size_t)(i % 2 ? r->heads : (r->dim + align - 1) / align * align);
        BASIN_TRY(BASIN_NEW_RAW(&s->state[i], N * width, "states", error));
        s->bytes += N * width * sizeof(float);
    }
    s->bytes += N * (size_t)basin_near_rows_size(s->rows) * sizeof(float);
    return pass_over_base(s, error);
}

/* ---- opening ---- */

int64_t basin_nodes_reach(const basin_nodes_model *model) {
    const basin_nodes_settings *r = &model->settings;
    bool trees = model->ensemble.fits && !(model->ensemble.share > 0);
    bool plain = basin_nodes_plain(r);
    if (r->classes || (!trees && ((!plain && !basin_nodes_descends(r)) || r->implicit ||
                                  !basin_choice_is(r->position, "none"))))
        return -1;
    /* Own columns see a node's edges: one hop more. */
    int64_t hops = basin_int_max(trees ? 0 : r->hops, model->ensemble.fits ? 2 : 0);
    return (!trees && !plain && r->attention ? 2 * r->blocks * r->steps : 0) + hops + 1;
}

basin_status basin_near_scorer_new(basin_near_scorer **scorer, const basin_near_rows *rows,
                                   const basin_nodes_live_options *options, basin_error *error) {
    const basin_nodes_settings *r = &rows->model->settings;
    BASIN_TRY(BASIN_NEW(scorer, 1, "single nodes", error));
    basin_near_scorer *s = *scorer;
    s->rows = rows, s->config = *options, s->member = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->reach = basin_nodes_reach(rows->model);
    if (s->reach < 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "single nodes need a detector of form energy, linear or mlp, without "
                          "implicit and with position none; this one has form %s%s, position %s",
                          r->form, r->implicit ? ", implicit" : "", r->position);
    s->descends = rows->network && !basin_nodes_plain(r);
    return s->descends && options->states == BASIN_NODES_STATES_KEPT ? keep_states(s, error)
                                                                     : BASIN_OK;
}

static void worker_free(worker *w) {
    if (!w) return;
    for (int m = 0; m < MEMBERS; m++)
        basin_nodes_stream_free(w->stream[m]), basin_store_free(w->store[m]);
    basin_backend_close(w->model.backend);
    for (region_lists *l = w->list; l < w->list + BASIN_MAX_RELATIONS; l++) {
        BASIN_FREE(l->row[0].data, l->row[1].data, l->col[0].data, l->col[1].data, l->entry.data,
                   l->fact.data);
    }
    free(w->node.data), free(w->local.data), free(w->table.data), free(w->probability.data);
    free(w);
}

void basin_near_scorer_free(basin_near_scorer *s) {
    if (!s) return;
    for (worker *w = s->free, *next; w; w = next) next = w->next, worker_free(w);
    for (int64_t i = 0; s->state && i < s->rows->model->members * s->moments; i++)
        free(s->state[i]);
    free(s->state), free(s->logit);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

size_t basin_near_scorer_bytes(const basin_near_scorer *scorer) { return scorer->bytes; }

/* ---- workers ---- */

/* Rows of those next to what descends, as they were in the base. */
static void fill_halo(void *context, int moment, float *rows, int64_t width) {
    const worker *w = context;
    const int64_t *node = w->node.data;
    if (!w->halo) return;
    const float *from = w->scorer->state[w->member * w->scorer->moments + moment];
    for (int64_t i = 0; i < w->halo; i++)
        memcpy(rows + (w->inputs.shape.nodes + i) * width, from + node[w->nodes + i] * width,
               (size_t)width * sizeof *rows);
}

static basin_status make_worker(worker *w, basin_error *error) {
    const basin_near_rows *rows = w->scorer->rows;
    const basin_network *base = rows->graph->base;
    w->model = *rows->model, w->model.backend = NULL;
    BASIN_TRY(basin_backend_open(&w->model.backend, &(basin_compute){.threads = 1}, error));
    w->work = (basin_nodes_resources){.backend = w->model.backend};
    w->network = (basin_network){.path = base->path,
                                 .directed = base->directed,
                                 .facts = base->facts,
                                 .relation = w->relation};
    w->inputs = rows->inputs;
    w->inputs.network = &w->network;
    w->inputs.shape.nodes = BLOCK;
    for (int r = 0; r < BASIN_MAX_RELATIONS; r++) w->inputs.node.relation[r] = r;
    for (int64_t m = 0; m < rows->model->members && w->scorer->descends; m++) {
        BASIN_TRY(basin_store_new(&w->store[m], w->model.backend, error));
        BASIN_TRY(
            basin_nodes_stream_new(&w->stream[m], &w->inputs, NULL, w->store[m], &w->work, error));
        basin_nodes_stream_tap(w->stream[m], &(basin_nodes_tap){fill_halo, w});
        BASIN_TRY(basin_params_read(basin_nodes_stream_params(w->stream[m]), w->store[m],
                                    rows->model->member[m], error));
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

/* Takes a node, or says that the cap bit. */
static basin_status take(worker *w, int64_t node, basin_error *error) {
    const basin_nodes_live_options *o = &w->scorer->config;
    int32_t *local = w->local.data;
    if (local[node] >= 0) return BASIN_OK;
    int64_t edges = basin_near_degree(w->scorer->rows->graph, node);
    if (w->nodes && (w->nodes >= o->cap_nodes || w->edges + edges > o->cap_edges))
        return w->capped = true, BASIN_OK;
    BASIN_TRY(grow(&w->node, w->nodes + 1, sizeof(int64_t), error));
    ((int64_t *)w->node.data)[w->nodes] = node;
    local[node] = (int32_t)w->nodes++;
    w->edges += edges;
    return BASIN_OK;
}

static basin_status take_next(worker *w, int64_t node, basin_error *error) {
    const basin_near_graph *g = w->scorer->rows->graph;
    for (int i = 0; i < basin_near_ways(g); i++) {
        basin_near_list list = basin_near_way(g, i, node);
        for (int64_t k = 0; k < list.count; k++) BASIN_TRY(take(w, list.col[k], error));
    }
    return BASIN_OK;
}

/* Until all are there, or, where that is no use, until the cap bites. */
static basin_status gather(worker *w, int64_t node, basin_error *error) {
    const basin_near_scorer *s = w->scorer;
    size_t had = w->local.capacity;
    w->nodes = w->halo = w->edges = 0, w->capped = false;
    BASIN_TRY(grow(&w->local, s->rows->graph->nodes, sizeof(int32_t), error));
    for (size_t i = had; i < w->local.capacity; i++) ((int32_t *)w->local.data)[i] = -1;
    BASIN_TRY(take(w, node, error));
    for (int64_t first = 0, hop = 0; hop < s->reach; hop++) {
        int64_t last = w->nodes, few = s->config.cap_nodes / CHANGED;
        for (; first < last && !(s->state && w->capped && w->nodes > few); first++)
            BASIN_TRY(take_next(w, ((const int64_t *)w->node.data)[first], error));
    }
    return BASIN_OK;
}

static void leave(worker *w) {
    int32_t *local = w->local.data;
    const int64_t *node = w->node.data;
    for (int64_t i = 0; i < w->nodes + w->halo && local; i++) local[node[i]] = -1;
}

/* Whether a node is next to one that descends. */
static bool is_next(const worker *w, int64_t node) {
    const basin_near_graph *g = w->scorer->rows->graph;
    const int32_t *local = w->local.data;
    bool found = false;
    for (int i = 0; i < basin_near_ways(g) && !found; i++) {
        basin_near_list list = basin_near_way(g, i, node);
        for (int64_t k = 0; k < list.count && !found; k++) found = local[list.col[k]] >= 0;
    }
    return found;
}

/* Keeps the first node, the changed ones, and where there is room those next to them, which
 * descend; returns the number changed. */
static int64_t keep_changed(worker *w) {
    const basin_near_scorer *s = w->scorer;
    const basin_near_graph *g = s->rows->graph;
    int64_t *node = w->node.data, all = w->nodes, changed = 0, kept = 0;
    int32_t *local = w->local.data;
    leave(w);
    w->edges = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = kept; i < all; i++) {
            int64_t one = node[i], edges = basin_near_degree(g, one);
            bool fits = kept < s->config.cap_nodes / CHANGED &&
                        w->edges + edges <= s->config.cap_edges / CHANGED_EDGES;
            changed += !pass && g->node[one];
            if (i && (!fits || (pass ? !is_next(w, one) : !g->node[one]))) continue;
            node[i] = node[kept], node[kept] = one;
            local[one] = (int32_t)kept++;
            w->edges += edges;
        }
    w->nodes = kept;
    return changed;
}

/* The place of a neighbour, which joins those next to what descends; -1: it has no state. */
static basin_status place_of(int32_t *place, worker *w, int64_t node, basin_error *error) {
    int32_t *local = w->local.data;
    if (local[node] < 0 && w->scorer->state && node < w->scorer->rows->graph->base->nodes) {
        int64_t all = w->nodes + w->halo;
        BASIN_TRY(grow(&w->node, all + 1, sizeof(int64_t), error));
        ((int64_t *)w->node.data)[all] = node;
        local[node] = (int32_t)(w->inputs.shape.nodes + w->halo++);
    }
    *place = local[node];
    return BASIN_OK;
}

/* Lists of what descends along a relation, one way, after `before` edges of the other. */
static basin_status list_way(worker *w, int r, bool back, int64_t before, basin_error *error) {
    const basin_near_graph *g = w->scorer->rows->graph;
    int64_t F = w->inputs.shape.facts ? g->base->facts.count : 0, n = 0;
    region_lists *l = &w->list[r];
    BASIN_TRY(grow(&l->row[back], w->inputs.shape.nodes + 1, sizeof(int64_t), error));
    int64_t *row = l->row[back].data;
    for (int64_t i = 0; i < w->inputs.shape.nodes; i++) {
        basin_near_list list = {0};
        row[i] = n;
        if (i < w->nodes)
            list = basin_near_sees(g, w->scorer->rows->inputs.node.relation[r],
                                   ((const int64_t *)w->node.data)[i], back);
        BASIN_TRY(grow(&l->col[back], n + list.count + 1, sizeof(int32_t), error));
        BASIN_TRY(grow(&l->fact, (before + n + list.count) * F + 1, sizeof(float), error));
        for (int64_t k = 0; k < list.count; k++) {
            int32_t place;
            BASIN_TRY(place_of(&place, w, list.col[k], error));
            if (place < 0) continue;
            if (F)
                memcpy((float *)l->fact.data + (before + n) * F, basin_near_fact(&list, k, F),
                       (size_t)F * sizeof(float));
            ((int32_t *)l->col[back].data)[n++] = place;
        }
    }
    row[w->inputs.shape.nodes] = n;
    w->relation[r] = (basin_relation){.edges = before + n, .fact = l->fact.data};
    if (!back) return BASIN_OK;
    BASIN_TRY(grow(&l->entry, n + 1, sizeof(int64_t), error));
    for (int64_t e = 0; e < n; e++) ((int64_t *)l->entry.data)[e] = before + e;
    return BASIN_OK;
}

static basin_status make_lists(worker *w, basin_nodes_lists *list, basin_error *error) {
    bool back = w->network.directed;
    for (int r = 0; r < w->inputs.shape.relations; r++) {
        const region_lists *l = &w->list[r];
        BASIN_TRY(list_way(w, r, false, 0, error));
        if (back) BASIN_TRY(list_way(w, r, true, w->relation[r].edges, error));
        list[r] = (basin_nodes_lists){l->row[0].data, l->row[back].data, l->col[0].data,
                                      l->col[back].data, back ? l->entry.data : NULL};
    }
    return BASIN_OK;
}

/* ---- scores ---- */

/* As basin_nodes_scorer_mean has it. */
static basin_status descend(double *logit, worker *w, basin_error *error) {
    const basin_nodes_model *model = &w->model;
    basin_nodes_lists list[BASIN_MAX_RELATIONS];
    int64_t columns = w->inputs.shape.columns;
    int64_t rows = w->inputs.shape.nodes = basin_int_max(w->nodes, BLOCK);
    BASIN_TRY(make_lists(w, list, error));
    BASIN_TRY(grow(&w->table, rows * columns, sizeof(float), error));
    BASIN_TRY(grow(&w->probability, rows, sizeof(double), error));
    w->inputs.node.row = w->table.data;
    memset(w->inputs.node.row, 0, (size_t)(rows * columns) * sizeof(float));
    for (int64_t i = 0; i < w->nodes; i++)
        basin_node_table_row(w->inputs.node.row + i * columns, &w->scorer->rows->inputs.node,
                             ((const int64_t *)w->node.data)[i]);
    double *one = w->probability.data;
    *logit = 0;
    for (w->member = 0; w->member < model->members; w->member++) {
        basin_nodes_stream *stream = w->stream[w->member];
        basin_nodes_stream_give(stream, list, w->halo);
        BASIN_TRY(basin_nodes_streams_run(&stream, 1, NULL, &one, error));
        *logit += (model->ensemble.fits ? basin_logit(one[0]) : one[0]) / (double)model->members;
    }
    return BASIN_OK;
}

/* By what is kept of network and trees; `descends`: not as in the base. */
static basin_status score_kept(basin_nodes_live_score *score, worker *w, bool descends,
                               basin_error *error) {
    const basin_near_scorer *s = w->scorer;
    double network = 0, trees = 0;
    if (descends)
        BASIN_TRY(descend(&network, w, error));
    else if (s->logit)
        network = s->logit[score->node];
    if (s->rows->trees)
        BASIN_TRY(basin_nodes_ensemble_node(&trees, &w->model.ensemble, &s->rows->table,
                                            score->node, error));
    score->probability = network;
    if (w->model.ensemble.fits)
        basin_nodes_ensemble_mix(&score->probability, &w->model.ensemble, &trees, &network, 1);
    score->probability = basin_nodes_calibrated(&w->model, score->probability);
    return BASIN_OK;
}

static basin_status make_part(basin_network **part, int64_t *place, worker *w, int64_t node,
                              basin_error *error) {
    int64_t *list = w->node.data;
    BASIN_TRY(basin_near_sort(list, &w->nodes, w->scorer->rows->graph, error));
    for (*place = 0; list[*place] != node;) ++*place;
    return basin_near_part(part, w->scorer->rows->graph, list, w->nodes, error);
}

static basin_status score_part(basin_nodes_live_score *score, worker *w, basin_error *error) {
    BASIN_AT_EXIT(basin_near_part_free) basin_network *part = NULL;
    basin_nodes_predict_options all = {.memory = SIZE_MAX / 2};
    int64_t place;
    BASIN_TRY(make_part(&part, &place, w, score->node, error));
    BASIN_TRY(grow(&w->probability, w->nodes, sizeof(double), error));
    BASIN_TRY(basin_nodes_predict(w->probability.data, &w->model, part, &all, error));
    score->probability = ((const double *)w->probability.data)[place];
    return BASIN_OK;
}

static basin_status score_gathered(basin_nodes_live_score *score, worker *w, basin_error *error) {
    const basin_near_scorer *s = w->scorer;
    const basin_near_graph *g = s->rows->graph;
    score->nodes = w->nodes, score->edges = w->edges, score->capped = w->capped;
    if (!w->capped || (s->rows->network && !s->descends)) return score_part(score, w, error);
    bool changed = !s->logit || keep_changed(w) > 0 || score->node >= g->base->nodes;
    score->nodes = w->nodes, score->edges = w->edges;
    return score_kept(score, w, changed && s->descends, error);
}

static basin_status score_one(basin_nodes_live_score *score, worker *w, basin_error *error) {
    const basin_near_scorer *s = w->scorer;
    score->nodes = 1;
    if ((s->logit || !s->rows->network) && !s->rows->graph->changes)
        return score_kept(score, w, false, error);
    basin_status status = gather(w, score->node, error);
    if (!status) status = score_gathered(score, w, error);
    leave(w);
    return status;
}

typedef struct attempt {
    basin_nodes_live_score *score;
    worker *worker;
    basin_error *error;
    basin_status *status;
} attempt;

static void score_here(const void *context, int64_t first, int64_t last) {
    const attempt *a = context;
    (void)first, (void)last;
    *a->status = score_one(a->score, a->worker, a->error);
}

basin_status basin_near_score(basin_nodes_live_score *score, basin_near_scorer *s, int64_t node,
                              basin_error *error) {
    basin_status status;
    worker *w;
    *score = (basin_nodes_live_score){.node = node};
    BASIN_TRY(borrow(&w, s, error));
    /* Only on this thread: others score other nodes. */
    basin_parallel_for(score_here, &(attempt){score, w, error, &status}, 1, 1, 1);
    give_back(w);
    return status;
}

basin_status basin_near_around(basin_network **part, int64_t *place, basin_near_scorer *s,
                               int64_t node, basin_error *error) {
    worker *w;
    BASIN_TRY(borrow(&w, s, error));
    basin_status status = gather(w, node, error);
    if (!status) status = make_part(part, place, w, node, error);
    leave(w);
    give_back(w);
    return status;
}
