/* A training log: one JSON object a line. A resumed run goes on where its checkpoint stands: lines
 * of later steps, written before a kill, are dropped. */
#ifndef BASIN_TRAIN_RUN_LOG_H
#define BASIN_TRAIN_RUN_LOG_H

#include "basin/status.h"
#include "io/json_writer.h"

typedef struct basin_run_log {
    FILE *file; /* NULL: no log is kept */
    const char *path;
} basin_run_log;

/* What a run had done when it was saved: lines of later steps and epochs are dropped. */
typedef struct basin_log_place {
    int64_t member, epoch, step;
} basin_log_place;

/* `path` NULL: no log. `resumed` NULL: a new log, which replaces an old one. */
basin_status basin_log_open(basin_run_log *log, const char *path, const basin_log_place *resumed,
                            basin_error *error);
/* Begins a line, where log->file is not NULL; fill it with basin_json_number and its kin, then end
 * it. */
basin_json basin_log_line(basin_run_log *log);
basin_status basin_log_end(basin_run_log *log, basin_json *line, basin_error *error);
void basin_log_close(basin_run_log *log);

#endif
