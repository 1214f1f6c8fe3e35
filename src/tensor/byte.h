/* Floating numbers of eight bits: e4m3 (four bits of exponent, three of mantissa, up to 448, no
 * infinity) and e5m2 (five and two, up to 57344). */
#ifndef BASIN_TENSOR_BYTE_H
#define BASIN_TENSOR_BYTE_H

#include <stdint.h>

typedef enum basin_byte_form { BASIN_BYTE_E4M3, BASIN_BYTE_E5M2 } basin_byte_form;

double basin_byte_to_double(uint8_t byte, basin_byte_form form);
/* To the nearest, ties to even. What is too large, infinity too, becomes the largest number of that
 * sign, as CUDA's satfinite has it; NaN stays NaN. */
uint8_t basin_byte_from_double(double value, basin_byte_form form);

#endif
