/* No lifeline on Windows, so that ranks are alone there: who is started with others hears so. See
 * lifeline.h. */
#include "ranks/lifeline.h"

basin_status basin_lifeline_new(basin_lifeline **line, basin_lifeline_address *address,
                                const basin_lifeline_spec *spec, basin_error *error) {
    (void)address;
    *line = NULL;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%lld ranks: Basin for Windows runs as one, without MPI",
                      (long long)spec->count);
}

basin_status basin_lifeline_connect(basin_lifeline *line, const basin_lifeline_address *address,
                                    basin_error *error) {
    (void)line, (void)address, (void)error;
    return BASIN_UNSUPPORTED;
}

basin_status basin_lifeline_start(basin_lifeline *line, const basin_lifeline_address *address,
                                  basin_error *error) {
    return basin_lifeline_connect(line, address, error);
}

void basin_lifeline_free(basin_lifeline *line) { (void)line; }

bool basin_lifeline_broken(const basin_lifeline *line) {
    (void)line;
    return false;
}

basin_status basin_lifeline_why(basin_lifeline *line, basin_error *error) {
    (void)line, (void)error;
    return BASIN_OK;
}

bool basin_lifeline_headless(basin_lifeline *line) {
    (void)line;
    return false;
}

void basin_lifeline_fail(basin_lifeline *line, const basin_error *error) {
    (void)line, (void)error;
}
