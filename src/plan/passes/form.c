/* What epilogues make of their products, as far as the passes over plans want to know. */
#include "backend/form.h"
#include "plan/passes/program.h"

basin_program_form basin_program_form_of(const basin_program *program) {
    basin_form f = basin_form_of(program, NULL); /* programs do not know kinds */
    bool plain = f.alpha == 1 && f.c < 0;
    if (!f.known || f.row >= 0 || (f.relu && !plain))
        return (basin_program_form){BASIN_FORM_OTHER, 1, 0, -1};
    return (basin_program_form){
        .kind = f.relu        ? BASIN_FORM_RELU
                : f.mask >= 0 ? BASIN_FORM_MASKED
                              : BASIN_FORM_SUM,
        .of_product = f.alpha,
        .of_operand = f.beta,
        .operand = f.mask >= 0 ? f.mask : f.c,
    };
}
