/* The inner loops of energy attention for the instruction set this is compiled for; included once
 * by each kernels*.c, which names the table. See attention/attention.h. */
#include "engine/backend/cpu/attention/kernels_fused.h"
#include "engine/backend/cpu/attention/kernels_pointwise.h"
#include "engine/backend/cpu/attention/kernels_products.h"
#include "engine/backend/cpu/attention/kernels_short.h"
#include "engine/backend/cpu/attention/kernels_values.h"

#define ATTENTION_KERNELS                                                                          \
    {                                                                                              \
        .lanes = VECTOR_LANES, .short_rows = short_rows, .short_columns = short_columns,           \
        .dot = dot, .dot_two = dot_two, .gather = gather, .gather_two = gather_two,                \
        .measure = measure, .finish = finish, .complete = complete, .whole = whole,                \
        .force_row = force_row, .reverse_row = reverse_row, .force_column = force_column,          \
        .reverse_column = reverse_column, .values = values                                         \
    }
