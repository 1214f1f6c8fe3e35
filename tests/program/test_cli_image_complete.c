/* basin image complete as people use it: their own files and masks, the mistakes that they make, a
 * model that came with Basin; and basin image export to half the bytes. */
#include <stdbool.h>
#include <sys/stat.h>

#include "basin/tasks/picture.h"
#include "program/program.h"

static void put_picture(void **state, const char *name, int64_t height, int64_t width, int kind) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture p = {0};
    assert_ok(basin_picture_resize_memory(&p, height, width, 3, &failure));
    for (int64_t i = 0; i < height * width * 3; i++)
        p.pixel[i] = (uint8_t)(kind < 0 ? -kind - 1 : i * 7 % 200 + kind);
    assert_ok(basin_picture_write_png(folder_path(state, name), &p, &failure));
}

/* White in a square of 8 pixels from (4, 4), with three pixels of another grey above it. */
static void put_mask(void **state, const char *name, int64_t height, int64_t width, int grey) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture p = {0};
    assert_ok(basin_picture_resize_memory(&p, height, width, 1, &failure));
    memset(p.pixel, 0, (size_t)(height * width));
    for (int y = 4; y < 12; y++) memset(p.pixel + y * width + 4, 255, 8);
    memset(p.pixel + 3 * width + 4, grey, 3);
    assert_ok(basin_picture_write_png(folder_path(state, name), &p, &failure));
}

static void make_folder(void **state, const char *name) {
    assert_int_equal(mkdir(folder_path(state, name), 0777), 0);
}

static long bytes_of(void **state, const char *name) {
    struct stat found;
    return stat(folder_path(state, name), &found) == 0 ? (long)found.st_size : -1;
}

/* A model m.safetensors, and a folder of three pictures, of which one is none. */
static int scene_open(void **state) {
    if (folder_new(state)) return -1;
    const program *p = run(state, "image train shapes:64:3:16x16x3 --size 16 --dim 16 --heads 2 "
                                  "--head-dim 8 --memories 32 --steps 3 --occlude 6 --keep 1 "
                                  "--channels 3 --batch 16 --warmup 0 --epochs 1 --threads 1 "
                                  "--quiet -o m.safetensors");
    if (p->code) return -1;
    make_folder(state, "in");
    make_folder(state, "in/more");
    put_picture(state, "in/a.png", 30, 20, 3);
    put_picture(state, "in/more/a.png", 24, 24, 9);
    folder_put(state, "in/broken.jpg", "\xff\xd8\xff");
    return 0;
}

static int scene_close(void **state) {
    char line[PATH_TEXT + 20];
    snprintf(line, sizeof line, "rm -r '%s'", (const char *)*state);
    int failed = system(line);
    free(*state);
    return failed;
}

TEST(folders_are_completed_whole) {
    const program *p =
        run_ok(state, "image complete m.safetensors in --mask '2,3,6,6;12,14,5,4' -o o1");
    assert_contains(p->err, "skipped: in/broken.jpg: ");
    assert_null(strstr(p->err, "in/broken.jpg: in/broken.jpg"));
    assert_contains(p->err, "2 pictures completed, 1 skipped");
    assert_true(is_there(state, "o1/a.completed.png") && is_there(state, "o1/a-2.completed.png"));
    folder_put(state, "o1/a.completed.png.tmp-1-0", "what Ctrl-C left");
    p = run(state, "image complete m.safetensors in --mask 2,3,6,6 -o o1");
    assert_false(is_there(state, "o1/a.completed.png.tmp-1-0"));
    assert_contains(p->err, "o1: replaced 2 files of the same name");
    p = run_ok(state,
               "image complete m.safetensors shapes:12:5:16x16x3 --mask 2,3,6,6 -o o2 --quiet");
    assert_true(is_there(state, "o2/shapes:12:5:16x16x3-11.completed.png"));
    assert_error(run(state, "image complete m.safetensors in/broken.jpg -o o1"), 1, "broken.jpg");
}

TEST(what_was_written_is_json_too) {
    const cJSON *json =
        run_json(run(state, "image complete m.safetensors in --mask 2,3,6,6 -o o7 --json"));
    assert_string_equal(json_at(json, "pictures.0.picture")->valuestring, "in/a.png");
    assert_string_equal(json_at(json, "pictures.0.file")->valuestring, "o7/a.completed.png");
    assert_true(json_number(json, "pictures.0.width") == 20);
    assert_true(json_number(json, "pictures.0.height") == 30);
    assert_true(json_number(json, "pictures.0.missing") == 36);
    assert_true(json_number(json, "pictures.0.seconds") > 0);
    assert_contains(json_at(json, "pictures.1.error")->valuestring, "in/broken.jpg");
    assert_int_equal(cJSON_GetArraySize(json_at(json, "pictures")), 3);
    assert_true(json_number(json, "completed") == 2 && json_number(json, "skipped") == 1);
    const program *p = run(state, "image complete m.safetensors in/broken.jpg -o o7 --json");
    assert_int_equal(p->code, 1);
    assert_true(json_number(json_read(p->out), "completed") == 0);
}

/* A picture with enough around its hole to copy from. */
TEST(energies_of_the_retrieval_are_in_the_json) {
    const program *p = run(state, "image complete m.safetensors shapes:1:7:96x96x3 --mask "
                                  "30,30,16,16 -o o8 --json");
    const cJSON *energy = json_at(run_json(p), "pictures.0.energy");
    assert_true(cJSON_GetArraySize(energy) > 1);
    assert_true(cJSON_IsNumber(energy->child));
}

/* A result that is completed again does not take its own place. */
TEST(a_result_is_not_its_own_original) {
    put_picture(state, "in2.completed.png", 20, 20, 3);
    run_ok(state, "image complete m.safetensors in2.completed.png --mask 2,3,6,6");
    assert_true(is_there(state, "in2.completed.completed.png"));
}

TEST(results_of_an_earlier_run_are_left_out) {
    const char *again = "image complete m.safetensors twice --mask 2,3,6,6 -o twice";
    make_folder(state, "twice");
    make_folder(state, "twice/more");
    put_picture(state, "twice/a.png", 20, 20, 3);
    put_picture(state, "twice/more/a.png", 20, 20, 3);
    put_picture(state, "twice/own.completed.png", 20, 20, 3); /* of no picture there */
    assert_null(strstr(run_ok(state, again)->err, "left out"));
    const program *p = run_ok(state, again);
    assert_contains(p->err, "twice: 3 pictures left out: results of an earlier run");
    assert_string_equal(p->out, "twice/a.completed.png\ntwice/a-2.completed.png\n"
                                "twice/own.completed.completed.png\n");
    const cJSON *json = run_json(
        run(state, "image complete m.safetensors twice --mask 2,3,6,6 --limit 1 -o twice --json"));
    assert_true(json_number(json, "left_out") == 3);
    assert_string_equal(json_at(json, "pictures.0.picture")->valuestring, "twice/a.png");
    p = run_ok(state, "image complete m.safetensors twice/a.png twice/a.completed.png --mask "
                      "2,3,6,6 -o twice");
    assert_contains(p->out, "twice/a.completed.completed.png");
}

TEST(masks_are_files_or_folders_of_them) {
    make_folder(state, "masks");
    put_mask(state, "masks/a.png", 30, 20, 0);
    const program *p =
        run_ok(state, "image complete m.safetensors in/a.png --mask masks/a.png -o o3");
    assert_null(strstr(p->err, "nearly black"));
    put_mask(state, "smeared.png", 30, 20, 5);
    p = run(state, "image complete m.safetensors in/a.png --mask smeared.png -o o3");
    assert_contains(p->err, "note: 3 pixels of the mask are nearly black");
    p = run_ok(state, "image complete m.safetensors in --mask masks -o o3");
    assert_contains(p->err, "masks/a-2.png");
    assert_contains(p->err, "1 picture completed, 2 skipped");
}

TEST(unusable_masks_are_errors) {
    put_picture(state, "black.png", 30, 20, -1);
    put_picture(state, "white.png", 30, 20, -256);
    put_mask(state, "other.png", 24, 24, 0);
    static const struct {
        const char *mask, *why;
        int code;
    } wrong[] = {
        {"4000,6,8,8", "the rectangle 4000,6,8,8 reaches out of the picture, which has 20 x 30", 1},
        {"15,6,8,8", "reaches out of the picture", 1},
        {"1,2,3", "needs four whole numbers X,Y,W,H", 1},
        {"1,2,0,4", "W and H above 0", 1},
        {"'1,2,3,4;'", "needs four whole numbers X,Y,W,H", 1},
        {"black.png", "the mask hides nothing", 1},
        {"white.png", "the mask hides the whole picture", 1},
        {"other.png", "in/a.png: the mask has 24 x 24 pixels; expected the picture's 20 x 30", 1},
        {"nowhere.png", "nowhere.png", 1},
        {"smeared.png --most-hidden 0.1", "the mask hides 11 % of the picture: is it inverted?", 1},
        {"transparent", "in/a.png: nothing is transparent in it, so what is missing? --mask", 1},
        {"1,2,3,4 --smooth --plain", "--smooth has no effect with --plain", 2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_error(
            run(state, "image complete m.safetensors in/a.png -o o4 --mask %s", wrong[i].mask),
            wrong[i].code, wrong[i].why);
    assert_false(is_there(state, "o4")); /* nor an empty folder */
    assert_error(run(state, "image complete m.safetensors in/a.png --mask 2,3,6,6 -o o.jpg"), 2,
                 "needs a name that ends in .png");
    assert_error(run(state, "image complete m.safetensors in --mask 2,3,6,6 -o o.png"), 2,
                 "-o o.png is a file, and there are 3 pictures; needs a folder");
    assert_error(run(state, "image inpaint in/a.png"), 2, "did you mean 'image complete'?");
    assert_error(run(state, "image complete in/a.png --hole 1,2,3,4"), 2, "mean '--mask'?");
}

/* As painting programs leave it: a hole is what was erased. */
TEST(transparency_is_the_hole) {
    static const char make[] =
        "import struct,zlib\n"
        "def c(k,d): return struct.pack('>I',len(d))+k+d+struct.pack('>I',zlib.crc32(k+d))\n"
        "r=b''.join(b'\\0'+bytes(v for x in range(20) for v in (9*x,5*y,99,0 if 5<x<12 and 6<y<14 "
        "else 255)) for y in range(24))\n"
        "open('erased.png','wb').write(b'\\x89PNG\\r\\n\\x1a\\n'+c(b'IHDR',struct.pack('>IIBBBBB',"
        "20,"
        "24,8,6,0,0,0))+c(b'IDAT',zlib.compress(r))+c(b'IEND',b''))\n"
        "r=b''.join(b'\\0'+bytes(255 if 5<x<12 and 6<y<14 or k<1 else 0 for x in range(20) for k "
        "in "
        "(0,1)) for y in range(24))\n"
        "open('painted.png','wb').write(b'\\x89PNG\\r\\n\\x1a\\n'+c(b'IHDR',struct.pack("
        "'>IIBBBBB',20,24,8,4,0,0,0))+c(b'IDAT',zlib.compress(r))+c(b'IEND',b''))\n";
    char line[PATH_TEXT + 40];
    assert_int_equal(file_put(folder_path(state, "make.py"), make, sizeof make - 1), 0);
    snprintf(line, sizeof line, "cd '%s' && python3 make.py", (const char *)*state);
    if (system(line) != 0) skip();
    const program *p = run_ok(state, "image complete m.safetensors erased.png -o whole.png");
    assert_contains(p->out, "whole.png\n");
    assert_error(run(state, "image complete m.safetensors erased.png -o ./erased.png"), 2,
                 "-o ./erased.png is read; name another file");
    run_ok(state, "image complete m.safetensors erased.png -o made/x.png");
    assert_true(is_there(state, "made/x.png"));
    assert_error(run(state, "image complete m.safetensors whole.png -o again.png"), 1,
                 "nothing is transparent in it");
    /* a mask of white paint on a transparent layer */
    run_ok(state, "image complete m.safetensors whole.png --mask painted.png -o a.png");
    run_ok(state, "image complete m.safetensors whole.png --mask 6,7,6,7 -o b.png");
    assert_int_equal(bytes_of(state, "a.png"), bytes_of(state, "b.png"));
}

TEST(thin_pictures_get_the_membrane) {
    put_picture(state, "thin.png", 300, 2, 3);
    run_ok(state, "image complete m.safetensors thin.png --mask 0,40,2,200 -o a.png");
    run_ok(state, "image complete m.safetensors thin.png --mask 0,40,2,200 -o o9 --steps 1");
    assert_true(bytes_of(state, "a.png") == bytes_of(state, "o9/thin.completed.png"));
}

TEST(the_descent_can_be_changed) {
    const char *base = "image complete m.safetensors in/a.png --mask 2,3,6,6 -o o5";
    run_ok(state, "%s", base);
    long bytes = bytes_of(state, "o5/a.completed.png");
    run_ok(state, "%s --steps 9 --alpha 0.9", base);
    assert_true(bytes_of(state, "o5/a.completed.png") != bytes);
}

/* Without a model the one that came with Basin is used, in half the bytes if one likes. */
TEST(a_model_to_begin_with_is_found) {
    make_folder(state, "models");
    char *path = folder_path(state, "models");
    setenv("BASIN_MODELS", path, 1);
    assert_error(run(state, "image complete in/a.png --mask 2,3,6,6 -o o6"), 1,
                 "models/photos.safetensors: not found in the folder that BASIN_MODELS names");
    const program *p = run_ok(state, "image export m.safetensors models/photos.safetensors "
                                     "--weights bf16");
    assert_field(p->out, "weights", "bf16");
    p = run(state, "image export m.safetensors again.safetensors --json -q");
    assert_true((long)json_number(run_json(p), "bytes") == bytes_of(state, "again.safetensors"));
    p = run(state, "image complete in/a.png --mask 2,3,6,6 -o o6");
    unsetenv("BASIN_MODELS");
    assert_int_equal(p->code, 0);
    assert_true(is_there(state, "o6/a.completed.png"));
    assert_true(bytes_of(state, "models/photos.safetensors") * 5 <
                bytes_of(state, "m.safetensors") * 4);
    p = run_ok(state,
               "image complete in/a.png --model models/photos.safetensors --mask 2,3,6,6 -o o6");
    assert_error(run(state, "image complete m.safetensors"), 2, "no pictures given");
    assert_error(run(state, "image complete m.safetensors in --model m.safetensors"), 2,
                 "are given; expected one");
    assert_error(run(state, "image export m.safetensors w.npz"), 2, "ends in .safetensors");
    assert_error(run(state, "image export m.safetensors ./m.safetensors --weights bf16"), 2,
                 "would overwrite itself");
}

int main(void) { return tests_run(scene_open, scene_close); }
