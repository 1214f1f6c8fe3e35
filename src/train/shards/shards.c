/* Shards of a batch; see shards.h. */
#include "train/shards/shards.h"

#include <stdlib.h>

#include "base/try.h"
#include "plan/plan.h"
#include "train/gradients.h"
#include "train/run/watch.h"

enum { USUAL = 8, SPAN = 1 << 16 }; /* numbers of a span at least: a message has its price */

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

int64_t basin_shards_choose(int64_t asked, int64_t saved, int64_t batch, const basin_ranks *ranks) {
    if (asked) return asked;
    if (saved) return saved;
    return ranks ? common_divisor(batch, USUAL) : 1;
}

/* Trainers are stepped by basin_shards_step, and never meet by themselves. */
static basin_status no_reduction(void *context, basin_store *store, const char *const *name,
                                 int count, basin_error *error) {
    (void)context, (void)store, (void)name, (void)count;
    return basin_fail(error, BASIN_UNSUPPORTED, "a step of one shard alone");
}

const basin_reduction basin_shards_reduction = {.sum = no_reduction};

/* ---- spans ---- */

static int64_t count_of(basin_expr state) { return basin_shape_count(basin_expr_shape(state)); }

static basin_status no_memory(basin_error *error) { return basin_fail_memory(error, "gradients"); }

/* Cuts where a span has numbers enough. Devices add and send all at once. */
static basin_status cut_spans(basin_shards *shards, const basin_params *params,
                              basin_error *error) {
    basin_shards_spans *s = &shards->spans;
    int64_t n = s->params = (int64_t)params->count, next = 0, first = 0;
    s->of = basin_array_new((size_t)n, sizeof *s->of);
    s->at = basin_array_new((size_t)n, sizeof *s->at);
    s->wait = basin_array_new((size_t)n, sizeof *s->wait);
    int64_t *end = basin_array_new((size_t)n, sizeof *end);
    basin_status status = s->of && s->at && s->wait && end ? BASIN_OK : no_memory(error);
    for (int64_t i = 0; i < n && !status; i++) {
        s->of[i] = s->count;
        s->at[i] = next;
        next += count_of(params->param[i].state);
        bool whole = i + 1 == n || (next - first >= SPAN && !shards->device.table);
        if (whole) end[s->count++] = first = next;
    }
    if (!status) status = basin_ranks_tree_cut(shards->tree, end, s->count, error);
    free(end);
    return status;
}

static void await_all(basin_shards_spans *s) {
    for (int64_t i = 0; i < s->count; i++) s->wait[i] = 0;
    for (int64_t i = 0; i < s->params; i++) s->wait[s->of[i]]++;
}

/* ---- beginning ---- */

basin_status basin_shards_begin(basin_shards *shards, const basin_training *training, int64_t count,
                                const basin_params *params, basin_error *error) {
    basin_ranks *ranks = training->ranks;
    if (count < 1) count = 1;
    if (training->divide && basin_ranks_count(ranks) == 1)
        basin_watch_note(training->watch, "one rank keeps all of the optimiser's state");
    *shards = (basin_shards){
        .ranks = ranks, .count = count, .share = basin_ranks_deal(ranks, count), .how = ""};
    if (count == 1 && basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&shards->losses, 2 * (size_t)count, "losses", error));
    BASIN_TRY(
        basin_shards_device_begin(&shards->device, &shards->how, ranks, training->backend, error));
    basin_ranks_memory memory = basin_shards_device_memory(&shards->device);
    basin_status status =
        basin_ranks_tree_new(&shards->tree, ranks, count, basin_params_total(params),
                             shards->device.table ? &memory : NULL, error);
    if (!status) status = cut_spans(shards, params, error);
    if (status || !training->divide || basin_ranks_count(ranks) == 1) return status;
    return basin_shards_divide(shards, params, error);
}

void basin_shards_end(basin_shards *shards) {
    basin_ranks_tree_free(shards->tree);
    basin_shards_device_end(&shards->device);
    free(shards->losses);
    free(shards->spans.of), free(shards->spans.at), free(shards->spans.wait);
    free(shards->owner), free(shards->own);
    *shards = (basin_shards){0};
}

/* ---- gradients and the tree ---- */

/* A gradient times the weight, as floats. */
static basin_status take(float *to, basin_shards *shards, basin_store *store, basin_expr state,
                         double weight, basin_error *error) {
    const char *name = basin_expr_name(state);
    const basin_shards_device *d = &shards->device;
    int64_t count = count_of(state);
    if (d->table) {
        const float *from = basin_store_memory(store, name, false);
        d->table->scale(d->backend, to, from, (float)weight, count);
        return BASIN_OK;
    }
    basin_tensor gradient;
    BASIN_TRY(basin_store_read(store, name, &gradient, error));
    const float *from = gradient.data, factor = (float)weight;
    if (gradient.dtype == BASIN_F32)
        for (int64_t i = 0; i < count; i++) to[i] = from[i] * factor;
    else
        for (int64_t i = 0; i < count; i++) to[i] = (float)(basin_tensor_at(&gradient, i) * weight);
    basin_tensor_free(&gradient);
    return BASIN_OK;
}

/* A shard that is being computed. */
typedef struct adding {
    basin_shards *shards;
    const basin_trainer *trainer;
    double weight;
} adding;

/* Gradient number `i` is there; a span leaves with the last of its own. */
static basin_status take_one(void *context, int i, basin_error *error) {
    const adding *a = context;
    basin_shards_spans *s = &a->shards->spans;
    float *to = basin_ranks_tree_next(a->shards->tree) + s->at[i];
    basin_status status = take(to, a->shards, a->trainer->store,
                               a->trainer->gradients.param[i].state, a->weight, error);
    bool whole = --s->wait[s->of[i]] == 0;
    return status || !whole ? status : basin_ranks_tree_push_span(a->shards->tree, s->of[i], error);
}

static basin_status let_travel(void *context, basin_error *error) {
    return basin_ranks_tree_progress(((const adding *)context)->shards->tree, error);
}

static basin_status finish(basin_shards *shards, double loss, double weight, basin_error *error) {
    double *losses = shards->losses + 2 * (shards->share.first + shards->done++);
    losses[0] = loss * weight;
    losses[1] = weight;
    return basin_ranks_tree_push(shards->tree, error);
}

basin_status basin_shards_add(basin_shards *shards, basin_trainer *trainer, double weight,
                              basin_error *error) {
    double loss;
    adding a = {shards, trainer, weight};
    basin_plan_listener listener = {take_one, let_travel, &a};
    await_all(&shards->spans);
    BASIN_TRY(basin_trainer_differentiate_telling(trainer, &listener, error));
    BASIN_TRY(basin_trainer_loss(trainer, &loss, error));
    return finish(shards, loss, weight, error);
}

/* A weight of 0 takes what is there for its shape alone. */
basin_status basin_shards_add_empty(basin_shards *shards, basin_trainer *trainer,
                                    basin_error *error) {
    adding a = {shards, trainer, 0};
    basin_status status = BASIN_OK;
    await_all(&shards->spans);
    for (int i = 0; i < (int)trainer->gradients.count && !status; i++)
        status = take_one(&a, i, error);
    return status ? status : finish(shards, 0, 0, error);
}

/* ---- the step ---- */

/* Loss and weight of the batch, from all shards in their order. */
static basin_status sum_losses(basin_shards *shards, double *loss, double *weight,
                               basin_error *error) {
    int64_t ranks = basin_ranks_count(shards->ranks);
    size_t *bytes = basin_array_new((size_t)ranks, sizeof *bytes);
    if (!bytes) return basin_fail_memory(error, "losses");
    for (int64_t r = 0; r < ranks; r++)
        bytes[r] = (size_t)basin_ranks_deal_to(r, ranks, shards->count).count * 2 * sizeof(double);
    double *losses = shards->losses;
    basin_status status = basin_ranks_gather_parts(shards->ranks, losses,
                                                   losses + 2 * shards->share.first, bytes, error);
    free(bytes);
    *loss = *weight = 0;
    for (int64_t i = 0; i < shards->count; i++)
        *loss += losses[2 * i], *weight += losses[2 * i + 1];
    if (!status && !(*weight > 0))
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of which nothing counts in the loss");
    *loss /= *weight;
    return status;
}

/* The sum times `factor` into the states of the gradients. */
static basin_status give(basin_shards *shards, const basin_trainer *trainer, float *sum,
                         float factor, basin_error *error) {
    const basin_params *g = &trainer->gradients;
    const basin_shards_device *d = &shards->device;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < g->count && !status; i++) {
        basin_expr state = g->param[i].state;
        const char *name = basin_expr_name(state);
        int64_t count = count_of(state);
        if (d->table)
            d->table->scale(d->backend, basin_store_memory(trainer->store, name, true), sum, factor,
                            count);
        else {
            for (int64_t k = 0; k < count; k++) sum[k] *= factor;
            basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, basin_expr_shape(state));
            status = basin_store_write(trainer->store, name, &tensor, error);
        }
        sum += count;
    }
    return status;
}

basin_status basin_shards_step(basin_shards *shards, double *loss, double *weight,
                               basin_trainer *trainer, basin_error *error) {
    float *sum;
    shards->done = 0;
    basin_status status = sum_losses(shards, loss, weight, error);
    if (!status) status = basin_ranks_tree_sum(&sum, shards->tree, error);
    if (!status) status = give(shards, trainer, sum, (float)(1 / *weight), error);
    if (!status) status = basin_trainer_apply(trainer, error);
    return status || !shards->owner ? status : basin_shards_spread(shards, trainer->store, error);
}

/* ---- the optimiser's state divided among ranks (ZeRO stage 1) ---- */

/* ---- who keeps what ---- */

/* The largest parameter that nobody has yet; -1: all are dealt. */
static int64_t largest_left(const basin_params *params, const int32_t *owner) {
    int64_t found = -1;
    for (size_t i = 0; i < params->count; i++)
        if (owner[i] < 0 && (found < 0 || count_of(params->param[i].state) >
                                              count_of(params->param[(size_t)found].state)))
            found = (int64_t)i;
    return found;
}

/* Each to the rank that has least. */
static void deal(int32_t *owner, int64_t *load /* [ranks], zeros */, const basin_params *params,
                 int64_t ranks) {
    for (size_t i = 0; i < params->count; i++) owner[i] = -1;
    for (int64_t next; (next = largest_left(params, owner)) >= 0;) {
        int64_t least = 0;
        for (int64_t r = 1; r < ranks; r++)
            if (load[r] < load[least]) least = r;
        owner[next] = (int32_t)least;
        load[least] += count_of(params->param[(size_t)next].state);
    }
}

basin_status basin_shards_divide(basin_shards *shards, const basin_params *params,
                                 basin_error *error) {
    int64_t ranks = basin_ranks_count(shards->ranks), self = basin_ranks_rank(shards->ranks);
    int64_t *load = calloc((size_t)ranks, sizeof *load);
    shards->owner = basin_array_new(params->count, sizeof *shards->owner);
    shards->own = basin_array_new(params->count, sizeof *shards->own);
    bool good = load && shards->owner && shards->own;
    if (good) deal(shards->owner, load, params, ranks);
    for (size_t i = 0; i < params->count && good; i++) shards->own[i] = shards->owner[i] == self;
    shards->params = params;
    free(load);
    return good ? BASIN_OK
                : basin_fail(error, BASIN_NO_MEMORY,
                             "out of memory to divide the optimiser's state");
}

/* ---- weights to all ---- */

/* Bytes of a number of the store. */
static basin_status width_of(size_t *width, const basin_shards *shards, basin_store *store,
                             basin_error *error) {
    basin_tensor tensor;
    BASIN_TRY(
        basin_store_read(store, basin_expr_name(shards->params->param[0].state), &tensor, error));
    *width = basin_dtype_size(tensor.dtype);
    basin_tensor_free(&tensor);
    return BASIN_OK;
}

/* What leaves and arrives, parameter by parameter; returns how many parts leave. */
static int64_t list_parts(basin_ranks_part *send, basin_ranks_part *receive, int64_t *receives,
                          const basin_shards *shards, basin_store *store, size_t width) {
    int64_t ranks = basin_ranks_count(shards->ranks), self = basin_ranks_rank(shards->ranks);
    int64_t sends = 0;
    *receives = 0;
    for (size_t i = 0; i < shards->params->count; i++) {
        const char *name = basin_expr_name(shards->params->param[i].state);
        basin_ranks_part part = {basin_store_memory(store, name, true),
                                 (size_t)count_of(shards->params->param[i].state) * width,
                                 shards->owner[i]};
        if (!shards->own[i]) receive[(*receives)++] = part;
        for (int64_t r = 0; r < ranks && shards->own[i]; r++) {
            part.rank = r;
            if (r != self) send[sends++] = part;
        }
    }
    return sends;
}

basin_status basin_shards_spread(basin_shards *shards, basin_store *store, basin_error *error) {
    size_t count = shards->params->count, ranks = (size_t)basin_ranks_count(shards->ranks);
    basin_ranks_part *send = basin_array_new(count * ranks, sizeof *send);
    basin_ranks_part *receive = basin_array_new(count, sizeof *receive);
    basin_ranks_memory device = basin_shards_device_memory(&shards->device);
    basin_status status = send && receive ? BASIN_OK : basin_fail_memory(error, "a message");
    if (!status && !shards->width) status = width_of(&shards->width, shards, store, error);
    if (!status) {
        int64_t receives,
            sends = list_parts(send, receive, &receives, shards, store, shards->width);
        status = shards->device.table
                     ? device.exchange(device.context, send, sends, receive, receives, error)
                     : basin_ranks_exchange(shards->ranks, send, sends, receive, receives, error);
    }
    free(send), free(receive);
    return status;
}
