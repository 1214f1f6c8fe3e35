/* Fuzz target: any bytes as a server's journal; after a byte R as lines of JSON, each of which gets
 * its length and checksum, so that what is in records is reached. */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/network.h"
#include "fuzz/serving.h"
#include "tasks/nodes/network/journal.h"

static const char digest[] = "0000000000000000000000000000000000000000000000000000000000000000";

static const basin_network *base(void) {
    static basin_network *n;
    basin_csv_source source[] = {
        {.path = "n", .data = (const uint8_t *)SERVING_NODES, .size = strlen(SERVING_NODES)},
        {.path = "e", .data = (const uint8_t *)SERVING_EDGES, .size = strlen(SERVING_EDGES)}};
    basin_network_options o = {.table = &(basin_table_options){.edge_type = "kind"}};
    if (!n &&
        (basin_network_csv_read(&n, source, 2, &o, NULL) || basin_network_finish(n, &o, NULL)))
        abort();
    return n;
}

static size_t put_record(uint8_t *out, const void *json, size_t length) {
    uint32_t sum = (uint32_t)crc32_z(0, json, length);
    int head = sprintf((char *)out, "%08zx %08" PRIx32 " ", length, sum);
    memcpy(out + head, json, length);
    out[(size_t)head + length] = '\n';
    return (size_t)head + length + 1;
}

/* The first record, then one for each line. */
static uint8_t *frame(size_t *size, const uint8_t *line, size_t length) {
    char head[200];
    uint8_t *out = malloc(300 + 20 * length + length);
    if (!out) abort();
    int first = sprintf(head, "{\"basin_journal\":2,\"base\":\"%s\"}", digest);
    *size = put_record(out, head, (size_t)first);
    while (length) {
        const uint8_t *end = memchr(line, '\n', length);
        size_t one = end ? (size_t)(end - line) : length;
        *size += put_record(out + *size, line, one);
        length -= one + (end != NULL);
        line += one + (end != NULL);
    }
    return out;
}

/* What is taken is written in JSON once more, and has the same meaning. */
static basin_status apply(void *context, cJSON *tree, const char *what, basin_error *error) {
    static const basin_door door = {.latest = 30000};
    basin_network *n = NULL;
    (void)context;
    for (int again = 0; again < 2; again++) {
        basin_additions a = {.schema = base()->schema, .door = again ? NULL : &door};
        basin_status status = basin_additions_put(&a, tree, what, error);
        if (!status) status = basin_additions_finish(&a, error);
        if (status && (again || error->status != status || !*error->text)) abort();
        basin_csv_source source[2];
        int sources = 0;
        for (int k = 0; k < 2 && !status; k++)
            if (a.table[k])
                source[sources++] = (basin_csv_source){.path = "fuzz",
                                                       .data = (const uint8_t *)a.table[k],
                                                       .size = strlen(a.table[k]),
                                                       .exact = true};
        basin_network_options o = {.schema = base()->schema,
                                   .base = base(),
                                   .missing = BASIN_MISSING_MEAN,
                                   .table = &(basin_table_options){.unknown = BASIN_UNKNOWN_SKIP}};
        if (!status && sources) {
            status = basin_network_csv_read(&n, source, sources, &o, error);
            network_check_outcome(n, status, error);
            basin_network_close(n);
        }
        basin_additions_free(&a);
        if (status) break;
    }
    return BASIN_OK;
}

static int64_t records(const char *path, bool fixed, int64_t undo) {
    basin_journal *j;
    basin_error error;
    basin_status status = basin_journal_open(&j, path, digest, fixed, &error);
    if (status && (error.status != status || !*error.text || strchr(error.text, '\n'))) abort();
    if (status) return -1;
    int64_t count = j->records;
    if (basin_journal_replay(j, 0, j->bytes, apply, NULL, &error)) abort(); /* it opened */
    if (undo && !basin_journal_undo(j, undo, &error)) count = -1;
    basin_journal_close(j);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[MEMORY_PATH];
    basin_journal *any;
    uint8_t *framed = size && *data == 'R' ? frame(&size, data + 1, size - 1) : NULL;
    int fd = memory_file(path, framed ? framed : data, size);
    basin_error error;
    basin_journal_is(path);
    int64_t looked = records(path, true, 0), served = records(path, false, 0);
    if (looked >= 0 && served >= 0 && looked != served) abort();
    if (served >= 0 && records(path, false, 1 + (int64_t)(size % 3)) != served && served > 0 &&
        records(path, true, 0) < 0)
        abort(); /* what was taken back can be read as well */
    if (!basin_journal_open(&any, path, NULL, true, &error)) basin_journal_close(any);
    close(fd);
    free(framed);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char two[] = "R" SERVING_ADDITION "\n{\"undo\":107}\n" SERVING_ADDITION;
    static const char *const lines[] = {NULL, two, "R3\n[1]"}; /* the last: JSON, but no objects */
    size_t size;
    if (index >= (int)(sizeof lines / sizeof *lines)) return 0;
    if (lines[index]) {
        memcpy(out, lines[index], strlen(lines[index]));
        return strlen(lines[index]);
    }
    uint8_t *framed = frame(&size, (const uint8_t *)two + 1, sizeof two - 2);
    memcpy(out, framed, size);
    free(framed);
    return size;
}
