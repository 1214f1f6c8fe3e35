/* What a handler needs of XLA's FFI for custom calls in C, version 0.3, whose layout is stable;
 * from its documentation, so that no header of XLA's is needed. */
#ifndef BASIN_EAGER_XLA_H
#define BASIN_EAGER_XLA_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_VERSION_MAJOR = 0, XLA_VERSION_MINOR = 3 };

/* Every struct begins with its size and a chain of extensions. */
typedef struct xla_extension {
    size_t size;
    int type;
    struct xla_extension *next;
} xla_extension;
enum { XLA_EXTENSION_METADATA = 1 };

typedef struct xla_version {
    size_t size;
    xla_extension *extension;
    int major, minor;
} xla_version;

/* XLA asks for this once, with a frame that has the extension, instead of making a call. */
typedef struct xla_metadata {
    size_t size;
    xla_version version;
    uint32_t traits;
} xla_metadata;
typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

enum { XLA_S32 = 4, XLA_S64 = 5, XLA_F32 = 11, XLA_F64 = 12, XLA_BF16 = 16 };

typedef struct xla_buffer {
    size_t size;
    xla_extension *extension;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims; /* [rank] */
} xla_buffer;

typedef struct xla_buffers { /* arguments, or results */
    size_t size;
    xla_extension *extension;
    int64_t count;
    int *types;          /* 1: a buffer */
    xla_buffer **buffer; /* [count] */
} xla_buffers;

typedef struct xla_array {
    int dtype;
    size_t count;
    void *data;
} xla_array;

typedef struct xla_text { /* not ended by 0 */
    const char *data;
    size_t length;
} xla_text;

typedef struct xla_attributes { /* sorted by name */
    size_t size;
    xla_extension *extension;
    int64_t count;
    int *types; /* 1: an array, 4: a text */
    void **names;
    void **value;
} xla_attributes;

typedef struct xla_frame {
    size_t size;
    xla_extension *extension;
    const struct xla_api *api;
    void *context;
    int stage;
    xla_buffers args, results;
    xla_attributes attributes;
} xla_frame;

typedef struct xla_error_arguments {
    size_t size;
    xla_extension *extension;
    const char *message;
    int code;
} xla_error_arguments;
enum { XLA_INVALID_ARGUMENT = 3, XLA_RESOURCE_EXHAUSTED = 8, XLA_INTERNAL = 13 };

typedef struct xla_error_holder { /* of an error: its destruction */
    size_t size;
    xla_extension *extension;
    void *error;
} xla_error_holder;

typedef struct xla_stream_arguments {
    size_t size;
    xla_extension *extension;
    void *context;
    void *stream; /* out */
} xla_stream_arguments;

typedef struct xla_allocate_arguments {
    size_t size;
    xla_extension *extension;
    void *context;
    size_t bytes, alignment;
    void *data; /* out */
} xla_allocate_arguments;

typedef struct xla_free_arguments {
    size_t size;
    xla_extension *extension;
    void *context;
    size_t bytes;
    void *data;
} xla_free_arguments;

typedef struct xla_api {
    size_t size;
    xla_extension *extension;
    xla_version version;
    const void *internal;
    void *(*error_create)(xla_error_arguments *arguments);
    void (*error_message)(void *arguments);
    void (*error_destroy)(xla_error_holder *arguments);
    void *(*handler_register)(void *arguments);
    void *(*stream_get)(xla_stream_arguments *arguments);
    void *(*type_register)(void *arguments);
    void *(*context_get)(void *arguments);
    void *(*state_set)(void *arguments);
    void *(*state_get)(void *arguments);
    void *(*memory_allocate)(xla_allocate_arguments *arguments);
    void *(*memory_free)(xla_free_arguments *arguments);
} xla_api;

#endif
