/* Fuzz target: any bytes as CSV, edges alone, or edges and nodes where a byte 1 parts them. */
#include "fuzz/fuzz.h"
#include "fuzz/network.h"

/* Read once more by the schema of what was read, by way of its text: the same features. */
static void read_again(const basin_network *first, const basin_csv_source *source, int sources) {
    basin_schema *schema;
    basin_network *n;
    basin_error error;
    char *text = basin_schema_print(first->schema);
    if (!text || basin_schema_parse(&schema, text, "fuzz", &error)) abort();
    free(text);
    basin_network_options o = {.schema = schema};
    basin_status status = basin_network_csv_read(&n, source, sources, &o, &error);
    network_check_outcome(n, status, &error);
    if (status || n->features != first->features || n->nodes != first->nodes) abort();
    size_t count = (size_t)(n->nodes * n->features);
    if (count && memcmp(n->feature, first->feature, count * sizeof *n->feature) != 0) abort();
    basin_network_close(n);
    basin_schema_free(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_network *n;
    basin_error error;
    const uint8_t *cut = size ? memchr(data, 1, size) : NULL;
    size_t first = cut ? (size_t)(cut - data) : size;
    int sources = cut ? 2 : 1;
    basin_csv_source source[] = {
        {.path = "fuzz", .data = size ? data : (const uint8_t *)"", .size = first},
        {.path = "fuzz", .data = cut ? cut + 1 : NULL, .size = cut ? size - first - 1 : 0}};
    basin_network_options o = {.table = &(basin_table_options){.max_categories = 4},
                               .missing = BASIN_MISSING_MEAN};
    basin_status status = basin_network_csv_read(&n, source, sources, &o, &error);
    network_check_outcome(n, status, &error);
    if (!status) status = basin_network_finish(n, &o, &error);
    if (!status) read_again(n, source, sources);
    basin_network_close(n);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char *const seed[] = {
        "src,dst\na,b\n\"b\",\"c\"\"c\"\n",
        "source\ttarget\ttype\n1\t2\tx\n2\t3\ty\n",
        "src;dst\n1;2\n\1id;f;label;city;split\n1;2.5;0;a;train\n2;;1;b;test\n",
        "\xef\xbb\xbfid,x,y\r\n7,1e3,1\r\n8,-2,\r\n\1src,dst\r\n7,8\r\n",
        "id;a;when;b_at;r\nx;$1.234,5;2026-11-15;1794700800;(3 %)\n\1from_id;to_id\nx;x\n",
        "# edges\n0 1\n1 2 \n",
    };
    if (index > 5) return 0;
    memcpy(out, seed[index], strlen(seed[index]));
    return strlen(seed[index]);
}
