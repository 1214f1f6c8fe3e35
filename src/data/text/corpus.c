/* Reading text: files, plain or packed, standard input, folders; see tokenizer.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "basin/tasks/tokenizer.h"
#include "data/folder.h"
#include "data/packed.h"

typedef struct corpus {
    char *text;
    size_t length, room;
} corpus;

enum { BLOCK = 1 << 20 };

static basin_status no_memory(const char *path, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
}

/* Looks at the first bytes of a file, which are at `start` of the text. */
static basin_status check_start(corpus *c, size_t start, const char *path, basin_error *error) {
    const char *head = c->text + start;
    size_t size = c->length - start;
    if (size >= 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2)))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: is UTF-16; make it UTF-8 first: iconv -f UTF-16 -t UTF-8", path);
    if (size < 3 || memcmp(head, "\xef\xbb\xbf", 3) != 0) return BASIN_OK;
    memmove(c->text + start, head + 3, size - 3);
    c->length -= 3;
    return BASIN_OK;
}

static basin_status take_all(corpus *c, basin_packed *packed, const char *path,
                             basin_error *error) {
    size_t start = c->length;
    for (size_t got = 1; got; c->length += got) {
        basin_status status =
            basin_memory_check((double)c->length, 0, path, BASIN_NO_MEMORY, error);
        if (status) return status;
        if (!basin_array_reserve((void **)&c->text, &c->room, c->length + BLOCK, 1))
            return no_memory(path, error);
        status = basin_packed_read(&got, c->text + c->length, BLOCK - 1, packed, error);
        if (status) return status;
    }
    return check_start(c, start, path, error);
}

static basin_status take_file(corpus *c, const char *path, basin_error *error) {
    basin_packed *packed = NULL;
    void *data = NULL;
    size_t size;
    basin_status status;
    if (basin_stream_is(path)) {
        status = basin_stream_read(&data, &size, path, 0, error);
        if (!status) status = basin_packed_open_memory(&packed, data, size, path, error);
    } else {
        status = basin_packed_open(&packed, path, error);
    }
    if (!status) status = take_all(c, packed, path, error);
    basin_packed_close(packed);
    free(data);
    return status;
}

/* ---- folders ---- */

typedef struct listing {
    char **path; /* [count], below the folder */
    size_t count, room;
} listing;

static bool is_text(const char *path) {
    static const char *const ending[] = {".txt", ".txt.gz", ".txt.zst"};
    size_t length = strlen(path);
    for (int i = 0; i < 3; i++) {
        size_t bytes = strlen(ending[i]);
        if (length > bytes && !strcmp(path + length - bytes, ending[i])) return true;
    }
    return false;
}

static basin_status list(void *context, const char *path, size_t size, basin_error *error) {
    listing *l = context;
    (void)size;
    if (!is_text(path)) return BASIN_OK;
    char *copy = basin_string_copy(path);
    if (!copy || !basin_array_reserve((void **)&l->path, &l->room, l->count + 1, sizeof *l->path)) {
        free(copy);
        return no_memory(path, error);
    }
    l->path[l->count++] = copy;
    return BASIN_OK;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static basin_status take_below(corpus *c, const char *folder, const char *path,
                               basin_error *error) {
    size_t size = strlen(folder) + strlen(path) + 2;
    char *full = malloc(size);
    if (!full) return no_memory(path, error);
    snprintf(full, size, "%s/%s", folder, path);
    basin_status status = take_file(c, full, error);
    free(full);
    return status;
}

static basin_status take_folder(corpus *c, const char *folder, basin_error *error) {
    listing l = {0};
    basin_status status = basin_folder_walk(folder, list, &l, error);
    if (!status && !l.count)
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: no file below it ends in .txt, .txt.gz or .txt.zst", folder);
    if (l.count) qsort(l.path, l.count, sizeof *l.path, by_text);
    for (size_t i = 0; i < l.count && !status; i++)
        status = take_below(c, folder, l.path[i], error);
    for (size_t i = 0; i < l.count; i++) free(l.path[i]);
    free(l.path);
    return status;
}

basin_status basin_text_read(char **text, size_t *length, const char *const *path, int count,
                             basin_error *error) {
    corpus c = {0};
    struct stat info;
    basin_status status = BASIN_OK;
    *text = NULL;
    *length = 0;
    for (int i = 0; i < count && !status; i++) {
        bool folder = stat(path[i], &info) == 0 && S_ISDIR(info.st_mode);
        status = folder ? take_folder(&c, path[i], error) : take_file(&c, path[i], error);
    }
    if (!status && !c.length)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: there is no text", count ? path[0] : "");
    if (status) {
        free(c.text);
        return status;
    }
    c.text[c.length] = '\0';
    *text = c.text;
    *length = c.length;
    return BASIN_OK;
}
