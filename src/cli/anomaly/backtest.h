/* What `basin anomaly eval` does with --model, a saved model on labels, and --unsupervised. */
#ifndef BASIN_CLI_ANOMALY_BACKTEST_H
#define BASIN_CLI_ANOMALY_BACKTEST_H

#include "cli/anomaly/eval.h"

/* The exit code. Wrong usage where settings of training stand beside the model. */
int basin_cli_backtest(const basin_eval_options *options, int operands, char **operand);

#endif
