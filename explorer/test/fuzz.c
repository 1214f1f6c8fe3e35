/* Mutated and random formulas: each is refused with a message and a place inside it, or it is an
 * energy that can be computed.
 *
 *     node fuzz.js [COUNT]        also as a native program under sanitizers (tests/explorer/fuzz)
 */
#include <basin/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../formula.h"

static const char *const seeds[] = {
    "sum((g**2 - 1)**2) / 4",
    "-logsumexp(beta * xi @ g) / beta + g @ g / 2",
    "-logsumexp(-beta * sum((xi - g)**2, 1) / 2) / beta",
    "-sum(relu(xi @ g)**3) / 3 + (g @ g)**2 / 2",
    "-log(0.02 + sum(relu(1 - beta * sum((xi - g)**2, 1) / 2)))",
    "-cos(3 * (g[0] - g[1])) - 0.3 * cos(2 * g[0])",
    "-sum(logsumexp(others(beta * g @ g.T))) / beta - sum(relu(g @ xi.T)**2) / 2",
    "-sum(logsumexp(others(beta * layernorm(g) @ layernorm(g).T))) / beta + max(g) - min(g, 0)",
    "norm(g) + mean(softmax(xi @ g)) * maximum(g[0], 2e-3) - dot(g, g)",
};
static const char *const parts[] = {
    "g",          "xi",      "beta",     "pi",       "(",   ")",    "[",     "]",
    ",",          "+",       "-",        "*",        "**",  "/",    "@",     ".T",
    "sum(",       "max(",    "0",        "1",        "-1",  "2.5",  "1e39",  "logsumexp(",
    "layernorm(", "others(", "softmax(", "dot(",     "[0]", "[7]",  ", 1",   ", 0",
    ".",          "norm(",   "1e-400",   "\xc3\xa9", "<",   "**-3", "sqrt(", " ",
};

static uint64_t state = 1;
static unsigned draw(unsigned count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % count;
}

/* One to three changes: a part put in, characters removed, a character replaced, a piece repeated.
 */
static void mutate(char *text, size_t room) {
    for (unsigned i = 0, changes = 1 + draw(3); i < changes; i++) {
        size_t length = strlen(text), at = draw((unsigned)length + 1), size;
        char piece[64] = "";
        switch (draw(4)) {
        case 0:
            snprintf(piece, sizeof piece, "%s", parts[draw(sizeof parts / sizeof *parts)]);
            break;
        case 1:
            size = draw(8);
            if (size > length - at) size = length - at;
            memmove(text + at, text + at + size, length - at - size + 1);
            continue;
        case 2:
            if (at < length) text[at] = (char)(1 + draw(255));
            continue;
        default: snprintf(piece, 1 + draw(40), "%s", text + at); break;
        }
        size = strlen(piece);
        if (length + size + 1 > room) continue;
        memmove(text + at + size, text + at, length - at + 1);
        memcpy(text + at, piece, size);
    }
}

/* A formula that the grammar allows, whatever the shapes. */
static void grow(char *text, size_t room, int depth) {
    static const char *const leaves[] = {"g",    "xi",    "beta", "2",   "0.5",
                                         "g[0]", "xi[1]", "g",    "xi.T"};
    static const char *const around[] = {"sum(",       "relu(",   "exp(",  "norm(",      "max(",
                                         "logsumexp(", "cos(",    "(",     "layernorm(", "lncosh(",
                                         "softmax(",   "others(", "sqrt(", "-("};
    static const char *const between[] = {" + ", " - ", " * ", " / ", " @ ", " ** "};
    size_t length = strlen(text);
    if (length + 40 > room || depth <= 0 || !draw(4)) {
        snprintf(text + length, room - length, "%s", leaves[draw(9)]);
    } else if (draw(2)) {
        snprintf(text + length, room - length, "%s", around[draw(14)]);
        grow(text, room - 8, depth - 1);
        strcat(text, draw(8) ? ")" : ", 0)");
    } else {
        grow(text, room - 8, depth - 1);
        strcat(text, between[draw(6)]);
        grow(text, room - 8, depth - 1);
    }
}

/* Whether it was refused as it should be, or computed. */
static bool try_one(const char *text, bool together, int *computed) {
    basin_engine engine = {0};
    basin_error error;
    static formula f;
    float x[6] = {0.5F, -0.2F, 1, 2, -1, 0.1F}, pattern[6] = {1, 0, 0, 1, -1, -1};
    if (basin_engine_open(&engine, &(basin_compute){.backend = "cpu", .threads = 1}, &error))
        exit(2);
    basin_tensor xi = basin_tensor_borrow(pattern, BASIN_F32, BASIN_SHAPE(3, 2)), result[2] = {0};
    basin_tensor at = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(3, 2));
    memset(&f, 0, sizeof f);
    snprintf(f.text, sizeof f.text, "%s", text);
    f.batched = !together, f.names = 2;
    f.name[0] = (formula_name){"beta", basin_scalar(engine.graph, 2)};
    f.name[1] = (formula_name){"xi", basin_constant(engine.graph, &xi)};
    basin_expr g = basin_input(engine.graph, "g", at.shape), e = formula_build(&f, g);
    bool right = e ? !f.message[0] : f.message[0] && f.place >= 0 && f.place <= (int)strlen(f.text);
    if (e) {
        basin_expr wanted[2] = {e, basin_grad(e, g)};
        basin_feed given = {g, &at};
        if (basin_engine_compute(&engine, result, wanted, 2, &given, 1, &error)) {
            printf("not computed: %s: %s\n", text, error.text);
            right = false;
        }
        (*computed)++;
    }
    basin_tensor_free(&result[0]);
    basin_tensor_free(&result[1]);
    basin_engine_close(&engine);
    return right;
}

int main(int count, char **argument) {
    int wanted = count > 1 ? atoi(argument[1]) : 10000, wrong = 0, computed = 0;
    for (int i = 0; i < wanted; i++) {
        char text[FORMULA_TEXT];
        if (i % 2) {
            snprintf(text, sizeof text, "%s", seeds[draw(sizeof seeds / sizeof *seeds)]);
            mutate(text, sizeof text);
        } else {
            snprintf(text, sizeof text, "sum(");
            grow(text, 400, 6);
            strcat(text, ")");
        }
        if (try_one(text, i % 3 == 0, &computed)) continue;
        printf("wrong: %s\n", text);
        wrong++;
    }
    printf("%d formulas: %d energies, %d refused, %d wrong\n", wanted, computed, wanted - computed,
           wrong);
    return wrong != 0;
}
