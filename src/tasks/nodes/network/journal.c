/* The journal of a server; see journal.h. */
#include "tasks/nodes/network/journal.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- additions ---- */

static const char *const kinds[] = {"accounts", "edges"};
static const char *const usual[2][2] = {{"id", "id"}, {"source", "target"}};
static const basin_column_type role[2][2] = {{BASIN_COLUMN_ID, BASIN_COLUMN_ID},
                                             {BASIN_COLUMN_SOURCE, BASIN_COLUMN_TARGET}};

/* Where a row is, for errors, and the columns that it may have. */
typedef struct place {
    const char *path;
    int kind;
    long long row;
    const basin_schema_table *table;
} place;

static basin_status refuse(const place *at, const char *column, const char *why,
                           basin_error *error) {
    return basin_fail(error, BASIN_BAD_VALUE, "%s: %s[%lld]: column '%.100s' %s", at->path,
                      kinds[at->kind], at->row, column, why);
}

static cJSON as_text(const char *name) {
    return (cJSON){.type = cJSON_String, .valuestring = (char *)(uintptr_t)name};
}

static const cJSON *get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* A quoted cell; nothing for a gap (*full: false). `comma`: numbers have a decimal comma. */
static basin_status put_value(FILE *file, bool *full, const place *at, const cJSON *value,
                              bool comma, basin_error *error) {
    char number[BASIN_NUMBER_TEXT];
    double x = cJSON_IsNumber(value) ? value->valuedouble : 0;
    const char *text = cJSON_IsString(value)  ? value->valuestring
                       : cJSON_IsTrue(value)  ? "true"
                       : cJSON_IsFalse(value) ? "false"
                                              : basin_number_print(number, x);
    if (cJSON_IsArray(value) || cJSON_IsObject(value))
        return refuse(at, value->string, "is a list or an object, needs a string or a number",
                      error);
    if (!(fabs(x) <= 9007199254740992.0) && (isinf(x) || floor(x) == x))
        return refuse(at, value->string, "has more digits than JSON's numbers keep, needs a string",
                      error);
    *full = value && !cJSON_IsNull(value) && *text;
    if (!*full) return BASIN_OK;
    fputc('"', file);
    comma = comma && cJSON_IsNumber(value);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){comma && *text == '.' ? ',' : *text, 0}, file);
    fputc('"', file);
    return BASIN_OK;
}

/* A key of the object that is not a column, or is there twice. */
static basin_status refuse_key(const place *at, const cJSON *object, basin_error *error) {
    const char *last = "";
    for (const cJSON *key = object->child; key; key = key->next) {
        size_t c = 0;
        last = key->string;
        while (c < at->table->columns && strcmp(at->table->column[c].name, last) != 0) c++;
        if (c == at->table->columns && strcmp(last, usual[at->kind][0]) != 0 &&
            strcmp(last, usual[at->kind][1]) != 0)
            return refuse(at, last, "is not a column of the base", error);
        if (get(object, last) != key) break;
    }
    return refuse(at, last, "is there twice", error);
}

/* A cell per column, the id or the two ends first; names where `object` is NULL. */
static basin_status put_row(FILE *file, const place *at, const cJSON *object, basin_error *error) {
    bool full;
    int found = 0;
    for (int end = 0; end <= at->kind; end++, found++) {
        const char *name = usual[at->kind][end];
        const cJSON *value = get(object, name);
        for (size_t c = 0; c < at->table->columns; c++)
            if (at->table->column[c].type == role[at->kind][end]) name = at->table->column[c].name;
        cJSON heading = as_text(name);
        if (!value) value = object ? get(object, name) : &heading;
        if (end) fputc(',', file);
        BASIN_TRY(put_value(file, &full, at, value, false, error));
        if (!full) return refuse(at, name, "is absent or empty", error);
    }
    for (size_t c = 0; c < at->table->columns; c++) {
        const basin_schema_column *column = &at->table->column[c];
        if (column->type == role[at->kind][0] || column->type == role[at->kind][1]) continue;
        cJSON heading = as_text(column->name);
        const cJSON *value = object ? get(object, column->name) : &heading;
        found += value != NULL;
        if (column->type == BASIN_COLUMN_DROPPED) continue;
        fputc(',', file);
        BASIN_TRY(put_value(file, &full, at, value, column->comma, error));
    }
    fputc('\n', file);
    return object && found != cJSON_GetArraySize(object) ? refuse_key(at, object, error) : BASIN_OK;
}

static basin_status put_header(basin_additions *a, place at, basin_error *error) {
    basin_memory_file *memory = &a->file[at.kind];
    at.table = at.kind ? &a->schema->edges : &a->schema->nodes;
    if (!basin_memory_file_open(memory)) return basin_fail_memory(error, "additions");
    return put_row(memory->file, &at, NULL, error);
}

basin_status basin_additions_put(basin_additions *a, const cJSON *tree, const char *path,
                                 basin_error *error) {
    int64_t before = a->rows[0] + a->rows[1];
    for (const cJSON *list = tree->child; list; list = list->next) {
        place at = {.path = path, .kind = !strcmp(list->string, kinds[1])};
        at.table = at.kind ? &a->schema->edges : &a->schema->nodes;
        if (get(tree, kinds[at.kind]) != list || !cJSON_IsArray(list))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: key '%.100s', needs \"accounts\" and \"edges\", each once and "
                              "an array of objects",
                              path, list->string);
        basin_memory_file *memory = &a->file[at.kind];
        if (!memory->file && list->child) BASIN_TRY(put_header(a, at, error));
        for (const cJSON *object = list->child; object; object = object->next, at.row++) {
            if (!cJSON_IsObject(object))
                return basin_fail(error, BASIN_BAD_VALUE, "%s: %s[%lld] is not an object", path,
                                  kinds[at.kind], at.row);
            BASIN_TRY(put_row(memory->file, &at, object, error));
            a->rows[at.kind]++;
        }
    }
    if (a->rows[0] + a->rows[1] > before) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: nothing to add, needs \"accounts\" or \"edges\" with an entry", path);
}

basin_status basin_additions_finish(basin_additions *a, basin_error *error) {
    for (int kind = 0; kind < 2; kind++) {
        if (!a->file[kind].file) continue;
        a->table[kind] = basin_memory_file_close(&a->file[kind]);
        a->file[kind].file = NULL;
        if (!a->table[kind]) return basin_fail_memory(error, "additions");
    }
    return BASIN_OK;
}

void basin_additions_free(basin_additions *a) {
    basin_error error;
    while (basin_additions_finish(a, &error)) {}
    BASIN_FREE(a->table[0], a->table[1]);
}

/* ---- lines ---- */

enum { CRC = 8 }; /* digits, and a blank after them */

static void put_crc(char text[CRC + 1], const char *json, size_t length) {
    snprintf(text, CRC + 1, "%08lx", crc32_z(0, (const unsigned char *)json, length));
}

/* The bytes of the line at `at`, its line feed included; 0 where it is torn or damaged. */
static size_t whole_line(const char *at, size_t left) {
    const char *end = memchr(at, '\n', left);
    char crc[CRC + 1];
    if (!end || end - at < CRC + 2 || at[CRC] != ' ') return 0;
    put_crc(crc, at + CRC + 1, (size_t)(end - at) - CRC - 1);
    return memcmp(crc, at, CRC) != 0 ? 0 : (size_t)(end - at) + 1;
}

/* "crc json\n" after what is there. A write that fails is cut off again. */
static basin_status write_line(basin_journal *j, const char *json, basin_error *error) {
    size_t length = json ? strlen(json) : 0, done = 0, all = CRC + length + 2;
    if (!json) return basin_fail_memory(error, "a record of the journal");
    BASIN_SCRATCH_RAW(char, line, all + 1, "a record of the journal", error);
    put_crc(line, json, length);
    snprintf(line + CRC, length + 3, " %s\n", json);
    while (done < all) {
        ssize_t wrote = pwrite(j->fd, line + done, all - done, j->bytes + (off_t)done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            basin_status status = basin_fail_errno(j->path, "write", error);
            j->broken = ftruncate(j->fd, j->bytes) != 0;
            return status;
        }
        done += (size_t)wrote;
    }
    j->bytes += (int64_t)all;
    return BASIN_OK;
}

/* ---- opening ---- */

static basin_status check_head(const basin_journal *j, const char *data, size_t size,
                               const char *digest, basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    size_t length = whole_line(data, size);
    const char *base = NULL;
    if (length && !basin_json_parse(&tree, data + CRC + 1, length - CRC - 2, "", "", error))
        base = cJSON_GetStringValue(get(tree, "base"));
    if (!base || !cJSON_IsNumber(get(tree, "basin_journal")))
        return basin_fail(error, BASIN_BAD_FILE, "%s: is not a journal of basin serve", j->path);
    if (!strcmp(base, digest)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: is the journal of a base with digest %.64s, needs %s", j->path, base,
                      digest);
}

/* A torn tail ends the journal before it; a bad line with good ones after it is damage. */
static basin_status scan(basin_journal *j, const char *data, size_t size, const char *digest,
                         basin_error *error) {
    size_t length;
    BASIN_TRY(check_head(j, data, size, digest, error));
    size_t at = whole_line(data, size);
    for (; at < size && (length = whole_line(data + at, size - at)); at += length, j->records++)
        j->last = (int64_t)at;
    j->bytes = (int64_t)at;
    j->dropped = (int64_t)(size - at);
    for (const char *end = data + size, *next = data + at;
         next < end && (next = memchr(next, '\n', (size_t)(end - next))); next++)
        if (next + 1 < end && whole_line(next + 1, (size_t)(end - next) - 1))
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: record %lld, at byte %zu, is damaged, and others follow it",
                              j->path, (long long)j->records + 1, at);
    return BASIN_OK;
}

/* The head of a new journal, on the disk with the folder's entry of it. */
static basin_status begin(basin_journal *j, const char *digest, basin_error *error) {
    char head[200], folder[4096];
    snprintf(head, sizeof head, "{\"basin_journal\":1,\"base\":\"%s\"}", digest);
    snprintf(folder, sizeof folder, "%s", j->path);
    BASIN_TRY(write_line(j, head, error));
    BASIN_TRY(basin_journal_sync(j, error));
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) fsync(fd), close(fd);
    return BASIN_OK;
}

static basin_status take_in(basin_journal *j, const char *digest, bool fixed, basin_error *error) {
    struct stat status;
    if (flock(j->fd, (fixed ? LOCK_SH : LOCK_EX) | LOCK_NB) && errno == EWOULDBLOCK)
        return basin_fail(error, BASIN_IO,
                          "%s: another process, a server of this base, has it open", j->path);
    if (fstat(j->fd, &status)) return basin_fail_errno(j->path, "read", error);
    size_t size = (size_t)status.st_size;
    if (!size) return fixed ? BASIN_OK : begin(j, digest, error);
    char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, j->fd, 0);
    if (data == MAP_FAILED) return basin_fail_errno(j->path, "read", error);
    basin_status scanned = scan(j, data, size, digest, error);
    munmap(data, size);
    BASIN_TRY(scanned);
    if (!fixed && j->dropped && ftruncate(j->fd, j->bytes))
        return basin_fail_errno(j->path, "cut off its torn end", error);
    return BASIN_OK;
}

basin_status basin_journal_open(basin_journal **journal, const char *path, const char *digest,
                                bool fixed, basin_error *error) {
    basin_journal *j;
    basin_status status = BASIN_OK;
    *journal = NULL;
    BASIN_TRY(BASIN_NEW(&j, 1, "a journal", error));
    j->fd = open(path, fixed ? O_RDONLY | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool absent = j->fd < 0 && fixed && errno == ENOENT;
    j->path = strdup(path);
    if (!j->path)
        status = basin_fail_memory(error, "a journal");
    else if (j->fd < 0 && !absent)
        status = basin_fail_errno(j->path, "open", error);
    else if (!absent)
        status = take_in(j, digest, fixed, error);
    if (status)
        basin_journal_close(j);
    else
        *journal = j;
    return status;
}

void basin_journal_close(basin_journal *journal) {
    if (!journal) return;
    if (journal->fd >= 0) close(journal->fd);
    BASIN_FREE(journal->path, journal);
}

/* ---- reading and writing ---- */

basin_status basin_journal_replay(const basin_journal *j, int64_t from, int64_t to,
                                  basin_journal_take *take, void *context, basin_error *error) {
    char what[BASIN_ERROR_TEXT / 2];
    if (j->fd < 0 || from >= to) return BASIN_OK;
    char *data = mmap(NULL, (size_t)to, PROT_READ, MAP_SHARED, j->fd, 0);
    if (data == MAP_FAILED) return basin_fail_errno(j->path, "read", error);
    basin_status status = BASIN_OK;
    size_t at = from ? (size_t)from : whole_line(data, (size_t)to), length = 0;
    for (; at < (size_t)to && !status; at += length) {
        BASIN_JSON_AT_EXIT cJSON *tree = NULL;
        snprintf(what, sizeof what, "%s: the record at byte %zu", j->path, at);
        length = whole_line(data + at, (size_t)to - at);
        status = length ? basin_json_parse(&tree, data + at + CRC + 1, length - CRC - 2, what, "it",
                                           error)
                        : basin_fail(error, BASIN_BAD_FILE, "%s is damaged", what);
        if (!status) status = take(context, tree, what, error);
    }
    munmap(data, (size_t)to);
    return status;
}

basin_status basin_journal_append(basin_journal *j, const cJSON *addition, basin_error *error) {
    BASIN_FREE_AT_EXIT char *json = cJSON_PrintUnformatted(addition);
    if (j->broken)
        return basin_fail(error, BASIN_IO,
                          "%s: an earlier write failed, and what is on the disk is not known; "
                          "start the server again",
                          j->path);
    int64_t last = j->bytes;
    BASIN_TRY(write_line(j, json, error));
    j->last = last;
    j->records++;
    return BASIN_OK;
}

basin_status basin_journal_cut(basin_journal *j, basin_error *error) {
    j->broken = ftruncate(j->fd, j->last) != 0;
    if (j->broken) return basin_fail_errno(j->path, "take back an addition", error);
    j->bytes = j->last;
    j->records--;
    return BASIN_OK;
}

basin_status basin_journal_sync(basin_journal *j, basin_error *error) {
    if (j->fd < 0 || (!j->broken && !fdatasync(j->fd))) return BASIN_OK;
    if (j->broken) errno = EIO; /* what failed once is not tried again: it might seem to succeed */
    j->broken = true;
    return basin_fail_errno(j->path, "write to the disk", error);
}

/* ---- folding ---- */

bool basin_journal_is(const char *path) {
    static const char mark[] = " {\"basin_journal\":";
    char head[CRC + sizeof mark] = "";
    FILE *file = basin_file_special(path) ? NULL : fopen(path, "rb");
    size_t size = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    return size == sizeof head - 1 && !strcmp(head + CRC, mark);
}

static basin_status fold(void *context, const cJSON *tree, const char *what, basin_error *error) {
    return basin_additions_put(context, tree, what, error);
}

basin_status basin_journal_tables(basin_additions *additions, const char *path, const char *digest,
                                  basin_error *error) {
    basin_journal *j;
    BASIN_TRY(basin_journal_open(&j, path, digest, true, error));
    basin_status status = basin_journal_replay(j, 0, j->bytes, fold, additions, error);
    basin_journal_close(j);
    if (!status && !additions->rows[0] && !additions->rows[1])
        status = put_header(additions, (place){.kind = 1}, error); /* a table without rows */
    return status ? status : basin_additions_finish(additions, error);
}
