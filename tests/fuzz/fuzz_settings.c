/* Fuzz target: any bytes as a file of settings (--config, a preset) of each task. What is taken has
 * one meaning: its own text gives the same settings again. */
#include <stdlib.h>
#include <string.h>

#include "basin/basin.h"
#include "basin/tasks/settings.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"

static const char *const task[] = {"image", "anomaly", "node", "graphs"};

static char *text_of(const basin_settings *settings) {
    char *text = basin_settings_json(settings);
    if (!text) abort();
    return text;
}

static void read_again(const char *name, const basin_settings *first) {
    char path[MEMORY_PATH];
    basin_settings *second;
    char *text = text_of(first);
    int fd = memory_file(path, (const uint8_t *)text, strlen(text));
    if (basin_settings_new(&second, name, NULL, NULL) || basin_settings_read(second, path, NULL))
        abort();
    char *other = text_of(second);
    if (strcmp(text, other) != 0) abort();
    basin_free(text), basin_free(other);
    basin_settings_free(second);
    close(fd);
}

/* A task by the size, so that cuts of a file meet all of them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[MEMORY_PATH];
    basin_settings *settings;
    basin_error error = {0};
    const char *name = task[size % 4];
    int fd = memory_file(path, data, size);
    if (basin_settings_new(&settings, name, NULL, NULL)) abort();
    basin_status status = basin_settings_read(settings, path, &error);
    if (status && (error.status != status || !*error.text || strchr(error.text, '\n'))) abort();
    if (!status) read_again(name, settings);
    basin_settings_free(settings);
    close(fd);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    basin_settings *settings;
    static const char brief[] = "{\"task\": \"anomaly\", \"note\": \"x\", \"settings\": "
                                "{\"epochs\": 5, \"rate\": 1e-3, \"degree\": true}}";
    if (index > 4) return 0;
    if (index == 4) {
        memcpy(out, brief, sizeof brief - 1);
        return sizeof brief - 1;
    }
    if (basin_settings_new(&settings, task[index], NULL, NULL)) abort();
    char *text = text_of(settings);
    size_t size = strlen(text);
    if (size > FUZZ_ROOM) abort();
    memcpy(out, text, size);
    basin_free(text);
    basin_settings_free(settings);
    return size;
}
