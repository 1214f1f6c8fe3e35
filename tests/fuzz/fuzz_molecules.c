/* Fuzz target: any bytes as a table of molecules, and line by line as SMILES in memory. */
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/graphset.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"

enum { LINES = 64 };

static void read_one(const char *path, const basin_graphset_options *options) {
    basin_graphset set;
    basin_error error = {0};
    basin_status status = basin_graphset_read(&set, path, options, &error);
    if (status && (error.status != status || !*error.text)) abort();
    if (status) return;
    for (int64_t i = 0; i < set.graphs; i++) {
        int64_t atoms = set.node_start[i + 1] - set.node_start[i];
        if (atoms < 1 || set.edge_start[i] > set.edge_start[i + 1]) abort();
        for (int64_t e = 2 * set.edge_start[i]; e < 2 * set.edge_start[i + 1]; e++)
            if (set.edge[e] < 0 || set.edge[e] >= atoms) abort();
    }
    basin_graphset_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[MEMORY_PATH], *text = malloc(size + 1), *next = text;
    const char *line[LINES];
    int64_t count = 0;
    int fd = memory_file(path, data, size);
    if (!text) abort();
    read_one(path, &(basin_graphset_options){.smiles = "smiles", .target = "y"});
    read_one(path, &(basin_graphset_options){.smiles = "smiles"});
    close(fd);
    memcpy(text, data, size), text[size] = 0;
    while (next && count < LINES) line[count++] = strsep(&next, "\n");
    read_one(NULL, &(basin_graphset_options){.text = line, .count = count});
    free(text);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char *const seed[] = {
        "smiles,y\nCC(=O)Oc1ccccc1C(=O)O,1\n[Na+].[Cl-],0\nN[C@@H](C)C(=O)O,1\n",
        "id\tsmiles\ty\na\tC1CC2%12CC1.C2%12\t0.5\nb\t[13CH4]\t-1e3\nc\t*C#N->[Fe]\t\n",
        "c1ccc2[nH]ccc2c1\nO=C1c2ccccc2C(=O)N1\nF/C=C/F\nC(C)(C)(C\n[H][H]\n",
    };
    if (index > 2) return 0;
    return strlen(strcpy((char *)out, seed[index]));
}
