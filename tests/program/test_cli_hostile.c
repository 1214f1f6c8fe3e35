/* What a hostile or broken surrounding does to the program: damaged files, odd descriptors, limits.
 * Each ends with one line and exit 1, never with a signal. */
#include "program/accounts.h"

#include "tasks/nodes/network/make.h"

#include <math.h>
#include <sys/stat.h>

/* Overwrites bytes of a file, from the end where `at` is negative. */
static void patch(void **state, const char *name, long at, const void *bytes, size_t size) {
    FILE *file = fopen(folder_path(state, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Where the data of a tensor begin. */
static long tensor_at(void **state, const char *name, const char *tensor) {
    char header[65536], key[64];
    uint64_t length;
    FILE *file = fopen(folder_path(state, name), "rb");
    assert_non_null(file);
    assert_int_equal(fread(&length, 1, 8, file), 8);
    assert_true(length < sizeof header && fread(header, 1, length, file) == length);
    fclose(file);
    header[length] = 0;
    snprintf(key, sizeof key, "\"%s\":", tensor);
    const char *found = strstr(header, key);
    assert_non_null(found);
    found = strstr(found, "data_offsets\":[");
    assert_non_null(found);
    return (long)length + 8 + atol(found + strlen("data_offsets\":["));
}

TEST(checks_mapped_networks_everywhere) {
    write_table(state);
    run_ok(state, "data convert accounts.csv transfers.csv n.basin -q");
    run_ok(state, "anomaly train n.basin -q -o d.safetensors --members 1 "
                  "--epochs 4 --threads 1");
    float nan = NAN;
    run_ok(state, "data convert n.basin gap.basin -q");
    patch(state, "gap.basin", tensor_at(state, "gap.basin", "x") + 4, &nan, sizeof nan);
    assert_error(run(state, "anomaly score d.safetensors gap.basin"), 1,
                 "feature 1 age of node acc0");
    const program *p = run_ok(state, "anomaly score d.safetensors gap.basin --missing mean");
    assert_null(strstr(p->out, "nan"));
    patch(state, "n.basin", tensor_at(state, "n.basin", "col.homo"), "\377\377\377\177", 4);
    assert_error(run(state, "anomaly score d.safetensors n.basin"), 1, "leads to node 2147483647");
    assert_error(run(state, "anomaly train n.basin -o e.safetensors"), 1, "leads to node");
    assert_error(run(state, "anomaly eval n.basin"), 1, "leads to node");
    assert_error(run(state, "anomaly explain d.safetensors acc0 n.basin"), 1, "leads to node");
}

/* The same in a shell that was told something first; BASIN stands for the program. */
static const program *run_after(void **state, const char *before, const char *arguments) {
    char script[2000];
    char *path = folder_path(state, ".script");
    snprintf(script, sizeof script, "cd '%s'; { %s\n%s %s; } >.out 2>.err; echo $? >.code\n",
             folder_path(state, "."), before, BASIN_PROGRAM, arguments);
    assert_int_equal(file_put(path, script, strlen(script)), 0);
    snprintf(script, sizeof script, "sh '%s'", path);
    int status = system(script);
    static program p;
    char code[20];
    assert_true(WIFEXITED(status));
    slurp(p.out, sizeof p.out, folder_path(state, ".out"));
    slurp(p.err, sizeof p.err, folder_path(state, ".err"));
    slurp(code, sizeof code, folder_path(state, ".code"));
    p.code = atoi(code);
    unlink(folder_path(state, ".script"));
    unlink(folder_path(state, ".code"));
    return &p;
}

TEST(reports_a_limit_of_file_sizes) {
    write_table(state);
    int before = folder_count(state);
#ifdef BASIN_COVERAGE
    skip(); /* the counts of such a build do not fit either, and it says so */
#endif
    const program *p =
        run_after(state, "ulimit -f 8", "data convert accounts.csv transfers.csv big.basin -q");
    assert_error(p, 1, "big.basin: cannot write: File too large");
    assert_int_equal(folder_count(state), before);
}

/* With standard error closed, the next file opened would get its number, and notes with it. */
TEST(keeps_notes_out_of_files) {
    char text[65536];
    assert_int_equal(mkdir(folder_path(state, "photos"), 0777), 0);
    for (int i = 0; i < 18; i++) {
        char name[40];
        uint8_t *bytes;
        basin_picture picture = make_picture(30, 30, 3, i);
        size_t size = make_jpeg(&bytes, &picture, (jpeg_form){0});
        snprintf(name, sizeof name, "photos/%d.jpg", i);
        assert_int_equal(file_put(folder_path(state, name), bytes, i ? size : 100), 0);
        basin_picture_free(&picture);
        free(bytes);
    }
    assert_int_equal(
        run_after(state, "exec 2>&-",
                  "image train photos -o n.safetensors --epochs 1 --batch 8 --dim 16 --heads 2 "
                  "--head-dim 8 --memories 32 --threads 1 --log log.jsonl --log-every 1")
            ->code,
        0);
    slurp(text, sizeof text, folder_path(state, "log.jsonl"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) json_read(line);
    const program *p = run_after(state, "exec >&-", "--version");
    assert_int_equal(p->code, 1);
    for (int i = 0; i < 18; i++) {
        char name[40];
        snprintf(name, sizeof name, "photos/%d.jpg", i);
        unlink(folder_path(state, name));
    }
}

TEST(refuses_pipes) {
    assert_int_equal(mkfifo(folder_path(state, "pipe"), 0666), 0);
    folder_put(state, "e.csv", "src,dst\na,b\n");
    assert_error(run(state, "data info pipe"), 1, "pipe: is not a regular file");
    assert_error(run(state, "data info e.csv pipe"), 1, "pipe: is not a regular file");
}

TEST(shows_no_control_bytes) {
    folder_put(state, "e.csv", "src,dst\na,b\n");
    const program *p =
        run_ok(state, "data convert e.csv \"$(printf 'a\\033[31mb\\302\\233m.basin')\"");
    assert_contains(p->out, "a?[31mb??m.basin\n");
    assert_null(strchr(p->out, 033));
    p = run(state, "data info \"$(printf 'no\\033such')\"");
    assert_error(p, 1, "no?such: cannot open");
    p = run(state, "data info e.csv --\"$(printf 'no\\033such')\"");
    assert_error(p, 2, "no?such");
}

/* Ids come back as they were. */
TEST(keeps_ids_that_look_like_formulas) {
    static const char *const odd[] = {"=1+2", "@x", "-5", "+a", "plain"};
    char edges[4096] = "src,dst\n", nodes[4096] = "id,f,label\n";
    size_t e = strlen(edges), n = strlen(nodes);
    for (int i = 0; i < 60; i++) {
        char id[20];
        snprintf(id, sizeof id, "n%d", i);
        const char *name = i < 5 ? odd[i] : id;
        n += (size_t)snprintf(nodes + n, sizeof nodes - n, "%s,%d,%d\n", name, i, i % 3 == 0);
        e += (size_t)snprintf(edges + e, sizeof edges - e, "%s,n%d\n", name, 5 + i * 7 % 55);
    }
    assert_int_equal(file_put(folder_path(state, "e.csv"), edges, e), 0);
    assert_int_equal(file_put(folder_path(state, "n.csv"), nodes, n), 0);
    run_ok(state, "anomaly train e.csv n.csv -q -o f.safetensors --members 1 "
                  "--epochs 1 --threads 1");
    const program *p = run_ok(state, "anomaly score f.safetensors e.csv n.csv -q");
    for (int i = 0; i < 5; i++) {
        char line[40];
        snprintf(line, sizeof line, "\n%s,", odd[i]);
        assert_contains(p->out, line);
    }
}

/* A file that is cut short while it is mapped: one line, no signal. Where the page
 * behind the cut was read before, the program may also end well. */
TEST(notes_a_file_that_shrinks) {
    char line[3 * PATH_TEXT];
    snprintf(line, sizeof line,
             "cd '%s' && awk 'BEGIN { print \"src,dst\"; for (i = 0; i < 400000; i++) print "
             "i %% 5003 \",\" i * 7919 %% 4999 }' >s.csv",
             (const char *)*state);
    assert_int_equal(system(line), 0);
    run_ok(state, "data convert s.csv s.basin -q");
    char *path = folder_path(state, "s.basin");
    snprintf(line, sizeof line,
             "cd '%s'; %s data info s.basin >.out 2>.err & p=$!; while ! grep -q s.basin "
             "/proc/$p/maps 2>/dev/null && kill -0 $p 2>/dev/null; do :; done; truncate -s 8192 "
             "s.basin; wait $p; echo $? >.code",
             (const char *)*state, BASIN_PROGRAM);
    assert_int_equal(system(line), 0);
    char err[4096], code[20];
    slurp(err, sizeof err, (path = folder_path(state, ".err")));
    slurp(code, sizeof code, (path = folder_path(state, ".code")));
    unlink(path);
    assert_true(atoi(code) <= 1);
    /* A busy machine may cut the file between two openings: the header does not fit then. */
    if (atoi(code) && !strstr(err, "do not lie within the"))
        assert_contains(err, "a file became shorter while it was read");
}

int main(void) { return tests_run(folder_new, program_teardown); }
