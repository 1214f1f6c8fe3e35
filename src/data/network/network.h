/* What the files that make networks share: the readers, one a format, and pieces of the container.
 */
#ifndef BASIN_DATA_NETWORK_NETWORK_H
#define BASIN_DATA_NETWORK_NETWORK_H

#include <string.h>

#include "basin/tasks/network.h"

/* The most nodes a network may have: nodes are int32_t in `col`. */
enum { BASIN_NETWORK_NODES = INT32_MAX - 1 };

/* Element i of whole numbers, int64_t or int32_t, which may lie in a file at any byte. In line: it
 * is what building a relation of many million edges does most. */
static inline int64_t basin_whole_at(const void *data, basin_dtype dtype, int64_t i) {
    int64_t wide;
    int32_t narrow;
    if (dtype == BASIN_I64) {
        memcpy(&wide, (const char *)data + i * 8, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)data + i * 4, sizeof narrow);
    return narrow;
}

/* Readers. Parsers read from memory and copy what they need; `path` is what errors call it. */
basin_status basin_network_npz_read(basin_network **network, const basin_bundle *bundle,
                                    const basin_network_options *options, basin_error *error);
bool basin_network_dgl_is(const void *data, size_t size);
basin_status basin_network_dgl_parse(basin_network **network, const void *data, size_t size,
                                     const char *path, const basin_network_options *options,
                                     basin_error *error);
bool basin_network_mat_is(const void *data, size_t size);
basin_status basin_network_mat_read(basin_network **network, const void *data, size_t size,
                                    const char *path, const basin_network_options *options,
                                    basin_error *error);
/* A table: a CSV file by its path, or in memory where `data` is not NULL. */
typedef struct basin_csv_source {
    const char *path; /* what messages call it */
    const void *data;
    size_t size;
    bool no_header; /* as basin_network_options has it */
} basin_csv_source;

basin_status basin_network_csv_read(basin_network **network, const basin_csv_source *source,
                                    int sources, const basin_network_options *options,
                                    basin_error *error);
/* Takes the bundle over where it succeeds. */
basin_status basin_network_file_read(basin_network **network, basin_bundle *bundle,
                                     basin_error *error);
/* The tensors and metadata of such a file into a bundle, which borrows from the network. */
basin_status basin_network_file_put(basin_bundle *bundle, const basin_network *network,
                                    basin_error *error);
/* Whether a bundle is a network that can be mapped. */
bool basin_network_file_is(const basin_bundle *bundle);

/* `options`, or the defaults in place of NULL. */
const basin_network_options *basin_network_options_or(const basin_network_options *options);

/* Room for features [N, F], not filled; owned by the network. */
basin_status basin_network_alloc_features(basin_network *network, int64_t features,
                                          const basin_network_options *options, basin_error *error);
/* Gives a network that was read its union, where the options want one, and its schema, or makes it
 * fit the options', and fills its gaps. */
basin_status basin_network_finish(basin_network *network, const basin_network_options *options,
                                  basin_error *error);
/* Treats NaN and infinities as `missing` says; a mapped network gets a copy of its features. */
basin_status basin_network_fill_missing(basin_network *network, basin_missing missing,
                                        basin_error *error);
/* Forgets the labels of the first so many nodes, and those below 0; notes a single class. */
void basin_network_finish_labels(basin_network *network, const basin_network_options *options);
/* The same for a mapped network, whose labels are copied first; nothing where none are to go. */
basin_status basin_network_forget_labels(basin_network *network,
                                         const basin_network_options *options, basin_error *error);
/* An error where options say how files are to be read: a folder of parts has no use for them. */
basin_status basin_network_options_check_parts(const basin_network_options *options,
                                               const char *folder, basin_error *error);
/* Where the first feature that is NaN or infinite lies in [N, F], or -1; and what to say of it. */
int64_t basin_network_first_gap(const basin_network *network);
basin_status basin_network_fail_gap(const basin_network *network, int64_t at, basin_error *error);
/* Where the rows of a relation begin and end; and ids, names of columns, labels and masks. */
basin_status basin_network_check_rows(const basin_network *network, const basin_relation *relation,
                                      basin_error *error);
basin_status basin_network_check_nodes(const basin_network *network, basin_error *error);
/* basin_network_check without the features. */
basin_status basin_network_check_tables(const basin_network *network, basin_error *error);
void basin_relation_free(basin_relation *relation);
/* Where the entry of `other` is in a node's row, or -1. */
int64_t basin_relation_find(const basin_relation *relation, int64_t node, int32_t other);

/* ---- facts.c ---- */

void basin_facts_free(basin_facts *facts);
basin_status basin_facts_copy(basin_facts *copy, const basin_facts *facts, basin_error *error);
/* Takes those of a later row into those of an edge, or becomes them where nothing is there yet. */
void basin_facts_merge(float *to, const float *later, const basin_facts *facts);
/* Finds the latest time of all edges. */
void basin_network_find_now(basin_network *network);
/* Zeros for every entry, where edges carry facts. */
basin_status basin_relation_alloc_facts(basin_relation *relation, const basin_facts *facts,
                                        basin_error *error);
/* Merges facts into the entry of `other` in a node's row; loops that were dropped have none. */
void basin_relation_add_fact(basin_relation *relation, int64_t node, int64_t other,
                             const float *fact, const basin_facts *facts);
/* Merges the facts of a relation's edges into those of another, whose edges they are, too. */
void basin_relation_merge_facts(basin_relation *to, const basin_relation *from, int64_t nodes,
                                const basin_facts *facts);
/* Copies the facts of edges from the whole, of which the relation is a part. */
basin_status basin_relation_copy_facts(basin_relation *part, const basin_relation *whole,
                                       const int64_t *node /* [nodes] of the whole */,
                                       int64_t nodes, const basin_facts *facts, basin_error *error);
/* The facts of a relation from rows of edges, in their order; `cell` is as the schema has it. The
 * latest row goes by `time`, NULL where the schema has no times: a float of days has no minutes. */
basin_status basin_network_add_facts(basin_network *network, basin_relation *relation,
                                     const basin_edges *edges, const float *cell,
                                     const double *time /* [edges] */, basin_error *error);

/* Adds an empty relation of that name; unique names only. */
basin_status basin_network_new_relation(basin_relation **relation, basin_network *network,
                                        const char *name, basin_error *error);
/* basin_network_add_union, in a file where the options have a folder for it. */
basin_status basin_network_unite(basin_network *network, const basin_network_options *options,
                                 basin_error *error);
/* Sorts each row of a CSR, merges equal entries if told, and gives back what is left over. */
basin_status basin_relation_tidy(basin_relation *relation, int64_t nodes, bool merge,
                                 basin_error *error);

/* basin_network_pairs of a part (basin/tasks/cut.h): node i of its halo is key room + i. */
basin_status basin_network_pairs_apart(basin_pairs *pairs, const basin_network *network,
                                       int relation, basin_self_loops self, int64_t room,
                                       int64_t halo, basin_error *error);

/* Adds a line to the note; one that cannot be kept leaves a mark, of which basin_network_check_note
 * makes an error. */
void basin_network_add_note(basin_network *network, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
basin_status basin_network_check_note(const basin_network *network, basin_error *error);

/* Names collected one by one. */
typedef struct basin_names_builder {
    basin_names names;
    size_t at_capacity, text_capacity;
} basin_names_builder;

basin_status basin_names_add(basin_names_builder *builder, const char *text, size_t length,
                             basin_error *error);
/* Whether they are 0, 1, .. */
bool basin_names_are_numbers(const basin_names *names);
basin_status basin_names_copy(basin_names *to, const basin_names *from, basin_error *error);
void basin_names_free(basin_names *names);

#endif
