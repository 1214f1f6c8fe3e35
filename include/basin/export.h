/* Marks the symbols that libbasin exports. cmake/declared reads the name that follows each mark;
 * docs/abi.md states the compatibility rules for them. */
#ifndef BASIN_EXPORT_H
#define BASIN_EXPORT_H

#define BASIN_API __attribute__((visibility("default")))

#endif
