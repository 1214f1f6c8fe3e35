/* The models that come with Basin: small enough to ship, and as good as models/README.md says. */
#include <stdlib.h>
#include <sys/stat.h>

#include "basin/tasks/picture.h"
#include "program/program.h"

#define MODEL(name) BASIN_SOURCE "/models/" name ".safetensors"
#define HILLS BASIN_SOURCE "/examples/pictures/hills.jpg"

/* A hole of HOLE pixels at (LEFT, TOP) of the picture, where hills meet the sky. */
enum { LEFT = 120, TOP = 120, HOLE = 48 };

static long bytes_of(const char *path) {
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return (long)found.st_size;
}

static void open_picture(basin_picture *picture, const char *path) {
    *picture = (basin_picture){0};
    assert_ok(basin_picture_read(picture, path, &failure));
}

static int pixel_at(const basin_picture *p, int64_t y, int64_t x, int64_t c) {
    return p->pixel[(y * p->width + x) * p->channels + c];
}

/* The mean of one channel around the hole, a pixel wide. */
static double rim_mean(const basin_picture *p, int64_t c) {
    double sum = 0;
    for (int64_t i = 0; i < HOLE; i++)
        sum += pixel_at(p, TOP - 1, LEFT + i, c) + pixel_at(p, TOP + HOLE, LEFT + i, c) +
               pixel_at(p, TOP + i, LEFT - 1, c) + pixel_at(p, TOP + i, LEFT + HOLE, c);
    return sum / (4 * HOLE);
}

TEST(a_photograph_is_completed) {
    BASIN_AT_EXIT(basin_picture_free) basin_picture before, after;
    double error = 0, rim = 0;
    assert_in_range(bytes_of(MODEL("photos")), 1, 12 * 1000 * 1000);
    run_ok(state, "image complete %s --mask %d,%d,%d,%d --plain --threads 1 -o o", HILLS, LEFT, TOP,
           HOLE, HOLE);
    open_picture(&before, HILLS);
    open_picture(&after, folder_path(state, "o/hills.completed.png"));
    for (int64_t c = 0; c < 3; c++) {
        double mean = rim_mean(&before, c);
        for (int64_t y = TOP; y < TOP + HOLE; y++)
            for (int64_t x = LEFT; x < LEFT + HOLE; x++) {
                double wanted = pixel_at(&before, y, x, c);
                error +=
                    (pixel_at(&after, y, x, c) - wanted) * (pixel_at(&after, y, x, c) - wanted);
                rim += (mean - wanted) * (mean - wanted);
            }
    }
    if (error > 0.67 * rim) fail_msg("error %.0f, of the rim's mean %.0f", error, rim);
}

TEST(clothes_are_completed) {
    static const char pictures[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";
    assert_in_range(bytes_of(MODEL("fashion")), 1, 300 * 1000);
    if (access(pictures, R_OK) != 0) {
        print_message("skipped: %s is not here (Debian: dataset-fashion-mnist)\n", pictures);
        skip();
    }
    const program *p = run_ok(state, "image eval %s %s --limit 50 --best 0 --threads 1 --json -q",
                              MODEL("fashion"), pictures);
    const char *mse = strstr(p->out, "\"mse\":");
    assert_non_null(mse);
    if (atof(mse + 6) > 0.15) fail_msg("%.30s, wanted at most 0.15", mse);
    assert_contains(p->out, "\"trained_on\": 0");
}

int main(void) { return tests_run(folder_new, folder_remove); }
