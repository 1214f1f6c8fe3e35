/* Small archives in memory, as seeds. */
#ifndef TESTS_FUZZ_PACK_H
#define TESTS_FUZZ_PACK_H

#include <archive.h>
#include <archive_entry.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct packed_file {
    const char *name;
    const void *data;
    size_t size;
} packed_file;

enum { PACK_TAR, PACK_TAR_GZ, PACK_ZIP, PACK_FORMS };

static inline size_t pack(uint8_t *out, size_t room, int form, const packed_file *file, int files) {
    size_t used = 0;
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    if (!a || !entry) abort();
    if (form == PACK_ZIP)
        archive_write_set_format_zip(a);
    else
        archive_write_set_format_ustar(a);
    if (form == PACK_TAR_GZ) archive_write_add_filter_gzip(a);
    archive_write_set_bytes_per_block(a, 512);
    archive_write_set_bytes_in_last_block(a, 1);
    if (archive_write_open_memory(a, out, room, &used) != ARCHIVE_OK) abort();
    for (int i = 0; i < files; i++) {
        archive_entry_clear(entry);
        archive_entry_set_pathname(entry, file[i].name);
        archive_entry_set_size(entry, (la_int64_t)file[i].size);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        if (archive_write_header(a, entry) != ARCHIVE_OK) abort();
        archive_write_data(a, file[i].data, file[i].size);
    }
    archive_entry_free(entry);
    if (archive_write_close(a) != ARCHIVE_OK) abort();
    archive_write_free(a);
    return used;
}

#endif
