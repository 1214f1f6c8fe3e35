/* Stereochemistry of molecules as labels that do not depend on how they are written: which way the
 * neighbours of an atom turn, and which side of a double bond they are on, where neighbours are
 * ranked by what is around them. Centres whose neighbours differ by nothing but their own
 * stereochemistry have none. */
#include <math.h>

#include "base/hash.h"
#include "base/try.h"
#include "tasks/graphs/set/molecule.h"

enum { ROUNDS = 16, NEIGHBOURS = 4 };

/* For atoms as written: the turn of the neighbours in the order of their numbers, a hydrogen or a
 * lone pair first; merging explicit hydrogens leaves that order as it is. */
static uint8_t turn_of(const basin_molecule *m, int32_t own) {
    struct {
        int32_t place, number;
    } seen[NEIGHBOURS + 1], keep;
    int count = 0, odd = 0;
    for (int32_t i = 0; i < m->bonds; i++) {
        const basin_bond *b = &m->bond[i];
        if (b->a != own && b->b != own) continue;
        if (count == NEIGHBOURS) return 0;
        int32_t other = basin_bond_other(b, own);
        bool merged = m->atom[other].number == 1 && (m->standard || !m->atom[other].isotope);
        seen[count].place = b->place[b->b == own];
        seen[count++].number = merged ? -1 : other;
    }
    if (count == NEIGHBOURS - 1) seen[count].place = 0, seen[count++].number = -1;
    bool amine = m->atom[own].number == 7 && !m->atom[own].charge; /* which turns over */
    if (count != NEIGHBOURS || amine) return 0;
    for (int i = 1; i < count; i++) /* as they were written */
        for (int k = i; k && seen[k].place < seen[k - 1].place; k--)
            keep = seen[k], seen[k] = seen[k - 1], seen[k - 1] = keep;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) {
            if (seen[k].number == seen[i].number) return 0; /* two hydrogens */
            odd ^= seen[k].number > seen[i].number;
        }
    return odd ? 3 - m->atom[own].turn : m->atom[own].turn;
}

void basin_molecule_order_turns(basin_molecule *m) {
    for (int32_t i = 0; i < m->atoms; i++)
        if (m->atom[i].turn) m->atom[i].turn = turn_of(m, i);
}

void basin_molecule_refine(uint64_t *colour, const basin_molecule *m, const char *keep, bool rings,
                           int rounds) {
    uint64_t *next = colour + m->atoms;
    for (int round = 0; round < rounds; round++) {
        for (int32_t i = 0; i < m->atoms; i++) {
            uint64_t around = 0;
            for (int32_t k = m->start[i]; k < m->start[i + 1] && (!keep || keep[i]); k++) {
                const basin_bond *b = &m->bond[m->link[k]];
                int32_t to = basin_bond_other(b, i);
                uint64_t kind = rings ? (uint64_t)b->order << 1 | b->ring : b->order;
                if (!keep || keep[to]) around += basin_hash_pair(colour[to], kind);
            }
            next[i] = basin_hash_pair(colour[i], around);
        }
        memcpy(colour, next, (size_t)m->atoms * sizeof *colour);
    }
}

static void colour_atoms(uint64_t *colour, const basin_molecule *m) {
    for (int32_t i = 0; i < m->atoms; i++) {
        const basin_atom *a = &m->atom[i];
        colour[i] =
            basin_hash_pair((uint64_t)a->number << 32 | (uint64_t)a->isotope << 16 | a->hydrogens,
                            (uint64_t)(a->charge + 1000) << 1 | a->aromatic);
    }
    basin_molecule_refine(colour, m, NULL, false, m->atoms < ROUNDS ? m->atoms : ROUNDS);
}

static uint8_t centre_of(const basin_molecule *m, const uint64_t *colour, int32_t own) {
    int32_t first = m->start[own], count = m->start[own + 1] - first, odd = 0;
    uint64_t rank[NEIGHBOURS];
    int32_t number[NEIGHBOURS];
    if (!m->atom[own].turn || count < NEIGHBOURS - 1 || count > NEIGHBOURS) return 0;
    for (int32_t i = 0; i < count; i++) {
        number[i] = basin_bond_other(&m->bond[m->link[first + i]], own);
        rank[i] = colour[number[i]];
        for (int32_t k = 0; k < i; k++) {
            if (rank[k] == rank[i]) return 0;
            odd ^= (number[k] < number[i]) != (rank[k] < rank[i]);
        }
    }
    return odd ? 3 - m->atom[own].turn : m->atom[own].turn;
}

/* On which side, 1 or -1, the neighbour of highest rank at this end is; 0: it is not said. */
static int side_of(const basin_molecule *m, const uint64_t *colour, const basin_bond *twofold,
                   int32_t end) {
    int side = 0;
    uint64_t marked = 0, other = 0;
    for (int32_t k = m->start[end]; k < m->start[end + 1]; k++) {
        const basin_bond *b = &m->bond[m->link[k]];
        if (b == twofold) continue;
        uint64_t rank = colour[basin_bond_other(b, end)];
        if (b->mark && !side) {
            side = (b->mark == '/') == (b->a == end) ? 1 : -1;
            marked = rank;
        } else {
            other = rank;
        }
    }
    return marked == other ? 0 : marked > other ? side : -side;
}

/* The neighbour of highest rank at this end of a double bond; -1: there is none, or two of one
 * rank, or its side is left open. */
static int32_t highest(const basin_molecule *m, const uint64_t *colour, const basin_bond *twofold,
                       int32_t end) {
    int32_t best = -1, number = 0;
    for (int32_t k = m->start[end]; k < m->start[end + 1]; k++) {
        const basin_bond *b = &m->bond[m->link[k]];
        int32_t other = basin_bond_other(b, end);
        if (b == twofold) continue;
        if (b->wedge == 4 || (number++ && colour[other] == colour[best])) return -1;
        if (best < 0 || colour[other] > colour[best]) best = other;
    }
    return best;
}

/* By the points of atoms: 1 where the neighbours of highest rank are on one side, -1 on opposite
 * ones; 0: it is not said. */
static int drawn_sides(const basin_molecule *m, const uint64_t *colour, const basin_bond *twofold) {
    const int32_t end[2] = {twofold->a, twofold->b};
    double axis[3], arm[2][3], length = 0, dot = 0, size[2] = {0};
    for (int c = 0; c < 3; c++) {
        axis[c] = (double)m->atom[end[1]].at[c] - (double)m->atom[end[0]].at[c];
        length += axis[c] * axis[c];
    }
    if (twofold->wedge == 3 || !(length > 0)) return 0;
    for (int e = 0; e < 2; e++) {
        int32_t other = highest(m, colour, twofold, end[e]);
        double along = 0;
        if (other < 0) return 0;
        for (int c = 0; c < 3; c++) {
            arm[e][c] = (double)m->atom[other].at[c] - (double)m->atom[end[e]].at[c];
            along += arm[e][c] * axis[c] / length;
        }
        for (int c = 0; c < 3; c++) {
            arm[e][c] -= along * axis[c];
            size[e] += arm[e][c] * arm[e][c];
        }
    }
    for (int c = 0; c < 3; c++) dot += arm[0][c] * arm[1][c];
    bool straight = fmin(size[0], size[1]) < 1e-2 * length;
    return straight || dot == 0 ? 0 : dot > 0 ? 1 : -1;
}

basin_status basin_molecule_find_stereo(basin_molecule *m, basin_error *error) {
    bool any = m->dimensions > 0;
    for (int32_t i = 0; i < m->atoms; i++) any |= m->atom[i].turn != 0;
    for (int32_t i = 0; i < m->bonds; i++) any |= m->bond[i].mark != 0;
    if (!any) return BASIN_OK;
    BASIN_SCRATCH_RAW(uint64_t, colour, 2 * m->atoms, "a molecule", error);
    colour_atoms(colour, m);
    for (int32_t i = 0; i < m->atoms; i++)
        m->atom[i].turn = m->atom[i].turn ? centre_of(m, colour, i) : 0;
    for (int32_t i = 0; i < m->bonds; i++) {
        basin_bond *b = &m->bond[i];
        if (b->order != 2 || b->ring) continue;
        int side = m->dimensions ? drawn_sides(m, colour, b)
                                 : side_of(m, colour, b, b->a) * side_of(m, colour, b, b->b);
        if (side) b->stereo = side > 0 ? BASIN_BOND_SAME : BASIN_BOND_OPPOSITE;
    }
    return BASIN_OK;
}
