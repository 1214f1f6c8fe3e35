/* A user's program that reads pictures, in C and in C++17: what is promised of libbasin_tasks. */
#include <stdio.h>

#include <basin/tasks/tasks.h>

int main(void) {
    const char *path = "shapes:3";
    basin_pictures *pictures;
    basin_error error;
    if (basin_pictures_open(&pictures, &path, 1, NULL, &error))
        return fprintf(stderr, "%s\n", error.text), 1;
    int good = basin_pictures_count(pictures) == 3;
    basin_pictures_free(pictures);
    return good ? 0 : 1;
}
