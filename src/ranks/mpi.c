/* Opening MPI; see mpi.h. */
#include "ranks/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/try.h"

/* ---- which library ---- */

enum { CANDIDATES = 4 };

/* The launcher's own library first: one that does not know the launcher sees one rank. */
static void list(const char *file[CANDIDATES]) {
    static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", NULL};
    static const char *const mpich[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40", NULL};
    bool hydra = getenv("PMI_SIZE") && !getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMIX_RANK");
    memcpy(file, hydra ? mpich : open_mpi, CANDIDATES * sizeof *file);
}

static void *find(const char *file, basin_error *error) {
    const char *candidate[CANDIDATES] = {file, NULL};
    if (!file) list(candidate);
    for (int i = 0; candidate[i]; i++) {
        void *library = basin_library_open_global(candidate[i]);
        if (library) return library;
    }
    basin_fail(error, BASIN_UNSUPPORTED,
               "MPI, needed for several ranks, cannot be used: %.300s; Debian's package "
               "libopenmpi3 has it, or BASIN_MPI names another file",
               basin_library_why());
    return NULL;
}

static basin_status load(basin_mpi *mpi, void *library, basin_error *error) {
    struct {
        const char *name;
        size_t at;
    } wanted[] = {
#define WANTED(name, arguments) {"MPI_" #name, offsetof(basin_mpi, name)},
        BASIN_MPI_FUNCTIONS(WANTED)
#undef WANTED
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *function = basin_library_symbol(library, wanted[i].name);
        if (!function)
            return basin_fail(error, BASIN_UNSUPPORTED, "MPI lacks %s; needs version 3 or later",
                              wanted[i].name);
        memcpy((char *)mpi + wanted[i].at, &function, sizeof function);
    }
    return BASIN_OK;
}

/* ---- which dialect ---- */

/* "Open MPI v4.1.4, package: .." and "MPICH Version:\t4.0.2\n.." without what follows the number.
 */
static void take_name(basin_mpi *mpi) {
    enum { LONGEST = 8192 }; /* MPI_MAX_LIBRARY_VERSION_STRING of either */
    char text[LONGEST] = "";
    int length = 0;
    mpi->Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    const char *number = strpbrk(text, "0123456789");
    size_t words = number ? (size_t)(number - text) : strlen(text);
    while (words && strchr(" v\t:", text[words - 1])) words--;
    snprintf(mpi->name, sizeof mpi->name, "%.*s%s%s", (int)words, text, number ? " " : "",
             number ? number : "");
    char *version = strstr(mpi->name, " Version");
    if (version) memmove(version, version + 8, strlen(version + 8) + 1);
}

static basin_status take_dialect(basin_mpi *mpi, void *library, basin_error *error) {
    static const struct {
        const char *name;
        size_t at;
        basin_mpi_handle kin; /* of the ABI that MPICH and its kin share */
    } known[] = {{"ompi_mpi_comm_world", offsetof(basin_mpi, world), 0x44000000},
                 {"ompi_mpi_byte", offsetof(basin_mpi, byte), 0x4c00010d},
                 {"ompi_mpi_int", offsetof(basin_mpi, integer), 0x4c000405},
                 {"ompi_mpi_op_max", offsetof(basin_mpi, largest), 0x58000001},
                 {"ompi_mpi_errors_return", offsetof(basin_mpi, errors_return), 0x54000001}};
    enum { KNOWN = sizeof known / sizeof *known };
    basin_mpi_handle open_mpi[KNOWN];
    bool is_open_mpi = true, is_kin = false;
    for (int i = 0; i < KNOWN; i++) {
        open_mpi[i] = (uintptr_t)basin_library_symbol(library, known[i].name);
        is_open_mpi = is_open_mpi && open_mpi[i];
    }
    static const char *const kin[] = {"MPICH", "Intel", "MVAPICH", "CRAY"};
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++)
        is_kin = is_kin || !strncmp(mpi->name, kin[i], strlen(kin[i]));
    for (int i = 0; i < KNOWN; i++)
        *(basin_mpi_handle *)((char *)mpi + known[i].at) = is_open_mpi ? open_mpi[i] : known[i].kin;
    mpi->status_ignore = is_open_mpi ? NULL : (void *)1; /* NOLINT(performance-no-int-to-ptr) */
    if (is_open_mpi || is_kin) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "MPI is '%s', needs Open MPI, MPICH or one that derives from it", mpi->name);
}

/* ---- beginning and end ---- */

static basin_status begin(basin_mpi *mpi, basin_error *error) {
    int there = 0, provided = 0;
    mpi->Initialized(&there);
    if (there) return BASIN_OK;
    if (mpi->Init_thread(NULL, NULL, BASIN_MPI_SERIALIZED, &provided))
        return basin_fail(error, BASIN_UNSUPPORTED, "%s cannot begin", mpi->name);
    mpi->began = 1;
    return BASIN_OK;
}

basin_status basin_mpi_begin(basin_mpi *mpi, const char *file, basin_error *error) {
    *mpi = (basin_mpi){0};
    void *library = find(file, error); /* stays open: MPI does not like to be unloaded */
    if (!library) return BASIN_UNSUPPORTED;
    BASIN_TRY(load(mpi, library, error));
    take_name(mpi);
    BASIN_TRY(take_dialect(mpi, library, error));
    BASIN_TRY(begin(mpi, error));
    mpi->Comm_set_errhandler(mpi->world, mpi->errors_return);
    return BASIN_OK;
}

void basin_mpi_end(basin_mpi *mpi) {
    if (mpi->began) mpi->Finalize();
    mpi->began = 0;
}
