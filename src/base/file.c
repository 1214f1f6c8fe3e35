/* Mapping files, writing them aside, and the files below a folder; see file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/try.h"

/* ---- the files below a folder ---- */

enum { DEPTH = 64 }; /* paths would become too long for the system */

typedef struct walker {
    const char *root;
    basin_folder_take *take;
    void *context;
    struct stat *seen; /* [count] folders */
    size_t count, capacity;
} walker;

/* Adds a folder to those visited; *fresh is set to whether it is new. */
static basin_status visit_folder(bool *fresh, walker *w, const struct stat *info,
                                 basin_error *error) {
    *fresh = true;
    for (size_t i = 0; i < w->count && *fresh; i++)
        *fresh = w->seen[i].st_dev != info->st_dev || w->seen[i].st_ino != info->st_ino;
    if (!*fresh) return BASIN_OK;
    BASIN_TRY(BASIN_GROW(&w->seen, &w->capacity, w->count + 1, "a list of files", error));
    w->seen[w->count++] = *info;
    return BASIN_OK;
}

/* "a/b"; "b" where a is empty; NULL without memory. */
static char *join(const char *a, const char *b) {
    size_t size = strlen(a) + strlen(b) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s%s%s", a, *a && *b ? "/" : "", b);
    return path;
}

static int is_listed(const struct dirent *e) { return e->d_name[0] != '.'; }
static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static basin_status walk(walker *w, const char *below, int depth, basin_error *error);

static basin_status visit(walker *w, const char *below, const char *name, int depth,
                          basin_error *error) {
    struct stat info;
    bool fresh;
    BASIN_FREE_AT_EXIT char *path = join(below, name);
    BASIN_FREE_AT_EXIT char *full = path ? join(w->root, path) : NULL;
    if (!full) return basin_fail_memory(error, "a list of files");
    /* a link to nowhere: who takes it finds that it cannot be read, and says so */
    if (stat(full, &info) != 0) return w->take(w->context, path, 0, error);
    if (S_ISREG(info.st_mode)) return w->take(w->context, path, (size_t)info.st_size, error);
    if (!S_ISDIR(info.st_mode)) return BASIN_OK;
    BASIN_TRY(visit_folder(&fresh, w, &info, error));
    return fresh ? walk(w, path, depth + 1, error) : BASIN_OK;
}

static basin_status walk(walker *w, const char *below, int depth, basin_error *error) {
    struct dirent **entry;
    basin_status status = BASIN_OK;
    BASIN_FREE_AT_EXIT char *path = join(w->root, below);
    if (depth > DEPTH)
        return basin_fail(error, BASIN_IO, "%s/%s: more than %d folders deep", w->root, below,
                          DEPTH);
    if (!path) return basin_fail_memory(error, "a list of files");
    int count = scandir(path, &entry, is_listed, by_bytes);
    if (count < 0) return basin_fail_errno(path, "list", error);
    for (int i = 0; i < count; i++) {
        if (!status) status = visit(w, below, entry[i]->d_name, depth, error);
        free(entry[i]);
    }
    free(entry);
    return status;
}

basin_status basin_folder_walk(const char *root, basin_folder_take *take, void *context,
                               basin_error *error) {
    struct stat info;
    bool fresh;
    walker w = {.root = root, .take = take, .context = context};
    basin_status status = BASIN_OK;
    if (stat(root, &info) == 0) status = visit_folder(&fresh, &w, &info, error);
    if (!status) status = walk(&w, "", 0, error);
    free(w.seen);
    return status;
}

basin_status basin_fail_errno(const char *path, const char *doing, basin_error *error) {
    int code = errno;
    basin_status status = code == ENOMEM ? BASIN_NO_MEMORY : BASIN_IO;
    basin_fail(error, status, "%s: cannot %s: %s", path, doing, strerror(code));
    if (error) error->number = code;
    return status;
}

basin_status basin_file_open(int *fd, size_t *size, const char *path, basin_error *error) {
    struct stat info;
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return basin_fail_errno(path, "open for reading", error);
    bool known = fstat(*fd, &info) == 0;
    if (known && S_ISREG(info.st_mode)) {
        *size = (size_t)info.st_size;
        return BASIN_OK;
    }
    if (known)
        basin_fail(error, BASIN_IO, "%s: is %s", path,
                   S_ISDIR(info.st_mode) ? "a folder, not a file" : "not a regular file");
    else
        basin_fail_errno(path, "examine", error);
    close(*fd);
    *fd = -1;
    return BASIN_IO;
}

basin_status basin_map_open(basin_map *map, const char *path, basin_error *error) {
    int fd;
    size_t size;
    *map = (basin_map){0};
    BASIN_TRY(basin_file_open(&fd, &size, path, error));
    void *data = size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    basin_status status = data == MAP_FAILED ? basin_fail_errno(path, "map", error) : BASIN_OK;
    if (data && !status) *map = (basin_map){data, size};
    close(fd);
    return status;
}

void basin_map_close(basin_map *map) {
    if (map->data) munmap((void *)map->data, map->size);
    *map = (basin_map){0};
}

basin_status basin_file_sha256(char text[BASIN_SHA256_TEXT], const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map;
    BASIN_TRY(basin_map_open(&map, path, error));
    basin_sha256_print(text, map.data, map.size);
    return BASIN_OK;
}

/* Follows symbolic links, so that the target is replaced or created and not the link.
 */
static char *resolve(const char *path) {
    struct stat info;
    char to[PATH_MAX], joined[2 * PATH_MAX];
    char *found = realpath(path, NULL);
    if (found) {
        char *copy = basin_string_copy(found);
        free(found);
        return copy;
    }
    bool missing = stat(path, &info) != 0 && errno == ENOENT; /* /dev/stdout may lead to a pipe */
    ssize_t length = missing ? readlink(path, to, sizeof to - 1) : -1;
    if (length < 0) return basin_string_copy(path);
    to[length] = '\0';
    const char *slash = to[0] == '/' ? NULL : strrchr(path, '/');
    snprintf(joined, sizeof joined, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, to);
    return resolve(joined);
}

bool basin_file_special(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

basin_status basin_file_same(bool *same, const char *a, const char *b, basin_error *error) {
    struct stat info;
    *same = false;
    while (!strncmp(a, "./", 2)) a += 2;
    while (!strncmp(b, "./", 2)) b += 2;
    if (stat(a, &info) == 0 && !S_ISREG(info.st_mode)) return BASIN_OK;
    BASIN_FREE_AT_EXIT char *x = resolve(a), *y = resolve(b);
    if (!x || !y) return basin_fail_memory(error, "a path");
    *same = !strcmp(x, y);
    return BASIN_OK;
}

enum { MODE_NEW = 0666, TRIES = 1000 };

/* Creates a file under a new name and holds its lock, by which basin_writer_sweep sees that the
 * writer is alive. If a sweep removed the file before it was locked, fails with EEXIST: try again.
 */
static int create_locked(const char *path) {
    struct stat info;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_NEW);
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK) return fd; /* knows no locks */
    if (fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

/* Creates target.tmp-PID-n for the first n that is free; the mode is that of the file replaced. */
static basin_status create_aside(basin_writer *writer, const struct stat *old, basin_error *error) {
    size_t size = strlen(writer->target) + 40;
    int fd = -1;
    writer->aside = malloc(size);
    if (!writer->aside)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to write", writer->path);
    for (int i = 0; i < TRIES && fd < 0; i++) {
        snprintf(writer->aside, size, "%s.tmp-%ld-%d", writer->target, (long)getpid(), i);
        fd = create_locked(writer->aside);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0) {
        free(writer->aside);
        writer->aside = NULL;
        return basin_fail_errno(writer->path, "write", error);
    }
    if (old && fchmod(fd, old->st_mode & 07777) != 0) {
        /* a file system without modes: the default one will do */
    }
    writer->file = fdopen(fd, "wb");
    if (writer->file) return BASIN_OK;
    close(fd);
    return basin_fail_errno(writer->path, "write", error);
}

/* A copy of standard output or error where a path such as /dev/stdout names it: what it leads to
 * keeps what is there. NULL: neither is meant. */
static FILE *open_standard(const char *path, const struct stat *named) {
    struct stat info;
    if (strncmp(path, "/dev/", 5) && strncmp(path, "/proc/", 6)) return NULL;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &info) || info.st_dev != named->st_dev || info.st_ino != named->st_ino)
            continue;
        fflush(fd == STDOUT_FILENO ? stdout : stderr);
        return fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 0), "wb");
    }
    return NULL;
}

basin_status basin_writer_create(basin_writer *writer, const char *path, basin_error *error) {
    struct stat old;
    basin_status status;
    *writer = (basin_writer){.path = path};
    writer->target = resolve(path);
    if (!writer->target)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to write", path);
    bool exists = stat(writer->target, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
        status = basin_fail(error, BASIN_IO, "%s: is a folder, not a file", path);
    } else if (exists && (writer->file = open_standard(path, &old))) {
        status = BASIN_OK;
    } else if (exists && !S_ISREG(old.st_mode)) {
        writer->file = fopen(writer->target, "wb");
        status = writer->file ? BASIN_OK : basin_fail_errno(path, "write", error);
    } else {
        status = create_aside(writer, exists ? &old : NULL, error);
    }
    if (status != BASIN_OK) basin_writer_discard(writer);
    return status;
}

basin_status basin_writer_put(basin_writer *writer, const void *data, size_t bytes,
                              basin_error *error) {
    if (bytes == 0 || fwrite(data, 1, bytes, writer->file) == bytes) return BASIN_OK;
    return basin_fail_errno(writer->path, "write", error);
}

/* A rename is on the disk only once its folder is. File systems that cannot sync a folder have
 * nothing to add here, so the result is not looked at. */
static void sync_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = '\0';
    int fd = open(slash ? path : ".", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

basin_status basin_writer_commit(basin_writer *writer, basin_error *error) {
    basin_status status = BASIN_OK;
    bool failed = ferror(writer->file); /* of an fprintf that nobody looked at */
    if (failed) {                       /* once more, to learn why */
        errno = 0;
        if (fflush(writer->file) == 0 || !errno) errno = EIO;
    }
    bool flushed = !failed && fflush(writer->file) == 0;
    if (flushed && writer->aside) flushed = fsync(fileno(writer->file)) == 0;
    if (!flushed) status = basin_fail_errno(writer->path, "write", error);
    int lock =
        writer->aside ? dup(fileno(writer->file)) : -1; /* held until the file has its name */
    if (fclose(writer->file) != 0 && status == BASIN_OK)
        status = basin_fail_errno(writer->path, "write", error);
    writer->file = NULL;
    if (status == BASIN_OK && writer->aside) {
        if (rename(writer->aside, writer->target) != 0) {
            status = basin_fail_errno(writer->path, "replace", error);
        } else {
            free(writer->aside);
            writer->aside = NULL;
            sync_folder(writer->target);
        }
    }
    basin_writer_discard(writer);
    if (lock >= 0) close(lock);
    return status;
}

void basin_writer_discard(basin_writer *writer) {
    if (writer->file) fclose(writer->file);
    if (writer->aside) unlink(writer->aside);
    BASIN_FREE(writer->aside, writer->target);
    *writer = (basin_writer){0};
}

basin_status basin_writer_finish(basin_writer *writer, basin_status written, basin_error *error) {
    if (!written) return basin_writer_commit(writer, error);
    basin_writer_discard(writer);
    return written;
}

basin_status basin_writer_try(const char *path, basin_error *error) {
    struct stat info, full;
    basin_writer writer;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        if (!S_ISCHR(info.st_mode) || stat("/dev/full", &full) || full.st_rdev != info.st_rdev)
            return BASIN_OK;
        errno = ENOSPC;
        return basin_fail_errno(path, "write", error);
    }
    BASIN_TRY(basin_writer_create(&writer, path, error));
    basin_writer_discard(&writer);
    return BASIN_OK;
}

basin_status basin_writer_space(const char *path, uint64_t bytes, basin_error *error) {
    struct statvfs disk;
    if (basin_file_special(path)) return BASIN_OK;
    BASIN_FREE_AT_EXIT char *folder = resolve(path);
    if (!folder) return basin_fail_memory(error, "a path");
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    if (statvfs(slash ? folder : ".", &disk) != 0 || !disk.f_blocks) return BASIN_OK;
    uint64_t space = (geteuid() ? disk.f_bavail : disk.f_bfree) * (uint64_t)disk.f_frsize;
    if (space >= bytes) return BASIN_OK;
    basin_fail(error, BASIN_IO, "%s: needs %llu bytes, its file system has %llu free", path,
               (unsigned long long)bytes, (unsigned long long)space);
    if (error) error->number = ENOSPC;
    return BASIN_IO;
}

/* Removes a file whose writer is dead, that is, one whose lock is free. */
static void sweep_one(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path);
    close(fd);
}

basin_status basin_writer_sweep(const char *path, basin_error *error) {
    static const char ending[] = ".tmp-*";
    size_t length = strlen(path);
    char *pattern = malloc(2 * length + sizeof ending);
    if (!pattern)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for a pattern", path);
    char *to = pattern;
    for (const char *from = path; *from; from++) {
        if (strchr("*?[\\", *from)) *to++ = '\\';
        *to++ = *from;
    }
    memcpy(to, ending, sizeof ending);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) sweep_one(found.gl_pathv[i]);
        globfree(&found);
    }
    free(pattern);
    return BASIN_OK;
}

basin_status basin_folder_make(const char *path, basin_error *error) {
    struct stat info;
    if (mkdir(path, 0777) == 0) return BASIN_OK;
    if (errno != EEXIST) return basin_fail_errno(path, "make the folder", error);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: is a file, not a folder", path);
}

/* ---- in memory ---- */

FILE *basin_memory_file_open(basin_memory_file *memory) {
    *memory = (basin_memory_file){0};
    memory->file = open_memstream(&memory->text, &memory->size);
    return memory->file;
}

char *basin_memory_file_close(basin_memory_file *memory) {
    int failed = ferror(memory->file);
    if (!fclose(memory->file) && !failed) return memory->text;
    free(memory->text);
    return NULL;
}
