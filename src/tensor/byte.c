/* Floating numbers of eight bits, to and from double. */
#include "tensor/byte.h"

#include <math.h>

typedef struct layout {
    int mantissa, bias; /* bits, and what is added to exponents */
    double most;
    uint8_t largest, nan;
} layout;

static const layout layouts[] = {
    [BASIN_BYTE_E4M3] = {3, 7, 448, 0x7e, 0x7f},
    [BASIN_BYTE_E5M2] = {2, 15, 57344, 0x7b, 0x7e},
};

double basin_byte_to_double(uint8_t byte, basin_byte_form form) {
    const layout *l = &layouts[form];
    int size = byte & 0x7f, exponent = size >> l->mantissa, unit = 1 << l->mantissa;
    double value = exponent ? ldexp(unit + size % unit, exponent - l->bias - l->mantissa)
                            : ldexp(size, 1 - l->bias - l->mantissa);
    if (size > l->largest) value = form == BASIN_BYTE_E5M2 && size == 0x7c ? HUGE_VAL : NAN;
    return byte & 0x80 ? -value : value;
}

uint8_t basin_byte_from_double(double value, basin_byte_form form) {
    const layout *l = &layouts[form];
    uint8_t sign = signbit(value) ? 0x80 : 0;
    double size = fabs(value);
    if (isnan(value)) return sign | l->nan;
    if (size >= l->most) return sign | l->largest;
    int least = 1 - l->bias, exponent = size < ldexp(1, least) ? least : ilogb(size);
    /* nearbyint keeps ties to even; a carry into the exponent comes out right by itself */
    int mantissa = (int)nearbyint(ldexp(size, l->mantissa - exponent)), unit = 1 << l->mantissa;
    int byte = mantissa < unit ? mantissa : ((exponent + l->bias) << l->mantissa) + mantissa - unit;
    return sign | (uint8_t)(byte > l->largest ? l->largest : byte);
}
