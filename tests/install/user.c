/* A user's program: needs nothing but the installed headers and library. */
#include <stdio.h>
#include <string.h>

#include <basin/status.h>
#include <basin/version.h>

int main(void) {
    basin_error error;
    if (basin_fail(&error, BASIN_BAD_VALUE, "%d", 7) != BASIN_BAD_VALUE) return 1;
    if (strcmp(basin_version(), BASIN_VERSION_STRING) != 0) return 1;
    printf("basin %s\n", basin_version());
    return 0;
}
