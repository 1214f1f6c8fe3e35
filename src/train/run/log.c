/* JSON-lines logs; see log.h. */
#include "train/run/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "io/file.h"

static double number(const cJSON *object, const char *name, double absent) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

/* Whether a line tells of what was done by then. One cut short by a kill is no JSON and goes. */
static bool stays(const char *line, const basin_log_place *done) {
    cJSON *object = cJSON_Parse(line);
    if (!object) return false;
    double member = number(object, "member", (double)done->member);
    double epoch = number(object, "epoch", -1), step = number(object, "step", 0);
    cJSON_Delete(object);
    if (member != (double)done->member) return member < (double)done->member;
    return epoch >= 0 ? epoch <= (double)done->epoch : step <= (double)done->step;
}

static basin_status keep_lines(const char *path, const basin_log_place *done, basin_error *error) {
    FILE *old = fopen(path, "r");
    if (!old) return BASIN_OK;
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    char *line = NULL;
    size_t capacity = 0;
    while (!status && getline(&line, &capacity, old) > 0) {
        if (!stays(line, done)) continue;
        status = basin_writer_put(&writer, line, strlen(line), error);
        if (status) basin_writer_discard(&writer);
    }
    if (!status) status = basin_writer_commit(&writer, error);
    free(line);
    fclose(old);
    return status;
}

basin_status basin_log_open(basin_run_log *log, const char *path, const basin_log_place *resumed,
                            basin_error *error) {
    *log = (basin_run_log){.path = path};
    if (!path) return BASIN_OK;
    basin_status status = resumed ? keep_lines(path, resumed, error) : BASIN_OK;
    if (status) return status;
    log->file = fopen(path, resumed ? "a" : "w");
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
