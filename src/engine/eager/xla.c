/* Attention as a custom call of XLA, for jax.ffi. One attribute, "job", is an array of int64:
 * operation, flags, given, results, threads, pairs, and with values the bits of the factor.
 * Arguments are q, k, beta and those of scale, list, w, a, b that `given` has bits for; results
 * those that `results` has bits for, of lse, or dq, dk, dbeta, dscale, or gq, gk, gw, gbeta,
 * gscale. With values, v is in the place of beta, bias of scale, c of w, and av, abias, ac follow
 * b; results are o, or dq, dk, dv, dbias, or gq, gk, gv, gbias, gc, o. The axis of heads is missing
 * where flags say that there is one. Axes in front are vmap's, 1 where an argument does not depend
 * on them. */
#include "engine/eager/xla.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/try.h"
#include "engine/eager/eager.h"
#include "engine/plan/plan.h"

enum { OPERATION, FLAGS, GIVEN, RESULTS, THREADS, PAIRS, FACTOR, JOB };
enum { EXCLUDE_SELF = 1, CAUSAL = 2, TF32 = 4, ONE_HEAD = 8 };
enum { Q, K, BETA, SCALE, LIST, W, A, B, AV, ABIAS, AC, INS, OUTS = 6 };
enum { V = BETA, BIAS = SCALE, C = W };
enum { LIST_ALIGN = 16 }; /* elements */

typedef struct request {
    const xla_frame *frame;
    const int64_t *job; /* [JOB] */
    const xla_buffer *in[INS], *out[OUTS];
    basin_eager_attention at;  /* of the first group, pointers included */
    basin_eager_values values; /* its part, where it has one */
    int axes;                  /* of vmap */
    int64_t length[BASIN_MAX_RANK], groups;
} request;

/* ---- reading ---- */

static const int64_t *job_of(const xla_frame *frame) {
    const xla_array *array = frame->attributes.count == 1 ? frame->attributes.value[0] : NULL;
    bool fits = array && frame->attributes.types[0] == 1 && array->dtype == XLA_S64;
    const int64_t *job = fits && array->count >= FACTOR && array->count <= JOB ? array->data : NULL;
    bool values = job && job[OPERATION] >= BASIN_EAGER_VALUES; /* these have a factor */
    return job && array->count == (values ? JOB : FACTOR) ? job : NULL;
}

static bool take_operands(request *r) {
    const xla_frame *frame = r->frame;
    int64_t next = 0;
    for (int i = 0; i < INS; i++) {
        bool there = i < SCALE || r->job[GIVEN] >> (i - SCALE) & 1;
        if (there && next == frame->args.count) return false;
        r->in[i] = there ? frame->args.buffer[next++] : NULL;
    }
    if (next != frame->args.count) return false;
    next = 0;
    for (int i = 0; i < OUTS; i++) {
        bool there = r->job[RESULTS] >> i & 1;
        if (there && next == frame->results.count) return false;
        r->out[i] = there ? frame->results.buffer[next++] : NULL;
    }
    return next == frame->results.count && next > 0;
}

static const int dense_rank[INS] = {4, 4, 1, 4, 1, 3, 4, 4};
static const int values_rank[INS] = {4, 4, 4, 4, 1, 4, 4, 4, 4, 4, 4};
static const int out_rank[][OUTS] = {{3}, {4, 4, 1, 4}, {4, 4, 3, 1, 4},
                                     {4}, {4, 4, 4, 4}, {4, 4, 4, 4, 4, 4}};

static bool has_values(const request *r) {
    return basin_eager_has_values((basin_eager_operation)r->job[OPERATION]);
}

static bool one_head(const request *r) { return r->job[FLAGS] & ONE_HEAD; }

/* Those of three axes and more have one of heads. */
static int without_heads(const request *r, int rank) {
    return one_head(r) && rank > 2 ? rank - 1 : rank;
}

static int rank_of_in(const request *r, int i) {
    if (has_values(r)) return r->in[LIST] && (i == BIAS || i == ABIAS) ? 3 : values_rank[i];
    return without_heads(r, i == SCALE && r->in[LIST] ? 2 : dense_rank[i]);
}

/* A list's scale has two axes, [pairs, H]. */
static int rank_of_out(const request *r, int i) {
    if (has_values(r)) return i == 3 && r->in[LIST] ? 3 : out_rank[r->job[OPERATION]][i];
    bool scale = (r->job[OPERATION] == BASIN_EAGER_FORCE && i == 3) ||
                 (r->job[OPERATION] == BASIN_EAGER_REVERSE && i == 4);
    return without_heads(r, scale && r->in[LIST] ? 2 : out_rank[r->job[OPERATION]][i]);
}

/* The axes of vmap, which every result has. */
static bool find_groups(request *r) {
    int first = 0;
    while (!r->out[first]) first++;
    int64_t axes = r->out[first]->rank - rank_of_out(r, first);
    if (axes < 0 || axes > BASIN_MAX_RANK) return false;
    r->axes = (int)axes, r->groups = 1;
    for (int i = 0; i < r->axes; i++) r->groups *= r->length[i] = r->out[first]->dims[i];
    for (int i = 0; i < INS; i++)
        if (r->in[i] && r->in[i]->rank != r->axes + rank_of_in(r, i)) return false;
    for (int i = 0; i < OUTS; i++)
        if (r->out[i] && r->out[i]->rank != r->axes + rank_of_out(r, i)) return false;
    return true;
}

/* Which axes a bias repeats along. */
static void find_repeats(bool repeats[3], const request *r, int i) {
    const int64_t all[] = {r->at.batch, r->at.heads, r->at.queries};
    for (int axis = 0; r->in[i] && axis < (r->in[LIST] ? 1 : 3); axis++)
        repeats[axis] = r->in[i]->dims[r->axes + axis] != all[axis];
}

static bool find_sizes(request *r) {
    const int64_t *q = r->in[Q]->dims + r->axes, *k = r->in[K]->dims + r->axes;
    int width = one_head(r) ? 2 : 3;
    basin_eager_attention *at = &r->at;
    switch (r->in[Q]->dtype) {
    case XLA_F32: at->dtype = BASIN_F32; break;
    case XLA_F64: at->dtype = BASIN_F64; break;
    case XLA_BF16: at->dtype = BASIN_BF16; break;
    default: return false;
    }
    at->batch = q[0], at->queries = q[1], at->keys = k[1], at->head_dim = q[width];
    at->heads = one_head(r) ? 1 : q[2];
    at->pairs = r->job[PAIRS];
    at->exclude_self = r->job[FLAGS] & EXCLUDE_SELF;
    at->causal = r->job[FLAGS] & CAUSAL, at->tf32 = r->job[FLAGS] & TF32;
    if (has_values(r)) {
        memcpy(&r->values.factor, &r->job[FACTOR], sizeof r->values.factor);
        r->values.key_heads = k[2], r->values.value_dim = r->in[V]->dims[r->axes + 3];
        find_repeats(r->values.bias_repeats, r, BIAS);
        find_repeats(r->values.abias_repeats, r, ABIAS);
        return k[0] == q[0] && k[width] == q[width];
    }
    return k[0] == q[0] && k[2] == q[2] && k[width] == q[width];
}

/* ---- pointers ---- */

static size_t dtype_bytes(int dtype) { return dtype == XLA_F64 ? 8 : dtype == XLA_BF16 ? 2 : 4; }

/* Address of a group's part. */
static void *part_of(const request *r, const xla_buffer *buffer, int64_t group) {
    if (!buffer) return NULL;
    int64_t at = 0, step = 1;
    for (int64_t i = r->axes; i < buffer->rank; i++) step *= buffer->dims[i];
    for (int i = r->axes - 1; i >= 0; i--) {
        int64_t index = group % r->length[i];
        group /= r->length[i];
        if (buffer->dims[i] > 1) at += index * step;
        step *= buffer->dims[i];
    }
    return (char *)buffer->data + (size_t)at * dtype_bytes(buffer->dtype);
}

static const int32_t *list_part(const int32_t **next, int64_t length) {
    const int32_t *here = *next;
    *next += (length + LIST_ALIGN - 1) / LIST_ALIGN * LIST_ALIGN;
    return here;
}

static void set_list(basin_eager_attention *at, const int32_t *list) {
    if (!list) return;
    at->row = list_part(&list, at->queries + 1), at->key = list_part(&list, at->pairs);
    at->column = list_part(&list, at->keys + 1), at->query = list_part(&list, at->pairs);
    at->pair = list_part(&list, at->pairs);
}

/* The fields of a group; those of its values come after. */
typedef struct group_job {
    basin_eager_attention at;
    basin_eager_values values;
} group_job;

#define AT(field) offsetof(group_job, at.field)
#define WITH(field) offsetof(group_job, values.field)
static const size_t dense_at[INS] = {AT(q), AT(k), AT(beta), AT(scale), 0, AT(w), AT(a), AT(b)};
static const size_t values_at[INS] = {AT(q), AT(k), WITH(v),  WITH(bias),  0,       WITH(c),
                                      AT(a), AT(b), WITH(av), WITH(abias), WITH(ac)};
static const size_t out_at[][OUTS] = {{AT(lse)},
                                      {AT(dq), AT(dk), AT(dbeta), AT(dscale)},
                                      {AT(gq), AT(gk), AT(gw), AT(gbeta), AT(gscale)},
                                      {WITH(o)},
                                      {AT(dq), AT(dk), WITH(dv), WITH(dbias)},
                                      {AT(gq), AT(gk), WITH(gv), WITH(gbias), WITH(gc), WITH(o)}};
#undef AT
#undef WITH

static void find_group(group_job *found, const request *r, int64_t number) {
    *found = (group_job){r->at, r->values};
    if (has_values(r)) found->at.values = &found->values;
    for (int i = 0; i < INS; i++)
        if (r->in[i] && i != LIST)
            *(const void **)((char *)found + (has_values(r) ? values_at : dense_at)[i]) =
                part_of(r, r->in[i], number);
    for (int i = 0; i < OUTS; i++)
        if (r->out[i])
            *(void **)((char *)found + out_at[r->job[OPERATION]][i]) =
                part_of(r, r->out[i], number);
    set_list(&found->at, part_of(r, r->in[LIST], number));
}

static int64_t groups_of(const request *r, const xla_buffer *buffer) {
    int64_t groups = 1;
    for (int i = 0; i < r->axes; i++) groups *= buffer->dims[i];
    return groups;
}

/* Groups become entries of one batch where they share beta and nothing is summed over a batch. */
static void fold_groups(request *r) {
    bool sums = r->job[OPERATION] == BASIN_EAGER_FORCE     ? r->out[2] != NULL
                : r->job[OPERATION] == BASIN_EAGER_REVERSE ? r->out[3] != NULL
                                                           : false;
    bool values = has_values(r);
    bool folds = !r->in[LIST] && !sums && (values || groups_of(r, r->in[BETA]) == 1) &&
                 !r->values.bias_repeats[0] && !r->values.abias_repeats[0];
    for (int i = 0; i < INS; i++)
        if (r->in[i] && (i != BETA || values)) folds = folds && groups_of(r, r->in[i]) == r->groups;
    if (!folds) return;
    r->at.batch *= r->groups;
    r->groups = 1;
}

/* ---- running ---- */

static void *fail(const xla_frame *frame, int code, const char *message) {
    xla_error_arguments arguments = {.size = sizeof arguments, .message = message, .code = code};
    return frame->api->error_create(&arguments);
}

static void *fail_status(const xla_frame *frame, const basin_error *error) {
    bool memory = error->status == BASIN_NO_MEMORY;
    return fail(frame, memory ? XLA_RESOURCE_EXHAUSTED : XLA_INVALID_ARGUMENT, error->text);
}

/* XLA guarantees only the first alignment; kernels need the second. */
enum { XLA_ALIGNMENT = 16, SCRATCH_ALIGNMENT = 256 };

static void *align(void *data) {
    uintptr_t past = (uintptr_t)data % SCRATCH_ALIGNMENT;
    return past ? (char *)data + (SCRATCH_ALIGNMENT - past) : data;
}

/* Device memory for the call, to be aligned; *failure where there is none. */
static void *scratch_new(void **failure, const xla_frame *frame, size_t bytes) {
    xla_allocate_arguments arguments = {.size = sizeof arguments,
                                        .context = frame->context,
                                        .bytes = bytes,
                                        .alignment = XLA_ALIGNMENT};
    *failure = bytes ? frame->api->memory_allocate(&arguments) : NULL;
    return arguments.data;
}

static void *scratch_free(const xla_frame *frame, void *data, size_t bytes) {
    xla_free_arguments arguments = {
        .size = sizeof arguments, .context = frame->context, .bytes = bytes, .data = data};
    return data ? frame->api->memory_free(&arguments) : NULL;
}

static void *run_groups(const request *r, const basin_eager *eager) {
    basin_error error = {.status = BASIN_OK};
    basin_eager_operation operation = (basin_eager_operation)r->job[OPERATION];
    group_job one;
    find_group(&one, r, 0);
    void *failure = NULL, *scratch = NULL;
    size_t bytes = 0;
    basin_status status = basin_eager_workspace(&bytes, eager, operation, &one.at, &error);
    size_t taken = bytes ? bytes + SCRATCH_ALIGNMENT : 0;
    if (!status && eager->device) scratch = scratch_new(&failure, r->frame, taken);
    for (int64_t i = 0; i < r->groups && !status && !failure; i++) {
        find_group(&one, r, i);
        one.at.workspace = align(scratch), one.at.workspace_bytes = bytes;
        status = basin_eager_run(eager, operation, &one.at, &error);
    }
    void *late = scratch_free(r->frame, scratch, taken);
    if (status) return fail_status(r->frame, &error);
    return failure ? failure : late;
}

static void *read_request(request *r, const xla_frame *frame) {
    *r = (request){.frame = frame, .job = job_of(frame)};
    if (!r->job || r->job[OPERATION] < BASIN_EAGER_LSE ||
        r->job[OPERATION] > BASIN_EAGER_VALUES_SECOND || !take_operands(r) || !find_groups(r) ||
        !find_sizes(r))
        return fail(frame, XLA_INVALID_ARGUMENT,
                    "basin attention: the operands are not those of its job");
    fold_groups(r);
    return NULL;
}

/* Answers XLA's question for the version; false where it makes a call. */
static bool report_version(const xla_frame *frame) {
    for (xla_extension *e = frame->extension; e; e = e->next) {
        if (e->type != XLA_EXTENSION_METADATA) continue;
        xla_metadata *metadata = ((xla_metadata_extension *)e)->metadata;
        metadata->version.major = XLA_VERSION_MAJOR;
        metadata->version.minor = XLA_VERSION_MINOR;
        if (frame->api && frame->api->version.minor < XLA_VERSION_MINOR)
            metadata->version.minor = frame->api->version.minor; /* what is used is older */
        metadata->traits = 0;
        return true;
    }
    return false;
}

static void *attention_host(void *call) {
    const xla_frame *frame = call;
    request r;
    if (report_version(frame)) return NULL;
    void *failure = read_request(&r, frame);
    if (failure) return failure;
    basin_eager *eager = NULL;
    basin_error error;
    const char *backend = r.at.dtype == BASIN_F64 ? "ref" : "cpu";
    if (basin_eager_open(
            &eager, &(basin_compute){.backend = backend, .threads = (int)r.job[THREADS]}, &error))
        return fail_status(frame, &error);
    failure = run_groups(&r, eager);
    basin_eager_close(eager);
    return failure;
}

/* XLA passes a handler no user data, and opening the module takes longer than a call: it is opened
 * once per process. If two threads open it at the same time, one closes its copy again. */
static const basin_eager *cuda_opened(basin_error *error) {
    static _Atomic(basin_eager *) kept = NULL;
    basin_eager *eager = atomic_load(&kept), *none = NULL;
    if (eager || basin_eager_open(&eager, &(basin_compute){.backend = "cuda"}, error)) return eager;
    if (!atomic_compare_exchange_strong(&kept, &none, eager)) {
        basin_eager_close(eager);
        eager = none;
    }
    return eager;
}

static void *attention_cuda(void *call) {
    const xla_frame *frame = call;
    request r;
    if (report_version(frame)) return NULL;
    void *failure = read_request(&r, frame);
    basin_error error;
    const basin_eager *eager = failure ? NULL : cuda_opened(&error);
    if (!failure && !eager) failure = fail_status(frame, &error);
    xla_stream_arguments stream = {.size = sizeof stream, .context = frame->context};
    if (!failure) failure = frame->api->stream_get(&stream);
    if (failure) return failure;
    r.at.stream = stream.stream;
    return run_groups(&r, eager);
}

/* ---- plans ----
 *
 * One attribute, a text, names a plan. Arguments and results are its inputs and outputs; each may
 * have one more axis in front, of vmap: results all have it, and arguments that depend on it. */

typedef struct known_plan {
    char *name;
    const basin_eager_plan *plan;
} known_plan;

/* Backends belong to one thread at a time, so calls wait for each other. */
static struct {
    pthread_mutex_t lock;
    basin_xla_find *find;
    known_plan *list; /* [count] */
    int count;
} plans = {.lock = PTHREAD_MUTEX_INITIALIZER};

void basin_xla_set_find(basin_xla_find *find) {
    pthread_mutex_lock(&plans.lock);
    plans.find = find;
    pthread_mutex_unlock(&plans.lock);
}

static basin_status add_plan(char *name, const basin_eager_plan *plan, basin_error *error) {
    known_plan *list = realloc(plans.list, (size_t)(plans.count + 1) * sizeof *list);
    if (!list) return basin_fail_memory(error, "a plan's name");
    plans.list = list;
    list[plans.count++] = (known_plan){name, plan};
    return BASIN_OK;
}

static basin_status find_plan(known_plan *plan, const xla_text *name, basin_error *error) {
    for (int i = 0; i < plans.count; i++)
        if (strlen(plans.list[i].name) == name->length &&
            memcmp(plans.list[i].name, name->data, name->length) == 0) {
            *plan = plans.list[i];
            return BASIN_OK;
        }
    BASIN_SCRATCH(char, text, name->length + 1, "a plan's name", error);
    memcpy(text, name->data, name->length);
    *plan = (known_plan){text, plans.find ? plans.find(text) : NULL};
    if (!plan->plan) return basin_fail(error, BASIN_BAD_VALUE, "basin: no plan is called %s", text);
    BASIN_TRY(add_plan(text, plan->plan, error));
    text = NULL;
    return BASIN_OK;
}

/* Bytes from one group's part to the next, 0: shared by all; -1: not the expression's. */
static int64_t group_step(const xla_buffer *buffer, basin_expr expr, const basin_plan *plan) {
    const basin_shape *shape = &expr->shape;
    int64_t axes = buffer->rank - shape->rank;
    int dtype = plan->store->backend->table->real == BASIN_F64 ? XLA_F64 : XLA_F32;
    if (axes < 0 || axes > 1 || buffer->dtype != dtype) return -1;
    for (int i = 0; i < shape->rank; i++)
        if (buffer->dims[axes + i] != shape->dim[i]) return -1;
    return axes ? basin_shape_count(*shape) * (int64_t)dtype_bytes(dtype) : 0;
}

static basin_status run_plan(const xla_frame *frame, const basin_eager_plan *known, void *stream,
                             basin_error *error) {
    const xla_buffers *args = &frame->args, *results = &frame->results;
    bool fits = args->count == known->inputs && results->count == known->outputs;
    BASIN_FREE_AT_EXIT const void **from = NULL;
    BASIN_FREE_AT_EXIT void **to = NULL;
    BASIN_TRY(BASIN_NEW(&from, known->inputs + 1, "a plan's operands", error));
    BASIN_TRY(BASIN_NEW(&to, known->outputs + 1, "a plan's operands", error));
    int64_t groups = 1;
    for (int i = 0; i < known->outputs && fits; i++) {
        int64_t step = group_step(results->buffer[i], known->output[i], known->plan);
        if (step > 0) groups = results->buffer[i]->dims[0];
        fits = step >= 0;
    }
    for (int i = 0; i < known->inputs && fits; i++)
        fits = group_step(args->buffer[i], known->input[i], known->plan) >= 0;
    if (!fits) return basin_fail(error, BASIN_BAD_SHAPE, "basin: operands are not the plan's");
    basin_eager_plan run = *known;
    run.from = from, run.to = to, run.stream = stream;
    for (int64_t group = 0; group < groups; group++) {
        for (int i = 0; i < run.inputs; i++)
            from[i] = (char *)args->buffer[i]->data +
                      group * group_step(args->buffer[i], run.input[i], run.plan);
        for (int i = 0; i < run.outputs; i++)
            to[i] = (char *)results->buffer[i]->data +
                    group * group_step(results->buffer[i], run.output[i], run.plan);
        BASIN_TRY(basin_eager_run_plan(&run, error));
    }
    return BASIN_OK;
}

static void *call_plan(const xla_frame *frame) {
    const xla_attributes *given = &frame->attributes;
    basin_error error = {.status = BASIN_OK};
    known_plan known;
    if (given->count != 1 || given->types[0] != 4)
        return fail(frame, XLA_INVALID_ARGUMENT, "basin: a call without the name of a plan");
    if (find_plan(&known, given->value[0], &error)) return fail_status(frame, &error);
    xla_stream_arguments stream = {.size = sizeof stream, .context = frame->context};
    if (basin_backend_eager(known.plan->plan->store->backend)) {
        void *failure = frame->api->stream_get(&stream);
        if (failure) return failure;
    }
    if (run_plan(frame, known.plan, stream.stream, &error)) return fail_status(frame, &error);
    if (known.plan->plan->iterations.count) plans.find(known.name);
    return NULL;
}

static void *plan_handler(void *call) {
    if (report_version(call)) return NULL;
    pthread_mutex_lock(&plans.lock);
    void *failure = call_plan(call);
    pthread_mutex_unlock(&plans.lock);
    return failure;
}

basin_xla_handler *basin_xla_handler_named(const char *name) {
    static const struct {
        const char *name;
        basin_xla_handler *handler;
    } all[] = {{"attention_host", attention_host},
               {"attention_cuda", attention_cuda},
               {"plan", plan_handler}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name)) return all[i].handler;
    return NULL;
}
