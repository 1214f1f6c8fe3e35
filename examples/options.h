/* Options of the long examples: pairs of a name and a value behind the operands. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdio.h>
#include <string.h>

#include "must.h"

static char **options;

static void quit(const char *where, const char *what) {
    fprintf(stderr, "%s: %s\n", where, what);
    exit(1);
}

/* The value of an option, whose name is erased. */
static const char *text(const char *name, const char *fallback) {
    for (char **o = options; *o && o[1]; o += 2)
        if (!strcmp(*o, name)) return **o = '\0', o[1];
    return fallback;
}

static double number(const char *name, const char *value) {
    char *end, why[160];
    double found = strtod(value, &end);
    if (end != value && !*end && found == found) return found;
    snprintf(why, sizeof why, "expected a number, found '%.80s'", value);
    quit(name, why);
    return 0;
}

static double real(const char *name, double fallback) {
    const char *value = text(name, NULL);
    return value ? number(name, value) : fallback;
}

static int64_t whole(const char *name, const char *value) {
    double found = number(name, value);
    if (found != (double)(int64_t)found) quit(name, "expected a whole number");
    return (int64_t)found;
}

static int64_t integer(const char *name, int64_t fallback) {
    const char *value = text(name, NULL);
    return value ? whole(name, value) : fallback;
}

/* What computes: --backend, --threads and --dtype f32 or bf16. */
static basin_engine open_engine(void) {
    basin_compute compute = {.backend = text("--backend", "cpu"),
                             .threads = (int)integer("--threads", 0)};
    const char *dtype = text("--dtype", "f32");
    basin_engine engine;
    if (!strcmp(dtype, "bf16"))
        compute.storage = BASIN_BF16;
    else if (strcmp(dtype, "f32") != 0)
        quit("--dtype", "expected f32 or bf16");
    must(basin_engine_open(&engine, &compute, &error));
    return engine;
}

/* Ends the program if an option was not read. */
static void check_options(void) {
    for (char **o = options; *o; o += o[1] ? 2 : 1)
        if (**o) quit(*o, "unknown option, or one without a value");
}

#endif
