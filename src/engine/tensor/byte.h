/* Numbers of eight bits: e4m3 (up to 448, no infinity) and e5m2 (up to 57344). */
#ifndef BASIN_TENSOR_BYTE_H
#define BASIN_TENSOR_BYTE_H

#include <stdint.h>

typedef enum basin_byte_form { BASIN_BYTE_E4M3, BASIN_BYTE_E5M2 } basin_byte_form;

double basin_byte_to_double(uint8_t byte, basin_byte_form form);
/* To the nearest, ties to even; too large ones saturate, as CUDA's satfinite; NaN stays. */
uint8_t basin_byte_from_double(double value, basin_byte_form form);

#endif
