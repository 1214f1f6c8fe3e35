/* A model of the zoo with weights and tokens: drawn, from a file or of a golden case; and whether
 * its published update goes down its stated energy. */
#ifndef BASIN_VERIFY_SPECIMEN_H
#define BASIN_VERIFY_SPECIMEN_H

#include "basin/zoo.h"
#include "program/verify/verify.h"

enum { BASIN_SPECIMEN_VALUES = 32, BASIN_SPECIMEN_STEPS = 64, BASIN_SPECIMEN_DRAWS = 100 };

typedef struct basin_specimen {
    const basin_zoo_model *model;
    basin_graph *graph;
    basin_case *c;              /* parameters and inputs of this golden case, or NULL: constants */
    const basin_bundle *bundle; /* "in.NAME" and settings, or NULL: drawn by the seed */
    const char *prefix;         /* of names in the file */
    uint64_t seed, drawn;
    basin_zoo_value value[BASIN_SPECIMEN_VALUES]; /* those that are set before are not read */
    int values;
    char word[BASIN_CASE_WORD]; /* of a choice */
    const basin_zoo *zoo;
    basin_energy exact;  /* whose force is the gradient of its values */
    basin_expr start, x; /* as given, and where the descent begins */
} basin_specimen;

/* A row of the zoo by name; NULL where there is none. */
const basin_zoo_model *basin_specimen_model(const char *name);
/* Reads or draws all values and builds the model; errors are in the graph. */
void basin_specimen_build(basin_specimen *s);
void basin_specimen_set(basin_specimen *s, basin_zoo_value value);
/* The same model with another number for one or two tensors or settings. */
const basin_zoo *basin_specimen_with(const basin_specimen *s, const char *name, const char *second,
                                     double number);

/* The skew part of a Jacobian, |J - J'| / 2 |J|: 0 of a gradient, 1 / sqrt 2 of random numbers, at
 * most 1; and its standard error, 0 where all of J was computed. */
typedef struct basin_specimen_skew {
    double share, error;
} basin_specimen_skew;

/* One run of a specimen. */
typedef struct basin_specimen_run {
    int steps;
    double energy[BASIN_SPECIMEN_STEPS + 1];
    int64_t rises;       /* steps that raised the energy, */
    int64_t small_rises; /* and of twice as many, a thousand times smaller, from start and end */
    double cosine;       /* of the update and the energy's gradient by the activations, downwards */
    basin_specimen_skew force, step; /* of the update in tiny steps, and in one as published */
} basin_specimen_run;

/* Runs a model on numbers of the seed or of a file, steps `scale` times as large as published. */
basin_status basin_specimen_descend(basin_specimen_run *run, const basin_zoo_model *model,
                                    const basin_bundle *bundle, uint64_t seed, int steps,
                                    double scale, basin_error *error);

/* Of `steps` published steps, and twice as many a thousand times smaller: which rose; means over
 * draws, and intervals of 95 %: of the percentage of draws in which a small step rises, and of the
 * skew part. */
typedef struct basin_specimen_verdict {
    int64_t draws, rising_draws, steps, rises, small_rises;
    double rising_low, rising_high;
    double min_cosine, mean_cosine;
    double skew, skew_low, skew_high, step_skew;
} basin_specimen_verdict;
basin_status basin_specimen_judge(basin_specimen_verdict *verdict, const basin_zoo_model *model,
                                  const basin_bundle *bundle, int seeds, uint64_t seed, int steps,
                                  basin_error *error);
/* "always", "for small steps" or "not at all". */
const char *basin_specimen_answer(const basin_specimen_verdict *verdict);
/* Whether its force is a gradient at all, if perhaps of another energy: "yes" or "no". */
const char *basin_specimen_gradient(const basin_specimen_verdict *verdict);

#endif
