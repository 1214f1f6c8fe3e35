/* The learning curve from a training log: lines with "step" and "loss", and with "test_mse". */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/memory.h"
#include "io/file.h"
#include "task/image/report/report.h"

static void line_free(basin_image_line *line) {
    free(line->step);
    free(line->value);
    *line = (basin_image_line){0};
}

/* Adds a point where both are numbers; false: no memory. */
static bool append(basin_image_line *line, const cJSON *step, const cJSON *value) {
    size_t need = (size_t)line->count + 1;
    if (!cJSON_IsNumber(step) || !cJSON_IsNumber(value)) return true;
    if (!basin_array_reserve((void **)&line->step, &line->room[0], need, sizeof *line->step) ||
        !basin_array_reserve((void **)&line->value, &line->room[1], need, sizeof *line->value))
        return false;
    line->step[line->count] = step->valuedouble;
    line->value[line->count++] = value->valuedouble;
    return true;
}

/* A line that is not a record, such as one cut by a kill, is passed over; one that looks whole and
 * cannot be read is not, since memory may lack. 0.1 called the loss of an epoch train_mse. */
static basin_status take_line(basin_image_curve *curve, basin_image_line *epochs, const char *text,
                              size_t length, const char *path, basin_error *error) {
    enum { SHOWN = 60 };
    cJSON *record = cJSON_ParseWithLength(text, length);
    if (!record && length && text[0] == '{' && text[length - 1] == '}')
        return basin_fail(error, BASIN_BAD_FILE, "%s: a line cannot be read: %.*s", path,
                          length < SHOWN ? (int)length : SHOWN, text);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(record, "step");
    const cJSON *loss = cJSON_GetObjectItemCaseSensitive(record, "loss");
    const cJSON *test = cJSON_GetObjectItemCaseSensitive(record, "test_mse");
    bool epoch = cJSON_HasObjectItem(record, "epoch");
    if (!loss) loss = cJSON_GetObjectItemCaseSensitive(record, "train_mse");
    bool good = append(epoch ? epochs : &curve->loss, step, loss);
    good = good && append(&curve->test, step, test);
    cJSON_Delete(record);
    return good ? BASIN_OK
                : basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for a log", path);
}

basin_status basin_image_curve_read(basin_image_curve *curve, const char *path,
                                    basin_error *error) {
    basin_map map;
    basin_image_line epochs = {0};
    *curve = (basin_image_curve){0};
    basin_status status = basin_map_open(&map, path, error);
    if (status) return status;
    const char *at = (const char *)map.data, *end = map.data ? at + map.size : NULL;
    while (at < end && !status) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        status = take_line(curve, &epochs, at, (size_t)(stop - at), path, error);
        at = stop + 1;
    }
    basin_map_close(&map);
    if (curve->loss.count < epochs.count) {
        line_free(&curve->loss);
        curve->loss = epochs;
    } else
        line_free(&epochs);
    if (!status && !curve->loss.count && !curve->test.count)
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: no line has \"step\" with \"loss\" or \"test_mse\": not a log of "
                            "training on pictures",
                            path);
    if (status) basin_image_curve_free(curve);
    return status;
}

void basin_image_curve_free(basin_image_curve *curve) {
    line_free(&curve->loss);
    line_free(&curve->test);
}
