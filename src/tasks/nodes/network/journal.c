/* The journal of a server: its file; see journal.h. */
#include "tasks/nodes/network/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- records ---- */

enum { FORMAT = 2, DIGITS = 8, OLD_HEAD = DIGITS + 1, HEAD = 2 * OLD_HEAD }; /* blanks included */
static const char undo_key[] = "{\"undo\":";

static const cJSON *get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static uint32_t checksum(const char *json, size_t length) {
    return (uint32_t)crc32_z(0, (const unsigned char *)json, length);
}

/* Eight hexadecimal digits and a blank. */
static bool read_digits(uint32_t *value, const char *at) {
    *value = 0;
    for (int i = 0; i < DIGITS; i++) {
        bool digit = at[i] >= '0' && at[i] <= '9';
        if (!digit && (at[i] < 'a' || at[i] > 'f')) return false;
        *value = *value << 4 | (uint32_t)(digit ? at[i] - '0' : at[i] - 'a' + 10);
    }
    return at[DIGITS] == ' ';
}

/* The record at the front of some bytes, by its length and its checksum; false: it is not whole. */
static bool read_record(basin_journal_entry *e, const char *at, size_t left) {
    uint32_t first, sum;
    if (left < HEAD || !read_digits(&first, at)) return false;
    if (at[OLD_HEAD] == '{') {
        const char *end = memchr(at, '\n', left);
        if (!end) return false;
        *e = (basin_journal_entry){.json = at + OLD_HEAD};
        e->length = (size_t)(end - e->json);
        e->size = (int64_t)(OLD_HEAD + e->length + 1);
        return checksum(e->json, e->length) == first;
    }
    if (!read_digits(&sum, at + OLD_HEAD) || first < 2 || first > left - HEAD) return false;
    *e = (basin_journal_entry){
        .json = at + HEAD, .length = first, .size = HEAD + first + INT64_C(1)};
    if (checksum(e->json, e->length) != sum) return false;
    bool undo = e->length > sizeof undo_key - 1 && !memcmp(e->json, undo_key, sizeof undo_key - 1);
    e->kind = undo ? BASIN_ENTRY_UNDO : BASIN_ENTRY_ADDITION;
    return true;
}

/* Where the next whole record begins after bytes that are none: at the end that their length names,
 * or in a line that follows. A record has no line feed but its last byte. */
static size_t skip_damage(const char *data, size_t at, size_t size) {
    basin_journal_entry e;
    uint32_t length;
    if (size - at > HEAD && read_digits(&length, data + at) && length < size - at - HEAD - 1) {
        size_t next = at + HEAD + length + 1;
        if (read_record(&e, data + next, size - next)) return next;
    }
    for (const char *p = data + at; (p = memchr(p, '\n', (size_t)(data + size - p)));)
        if (++p < data + size && read_record(&e, p, (size_t)(data + size - p)))
            return (size_t)(p - data);
    return size;
}

static bool is_undone(const basin_journal *j, int64_t at) {
    for (size_t i = 0; i < j->undones; i++)
        if (j->undone[i] == at) return true;
    return false;
}

basin_status basin_journal_each(const basin_journal *j, int64_t from, int64_t to,
                                basin_journal_take *take, void *context, basin_error *error) {
    if (!from) from = j->first;
    if (j->fd < 0 || from >= to) return BASIN_OK;
    char *data = mmap(NULL, (size_t)to, PROT_READ, MAP_SHARED, j->fd, 0);
    if (data == MAP_FAILED) return basin_fail_errno(j->path, "read", error);
    basin_status status = BASIN_OK;
    int64_t number = 0;
    for (int64_t at = from; at < to && !status;) {
        basin_journal_entry e;
        if (!read_record(&e, data + at, (size_t)(to - at)))
            e = (basin_journal_entry){.size =
                                          (int64_t)skip_damage(data, (size_t)at, (size_t)to) - at,
                                      .kind = BASIN_ENTRY_DAMAGED};
        e.number = ++number;
        e.at = at;
        e.undone = is_undone(j, at);
        status = take(context, &e, error);
        at += e.size;
    }
    munmap(data, (size_t)to);
    return status;
}

/* A record after what is there. A write that fails is cut off again. */
static basin_status write_record(basin_journal *j, const char *json, basin_error *error) {
    size_t length = json ? strlen(json) : 0, done = 0, all = HEAD + length + 1;
    if (!json) return basin_fail_memory(error, "a record of the journal");
    BASIN_SCRATCH_RAW(char, line, all + 1, "a record of the journal", error);
    snprintf(line, all + 1, "%08zx %08" PRIx32 " %s\n", length, checksum(json, length), json);
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

static void print_head(char text[200], int format, const char *digest) {
    snprintf(text, 200, "{\"basin_journal\":%d,\"base\":\"%s\"}", format, digest);
}

/* A server that was killed while it made the file has left a part of the first record, and has
 * acknowledged nothing. */
static bool is_torn_head(const char *data, size_t size, const char *digest) {
    char json[200], line[300];
    for (int format = 1; format <= FORMAT && digest; format++) {
        print_head(json, format, digest);
        uint32_t sum = checksum(json, strlen(json));
        int length = format == 1 ? snprintf(line, sizeof line, "%08" PRIx32 " %s\n", sum, json)
                                 : snprintf(line, sizeof line, "%08zx %08" PRIx32 " %s\n",
                                            strlen(json), sum, json);
        if (size < (size_t)length && !memcmp(data, line, size)) return true;
    }
    return false;
}

static basin_status check_head(basin_journal *j, const char *data, size_t size, const char *digest,
                               basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    basin_journal_entry head;
    const char *base = NULL;
    if (read_record(&head, data, size) &&
        !basin_json_parse(&tree, head.json, head.length, "", "", error))
        base = cJSON_GetStringValue(get(tree, "base"));
    const cJSON *format = get(tree, "basin_journal");
    if (!base || !cJSON_IsNumber(format))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: is not a journal of basin serve, or its first line is damaged",
                          j->path);
    if (format->valuedouble > FORMAT)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: is a journal of format %g; this version reads formats up to %d",
                          j->path, format->valuedouble, FORMAT);
    j->first = head.size;
    if (!digest || !strcmp(base, digest)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: is the journal of a base with digest %.64s, needs %s", j->path, base,
                      digest);
}

/* What a first reading finds: records that take others back, and bytes at the end that are none. */
typedef struct survey {
    basin_journal *journal;
    int64_t *pair; /* [pairs, 2] where a record begins, and where the one that it takes back does */
    size_t pairs, capacity;
    int64_t end, tail; /* of all entries; where the last one begins if it is not a record */
    bool strict;
} survey;

static basin_status look(void *context, const basin_journal_entry *e, basin_error *error) {
    survey *s = context;
    s->end = e->at + e->size;
    s->tail = e->kind == BASIN_ENTRY_DAMAGED ? e->at : s->end;
    if (e->kind != BASIN_ENTRY_UNDO) return BASIN_OK;
    BASIN_TRY(BASIN_GROW(&s->pair, &s->capacity, 2 * (s->pairs + 1), "a journal", error));
    s->pair[2 * s->pairs] = e->at;
    s->pair[2 * s->pairs++ + 1] = strtoll(e->json + sizeof undo_key - 1, NULL, 10);
    return BASIN_OK;
}

/* The last ones first: one that is taken back itself takes nothing back. */
static basin_status resolve(survey *s, basin_error *error) {
    basin_journal *j = s->journal;
    for (size_t i = s->pairs; i-- > 0;) {
        if (is_undone(j, s->pair[2 * i])) continue;
        BASIN_TRY(BASIN_GROW(&j->undone, &j->undone_capacity, j->undones + 1, "a journal", error));
        j->undone[j->undones++] = s->pair[2 * i + 1];
    }
    return BASIN_OK;
}

static basin_status count(void *context, const basin_journal_entry *e, basin_error *error) {
    survey *s = context;
    if (e->undone) return BASIN_OK;
    s->journal->records += e->kind == BASIN_ENTRY_ADDITION;
    if (e->kind != BASIN_ENTRY_DAMAGED || !s->strict) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: record %" PRId64 ", at byte %" PRId64 ", is damaged (%" PRId64
                      " bytes); 'basin data journal undo %.200s %" PRId64 "' goes on without it",
                      s->journal->path, e->number, e->at, e->size, s->journal->path, e->number);
}

static void survey_free(survey *s) { free(s->pair); }

/* Records that follow the first. A tail is torn from its last line feed on. */
static basin_status scan(basin_journal *j, const char *data, int64_t size, bool strict,
                         basin_error *error) {
    BASIN_AT_EXIT(survey_free)
    survey s = {.journal = j, .end = j->first, .tail = j->first, .strict = strict};
    BASIN_TRY(basin_journal_each(j, 0, size, look, &s, error));
    j->bytes = s.end;
    if (s.tail < s.end)
        while (j->bytes > s.tail && data[j->bytes - 1] != '\n') j->bytes--;
    j->dropped = size > j->bytes ? size - j->bytes : 0;
    BASIN_TRY(resolve(&s, error));
    return basin_journal_each(j, 0, j->bytes < size ? j->bytes : size, count, &s, error);
}

static basin_status begin(basin_journal *j, const char *digest, basin_error *error) {
    char head[200], folder[4096];
    print_head(head, FORMAT, digest);
    snprintf(folder, sizeof folder, "%s", j->path);
    BASIN_TRY(write_record(j, head, error));
    BASIN_TRY(basin_journal_sync(j, error));
    j->first = j->bytes;
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) fsync(fd), close(fd);
    return BASIN_OK;
}

/* Cuts off a torn tail, or gives the last record the line feed that it lacks. */
static basin_status mend(basin_journal *j, int64_t size, basin_error *error) {
    if (j->dropped ? ftruncate(j->fd, j->bytes)
                   : j->bytes > size && pwrite(j->fd, "\n", 1, size) < 1)
        return basin_fail_errno(j->path, "cut off its torn end", error);
    return BASIN_OK;
}

/* What is written to a file that has no name any more would be lost. It has at least `bytes`. */
static basin_status watch(const basin_journal *j, int64_t bytes, basin_error *error) {
    struct stat open_one, named;
    if (!fstat(j->fd, &open_one) && !stat(j->path, &named) && open_one.st_ino == named.st_ino &&
        open_one.st_dev == named.st_dev && open_one.st_size >= bytes)
        return BASIN_OK;
    return basin_fail(error, BASIN_IO,
                      "%s: was moved, removed or cut; nothing is added until it is back", j->path);
}

static basin_status take_in(basin_journal *j, const char *digest, bool fixed, basin_error *error) {
    struct stat status;
    bool only_listed = fixed && !digest;
    if (!only_listed && flock(j->fd, (fixed ? LOCK_SH : LOCK_EX) | LOCK_NB) && errno == EWOULDBLOCK)
        return basin_fail(error, BASIN_IO,
                          "%s: another process, a server of this base, has it open", j->path);
    if (!only_listed) BASIN_TRY(watch(j, 0, error));
    if (fstat(j->fd, &status)) return basin_fail_errno(j->path, "read", error);
    size_t size = (size_t)status.st_size;
    if (!size) return fixed || !digest ? BASIN_OK : begin(j, digest, error);
    char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, j->fd, 0);
    if (data == MAP_FAILED) return basin_fail_errno(j->path, "read", error);
    bool torn = is_torn_head(data, size, digest);
    basin_status scanned = torn ? BASIN_OK : check_head(j, data, size, digest, error);
    if (!torn && !scanned) scanned = scan(j, data, (int64_t)size, digest != NULL, error);
    munmap(data, size);
    BASIN_TRY(scanned);
    if (torn) j->dropped = (int64_t)size;
    if (fixed) return BASIN_OK;
    BASIN_TRY(mend(j, (int64_t)size, error));
    return torn ? begin(j, digest, error) : BASIN_OK;
}

basin_status basin_journal_open(basin_journal **journal, const char *path, const char *digest,
                                bool fixed, basin_error *error) {
    basin_journal *j;
    basin_status status = BASIN_OK;
    *journal = NULL;
    BASIN_TRY(BASIN_NEW(&j, 1, "a journal", error));
    int flags = (fixed ? O_RDONLY : O_RDWR) | (!fixed && digest ? O_CREAT : 0) | O_CLOEXEC;
    j->fd = flags & O_CREAT ? open(path, flags | O_EXCL, 0600) : -1;
    j->made = j->fd >= 0;
    if (!j->made) j->fd = open(path, flags, 0600);
    bool absent = j->fd < 0 && fixed && digest && errno == ENOENT;
    j->path = strdup(path);
    if (!j->path)
        status = basin_fail_memory(error, "a journal");
    else if (j->fd < 0 && !absent)
        status = basin_fail_errno(j->path, "open", error);
    else if (!absent)
        status = take_in(j, digest, fixed, error);
    if (status)
        basin_journal_abandon(j);
    else
        *journal = j;
    return status;
}

void basin_journal_close(basin_journal *journal) {
    if (!journal) return;
    if (journal->fd >= 0) close(journal->fd);
    BASIN_FREE(journal->path, journal->undone, journal);
}

/* Whoever opened the file before it is removed finds, under the lock, that its name has gone. */
void basin_journal_abandon(basin_journal *j) {
    basin_error error;
    if (j && j->made && j->path && !j->records && !flock(j->fd, LOCK_EX | LOCK_NB) &&
        !watch(j, 0, &error))
        unlink(j->path);
    basin_journal_close(j);
}

/* ---- reading and writing ---- */

typedef struct replay {
    const basin_journal *journal;
    basin_journal_apply *apply;
    void *context;
} replay;

static basin_status replay_entry(void *context, const basin_journal_entry *e, basin_error *error) {
    const replay *r = context;
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    char what[BASIN_ERROR_TEXT / 2];
    if (e->undone || e->kind == BASIN_ENTRY_UNDO) return BASIN_OK;
    snprintf(what, sizeof what, "%s: the record at byte %" PRId64, r->journal->path, e->at);
    if (e->kind == BASIN_ENTRY_DAMAGED)
        return basin_fail(error, BASIN_BAD_FILE, "%s is damaged", what);
    if (basin_json_parse(&tree, e->json, e->length, what, "it", error)) tree = cJSON_CreateObject();
    if (!tree) return basin_fail_memory(error, "a record of the journal");
    return r->apply(r->context, tree, what, error);
}

basin_status basin_journal_replay(const basin_journal *j, int64_t from, int64_t to,
                                  basin_journal_apply *apply, void *context, basin_error *error) {
    return basin_journal_each(j, from, to, replay_entry, &(replay){j, apply, context}, error);
}

basin_status basin_journal_append(basin_journal *j, const cJSON *addition, basin_error *error) {
    if (j->broken)
        return basin_fail(error, BASIN_IO,
                          "%s: an earlier write failed, and what is on the disk is not known; "
                          "start the server again",
                          j->path);
    BASIN_TRY(watch(j, j->bytes, error));
    BASIN_FREE_AT_EXIT char *json = cJSON_PrintUnformatted(addition);
    BASIN_TRY(write_record(j, json, error));
    j->records++;
    return BASIN_OK;
}

basin_status basin_journal_sync(basin_journal *j, basin_error *error) {
    if (j->fd < 0) return BASIN_OK;
    if (!j->broken && !fdatasync(j->fd)) return watch(j, 0, error); /* others append */
    if (j->broken) errno = EIO; /* what failed once is not tried again: it might seem to succeed */
    j->broken = true;
    return basin_fail_errno(j->path, "write to the disk", error);
}

/* ---- taking back ---- */

static basin_status find(void *context, const basin_journal_entry *e, basin_error *error) {
    basin_journal_entry *sought = context;
    (void)error;
    if (e->number == sought->number) *sought = *e;
    return BASIN_OK;
}

basin_status basin_journal_undo(basin_journal *j, int64_t number, basin_error *error) {
    basin_journal_entry e = {.number = number};
    char json[64];
    BASIN_TRY(basin_journal_each(j, 0, j->bytes, find, &e, error));
    if (!e.size)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: has no record %" PRId64, j->path, number);
    if (e.undone)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: record %" PRId64 " was taken back before",
                          j->path, number);
    snprintf(json, sizeof json, "%s%" PRId64 "}", undo_key, e.at);
    BASIN_TRY(write_record(j, json, error));
    return basin_journal_sync(j, error);
}

/* ---- folding ---- */

bool basin_journal_is(const char *path) {
    static const char mark[] = "{\"basin_journal\":";
    char head[HEAD + sizeof mark] = "";
    FILE *file = basin_file_special(path) ? NULL : fopen(path, "rb");
    size_t size = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    return size == sizeof head - 1 && (!memcmp(head + HEAD, mark, sizeof mark - 1) ||
                                       !memcmp(head + OLD_HEAD, mark, sizeof mark - 1));
}

static basin_status fold(void *context, cJSON *tree, const char *what, basin_error *error) {
    return basin_additions_put(context, tree, what, error);
}

basin_status basin_journal_tables(basin_additions *additions, const char *path, const char *digest,
                                  basin_error *error) {
    basin_journal *j;
    BASIN_TRY(basin_journal_open(&j, path, digest, true, error));
    basin_status status = basin_journal_replay(j, 0, j->bytes, fold, additions, error);
    basin_journal_close(j);
    if (!status) status = basin_additions_put_none(additions, error);
    return status ? status : basin_additions_finish(additions, error);
}
