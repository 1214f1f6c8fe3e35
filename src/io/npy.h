/* The header of a .npy array: a Python dictionary with the type, the order and the shape. */
#ifndef BASIN_IO_NPY_H
#define BASIN_IO_NPY_H

#include "basin/tensor.h"

enum { BASIN_NPY_PREAMBLE = 12, BASIN_NPY_HEADER_MAX = 1 << 20, BASIN_NPY_TEXT = 512 };

/* How the elements lie in the file, and what they become. */
typedef struct basin_npy {
    basin_shape shape;
    basin_dtype dtype; /* of the tensor to be made */
    size_t size;    /* bytes of an element in the file; smaller than the tensor's where widened */
    bool swapped;   /* big-endian */
    bool fortran;   /* the first index runs fastest */
    char descr[24]; /* the type as the file has it, for messages */
} basin_npy;

/* Bytes before the dictionary's text and of the text, from the first BASIN_NPY_PREAMBLE bytes of an
 * array; false if these are none. */
bool basin_npy_lengths(size_t *before, size_t *text,
                       const unsigned char preamble[BASIN_NPY_PREAMBLE]);
/* Reads the dictionary `text` [length]; on failure `reason` says what is wrong with it. */
basin_status basin_npy_parse(basin_npy *npy, char reason[BASIN_NPY_TEXT], const char *text,
                             size_t length);
/* A whole header for a tensor, preamble included, as numpy would write it; returns its bytes, or 0
 * for a type that npy does not have. */
size_t basin_npy_print(unsigned char header[BASIN_NPY_TEXT], const basin_tensor *tensor);

#endif
