/* What the environment says of a launcher: mpirun of Open MPI, mpiexec of MPICH, srun. A batch
 * script of Slurm, which is no step of a job, counts as none. */
#include <stdlib.h>

#include "base/number.h"
#include "basin/tasks/ranks.h"

static bool read_one(int64_t *value, const char *name) {
    const char *text = getenv(name);
    return text && basin_integer_read(value, &text) && *value >= 0;
}

bool basin_ranks_launched(int64_t *rank, int64_t *count) {
    static const struct {
        const char *rank, *count;
    } known[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    int64_t found[2];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!read_one(&found[0], known[i].rank) || !read_one(&found[1], known[i].count)) continue;
        if (found[1] < 1 || found[0] >= found[1]) continue;
        if (rank) *rank = found[0];
        if (count) *count = found[1];
        return true;
    }
    if (rank) *rank = 0;
    if (count) *count = 1;
    return false;
}
