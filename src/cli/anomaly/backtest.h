/* What `basin anomaly eval` does with --model, a saved model on labels, and --unsupervised. */
#ifndef BASIN_CLI_ANOMALY_BACKTEST_H
#define BASIN_CLI_ANOMALY_BACKTEST_H

#include "cli/anomaly/eval.h"

/* The exit code. Wrong usage where options of training stand beside the model; `untouched` are the
 * defaults of all options. */
int basin_cli_backtest(const basin_eval_options *options, const basin_eval_options *untouched,
                       int operands, char **operand);

#endif
