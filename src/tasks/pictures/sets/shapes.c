/* Generated pictures, for when there are none: shapes with soft edges over a texture, each filled
 * with its own colour or texture. Picture i depends only on (seed, i, sizes). */
#include "base/number.h"
#include "base/try.h"
#include "basin/random.h"
#include "tasks/pictures/sets/pictures.h"

enum { MAX_SIDE = 4096, MAX_SHAPES = 3 };

static const float turn_full = 6.28318531F;

typedef enum texture { FLAT, GRADIENT, STRIPES, CHECKS, RINGS, CLOUDS, TEXTURES } texture;

typedef struct paint {
    texture texture;
    float low[3], high[3];  /* the two colours it goes between */
    float cosine, sine;     /* its direction */
    float frequency, phase; /* waves over the picture's side */
    float wave[4][3];       /* clouds: direction and phase of four waves */
} paint;

typedef enum form { DISC, RING, BOX, TRIANGLE, CROSS, STAR, FORMS } form;

typedef struct shape {
    form form;
    float y, x, size, aspect, cosine, sine;
    paint paint;
} shape;

static float uniform(basin_random *random, float low, float high) {
    return low + (high - low) * (float)(basin_random_next(random) >> 8) * 0x1p-24F;
}

static void colour(float out[3], basin_random *random, float low, float high, int channels) {
    float tone = uniform(random, low, high);
    for (int c = 0; c < 3; c++) {
        float tint = uniform(random, -0.45F, 0.45F);
        out[c] = channels == 3 ? fminf(1, fmaxf(0, tone + tint)) : tone;
    }
}

static paint paint_draw(basin_random *random, float low, float high, int channels) {
    paint p = {.texture = (texture)basin_random_below(random, TEXTURES)};
    float angle = uniform(random, 0, turn_full), middle = 0.5F * (low + high);
    colour(p.low, random, low, middle, channels);
    colour(p.high, random, middle, high, channels);
    p.cosine = cosf(angle);
    p.sine = sinf(angle);
    p.frequency = uniform(random, 2, 6);
    p.phase = uniform(random, 0, turn_full);
    for (int i = 0; i < 4; i++) {
        float way = uniform(random, 0, turn_full), waves = uniform(random, 4, 16);
        p.wave[i][0] = waves * cosf(way);
        p.wave[i][1] = waves * sinf(way);
        p.wave[i][2] = uniform(random, 0, turn_full);
    }
    return p;
}

/* How far between its two colours a paint is at a point of -1 .. 1 squared. */
static float paint_at(const paint *p, float y, float x) {
    float u = p->cosine * x + p->sine * y, v = p->cosine * y - p->sine * x;
    float k = 0.5F * turn_full * p->frequency, sum = 0;
    switch (p->texture) {
    case FLAT: return 0.8F;
    case GRADIENT: return 0.5F + 0.5F * fminf(1, fmaxf(-1, u));
    case STRIPES: return 0.5F + 0.5F * tanhf(3 * sinf(k * u + p->phase));
    case CHECKS: return 0.5F + 0.5F * tanhf(4 * sinf(k * u + p->phase) * sinf(k * v));
    case RINGS: return 0.5F + 0.5F * sinf(k * sqrtf(u * u + v * v) + p->phase);
    default:
        for (int i = 0; i < 4; i++)
            sum += sinf(p->wave[i][0] * x + p->wave[i][1] * y + p->wave[i][2]);
        return 0.5F + 0.5F * tanhf(0.7F * sum);
    }
}

static shape shape_draw(basin_random *random, int channels) {
    shape s = {.form = (form)basin_random_below(random, FORMS)};
    float angle = uniform(random, 0, turn_full);
    s.y = uniform(random, -0.45F, 0.45F);
    s.x = uniform(random, -0.45F, 0.45F);
    s.size = uniform(random, 0.3F, 0.75F);
    s.aspect = uniform(random, 0.5F, 1);
    s.cosine = cosf(angle);
    s.sine = sinf(angle);
    s.paint = paint_draw(random, 0.35F, 1, channels);
    return s;
}

static float box_distance(float u, float v, float a, float b) {
    return fmaxf(fabsf(u) - a, fabsf(v) - b);
}

/* The distance from a shape's border, about; negative inside. */
static float shape_distance(const shape *s, float y, float x) {
    float u = s->cosine * (x - s->x) + s->sine * (y - s->y);
    float v = s->cosine * (y - s->y) - s->sine * (x - s->x);
    float r = sqrtf(u * u + v * v / (s->aspect * s->aspect));
    switch (s->form) {
    case DISC: return r - s->size;
    case RING: return fabsf(r - 0.75F * s->size) - 0.22F * s->size;
    case BOX: return box_distance(u, v, s->size, s->size * s->aspect);
    case TRIANGLE:
        return fmaxf(-0.5F * s->size - v,
                     0.866F * fabsf(u) + 0.5F * v - 0.5F * s->size * s->aspect);
    case CROSS:
        return fminf(box_distance(u, v, s->size, 0.3F * s->size),
                     box_distance(u, v, 0.3F * s->size, s->size * s->aspect));
    default: return r - s->size * (0.7F + 0.3F * cosf(5 * atan2f(v, u)));
    }
}

typedef struct scene {
    paint ground;
    shape shape[MAX_SHAPES];
    int shapes;
} scene;

static scene scene_draw(const basin_shelf *shelf, int64_t i) {
    basin_random random = basin_random_start(shelf->seed, (uint64_t)i, 0);
    scene s = {.ground = paint_draw(&random, 0, 0.45F, shelf->channels)};
    s.shapes = 1 + (int)basin_random_below(&random, MAX_SHAPES);
    for (int k = 0; k < s.shapes; k++) s.shape[k] = shape_draw(&random, shelf->channels);
    return s;
}

basin_status basin_shapes_draw(basin_picture *picture, const basin_shelf *shelf, int64_t i,
                               basin_error *error) {
    BASIN_TRY(
        basin_picture_resize_memory(picture, shelf->height, shelf->width, shelf->channels, error));
    scene s = scene_draw(shelf, i);
    int64_t side = shelf->height < shelf->width ? shelf->height : shelf->width;
    float unit = 2.0F / (float)side;
    uint8_t *pixel = picture->pixel;
    for (int64_t row = 0; row < shelf->height; row++)
        for (int64_t column = 0; column < shelf->width; column++) {
            float y = ((float)row + 0.5F - 0.5F * (float)shelf->height) * unit;
            float x = ((float)column + 0.5F - 0.5F * (float)shelf->width) * unit;
            float value[3], t = paint_at(&s.ground, y, x);
            for (int c = 0; c < 3; c++)
                value[c] = s.ground.low[c] + t * (s.ground.high[c] - s.ground.low[c]);
            for (int k = 0; k < s.shapes; k++) {
                const paint *p = &s.shape[k].paint;
                float inside = 0.5F - shape_distance(&s.shape[k], y, x) / unit;
                if (inside <= 0) continue;
                if (inside > 1) inside = 1;
                t = paint_at(p, y, x);
                for (int c = 0; c < 3; c++)
                    value[c] += inside * (p->low[c] + t * (p->high[c] - p->low[c]) - value[c]);
            }
            for (int c = 0; c < shelf->channels; c++)
                *pixel++ = (uint8_t)lrintf(255 * fminf(1, fmaxf(0, value[c])));
        }
    return BASIN_OK;
}

/* The number after `mark` at *at, which moves past it. */
static bool marked_number(int64_t *number, const char **at, char mark) {
    return *(*at)++ == mark && **at >= '0' && **at <= '9' && basin_integer_read(number, at);
}

/* shapes:COUNT:SEED:HxWxC, each part optional from the end. */
basin_status basin_shelf_shapes(basin_shelf *shelf, const char *split, basin_error *error) {
    bool test = split && !strcmp(split, "test");
    int64_t count = test ? 10000 : 60000, seed = 1, height = 28, width = 28, channels = 1;
    const char *at = shelf->name + strlen("shapes");
    bool good = true;
    if (at[0] == ':' && !at[1]) at++; /* "shapes:" */
    if (*at) good = marked_number(&count, &at, ':');
    if (good && *at) good = marked_number(&seed, &at, ':');
    if (good && *at)
        good = marked_number(&height, &at, ':') && marked_number(&width, &at, 'x') &&
               marked_number(&channels, &at, 'x');
    if (!good || *at || count < 1 || count > 1LL << 40 || height < 1 || height > MAX_SIDE ||
        width < 1 || width > MAX_SIDE || (channels != 1 && channels != 3))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "'%s': expected shapes:COUNT:SEED:HxWxC with C 1 or 3", shelf->name);
    shelf->kind = BASIN_SHELF_SHAPES;
    shelf->count = count;
    shelf->height = height;
    shelf->width = width;
    shelf->channels = (int)channels;
    shelf->seed = test ? ~(uint64_t)seed : (uint64_t)seed; /* the halves share no picture */
    return BASIN_OK;
}
