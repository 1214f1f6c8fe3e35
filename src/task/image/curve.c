/* The learning curve from a training log: lines with "step" and "loss", and with "test_mse". */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/memory.h"
#include "io/file.h"
#include "task/image/report.h"

typedef struct columns {
    size_t capacity[4];
} columns;

static bool append(double **x, double **y, int64_t *count, size_t *capacity, double at,
                   double value) {
    size_t need = (size_t)*count + 1;
    if (!basin_array_reserve((void **)x, &capacity[0], need, sizeof **x) ||
        !basin_array_reserve((void **)y, &capacity[1], need, sizeof **y))
        return false;
    (*x)[*count] = at;
    (*y)[(*count)++] = value;
    return true;
}

/* A line that is not a record, such as one cut by a kill, is passed over. Runs too short to have
 * logged a loss have the mean of their epochs. */
static bool take_line(basin_image_curve *curve, columns *room, const char *text, size_t length) {
    cJSON *line = cJSON_ParseWithLength(text, length);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(line, "step");
    const cJSON *loss = cJSON_GetObjectItemCaseSensitive(line, "loss");
    const cJSON *test = cJSON_GetObjectItemCaseSensitive(line, "test_mse");
    bool good = true;
    if (!loss && !curve->count) loss = cJSON_GetObjectItemCaseSensitive(line, "train_mse");
    if (cJSON_IsNumber(step) && cJSON_IsNumber(loss))
        good = append(&curve->step, &curve->loss, &curve->count, &room->capacity[0],
                      step->valuedouble, loss->valuedouble);
    if (good && cJSON_IsNumber(step) && cJSON_IsNumber(test))
        good = append(&curve->test_step, &curve->test_mse, &curve->tests, &room->capacity[2],
                      step->valuedouble, test->valuedouble);
    cJSON_Delete(line);
    return good;
}

basin_status basin_image_curve_read(basin_image_curve *curve, const char *path,
                                    basin_error *error) {
    basin_map map;
    columns room = {{0}};
    *curve = (basin_image_curve){0};
    basin_status status = basin_map_open(&map, path, error);
    if (status) return status;
    const char *at = (const char *)map.data, *end = map.data ? at + map.size : NULL;
    while (at < end && !status) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (!take_line(curve, &room, at, (size_t)(stop - at)))
            status = basin_fail(error, BASIN_NO_MEMORY, "%s: no memory for a log", path);
        at = stop + 1;
    }
    basin_map_close(&map);
    if (!status && !curve->count && !curve->tests)
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: no line has \"step\" with \"loss\" or \"test_mse\": not a log of "
                            "'basin image train'",
                            path);
    if (status) basin_image_curve_free(curve);
    return status;
}

void basin_image_curve_free(basin_image_curve *curve) {
    free(curve->step);
    free(curve->loss);
    free(curve->test_step);
    free(curve->test_mse);
    *curve = (basin_image_curve){0};
}
