/* What the models of language share inside src/model. */
#ifndef BASIN_MODEL_LANGUAGE_LANGUAGE_H
#define BASIN_MODEL_LANGUAGE_LANGUAGE_H

#include "basin/language.h"
#include "model/parts.h"

void basin_gpt_declare(basin_language *model, basin_params *params);
basin_expr basin_gpt_layers(const basin_language *model, basin_expr x, basin_expr seed);

void basin_nrgpt_declare(basin_language *model, basin_params *params);
basin_expr basin_nrgpt_steps(const basin_language *model, basin_expr x, basin_expr seed,
                             basin_expr *energy);

#endif
