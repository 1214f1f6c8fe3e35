/* basin data get: public sets, fetched by curl and checked by SHA-256.
 *
 * A digest stands here only where it is published or agreed on widely; otherwise the digest of the
 * first fetch is kept in FILE.sha256, and later ones must match it. Nothing is copied or served by
 * Basin, and each set's licence is its source's. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "io/file.h"

static const basin_option table[] = {
    BASIN_TEXT(output, 'o', "output", "FOLDER", "The folder for the files; made if absent.",
               .needs = "list=off", .text = "."),
    BASIN_TEXT(mirror, 0, "mirror", "URL",
               "Fetch from URL/FILE instead, with the same checks; file:///FOLDER works, too.",
               .needs = "list=off"),
    BASIN_FLAG(list, "list", "List the sets."),
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("list=on"),
    BASIN_OPTIONS_END,
};

enum { FILES = 4, DIGEST = 64, PATH = 4096 };

typedef struct set {
    const char *name, *what;
    const char *folder;           /* URL of its files; or of a page, where `file` is empty */
    const char *file[FILES];      /* names */
    const char *sha256[FILES];    /* NULL: not known */
    const char *member, *convert; /* to unpack from the first; how to go on; or NULL */
} set;

#define DGL "https://data.dgl.ai/dataset"
#define DRIVE "https://drive.google.com/drive/folders/1PpNwvZx_YRSCDiHaBUmRIS3x1rZR7fMr"
#define HETEROPHILOUS "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
#define TU "https://www.chrsmrrs.com/graphkerneldatasets"

static const set sets[] = {
    {"amazon", "reviewers of musical instruments, three relations, 11,944 nodes (CARE-GNN)", DGL,
     .file = {"FraudAmazon.zip"}, .member = "Amazon.mat",
     .convert = "Amazon.mat amazon.basin --unlabelled-first 3305"},
    {"yelp", "reviews of hotels and restaurants, three relations, 45,954 nodes (CARE-GNN)", DGL,
     .file = {"FraudYelp.zip"}, .member = "YelpChi.mat", .convert = "YelpChi.mat yelp.basin"},
    {"tfinance", "accounts and transactions, 39,357 nodes, 21 million edges (BWGNN)", DRIVE,
     .convert = "tfinance tfinance.basin"},
    {"tsocial", "accounts and friendships, 5.8 million nodes, 73 million edges (BWGNN)", DRIVE,
     .convert = "tsocial tsocial.basin"},
    {"tolokers", "crowd workers, 11,758 nodes, ten splits (heterophilous graphs)", HETEROPHILOUS,
     .file = {"tolokers.npz"}, .convert = "tolokers.npz tolokers.basin"},
    {"questions", "users of a question site, 48,921 nodes, ten splits (heterophilous graphs)",
     HETEROPHILOUS, .file = {"questions.npz"}, .convert = "questions.npz questions.basin"},
    {"mutag", "188 molecules (TUDataset)", TU, .file = {"MUTAG.zip"}},
    {"enzymes", "600 proteins in six classes (TUDataset)", TU, .file = {"ENZYMES.zip"}},
    {"proteins", "1,113 proteins (TUDataset)", TU, .file = {"PROTEINS.zip"}},
    {"dd", "1,178 large proteins (TUDataset)", TU, .file = {"DD.zip"}},
    {"nci1", "4,110 molecules (TUDataset)", TU, .file = {"NCI1.zip"}},
    {"nci109", "4,127 molecules (TUDataset)", TU, .file = {"NCI109.zip"}},
    {"mutagenicity", "4,337 molecules (TUDataset)", TU, .file = {"Mutagenicity.zip"}},
    {"frankenstein", "4,337 molecules with 780 features (TUDataset)", TU,
     .file = {"FRANKENSTEIN.zip"}},
    {"mnist", "70,000 handwritten digits", "https://storage.googleapis.com/cvdf-datasets/mnist",
     .file = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
              "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"},
     .sha256 = {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
    {"cifar10", "60,000 small photographs in ten classes", "https://www.cs.toronto.edu/~kriz",
     .file = {"cifar-10-binary.tar.gz"},
     .sha256 = {"c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
};
enum { SETS = sizeof sets / sizeof *sets };

static void put_files(basin_record *r, const set *s) {
    basin_record_table(r, "files", NULL);
    for (int i = 0; i < FILES && s->file[i]; i++) {
        basin_record_row(r);
        basin_record_text(r, "name", s->file[i]);
        basin_record_format(r, "url", "%s/%s", s->folder, s->file[i]);
        basin_record_text(r, "sha256", s->sha256[i]);
    }
    basin_record_end(r);
}

static void put_sets(basin_record *r, const void *context) {
    (void)context;
    basin_record_table(r, "sets", NULL);
    for (const set *s = sets; s < sets + SETS; s++) {
        basin_record_row(r);
        basin_record_text(r, "name", s->name);
        basin_record_text(r, "check",
                          !s->file[0]    ? "by hand"
                          : s->sha256[0] ? "known digest"
                                         : "first fetch counts");
        basin_record_text(r, "what", s->what);
        basin_record_text(r, ".by_hand", s->file[0] ? NULL : s->folder);
        put_files(r, s);
    }
    basin_record_end(r);
}

/* ---- programs ---- */

extern char **environ;

/* Runs a program without a shell; its standard output goes to `out`. */
static basin_status run_program(const char *const *argument, int out, const char *what,
                                basin_error *error) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int failed = posix_spawnp(&child, *argument, &actions, NULL, (char *const *)argument, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: the program %s cannot be run: %s", what,
                          *argument, strerror(failed));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: %s failed with status %d", what, *argument,
                      WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* Into a file that is made anew: a link that lies there is removed, not followed. */
static basin_status download(const char *part, const char *url, bool quiet, basin_error *error) {
    const char *then = strncasecmp(url, "https:", 6) ? "=http,https" : "=https";
    bool show = !quiet && isatty(STDERR_FILENO);
    /* clang-format off */
    const char *argument[] = {
        "curl", "--fail", "--location", "--proto", "=http,https,file", "--proto-redir", then,
        "--connect-timeout", "30", "--speed-limit", "1", "--speed-time", "60",
        "--max-filesize", "8589934592", show ? "--progress-bar" : "--silent", "--", url, NULL};
    /* clang-format on */
    unlink(part);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return basin_fail(error, BASIN_IO, "%s: %s", part, strerror(errno));
    basin_status status = run_program(argument, fd, url, error);
    if (!status && fsync(fd)) status = basin_fail(error, BASIN_IO, "%s: %s", part, strerror(errno));
    close(fd);
    return status;
}

/* ---- a file ---- */

/* Whether it begins as web pages do: a login, a notice, an error that came with success. */
static bool is_page(const char *path) {
    char head[512] = "";
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    head[got] = 0;
    const char *at = head + strspn(head, " \t\r\n\xef\xbb\xbf");
    return !strncasecmp(at, "<!doctype", 9) || !strncasecmp(at, "<html", 5);
}

/* The digest that an earlier fetch wrote down; NULL where there is none. */
static const char *recorded(char digest[DIGEST + 1], const char *record) {
    FILE *file = fopen(record, "r");
    bool good = file && fread(digest, 1, DIGEST, file) == DIGEST;
    if (file) fclose(file);
    digest[DIGEST] = 0;
    return good && strspn(digest, "0123456789abcdef") == DIGEST ? digest : NULL;
}

/* As sha256sum writes and checks it. */
static basin_status write_record(const char *record, const char *digest, const char *name,
                                 basin_error *error) {
    basin_writer writer;
    BASIN_TRY(basin_writer_create(&writer, record, error));
    fprintf(writer.file, "%s  %s\n", digest, name);
    return basin_writer_commit(&writer, error);
}

static basin_status check(char digest[DIGEST + 1], const char *part, const char *wanted,
                          const char *url, basin_error *error) {
    BASIN_TRY(basin_file_sha256(digest, part, error));
    if (wanted && strcmp(digest, wanted) != 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: came with SHA-256 %s, wanted %s; removed",
                          url, digest, wanted);
    if (!wanted && is_page(part))
        return basin_fail(error, BASIN_BAD_FILE, "%s: a web page came, wanted a file; removed",
                          url);
    return BASIN_OK;
}

static basin_status fetch(char digest[DIGEST + 1], const char *path, const char *wanted,
                          const char *url, bool quiet, basin_error *error) {
    char part[PATH + 8];
    snprintf(part, sizeof part, "%s.part", path);
    basin_status status = download(part, url, quiet, error);
    if (!status) status = check(digest, part, wanted, url, error);
    if (!status && rename(part, path))
        status = basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
    if (status) unlink(part);
    return status;
}

static basin_status get_file(const set *s, int i, basin_args *o, basin_error *error) {
    char path[PATH], record[PATH + 8], url[PATH], digest[DIGEST + 1], first[DIGEST + 1];
    int length = snprintf(path, sizeof path, "%s/%s", o->output, s->file[i]);
    int more = snprintf(url, sizeof url, "%s/%s", o->mirror ? o->mirror : s->folder, s->file[i]);
    if (length >= PATH || more >= PATH)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the path is too long", s->file[i]);
    snprintf(record, sizeof record, "%s.sha256", path);
    const char *wanted = s->sha256[i] ? s->sha256[i] : recorded(first, record);
    bool there = !access(path, F_OK);
    if (there) {
        BASIN_TRY(basin_file_sha256(digest, path, error));
        if (wanted && strcmp(digest, wanted) != 0)
            return basin_fail(
                error, BASIN_BAD_FILE,
                "%s: is there with SHA-256 %s, wanted %s; remove it to fetch it again", path,
                digest, wanted);
        if (!o->quiet) basin_say("%s: was there already", path);
    } else {
        BASIN_TRY(fetch(digest, path, wanted, url, o->quiet, error));
    }
    printf("%s  %s\n", digest, path);
    if (wanted) return BASIN_OK;
    if (!o->quiet)
        basin_say("%s: Basin knows no digest of this file; the one above is kept in %s and counts "
                  "from now on",
                  path, record);
    return write_record(record, digest, s->file[i], error);
}

static basin_status get_set(const set *s, basin_args *o, basin_error *error) {
    const char *convert = s->convert ? s->convert : "";
    if (!s->file[0])
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: no link leads to the file itself; get it with a browser from %s, "
                          "then: basin data convert %s",
                          s->name, s->folder, convert);
    BASIN_TRY(basin_folder_make(o->output, error));
    for (int i = 0; i < FILES && s->file[i]; i++) BASIN_TRY(get_file(s, i, o, error));
    if (s->member) {
        char archive[PATH];
        snprintf(archive, sizeof archive, "%s/%s", o->output, s->file[0]);
        fflush(stdout);
        BASIN_TRY(run_program(
            (const char *[]){"unzip", "-o", "-q", "-j", archive, s->member, "-d", o->output, NULL},
            STDERR_FILENO, archive, error));
        printf("%s/%s\n", o->output, s->member);
    }
    if (*convert && !o->quiet) basin_say("next: basin data convert %s", convert);
    return BASIN_OK;
}

static basin_status run(basin_args *o, basin_error *error) {
    if (o->list && o->operands)
        return basin_usage(error, "--list lists all sets and takes no names");
    if (o->list) return basin_record_print(o->json, put_sets, NULL, error);
    if (o->operands < 1) return basin_usage(error, "needs NAME, or --list for the names");
    for (int i = 0; i < o->operands; i++) {
        const set *s = sets;
        while (s < sets + SETS && strcmp(s->name, o->operand[i]) != 0) s++;
        if (s == sets + SETS)
            return basin_usage(error, "no set '%s'; 'basin data get --list' names them",
                               o->operand[i]);
        BASIN_TRY(get_set(s, o, error));
    }
    return BASIN_OK;
}

const basin_command basin_command_data_get = {"data get", table, .run = run, .least = -1};
