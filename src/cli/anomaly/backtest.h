/* What `basin anomaly eval --model` does: a saved model on labels, nothing trained. */
#ifndef BASIN_CLI_ANOMALY_BACKTEST_H
#define BASIN_CLI_ANOMALY_BACKTEST_H

#include "cli/anomaly/eval.h"

/* The exit code. Wrong usage where options of training stand beside the model; `untouched` are the
 * defaults of all options. */
int basin_cli_backtest(const basin_eval_options *options, const basin_eval_options *untouched,
                       int operands, char **operand);

/* Figures as a table, and as fields of an object. */
bool basin_cli_figures_print(const basin_anomaly_figures *figures);
void basin_put_figures(basin_json *json, const basin_anomaly_figures *figures);

#endif
