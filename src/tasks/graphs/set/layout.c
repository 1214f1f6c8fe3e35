/* A molecule in the plane. Every pair of atoms has a distance that it should have and a weight:
 * bonds, the diagonals of regular rings, angles of 120 degrees; all others keep apart. Weighted
 * stress is lowered atom by atom (majorisation), first with distances along bonds, which unfolds
 * the molecule, from several starts, of which the one with the lowest stress is taken. */
#include "base/try.h"
#include "tasks/graphs/set/molecule.h"

static const char drawing[] = "drawing a molecule";
static const double PI = 3.14159265358979323846, APART = 1.6;
enum { STARTS = 10, UNFOLD = 150, REFINE = 240, FEW = 150 };

typedef struct sheet {
    basin_molecule *m;
    int32_t n;
    int32_t *steps; /* [n, n] bonds between two; -1: another part */
    float *target;  /* [n, n] */
    float *weight;  /* [n, n]; 0: they only keep apart */
    double *at;     /* [n, 2] */
} sheet;

static void count_steps(sheet *s, int32_t *queue) {
    const basin_molecule *m = s->m;
    for (int32_t from = 0; from < s->n; from++) {
        int32_t *steps = s->steps + (size_t)from * (size_t)s->n, first = 0, last = 1;
        for (int32_t i = 0; i < s->n; i++) steps[i] = -1;
        queue[0] = from, steps[from] = 0;
        for (; first < last; first++)
            for (int32_t k = m->start[queue[first]]; k < m->start[queue[first] + 1]; k++) {
                int32_t to = basin_bond_other(&m->bond[m->link[k]], queue[first]);
                if (steps[to] < 0) steps[to] = steps[queue[first]] + 1, queue[last++] = to;
            }
    }
}

static void want(sheet *s, int32_t a, int32_t b, double target, double weight) {
    size_t n = (size_t)s->n, here = (size_t)a * n + (size_t)b, there = (size_t)b * n + (size_t)a;
    if ((double)s->weight[here] >= weight) return;
    s->target[here] = s->target[there] = (float)target;
    s->weight[here] = s->weight[there] = (float)weight;
}

/* Bonds at an atom that make it linear: a triple one, or two double ones. */
static bool is_linear(const basin_molecule *m, int32_t a) {
    int doubles = 0;
    for (int32_t k = m->start[a]; k < m->start[a + 1]; k++)
        doubles += m->bond[m->link[k]].order == 3 ? 2 : m->bond[m->link[k]].order == 2;
    return doubles > 1;
}

static void set_distances(sheet *s) {
    const basin_molecule *m = s->m;
    for (int32_t b = 0; b < m->bonds; b++) want(s, m->bond[b].a, m->bond[b].b, 1, 10);
    for (int32_t r = 0; r < m->rings; r++) {
        const int32_t *ring = m->ring_atom + m->ring_start[r];
        int32_t size = m->ring_start[r + 1] - m->ring_start[r];
        for (int32_t i = 0; i < size; i++)
            for (int32_t k = 0; k < i; k++)
                want(s, ring[i], ring[k], sin(PI * (i - k) / size) / sin(PI / size),
                     size > 8 ? 1 : 6);
    }
    for (int32_t a = 0; a < s->n; a++)
        for (int32_t i = m->start[a]; i < m->start[a + 1]; i++)
            for (int32_t k = m->start[a]; k < i && m->start[a + 1] - m->start[a] < 4; k++)
                want(s, basin_bond_other(&m->bond[m->link[i]], a),
                     basin_bond_other(&m->bond[m->link[k]], a), is_linear(m, a) ? 2 : sqrt(3), 3);
}

/* What atoms i and k should have: their distance, and how much it counts. */
static double target_distance(const sheet *s, int32_t i, int32_t k, double now, bool unfold,
                              double *weight) {
    size_t pair = (size_t)i * (size_t)s->n + (size_t)k;
    double steps = (double)s->steps[pair];
    if (unfold) return *weight = 1 / (steps * steps), steps;
    if (s->weight[pair] > 0) return *weight = (double)s->weight[pair], (double)s->target[pair];
    if (now < APART) return *weight = 1, APART;
    return *weight = 0.02 / steps, 0.85 * steps;
}

static void relax(sheet *s, int rounds, bool unfold) {
    for (int round = 0; round < rounds; round++)
        for (int32_t i = 0; i < s->n; i++) {
            double x = 0, y = 0, sum = 0, weight;
            for (int32_t k = 0; k < s->n; k++) {
                if (k == i || s->steps[(size_t)i * (size_t)s->n + (size_t)k] < 0) continue;
                double dx = s->at[2 * i] - s->at[2 * k], dy = s->at[2 * i + 1] - s->at[2 * k + 1];
                double now = hypot(dx, dy) + 1e-9;
                double by = target_distance(s, i, k, now, unfold, &weight) / now;
                x += weight * (s->at[2 * k] + by * dx), y += weight * (s->at[2 * k + 1] + by * dy);
                sum += weight;
            }
            if (sum > 0) s->at[2 * i] = x / sum, s->at[2 * i + 1] = y / sum;
        }
}

static double cost_of(const sheet *s) {
    double cost = 0, weight;
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t k = 0; k < i; k++) {
            if (s->steps[(size_t)i * (size_t)s->n + (size_t)k] < 0) continue;
            double now = hypot(s->at[2 * i] - s->at[2 * k], s->at[2 * i + 1] - s->at[2 * k + 1]);
            double miss = now - target_distance(s, i, k, now, false, &weight);
            cost += weight * miss * miss;
        }
    return cost;
}

/* Moves the part of atom `of` to the right of `edge`, which advances past it. */
static void place_part(sheet *s, int32_t of, double *edge) {
    const int32_t *steps = s->steps + (size_t)of * (size_t)s->n;
    double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9};
    for (int32_t i = 0; i < 2 * s->n; i++)
        if (steps[i / 2] >= 0)
            low[i % 2] = fmin(low[i % 2], s->at[i]), high[i % 2] = fmax(high[i % 2], s->at[i]);
    for (int32_t i = 0; i < 2 * s->n; i++)
        if (steps[i / 2] >= 0) s->at[i] -= i % 2 ? (low[1] + high[1]) / 2 : low[0] - *edge;
    *edge += high[0] - low[0] + 2;
}

basin_status basin_molecule_layout(double *at, basin_molecule *m, basin_error *error) {
    int32_t n = m->atoms, starts = n > FEW ? 1 : STARTS;
    int refine = n > FEW ? REFINE * FEW / n + 10 : REFINE;
    double min = INFINITY, edge = 0;
    uint64_t random = 1;
    BASIN_SCRATCH(int32_t, steps, (int64_t)n * n + n, drawing, error);
    BASIN_SCRATCH(float, target, 2 * (int64_t)n * n, drawing, error);
    BASIN_SCRATCH(double, tried, 2 * (int64_t)n, drawing, error);
    sheet s = {m, n, steps, target, target + (size_t)n * (size_t)n, tried};
    BASIN_TRY(basin_molecule_link(m, error));
    BASIN_TRY(basin_molecule_find_rings(m, error));
    count_steps(&s, steps + (size_t)n * (size_t)n);
    set_distances(&s);
    for (int32_t k = 0; k < starts; k++) {
        for (int32_t i = 0; i < 2 * n; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            tried[i] = (double)(random >> 33) / (double)(1 << 30) * sqrt((double)n);
        }
        relax(&s, UNFOLD, true);
        relax(&s, refine, false);
        double cost = cost_of(&s);
        if (cost < min) min = cost, memcpy(at, tried, 2 * (size_t)n * sizeof *at);
    }
    s.at = at;
    for (int32_t i = 0; i < n; i++) { /* a part begins with an atom that no earlier one reaches */
        bool first = true;
        for (int32_t k = 0; k < i && first; k++)
            first = steps[(size_t)i * (size_t)n + (size_t)k] < 0;
        if (first) place_part(&s, i, &edge);
    }
    return BASIN_OK;
}

basin_status basin_molecule_of(basin_molecule *m, const basin_graphset *set, int64_t graph,
                               basin_error *error) {
    bool molecule = set->line && set->edge_labels > 0;
    m->atoms = m->bonds = 0;
    for (int64_t i = set->node_start[graph]; i < set->node_start[graph + 1]; i++)
        BASIN_TRY(basin_molecule_add_atom(m, (basin_atom){0}, error));
    for (int64_t e = set->edge_start[graph]; e < set->edge_start[graph + 1]; e++) {
        int32_t order = molecule ? set->edge_label[e * set->edge_labels] : 1;
        basin_bond bond = {.a = set->edge[2 * e], .b = set->edge[2 * e + 1], .kekule = 1};
        bond.order = (uint8_t)(order > 4 ? 2 : order); /* 5 and 6 are double, with a side */
        if (bond.a < bond.b) BASIN_TRY(basin_molecule_add_bond(m, bond, error));
    }
    return BASIN_OK;
}
