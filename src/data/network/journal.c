/* The journal of a server, and its tables; see journal.h. */
#include "data/network/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "io/file.h"

/* ---- additions ---- */

static const char *const kinds[] = {"accounts", "edges"};

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

static void put_cell(FILE *file, const char *text, bool first) {
    if (!first) fputc(',', file);
    if (!text) return;
    fputc('"', file);
    for (; *text; text++) fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, file);
    fputc('"', file);
}

/* The text of a value; *text is NULL of a gap. */
static basin_status read_value(const char **text, char number[BASIN_NUMBER_TEXT], const place *at,
                               const cJSON *value, basin_error *error) {
    double x = cJSON_IsNumber(value) ? value->valuedouble : 0;
    *text = number;
    if (!value || cJSON_IsNull(value) || (cJSON_IsString(value) && !*value->valuestring))
        *text = NULL;
    else if (cJSON_IsString(value))
        *text = value->valuestring;
    else if (cJSON_IsBool(value))
        *text = cJSON_IsTrue(value) ? "true" : "false";
    else if (!cJSON_IsNumber(value))
        return refuse(at, value->string, "is a list or an object, needs a string or a number",
                      error);
    else if (!(fabs(x) <= 9007199254740992.0) && (isinf(x) || floor(x) == x))
        return refuse(at, value->string, "has more digits than JSON's numbers keep, needs a string",
                      error);
    else
        basin_number_print(number, x);
    return BASIN_OK;
}

static const char *const usual[2][2] = {{"id", "id"}, {"source", "target"}};

/* A key of the object that is no column, or is there twice. */
static basin_status refuse_key(const place *at, const cJSON *object, basin_error *error) {
    const char *last = "";
    for (const cJSON *key = object->child; key; key = key->next) {
        size_t c = 0;
        last = key->string;
        while (c < at->table->columns && strcmp(at->table->column[c].name, last) != 0) c++;
        bool known = c < at->table->columns || !strcmp(last, usual[at->kind][0]) ||
                     !strcmp(last, usual[at->kind][1]);
        if (!known) return refuse(at, last, "is no column of the base", error);
        if (cJSON_GetObjectItemCaseSensitive(object, last) != key) break;
    }
    return refuse(at, last, "is there twice", error);
}

/* A row with a cell for each column, that of the id or of the two ends first; the heading where
 * `object` is NULL. */
static basin_status put_row(FILE *file, const place *at, const cJSON *object, basin_error *error) {
    static const basin_column_type role[2][2] = {{BASIN_COLUMN_ID, BASIN_COLUMN_DROPPED},
                                                 {BASIN_COLUMN_SOURCE, BASIN_COLUMN_TARGET}};
    char number[BASIN_NUMBER_TEXT];
    const char *text;
    int found = 0;
    for (int end = 0; end <= at->kind; end++) {
        const char *name = usual[at->kind][end];
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
        for (size_t c = 0; c < at->table->columns; c++)
            if (at->table->column[c].type == role[at->kind][end]) name = at->table->column[c].name;
        if (!value) value = cJSON_GetObjectItemCaseSensitive(object, name);
        BASIN_TRY(read_value(&text, number, at, value, error));
        if (object && !text) return refuse(at, name, "is absent or empty", error);
        put_cell(file, object ? text : name, end == 0);
        found++;
    }
    for (size_t c = 0; c < at->table->columns; c++) {
        const basin_schema_column *column = &at->table->column[c];
        if (column->type == role[at->kind][0] || (at->kind && column->type == role[1][1])) continue;
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, column->name);
        found += value != NULL;
        BASIN_TRY(read_value(&text, number, at, value, error));
        if (column->type != BASIN_COLUMN_DROPPED)
            put_cell(file, object ? text : column->name, false);
    }
    fputc('\n', file);
    return object && found != cJSON_GetArraySize(object) ? refuse_key(at, object, error) : BASIN_OK;
}

basin_status basin_additions_put(basin_additions *a, const cJSON *tree, const basin_schema *schema,
                                 const char *path, basin_error *error) {
    int64_t before = a->rows[0] + a->rows[1];
    const cJSON *seen[2] = {0};
    for (const cJSON *list = tree->child; list; list = list->next) {
        place at = {.path = path};
        while (at.kind < 2 && strcmp(list->string, kinds[at.kind]) != 0) at.kind++;
        if (at.kind == 2 || seen[at.kind] || !cJSON_IsArray(list))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: key '%.100s', needs \"accounts\" and \"edges\", each once and "
                              "an array of objects",
                              path, list->string);
        seen[at.kind] = list;
        at.table = at.kind ? &schema->edges : &schema->nodes;
        basin_memory_file *memory = &a->file[at.kind];
        if (!memory->file && list->child) {
            if (!basin_memory_file_open(memory)) return basin_fail_memory(error, "additions");
            BASIN_TRY(put_row(memory->file, &at, NULL, error));
        }
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
    free(a->table[0]);
    free(a->table[1]);
}

/* ---- lines ---- */

enum { CRC = 8 }; /* digits, and a blank behind them */

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

/* "crc json\n"; free it. */
static basin_status make_line(char **line, const cJSON *object, basin_error *error) {
    BASIN_FREE_AT_EXIT char *json = cJSON_PrintUnformatted(object);
    size_t length = json ? strlen(json) : 0;
    if (!json) return basin_fail_memory(error, "a record of the journal");
    BASIN_TRY(BASIN_NEW_RAW(line, CRC + length + 3, "a record of the journal", error));
    put_crc(*line, json, length);
    (*line)[CRC] = ' ';
    memcpy(*line + CRC + 1, json, length);
    memcpy(*line + CRC + 1 + length, "\n", 2);
    return BASIN_OK;
}

bool basin_journal_is(const void *data, size_t size) {
    static const char head[] = " {\"basin_journal\":";
    return size > CRC + sizeof head && !memcmp((const char *)data + CRC, head, sizeof head - 1);
}

/* ---- opening ---- */

static basin_status fail_system(const basin_journal *j, const char *what, basin_error *error) {
    return basin_fail(error, BASIN_IO, "%s: cannot %s: %s", j->path, what, strerror(errno));
}

static basin_status check_head(const char *head, size_t length, const char *path,
                               const char *digest, basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    BASIN_TRY(
        basin_json_parse(&tree, head + CRC + 1, length - CRC - 2, path, "the first line", error));
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(tree, "basin_journal");
    const char *base = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "base"));
    if (!cJSON_IsNumber(version) || version->valueint != 1)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: is a journal of another version", path);
    if (base && !strcmp(base, digest)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: is the journal of a base with digest %.64s, needs %s", path,
                      base ? base : "(none)", digest);
}

/* A torn tail ends the journal before it; a bad line with good ones behind it is damage. */
static basin_status scan(basin_journal *j, const char *data, size_t size, const char *digest,
                         basin_error *error) {
    size_t at = whole_line(data, size), length;
    if (!basin_journal_is(data, size) || !at)
        return basin_fail(error, BASIN_BAD_FILE, "%s: is not a journal of basin serve", j->path);
    BASIN_TRY(check_head(data, at, j->path, digest, error));
    for (; at < size && (length = whole_line(data + at, size - at)); at += length, j->records++)
        j->last = (int64_t)at;
    j->bytes = (int64_t)at;
    j->dropped = (int64_t)(size - at);
    for (const char *next = data + at; (next = memchr(next, '\n', size - (size_t)(next - data)));)
        if (++next, (size_t)(next - data) < size && whole_line(next, size - (size_t)(next - data)))
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: record %lld, at byte %zu, is damaged, and others follow it",
                              j->path, (long long)j->records + 1, at);
        else if ((size_t)(next - data) >= size)
            break;
    return BASIN_OK;
}

static basin_status write_whole(basin_journal *j, const char *line, basin_error *error) {
    size_t length = strlen(line), done = 0;
    while (done < length) {
        ssize_t wrote = pwrite(j->fd, line + done, length - done, j->bytes + (off_t)done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            basin_status status = fail_system(j, "write", error);
            j->broken = ftruncate(j->fd, j->bytes) != 0;
            return status;
        }
        done += (size_t)wrote;
    }
    j->bytes += (int64_t)length;
    return BASIN_OK;
}

/* The head of a new journal, on the disk with the folder's entry of it. */
static basin_status begin(basin_journal *j, const char *digest, basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *head = cJSON_CreateObject();
    BASIN_FREE_AT_EXIT char *line = NULL, *folder = strdup(j->path);
    if (!head || !folder || !cJSON_AddNumberToObject(head, "basin_journal", 1) ||
        !cJSON_AddStringToObject(head, "base", digest))
        return basin_fail_memory(error, "a journal");
    BASIN_TRY(make_line(&line, head, error));
    BASIN_TRY(write_whole(j, line, error));
    BASIN_TRY(basin_journal_sync(j, error));
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) fsync(fd), close(fd);
    return BASIN_OK;
}

static basin_status take_in(basin_journal *j, const char *digest, bool fixed, basin_error *error) {
    struct stat status;
    if (fstat(j->fd, &status)) return fail_system(j, "read", error);
    size_t size = (size_t)status.st_size;
    char *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, j->fd, 0) : NULL;
    if (data == MAP_FAILED) return fail_system(j, "read", error);
    /* A head that was torn by a crash has nothing behind it. */
    bool torn = !size || (!fixed && size < 100 && !memchr(data, '\n', size) &&
                          (size < CRC + 20 || basin_journal_is(data, size)));
    basin_status scanned = torn ? BASIN_OK : scan(j, data, size, digest, error);
    if (size) munmap(data, size);
    BASIN_TRY(scanned);
    if (fixed) return BASIN_OK;
    if (j->dropped || (torn && size)) {
        if (ftruncate(j->fd, j->bytes)) return fail_system(j, "cut off its torn end", error);
    }
    return torn ? begin(j, digest, error) : BASIN_OK;
}

static basin_status lock(basin_journal *j, bool fixed, basin_error *error) {
    if (!flock(j->fd, (fixed ? LOCK_SH : LOCK_EX) | LOCK_NB)) return BASIN_OK;
    if (errno != EWOULDBLOCK) return fail_system(j, "lock", error);
    return basin_fail(error, BASIN_IO, "%s: another process, a server of this base, has it open",
                      j->path);
}

basin_status basin_journal_open(basin_journal **journal, const char *path, const char *digest,
                                bool fixed, basin_error *error) {
    basin_journal *j;
    BASIN_TRY(BASIN_NEW(&j, 1, "a journal", error));
    *j = (basin_journal){.path = strdup(path), .fd = -1};
    basin_status status = j->path ? BASIN_OK : basin_fail_memory(error, "a journal");
    if (!status) {
        j->fd = open(path, fixed ? O_RDONLY | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (j->fd < 0 && !(fixed && errno == ENOENT)) status = fail_system(j, "open", error);
    }
    if (!status && j->fd >= 0) status = lock(j, fixed, error);
    if (!status && j->fd >= 0) status = take_in(j, digest, fixed, error);
    if (status) basin_journal_close(j), j = NULL;
    *journal = j;
    return status;
}

void basin_journal_close(basin_journal *journal) {
    if (!journal) return;
    if (journal->fd >= 0) close(journal->fd);
    free(journal->path);
    free(journal);
}

/* ---- reading and writing ---- */

basin_status basin_journal_replay(const basin_journal *j, int64_t from, int64_t to,
                                  basin_journal_take *take, void *context, basin_error *error) {
    char what[BASIN_ERROR_TEXT / 2];
    if (j->fd < 0 || from >= to) return BASIN_OK;
    char *data = mmap(NULL, (size_t)to, PROT_READ, MAP_SHARED, j->fd, 0);
    if (data == MAP_FAILED) return fail_system(j, "read", error);
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
    BASIN_FREE_AT_EXIT char *line = NULL;
    if (j->broken)
        return basin_fail(error, BASIN_IO,
                          "%s: an earlier write failed, and what is on the disk is not known; "
                          "start the server again",
                          j->path);
    BASIN_TRY(make_line(&line, addition, error));
    j->last = j->bytes;
    BASIN_TRY(write_whole(j, line, error));
    j->records++;
    return BASIN_OK;
}

basin_status basin_journal_cut(basin_journal *j, basin_error *error) {
    if (ftruncate(j->fd, j->last)) {
        j->broken = true;
        return fail_system(j, "take back an addition", error);
    }
    j->bytes = j->last;
    j->records--;
    return BASIN_OK;
}

basin_status basin_journal_sync(basin_journal *j, basin_error *error) {
    if (j->fd < 0 || !fdatasync(j->fd)) return BASIN_OK;
    j->broken = true;
    return fail_system(j, "write to the disk", error);
}

/* ---- folding ---- */

typedef struct folded {
    basin_additions *additions;
    const basin_schema *schema;
} folded;

static basin_status fold(void *context, const cJSON *tree, const char *what, basin_error *error) {
    folded *f = context;
    return basin_additions_put(f->additions, tree, f->schema, what, error);
}

basin_status basin_journal_tables(basin_additions *additions, const char *path, const char *digest,
                                  const basin_schema *schema, basin_error *error) {
    basin_journal *j;
    BASIN_TRY(basin_journal_open(&j, path, digest, true, error));
    basin_status status =
        basin_journal_replay(j, 0, j->bytes, fold, &(folded){additions, schema}, error);
    basin_journal_close(j);
    return status ? status : basin_additions_finish(additions, error);
}
