/* JSON-lines logs; see log.h. */
#include "train/run/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "io/file.h"

static double step_of(const char *line) {
    cJSON *object = cJSON_Parse(line);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(object, "step");
    double value = cJSON_IsNumber(step) ? step->valuedouble : 0;
    bool whole = object != NULL;
    cJSON_Delete(object);
    return whole ? value : -1;
}

/* Copies the lines that stay. A last line cut short by a kill is no JSON and goes, too. */
static basin_status keep_lines(const char *path, int64_t step, basin_error *error) {
    FILE *old = fopen(path, "r");
    if (!old) return BASIN_OK;
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    char *line = NULL;
    size_t capacity = 0;
    while (!status && getline(&line, &capacity, old) > 0) {
        double at = step_of(line);
        if (at < 0 || at > (double)step) continue;
        status = basin_writer_put(&writer, line, strlen(line), error);
        if (status) basin_writer_discard(&writer);
    }
    if (!status) status = basin_writer_commit(&writer, error);
    free(line);
    fclose(old);
    return status;
}

basin_status basin_log_open(basin_run_log *log, const char *path, int64_t step,
                            basin_error *error) {
    *log = (basin_run_log){.path = path};
    if (!path) return BASIN_OK;
    basin_status status = step > 0 ? keep_lines(path, step, error) : BASIN_OK;
    if (status) return status;
    log->file = fopen(path, step > 0 ? "a" : "w");
    if (log->file) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
}

basin_json basin_log_line(basin_run_log *log) { return basin_json_begin_line(log->file); }

basin_status basin_log_end(basin_run_log *log, basin_json *line, basin_error *error) {
    basin_json_end(line);
    if (fflush(log->file) == 0) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: %s", log->path, strerror(errno));
}

void basin_log_close(basin_run_log *log) {
    if (log->file) fclose(log->file);
    log->file = NULL;
}
