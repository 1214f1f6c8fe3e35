/* Readers of files when memory is short: every allocation fails once, through basin_network_open as
 * the program calls it; an error each time, and nothing leaks. (CSV from memory, npz and
 * the mapped form are in test_network_alloc.c.) */
#include <zlib.h>

#include "support/alloc_fail.h"
#include "tasks/nodes/network/networks.h"

typedef struct files {
    const char *path[2];
    int count;
    basin_network_options options;
} files;

static basin_status read_files(void *context) {
    const files *f = context;
    basin_network *n = NULL;
    basin_status status = basin_network_open(&n, f->path, f->count, &f->options, NULL);
    basin_network_close(n);
    return status;
}

static void write_text(const char *path, const char *text) {
    gzFile file = gzopen(path, strstr(path, ".gz") ? "wb" : "wbT");
    assert_non_null(file);
    assert_int_equal(gzputs(file, text), (int)strlen(text));
    gzclose(file);
}

TEST(csv_files) {
    char *nodes = folder_path(state, "nodes.csv");
    char *edges = folder_path(state, "edges.csv.gz");
    files f = {.path = {nodes, edges}, .count = 2, .options = {.missing = BASIN_MISSING_MEAN}};
    write_text(nodes, "id;f;city;label\n\"a b\";1;r;1\nb;;s;0\nc;3;r;\n");
    write_text(edges, "src,dst,type\na b,b,x\nb,c,y\nc,c,x\n");
    assert_true(alloc_fail_sweep(read_files, &f) > 80);
    /* what edges carry, and a split by their times */
    write_text(edges, "src,dst,kind,amount,time\na b,b,x,1,1\nb,c,y,2,2\nb,a b,x,3,3\n");
    f.options.split_time = "f", f.options.split_train = 0.5, f.options.split_val = 0.5;
    assert_true(alloc_fail_sweep(read_files, &f) > 100);
}

int main(void) { return tests_run(folder_new, folder_remove); }
