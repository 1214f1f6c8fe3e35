/* basin image import: the published Energy Transformer weights as a model file. */
#include <stdio.h>

#include "cli/command.h"
#include "task/image/interchange.h"

static const basin_option table[] = {BASIN_OPTIONS_END};

static int run(const void *values, int operands, char **operand) {
    (void)values, (void)operands;
    basin_backend *backend = NULL;
    basin_image_session session = {0};
    basin_error error;
    basin_status status = basin_backend_open(&backend, "cpu", 1, &error);
    if (!status) status = basin_image_session_open(&session, operand[0], backend, &error);
    if (!status) status = basin_image_session_write(operand[1], &session, &error);
    const basin_image_settings *s = &session.settings;
    if (!status)
        printf("%s: %lld x %lld pixels, %lld channels, patches of %lld x %lld, D %lld, H %lld, "
               "Y %lld, M %lld, %lld steps\n",
               operand[1], (long long)s->size, (long long)s->size, (long long)s->channels,
               (long long)s->patch, (long long)s->patch, (long long)s->dim, (long long)s->heads,
               (long long)s->head_dim, (long long)s->memories, (long long)s->steps);
    basin_image_session_close(&session);
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
