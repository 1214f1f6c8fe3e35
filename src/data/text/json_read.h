/* Reading tokenizer.json, in two files: how the tokenizer works (json_read.c), and its tokens
 * (json_tokens.c). */
#ifndef BASIN_DATA_TEXT_JSON_READ_H
#define BASIN_DATA_TEXT_JSON_READ_H

#include "data/text/tokenizer.h"
#include "io/json.h"

typedef struct basin_tokenizer_source {
    basin_tokenizer *tokenizer;
    const char *path; /* what errors call it */
    basin_error *error;
} basin_tokenizer_source;

/* A member of an object, NULL where it is absent or null. */
const cJSON *basin_json_member(const cJSON *object, const char *name);
/* A member that is true or false, or absent. */
basin_status basin_json_flag(bool *value, const cJSON *object, const char *name, bool absent,
                             const basin_tokenizer_source *source);
/* An error where an object has members that are not on the NULL-terminated list. */
basin_status basin_json_only(const cJSON *object, const char *what, const char *const *known,
                             const basin_tokenizer_source *source);

/* The tokens: those of `vocab`, an object, and `added`, an array or NULL. */
basin_status basin_tokenizer_read_tokens(const basin_tokenizer_source *source, const cJSON *vocab,
                                         const cJSON *added);
basin_status basin_tokenizer_read_merges(const basin_tokenizer_source *source, const cJSON *merges);
/* The number of a token by the text that the file writes for it; -1: none. */
basin_status basin_tokenizer_read_name(int64_t *id, const basin_tokenizer_source *source,
                                       const char *name);

#endif
