/* Fuzz target: any bytes as CSV, edges alone, or edges and nodes where a byte 1 parts them. */
#include "fuzz/fuzz.h"
#include "fuzz/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_network *n;
    basin_error error;
    const uint8_t *cut = size ? memchr(data, 1, size) : NULL;
    size_t first = cut ? (size_t)(cut - data) : size;
    basin_csv_source source[] = {
        {.path = "fuzz", .data = size ? data : (const uint8_t *)"", .size = first},
        {.path = "fuzz", .data = cut ? cut + 1 : NULL, .size = cut ? size - first - 1 : 0}};
    basin_network_options o = {.missing = BASIN_MISSING_MEAN, .max_categories = 4};
    basin_status status = basin_network_csv_read(&n, source, cut ? 2 : 1, &o, &error);
    network_check_outcome(n, status, &error);
    basin_network_free(n);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char *const seed[] = {
        "src,dst\na,b\n\"b\",\"c\"\"c\"\n",
        "source\ttarget\ttype\n1\t2\tx\n2\t3\ty\n",
        "src;dst\n1;2\n\1id;f;label;city;split\n1;2.5;0;a;train\n2;;1;b;test\n",
        "\xef\xbb\xbfid,x,y\r\n7,1e3,1\r\n8,-2,\r\n\1src,dst\r\n7,8\r\n",
    };
    if (index > 3) return 0;
    memcpy(out, seed[index], strlen(seed[index]));
    return strlen(seed[index]);
}
