/* basin image export: a model under the names of the published Energy Transformer weights, or its
 * file with weights in half the bytes. */
#include <stdio.h>
#include <string.h>

#include "basin/tasks/image.h"
#include "cli/command.h"

typedef struct options {
    const char *weights;
} options;

static const options defaults = {.weights = "f32"};

static const basin_option table[] = {
    BASIN_CHOICE(options, weights, "weights", "f32|bf16",
                 "Type of the weights in a .safetensors file; bf16 halves it."),
    BASIN_OPTIONS_END,
};

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

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length >= size && !strcmp(text + length - size, end);
}

static basin_status export(const char *path, basin_image_model *model, const char *weights,
                           basin_error *error) {
    if (ends_with(path, ".safetensors"))
        return basin_image_write_as(path, model, basin_option_dtype(weights), error);
    basin_status status = basin_image_export(path, model, error);
    if (!status) tell_differences(model);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    (void)operands;
    basin_backend *backend = NULL;
    basin_image_model *model = NULL;
    basin_error error;
    bool ours = ends_with(operand[1], ".safetensors");
    if (!ours && !ends_with(operand[1], ".npz"))
        return basin_report_usage(&basin_command_image_export,
                                  "%s: wanted a name that ends in .npz or .safetensors",
                                  operand[1]);
    if (!ours && strcmp(o->weights, "f32") != 0)
        return basin_report_usage(&basin_command_image_export,
                                  "%s: npz has no bf16; --weights is for .safetensors", operand[1]);
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error);
    if (!status) status = basin_image_open(&model, operand[0], backend, &error);
    if (!status) status = export(operand[1], model, o->weights, &error);
    basin_image_close(model);
    basin_backend_close(backend);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_image_export = {
    .name = "image export",
    .summary = "Write an image model under the published names, or with narrower weights",
    .operands = "MODEL OUT.npz|OUT.safetensors",
    .operands_least = 2,
    .operands_most = 2,
    .text = "A .safetensors file is a model as any other, with weights of the type that --weights "
            "names. An npz file holds Wk, Wq, Xi, Wenc, Benc, Wdec, Bdec, POS_embed, CLS_token, "
            "MASK_token, "
            "LNORM_gamma and LNORM_bias, as the authors' checkpoint does, and the settings as "
            "metadata. Only Energy Transformers with attention and a relu Hopfield network have "
            "such names, and not those that learn or set beta.",
    .example = "  basin image export model.safetensors weights.npz\n"
               "  basin image export model.safetensors small.safetensors --weights bf16\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
