/* Golden case "image": masked completion, its energies, loss and gradients. */
#include "basin/model.h"
#include "verify/verify.h"

void basin_case_build_image(basin_case *c) {
    basin_image model;
    basin_image_config config = {.tokens = basin_case_dim(c, "patches", 3, 1),
                                 .patch = basin_case_dim(c, "patches", 3, 2),
                                 .block = basin_case_block(c, ""),
                                 .descent = basin_case_descent(c),
                                 .self_attention = basin_case_flag(c, "self_attention")};
    basin_expr patches = basin_case_input_add(c, "patches", 3);
    basin_expr replaced = basin_case_input_add(c, "replaced", 2);
    basin_expr occluded = basin_case_input_add(c, "occluded", 2);
    if (basin_graph_error(c->graph) || basin_image_declare(&model, &c->params, &config)) return;
    int steps = config.descent.steps;
    basin_expr trace[2 * (size_t)(steps + 1)];
    basin_expr output = basin_image_forward(&model, patches, replaced, trace);
    basin_expr loss = basin_image_loss(output, patches, occluded);
    basin_case_output_add(c, output, "out.patches");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_output_add(
        c, basin_case_energies(c, &config.block, trace, steps, basin_expr_shape(patches).dim[0]),
        "out.energy");
    basin_case_gradients(c, loss, NULL);
}
