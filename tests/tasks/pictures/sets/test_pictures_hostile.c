/* Collections that mean harm, or look like it: loops of links, bombs, programs to run, pipes. */
#include "tasks/pictures/sets/collections.h"

/* Links that lead back up, or twice to one folder: every folder is listed once. */
TEST(links_that_loop) {
    char inner[PATH_TEXT + 20];
    uint8_t *bytes;
    size_t size = make_file(&bytes, 0);
    char *path = folder_path(state, "loop");
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(inner, sizeof inner, "%s/z", path);
    assert_int_equal(mkdir(inner, 0777), 0);
    snprintf(inner, sizeof inner, "%s/z/1.jpg", path);
    assert_int_equal(file_put(inner, bytes, size), 0);
    static const char *const link[][2] = {{"a", "."}, {"b", "."}, {"z/up", ".."}, {"again", "z"}};
    for (int i = 0; i < 4; i++) {
        snprintf(inner, sizeof inner, "%s/%s", path, link[i][0]);
        assert_int_equal(symlink(link[i][1], inner), 0);
    }
    basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
    assert_int_equal(basin_pictures_count(pictures), 1);
    assert_name(pictures, 0, "loop/again/1.jpg"); /* the first of its paths */
    basin_pictures_close(pictures);
    for (int i = 0; i < 4; i++) {
        snprintf(inner, sizeof inner, "%s/%s", path, link[i][0]);
        unlink(inner);
    }
    snprintf(inner, sizeof inner, "%s/z/1.jpg", path);
    unlink(inner);
    snprintf(inner, sizeof inner, "%s/z", path);
    rmdir(inner);
    free(bytes);
}

/* A picture that a link should lead to is missed, not passed over. */
TEST(links_to_nowhere) {
    char inner[PATH_TEXT + 20];
    basin_picture picture = {0};
    char *path = folder_path(state, "gone");
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(inner, sizeof inner, "%s/1.jpg", path);
    assert_int_equal(symlink("moved/1.jpg", inner), 0);
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
    assert_int_equal(basin_pictures_count(pictures), 1);
    assert_failure(basin_pictures_load(&picture, pictures, 0, &failure), BASIN_IO,
                   "gone/1.jpg: cannot open for reading");
    unlink(inner);
}

/* What unpacks to more than is allowed is refused while it does. */
TEST(bombs) {
    char *path = folder_path(state, "bomb-idx3-ubyte.gz");
    basin_error error;
    uint8_t *zeros = calloc(1, 4 << 20);
    assert_non_null(zeros);
    put_gz(path, zeros, 4 << 20);
    basin_shelf shelf = {.name = path, .limit = 2 << 20};
    assert_int_equal(basin_shelf_idx(&shelf, &error), BASIN_NO_MEMORY);
    assert_non_null(strstr(error.text, "bomb-idx3-ubyte.gz: needs 0.00"));
    free(shelf.unpacked);
    put_archive(path = folder_path(state, "a.tar.gz"), 1);
    size_t size = file_get(zeros, 1 << 20, path);
    char name[] = "bomb";
    for (int small = 0; small < 2; small++) {
        shelf = (basin_shelf){.name = name, .limit = small ? 1000 : 1 << 20};
        assert_int_equal(basin_archive_parse(&shelf, zeros, size, &error),
                         small ? BASIN_NO_MEMORY : BASIN_OK);
        shelf.name = NULL;
        basin_shelf_free(&shelf);
    }
    free(zeros);
}

/* libarchive would run lrzip, which may be anything, for a file that begins like this. */
TEST(runs_no_programs) {
    char script[2 * PATH_TEXT];
    char *program = folder_path(state, "lrzip");
    char *mark = folder_path(state, "was-run");
    snprintf(script, sizeof script, "#!/bin/sh\ntouch '%s'\n", mark);
    assert_int_equal(file_put(program, script, strlen(script)), 0);
    assert_int_equal(chmod(program, 0755), 0);
    const char *before = getenv("PATH");
    char *kept = before ? strdup(before) : NULL;
    assert_int_equal(setenv("PATH", *state, 1), 0);
    uint8_t lrzip[600] = "LRZI\0\6";
    char *path = folder_path(state, "x.lrz");
    assert_int_equal(file_put(path, lrzip, sizeof lrzip), 0);
    basin_pictures *pictures;
    const char *at = path;
    basin_error error;
    assert_int_not_equal(basin_pictures_open(&pictures, &at, 1, BASIN_PICTURES_ALL, &error),
                         BASIN_OK);
    if (kept) setenv("PATH", kept, 1);
    free(kept);
    assert_int_equal(access(mark, F_OK), -1);
}

/* A pipe that nobody writes to is refused, not waited for. */
TEST(pipes) {
    char *path = folder_path(state, "pipe");
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_fails(path, BASIN_PICTURES_ALL, "%s: is not a regular file");
}

int main(void) { return tests_run(folder_new, folder_remove); }
