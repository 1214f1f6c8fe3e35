/* Fuzz target: the conversion from matio's structures, with anything in them; matio itself, which
 * reads the file, is not ours. Counts never promise more than the arrays hold: that much matio
 * guarantees, since it allocates them by these counts. */
#include "data/network/mat.h"
#include "fuzz/fuzz.h"
#include "fuzz/network.h"

typedef struct input {
    const uint8_t *data;
    size_t size, at;
} input;

static unsigned take(input *in) { return in->at < in->size ? in->data[in->at++] : 0; }

static mat_uint32_t *take_numbers(input *in, mat_uint32_t count) {
    mat_uint32_t *a = malloc((count ? count : 1) * sizeof *a);
    for (mat_uint32_t i = 0; a && i < count; i++)
        a[i] = take(in) == 255 ? UINT32_MAX : take(in) % 24;
    return a;
}

static double *take_values(input *in, size_t count) {
    static const double special[] = {0, 1, NAN, INFINITY, -1, 0.5, 1e300, -0.0};
    double *a = malloc((count ? count : 1) * sizeof *a);
    for (size_t i = 0; a && i < count; i++) a[i] = special[take(in) % 8];
    return a;
}

static void convert(basin_network *n, input *in) {
    static const char *const names[] = {"homo", "net_upu", "features", "label", "other", "net_"};
    static const enum matio_types types[] = {MAT_T_DOUBLE, MAT_T_UINT8, MAT_T_SINGLE, MAT_T_UINT32};
    char name[20];
    snprintf(name, sizeof name, "%s", names[take(in) % 6]);
    unsigned kind = take(in);
    size_t dims[] = {take(in) % 12, take(in) % 12, 1};
    mat_sparse_t s = {.nir = take(in) % 24, .njc = take(in) % 14, .ndata = take(in) % 24};
    size_t count = dims[0] * dims[1];
    s.ir = take_numbers(in, s.nir);
    s.jc = take_numbers(in, s.njc);
    s.data = take_values(in, s.ndata);
    double *dense = take_values(in, count);
    matvar_t v = {.name = name,
                  .rank = kind & 1 ? 2 : 1 + (int)(kind >> 4) % 3,
                  .dims = dims,
                  .data_type = types[kind >> 1 & 3],
                  .isComplex = kind >> 7 & 1,
                  .class_type = kind & 8 ? MAT_C_SPARSE : MAT_C_DOUBLE,
                  .nbytes = count * 8};
    if (v.class_type == MAT_C_SPARSE)
        v.data = &s;
    else
        v.data = dense;
    basin_error error = {0};
    basin_network_options o = {.missing = BASIN_MISSING_ZERO, .directed = kind >> 6 & 1};
    if (s.ir && s.jc && s.data && dense) {
        basin_status status = basin_mat_convert(n, &v, &o, &error);
        if (status != error.status || (status && !*error.text)) abort();
    }
    free(s.ir);
    free(s.jc);
    free(s.data);
    free(dense);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size, 0};
    basin_network *n;
    if (basin_network_new(&n, "fuzz", 1 + take(&in) % 11, NULL) != BASIN_OK) return 0;
    bool whole = true;
    while (in.at < in.size && whole) {
        int had = n->relations;
        bool features = n->feature != NULL, labels = n->label != NULL;
        convert(n, &in);
        /* a reader stops at the first error and throws the network away; what is whole may be used
         */
        whole =
            n->relations == had && features == (n->feature != NULL) && labels == (n->label != NULL);
    }
    basin_network_free(n);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    /* nodes - 1; name, kind, rows, columns, entries, starts, values; rows, starts (each after a
     * byte that is not 255), values, dense */
    static const uint8_t edges[] = {2, 0, 9, 3, 3, 2, 4, 2, 0, 0, 0,
                                    1, 0, 0, 0, 1, 0, 2, 0, 2, 1, 1};
    static const uint8_t dense[] = {2, 2, 1, 3, 2, 0, 0, 0, 1, 1, 1, 1,
                                    1, 0, 3, 1, 1, 3, 0, 0, 0, 0, 1, 0};
    if (index > 1) return 0;
    memcpy(out, index ? dense : edges, index ? sizeof dense : sizeof edges);
    return index ? sizeof dense : sizeof edges;
}
