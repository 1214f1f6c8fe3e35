/* Loops for several instruction sets in one program. */
#ifndef BASIN_BASE_WIDE_H
#define BASIN_BASE_WIDE_H

#include <stdint.h> /* tells of glibc */

/* Loops marked with this are also compiled for wider vectors, without fused multiply-adds, so that
 * every version gives the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#define BASIN_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define BASIN_WIDE
#endif

#endif
