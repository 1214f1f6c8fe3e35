/* The zoo: each published model with weights and tokens, drawn, from a file or as a golden case;
 * its stated energy and its published update; and whether the one goes down the other. */
#ifndef BASIN_VERIFY_SPECIMEN_H
#define BASIN_VERIFY_SPECIMEN_H

#include "basin/zoo.h"
#include "program/verify/verify.h"

typedef struct basin_specimen basin_specimen;

typedef struct basin_species {
    const char *name, *reference; /* "hopfield", "Ramsauer et al. 2020" */
    void (*build)(basin_specimen *s);
    int variant; /* of the builder */
} basin_species;

extern const basin_species basin_species_all[]; /* ends with a NULL name */
/* NULL where there is none of that name. */
const basin_species *basin_species_find(const char *name);

/* A model under construction: what builders fill. */
struct basin_specimen {
    basin_graph *graph;
    basin_case *c;              /* parameters and inputs of this golden case, or NULL: constants */
    const basin_bundle *bundle; /* "in.NAME" and settings, or NULL: drawn by the seed */
    uint64_t seed, drawn;
    int variant; /* of the species */
    union {
        basin_zoo_dense dense;
        basin_zoo_hopfield hopfield;
        basin_zoo_features features;
        basin_zoo_lsr lsr;
        basin_zoo_graph graph;
        basin_zoo_plastic plastic;
        basin_zoo_layers layers;
        basin_zoo_nrgpt nrgpt;
        basin_zoo_hyperset hyperset;
        basin_zoo_akorn akorn;
        basin_zoo_ebt ebt;
        struct {
            basin_expr y, d;
            double lambda;
        } crate;
        struct {
            basin_block block;
            basin_block_bound bound;
        } et;
    } m;
    basin_zoo_hyperset exact; /* where the published force is not the gradient of the values */
    basin_pattern pattern;
    basin_energy energy;
    const basin_zoo_hyperset *by_x; /* whose energy has the true gradient; NULL: `energy` */
    basin_substep turn[2];
    int turns;
    double alpha;
    basin_expr start, x; /* as given, and where the descent begins */
};

enum { BASIN_SPECIMEN_STEPS = 64 };

/* One run of a specimen. */
typedef struct basin_specimen_run {
    int steps;
    double energy[BASIN_SPECIMEN_STEPS + 1];
    int64_t rises;       /* steps that raised the energy, */
    int64_t small_rises; /* and of twice as many, a thousand times smaller, from start and end */
    double cosine;       /* of the update and the energy's gradient by the activations, downwards */
} basin_specimen_run;

/* Runs a species on numbers of the seed or of a file, steps `scale` times as large as published. */
basin_status basin_specimen_descend(basin_specimen_run *run, const basin_species *species,
                                    const basin_bundle *bundle, uint64_t seed, int steps,
                                    double scale, basin_error *error);

/* Of `steps` published steps, and twice as many a thousand times smaller: which rose. */
typedef struct basin_specimen_verdict {
    int64_t steps, rises, small_rises;
    double least_cosine, mean_cosine;
} basin_specimen_verdict;
basin_status basin_specimen_judge(basin_specimen_verdict *verdict, const basin_species *species,
                                  const basin_bundle *bundle, int seeds, uint64_t seed, int steps,
                                  basin_error *error);
/* "always", "for small steps" or "not at all". */
const char *basin_specimen_answer(const basin_specimen_verdict *verdict);

#endif
