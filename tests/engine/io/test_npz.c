/* npz: arrays as numpy writes them, in every type, order and version; archives that lie; and
 * numpy itself as the judge of what is written, where there is one. */
#include <unistd.h>

#include "engine/io/archive.h"
#include "engine/io/bundles.h"
#include "engine/io/zip.h"
#include "support/folder.h"

static archive zip; /* too large for a stack */

static void start(void) { memset(&zip, 0, sizeof zip); }

static basin_status finish(basin_bundle **bundle, basin_error *error) {
    archive_end(&zip);
    return basin_npz_parse(bundle, zip.bytes, zip.size, "f", false, error);
}

/* Reads one array of the given header and data in every version, stored and deflated. */
static void assert_reads(const char *header, const void *data, size_t size, basin_dtype dtype,
                         basin_shape shape, const double *values) {
    for (int version = 1; version <= 3; version++)
        for (int deflated = 0; deflated <= 1; deflated++) {
            basin_bundle *bundle;
            start();
            archive_add_npy(&zip, "dir/x.npy", header, data, size, version, deflated);
            assert_ok(finish(&bundle, &failure));
            const basin_tensor *x = basin_bundle_find(bundle, "dir/x");
            assert_non_null(x);
            assert_int_equal(x->dtype, dtype);
            assert_true(basin_shape_equal(x->shape, shape));
            for (int64_t i = 0; i < basin_shape_count(shape); i++)
                assert_true(basin_tensor_at(x, i) == values[i]);
            basin_bundle_free(bundle);
        }
}

TEST(reads_every_type) {
    const double two[2] = {1, -2}, top[2] = {1, 200}, bits[2] = {1, 0};
#define HEADER(type) "{'descr': '" type "', 'fortran_order': False, 'shape': (2,), }   \n"
    assert_reads(HEADER("<f8"), (double[]){1, -2}, 16, BASIN_F64, BASIN_SHAPE(2), two);
    assert_reads(HEADER("=f4"), (float[]){1, -2}, 8, BASIN_F32, BASIN_SHAPE(2), two);
    assert_reads(HEADER("<f2"), "\x00\x3c\x00\xc0", 4, BASIN_F16, BASIN_SHAPE(2), two);
    assert_reads(HEADER("<i8"), (int64_t[]){1, -2}, 16, BASIN_I64, BASIN_SHAPE(2), two);
    assert_reads(HEADER("<i4"), (int32_t[]){1, -2}, 8, BASIN_I32, BASIN_SHAPE(2), two);
    assert_reads(HEADER("<i2"), (int16_t[]){1, -2}, 4, BASIN_I16, BASIN_SHAPE(2), two);
    assert_reads(HEADER("|i1"), "\1\xfe", 2, BASIN_I8, BASIN_SHAPE(2), two);
    assert_reads(HEADER("|u1"), "\1\xc8", 2, BASIN_U8, BASIN_SHAPE(2), top);
    assert_reads(HEADER("|b1"), "\1\0", 2, BASIN_BOOL, BASIN_SHAPE(2), bits);
    assert_reads(HEADER(">f8"), "\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 16, BASIN_F64,
                 BASIN_SHAPE(2), two);
    assert_reads(HEADER(">f4"), "\x3f\x80\0\0\xc0\0\0\0", 8, BASIN_F32, BASIN_SHAPE(2), two);
    assert_reads(HEADER(">i2"), "\0\1\xff\xfe", 4, BASIN_I16, BASIN_SHAPE(2), two);
    assert_reads(HEADER("<u2"), "\1\0\xc8\0", 4, BASIN_I32, BASIN_SHAPE(2), top);
    assert_reads(HEADER(">u2"), "\0\1\0\xc8", 4, BASIN_I32, BASIN_SHAPE(2), top);
    assert_reads(HEADER("<u2"), "\xff\xff\0\0", 4, BASIN_I32, BASIN_SHAPE(2), (double[]){65535, 0});
    assert_reads(HEADER("<u4"), "\xff\xff\xff\xff\0\0\0\0", 8, BASIN_I64, BASIN_SHAPE(2),
                 (double[]){4294967295.0, 0});
    assert_reads(HEADER("<u8"), (uint64_t[]){1, 200}, 16, BASIN_I64, BASIN_SHAPE(2), top);
}

TEST(reads_orders_and_shapes) {
    const double values[6] = {0, 1, 2, 3, 4, 5};
    const float rows[6] = {0, 1, 2, 3, 4, 5}, columns[6] = {0, 3, 1, 4, 2, 5};
    assert_reads("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", columns, 24, BASIN_F32,
                 BASIN_SHAPE(2, 3), values);
    assert_reads("{\"shape\":(1L,6L),\"fortran_order\":False,\"descr\":\"<f4\"}", rows, 24,
                 BASIN_F32, BASIN_SHAPE(1, 6), values);
    assert_reads("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", rows, 24, BASIN_F32,
                 BASIN_SHAPE(6), values);
    assert_reads("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", rows + 3, 4, BASIN_F32,
                 BASIN_SCALAR, values + 3);
    assert_reads("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", NULL, 0, BASIN_F32,
                 BASIN_SHAPE(3, 0), values);
    assert_reads("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }",
                 "\0\0\0\3\0\1\0\4\0\2\0\5", 12, BASIN_I32, BASIN_SHAPE(2, 3), values);
    /* x[i, j, k] = 12 i + 4 j + k, of shape [2, 3, 4] */
    double cube[24];
    int16_t transposed[24];
    for (int i = 0; i < 24; i++) {
        cube[i] = i;
        transposed[i / 12 + 2 * (i / 4 % 3) + 6 * (i % 4)] = (int16_t)i;
    }
    assert_reads("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }", transposed, 48,
                 BASIN_I16, BASIN_SHAPE(2, 3, 4), cube);
}

#define TAIL "', 'fortran_order': False, 'shape': (2,), }"

TEST(refuses_bad_arrays) {
    static const struct {
        const char *header;
        size_t size;
        basin_status status;
        const char *text;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 7, 20), }", 400, BASIN_BAD_FILE,
         "f: array 'wk': 400 bytes of data, shape [3, 7, 20] of '<f8' needs 3360"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }", 8,
         BASIN_BAD_FILE,
         "f: array 'wk': shape [1099511627776, 1099511627776] of '<f8' is too large for any file"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8,
         BASIN_BAD_FILE, "f: array 'wk': its shape has no valid number at 0"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", 8, BASIN_BAD_FILE,
         "f: array 'wk': its shape has no valid number at 0"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': [2], }", 16, BASIN_BAD_FILE,
         "f: array 'wk': its shape is not a tuple"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2 3), }", 16, BASIN_BAD_FILE,
         "f: array 'wk': its shape is not a tuple of numbers"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 1,
         BASIN_UNSUPPORTED, "f: array 'wk': its rank is above 8, the most supported"},
        {"{'descr': '|O" TAIL, 16, BASIN_UNSUPPORTED,
         "f: array 'wk': it holds pickled Python objects ('|O'), which are not read"},
        {"{'descr': '<c16" TAIL, 32, BASIN_UNSUPPORTED,
         "f: array 'wk': its type '<c16' is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1"},
        {"{'descr': '<U5" TAIL, 40, BASIN_UNSUPPORTED,
         "f: array 'wk': its type '<U5' is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, BASIN_UNSUPPORTED,
         "f: array 'wk': it is an array of records, which is not read"},
        {"{'descr': 5, 'fortran_order': False, 'shape': (2,), }", 8, BASIN_BAD_FILE,
         "f: array 'wk': its descr is not a type"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", 8, BASIN_BAD_FILE,
         "f: array 'wk': its fortran_order is neither True nor False"},
        {"{'descr': '<f4', 'descr': '<f4" TAIL, 8, BASIN_BAD_FILE,
         "f: array 'wk': its header has 'descr' twice"},
        {"{'colour': '<f4" TAIL, 8, BASIN_BAD_FILE, "f: array 'wk': its header has 'colour' in it"},
        {"{'descr': '<f4', 'shape': (2,), }", 8, BASIN_BAD_FILE,
         "f: array 'wk': its header lacks descr, fortran_order or shape"},
        {"{'descr': '<f4" TAIL " import os", 8, BASIN_BAD_FILE,
         "f: array 'wk': its header goes on after the dictionary"},
        {"{'descr': '<f4'", 8, BASIN_BAD_FILE, "f: array 'wk': its header is not a dictionary"},
        {"", 8, BASIN_BAD_FILE, "f: array 'wk': its header has no valid length"},
    };
    static const unsigned char zeros[400];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int deflated = 0; deflated <= 1; deflated++) {
            basin_bundle *bundle = (basin_bundle *)1;
            basin_error error;
            start();
            archive_add_npy(&zip, "wk.npy", cases[i].header, zeros, cases[i].size, 1, deflated);
            basin_status status = finish(&bundle, &error);
            assert_string_equal(error.text, cases[i].text);
            assert_int_equal(status, cases[i].status);
            assert_null(bundle);
        }
}

TEST(refuses_bad_entries) {
    basin_bundle *bundle;
    basin_error error;
    const char *header = "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }";
    start();
    archive_add(&zip, "notes.txt", "hello", 5, 0);
    assert_says(finish(&bundle, &failure), BASIN_BAD_FILE,
                "f: entry 'notes.txt' is not a .npy array");
    start();
    archive_add(&zip, "a.npy", "hello, hello, hello", 19, 0);
    assert_says(finish(&bundle, &failure), BASIN_BAD_FILE,
                "f: array 'a': is not a .npy array of version 1, 2 or 3");
    start();
    archive_add(&zip, "a.npy", "", 0, 1);
    assert_says(finish(&bundle, &failure), BASIN_BAD_FILE,
                "f: entry 'a.npy': ends before its content does");
    start();
    archive_add_npy(&zip, "a.npy", header, "\1\0\0\0\0\0\0\0", 8, 1, 0);
    archive_add_npy(&zip, "a.npy", header, "\1\0\0\0\0\0\0\0", 8, 1, 0);
    assert_int_equal(finish(&bundle, &error), BASIN_BAD_FILE);
    assert_int_equal(error.status, BASIN_BAD_FILE);
    assert_string_equal(error.text, "f: tensor 'a' is there twice");
    start();
    archive_add_npy(&zip, "a.npy", header, "\0\0\0\0\0\0\0\x80", 8, 1, 0);
    assert_says(finish(&bundle, &failure), BASIN_UNSUPPORTED,
                "f: array 'a': has a u8 above 2^63 - 1, the largest I64");
    start();
    archive_add_npy(&zip, "__metadata__.npy", header, "\0\0\0\0\0\0\0\0", 8, 1, 0);
    assert_says(finish(&bundle, &failure), BASIN_BAD_FILE,
                "f: array '__metadata__': is not a text of bytes");
}

/* One good array, a field of its directory record set to `value`, and how the message goes on
 * behind "f: " (the packed sizes at its end are zlib's affair). */
static void assert_lie(size_t field, int bytes, uint64_t value, int deflated, const char *text) {
    basin_bundle *bundle = (basin_bundle *)1;
    basin_error error = {0};
    bool method = field == 10; /* one that nobody here knows */
    start();
    archive_add_npy(&zip, "a.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }",
                    "abcd", 4, 1, deflated);
    le(zip.directory + zip.last + field, value, bytes);
    assert_int_equal(finish(&bundle, &error), method ? BASIN_UNSUPPORTED : BASIN_BAD_FILE);
    if (strncmp(error.text + 3, text, strlen(text)) != 0) assert_string_equal(error.text, text);
    assert_null(bundle);
}

TEST(refuses_archives_that_lie) {
    assert_lie(10, 2, 12, 0,
               "entry 'a.npy': packed by method 12, only 0 (stored) and 8 (deflated) are read");
    assert_lie(8, 2, 1, 0, "entry 'a.npy': is encrypted");
    assert_lie(16, 4, 7, 0, "entry 'a.npy': its checksum is 053b32ba, the archive says 00000007");
    assert_lie(16, 4, 7, 1, "entry 'a.npy': its checksum is 053b32ba, the archive says 00000007");
    assert_lie(20, 4, 100000, 1, "entry 'a.npy': 100000 bytes at 35 do not lie within a file of");
    assert_lie(24, 4, 72, 0, "entry 'a.npy': claims 72 bytes, its 71 packed ones cannot hold that");
    assert_lie(24, 4, 2000000000, 1, "entry 'a.npy': claims 2000000000 bytes, its");
    assert_lie(24, 4, 70, 1, "array 'a': 3 bytes of data, shape [4] of '|u1' needs 4");
    assert_lie(24, 4, 0xffffffff, 1, "entry 'a.npy': claims 4294967295 bytes, its");
    assert_lie(42, 4, 1, 0, "entry 'a.npy': its header is not where the directory says");
    assert_lie(42, 4, 0xfffffff0, 0, "entry 'a.npy': its header is not where the directory says");
    assert_lie(0, 2, 0, 0, "its directory has fewer entries than it says");
    assert_lie(30, 2, 0xffff, 0, "an entry reaches past the end of its directory");
}

/* The directory record of one good array with `extra` behind its name. */
static basin_status parse_extra(const char *extra, size_t bytes, basin_error *error) {
    basin_bundle *bundle;
    start();
    archive_add_npy(&zip, "a.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }",
                    "abcd", 4, 1, 0);
    le(zip.directory + zip.last + 30, bytes, 2);
    memcpy(zip.directory + zip.used, extra, bytes);
    zip.used += bytes;
    basin_status status = finish(&bundle, error);
    basin_bundle_free(bundle);
    return status;
}

TEST(reads_extra_fields) {
    /* a time stamp, which is passed over; one that is longer than the field */
    assert_ok(parse_extra("UT\5\0\1\2\3\4\5\1\0\0\0", 13, &failure));
    assert_says(parse_extra("UT\6\0\1\2\3\4\5", 9, &failure), BASIN_BAD_FILE,
                "f: entry 'a.npy': has a broken extra field");
}

/* Many directory records that share one packed array: the overlapping kind of bomb. */
TEST(refuses_overlapping_entries) {
    basin_bundle *bundle;
    static unsigned char zeros[30000];
    start();
    archive_add_npy(&zip, "a.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (30000,), }",
                    zeros, sizeof zeros, 1, 1);
    size_t one = zip.used;
    for (int i = 1; i < 40; i++) {
        memcpy(zip.directory + zip.used, zip.directory, one);
        zip.directory[zip.used + 46] = (unsigned char)('a' + i); /* of the name */
        zip.used += one;
        zip.count++;
    }
    assert_failure(finish(&bundle, &failure), BASIN_BAD_FILE, "overlaps other entries");
}

TEST(refuses_bad_ends) {
    basin_bundle *bundle;
    start();
    archive_add_npy(&zip, "a.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }",
                    "abcd", 4, 1, 1);
    assert_ok(finish(&bundle, &failure));
    basin_bundle_free(bundle);
    for (size_t size = 0; size < zip.size; size++) {
        assert_says(basin_npz_parse(&bundle, zip.bytes, size, "f", false, &failure), BASIN_BAD_FILE,
                    "f: not a zip archive or cut short: it has no end record");
    }
    unsigned char *end = zip.bytes + zip.size - 22;
    le(end + 10, 2, 2);
    assert_says(basin_npz_parse(&bundle, zip.bytes, zip.size, "f", false, &failure), BASIN_BAD_FILE,
                "f: its directory has fewer entries than it says");
    le(end + 10, 0, 2);
    assert_says(basin_npz_parse(&bundle, zip.bytes, zip.size, "f", false, &failure), BASIN_BAD_FILE,
                "f: its directory has more entries than it says");
    le(end + 16, 100000, 4);
    assert_failure(basin_npz_parse(&bundle, zip.bytes, zip.size, "f", false, &failure),
                   BASIN_BAD_FILE,
                   "f: a directory of 51 bytes at 100000 does not fit into a file of ");
}

/* Any one byte changed: an error or the same kind of array, never a crash. */
TEST(survives_every_damaged_byte) {
    basin_bundle *bundle;
    for (int deflated = 0; deflated <= 1; deflated++) {
        start();
        archive_add_npy(&zip, "a.npy", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }",
                        "abcdefghijklmnop", 16, 1, deflated);
        archive_end(&zip);
        for (size_t i = 0; i < zip.size; i++)
            for (int bit = 0; bit < 8; bit++) {
                zip.bytes[i] ^= (unsigned char)(1 << bit);
                if (basin_npz_parse(&bundle, zip.bytes, zip.size, "f", false, NULL) == BASIN_OK)
                    basin_bundle_free(bundle);
                zip.bytes[i] ^= (unsigned char)(1 << bit);
            }
    }
}

TEST(round_trip) {
    basin_bundle *bundle = sample_new("w\xc3\xa4rme/empty", false), *back;
    char *path = folder_path(state, "a.npz");
    assert_ok(basin_bundle_write(path, bundle, &failure));
    assert_ok(basin_bundle_read(&back, path, &failure));
    assert_same(back, bundle);
    basin_bundle_free(back);

    basin_tensor brain;
    basin_tensor_new(&brain, BASIN_BF16, BASIN_SHAPE(2), NULL);
    basin_bundle_add(bundle, "brain", &brain, NULL);
    assert_failure(basin_npz_write(path, bundle, &failure), BASIN_UNSUPPORTED,
                   "tensor 'brain' is BF16, which npz does not have: convert it to F32");
    assert_int_equal(folder_count(state), 1);
    basin_bundle_free(bundle);
    unlink(path);
}

/* An archive of one array "a" with the 64-bit records that otherwise only those above 4 GiB have.
 */
static size_t archive_in_64_bits(unsigned char bytes[400]) {
    enum { LOCAL = 30, NAME = 5, CONTENT = 76, CENTRAL = 46, EXTRA = 28, END64 = 56 };
    const char *head = "\x93NUMPY\1\0\x3e\0{'descr': '|u1', 'fortran_order': False, 'shape': (4,), "
                       "}     ";
    unsigned char *local = bytes, *central = local + LOCAL + NAME + CONTENT;
    unsigned char *extra = central + CENTRAL + NAME, *end64 = extra + EXTRA, *end = end64 + END64;
    memset(bytes, 0, 400);
    memcpy(local, "PK\3\4", 4);
    le(local + 26, NAME, 2);
    memcpy(local + LOCAL, "a.npy", NAME);
    memcpy(local + LOCAL + NAME, head, 72);
    memcpy(local + LOCAL + NAME + 72, "abcd", 4);
    memcpy(central, "PK\1\2", 4);
    le(central + 16, crc32(0, local + LOCAL + NAME, CONTENT), 4);
    le(central + 20, 0xffffffff, 4), le(central + 24, 0xffffffff, 4);
    le(central + 28, NAME, 2), le(central + 30, EXTRA, 2), le(central + 42, 0xffffffff, 4);
    memcpy(central + CENTRAL, "a.npy", NAME);
    le(extra, 1, 2), le(extra + 2, 24, 2), le(extra + 4, CONTENT, 8), le(extra + 12, CONTENT, 8);
    memcpy(end64, "PK\6\6", 4);
    le(end64 + 32, 1, 8), le(end64 + 40, CENTRAL + NAME + EXTRA, 8);
    le(end64 + 48, (uint64_t)(central - bytes), 8);
    memcpy(end, "PK\6\7", 4);
    le(end + 8, (uint64_t)(end64 - bytes), 8);
    memcpy(end + 20, "PK\5\6", 4);
    return (size_t)(end + 20 + 22 - bytes);
}

TEST(reads_64_bits) {
    unsigned char bytes[400];
    basin_bundle *bundle;
    size_t size = archive_in_64_bits(bytes);
    assert_ok(basin_npz_parse(&bundle, bytes, size, "f", false, &failure));
    assert_memory_equal(basin_bundle_find(bundle, "a")->data, "abcd", 4);
    basin_bundle_free(bundle);
    bytes[size - 22 - 20 + 8]++; /* where the locator says the end record is */
    assert_says(basin_npz_parse(&bundle, bytes, size, "f", false, &failure), BASIN_BAD_FILE,
                "f: its 64-bit end record is not where the archive says");
}

TEST(refuses_to_write_more_than_32_bits_hold) {
    char *path = folder_path(state, "a.npz");
    basin_error error;
    basin_writer writer;
    assert_int_equal(basin_writer_create(&writer, path, &error), 0);
    basin_zip_writer out = basin_zip_begin(&writer);
    out.limit = 100;
    assert_ok(basin_zip_add(&out, "a.npy", "abcd", 4, "efgh", 4, &failure));
    assert_failure(basin_zip_add(&out, "b.npy", path, 60, NULL, 0, &failure), BASIN_UNSUPPORTED,
                   "write safetensors");
    assert_ok(basin_zip_end(&out, &failure));
    basin_zip_free(&out);
    basin_writer_discard(&writer);
}

TEST(refuses_names_too_long_for_zip) {
    static char name[BASIN_ZIP_NAME_MAX];
    char *path = folder_path(state, "long.npz");
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    basin_tensor empty = basin_tensor_borrow(NULL, BASIN_F32, BASIN_SHAPE(0));
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_add(bundle, name, &empty, NULL), BASIN_OK);
    assert_failure(basin_npz_write(path, bundle, &failure), BASIN_BAD_VALUE,
                   "long.npz: a name of 65538 bytes, zip allows 65535");
    assert_int_equal(access(path, F_OK), -1);
}

/* Runs Python; the exit status, or 77 where it has no numpy. */
static int python(const char *script, const char *argument) {
    char command[4096];
    snprintf(command, sizeof command,
             "python3 -c 'import numpy' 2>/dev/null || exit 77; python3 -c '%s' '%s'", script,
             argument);
    int status = system(command);
    return status < 0 ? -1 : status >> 8;
}

TEST(numpy_reads_what_is_written) {
    basin_bundle *bundle = sample_new("w\xc3\xa4rme/empty", false);
    char *path = folder_path(state, "judge.npz");
    assert_int_equal(basin_npz_write(path, bundle, NULL), BASIN_OK);
    basin_bundle_free(bundle);
    int code = python(
        "import sys, json, zipfile, numpy as np\n"
        "path = sys.argv[1]\n"
        "assert zipfile.ZipFile(path).testzip() is None\n"
        "z = np.load(path)\n"
        "assert len(z.files) == 12, z.files\n"
        "assert json.loads(z[\"__metadata__\"].tobytes()) == {\"config\": \"{\\\"D\\\": 768}\"}\n"
        "kinds = dict(F64=\"f8\", F32=\"f4\", F16=\"f2\", I64=\"i8\", I32=\"i4\", I16=\"i2\",\n"
        "             I8=\"i1\", U8=\"u1\", BOOL=\"b1\")\n"
        "order = [\"F64\", \"F32\", \"F16\", \"BF16\", \"I64\", \"I32\", \"I16\", \"I8\", \"U8\",\n"
        "         \"BOOL\"]\n"
        "for name, kind in kinds.items():\n"
        "    d, x = order.index(name), z[name]\n"
        "    assert x.dtype == np.dtype(kind) and x.shape == (1 + d, 3), (name, x.dtype, x.shape)\n"
        "    want = bytes((i & 1 if name == \"BOOL\" else 7 * i + d) % 256 for i in "
        "range(x.nbytes))\n"
        "    assert x.tobytes() == want, name\n"
        "assert z[\"scalar\"].shape == () and z[\"scalar\"] == 2.5\n"
        "assert z[\"w\\u00e4rme/empty\"].shape == (0, 3)\n",
        path);
    unlink(path);
    if (code == 77) {
        print_message("skipped: python3 has no numpy\n");
        skip();
    }
    assert_int_equal(code, 0);
}

TEST(reads_what_numpy_writes) {
    basin_bundle *bundle;
    char *path = folder_path(state, "numpy.npz");
    int code =
        python("import sys, numpy as np\n"
               "x = np.arange(24).reshape(2, 3, 4)\n"
               "kinds = [\"<f8\", \">f8\", \"<f4\", \">f4\", \"<f2\", \"<i8\", \">i4\", \"<i2\","
               " \"i1\", \"u1\", \"<u2\", \">u4\", \"<u8\"]\n"
               "arrays = {k: x.astype(k) for k in kinds}\n"
               "arrays.update({k + \"F\": np.asfortranarray(a) for k, a in arrays.items()})\n"
               "np.savez_compressed(sys.argv[1], **arrays)\n"
               "np.savez(sys.argv[1] + \"s\", **arrays)\n",
               path);
    if (code == 77) {
        print_message("skipped: python3 has no numpy\n");
        skip();
    }
    assert_int_equal(code, 0);
    for (int stored = 0; stored <= 1; stored++) {
        if (stored) strcat(path, "s.npz");
        assert_ok(basin_bundle_read(&bundle, path, &failure));
        assert_int_equal(basin_bundle_count(bundle), 26);
        for (size_t i = 0; i < 26; i++)
            for (int64_t k = 0; k < 24; k++)
                assert_true(basin_tensor_at(basin_bundle_at(bundle, i), k) == (double)k);
        basin_bundle_free(bundle);
        unlink(path);
    }
}

int main(void) { return tests_run(folder_new, folder_remove); }
