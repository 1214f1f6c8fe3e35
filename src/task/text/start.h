/* What a run of training begins with. */
#ifndef BASIN_TASK_TEXT_START_H
#define BASIN_TASK_TEXT_START_H

#include "task/text/text.h"
#include "train/run/run.h"

/* Completes the settings that were asked for, and makes or reads the tokenizer; nothing is made on
 * failure. */
basin_status basin_text_start(basin_text_settings *settings, basin_tokenizer **tokenizer,
                              const basin_run *run, const basin_text_data *data,
                              basin_error *error);

#endif
