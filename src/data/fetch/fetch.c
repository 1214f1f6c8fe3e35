/* Downloads, through libcurl and libarchive; see fetch.h. */
#include "data/fetch/fetch.h"

#define CURL_DISABLE_TYPECHECK /* it knows the functions by name alone */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library.h"
#include "base/memory.h"
#include "data/archive.h"
#include "io/file.h"

static char *append(const char *path, const char *end) {
    size_t room = strlen(path) + strlen(end) + 1;
    char *text = malloc(room);
    if (text) snprintf(text, room, "%s%s", path, end);
    return text;
}

static int64_t size_of(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (int64_t)s.st_size : -1;
}

/* ---- one transfer ---- */

#define CURL_FUNCTIONS(X)                                                                          \
    X(curl_global_init)                                                                            \
    X(curl_global_cleanup)                                                                         \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_perform)                                                                           \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_easy_cleanup)
typedef struct curl_table {
    CURL_FUNCTIONS(BASIN_LIBRARY_FIELD)
} curl_table;
static const basin_library_function curl_functions[] = {CURL_FUNCTIONS(BASIN_LIBRARY_NAME){0}};

typedef struct transfer {
    const basin_fetch_spec *spec;
    FILE *file;
    int64_t had;  /* bytes that were there before */
    int64_t left; /* bytes that may still come */
    bool too_large;
} transfer;

static size_t on_data(char *data, size_t size, size_t count, void *context) {
    transfer *t = context;
    size_t bytes = size * count;
    t->too_large = t->left < 0 || bytes > (uint64_t)t->left;
    if (t->too_large) return 0; /* ends the transfer */
    t->left -= (int64_t)bytes;
    return fwrite(data, 1, bytes, t->file);
}

static int on_progress(void *context, curl_off_t total, curl_off_t done, curl_off_t up_total,
                       curl_off_t up_done) {
    const transfer *t = context;
    (void)up_total, (void)up_done;
    if (t->spec->progress)
        t->spec->progress(t->spec->context, t->had + (int64_t)done,
                          total > 0 ? t->had + (int64_t)total : -1);
    return 0;
}

const char *basin_fetch_redirects(const char *url) {
    return !strncasecmp(url, "https:", 6) ? "https" : "http,https";
}

static int64_t most_of(const basin_fetch_spec *spec) {
    return spec->size >= 0 ? spec->size : BASIN_FETCH_MOST;
}

static void set_options(const curl_table *c, CURL *curl, transfer *t, char *message) {
    c->curl_easy_setopt(curl, CURLOPT_URL, t->spec->url);
    c->curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    c->curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    c->curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    c->curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    c->curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    c->curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    c->curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    c->curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    c->curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    c->curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
    c->curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    c->curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
    c->curl_easy_setopt(curl, CURLOPT_USERAGENT, "basin");
    c->curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->had);
    c->curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
#if LIBCURL_VERSION_NUM >= 0x075500
    c->curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    c->curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, basin_fetch_redirects(t->spec->url));
#else
    bool secure = !strcmp(basin_fetch_redirects(t->spec->url), "https");
    c->curl_easy_setopt(curl, CURLOPT_PROTOCOLS,
                        (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS | CURLPROTO_FILE));
    c->curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS,
                        (long)(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* What a server says that cannot go on from the middle. */
static bool cannot_resume(CURLcode code, long http) {
    return code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME || http == 416;
}

static basin_status transfer_once(bool *again, const curl_table *c, const basin_fetch_spec *spec,
                                  const char *part, bool resume, basin_error *error) {
    char message[CURL_ERROR_SIZE] = "";
    transfer t = {.spec = spec};
    long http = 0;
    *again = false;
    t.file = fopen(part, resume ? "ab" : "wb");
    if (!t.file) return basin_fail(error, BASIN_IO, "%s: %s", part, strerror(errno));
    int64_t had = resume ? size_of(part) : 0;
    t.had = had > 0 ? had : 0;
    t.left = most_of(spec) - t.had;
    CURL *curl = c->curl_easy_init();
    if (!curl) {
        fclose(t.file);
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", spec->url);
    }
    set_options(c, curl, &t, message);
    CURLcode code = c->curl_easy_perform(curl);
    c->curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http);
    c->curl_easy_cleanup(curl);
    bool kept = fflush(t.file) == 0 && fsync(fileno(t.file)) == 0;
    int why = errno;
    fclose(t.file);
    if (code == CURLE_OK && !kept)
        return basin_fail(error, BASIN_IO, "%s: %s", part, strerror(why));
    if (code == CURLE_OK) return BASIN_OK;
    if (t.too_large) {
        unlink(part);
        return basin_fail(error, BASIN_BAD_FILE, "%s: more than %" PRId64 " bytes came; removed",
                          spec->url, most_of(spec));
    }
    *again = resume && cannot_resume(code, http);
    return basin_fail(error, BASIN_IO, "%s: %s", spec->url,
                      *message ? message : c->curl_easy_strerror(code));
}

static basin_status download(const basin_fetch_spec *spec, const char *part, basin_error *error) {
    int64_t had = size_of(part);
    bool resume = spec->sha256 && had > 0 && (spec->size < 0 || had <= spec->size), again;
    if (resume && had == spec->size) return BASIN_OK;
    curl_table c;
    basin_status status = basin_library_load(&c, BASIN_LIBRARY_CURL, curl_functions, error);
    if (status) return status;
    if (c.curl_global_init(CURL_GLOBAL_DEFAULT))
        return basin_fail(error, BASIN_NO_MEMORY, "%s: libcurl does not start", spec->url);
    status = transfer_once(&again, &c, spec, part, resume, error);
    if (status && again) status = transfer_once(&again, &c, spec, part, false, error);
    c.curl_global_cleanup();
    /* what came is worth keeping only where a digest will tell whether it was right */
    if (status && (!spec->sha256 || size_of(part) <= 0)) unlink(part);
    return status;
}

/* ---- digests ---- */

/* The digest that an earlier fetch wrote down; false where there is none. */
static bool read_record(char digest[BASIN_SHA256_TEXT], const char *record) {
    FILE *file = fopen(record, "r");
    bool good = file && fread(digest, 1, BASIN_SHA256_TEXT - 1, file) == BASIN_SHA256_TEXT - 1;
    if (file) fclose(file);
    digest[BASIN_SHA256_TEXT - 1] = 0;
    return good && strspn(digest, "0123456789abcdef") == BASIN_SHA256_TEXT - 1;
}

/* The last part of a path. */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* As sha256sum writes and checks it. */
static basin_status write_record(const char *record, const char *digest, const char *path,
                                 basin_error *error) {
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, record, error);
    if (status) return status;
    fprintf(writer.file, "%s  %s\n", digest, base_name(path));
    return basin_writer_commit(&writer, error);
}

/* Whether a file begins as web pages do: a login, a notice, an error that came with success. */
static bool is_page(const char *path) {
    char head[512] = "";
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    head[got] = 0;
    const char *at = head + strspn(head, " \t\r\n\xef\xbb\xbf");
    return !strncasecmp(at, "<!doctype", 9) || !strncasecmp(at, "<html", 5);
}

static basin_status finish(basin_fetch_result *r, const basin_fetch_spec *spec, const char *part,
                           const char *wanted, const char *record, basin_error *error) {
    int64_t size = size_of(part);
    basin_status status = basin_sha256_file(r->sha256, part, error);
    if (status) return status;
    if (wanted && strcmp(r->sha256, wanted) != 0) {
        unlink(part);
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: came with %" PRId64 " bytes and SHA-256 %s, wanted %s; removed",
                          spec->url, size, r->sha256, wanted);
    }
    if (!wanted && is_page(part)) {
        unlink(part);
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: a web page of %" PRId64 " bytes came, wanted %s; removed", spec->url,
                          size, base_name(spec->path));
    }
    if (!wanted) {
        status = write_record(record, r->sha256, spec->path, error);
        r->first_fetch = !status;
    }
    if (!status && rename(part, spec->path) != 0)
        status = basin_fail(error, BASIN_IO, "%s: %s", spec->path, strerror(errno));
    return status;
}

static basin_status check_present(basin_fetch_result *r, const basin_fetch_spec *spec,
                                  const char *wanted, basin_error *error) {
    basin_status status = basin_sha256_file(r->sha256, spec->path, error);
    if (status) return status;
    r->was_there = true;
    if (!wanted || !strcmp(r->sha256, wanted)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: is there with SHA-256 %s, wanted %s; remove it to fetch it again",
                      spec->path, r->sha256, wanted);
}

basin_status basin_fetch(basin_fetch_result *result, const basin_fetch_spec *spec,
                         basin_error *error) {
    char recorded[BASIN_SHA256_TEXT];
    *result = (basin_fetch_result){0};
    char *part = append(spec->path, ".part"), *record = append(spec->path, ".sha256");
    basin_status status = BASIN_OK;
    if (!part || !record)
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", spec->path);
    const char *wanted = spec->sha256;
    if (!status && !wanted && read_record(recorded, record)) wanted = recorded;
    if (!status && size_of(spec->path) >= 0) {
        status = check_present(result, spec, wanted, error);
    } else if (!status) {
        status = download(spec, part, error);
        if (!status) status = finish(result, spec, part, wanted, record, error);
    }
    free(part);
    free(record);
    return status;
}

/* ---- archives ---- */

static bool is_member(const char *name, const char *member) {
    return name && !strcmp(base_name(name), member);
}

static basin_status copy_entry(const char *path, const basin_archive *a, const char *archive,
                               basin_error *error) {
    basin_writer writer;
    char buffer[1 << 14];
    basin_status status = basin_writer_create(&writer, path, error);
    if (status) return status;
    for (;;) {
        la_ssize_t got = a->archive_read_data(a->reader, buffer, sizeof buffer);
        if (got < 0)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: %s", archive, basin_archive_why(a));
        if (!status && got > 0) status = basin_writer_put(&writer, buffer, (size_t)got, error);
        if (status) {
            basin_writer_discard(&writer);
            return status;
        }
        if (got == 0) return basin_writer_commit(&writer, error);
    }
}

basin_status basin_fetch_unpack(const char *path, const char *archive, const char *member,
                                basin_error *error) {
    basin_archive a = {0};
    struct archive_entry *entry;
    basin_map map;
    bool found = false;
    basin_status status = basin_map_open(&map, archive, error);
    if (status) return status;
    status = basin_archive_open(&a, map.data, map.size, archive, "archive", error);
    while (!status && !found && a.archive_read_next_header(a.reader, &entry) == ARCHIVE_OK) {
        found = is_member(a.archive_entry_pathname(entry), member);
        if (found) status = copy_entry(path, &a, archive, error);
    }
    if (!status && !found)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s is not in it", archive, member);
    basin_archive_close(&a);
    basin_map_close(&map);
    return status;
}
