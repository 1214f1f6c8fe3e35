/* Graphs: nodes are made once, equal ones are shared (hash consing), the first error sticks. */
#include "engine/expr/graph.h"
#include "base/shape.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_BUCKETS = 256 };

basin_graph *basin_graph_new(void) {
    basin_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->buckets = FIRST_BUCKETS;
    graph->bucket = calloc(graph->buckets, sizeof *graph->bucket);
    if (!graph->bucket) {
        free(graph);
        return NULL;
    }
    return graph;
}

static void node_free(basin_node *node) {
    for (int i = 0; i < node->outs; i++) free(node->out[i]);
    BASIN_FREE(node->name, node->data, node);
}

void basin_graph_free(basin_graph *graph) {
    if (!graph) return;
    for (size_t i = 0; i < graph->nodes; i++) node_free(graph->node[i]);
    for (size_t i = 0; i < graph->kepts; i++) free(graph->kept[i]);
    BASIN_FREE(graph->kept, graph->node, graph->iteration, graph->bucket, graph);
}

void *basin_graph_keep(basin_graph *graph, size_t size) {
    void *memory = NULL;
    if (BASIN_RESERVE(&graph->kept, &graph->kept_capacity, graph->kepts + 1))
        memory = calloc(1, size);
    if (memory) graph->kept[graph->kepts++] = memory;
    return memory ? memory
                  : (void *)basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for a graph");
}

const basin_error *basin_graph_error(const basin_graph *graph) {
    static const basin_error no_graph = {BASIN_NO_MEMORY, 0, "out of memory for a graph"};
    if (!graph) return &no_graph;
    return graph->error.status == BASIN_OK ? NULL : &graph->error;
}

basin_status basin_graph_check(const basin_graph *graph, basin_error *error) {
    const basin_error *found = basin_graph_error(graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

basin_expr basin_graph_fail(basin_graph *graph, basin_status status, const char *format, ...) {
    if (graph && graph->error.status == BASIN_OK) {
        va_list args;
        va_start(args, format);
        graph->error.status = status;
        vsnprintf(graph->error.text, sizeof graph->error.text, format, args);
        va_end(args);
    }
    return NULL;
}

basin_graph *basin_expr_graph(basin_expr a) { return a ? a->graph : NULL; }
basin_shape basin_expr_shape(basin_expr a) { return a ? a->shape : BASIN_SCALAR; }

/* Variables (basin_variable) are an energy's activations: formulas call them g. */
static const char *name_of(const basin_node *node) {
    bool variable = node->op == BASIN_OP_COPY && node->attr.start;
    return node->name ? node->name : variable ? "g" : NULL;
}

const char *basin_expr_name(basin_expr a) {
    const char *name = a ? name_of(a->node) : NULL;
    return name ? name : "";
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = mix(hash, byte[i]);
    return hash;
}

/* Attributes are compared field by field: padding bytes of the struct hold anything. */
static bool attr_equal(const basin_attr *a, const basin_attr *b) {
    return memcmp(&a->value, &b->value, sizeof a->value) == 0 &&
           memcmp(&a->drop, &b->drop, sizeof a->drop) == 0 && a->start == b->start &&
           a->axis == b->axis && a->count == b->count &&
           memcmp(a->axes, b->axes, sizeof a->axes) == 0 && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b && a->exclude_self == b->exclude_self &&
           a->causal == b->causal && a->added == b->added && a->stream == b->stream &&
           a->own == b->own;
}

static uint64_t attr_hash(const basin_attr *a) {
    uint64_t hash = hash_bytes(1, &a->value, sizeof a->value);
    hash = mix(hash, (uint64_t)a->start);
    hash = mix(hash, (uint64_t)a->axis * 64 + (uint64_t)a->count);
    hash = hash_bytes(hash, a->axes, sizeof a->axes);
    hash = mix(hash, a->transpose_a + 2u * a->transpose_b + 4u * a->exclude_self + 8u * a->causal +
                         16u * a->added);
    hash = mix(hash, (uint64_t)(uintptr_t)a->own);
    return mix(hash, a->stream);
}

static uint64_t node_hash(basin_op op, const basin_attr *attr, const basin_expr *in, int ins,
                          const basin_result *out, int outs) {
    uint64_t hash = mix(attr_hash(attr), op);
    for (int i = 0; i < ins; i++) hash = mix(hash, in[i] ? (uint64_t)in[i]->id + 1 : 0);
    for (int i = 0; i < outs; i++)
        for (int k = 0; k < out[i].shape.rank; k++) hash = mix(hash, (uint64_t)out[i].shape.dim[k]);
    return hash;
}

static bool node_matches(const basin_node *node, basin_op op, const basin_attr *attr,
                         const basin_expr *in, int ins, const basin_result *out, int outs) {
    if (node->op != op || node->ins != ins || node->outs != outs || node->name) return false;
    for (int i = 0; i < ins; i++)
        if (node->in[i] != in[i]) return false;
    for (int i = 0; i < outs; i++) {
        if (out[i].absent != !node->out[i]) return false;
        if (node->out[i] && !basin_shape_equal(node->out[i]->shape, out[i].shape)) return false;
    }
    return attr_equal(&node->attr, attr);
}

static bool grow_buckets(basin_graph *graph) {
    size_t buckets = graph->buckets * 4;
    basin_node **bucket = calloc(buckets, sizeof(basin_node *));
    if (!bucket) return false;
    for (size_t i = 0; i < graph->nodes; i++) {
        basin_node *node = graph->node[i];
        node->next = bucket[node->hash & (buckets - 1)];
        bucket[node->hash & (buckets - 1)] = node;
    }
    free(graph->bucket);
    graph->bucket = bucket;
    graph->buckets = buckets;
    return true;
}

/* Takes over `node`, whatever happens. */
static basin_node *node_insert(basin_graph *graph, basin_node *node) {
    if (!basin_array_reserve((void **)&graph->node, &graph->node_capacity, graph->nodes + 1,
                             sizeof(basin_node *)) ||
        (graph->nodes >= graph->buckets && !grow_buckets(graph))) {
        node_free(node);
        basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for an expression");
        return NULL;
    }
    node->id = (int)graph->nodes;
    graph->node[graph->nodes++] = node;
    node->next = graph->bucket[node->hash & (graph->buckets - 1)];
    graph->bucket[node->hash & (graph->buckets - 1)] = node;
    return node;
}

static basin_node *node_make(basin_graph *graph, basin_op op, const basin_attr *attr,
                             const basin_expr *in, int ins, const basin_result *out, int outs) {
    basin_node *node = calloc(1, sizeof *node);
    bool ok = node != NULL;
    if (ok) {
        *node = (basin_node){.op = op, .attr = *attr, .ins = ins, .outs = outs};
        node->region = graph->region;
        for (int i = 0; i < ins; i++) node->in[i] = in[i];
        for (int i = 0; i < outs && ok; i++) {
            if (out[i].absent) continue;
            node->out[i] = malloc(sizeof *node->out[i]);
            ok = node->out[i] != NULL;
            if (ok)
                *node->out[i] = (struct basin_value){.graph = graph,
                                                     .node = node,
                                                     .index = i,
                                                     .id = graph->values++,
                                                     .kind = out[i].kind,
                                                     .shape = out[i].shape};
        }
    }
    if (ok) return node;
    if (node) node_free(node);
    basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for an expression");
    return NULL;
}

static bool takes_index(basin_op op, int operand) {
    switch (op) {
    case BASIN_OP_GATHER:
    case BASIN_OP_SCATTER: return operand == 1;
    case BASIN_OP_FROM_INDEX: return true;
    case BASIN_OP_PAIR_DOT:
    case BASIN_OP_PAIR_SUM: return operand >= 2;
    case BASIN_OP_ATTENTION:
    case BASIN_OP_ATTENTION_FORCE:
    case BASIN_OP_ATTENTION_REVERSE: return operand >= BASIN_ATT_ROW && operand <= BASIN_ATT_PAIR;
    case BASIN_OP_VALUES:
    case BASIN_OP_VALUES_REVERSE:
    case BASIN_OP_VALUES_SECOND: return operand >= BASIN_VAL_ROW && operand <= BASIN_VAL_SEED;
    case BASIN_OP_NORMAL:
    case BASIN_OP_UNIFORM: return true;
    default: return false;
    }
}

/* What holds for every operation: operands of this graph, indices only where they belong. */
static bool check_operands(basin_graph *graph, basin_op op, const basin_expr *in, int ins) {
    for (int i = 0; i < ins; i++) {
        if (!in[i]) continue;
        if (in[i]->graph != graph)
            basin_graph_fail(graph, BASIN_BAD_VALUE, "operands of different graphs");
        else if (op != BASIN_OP_RESHAPE && (in[i]->kind == BASIN_INDEX) != takes_index(op, i))
            basin_graph_fail(graph, BASIN_BAD_VALUE,
                             in[i]->kind == BASIN_INDEX ? "arithmetic on the index tensor '%s'"
                                                        : "'%s' is not an index tensor",
                             basin_expr_name(in[i]));
        else
            continue;
        return false;
    }
    return true;
}

basin_node *basin_node_new(basin_graph *graph, basin_op op, const basin_attr *attr,
                           const basin_expr *in, int ins, const basin_result *out, int outs) {
    if (!check_operands(graph, op, in, ins)) return NULL;
    for (int i = 0; i < outs; i++)
        if (!out[i].absent && basin_shape_count(out[i].shape) < 0) {
            basin_graph_fail(graph, BASIN_BAD_SHAPE, "an expression of shape %s has no valid size",
                             basin_shape_text(out[i].shape));
            return NULL;
        }
    uint64_t hash = node_hash(op, attr, in, ins, out, outs);
    for (basin_node *node = graph->bucket[hash & (graph->buckets - 1)]; node; node = node->next)
        if (node->hash == hash && node_matches(node, op, attr, in, ins, out, outs)) return node;
    basin_node *node = node_make(graph, op, attr, in, ins, out, outs);
    if (!node) return NULL;
    node->hash = hash;
    return node_insert(graph, node);
}

basin_expr basin_node_single(basin_graph *graph, basin_op op, const basin_attr *attr,
                             const basin_expr *in, int ins, basin_shape shape) {
    basin_result out = {.kind = BASIN_REAL, .shape = shape};
    basin_node *node = basin_node_new(graph, op, attr, in, ins, &out, 1);
    return node ? node->out[0] : NULL;
}

static basin_node *leaf_find(basin_graph *graph, uint64_t hash, const char *name) {
    basin_node *node = graph->bucket[hash & (graph->buckets - 1)];
    while (node && !(node->name && node->hash == hash && strcmp(node->name, name) == 0))
        node = node->next;
    return node;
}

static const char *leaf_role(basin_op op, basin_kind kind) {
    if (op == BASIN_OP_STATE) return "a state";
    return kind == BASIN_INDEX ? "an index input" : "an input";
}

basin_expr basin_leaf(basin_graph *graph, basin_op op, basin_kind kind, const char *name,
                      basin_shape shape) {
    if (!graph) return NULL;
    if (!name)
        return basin_graph_fail(graph, BASIN_BAD_VALUE, "%s of shape %s has no name (NULL)",
                                leaf_role(op, kind), basin_shape_text(shape));
    uint64_t hash = hash_bytes(17, name, strlen(name));
    basin_node *node = leaf_find(graph, hash, name);
    if (node) {
        const struct basin_value *value = node->out[0];
        if (node->op == op && value->kind == kind && basin_shape_equal(value->shape, shape))
            return value;
        const char *now = leaf_role(op, kind), *before = leaf_role(node->op, value->kind);
        if (now != before)
            return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                    "'%s' is declared as %s, it was %s before", name, now, before);
        return basin_graph_fail(graph, BASIN_BAD_SHAPE,
                                "'%s' is declared again with shape %s, it was %s before", name,
                                basin_shape_text(shape), basin_shape_text(value->shape));
    }
    if (basin_shape_count(shape) < 0)
        return basin_graph_fail(graph, BASIN_BAD_SHAPE, "'%s' of shape %s has no valid size", name,
                                basin_shape_text(shape));
    basin_attr none = {0};
    basin_result out = {.kind = kind, .shape = shape};
    node = node_make(graph, op, &none, NULL, 0, &out, 1);
    if (!node) return NULL;
    node->hash = hash;
    node->region = 0;
    node->name = basin_string_copy(name);
    if (!node->name) {
        node_free(node);
        return basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for an expression");
    }
    node = node_insert(graph, node);
    return node ? node->out[0] : NULL;
}

static size_t data_bytes(basin_kind kind, basin_shape shape) {
    return (size_t)basin_shape_count(shape) *
           (kind == BASIN_INDEX ? sizeof(int32_t) : sizeof(double));
}

static basin_expr find_data(basin_graph *graph, uint64_t hash, basin_kind kind, basin_shape shape,
                            const void *number) {
    for (basin_node *node = graph->bucket[hash & (graph->buckets - 1)]; node; node = node->next)
        if (node->hash == hash && node->data && node->out[0]->kind == kind &&
            basin_shape_equal(node->out[0]->shape, shape) &&
            memcmp(node->data, number, data_bytes(kind, shape)) == 0)
            return node->out[0];
    return NULL;
}

static basin_expr insert_data(basin_graph *graph, basin_kind kind, basin_shape shape, uint64_t hash,
                              void *data, const basin_node *origin) {
    basin_result out = {.kind = kind, .shape = shape};
    basin_node *node = node_make(graph, BASIN_OP_DATA, &(basin_attr){0}, NULL, 0, &out, 1);
    if (!node) {
        free(data);
        return NULL;
    }
    node->hash = hash;
    node->region = 0;
    node->data = data;
    node->origin = origin;
    node = node_insert(graph, node);
    return node ? node->out[0] : NULL;
}

basin_expr basin_leaf_data(basin_graph *graph, basin_kind kind, basin_shape shape,
                           const void *number) {
    if (!graph) return NULL;
    if (basin_shape_count(shape) < 0)
        return basin_graph_fail(graph, BASIN_BAD_SHAPE, "a constant of shape %s has no valid size",
                                basin_shape_text(shape));
    size_t bytes = data_bytes(kind, shape);
    uint64_t hash = hash_bytes(mix(29, (uint64_t)kind), number, bytes);
    basin_expr found = find_data(graph, hash, kind, shape, number);
    if (found) return found;
    void *data = malloc(bytes + 1);
    if (!data) return basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for a constant");
    memcpy(data, number, bytes);
    return insert_data(graph, kind, shape, hash, data, NULL);
}

basin_expr basin_leaf_again(basin_graph *graph, const basin_node *origin) {
    const struct basin_value *value = origin->out[0];
    return insert_data(graph, value->kind, value->shape, origin->hash, NULL, origin);
}

basin_expr basin_input(basin_graph *graph, const char *name, basin_shape shape) {
    return basin_leaf(graph, BASIN_OP_INPUT, BASIN_REAL, name, shape);
}
basin_expr basin_index(basin_graph *graph, const char *name, basin_shape shape) {
    return basin_leaf(graph, BASIN_OP_INPUT, BASIN_INDEX, name, shape);
}
basin_expr basin_state(basin_graph *graph, const char *name, basin_shape shape) {
    return basin_leaf(graph, BASIN_OP_STATE, BASIN_REAL, name, shape);
}

basin_expr basin_scalar(basin_graph *graph, double value) {
    basin_attr attr = {.value = value == 0 ? 0 : value}; /* one zero, not two */
    return graph ? basin_node_single(graph, BASIN_OP_CONST, &attr, NULL, 0, BASIN_SCALAR) : NULL;
}

void basin_recompute_begin(basin_graph *graph) {
    if (graph) graph->region = ++graph->regions;
}
void basin_recompute_end(basin_graph *graph) {
    if (graph) graph->region = 0;
}
basin_expr basin_keep(basin_expr a) {
    if (a) a->node->keep = true;
    return a;
}

/* Expressions in messages: their name, or the operation they come from, and their shape. */

enum { SHOWN = 3, LONGEST = 48 }; /* operands of an operation, characters of a name */

static size_t put_name(char *text, size_t size, basin_expr a) {
    const char *name = name_of(a->node);
    if (name)
        snprintf(text, size, "'%.*s'", LONGEST, name);
    else if (basin_expr_is_const(a))
        snprintf(text, size, "%g", a->node->attr.value);
    else
        snprintf(text, size, "..");
    return strlen(text);
}

/* matmul('x', 'w'): one level, which shows where in a formula to look. */
static size_t put_operation(char *text, size_t size, const basin_node *node) {
    size_t used = 0;
    int shown = 0;
    for (const char *name = basin_op_name(node->op); *name; name++)
        text[used++] = (char)tolower((unsigned char)*name);
    text[used] = 0;
    if (node->ins == 0) return used; /* a constant */
    text[used++] = '(';
    for (int i = 0; i < node->ins && shown < SHOWN; i++) {
        if (!node->in[i]) continue;
        if (shown++) used += strlen(strcpy(text + used, ", "));
        used += put_name(text + used, size - used, node->in[i]);
    }
    text[used++] = ')';
    text[used] = 0;
    return used;
}

const char *basin_expr_text(basin_expr a) {
    enum { TEXTS = 4, SIZE = 200 + BASIN_SHAPE_TEXT };
    static _Thread_local char texts[TEXTS][SIZE];
    static _Thread_local unsigned last;
    char *text = texts[++last % TEXTS];
    bool leaf = name_of(a->node) || basin_expr_is_const(a);
    size_t used = leaf ? put_name(text, SIZE, a) : put_operation(text, SIZE, a->node);
    snprintf(text + used, SIZE - used, " %s", basin_shape_text(a->shape));
    return text;
}
