/* What the synapses of the library share. Functions that fail leave their error in the graph. */
#ifndef BASIN_ENERGY_SYNAPSE_H
#define BASIN_ENERGY_SYNAPSE_H

#include "energy/network.h"

/* Whether all activations are there, `least` to `most` of them. */
bool basin_synapse_check(basin_ham *ham, const basin_synapse *s, const basin_expr *g, int count,
                         int least, int most);
/* Whether the setting called `what` is above 0. */
bool basin_synapse_positive(basin_ham *ham, const basin_synapse *s, const char *what,
                            int64_t value);
/* The parameter "NAME.part", at first N(0, deviation^2). */
basin_expr basin_synapse_weight(basin_ham *ham, const basin_synapse *s, const char *part,
                                basin_shape shape);
/* The parameter "NAME.part", at first `value`. */
basin_expr basin_synapse_offset(basin_ham *ham, const basin_synapse *s, const char *part,
                                basin_shape shape, double value);
/* The hidden Lagrangian, by default the one named. */
basin_lagrangian basin_synapse_lagrangian(const basin_synapse *s, const char *otherwise);
/* [B, .., D] as tokens [B, N, D]; [B, D] is one token. */
basin_expr basin_synapse_tokens(basin_expr g);

#endif
