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

enum { MOST_COLUMNS = 4096 }; /* of a row: finding a name that is there twice compares all pairs */

static const char *const kinds[] = {"accounts", "edges"};

/* The name of the column that has that role; `usual` where there is none. */
static const char *role(const basin_schema *schema, int kind, basin_column_type type,
                        const char *usual) {
    const basin_schema_table *table = !schema ? NULL : kind ? &schema->edges : &schema->nodes;
    for (size_t i = 0; table && i < table->columns; i++)
        if (table->column[i].type == type && table->column[i].name) return table->column[i].name;
    return usual;
}

typedef struct place {
    int kind, row;
    const char *path;
} place;

static basin_status refuse(const place *at, const char *column, const char *why,
                           basin_error *error) {
    return basin_fail(error, BASIN_BAD_VALUE, "%s: %s[%d]: column '%.100s' %s", at->path,
                      kinds[at->kind], at->row, column, why);
}

/* The text of a value; *text is NULL of a gap. */
static basin_status read_value(const char **text, char number[BASIN_NUMBER_TEXT], const place *at,
                               const cJSON *value, basin_error *error) {
    *text = number;
    if (cJSON_IsString(value)) {
        *text = *value->valuestring ? value->valuestring : NULL;
    } else if (cJSON_IsNull(value)) {
        *text = NULL;
    } else if (cJSON_IsBool(value)) {
        *text = cJSON_IsTrue(value) ? "true" : "false";
    } else if (!cJSON_IsNumber(value)) {
        return refuse(at, value->string, "is a list or an object, needs a string or a number",
                      error);
    } else if (!(fabs(value->valuedouble) <= 9007199254740992.0) &&
               (isinf(value->valuedouble) || floor(value->valuedouble) == value->valuedouble)) {
        return refuse(at, value->string, "has more digits than JSON's numbers keep, needs a string",
                      error);
    } else {
        basin_number_print(number, value->valuedouble);
    }
    return BASIN_OK;
}

static basin_status read_row(basin_additions *a, basin_row *row, int64_t *cells, const place *at,
                             const cJSON *object, basin_error *error) {
    const char *usual[2][2] = {{"id", "id"}, {"source", "target"}}, *need[2];
    need[0] = role(a->schema, at->kind, at->kind ? BASIN_COLUMN_SOURCE : BASIN_COLUMN_ID,
                   usual[at->kind][0]);
    need[1] = at->kind ? role(a->schema, 1, BASIN_COLUMN_TARGET, "target") : need[0];
    const basin_schema_table *table = !a->schema ? NULL
                                      : at->kind ? &a->schema->edges
                                                 : &a->schema->nodes;
    bool found[2] = {false, false};
    *row = (basin_row){.schema = a->schema,
                       .edges = at->kind,
                       .column = a->column + *cells,
                       .value = a->value + *cells,
                       .path = at->path};
    for (const cJSON *value = object->child; value; value = value->next, ++*cells, row->count++) {
        const char *name = value->string;
        if (row->count == MOST_COLUMNS) return refuse(at, name, "is one too many", error);
        for (int i = 0; i < 2; i++)
            if (!strcmp(name, usual[at->kind][i])) name = need[i];
        for (int i = 0; i < row->count; i++)
            if (!strcmp(row->column[i], name)) return refuse(at, name, "is there twice", error);
        if (a->schema && a->schema->named && !basin_schema_find(table, name))
            return refuse(at, name, "is no column of the base", error);
        a->column[*cells] = name;
        BASIN_TRY(read_value(&a->value[*cells], a->number[*cells], at, value, error));
        for (int i = 0; i < 2; i++)
            found[i] = found[i] || (!strcmp(name, need[i]) && a->value[*cells]);
    }
    for (int i = 0; i < 2; i++)
        if (!found[i]) return refuse(at, need[i], "is absent or empty", error);
    return BASIN_OK;
}

/* Arrays of objects alone, and how many cells they have. */
static basin_status count_cells(basin_additions *a, int64_t *cells, const cJSON *tree,
                                const char *path, basin_error *error) {
    int64_t *rows[] = {&a->accounts, &a->edges};
    for (const cJSON *list = tree->child; list; list = list->next) {
        int kind = 0;
        while (kind < 2 && strcmp(list->string, kinds[kind]) != 0) kind++;
        if (kind == 2)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: unknown key '%.100s', needs \"accounts\" or \"edges\"", path,
                              list->string);
        if (!cJSON_IsArray(list) || *rows[kind])
            return basin_fail(error, BASIN_BAD_VALUE, "%s: \"%s\" %s", path, kinds[kind],
                              *rows[kind] ? "is there twice" : "is not an array of objects");
        for (const cJSON *object = list->child; object; object = object->next, ++*rows[kind]) {
            if (!cJSON_IsObject(object))
                return basin_fail(error, BASIN_BAD_VALUE, "%s: %s[%lld] is not an object", path,
                                  kinds[kind], (long long)*rows[kind]);
            for (const cJSON *value = object->child; value; value = value->next) ++*cells;
        }
    }
    if (a->accounts + a->edges) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: nothing to add, needs \"accounts\" or \"edges\" with an entry", path);
}

basin_status basin_additions_parse(basin_additions *a, const cJSON *tree,
                                   const basin_schema *schema, const char *path,
                                   basin_error *error) {
    int64_t cells = 0;
    *a = (basin_additions){.schema = schema};
    BASIN_TRY(count_cells(a, &cells, tree, path, error));
    BASIN_TRY(BASIN_NEW(&a->row, a->accounts + a->edges, "rows", error));
    BASIN_TRY(BASIN_NEW(&a->column, cells, "rows", error));
    BASIN_TRY(BASIN_NEW(&a->value, cells, "rows", error));
    BASIN_TRY(BASIN_NEW_RAW(&a->number, cells, "rows", error));
    cells = 0;
    basin_row *row = a->row;
    for (int kind = 0; kind < 2; kind++) {
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, kinds[kind]);
        place at = {kind, 0, path};
        for (const cJSON *object = list ? list->child : NULL; object;
             object = object->next, at.row++)
            BASIN_TRY(read_row(a, row++, &cells, &at, object, error));
    }
    return BASIN_OK;
}

void basin_additions_free(basin_additions *a) {
    free(a->row);
    free(a->column);
    free(a->value);
    free(a->number);
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

static basin_status take_line(const char *line, size_t length, const char *what,
                              const basin_schema *schema, basin_journal_take *take, void *context,
                              basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    BASIN_AT_EXIT(basin_additions_free) basin_additions additions = {0};
    BASIN_TRY(basin_json_parse(&tree, line + CRC + 1, length - CRC - 2, what, "it", error));
    BASIN_TRY(basin_additions_parse(&additions, tree, schema, what, error));
    return take(context, &additions, error);
}

basin_status basin_journal_replay(const basin_journal *j, int64_t from, int64_t to,
                                  const basin_schema *schema, basin_journal_take *take,
                                  void *context, basin_error *error) {
    char what[BASIN_ERROR_TEXT / 2];
    if (j->fd < 0 || from >= to) return BASIN_OK;
    char *data = mmap(NULL, (size_t)to, PROT_READ, MAP_SHARED, j->fd, 0);
    if (data == MAP_FAILED) return fail_system(j, "read", error);
    basin_status status = BASIN_OK;
    size_t at = from ? (size_t)from : whole_line(data, (size_t)to), length = 0;
    for (; at < (size_t)to && !status; at += length) {
        snprintf(what, sizeof what, "%s: the record at byte %zu", j->path, at);
        length = whole_line(data + at, (size_t)to - at);
        status = length ? take_line(data + at, length, what, schema, take, context, error)
                        : basin_fail(error, BASIN_BAD_FILE, "%s is damaged", what);
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

typedef struct tables {
    basin_dictionary column[2];
    basin_memory_file file[2];
    bool write; /* the second pass; the first one collects the columns */
} tables;

static void put_cell(FILE *file, const char *text, bool first) {
    if (!first) fputc(',', file);
    if (!text) return;
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static basin_status take_row(void *context, const basin_additions *a, basin_error *error) {
    tables *t = context;
    for (int64_t i = 0; i < a->accounts + a->edges; i++) {
        const basin_row *row = &a->row[i];
        basin_dictionary *column = &t->column[row->edges];
        int32_t number;
        for (int c = 0; c < row->count && !t->write; c++)
            BASIN_TRY(basin_dictionary_add(column, &number, row->column[c], error));
        for (int64_t n = 0; n < column->names.names.count && t->write; n++) {
            const char *text = NULL;
            for (int c = 0; c < row->count; c++)
                if (basin_dictionary_find(column, row->column[c]) == n) text = row->value[c];
            put_cell(t->file[row->edges].file, text, n == 0);
        }
        if (t->write) fputc('\n', t->file[row->edges].file);
    }
    return BASIN_OK;
}

static basin_status put_headings(tables *t, basin_error *error) {
    for (int kind = 0; kind < 2; kind++) {
        const basin_names *name = &t->column[kind].names.names;
        if (!name->count) continue;
        FILE *file = basin_memory_file_open(&t->file[kind]);
        if (!file) return basin_fail_memory(error, "the journal's tables");
        for (int64_t n = 0; n < name->count; n++) put_cell(file, name->text + name->at[n], n == 0);
        fputc('\n', file);
    }
    t->write = true;
    return BASIN_OK;
}

/* The texts, or NULL where something failed. */
static basin_status finish(char *table[2], tables *t, basin_status status, basin_error *error) {
    for (int kind = 0; kind < 2; kind++) {
        table[kind] = t->file[kind].file ? basin_memory_file_close(&t->file[kind]) : NULL;
        if (t->file[kind].file && !table[kind] && !status)
            status = basin_fail_memory(error, "the journal's tables");
        basin_dictionary_free(&t->column[kind]);
    }
    for (int kind = 0; kind < 2 && status; kind++) {
        free(table[kind]);
        table[kind] = NULL;
    }
    return status;
}

basin_status basin_additions_tables(char *table[2], const basin_additions *a, basin_error *error) {
    tables t = {0};
    basin_status status = take_row(&t, a, error);
    if (!status) status = put_headings(&t, error);
    if (!status) status = take_row(&t, a, error);
    return finish(table, &t, status, error);
}

basin_status basin_journal_tables(char *table[2], const char *path, const char *digest,
                                  const basin_schema *schema, basin_error *error) {
    basin_journal *j;
    tables t = {0};
    table[0] = table[1] = NULL;
    BASIN_TRY(basin_journal_open(&j, path, digest, true, error));
    basin_status status = basin_journal_replay(j, 0, j->bytes, schema, take_row, &t, error);
    if (!status) status = put_headings(&t, error);
    if (!status) status = basin_journal_replay(j, 0, j->bytes, schema, take_row, &t, error);
    basin_journal_close(j);
    return finish(table, &t, status, error);
}
