/* MPI, opened at run time: the few functions that ranks use, declared here, so
 * that no header of MPI is needed and one program runs under any of them.
 *
 * Open MPI's handles are addresses of objects, those of MPICH and its kin (Intel MPI, MVAPICH,
 * Cray) are numbers of 32 bits. Both fit a word and travel in the same registers on the 64-bit
 * machines that Basin knows, all little-endian. What differs besides is in the fields below the
 * functions. */
#ifndef BASIN_RANKS_MPI_H
#define BASIN_RANKS_MPI_H

#include "tasks/common/ranks/ranks.h"

typedef uintptr_t basin_mpi_handle;

/* Result, name, arguments. */
#define BASIN_MPI_FUNCTIONS(X)                                                                     \
    X(Get_library_version, (char *text, int *length))                                              \
    X(Initialized, (int *flag))                                                                    \
    X(Init_thread, (int *argc, char ***argv, int required, int *provided))                         \
    X(Finalize, (void))                                                                            \
    X(Comm_set_errhandler, (basin_mpi_handle comm, basin_mpi_handle handler))                      \
    X(Comm_rank, (basin_mpi_handle comm, int *rank))                                               \
    X(Comm_size, (basin_mpi_handle comm, int *size))                                               \
    X(Ibarrier, (basin_mpi_handle comm, basin_mpi_handle * request))                               \
    X(Ibcast, (void *data, int count, basin_mpi_handle type, int root, basin_mpi_handle comm,      \
               basin_mpi_handle *request))                                                         \
    X(Iallreduce, (const void *from, void *to, int count, basin_mpi_handle type,                   \
                   basin_mpi_handle op, basin_mpi_handle comm, basin_mpi_handle *request))         \
    X(Isend, (const void *data, int count, basin_mpi_handle type, int rank, int tag,               \
              basin_mpi_handle comm, basin_mpi_handle *request))                                   \
    X(Irecv, (void *data, int count, basin_mpi_handle type, int rank, int tag,                     \
              basin_mpi_handle comm, basin_mpi_handle *request))                                   \
    X(Test, (basin_mpi_handle * request, int *flag, void *status))                                 \
    X(Abort, (basin_mpi_handle comm, int code))

typedef struct basin_mpi {
#define BASIN_MPI_FIELD(name, arguments) int(*name) arguments;
    BASIN_MPI_FUNCTIONS(BASIN_MPI_FIELD)
#undef BASIN_MPI_FIELD
    basin_mpi_handle world, byte, integer, largest, errors_return;
    void *status_ignore;
    char name[80]; /* "Open MPI 4.1.4" */
    int began;     /* by us, and to be ended by us */
} basin_mpi;

enum { BASIN_MPI_SUCCESS = 0, BASIN_MPI_SERIALIZED = 2 };

/* Finds the library that belongs to the launcher, and begins. */
basin_status basin_mpi_begin(basin_mpi *mpi, const char *file, basin_error *error);
void basin_mpi_end(basin_mpi *mpi);

/* ---- the inside of a basin_ranks ---- */

enum { BASIN_HOST_TEXT = 64 };

struct basin_ranks {
    int64_t rank, count;
    basin_mpi mpi;
    char (*hosts)[BASIN_HOST_TEXT]; /* [count] */
    int threads;
    bool failed; /* MPI has failed: nobody is waited for any more */
};

/* The largest of all ranks' numbers; allocates nothing. */
basin_status basin_ranks_largest(basin_ranks *ranks, int *value, basin_error *error);

#endif
