/* What ranks of a run tell each other; see inside.h. */
#include "train/run/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "io/bundle.h"
#include "io/file.h"

/* ---- files ---- */

/* The bytes of the file that rank 0's bundle was read from; *data is to be freed. */
static basin_status share_bytes(void **data, uint64_t *size, basin_ranks *ranks, const char *path,
                                basin_error *error) {
    basin_map map = {0};
    basin_status status = path ? basin_map_open(&map, path, error) : BASIN_OK;
    *size = map.size;
    *data = NULL;
    status = basin_ranks_agree(ranks, status, error);
    if (!status) status = basin_ranks_broadcast(ranks, size, sizeof *size, 0, error);
    if (!status && *size) {
        *data = malloc(*size);
        if (!*data) status = basin_fail_memory(error, "a checkpoint");
    }
    if (!status && map.size) memcpy(*data, map.data, map.size);
    status = basin_ranks_agree(ranks, status, error);
    if (!status && *size) status = basin_ranks_broadcast(ranks, *data, *size, 0, error);
    basin_map_close(&map);
    return status;
}

/* As basin_bundle_read tells them apart. */
static basin_status parse(basin_bundle **bundle, const void *data, uint64_t size, const char *path,
                          basin_error *error) {
    bool zip = size > 2 && !memcmp(data, "PK", 2);
    return zip ? basin_npz_parse(bundle, data, size, path, false, error)
               : basin_safetensors_parse(bundle, data, size, path, error);
}

static basin_status share_bundle(basin_bundle **bundle, void **data, basin_run *run,
                                 const char *path, basin_error *error) {
    uint64_t size;
    basin_ranks *ranks = run->training.ranks;
    basin_status status =
        share_bytes(data, &size, ranks, *bundle ? basin_bundle_path(*bundle) : NULL, error);
    if (!status && *data) {
        /* Rank 0, too: a rank of a run that was killed may have replaced the file since it looked.
         */
        basin_bundle_free(*bundle);
        *bundle = NULL;
        status = parse(bundle, *data, size, path, error);
    }
    return basin_ranks_agree(ranks, status, error);
}

basin_status basin_run_share_files(basin_run *run, basin_status status, basin_error *error) {
    basin_ranks *ranks = run->training.ranks;
    const char *saved = run->checkpoint ? run->checkpoint : "the checkpoint";
    if (basin_ranks_count(ranks) == 1) return status;
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    BASIN_TRY(basin_ranks_broadcast(ranks, &run->finished, sizeof run->finished, 0, error));
    BASIN_TRY(share_bundle(&run->saved, &run->shared[0], run, saved, error));
    return share_bundle(&run->from, &run->shared[1], run, run->training.from, error);
}

/* ---- before it trains ---- */

basin_status basin_run_compare(basin_run *run, const void *settings, const basin_setting *table,
                               basin_error *error) {
    basin_ranks *ranks = run->training.ranks;
    if (basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_FREE_AT_EXIT char *text = basin_settings_print(settings, table, true);
    basin_status status = text ? BASIN_OK : basin_fail_memory(error, "settings");
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    return basin_ranks_alike(ranks, text, "the settings", error);
}

/* The digest of the data, where both this rank and rank 0 know theirs. */
static basin_status share_digest(const basin_run *run, basin_error *error) {
    uint64_t mine = run->task->data, first = mine;
    BASIN_TRY(basin_ranks_broadcast(run->training.ranks, &first, sizeof first, 0, error));
    if (!mine || !first || mine == first) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the %s differ from those of rank 0, as their digests do: %016llx and "
                      "%016llx; wanted the same on all ranks",
                      run->task->unit, (unsigned long long)mine, (unsigned long long)first);
}

basin_status basin_run_share_sizes(basin_run *run, basin_error *error) {
    const basin_run_task *t = run->task;
    char text[200];
    snprintf(text, sizeof text,
             "%lld members\n%lld epochs\n%lld %s\n%lld steps per epoch\n%lld parameters\n",
             (long long)t->members, (long long)t->epochs, (long long)t->items, t->unit,
             (long long)t->steps, (long long)basin_params_total(t->params));
    BASIN_TRY(basin_ranks_alike(run->training.ranks, text, "data and sizes", error));
    return basin_ranks_agree(run->training.ranks, share_digest(run, error), error);
}
