/* Whole files: what living and killed writers leave behind, limits, pipes, bombs. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "engine/io/archive.h"
#include "engine/io/zip.h"
#include "support/folder.h"
#include "support/test.h"

/* A process that begins to write `path`, says so, and waits to be told to go on. */
typedef struct other {
    pid_t pid;
    int ready, go;
} other;

static other start_writer(const char *path) {
    int ready[2], go[2];
    char byte = 0;
    assert_int_equal(pipe(ready) | pipe(go), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        basin_writer writer;
        close(ready[0]);
        close(go[1]);
        if (basin_writer_create(&writer, path, NULL) || basin_writer_put(&writer, "new", 3, NULL))
            _exit(2);
        if (write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) < 0) _exit(3);
        _exit(basin_writer_commit(&writer, NULL) ? 1 : 0);
    }
    close(ready[1]);
    close(go[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return (other){pid, ready[0], go[1]};
}

static int wait_for(other *o) {
    int status = -1;
    close(o->go);
    close(o->ready);
    assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
    return status;
}

TEST(spares_living_writers) {
    char text[4] = "", *path = folder_path(state, "model");
    assert_int_equal(file_put(path, "old", 3), 0);
    other o = start_writer(path);
    assert_int_equal(basin_writer_sweep(path, NULL), BASIN_OK);
    assert_int_equal(folder_count(state), 2); /* the file, and what is written aside */
    assert_int_equal(wait_for(&o), 0);
    assert_int_equal(folder_count(state), 1);
    assert_int_equal(file_get(text, 3, path), 3);
    assert_string_equal(text, "new");
}

TEST(removes_what_the_dead_left) {
    char *path = folder_path(state, "model [1]*"); /* no pattern, though it looks like one */
    other o = start_writer(path);
    assert_int_equal(kill(o.pid, SIGKILL), 0);
    assert_true(WIFSIGNALED(wait_for(&o)));
    int before = folder_count(state);
    assert_int_equal(basin_writer_sweep(path, NULL), BASIN_OK);
    assert_int_equal(folder_count(state), before - 1);
    assert_int_equal(access(path, F_OK), -1);
}

/* A limit on the size of files is an error like a full disk. The program ignores the signal. */
TEST(reports_a_limit_of_size) {
    char *path = folder_path(state, "large");
    int before = folder_count(state);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static char bytes[1 << 16];
        struct rlimit limit = {1 << 14, 1 << 14};
        basin_writer writer;
        basin_error error = {0};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) || basin_writer_create(&writer, path, &error)) _exit(2);
        basin_status status = basin_writer_put(&writer, bytes, sizeof bytes, &error);
        if (status)
            basin_writer_discard(&writer);
        else
            status = basin_writer_commit(&writer, &error);
        _exit(status == BASIN_IO && strstr(error.text, "File too large") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(folder_count(state), before);
}

/* Devices, and folders that are not there, pass. */
TEST(knows_what_cannot_fit) {
    static const char *const unknown[] = {"/dev/null", "/nowhere/at/all"};
    assert_ok(basin_writer_space(folder_path(state, "new"), 1, &failure));
    assert_ok(basin_writer_space("here", 1, &failure));
    assert_failure(basin_writer_space(folder_path(state, "new"), UINT64_MAX, &failure), BASIN_IO,
                   "new: needs 18446744073709551615 bytes, its file system has ");
    assert_int_equal(failure.number, ENOSPC);
    for (int i = 0; i < 2; i++) assert_ok(basin_writer_space(unknown[i], UINT64_MAX, &failure));
    if (access("/dev/full", F_OK) != 0) skip();
    assert_failure(basin_writer_try("/dev/full", &failure), BASIN_IO, "No space left on device");
}

TEST(refuses_pipes) {
    char *path = folder_path(state, "pipe");
    basin_map map;
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_failure(basin_map_open(&map, path, &failure), BASIN_IO, "pipe: is not a regular file");
}

/* FIPS 180-4's own examples, and lengths about a block's end against Python's hashlib. */
TEST(digests_as_sha256sum_does) {
    static const struct {
        int count;
        const char *text, *digest;
    } cases[] = {{1, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {1, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
                 {55, "a", "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
                 {64, "a", "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
                 {1000, "a", "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"}};
    char text[BASIN_SHA256_TEXT];
    char *path = folder_path(state, "data");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *file = fopen(path, "w");
        for (int k = 0; k < cases[i].count; k++) fputs(cases[i].text, file);
        assert_int_equal(fclose(file), 0);
        assert_ok(basin_file_sha256(text, path, &failure));
        assert_string_equal(text, cases[i].digest);
    }
    assert_failure(basin_file_sha256(text, "/none", &failure), BASIN_IO, "/none");
}

/* Entries count together; what is stored takes no more than the file does. */
TEST(bounds_what_zip_unpacks) {
    static archive a;
    static const char zeros[30000];
    archive_add(&a, "stored", zeros, sizeof zeros, 0);
    archive_add(&a, "one", zeros, sizeof zeros, 1);
    archive_add(&a, "two", zeros, sizeof zeros, 1);
    archive_end(&a);
    for (int small = 0; small < 2; small++) {
        basin_zip zip;
        basin_zip_entry entry;
        basin_error error;
        bool more = true;
        int seen = 0;
        assert_int_equal(basin_zip_open(&zip, a.bytes, a.size, "f", &error), BASIN_OK);
        zip.limit = small ? 70000 : 90000;
        basin_status status = BASIN_OK;
        while (more && !(status = basin_zip_next(&entry, &more, &zip, &error))) seen += more;
        assert_int_equal(status, small ? BASIN_NO_MEMORY : BASIN_OK);
        assert_int_equal(seen, small ? 2 : 3);
        if (small) assert_non_null(strstr(error.text, "f: needs 8.38e-05 GiB of memory, allowed"));
    }
}

int main(void) { return tests_run(folder_new, folder_remove); }
