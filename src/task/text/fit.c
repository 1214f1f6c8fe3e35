/* Settings that fit a model which training is to begin with; see basin_text_fit. */
#include "task/text/text.h"

basin_status basin_text_fit(basin_settings *settings, const char *from, basin_error *error) {
    basin_text_settings its;
    basin_bundle *bundle;
    if (settings->kind != &basin_text_task)
        return basin_fail(error, BASIN_BAD_VALUE, "the settings are of the task '%s', wanted text",
                          settings->kind->task);
    basin_status status = basin_bundle_read(&bundle, from, error);
    if (status) return status;
    status = basin_text_settings_read(&its, bundle, error);
    if (!status) basin_settings_underlay(settings, &its);
    basin_bundle_free(bundle);
    return status;
}
