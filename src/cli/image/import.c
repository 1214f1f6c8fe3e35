/* basin image import: the published Energy Transformer weights as a model file. */
#include <stdio.h>

#include "basin/tasks/image.h"
#include "cli/command.h"

static const basin_option table[] = {BASIN_OPTIONS_END};

static void print(const char *path, const basin_image_model *model) {
    static const char *const name[] = {"size",  "channels", "patch",    "dim",
                                       "heads", "head_dim", "memories", "steps"};
    printf("%s: %lld parameters", path, (long long)basin_image_parameters(model));
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char text[40];
        basin_error error;
        if (!basin_settings_get(text, sizeof text, basin_image_get_settings(model), name[i],
                                &error))
            printf(", %s %s", name[i], text);
    }
    printf("\n");
}

static int run(const void *values, int operands, char **operand) {
    (void)values, (void)operands;
    basin_backend *backend = NULL;
    basin_image_model *model = NULL;
    basin_error error;
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error);
    if (!status) status = basin_image_open(&model, operand[0], backend, &error);
    if (!status) status = basin_image_write(operand[1], model, &error);
    if (!status) print(operand[1], model);
    basin_image_close(model);
    basin_backend_close(backend);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_image_import = {
    .name = "image import",
    .summary = "Make a model file of published image weights",
    .operands = "IN.npz MODEL",
    .operands_least = 2,
    .operands_most = 2,
    .text = "Reads the keys of the authors' checkpoint. The sizes follow from the shapes; what the "
            "file does not say is as in the paper: 12 steps of 0.1, beta 1 / sqrt(Y), tokens may "
            "attend to themselves, ImageNet's means and deviations. Such a file may also be given "
            "to the other commands in place of a model.",
    .example = "  basin image import weights.npz model.safetensors\n",
    .option = table,
    .run = run,
};
