/* Safetensors: what is written comes back, what others write is read, and every way in which a
 * file can be wrong gets its own line. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/io/bundles.h"
#include "support/folder.h"

/* A file in memory: `header` and then `data` bytes counting up from 0. */
typedef struct image {
    _Alignas(8) unsigned char bytes[4096];
    size_t size;
} image;

static void image_make(image *file, const char *header, size_t data) {
    size_t length = strlen(header);
    memset(file, 0, sizeof *file);
    file->bytes[0] = (unsigned char)length;
    file->bytes[1] = (unsigned char)(length >> 8);
    memcpy(file->bytes + 8, header, length);
    for (size_t i = 0; i < data; i++) file->bytes[8 + length + i] = (unsigned char)i;
    file->size = 8 + length + data;
}

static basin_status parse(basin_bundle **bundle, const char *header, size_t data,
                          basin_error *error) {
    static image file;
    image_make(&file, header, data);
    return basin_safetensors_parse(bundle, file.bytes, file.size, "f", error);
}

TEST(reads_what_others_write) {
    basin_bundle *bundle;
    /* out of order, with an unknown field, an empty tensor and a scalar */
    const char *header =
        "{\"b\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[12,16],\"note\":{\"x\":[1]}},"
        " \"__metadata__\" : {\"k\\u00e9y\" : "
        "\"v\\\"\\n\"},\"e\":{\"dtype\":\"F64\",\"shape\":[3,0],"
        "\"data_offsets\":[12,12]},\"a\\/\":{\"shape\":[3,2],\"dtype\":\"I16\","
        "\"data_offsets\":[0,12]}}   ";
    assert_ok(parse(&bundle, header, 16, &failure));
    assert_int_equal(basin_bundle_count(bundle), 3);
    assert_string_equal(basin_bundle_name(bundle, 0), "b");
    assert_string_equal(basin_bundle_name(bundle, 2), "a/");
    assert_string_equal(basin_bundle_path(bundle), "f");
    assert_string_equal(basin_bundle_meta(bundle, "k\xc3\xa9y"), "v\"\n");
    const basin_tensor *a = basin_bundle_find(bundle, "a/"), *b = basin_bundle_find(bundle, "b");
    assert_true(basin_shape_equal(a->shape, BASIN_SHAPE(3, 2)));
    assert_true(basin_tensor_at(a, 1) == 0x0302);
    assert_true(b->shape.rank == 0 && basin_tensor_at(b, 0) == 0x0f0e0d0c);
    assert_int_equal(basin_shape_count(basin_bundle_find(bundle, "e")->shape), 0);
    basin_bundle_free(bundle);
    assert_ok(parse(&bundle, "{}", 0, &failure));
    assert_int_equal(basin_bundle_count(bundle), 0);
    basin_bundle_free(bundle);
}

/* A header whose length is no multiple of the element's size: copied, not borrowed askew. */
TEST(aligns) {
    char header[200];
    for (int pad = 0; pad < 8; pad++) {
        basin_bundle *bundle;
        image file;
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}}%*s", pad, "");
        image_make(&file, header, 16);
        assert_ok(basin_safetensors_parse(&bundle, file.bytes, file.size, "f", &failure));
        const basin_tensor *x = basin_bundle_find(bundle, "x");
        bool aligned = (8 + strlen(header)) % 8 == 0;
        assert_int_equal((uintptr_t)x->data % 8, 0);
        assert_int_equal(x->owned, !aligned);
        assert_memory_equal(x->data, file.bytes + 8 + strlen(header), 16);
        basin_bundle_free(bundle);
    }
}

#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(refuses_bad_headers) {
    static const struct {
        const char *header;
        size_t data;
        basin_status status;
        const char *text;
    } cases[] = {
        {"{\"wk\":" ENTRY("\"F64\"", "[3, 7, 20]", "[0, 400]") "}", 400, BASIN_BAD_FILE,
         "f: tensor 'wk': data_offsets [0, 400] span 400 bytes, shape [3, 7, 20] of F64 needs "
         "3360"},
        {"{\"a\":" ENTRY("\"F8_E4M3\"", "[4]", "[0,4]") "}", 4, BASIN_UNSUPPORTED,
         "f: tensor 'a': dtype 'F8_E4M3' is not one of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL"},
        {"{\"a\":" ENTRY("7", "[4]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': dtype is not a string"},
        {"{\"a\":" ENTRY("\"U8\"", "4", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': shape is not a list"},
        {"{\"a\":" ENTRY("\"U8\"", "[-4]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': dimension 0 of the shape is -4, not a whole number from 0 to 2^53"},
        {"{\"a\":" ENTRY("\"U8\"", "[2,1.5]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': dimension 1 of the shape is 1.5, not a whole number from 0 to 2^53"},
        {"{\"a\":" ENTRY("\"U8\"", "[9007199254740993]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': dimension 0 of the shape is 9007199254740992, not a whole number from 0 "
         "to "
         "2^53"},
        {"{\"a\":" ENTRY("\"U8\"", "[1e999]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': dimension 0 of the shape is inf, not a whole number from 0 to 2^53"},
        {"{\"a\":" ENTRY("\"F64\"", "[4294967296,4294967296,2]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': shape [4294967296, 4294967296, 2] of F64 is too large for any file"},
        {"{\"a\":" ENTRY("\"F64\"", "[4611686018427387904]", "[0,0]") "}", 0, BASIN_BAD_FILE,
         "f: tensor 'a': dimension 0 of the shape is 4.6116860184273879e+18, not a whole number "
         "from 0 to 2^53"},
        {"{\"a\":" ENTRY("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, BASIN_UNSUPPORTED,
         "f: tensor 'a': rank 9, at most 8 is supported"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[0,4,8]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': data_offsets are not two whole numbers from 0 to 2^53"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[-4,0]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': data_offsets are not two whole numbers from 0 to 2^53"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[4,0]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': data_offsets [4, 0] do not lie within the 4 bytes of data"},
        {"{\"a\":" ENTRY("\"U8\"", "[8]", "[0,8]") "}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': data_offsets [0, 8] do not lie within the 4 bytes of data"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[0,4]") ",\"b\":" ENTRY("\"U8\"", "[4]", "[2,6]") "}", 6,
         BASIN_BAD_FILE, "f: tensor 'b': data_offsets [2, 6] overlap those of 'a' [0, 4]"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[0,4]") ",\"b\":" ENTRY("\"U8\"", "[2]", "[6,8]") "}", 8,
         BASIN_BAD_FILE,
         "f: tensor 'b': data_offsets begin at 6, and no tensor has the bytes from 4 on"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[0,4]") "}", 8, BASIN_BAD_FILE,
         "f: 8 bytes of data, of which the tensors cover only 4"},
        {"{\"a\":" ENTRY("\"U8\"", "[4]", "[0,4]") ",\"a\":" ENTRY("\"U8\"", "[0]", "[4,4]") "}", 4,
         BASIN_BAD_FILE, "f: tensor 'a' is there twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
         BASIN_BAD_FILE, "f: tensor 'a': a field of its entry is there twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, BASIN_BAD_FILE,
         "f: tensor 'a': its entry lacks dtype, shape or data_offsets"},
        {"{\"a\":[]}", 0, BASIN_BAD_FILE, "f: tensor 'a': its entry is not a JSON object"},
        {"{\"\xff\":" ENTRY("\"U8\"", "[4]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: tensor '\xff' has a name that is not UTF-8"},
        {"{\"a\\u0000b\":" ENTRY("\"U8\"", "[4]", "[0,4]") "}", 4, BASIN_BAD_FILE,
         "f: the header contains a NUL character"},
        {"{\"__metadata__\":[]}", 0, BASIN_BAD_FILE, "f: __metadata__ is not a JSON object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, BASIN_BAD_FILE, "f: __metadata__ 'k' is not a string"},
        {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, BASIN_BAD_FILE,
         "f: __metadata__ 'k' is there twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, BASIN_BAD_FILE,
         "f: __metadata__ is there twice"},
        {"[1, 2]", 0, BASIN_BAD_FILE, "f: the header is not a JSON object: '[1, 2]'"},
        {"{\"a\" 5}", 0, BASIN_BAD_FILE, "f: the header is not JSON from byte 5: '5}'"},
        {"{} {}", 0, BASIN_BAD_FILE, "f: the header is not JSON from byte 3: '{}'"},
        {"{\"a\":1", 0, BASIN_BAD_FILE, "f: the header is not JSON from byte 6: ''"},
        {"", 0, BASIN_BAD_FILE, "f: the header is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        basin_bundle *bundle = (basin_bundle *)1;
        assert_says(parse(&bundle, cases[i].header, cases[i].data, &failure), cases[i].status,
                    cases[i].text);
        assert_null(bundle);
    }
}

TEST(survives_deep_nesting) {
    static char header[60000];
    basin_bundle *bundle;
    static unsigned char file[8 + sizeof header];
    memset(header, '[', sizeof header);
    file[0] = sizeof header & 255, file[1] = sizeof header >> 8;
    memcpy(file + 8, header, sizeof header);
    assert_failure(basin_safetensors_parse(&bundle, file, sizeof file, "f", &failure),
                   BASIN_BAD_FILE, "f: the header is not JSON");
}

/* Cut anywhere, a good file is a bad file, never a crash. */
TEST(refuses_every_cut) {
    image file;
    basin_bundle *bundle;
    basin_error error;
    image_make(&file, "{\"a\":" ENTRY("\"F32\"", "[2]", "[0,8]") "}", 8);
    for (size_t size = 0; size < file.size; size++) {
        assert_int_equal(basin_safetensors_parse(&bundle, file.bytes, size, "f", &error),
                         BASIN_BAD_FILE);
        assert_null(bundle);
    }
    assert_says(basin_safetensors_parse(&bundle, file.bytes, 3, "f", &failure), BASIN_BAD_FILE,
                "f: cut short: 3 bytes, a safetensors file has 10 or more");
    basin_safetensors_parse(&bundle, file.bytes, 20, "f", &error);
    assert_string_equal(error.text,
                        "f: cut short: a header of 54 bytes in a file with room for 12");
    memset(file.bytes, 0xff, 8);
    basin_safetensors_parse(&bundle, file.bytes, file.size, "f", &error);
    assert_string_equal(error.text, "f: not a safetensors file: its first 8 bytes are not the "
                                    "length of a header, at most 100000000");
}

/* One tensor of every type, in an order that is not the one of the data. */
TEST(round_trip) {
    basin_bundle *bundle = sample_new("empty \"\\\t\xc3\xa4", true), *back;
    struct stat info;
    char *path = folder_path(state, "a.safetensors");
    basin_bundle_meta_set(bundle, "line", "a\nb", NULL);
    basin_bundle_meta_set(bundle, "", "empty key", NULL);
    assert_ok(basin_bundle_write(path, bundle, &failure));
    assert_ok(basin_bundle_read(&back, path, &failure));
    assert_same(back, bundle);
    for (size_t i = 0; i < basin_bundle_count(back); i++) /* mapped, every one */
        assert_false(basin_bundle_at(back, i)->owned);

    /* over the very file it is mapped from, whose mode stays */
    chmod(path, 0640);
    assert_int_equal(basin_bundle_meta_set(back, "config", "new", NULL), BASIN_OK);
    assert_ok(basin_bundle_write(path, back, &failure));
    basin_bundle_meta_set(bundle, "config", "new", NULL);
    assert_same(back, bundle);
    basin_bundle_free(back);
    assert_ok(basin_bundle_read(&back, path, &failure));
    assert_same(back, bundle);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(folder_count(state), 1); /* no temporary left */
    basin_bundle_free(back);
    basin_bundle_free(bundle);
    unlink(path);
}

TEST(replaces_what_a_link_points_to) {
    char *path = folder_path(state, "real");
    char *link = folder_path(state, "link");
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle = sample_new("empty", true);
    struct stat info;
    assert_int_equal(file_put(path, "old", 3), 0);
    assert_int_equal(symlink("real", link), 0);
    assert_int_equal(basin_bundle_write_safetensors(link, bundle, NULL), BASIN_OK);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > 3);
    unlink(path); /* the link stays and leads nowhere: its file is made */
    assert_int_equal(basin_bundle_write_safetensors(link, bundle, NULL), BASIN_OK);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    unlink(path);
    unlink(link);
}

TEST(names_what_the_system_refuses) {
    char text[2 * PATH_TEXT];
    basin_bundle *bundle = NULL, *sample = sample_new("empty", true);
    basin_error error;
    char *path = folder_path(state, "missing");
    assert_int_equal(basin_bundle_read(&bundle, path, &error), BASIN_IO);
    snprintf(text, sizeof text, "%s: cannot open for reading: No such file or directory", path);
    assert_string_equal(error.text, text);

    assert_int_equal(basin_bundle_read(&bundle, *state, &error), BASIN_IO);
    snprintf(text, sizeof text, "%s: is a folder, not a file", (char *)*state);
    assert_string_equal(error.text, text);
    assert_says(basin_bundle_write(*state, sample, &failure), BASIN_IO, text);

    path = folder_path(state, "empty");
    assert_int_equal(file_put(path, "", 0), 0);
    assert_int_equal(basin_bundle_read(&bundle, path, &error), BASIN_BAD_FILE);
    snprintf(text, sizeof text, "%s: empty: 0 bytes, a safetensors file has 10 or more", path);
    assert_string_equal(error.text, text);
    unlink(path);

    path = folder_path(state, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(basin_bundle_read(&bundle, path, &error), BASIN_IO);
    snprintf(text, sizeof text, "%s: is not a regular file", path);
    assert_string_equal(error.text, text);
    unlink(path);

    path = folder_path(state, "no/such/folder");
    assert_int_equal(basin_bundle_write(path, sample, &error), BASIN_IO);
    snprintf(text, sizeof text, "%s: cannot write: No such file or directory", path);
    assert_string_equal(error.text, text);
    assert_null(bundle);
    basin_bundle_free(sample);
}

/* Root may read anything, so the test steps down for the moment it takes. */
TEST(names_a_file_it_may_not_read) {
    char text[2 * PATH_TEXT];
    basin_bundle *bundle = NULL;
    basin_error error;
    bool root = geteuid() == 0;
    char *path = folder_path(state, "secret");
    assert_int_equal(file_put(path, "x", 1), 0);
    assert_int_equal(chmod(path, 0), 0);
    if (root && (chmod(*state, 0755) != 0 || seteuid(65534) != 0)) skip();
    basin_status status = basin_bundle_read(&bundle, path, &error);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, BASIN_IO);
    snprintf(text, sizeof text, "%s: cannot open for reading: Permission denied", path);
    assert_string_equal(error.text, text);
    unlink(path);
}

/* /dev/full takes every write and then has no room: a device is written in place. */
TEST(names_a_full_disk) {
    basin_bundle *bundle = sample_new("empty", true);
    if (access("/dev/full", W_OK) != 0) skip();
    assert_says(basin_bundle_write("/dev/full", bundle, &failure), BASIN_IO,
                "/dev/full: cannot write: No space left on device");
    assert_ok(basin_bundle_write("/dev/null", bundle, &failure));
    basin_bundle_free(bundle);
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

/* What was there stays there, and nothing is left beside it. */
TEST(failed_write_keeps_the_old_file) {
    char content[4] = {0}, *path = folder_path(state, "kept");
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle = sample_new("empty", true);
    basin_error error;
    bool root = geteuid() == 0;
    assert_int_equal(file_put(path, "old", 3), 0);
    int before = folder_count(state);
    assert_int_equal(chmod(*state, 0555), 0);
    if (root && seteuid(65534) != 0) skip();
    basin_status status = basin_bundle_write(path, bundle, &error);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(status, BASIN_IO);
    assert_int_equal(folder_count(state), before);
    assert_int_equal(file_get(content, 3, path), 3);
    assert_string_equal(content, "old");
    unlink(path);
}

/* A disk that fills up in the middle of a large tensor. */
TEST(full_disk_keeps_the_old_file) {
    char text[2 * PATH_TEXT];
    char *path = folder_path(state, "kept");
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle = sample_new("empty", true);
    basin_tensor large;
    basin_error error;
    struct stat info;
    struct rlimit old, small;
    assert_int_equal(basin_tensor_new(&large, BASIN_F64, BASIN_SHAPE(100000), NULL), BASIN_OK);
    assert_int_equal(basin_bundle_add(bundle, "large", &large, NULL), BASIN_OK);
    assert_int_equal(file_put(path, "old", 3), 0);
    int before = folder_count(state);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){65536, old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    basin_status status = basin_bundle_write(path, bundle, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, BASIN_IO);
    snprintf(text, sizeof text, "%s: cannot write: File too large", path);
    assert_string_equal(error.text, text);
    assert_int_equal(folder_count(state), before);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 3);
    unlink(path);
}

int main(void) { return tests_run(folder_new, folder_remove); }
