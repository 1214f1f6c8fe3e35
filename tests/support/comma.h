/* A locale that writes 1,5: made on the spot, since few machines have one. */
#ifndef BASIN_TESTS_SUPPORT_COMMA_H
#define BASIN_TESTS_SUPPORT_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Sets it for numbers, with its files in `folder`; false where it cannot be had, and the test
 * should skip. setlocale(LC_NUMERIC, "C") takes it back. */
static inline bool comma_set(const char *folder) {
    char command[2000], *shown;
    FILE *source;
    snprintf(command, sizeof command, "%s/comma.src", folder);
    if (!(source = fopen(command, "w"))) return false;
    fputs("comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
          "grouping 3;3\nEND LC_NUMERIC\n",
          source);
    fclose(source);
    snprintf(command, sizeof command,
             "localedef -c --no-archive -i '%s/comma.src' '%s/comma' >'%s/comma.txt' 2>&1", folder,
             folder, folder);
    if (system(command) < 0 || setenv("LOCPATH", folder, 1)) return false;
    shown = setlocale(LC_NUMERIC, "comma");
    if (!shown) printf("no locale with a decimal comma can be made here (localedef)\n");
    unsetenv("LOCPATH"); /* glibc's newlocale leaks a copy of it */
    snprintf(command, sizeof command, "rm -rf '%s/comma'", folder);
    return system(command) == 0 && shown;
}

#endif
