/* The program as one of several ranks; see launch.h. */
#define _GNU_SOURCE
#include "cli/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basin/version.h"
#include "cli/command.h"
#include "ranks/ranks.h"

/* ---- silence ---- */

/* Standard error of a silent rank is kept, so that its last line can be printed. */
static void silence(basin_cli_ranks *r) {
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    r->spoken = memfd_create("basin", MFD_CLOEXEC);
    r->heard = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (r->spoken >= 0) dup2(r->spoken, STDERR_FILENO);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        close(nowhere);
    }
}

/* The last line that begins with "basin: ", without that. */
static void last_words(basin_error *error, const basin_cli_ranks *r) {
    char text[2 * BASIN_ERROR_TEXT] = "";
    off_t end = r->spoken >= 0 ? lseek(r->spoken, 0, SEEK_END) : 0;
    off_t from = end > (off_t)sizeof text - 1 ? end - ((off_t)sizeof text - 1) : 0;
    ssize_t got = end > 0 ? pread(r->spoken, text, sizeof text - 1, from) : 0;
    const char *line = NULL;
    text[got > 0 ? got : 0] = 0;
    for (const char *at = text; (at = strstr(at, "basin: ")); at++)
        if (at == text || at[-1] == '\n') line = at + strlen("basin: ");
    int length = line ? (int)strcspn(line, "\n") : 0;
    basin_fail(error, BASIN_BAD_VALUE, "%.*s", length ? length : 6, length ? line : "failed");
}

/* ---- words ---- */

/* Whether this is a word that may differ from host to host; *next: so may the one behind it. */
static bool is_own(const char *word, bool *next) {
    static const char *const own[] = {"--threads", "--memory"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        size_t length = strlen(own[i]);
        if (strncmp(word, own[i], length) != 0) continue;
        *next = !word[length];
        if (*next || word[length] == '=') return true;
    }
    return false;
}

/* A line a word, behind the version; free() it. */
static char *list_words(int words, char *const *word) {
    static const char version[] = "basin " BASIN_VERSION_STRING "\n";
    size_t size = sizeof version, at = sizeof version - 1;
    for (int i = 0; i < words; i++) size += strlen(word[i]) + 1;
    char *text = malloc(size);
    if (!text) return NULL;
    memcpy(text, version, sizeof version);
    for (int i = 0; i < words; i++) {
        bool next = false;
        if (!is_own(word[i], &next)) at += (size_t)sprintf(text + at, "%s\n", word[i]);
        i += next;
    }
    return text;
}

bool basin_cli_ranks_begin(basin_cli_ranks *r, int words, char *const *word) {
    int64_t count;
    *r = (basin_cli_ranks){.spoken = -1, .heard = -1};
    bool launched = basin_ranks_launched(&r->rank, &count);
    if (r->rank > 0) silence(r);
    if (!launched || count < 2) return false;
    r->words = list_words(words, word);
    return true;
}

/* ---- opening and closing ---- */

static void say(const basin_cli_ranks *r, const char *line) {
    char text[2 * BASIN_ERROR_TEXT];
    int length = snprintf(text, sizeof text, "basin: %s\n", line);
    if (write(r->heard >= 0 ? r->heard : STDERR_FILENO, text, (size_t)length) < 0) return;
}

static basin_status compare_words(const basin_cli_ranks *r, basin_error *error) {
    basin_status status = BASIN_OK;
    if (!r->words)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for the command's words");
    status = basin_ranks_agree(r->ranks, status, error);
    return status ? status : basin_ranks_alike(r->ranks, r->words, "the command's words", error);
}

basin_status basin_cli_ranks_open(basin_cli_ranks *r, basin_error *error) {
    char device[32];
    basin_status status = basin_ranks_open(&r->ranks, error);
    snprintf(device, sizeof device, "%lld", (long long)basin_ranks_local(r->ranks));
    if (!status && r->ranks) setenv("BASIN_CUDA_DEVICE", device, 0);
    if (!status && basin_ranks_count(r->ranks) > 1) status = compare_words(r, error);
    return status;
}

int64_t basin_cli_ranks_threads(const basin_cli_ranks *r) { return basin_ranks_threads(r->ranks); }

/* A failure that not all ranks share ends the job. Rank 0 has printed its own; others give it a
 * second to end the job first, since most failures come to all ranks alike, then print theirs. */
static void fail(const basin_cli_ranks *r, int code) {
    char line[2 * BASIN_ERROR_TEXT];
    basin_error error;
    last_words(&error, r);
    if (r->rank > 0 && basin_ranks_agreed(&error)) return;
    if (r->rank > 0) {
        sleep(1);
        snprintf(line, sizeof line, "rank %lld on %s: %s", (long long)r->rank,
                 basin_ranks_host(r->ranks), error.text);
        say(r, line);
    }
    basin_ranks_abort(r->ranks, code);
}

void basin_cli_ranks_end(basin_cli_ranks *r, int code) {
    if (r->ranks && code && code != BASIN_EXIT_AGAIN) fail(r, code);
    basin_ranks_close(r->ranks);
    if (r->heard >= 0) close(r->heard);
    if (r->spoken >= 0) close(r->spoken);
    free(r->words);
    r->words = NULL;
    r->ranks = NULL;
}
