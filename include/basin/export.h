/* Marks what libbasin shows to the outside; everything else is hidden. */
#ifndef BASIN_EXPORT_H
#define BASIN_EXPORT_H

#if defined(_WIN32)
#define BASIN_API
#else
#define BASIN_API __attribute__((visibility("default")))
#endif

#endif
