/* Where this code lies on disk. */
#ifndef BASIN_BASE_HOME_H
#define BASIN_BASE_HOME_H

enum { BASIN_HOME = 4096 };

/* The file that holds this code: the program, or libbasin.so; "" where nobody knows. */
void basin_home_find(char home[BASIN_HOME]);

#endif
