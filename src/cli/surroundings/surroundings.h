/* What the program does about its surroundings before anything else. */
#ifndef BASIN_CLI_SURROUNDINGS_H
#define BASIN_CLI_SURROUNDINGS_H

/* Descriptors 0 to 2 that are closed are opened on nothing, so that no file gets their number. A
 * limit on the size of files becomes an error of writing in place of a signal. A mapped file that
 * shrinks or cannot be read ends the program with one line that names it. HDF5 leaves in silence.
 */
void basin_surroundings_prepare(int arguments, char *const *argument);

#endif
