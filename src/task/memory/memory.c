/* Associative memories: separation functions, keys, and their files. A file is safetensors with
 * the patterns [M, D] and the settings as metadata; keys are made when it is opened. */
#include "task/memory/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "basin/io.h"
#include "basin/version.h"
#include "io/json_writer.h"
#include "task/given.h"

static const char *const functions[] = {"classical", "power",    "softmax", "entmax15",
                                        "sparsemax", "normmax2", "lsr",     NULL};

const char *basin_memory_function(int n) {
    return n >= 0 && n < BASIN_SEPARATIONS ? functions[n] : NULL;
}

basin_status basin_separation_find(basin_separation *kind, const char *name, basin_error *error) {
    for (int i = 0; name && i < BASIN_SEPARATIONS; i++)
        if (!strcmp(name, functions[i])) return *kind = (basin_separation)i, BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the separation function '%s'; wanted classical, power, softmax, entmax15, "
                      "sparsemax, normmax2 or lsr",
                      name ? name : "");
}

basin_status basin_separation_power(double *power, basin_separation kind, double given,
                                    basin_error *error) {
    bool own = kind == BASIN_SEPARATION_POWER;
    *power = kind == BASIN_SEPARATION_CLASSICAL ? 2 : own && given == 0 ? 3 : given;
    if (own && !(*power > 1 && *power <= 100))
        return basin_fail(error, BASIN_BAD_VALUE, "the power %g; wanted above 1, at most 100",
                          *power);
    if (!own && given != 0 && !(kind == BASIN_SEPARATION_CLASSICAL && given == 2))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a power of %g beside the function %s; only power has one", given,
                          functions[kind]);
    return BASIN_OK;
}

int64_t basin_memory_dim(const basin_memory *memory) { return memory->patterns.shape.dim[1]; }
int64_t basin_memory_count(const basin_memory *memory) { return memory->patterns.shape.dim[0]; }
basin_memory_spec basin_memory_get_spec(const basin_memory *memory) { return memory->spec; }
const basin_tensor *basin_memory_patterns(const basin_memory *memory) { return &memory->patterns; }

/* ---- keys ---- */

double basin_memory_encode(float *key, const basin_memory *memory, const float *pattern,
                           const unsigned char *known) {
    int64_t dim = basin_memory_dim(memory);
    float middle = (memory->low + memory->high) / 2;
    double squares = 0;
    for (int64_t i = 0; i < dim; i++) {
        float sign = pattern[i] > middle ? 1 : -1;
        key[i] = memory->spec.binary ? sign : pattern[i] - memory->mean[i];
        if (known && !known[i]) key[i] = 0;
        squares += (double)key[i] * key[i];
    }
    double length = memory->spec.binary ? sqrt((double)dim) : sqrt(squares);
    for (int64_t i = 0; i < dim && length > 0; i++) key[i] = (float)(key[i] / length);
    return length;
}

static void find_range(basin_memory *m) {
    const float *p = m->patterns.data;
    int64_t count = basin_shape_count(m->patterns.shape), dim = basin_memory_dim(m);
    m->low = m->high = p[0];
    for (int64_t i = 0; i < count; i++) {
        m->low = fminf(m->low, p[i]);
        m->high = fmaxf(m->high, p[i]);
    }
    for (int64_t k = 0; k < dim; k++) {
        double sum = 0;
        for (int64_t i = k; i < count; i += dim) sum += p[i];
        m->mean[k] = (float)(sum / (double)basin_memory_count(m));
    }
}

static basin_status make_keys(basin_memory *m, basin_error *error) {
    int64_t count = basin_memory_count(m), dim = basin_memory_dim(m);
    const float *p = m->patterns.data;
    basin_status status = basin_tensor_new(&m->keys, BASIN_F32, m->patterns.shape, error);
    m->mean = calloc((size_t)dim, sizeof *m->mean);
    m->length = calloc((size_t)count, sizeof *m->length);
    if (status) return status;
    if (!m->mean || !m->length)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the keys of a memory");
    find_range(m);
    float *key = m->keys.data;
    for (int64_t i = 0; i < count; i++) {
        m->length[i] = (float)basin_memory_encode(key + i * dim, m, p + i * dim, NULL);
        if (m->length[i] == 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "pattern %lld is the mean of all patterns and has no direction of "
                              "its own",
                              (long long)i);
    }
    return BASIN_OK;
}

/* ---- making one ---- */

static basin_status check_spec(basin_memory *m, const basin_tensor *patterns, basin_error *error) {
    char text[BASIN_SHAPE_TEXT];
    basin_memory_spec *s = &m->spec;
    if (!s->function) s->function = "softmax";
    basin_status status = basin_separation_find(&m->kind, s->function, error);
    if (!status) status = basin_separation_power(&s->power, m->kind, s->power, error);
    if (status) return status;
    s->function = functions[m->kind];
    bool has_beta = m->kind > BASIN_SEPARATION_POWER;
    if (!(s->beta >= 0 && s->beta <= 1e6) || (s->beta > 0 && !has_beta))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a beta of %g beside the function %s; wanted 0 to 1e6, and none beside "
                          "classical and power",
                          s->beta, s->function);
    if (has_beta && s->beta == 0) s->beta = m->kind == BASIN_SEPARATION_LSR ? 2 : 50;
    if (patterns->shape.rank != 2 || basin_shape_count(patterns->shape) < 1)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "patterns %s; wanted [M, D], at least one of at least one number",
                          basin_shape_print(text, patterns->shape));
    int64_t pixels = s->height * s->width * s->channels;
    if (s->channels && (s->height < 1 || s->width < 1 || pixels != patterns->shape.dim[1]))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "patterns %s that are pictures of %lld x %lld x %d",
                          basin_shape_print(text, patterns->shape), (long long)s->height,
                          (long long)s->width, s->channels);
    return BASIN_OK;
}

static basin_status take_patterns(basin_memory *m, const basin_tensor *patterns,
                                  basin_error *error) {
    int64_t bad = basin_tensor_first_bad(patterns);
    if (bad >= 0)
        return basin_fail(
            error, BASIN_BAD_VALUE, "pattern %lld has a number that is not finite, its %lldth",
            (long long)(bad / patterns->shape.dim[1]), (long long)(bad % patterns->shape.dim[1]));
    basin_status status = basin_tensor_new(&m->patterns, BASIN_F32, patterns->shape, error);
    if (!status) status = basin_tensor_convert(&m->patterns, patterns, error);
    return status ? status : make_keys(m, error);
}

basin_status basin_memory_new(basin_memory **memory, const basin_memory_spec *spec,
                              const basin_tensor *patterns, basin_error *error) {
    *memory = NULL;
    basin_memory *m = calloc(1, sizeof *m);
    if (!m) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a memory");
    basin_status status =
        basin_given_take(&m->spec, sizeof m->spec, spec, "basin_memory_spec", error);
    if (!status) status = check_spec(m, patterns, error);
    if (!status) status = take_patterns(m, patterns, error);
    if (status)
        basin_memory_close(m);
    else
        *memory = m;
    return status;
}

void basin_memory_close(basin_memory *memory) {
    if (!memory) return;
    basin_tensor_free(&memory->patterns);
    basin_tensor_free(&memory->keys);
    free(memory->mean);
    free(memory->length);
    free(memory);
}

/* ---- files ---- */

static const char format[] = "basin memory";

static basin_status add_settings(basin_bundle *out, const basin_memory *m, basin_error *error) {
    const basin_memory_spec *s = &m->spec;
    const struct {
        const char *key, *text;
        double number;
    } all[] = {{"format", format, 0},
               {"version", basin_version(), 0},
               {"function", s->function, 0},
               {"power", NULL, m->kind == BASIN_SEPARATION_POWER ? s->power : 0},
               {"beta", NULL, s->beta},
               {"binary", NULL, s->binary},
               {"height", NULL, (double)s->height},
               {"width", NULL, (double)s->width},
               {"channels", NULL, s->channels}};
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++) {
        char number[BASIN_NUMBER_TEXT];
        basin_number_print(number, all[i].number);
        status = basin_bundle_meta_set(out, all[i].key, all[i].text ? all[i].text : number, error);
    }
    return status;
}

basin_status basin_memory_write(const char *path, const basin_memory *memory, basin_error *error) {
    basin_bundle *out = NULL;
    basin_tensor patterns =
        basin_tensor_borrow(memory->patterns.data, BASIN_F32, memory->patterns.shape);
    basin_status status = basin_bundle_new(&out, error);
    if (!status) status = basin_bundle_add(out, "patterns", &patterns, error);
    if (!status) status = add_settings(out, memory, error);
    if (!status) status = basin_safetensors_write(path, out, error);
    basin_bundle_free(out);
    return status;
}

static basin_status read_number(double *number, const basin_bundle *in, const char *key,
                                basin_error *error) {
    const char *text = basin_bundle_meta(in, key);
    char *end = NULL;
    *number = text ? basin_real_read(text, &end) : 0;
    if (text && end != text && !*end && isfinite(*number) && *number >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the setting %s is '%s'; wanted a number",
                      basin_bundle_path(in), key, text ? text : "");
}

static basin_status read_spec(basin_memory_spec *spec, const basin_bundle *in, basin_error *error) {
    static const char *const key[] = {"power", "beta", "binary", "height", "width", "channels"};
    double number[6] = {0};
    const char *kind = basin_bundle_meta(in, "format");
    if (!kind || strcmp(kind, format) != 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the format '%s'; wanted a '%s'",
                          basin_bundle_path(in), kind ? kind : "", format);
    for (int i = 0; i < 6; i++) {
        basin_status status = read_number(&number[i], in, key[i], error);
        if (status) return status;
        if (i >= 3 && number[i] > 1e9)
            return basin_fail(error, BASIN_BAD_FILE, "%s: the setting %s is %g; wanted at most 1e9",
                              basin_bundle_path(in), key[i], number[i]);
    }
    *spec = (basin_memory_spec){.size = sizeof *spec,
                                .function = basin_bundle_meta(in, "function"),
                                .power = number[0],
                                .beta = number[1],
                                .binary = number[2] != 0,
                                .height = (int64_t)number[3],
                                .width = (int64_t)number[4],
                                .channels = (int)number[5]};
    return BASIN_OK;
}

basin_status basin_memory_open(basin_memory **memory, const char *path, basin_error *error) {
    basin_bundle *in = NULL;
    const basin_tensor *patterns = NULL;
    basin_memory_spec spec;
    basin_error found = {0};
    *memory = NULL;
    basin_status status = basin_bundle_read(&in, path, error);
    if (!status) status = read_spec(&spec, in, error);
    if (!status) status = basin_bundle_get(&patterns, in, "patterns", error);
    if (!status) {
        status = basin_memory_new(memory, &spec, patterns, &found);
        if (status) basin_fail(error, status, "%.200s: %.300s", path, found.text);
    }
    basin_bundle_free(in);
    return status;
}
