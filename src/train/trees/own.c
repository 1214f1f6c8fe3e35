/* Reads PREFIXbase [1], PREFIXroot [trees + 1], PREFIXlink [nodes, 2] (feature or -1, first child)
 * and PREFIXnumber [nodes, 2] (threshold, value): rows with x <= threshold go to the first child,
 * others to the node behind it. XGBoost sends x < threshold to the left. */
#include "train/trees/trees.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/try.h"

typedef struct forest {
    int64_t features, trees, nodes;
    double base;
    const int64_t *root;
    const int32_t *link;
    const float *number;
} forest;

static const void *find(int64_t *count, const basin_bundle *bundle, const char *prefix,
                        const char *name, basin_dtype dtype) {
    char key[64];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    const basin_tensor *t = basin_bundle_find(bundle, key);
    *count = t ? basin_shape_count(t->shape) : 0;
    return t && t->dtype == dtype && basin_tensor_first_bad(t) < 0 ? t->data : NULL;
}

/* Children lie behind their parent and inside their tree, features inside the table. */
static bool is_sound(const forest *f) {
    for (int64_t t = 0; t < f->trees; t++) {
        int64_t first = f->root[t], count = f->root[t + 1] - first;
        if (first < 0 || count < 1 || f->root[t + 1] > f->nodes) return false;
        for (int64_t i = 0; i < count; i++) {
            int32_t feature = f->link[2 * (first + i)], child = f->link[2 * (first + i) + 1];
            if (feature < -1 || feature >= f->features) return false;
            if (feature >= 0 && (child <= i || child >= count - 1)) return false;
        }
    }
    return f->features > 0;
}

static bool read_forest(forest *f, const basin_bundle *bundle, const char *prefix) {
    int64_t one, bases, roots, links, numbers;
    const int64_t *features = find(&one, bundle, prefix, "features", BASIN_I64);
    const double *base = find(&bases, bundle, prefix, "base", BASIN_F64);
    f->root = find(&roots, bundle, prefix, "root", BASIN_I64);
    f->link = find(&links, bundle, prefix, "link", BASIN_I32);
    f->number = find(&numbers, bundle, prefix, "number", BASIN_F32);
    if (!features || !base || !f->root || !f->link || !f->number) return false;
    if (one != 1 || bases != 1 || roots < 1 || links % 2 || links != numbers) return false;
    f->features = *features, f->base = *base, f->trees = roots - 1, f->nodes = links / 2;
    return is_sound(f);
}

/* ---- XGBoost's JSON ---- */

enum { LEFT, RIGHT, PARENT, FEATURE, NUMBER, ROWS, ZERO, DEPTH, ARRAYS };
enum { MOST_DEPTH = 64 }; /* XGBoost walks trees recursively; those of such files have six levels */

/* Each leaf counts as one training row: how many there were is not known. Whether the tree is not
 * too deep. */
static bool fill_nodes(double *array[ARRAYS], const forest *f, int64_t t) {
    int64_t first = f->root[t], count = f->root[t + 1] - first;
    bool shallow = true;
    array[PARENT][0] = INT32_MAX, array[DEPTH][0] = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t feature = f->link[2 * (first + i)], child = f->link[2 * (first + i) + 1];
        const float *number = f->number + 2 * (first + i);
        bool leaf = feature < 0;
        array[LEFT][i] = leaf ? -1 : child;
        array[RIGHT][i] = leaf ? -1 : child + 1;
        for (int k = 0; k < 2 && !leaf; k++) {
            array[PARENT][child + k] = (double)i;
            array[DEPTH][child + k] = array[DEPTH][i] + 1;
        }
        array[FEATURE][i] = leaf ? 0 : feature;
        array[NUMBER][i] = (double)(leaf ? number[1] : nextafterf(number[0], INFINITY));
        array[ROWS][i] = leaf;
        shallow = shallow && array[DEPTH][i] <= MOST_DEPTH;
    }
    for (int64_t i = count - 1; i > 0; i--)
        array[ROWS][(int64_t)array[PARENT][i]] += array[ROWS][i];
    return shallow;
}

/* XGBoost tells integers and reals apart: 1 and 1E0. */
static void write_array(FILE *file, const char *key, const double *value, int64_t count,
                        bool real) {
    char text[BASIN_NUMBER_TEXT];
    fprintf(file, "\"%s\":[", key);
    for (int64_t i = 0; i < count; i++) {
        basin_number_print(text, value[i]);
        fprintf(file, "%s%s%s", i ? "," : "", text, real && !strpbrk(text, ".e") ? "E0" : "");
    }
    fputs("],", file);
}

static bool write_tree(FILE *file, double *array[ARRAYS], const forest *f, int64_t t) {
    static const struct {
        const char *key;
        int array;
        bool real;
    } entries[] = {
        {"left_children", LEFT, false}, {"right_children", RIGHT, false},
        {"parents", PARENT, false},     {"split_indices", FEATURE, false},
        {"split_type", ZERO, false},    {"default_left", ZERO, false},
        {"base_weights", ZERO, true},   {"loss_changes", ZERO, true},
        {"sum_hessian", ROWS, true},    {"split_conditions", NUMBER, true},
    };
    int64_t count = f->root[t + 1] - f->root[t];
    if (!fill_nodes(array, f, t)) return false;
    fputs(t ? ",{" : "{", file);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        write_array(file, entries[i].key, array[entries[i].array], count, entries[i].real);
    fprintf(file,
            "\"categories\":[],\"categories_nodes\":[],\"categories_segments\":[],"
            "\"categories_sizes\":[],\"id\":%lld,\"tree_param\":{\"num_deleted\":\"0\","
            "\"num_feature\":\"%lld\",\"num_nodes\":\"%lld\",\"size_leaf_vector\":\"0\"}}",
            (long long)t, (long long)f->features, (long long)count);
    return true;
}

/* The trees are an array inside a model; what stands around them is text. */
static bool write_forest(FILE *file, double *array[ARRAYS], const forest *f) {
    char base[40]; /* XGBoost reads at most 9 digits here */
    basin_real_print(base, sizeof base, 9, 1 / (1 + exp(-f->base)));
    fprintf(file,
            "{\"version\":[1,7,4],\"learner\":{\"attributes\":{},\"objective\":{\"name\":"
            "\"binary:logistic\",\"reg_loss_param\":{\"scale_pos_weight\":\"1\"}},"
            "\"learner_model_param\":{\"base_score\":\"%s\",\"num_class\":\"0\","
            "\"num_feature\":\"%lld\",\"num_target\":\"1\"},\"gradient_booster\":{\"name\":"
            "\"gbtree\",\"model\":{\"gbtree_model_param\":{\"num_parallel_tree\":\"1\","
            "\"num_trees\":\"%lld\",\"size_leaf_vector\":\"0\"},\"tree_info\":[",
            base, (long long)f->features, (long long)f->trees);
    for (int64_t t = 0; t < f->trees; t++) fputs(t ? ",0" : "0", file);
    fputs("],\"trees\":[", file);
    for (int64_t t = 0; t < f->trees; t++)
        if (!write_tree(file, array, f, t)) return false;
    fputs("]}}}}", file);
    return true;
}

basin_status basin_trees_own_convert(char **text, const basin_bundle *bundle, const char *prefix,
                                     basin_error *error) {
    forest f;
    double *array[ARRAYS];
    size_t bytes;
    int64_t roots;
    BASIN_FREE_AT_EXIT double *all = NULL;
    *text = NULL;
    if (!find(&roots, bundle, prefix, "root", BASIN_I64)) return BASIN_OK;
    if (!read_forest(&f, bundle, prefix))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s* are no trees", basin_bundle_path(bundle),
                          prefix);
    BASIN_TRY(BASIN_NEW(&all, ARRAYS * f.nodes + 1, "boosted trees", error));
    for (int i = 0; i < ARRAYS; i++) array[i] = all + i * f.nodes;
    FILE *file = open_memstream(text, &bytes);
    if (!file) return basin_fail_memory(error, "boosted trees");
    bool shallow = write_forest(file, array, &f), failed = ferror(file) != 0;
    if (fclose(file) || failed) return basin_fail_memory(error, "boosted trees");
    if (shallow) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s* has a tree of more than %d levels",
                      basin_bundle_path(bundle), prefix, MOST_DEPTH);
}
