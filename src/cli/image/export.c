/* basin image export: a model under the names of the published Energy Transformer weights. */
#include <stdio.h>
#include <string.h>

#include "basin/tasks/image.h"
#include "cli/command.h"

static const basin_option table[] = {BASIN_OPTIONS_END};

static bool is_off(const basin_image_model *model, const char *setting) {
    char text[40];
    basin_error error;
    return !basin_settings_get(text, sizeof text, basin_image_get_settings(model), setting,
                               &error) &&
           !strcmp(text, "off");
}

/* What the published code would do otherwise than this model. */
static void tell_differences(const basin_image_model *model) {
    if (is_off(model, "self_attention"))
        fprintf(stderr, "basin: note: tokens of this model do not attend to themselves; those of "
                        "the published code do\n");
    if (is_off(model, "cls"))
        fprintf(stderr, "basin: note: this model has no CLS token; the published code wants one\n");
}

static int run(const void *values, int operands, char **operand) {
    (void)values, (void)operands;
    basin_backend *backend = NULL;
    basin_image_model *model = NULL;
    basin_error error;
    basin_status status = basin_backend_open(&backend, "cpu", 1, &error);
    if (!status) status = basin_image_open(&model, operand[0], backend, &error);
    if (!status) status = basin_image_export(operand[1], model, &error);
    if (!status) tell_differences(model);
    basin_image_close(model);
    basin_backend_close(backend);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_image_export = {
    .name = "image export",
    .summary = "Write an image model under the names of the published weights",
    .operands = "MODEL OUT.npz",
    .operands_least = 2,
    .operands_most = 2,
    .text = "The file holds Wk, Wq, Xi, Wenc, Benc, Wdec, Bdec, POS_embed, CLS_token, MASK_token, "
            "LNORM_gamma and LNORM_bias, as the authors' checkpoint does, and the settings as "
            "metadata. Only Energy Transformers with attention and a relu Hopfield network have "
            "such names, and not those that learn or set beta.",
    .example = "  basin image export model.safetensors weights.npz\n",
    .option = table,
    .run = run,
};
