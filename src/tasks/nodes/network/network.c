/* The container of a network: nodes with features, labels, ids, masks; relations are in csr.c. */
#include "tasks/nodes/network/network.h"
#include "base/shape.h"
#include "base/sized.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/parallel.h"
#include "base/sort.h"
#include "base/text.h"

const basin_network_options *basin_network_options_or(const basin_network_options *options) {
    static const basin_network_options defaults = {0};
    return options ? options : &defaults;
}

const basin_table_options *basin_table_options_of(const basin_network_options *options) {
    static const basin_table_options defaults = {0};
    return options->table ? options->table : &defaults;
}

basin_status basin_network_new(basin_network **network, const char *path, int64_t nodes,
                               basin_error *error) {
    *network = NULL;
    if (nodes <= 0 || nodes > BASIN_NETWORK_NODES)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %" PRId64 " nodes, expected 1 to %d", path,
                          nodes, BASIN_NETWORK_NODES);
    basin_network *n;
    BASIN_TRY(BASIN_NEW(&n, 1, "a network", error));
    n->nodes = nodes;
    if (!(n->path = basin_string_copy(path))) return free(n), basin_fail_memory(error, "a network");
    *network = n;
    return BASIN_OK;
}

void basin_network_release(const basin_network *network, void *array) {
    size_t count = network->file ? basin_bundle_count(network->file) : 0;
    for (size_t i = 0; i < count; i++)
        if (basin_bundle_at(network->file, i)->data == array) return;
    free(array);
}

void basin_network_release_names(const basin_network *network, basin_names *names) {
    basin_network_release(network, names->at);
    basin_network_release(network, names->text);
    *names = (basin_names){0};
}

void basin_relation_free(basin_relation *r) {
    free(r->name);
    if (!r->mapped) free(r->row);
    if (!r->mapped) free(r->col);
    if (!r->fact_mapped) free(r->fact);
    *r = (basin_relation){0};
}

int64_t basin_relation_find(const basin_relation *r, int64_t node, int32_t other) {
    int64_t low = r->row[node], high = r->row[node + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (r->col[middle] < other)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->row[node + 1] && r->col[low] == other ? low : -1;
}

void basin_facts_free(basin_facts *facts) {
    free(facts->kind);
    basin_names_free(&facts->name);
    *facts = (basin_facts){0};
}

void basin_network_close(basin_network *n) {
    if (!n) return;
    void *const array[] = {n->feature, n->label, n->train, n->val,  n->test,
                           n->origin,  n->since, n->known, n->order};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++) basin_network_release(n, array[i]);
    basin_network_release_names(n, &n->id);
    basin_network_release_names(n, &n->column);
    basin_network_release_names(n, &n->class_name);
    basin_schema_free(n->schema);
    for (int r = 0; r < n->relations; r++) basin_relation_free(&n->relation[r]);
    free(n->relation);
    basin_facts_free(&n->facts);
    free(n->note);
    free(n->path);
    for (int i = 0; i < 2; i++) free(n->table_path[i]);
    free(n->files.text), free(n->cuts);
    basin_bundle_free(n->file);
    free(n);
}

const char *basin_network_next_note(int *length, const basin_network *network, const char *note) {
    const char *end = note ? strchr(note, '\n') : NULL;
    if (note && !end) return NULL;
    note = note ? end + 1 : network->note;
    if (!note || !*note) return NULL;
    *length = (int)strcspn(note, "\n");
    return note;
}

const char *basin_network_note_path(const basin_network *network, const char *note) {
    bool edges = !strncmp(note, "edges: ", strlen("edges: "));
    return network->table_path[edges] ? network->table_path[edges] : network->path;
}

static bool has_line(const basin_network *n, const char *line) {
    int length;
    for (const char *note = NULL; (note = basin_network_next_note(&length, n, note));)
        if ((size_t)length == strlen(line) && !strncmp(note, line, (size_t)length)) return true;
    return false;
}

void basin_network_add_note(basin_network *network, const char *format, ...) {
    char line[BASIN_ERROR_TEXT + 200];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    basin_text_clean(line); /* names in it may hold line breaks */
    if (has_line(network, line)) return;
    size_t had = network->note ? strlen(network->note) + 1 : 0, more = strlen(line) + 1;
    char *grown = realloc(network->note, had + more);
    network->note_lost = network->note_lost || !grown;
    if (!grown) return;
    if (had) grown[had - 1] = '\n';
    memcpy(grown + had, line, more);
    network->note = grown;
}

basin_status basin_network_check_note(const basin_network *network, basin_error *error) {
    if (!network->note_lost) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for notes", network->path);
}

/* ---- features ---- */

basin_status basin_network_alloc_features(basin_network *network, int64_t features,
                                          const basin_network_options *options,
                                          basin_error *error) {
    size_t count;
    if (features <= 0 || features > INT32_MAX)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %" PRId64 " features a node, expected at least 1", network->path,
                          features);
    double bytes = (double)network->nodes * (double)features * sizeof *network->feature;
    BASIN_TRY(basin_memory_check(bytes, basin_network_options_or(options)->memory, network->path,
                                 BASIN_NO_MEMORY, error));
    if (!basin_size_multiply(&count, (size_t)network->nodes, (size_t)features) ||
        !(network->feature = basin_array_new(count, sizeof *network->feature)))
        return basin_fail_memory(error, "the features");
    network->features = features;
    return BASIN_OK;
}

/* The mean of the finite numbers of a column; 0 where there are none. */
static float column_mean(const basin_network *n, int64_t column) {
    double sum[2] = {0, 0};
    int64_t count = 0;
    for (int64_t i = 0; i < n->nodes; i++) {
        float x = n->feature[i * n->features + column];
        if (isfinite(x)) basin_sum_add(sum, (double)x), count++;
    }
    return count ? (float)((sum[0] + sum[1]) / (double)count) : 0;
}

/* Returns how many gaps there were. */
static int64_t fill_column(basin_network *n, int64_t column, float value) {
    int64_t gaps = 0;
    for (int64_t i = 0; i < n->nodes; i++) {
        float *x = n->feature + i * n->features + column;
        if (isfinite(*x)) continue;
        *x = value;
        gaps++;
    }
    return gaps;
}

/* What is mapped cannot be written to: a copy takes its place. */
static basin_status own_features(basin_network *n, basin_error *error) {
    size_t count = (size_t)n->nodes * (size_t)n->features;
    float *copy;
    BASIN_TRY(BASIN_NEW_RAW(&copy, count, "the features", error));
    memcpy(copy, n->feature, count * sizeof *copy);
    basin_network_release(n, n->feature);
    n->feature = copy;
    return BASIN_OK;
}

static int64_t find_no_number(const void *context, int64_t first, int64_t last) {
    const float *x = context;
    for (int64_t i = first; i < last; i++)
        if (!isfinite(x[i])) return i;
    return last;
}

/* Where the first feature that is NaN or infinite lies in [N, F], or -1. */
static int64_t first_gap(const basin_network *network) {
    int64_t count = network->feature ? network->nodes * network->features : 0;
    int64_t bad = basin_parallel_find(find_no_number, network->feature, count, 0);
    return bad == count ? -1 : bad;
}

static basin_status fail_gap(const basin_network *network, int64_t at, basin_error *error) {
    int64_t node = at / network->features, column = at % network->features;
    char text[BASIN_MAX_NODE];
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: feature %" PRId64 "%s%s of node %s is %s, expected a number (the option "
                      "missing, set to zero or mean, fills such gaps)",
                      network->path, column, network->column.count ? " " : "",
                      network->column.count ? network->column.text + network->column.at[column]
                                            : "",
                      basin_network_id(network, node, text),
                      isnan(network->feature[at]) ? "missing or NaN" : "infinite or too large");
}

/* By the schema's values, which are those of training where a model's schema was given. */
basin_status basin_network_fill_missing(basin_network *network, basin_missing missing,
                                        basin_error *error) {
    const basin_schema *schema = network->schema;
    bool known = schema && schema->features == network->features;
    int64_t gap = missing == BASIN_MISSING_KEEP ? -1 : first_gap(network);
    if (gap < 0) return BASIN_OK;
    if (missing == BASIN_MISSING_ERROR || missing == BASIN_MISSING_REFUSE)
        return fail_gap(network, gap, error);
    if (network->file) BASIN_TRY(own_features(network, error));
    basin_list filled = {0};
    BASIN_SCRATCH(float, fill, network->features, "what fills gaps", error);
    if (known) basin_schema_fill(fill, schema, missing);
    for (int64_t f = 0; f < network->features; f++) {
        if (!known && missing == BASIN_MISSING_MEAN) fill[f] = column_mean(network, f);
        int64_t gaps = fill_column(network, f, fill[f]);
        char text[200];
        if (network->column.count)
            snprintf(text, sizeof text, "%.100s (%" PRId64 ")",
                     network->column.text + network->column.at[f], gaps);
        else
            snprintf(text, sizeof text, "feature %" PRId64 " (%" PRId64 ")", f, gaps);
        if (gaps) basin_list_add(&filled, text);
    }
    basin_network_add_note(network, "gaps filled with %s, and how many: %s",
                           missing == BASIN_MISSING_MEAN ? "the mean of their column" : "zero",
                           filled.text);
    return BASIN_OK;
}

basin_status basin_network_set_features(basin_network *network, const basin_tensor *x,
                                        const basin_network_options *options, basin_error *error) {
    if (network->feature || network->file)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: has features already", network->path);
    if (x->shape.rank != 2 || x->shape.dim[0] != network->nodes)
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: features are %s, expected [%" PRId64 ", F]",
                          network->path, basin_shape_text(x->shape), network->nodes);
    BASIN_TRY(basin_network_alloc_features(network, x->shape.dim[1], options, error));
    basin_tensor to = basin_tensor_borrow(network->feature, BASIN_F32, x->shape);
    BASIN_TRY(basin_tensor_convert(&to, x, error));
    return basin_network_fill_missing(network, basin_network_options_or(options)->missing, error);
}

/* ---- labels and masks ---- */

/* The column of the greatest entry; -1 where all are zero or one is not a number. */
static int32_t one_hot(const basin_tensor *y, int64_t i) {
    int64_t classes = y->shape.dim[1];
    int32_t best = -1;
    double max = 0;
    for (int64_t c = 0; c < classes; c++) {
        double v = basin_tensor_at(y, i * classes + c);
        if (isnan(v)) return -1;
        if (v > max) max = v, best = (int32_t)c;
    }
    return best;
}

static basin_status read_label(int32_t *label, const basin_network *n, const basin_tensor *y,
                               int64_t i, basin_error *error) {
    double v = basin_tensor_at(y, i);
    char text[BASIN_MAX_NODE];
    if (isnan(v)) v = -1; /* a label that is not known */
    if (v != floor(v) || v < -1 || v > INT16_MAX)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s: the label of node %s is %g, expected a whole number from 0 on, or -1 "
            "for unknown",
            n->path, basin_network_id(n, i, text), v);
    *label = (int32_t)v;
    return BASIN_OK;
}

void basin_network_finish_labels(basin_network *network, const basin_network_options *options) {
    int64_t first =
        options->unlabelled_first < network->nodes ? options->unlabelled_first : network->nodes;
    for (int64_t i = 0; i < first; i++) network->label[i] = -1;
    int32_t seen = -1;
    for (int64_t i = 0; i < network->nodes; i++) {
        int32_t y = network->label[i];
        if (y >= 0 && seen >= 0 && y != seen) return;
        if (y >= 0) seen = y;
    }
    if (seen < 0)
        basin_network_add_note(network, "no node has a label");
    else
        basin_network_add_note(
            network, "all labels are %d: nothing can be learned from only one class", seen);
}

static basin_status copy_labels(basin_network *n, const int32_t *label, basin_error *error) {
    int32_t *copy;
    BASIN_TRY(BASIN_NEW_RAW(&copy, n->nodes, "the labels", error));
    memcpy(copy, label, (size_t)n->nodes * sizeof *copy);
    basin_network_release(n, n->label);
    n->label = copy;
    return BASIN_OK;
}

basin_status basin_network_forget_labels(basin_network *network,
                                         const basin_network_options *options, basin_error *error) {
    if (!network->label || options->unlabelled_first <= 0) return BASIN_OK;
    BASIN_TRY(copy_labels(network, network->label, error));
    basin_network_finish_labels(network, options);
    return BASIN_OK;
}

basin_status basin_network_set_label_tensor(basin_network *network, const basin_tensor *y,
                                            const basin_network_options *options,
                                            basin_error *error) {
    int rank = y->shape.rank;
    bool column = rank == 2 && (y->shape.dim[1] == 1 || y->shape.dim[0] == 1);
    int64_t count = basin_shape_count(y->shape);
    if (network->label || network->file)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: has labels already", network->path);
    if (column ? count != network->nodes
               : rank < 1 || rank > 2 || y->shape.dim[0] != network->nodes || count == 0)
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: labels are %s, expected [%" PRId64 "]",
                          network->path, basin_shape_text(y->shape), network->nodes);
    BASIN_TRY(BASIN_NEW_RAW(&network->label, network->nodes, "the labels", error));
    for (int64_t i = 0; i < network->nodes; i++) {
        if (rank == 2 && !column) {
            network->label[i] = one_hot(y, i);
            continue;
        }
        BASIN_TRY(read_label(&network->label[i], network, y, i, error));
    }
    basin_network_finish_labels(network, basin_network_options_or(options));
    return BASIN_OK;
}

basin_status basin_network_set_labels(basin_network *network, const int32_t *label,
                                      basin_error *error) {
    bool first = !network->label;
    int64_t classes = network->class_name.count ? network->class_name.count : INT16_MAX;
    for (int64_t i = 0; i < network->nodes; i++)
        if (label[i] < -1 || label[i] >= classes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: the label of node %" PRId64 " is %d, expected -1 to %" PRId64,
                              network->path, i, label[i], classes - 1);
    BASIN_TRY(copy_labels(network, label, error));
    if (first) basin_network_finish_labels(network, basin_network_options_or(NULL));
    return BASIN_OK;
}

basin_status basin_network_set_masks(basin_network *network, const char *part,
                                     const basin_tensor *mask, basin_error *error) {
    basin_shape shape = mask->shape;
    /* a row per node, or a row per split */
    bool across = shape.rank == 2 && shape.dim[1] != network->nodes;
    int64_t splits = shape.rank == 1 ? 1 : shape.dim[across ? 1 : 0];
    bool right = (shape.rank == 1 && shape.dim[0] == network->nodes) ||
                 (shape.rank == 2 && shape.dim[across ? 0 : 1] == network->nodes && splits > 0);
    if (!right || (network->splits && splits != network->splits))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: the %s mask is %s, expected [%" PRId64 "] or [splits, %" PRId64
                          "] as the other masks have it",
                          network->path, part, basin_shape_text(shape), network->nodes,
                          network->nodes);
    if (basin_tensor_first_bad(mask) >= 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the %s mask holds NaN", network->path, part);
    uint8_t **slot = !strcmp(part, "train") ? &network->train
                     : !strcmp(part, "val") ? &network->val
                                            : &network->test;
    free(*slot);
    BASIN_TRY(BASIN_NEW_RAW(slot, splits * network->nodes, "the masks", error));
    for (int64_t s = 0; s < splits; s++)
        for (int64_t i = 0; i < network->nodes; i++)
            (*slot)[s * network->nodes + i] =
                basin_tensor_at(mask, across ? i * splits + s : s * network->nodes + i) != 0;
    network->splits = splits;
    return BASIN_OK;
}

/* ---- names ---- */

/* An entry, or NULL where a mapped file that was not checked says nonsense. */
static const char *name_at(const basin_names *names, int64_t i) {
    int64_t at = names->at[i];
    return at >= 0 && at < names->at[names->count] ? names->text + at : NULL;
}

const char *basin_network_id(const basin_network *network, int64_t node,
                             char text[BASIN_MAX_NODE]) {
    const char *id = network->id.count ? name_at(&network->id, node) : NULL;
    if (id) return id;
    int64_t number = network->origin ? network->origin[node] : node;
    snprintf(text, BASIN_MAX_NODE, "%" PRId64, number);
    return text;
}

void basin_network_get_view(basin_network_view *view, const basin_network *network) {
    basin_network_view all = {.path = network->path,
                              .note = network->note,
                              .nodes = network->nodes,
                              .features = network->features,
                              .feature = network->feature,
                              .label = network->label,
                              .relations = network->relations,
                              .directed = network->directed,
                              .splits = network->splits};
    basin_info_fill(view, &all, sizeof all);
}

void basin_network_get_relation(basin_relation_view *view, const basin_network *network,
                                int relation) {
    const basin_relation *r = &network->relation[relation];
    basin_relation_view all = {0, r->name, r->edges, r->row, r->col};
    basin_info_fill(view, &all, sizeof all);
}

const char *basin_network_column(const basin_network *network, int64_t feature) {
    return feature < network->column.count ? name_at(&network->column, feature) : NULL;
}

int64_t basin_network_find(const basin_network *network, const char *id) {
    char *end;
    for (int64_t i = 0; i < network->id.count; i++) {
        const char *own = name_at(&network->id, i);
        if (own && !strcmp(own, id)) return i;
    }
    if (network->id.count || *id < '0' || *id > '9') return -1;
    int64_t node = strtoll(id, &end, 10);
    return *end || node >= network->nodes ? -1 : node;
}

int basin_network_relation(const basin_network *network, const char *name) {
    for (int r = 0; r < network->relations; r++)
        if (!strcmp(network->relation[r].name, name)) return r;
    return -1;
}

int basin_network_main_relation(const basin_network *network) {
    return network->relations == 1 ? 0 : basin_network_relation(network, "homo");
}

basin_status basin_names_make(basin_names *names, const char *const *name, int64_t count,
                              basin_error *error) {
    for (int64_t i = 0; i < count; i++) BASIN_TRY(basin_names_add(names, name[i], error));
    return BASIN_OK;
}

basin_status basin_network_set_classes(basin_network *network, const char *const *name,
                                       int64_t classes, basin_error *error) {
    int32_t max = basin_network_greatest_label(network);
    if (network->file || network->class_name.count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: has names of classes already",
                          network->path);
    if (max >= classes)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: a label is %d, and there are %lld names",
                          network->path, max, (long long)classes);
    return basin_names_make(&network->class_name, name, classes, error);
}

const char *basin_network_class(const basin_network *network, int32_t label,
                                char text[BASIN_MAX_NODE]) {
    if (label >= 0 && label < network->class_name.count)
        return name_at(&network->class_name, label);
    snprintf(text, BASIN_MAX_NODE, "%d", label);
    return text;
}

int64_t basin_network_max_edges(const basin_network *network) {
    int64_t edges = 0;
    for (int r = 0; r < network->relations; r++)
        edges = basin_int_max(edges, network->relation[r].edges);
    return edges;
}

int64_t basin_network_count_label(const basin_network *network, int32_t label) {
    if (!network->label) return label == -1 ? network->nodes : 0;
    int64_t count = 0;
    for (int64_t i = 0; i < network->nodes; i++) count += network->label[i] == label;
    return count;
}

int32_t basin_network_greatest_label(const basin_network *network) {
    int32_t max = -1;
    for (int64_t i = 0; network->label && i < network->nodes; i++)
        if (network->label[i] > max) max = network->label[i];
    return max;
}

/* ---- checks ---- */

typedef struct checked {
    const basin_relation *relation;
    int64_t keys; /* nodes that entries may name */
    bool sorted;  /* entries of a row ascend; equal ones are edges that were kept twice */
} checked;

static bool is_bad_row(const basin_relation *r, int64_t i) {
    return r->row[i + 1] < r->row[i] || r->row[i + 1] > r->edges || r->row[i] < 0;
}

static bool is_bad_entry(const checked *c, int64_t e) {
    return c->relation->col[e] < 0 || c->relation->col[e] >= c->keys;
}

static int64_t find_bad_node(const void *context, int64_t first, int64_t last) {
    const checked *c = context;
    const basin_relation *r = c->relation;
    for (int64_t i = first; i < last; i++) {
        if (is_bad_row(r, i)) return i;
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++)
            if (is_bad_entry(c, e) || (c->sorted && e > r->row[i] && r->col[e - 1] > r->col[e]))
                return i;
    }
    return last;
}

static basin_status check_facts(const basin_network *n, const basin_relation *r,
                                basin_error *error) {
    int64_t count = r->fact ? r->edges * n->facts.count : 0;
    int64_t bad = basin_parallel_find(find_no_number, r->fact, count, 0);
    if (bad == count) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: edge %" PRId64 " of '%s' carries %g for %s, expected a number", n->path,
                      bad / n->facts.count, r->name, (double)r->fact[bad],
                      n->facts.name.text + n->facts.name.at[bad % n->facts.count]);
}

basin_status basin_network_check_relation(const basin_network *n, const basin_relation *r,
                                          int64_t keys, bool sorted, basin_error *error) {
    checked c = {r, keys, sorted};
    int64_t bad = basin_parallel_find(find_bad_node, &c, n->nodes, 4096);
    if (bad == n->nodes) return check_facts(n, r, error);
    for (int64_t i = 0; i < n->nodes; i++)
        if (is_bad_row(r, i))
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: row %" PRId64 " of '%s' runs from %" PRId64 " to %" PRId64
                              " of %" PRId64 " edges",
                              n->path, i, r->name, r->row[i], r->row[i + 1], r->edges);
    for (int64_t e = 0; e < r->edges; e++)
        if (is_bad_entry(&c, e))
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: edge %" PRId64
                              " of '%s' leads to node %d, expected 0 to %" PRId64,
                              n->path, e, r->name, r->col[e], keys - 1);
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: the neighbours of node %" PRId64 " in '%s' are not in ascending order",
                      n->path, bad, r->name);
}

static basin_status check_names(const basin_network *n, const basin_names *names, const char *what,
                                basin_error *error) {
    for (int64_t i = 0; i < names->count; i++) {
        int64_t begin = names->at[i], end = names->at[i + 1];
        if (begin < 0 || end <= begin || end > names->at[names->count] || names->text[end - 1] != 0)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: %s %" PRId64 " runs from byte %" PRId64 " to %" PRId64, n->path,
                              what, i, begin, end);
    }
    return BASIN_OK;
}

static basin_status check_labels(const basin_network *n, basin_error *error) {
    for (int64_t i = 0; n->label && i < n->nodes; i++)
        if (n->label[i] < -1 || n->label[i] > INT16_MAX)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: the label of node %" PRId64 " is %d, expected -1, 0, 1, ...",
                              n->path, i, n->label[i]);
    return BASIN_OK;
}

static basin_status check_masks(const basin_network *n, basin_error *error) {
    static const char *const name[] = {"train", "val", "test"};
    const uint8_t *mask[] = {n->train, n->val, n->test};
    for (int m = 0; m < 3; m++)
        for (int64_t i = 0; mask[m] && i < n->splits * n->nodes; i++)
            if (mask[m][i] > 1)
                return basin_fail(error, BASIN_BAD_FILE,
                                  "%s: node %" PRId64 " of split %" PRId64
                                  " has %d in the %s mask, expected 0 or 1",
                                  n->path, i % n->nodes, i / n->nodes, mask[m][i], name[m]);
    return BASIN_OK;
}

basin_status basin_network_check_nodes(const basin_network *network, basin_error *error) {
    BASIN_TRY(check_names(network, &network->id, "id", error));
    BASIN_TRY(check_names(network, &network->column, "column name", error));
    BASIN_TRY(check_names(network, &network->class_name, "class name", error));
    BASIN_TRY(check_labels(network, error));
    return check_masks(network, error);
}

basin_status basin_network_check_tables(const basin_network *network, basin_error *error) {
    for (int r = 0; r < network->relations; r++)
        BASIN_TRY(basin_network_check_relation(network, &network->relation[r], network->nodes, true,
                                               error));
    return basin_network_check_nodes(network, error);
}

basin_status basin_network_check(const basin_network *network, basin_error *error) {
    basin_status status = basin_network_check_tables(network, error);
    int64_t gap = status ? -1 : first_gap(network);
    return gap < 0 ? status : fail_gap(network, gap, error);
}
