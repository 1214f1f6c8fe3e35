/* basin image export: a model under the names of the published Energy Transformer weights. */
#include <stdio.h>

#include "cli/command.h"
#include "task/image/interchange.h"

static const basin_option table[] = {BASIN_OPTIONS_END};

/* What the published code would do otherwise than this model. */
static void tell_differences(const basin_image_settings *s) {
    if (!s->self_attention)
        fprintf(stderr, "basin: note: tokens of this model do not attend to themselves; those of "
                        "the published code do\n");
    if (!s->cls)
        fprintf(stderr, "basin: note: this model has no CLS token; the published code wants one\n");
}

static int run(const void *values, int operands, char **operand) {
    (void)values, (void)operands;
    basin_backend *backend = NULL;
    basin_image_session session = {0};
    basin_error error;
    basin_status status = basin_backend_open(&backend, "cpu", 1, &error);
    if (!status) status = basin_image_session_open(&session, operand[0], backend, &error);
    if (!status) status = basin_image_published_write(operand[1], &session, &error);
    if (!status) tell_differences(&session.settings);
    basin_image_session_close(&session);
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
            "metadata. Only Energy Transformers with attention and Hopfield network have such "
            "names.",
    .example = "  basin image export model.safetensors weights.npz\n",
    .option = table,
    .run = run,
};
