/* Folders that commands write into. */
#ifndef BASIN_CLI_FOLDER_H
#define BASIN_CLI_FOLDER_H

#include "basin/status.h"

/* Makes the folder unless it is there. */
basin_status basin_folder_make(const char *path, basin_error *error);

#endif
