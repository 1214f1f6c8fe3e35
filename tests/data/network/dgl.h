/* Writes graphs as dgl.save_graphs does, for tests and as seeds of the fuzz target. */
#ifndef TESTS_DATA_DGL_H
#define TESTS_DATA_DGL_H

#include <stdint.h>
#include <string.h>

enum { DGL_ROOM = 1 << 14, DGL_COO = 1, DGL_CSR = 2, DGL_CSC = 4 };

typedef struct dgl {
    unsigned char bytes[DGL_ROOM];
    size_t size;
} dgl;

static inline void dgl_put(dgl *d, const void *data, size_t bytes) {
    if (d->size + bytes > DGL_ROOM) return;
    if (bytes) memcpy(d->bytes + d->size, data, bytes);
    d->size += bytes;
}

static inline void dgl_u64(dgl *d, uint64_t value) { dgl_put(d, &value, sizeof value); }

static inline void dgl_string(dgl *d, const char *text) {
    dgl_u64(d, strlen(text));
    dgl_put(d, text, strlen(text));
}

/* code: 0 int, 1 unsigned, 2 float. `columns` 0: one axis. */
static inline void dgl_tensor(dgl *d, int code, int bits, int64_t rows, int64_t columns,
                              const void *data) {
    int32_t head[3] = {1, 0, columns ? 2 : 1};
    unsigned char type[4] = {(unsigned char)code, (unsigned char)bits, 1, 0};
    size_t bytes = (size_t)(rows * (columns ? columns : 1) * bits / 8);
    dgl_u64(d, UINT64_C(0xdd5e40f096b4a13f));
    dgl_u64(d, 0);
    dgl_put(d, head, sizeof head);
    dgl_put(d, type, sizeof type);
    dgl_u64(d, (uint64_t)rows);
    if (columns) dgl_u64(d, (uint64_t)columns);
    dgl_u64(d, bytes);
    dgl_put(d, data, bytes);
}

/* A CSR of `rows` rows over 64-bit numbers. */
static inline void dgl_csr(dgl *d, int64_t rows, int64_t columns, const int64_t *start,
                           const int64_t *col, int64_t count, const int64_t *number) {
    dgl_u64(d, UINT64_C(0xdd6cd31205dff127));
    dgl_u64(d, (uint64_t)columns);
    dgl_u64(d, (uint64_t)rows);
    dgl_tensor(d, 0, 64, rows + 1, 0, start);
    dgl_tensor(d, 0, 64, count, 0, col);
    dgl_tensor(d, 0, 64, number ? count : 0, 0, number);
    dgl_put(d, "", 1);
}

static inline void dgl_meta(dgl *d, int64_t types, const int64_t *start, const int64_t *to,
                            int64_t count) {
    int64_t number[] = {0, 1, 2, 3, 4, 5, 6, 7};
    dgl_u64(d, UINT64_C(0xdd3c5ffe20046abf));
    dgl_csr(d, types, types, start, to, count, number);
}

static inline void dgl_relation(dgl *d, int form, int64_t nodes, const int64_t *a, const int64_t *b,
                                int64_t count) {
    const int64_t start[] = {0, 1}, to[] = {0};
    dgl_u64(d, UINT64_C(0xdd2e60f0f6b4a127));
    dgl_u64(d, UINT64_C(0x100000000) | (uint64_t)form);
    dgl_u64(d, UINT64_C(0x100000007));
    dgl_meta(d, 1, start, to, 1);
    if (form != DGL_COO) {
        dgl_csr(d, nodes, nodes, a, b, count, NULL);
        return;
    }
    dgl_u64(d, UINT64_C(0xdd61ffd305dff127));
    dgl_u64(d, (uint64_t)nodes);
    dgl_u64(d, (uint64_t)nodes);
    dgl_tensor(d, 0, 64, count, 0, a);
    dgl_tensor(d, 0, 64, count, 0, b);
    dgl_tensor(d, 0, 64, 0, 0, NULL);
    dgl_put(d, "\0", 2);
}

static inline void dgl_begin(dgl *d) {
    d->size = 0;
    dgl_u64(d, UINT64_C(0xdd2e4ff046b4a13f));
    dgl_u64(d, 2);
    dgl_u64(d, 2);
    dgl_u64(d, 1);
    memset(d->bytes + d->size, 0xa5, 4096 - d->size); /* rubbish, as DGL leaves it */
    d->size = 4096;
    dgl_u64(d, 4112);
    dgl_u64(d, 0);
    dgl_u64(d, UINT64_C(0xdd589fbe35224abf));
}

/* Four nodes, 0 -> 1, 0 -> 2, 3 -> 2, in the form asked for; features, one-hot labels, masks of two
 * splits. Where `far` is not 0 an edge leads to node `far`. */
static inline void dgl_small(dgl *d, int form, int64_t far) {
    const int64_t start[] = {0, 1}, to[] = {0};
    const int64_t from_coo[] = {0, 0, 3}, to_coo[] = {1, far ? far : 2, 2};
    const int64_t row[] = {0, 2, 2, 2, 3}, col[] = {1, far ? far : 2, 2};
    const int64_t in_row[] = {0, 0, 1, 3, 3}, in_col[] = {0, far ? far : 0, 3};
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 0, 0, 1, 1, 0, 0, 1};
    const uint8_t mask[] = {1, 0, 0, 1, 0, 0, 0, 0}; /* [N, 2] */
    dgl_begin(d);
    dgl_meta(d, 1, start, to, 1);
    dgl_u64(d, 1);
    if (form == DGL_COO)
        dgl_relation(d, form, 4, from_coo, to_coo, 3);
    else
        dgl_relation(d, form, 4, form == DGL_CSR ? row : in_row, form == DGL_CSR ? col : in_col, 3);
    dgl_u64(d, 1);
    dgl_u64(d, 4);
    dgl_u64(d, 1);
    dgl_u64(d, 3);
    dgl_string(d, "feature");
    dgl_tensor(d, 2, 32, 4, 2, x);
    dgl_string(d, "label");
    dgl_tensor(d, 2, 32, 4, 2, y);
    dgl_string(d, "train_masks");
    dgl_tensor(d, 1, 8, 4, 2, mask);
    dgl_u64(d, 1);
    dgl_u64(d, 0);
    dgl_u64(d, 1);
    dgl_string(d, "_N");
    dgl_u64(d, 1);
    dgl_string(d, "_E");
}

/* Two node types, "shop" (2 nodes) and "user" (3, labelled), relations shop -> user, user -> user.
 */
static inline void dgl_two_types(dgl *d) {
    const int64_t start[] = {0, 1, 2}, to[] = {1, 1};
    const int64_t a[] = {0, 1}, b[] = {2, 0}, y[] = {0, 1, 0};
    dgl_begin(d);
    dgl_meta(d, 2, start, to, 2);
    dgl_u64(d, 2);
    dgl_relation(d, DGL_COO, 3, a, b, 2);
    dgl_relation(d, DGL_COO, 3, a, b, 2);
    dgl_u64(d, 2);
    dgl_u64(d, 2);
    dgl_u64(d, 3);
    dgl_u64(d, 2);
    dgl_u64(d, 0);
    dgl_u64(d, 1);
    dgl_string(d, "label");
    dgl_tensor(d, 0, 64, 3, 0, y);
    dgl_u64(d, 2);
    dgl_u64(d, 0);
    dgl_u64(d, 0);
    dgl_u64(d, 2);
    dgl_string(d, "shop");
    dgl_string(d, "user");
    dgl_u64(d, 2);
    dgl_string(d, "sells");
    dgl_string(d, "knows");
}

#endif
