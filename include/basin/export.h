/* Marks what libbasin shows to other programs. cmake/declared reads the names
 * behind it; docs/abi.md says what is promised of them. */
#ifndef BASIN_EXPORT_H
#define BASIN_EXPORT_H

#define BASIN_API __attribute__((visibility("default")))

#endif
