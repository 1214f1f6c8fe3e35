/* Descents of many puzzles from many starts, and the choice among their answers: docs/sudoku.md. */
#pragma once
#include <time.h>

#include "model.h"

/* Each puzzle goes down from `breadth` starts: u, or u and normal noise of deviation `start`; every
 * step adds noise of deviation `noise`, except in the last `calm` steps. Puzzles whose best answer
 * breaks a rule begin again, from other starts, in up to `rounds` rounds.
 *
 * With `assume`, every start of a board but its first assumes a digit after each `assume` steps: in
 * a cell about which the model is not sure, drawn by how likely the model takes it to be, and shown
 * like a given from there on. A start that is sure of an answer which breaks a rule, or that
 * assumed ASSUMED digits, begins anew. In the last `calm` steps nothing is assumed: an answer has
 * to stay by itself. */
enum { ASSUMED = 24 };
#define SURE 0.95F
typedef struct search {
    int64_t steps, breadth, rounds, calm, assume, seed;
    double start, noise;
    /* How many rules an answer breaks. */
    int (*broken)(const int32_t *answer, const int32_t *given, int64_t side);
} search;

enum { DEPTHS = 32, STEPS_MOST = 1000000 };
/* How one answer is chosen of all that were seen so far: the lowest energy; the fewest broken
 * rules, then the lowest energy. Both hold what they have: more steps never exchange an answer for
 * one of higher energy, or one that keeps all rules for another. Or, of the answers at one depth:
 * the smallest move, relative to the tokens. */
enum { BY_ENERGY, BY_REST, BY_RULES, CHOICES };
static const char *const choice_name[CHOICES] = {"energy", "rest", "rules"};

/* The best start of a puzzle so far. */
typedef struct pick {
    double key;
    bool right;
} pick;

typedef struct findings {
    int64_t depths, depth[DEPTHS]; /* steps at which answers are seen: 0, 1, 2, 4, .., steps */
    int64_t count, starts;         /* puzzles; descents in all */
    int64_t first[DEPTHS];         /* descents of the first round with the right answer */
    int64_t lost;                  /* of these: right at some depth, but not at the end */
    double energy[DEPTHS];         /* their mean */
    pick *best;                    /* [choices, depths, count] */
    int32_t *answer;               /* [choices, count, cells] at the end */
    double seconds;
} findings;

static pick *pick_at(const findings *f, int by, int64_t depth, int64_t item) {
    return &f->best[((int64_t)by * f->depths + depth) * f->count + item];
}

/* Puzzles that a choice gets right at a depth. */
static int64_t right_at(const findings *f, int by, int64_t depth) {
    int64_t sum = 0;
    for (int64_t i = 0; i < f->count; i++) sum += pick_at(f, by, depth, i)->right;
    return sum;
}

/* Puzzles that were right at some depth and are not at the end. */
static int64_t lost_by(const findings *f, int by) {
    int64_t lost = 0;
    for (int64_t i = 0; i < f->count; i++) {
        bool ever = false;
        for (int64_t d = 0; d < f->depths; d++) ever |= pick_at(f, by, d, i)->right;
        lost += ever && !pick_at(f, by, f->depths - 1, i)->right;
    }
    return lost;
}

static void findings_free(findings *f) {
    free(f->best);
    free(f->answer);
    *f = (findings){0};
}

static findings new_findings(const puzzles *p, const search *how) {
    findings f = {.count = p->count};
    for (int64_t step = 0; step < how->steps; step = 2 * step + !step) f.depth[f.depths++] = step;
    f.depth[f.depths++] = how->steps;
    f.best = calloc((size_t)(CHOICES * f.depths * f.count) + 1, sizeof *f.best);
    f.answer = calloc((size_t)(CHOICES * f.count * p->cells) + 1, sizeof *f.answer);
    if (!f.best || !f.answer) quit("search", "out of memory");
    for (int64_t i = 0; i < CHOICES * f.depths * f.count; i++) f.best[i].key = INFINITY;
    return f;
}

/* One batch of descents on its way down. */
typedef struct watch {
    const puzzles *puzzles;
    const search *how;
    findings *to;
    const model *model;
    int64_t *item; /* [batch] puzzle of each row */
    int64_t count; /* of the batch */
    int64_t offset, round;
    basin_plan *plan; /* reads the likeliest choices and the relative moves */
    basin_expr output[2];
    int32_t *cells;  /* [batch * cells] that the rows show */
    int32_t *answer; /* [batch * cells] */
    float *move;     /* [batch] */
    float *likely;   /* [batch * cells, 9], of `assume` */
    float *fresh;    /* [2, batch]: whether a row begins anew; deviations of the noise there */
    bool *first;     /* [batch]: the very first start of a puzzle, which assumes nothing */
    bool *right;     /* [batch]: right at some depth */
} watch;

/* An answer of a puzzle with its key, for the depths `from` to `last`. */
static void offer(findings *f, const puzzles *p, int by, int64_t item, int64_t from, int64_t last,
                  pick found, const int32_t *answer) {
    for (int64_t d = from; d <= last; d++) {
        pick *best = pick_at(f, by, d, item);
        if (!(found.key < best->key)) continue;
        *best = found;
        if (d + 1 == f->depths)
            memcpy(f->answer + (by * p->count + item) * p->cells, answer,
                   (size_t)p->cells * sizeof *answer);
    }
}

/* An answer of row i at a depth, with its energy. */
static void consider(watch *w, int64_t i, int64_t depth, double energy) {
    const puzzles *p = w->puzzles;
    int64_t cells = p->cells, item = w->item[i];
    int32_t *answer = w->answer + i * cells;
    const int32_t *given = w->cells + i * cells, *full = p->solution + item * cells;
    for (int64_t k = 0; k < cells; k++)
        if (!w->model->side)
            answer[k] = given[k] ? given[k] : answer[k] + 1;
        else if (given[k] != WAY)
            answer[k] = given[k] != WALL;
    bool right = !memcmp(answer, full, (size_t)cells * sizeof *answer);
    double rules = w->how->broken(answer, given, w->model->side);
    double key[CHOICES] = {energy, w->move[i], rules * 1e9 + energy};
    /* Energies of rows with assumed digits are of other boards: they are not held. */
    bool plain = !memcmp(given, p->given + item * cells, (size_t)cells * sizeof *given);
    int64_t last = w->to->depths - 1;
    if (!w->round) w->to->first[depth] += right;
    w->right[i] = (depth && w->right[i]) || right;
    if (!w->round && depth == last) w->to->lost += w->right[i] && !right;
    if (!w->round) w->to->energy[depth] += energy / (double)(p->count * w->how->breadth);
    for (int by = 0; by < CHOICES; by++) {
        bool held = by != BY_REST && (plain || (by == BY_RULES && rules == 0));
        offer(w->to, p, by, item, depth, held ? last : depth, (pick){key[by], right}, answer);
    }
}

static basin_status see(void *context, const basin_descent_state *now, basin_error *why) {
    watch *w = context;
    int64_t depth = 0, step = w->offset + now->step;
    while (depth < w->to->depths && w->to->depth[depth] != step) depth++;
    if (depth == w->to->depths || (w->offset && !now->step)) return BASIN_OK;
    basin_tensor answer = basin_tensor_borrow(w->answer, BASIN_I32, basin_expr_shape(w->output[0]));
    basin_tensor move = basin_tensor_borrow(w->move, BASIN_F32, basin_expr_shape(w->output[1]));
    basin_status status = basin_plan_run(w->plan, why);
    if (!status) status = basin_plan_read(&answer, w->plan, w->output[0], why);
    if (!status) status = basin_plan_read(&move, w->plan, w->output[1], why);
    for (int64_t i = 0; i < w->count && !status; i++) {
        double energy = 0;
        for (int term = 0; term < now->terms; term++)
            energy += now->energy[term * now->samples + i];
        consider(w, i, depth, energy);
    }
    return status;
}

/* How far a step would move the tokens of each sample, relative to their length. */
static basin_expr relative_move(const net *n, basin_expr x) {
    basin_expr by = basin_sum(basin_square(basin_sub(next(n, x), x)), 1, 2);
    return basin_sqrt(basin_div(by, basin_sum(basin_square(x), 1, 2)));
}

/* The plans of a search: what begins a descent and what reads it. */
typedef struct searcher {
    net net;
    basin_descent *descent[2];     /* with noise (or NULL), and without */
    basin_plan *begin, *beliefs;   /* `beliefs` reads how likely each digit is; or NULL */
    basin_expr seed, fresh, start; /* inputs of `begin`: index [2]; [B, 1, 1] of watch.fresh */
    basin_expr likely;
    watch watch;
} searcher;

static void searcher_new(searcher *s, const model *m, const puzzles *p, const search *how,
                         findings *to) {
    int64_t rows = p->count * how->breadth, batch = rows < BATCH ? rows : BATCH;
    basin_store *store = m->engine.store;
    net *n = &s->net;
    watch *w = &s->watch;
    basin_substep turn = {.move = decay};
    net_new(n, m, batch, "");
    basin_descent_spec spec = {.steps = 1, .alpha = n->alpha, .substep = &turn, .substeps = 1};
    basin_energy whole = energy_of(n);
    basin_shape shape = basin_expr_shape(n->start);
    must(basin_descent_new(&s->descent[1], store, &whole, n->graph, shape, &spec, NULL, &error));
    spec.noise = how->noise / sqrt(n->alpha);
    if (how->noise > 0)
        must(
            basin_descent_new(&s->descent[0], store, &whole, n->graph, shape, &spec, NULL, &error));
    basin_expr tokens = basin_descent_tokens(s->descent[1], 0);
    s->seed = basin_index(n->graph, "seed", BASIN_SHAPE(2));
    s->fresh = basin_input(n->graph, "fresh", BASIN_SHAPE(batch, 1, 1));
    s->start = basin_input(n->graph, "start", BASIN_SHAPE(batch, 1, 1));
    basin_expr noise = basin_mul(basin_normal(s->seed, shape), s->start);
    basin_expr anew = basin_where(s->fresh, basin_add(n->start, noise), tokens);
    basin_update first = {tokens, anew};
    *w = (watch){.puzzles = p, .how = how, .to = to, .model = m};
    w->output[0] = basin_argmax(digits(n, tokens), 1);
    w->output[1] = relative_move(n, tokens);
    basin_plan_spec starts = {.update = &first, .updates = 1};
    basin_plan_spec reads = {.output = w->output, .outputs = 2};
    must(basin_plan_new(&s->begin, store, &starts, &error));
    must(basin_plan_new(&w->plan, store, &reads, &error));
    s->likely = basin_softmax(digits(n, tokens), -1);
    basin_plan_spec beliefs = {.output = &s->likely, .outputs = 1};
    if (how->assume) must(basin_plan_new(&s->beliefs, store, &beliefs, &error));
    w->item = calloc((size_t)batch, sizeof *w->item);
    w->move = calloc((size_t)batch, sizeof *w->move);
    w->first = calloc(2 * (size_t)batch, sizeof *w->first);
    w->fresh = calloc(2 * (size_t)batch, sizeof *w->fresh);
    w->likely = calloc((size_t)(batch * n->cells * DIGITS), sizeof *w->likely);
    w->answer = calloc((size_t)(2 * batch * n->cells), sizeof *w->answer);
    if (!w->item || !w->move || !w->answer || !w->first || !w->fresh || !w->likely)
        quit("search", "out of memory");
    w->right = w->first + batch;
    w->cells = w->answer + batch * n->cells;
}

static void searcher_free(searcher *s) {
    free(s->watch.item);
    free(s->watch.move);
    free(s->watch.first);
    free(s->watch.fresh);
    free(s->watch.likely);
    free(s->watch.answer);
    basin_plan_free(s->beliefs);
    basin_plan_free(s->watch.plan);
    basin_plan_free(s->begin);
    basin_descent_free(s->descent[0]);
    basin_descent_free(s->descent[1]);
    net_free(&s->net);
}

/* Row i of a batch shows its puzzle and nothing else. */
static void show(watch *w, int64_t i) {
    int64_t n = w->puzzles->cells;
    memcpy(w->cells + i * n, w->puzzles->given + w->item[i] * n, (size_t)n * sizeof *w->cells);
}

/* What the rows show, to all plans that see it. */
static void show_all(searcher *s) {
    watch *w = &s->watch;
    write_to(s->begin, s->net.board, w->cells, BASIN_I32);
    write_to(w->plan, s->net.board, w->cells, BASIN_I32);
    for (int part = 0; part < 2; part++)
        if (s->descent[part])
            write_to(basin_descent_plan(s->descent[part]), s->net.board, w->cells, BASIN_I32);
}

/* Rows whose `fresh` is 1 begin anew. */
static void begin_rows(searcher *s, int64_t number) {
    watch *w = &s->watch;
    int32_t seed[2] = {(int32_t)w->how->seed, (int32_t)number};
    write_to(s->begin, s->fresh, w->fresh, BASIN_F32);
    write_to(s->begin, s->start, w->fresh + s->net.batch, BASIN_F32);
    write_to(s->begin, s->seed, seed, BASIN_I32);
    must(basin_plan_run(s->begin, &error));
}

static double draw_real(basin_random *random) {
    return ((double)basin_random_next(random) + 0.5) / 4294967296.0;
}

/* A digit by how likely each is. */
static int draw_digit(const float *likely, basin_random *random) {
    double at = draw_real(random);
    int digit = 1;
    for (; digit < DIGITS && (at -= likely[digit - 1]) >= 0; digit++) continue;
    return digit;
}

/* An answer of row i that keeps all rules after `step` steps, between the depths that are seen. */
static void keep(watch *w, int64_t i, const int32_t *answer, int64_t step) {
    const puzzles *p = w->puzzles;
    int64_t cells = p->cells, item = w->item[i], depth = 0;
    bool right = !memcmp(answer, p->solution + item * cells, (size_t)cells * sizeof *answer);
    while (w->to->depth[depth] < step) depth++;
    offer(w->to, p, BY_RULES, item, depth, w->to->depths - 1, (pick){-1e300, right}, answer);
}

/* Row i assumes a digit: of the cells about which the model is not sure, the one whose likeliest
 * digit is the likeliest, after noise of deviation 0.1. False if there is none, or no more may be
 * assumed. A row whose answer keeps all rules stays as it is. */
static bool assume_one(watch *w, int64_t i, int64_t step, basin_random *random) {
    int32_t *cells = w->cells + i * CELLS, answer[CELLS];
    const int32_t *given = w->puzzles->given + w->item[i] * CELLS;
    const float *likely = w->likely + i * CELLS * DIGITS;
    double best = -INFINITY;
    int chosen = -1, assumed = 0;
    for (int k = 0; k < CELLS; k++) {
        int top = 0;
        for (int d = 1; d < DIGITS; d++)
            if (likely[k * DIGITS + d] > likely[k * DIGITS + top]) top = d;
        float most = likely[k * DIGITS + top];
        double noise = sqrt(-2 * log(draw_real(random))) * cos(2 * M_PI * draw_real(random));
        answer[k] = cells[k] ? cells[k] : top + 1;
        assumed += cells[k] && !given[k];
        if (cells[k] || most >= SURE || most + 0.1 * noise <= best) continue;
        best = most + 0.1 * noise;
        chosen = k;
    }
    if (!w->how->broken(answer, cells, 0)) return keep(w, i, answer, step), true;
    if (chosen < 0 || assumed >= ASSUMED) return false;
    cells[chosen] = draw_digit(likely + chosen * DIGITS, random);
    return true;
}

/* After `step` steps: all rows but first starts assume one digit more, or begin anew. */
static void assume_all(searcher *s, int64_t number, int64_t step) {
    watch *w = &s->watch;
    basin_tensor t = basin_tensor_borrow(w->likely, BASIN_F32, basin_expr_shape(s->likely));
    must(basin_plan_run(s->beliefs, &error));
    must(basin_plan_read(&t, s->beliefs, s->likely, &error));
    for (int64_t i = 0; i < w->count; i++) {
        uint64_t stream = (uint64_t)(number * s->net.batch + i);
        basin_random random = basin_random_start((uint64_t)w->how->seed, stream, (uint64_t)step);
        w->fresh[i] = !w->first[i] && !assume_one(w, i, step, &random);
        w->fresh[s->net.batch + i] = (float)w->how->start;
        if (w->fresh[i] > 0) show(w, i);
    }
    show_all(s);
    begin_rows(s, number + (step << 20));
}

/* `steps` steps with noise or without, from `offset` on. Noise of the engine is scaled by
 * sqrt(alpha). */
static void run_part(searcher *s, bool noisy, int64_t offset, int64_t steps, uint64_t seed) {
    basin_descent_result result;
    basin_substep turn = {.move = decay};
    basin_descent_spec spec = {
        .steps = (int)steps, .alpha = s->net.alpha, .substep = &turn, .substeps = 1};
    basin_stop stop = {.observe = see, .context = &s->watch, .seed = seed};
    basin_descent *descent = s->descent[noisy ? 0 : 1];
    s->watch.offset = offset;
    must(basin_descent_set(descent, &spec, &stop, &error));
    must(basin_descent_run(descent, &result, NULL, &error));
    basin_descent_result_free(&result);
}

/* One batch: rows `from` to `from` + count of the starts of the puzzles `open`. The very first
 * start of a puzzle is u itself. */
static void run_batch(searcher *s, const int64_t *open, int64_t from) {
    watch *w = &s->watch;
    const search *how = w->how;
    int64_t number = w->round * 65536 + from / s->net.batch, late = how->steps - how->calm;
    uint64_t seed = (uint64_t)how->seed << 32 | (uint32_t)number;
    for (int64_t i = 0; i < w->count; i++) {
        w->item[i] = open[(from + i) / how->breadth];
        w->first[i] = !w->round && (from + i) % how->breadth == 0;
        w->fresh[i] = 1;
        w->fresh[s->net.batch + i] = w->first[i] ? 0 : (float)how->start;
        show(w, i);
    }
    show_all(s);
    begin_rows(s, number);
    for (int64_t step = 0, next; step < how->steps; step = next) {
        bool early = step < late && (how->assume || how->noise > 0);
        next = !early ? how->steps : how->assume ? step + how->assume : late;
        if (early && next > late) next = late;
        run_part(s, early && how->noise > 0, step, next - step, seed + ((uint64_t)step << 20));
        if (how->assume && next < late) assume_all(s, number, next);
        for (int64_t i = 0; i < w->count && how->assume && next == late; i++) show(w, i);
        if (how->assume && next == late) show_all(s);
    }
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Goes down with every puzzle. Free the findings. */
static findings find(const model *m, const puzzles *p, const search *how) {
    findings f = new_findings(p, how);
    searcher s = {0};
    searcher_new(&s, m, p, how, &f);
    watch *w = &s.watch;
    int64_t *open = calloc((size_t)p->count + 1, sizeof *open), last = f.depths - 1;
    if (!open) quit("search", "out of memory");
    f.seconds = -seconds_now();
    for (w->round = 0; w->round < how->rounds; w->round++) {
        int64_t count = 0;
        for (int64_t i = 0; i < p->count; i++)
            if (pick_at(&f, BY_RULES, last, i)->key > 5e8) open[count++] = i;
        for (int64_t from = 0; from < count * how->breadth; from += w->count) {
            int64_t left = count * how->breadth - from;
            w->count = left < s.net.batch ? left : s.net.batch;
            run_batch(&s, open, from);
            f.starts += w->count;
        }
    }
    f.seconds += seconds_now();
    free(open);
    searcher_free(&s);
    return f;
}

/* Prints what is right by steps: the states themselves, and what each choice holds. */
static void print_findings(const findings *f, const search *how, const char *what) {
    bool several = how->breadth > 1;
    puts(several ? "steps  one start  by energy  by rest  by rules    energy"
                 : "steps  solved  by energy  by rules    energy");
    for (int64_t d = 0; d < f->depths; d++) {
        int energy = (int)right_at(f, BY_ENERGY, d), rules = (int)right_at(f, BY_RULES, d);
        double share = 100 * (double)f->first[d] / (double)(f->count * how->breadth);
        if (several)
            printf("%5d  %8.1f%%  %9d  %7d  %8d", (int)f->depth[d], share, energy,
                   (int)right_at(f, BY_REST, d), rules);
        else
            printf("%5d  %6d  %9d  %8d", (int)f->depth[d], (int)f->first[d], energy, rules);
        printf("  %8.2f\n", f->energy[d]);
    }
    printf("%d descents of %d %s in %.2f s; right before the end and not at the end: %d starts, %d "
           "%s by energy, %d by rules\n",
           (int)f->starts, (int)f->count, what, f->seconds, (int)f->lost,
           (int)lost_by(f, BY_ENERGY), what, (int)lost_by(f, BY_RULES));
}

/* Options of a search, of `steps` steps if none are given. */
static search read_search(int64_t steps) {
    search how = {.steps = integer("--steps", steps),
                  .breadth = integer("--breadth", 1),
                  .rounds = integer("--rounds", 1),
                  .calm = integer("--calm", 32),
                  .seed = integer("--seed", 0),
                  .start = real("--start", 1),
                  .noise = real("--noise", 0)};
    if (how.steps < 1 || how.breadth < 1 || how.rounds < 1)
        quit("--steps, --breadth and --rounds", "expected 1 or more");
    if (how.steps > STEPS_MOST) quit("--steps", "expected 1000000 or less");
    if (how.calm < 0 || how.start < 0 || how.noise < 0)
        quit("--calm, --start and --noise", "expected 0 or more");
    if (how.calm > how.steps) how.calm = how.steps;
    return how;
}

/* The number of --choose NAME. */
static int read_choice(void) {
    const char *name = text("--choose", "rules");
    for (int i = 0; i < CHOICES; i++)
        if (!strcmp(name, choice_name[i])) return i;
    quit("--choose", "expected energy, rest or rules");
    return 0;
}
