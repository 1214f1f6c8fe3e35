/* The smallest set of smallest rings: in each block of rings, Horton's candidates (a root, an edge,
 * the shortest paths between them) by rising size, those kept that are not sums of rings before. */
#include "base/hash.h"
#include "base/sort.h"
#include "base/try.h"
#include "tasks/graphs/set/molecule.h"

static const char rings_of[] = "the rings of a molecule";

typedef struct candidate {
    int32_t size, root, edge;
    uint64_t print; /* of the set of bonds */
} candidate;

typedef struct finder {
    basin_molecule *m;
    int32_t *low, *number, *stack, *at; /* [atoms] of the search for blocks; `at`: the next link */
    int32_t *open, opens;               /* [bonds] bonds on the way */
    int32_t *distance, *parent, *root_of; /* [atoms] of breadth-first search; bonds to parents */
    int32_t *queue;                       /* [atoms] */
    int32_t *block;                       /* [bonds] of each bond, from 1; 0: in no ring */
    int32_t *bond, bonds;                 /* [bonds] of the block at hand */
    int32_t *place;                       /* [bonds] of each bond in its block */
    candidate *list;
    size_t candidates, capacity;
    uint64_t *row; /* [rings of the block, words] what was kept, reduced */
    size_t row_capacity;
    int32_t blocks, ring_bonds;
} finder;

/* ---- blocks ---- */

/* Bonds down to `bond` are a block; a single bond is not a ring. */
static void close_block(finder *f, int32_t bond) {
    bool ring = f->open[f->opens - 1] != bond;
    if (ring) f->blocks++;
    for (;;) {
        int32_t own = f->open[--f->opens];
        f->block[own] = ring ? f->blocks : 0;
        f->m->bond[own].ring = ring;
        if (own == bond) return;
    }
}

/* Tarjan's search with an explicit stack: chains may be long. */
static void search_blocks(finder *f, int32_t first, int32_t *clock) {
    const basin_molecule *m = f->m;
    int32_t top = 0;
    f->stack[top++] = first;
    f->parent[first] = -1;
    f->number[first] = f->low[first] = ++*clock;
    f->at[first] = m->start[first];
    while (top) {
        int32_t v = f->stack[top - 1];
        if (f->at[v] < m->start[v + 1]) {
            int32_t bond = m->link[f->at[v]++], to = basin_bond_other(&m->bond[bond], v);
            if (bond == f->parent[v]) continue;
            if (!f->number[to]) {
                f->open[f->opens++] = bond;
                f->parent[to] = bond;
                f->number[to] = f->low[to] = ++*clock;
                f->at[to] = m->start[to];
                f->stack[top++] = to;
            } else if (f->number[to] < f->number[v]) {
                f->open[f->opens++] = bond;
                if (f->number[to] < f->low[v]) f->low[v] = f->number[to];
            }
            continue;
        }
        top--;
        if (f->parent[v] < 0) continue;
        int32_t up = basin_bond_other(&m->bond[f->parent[v]], v);
        if (f->low[v] < f->low[up]) f->low[up] = f->low[v];
        if (f->low[v] >= f->number[up]) close_block(f, f->parent[v]);
    }
}

/* Returns how many atoms were reached. */
static int32_t search_paths(finder *f, int32_t root, int32_t block) {
    const basin_molecule *m = f->m;
    int32_t first = 0, last = 0;
    f->queue[last++] = root;
    f->distance[root] = 0, f->parent[root] = -1, f->root_of[root] = root;
    while (first < last) {
        int32_t v = f->queue[first++];
        for (int32_t k = m->start[v]; k < m->start[v + 1]; k++) {
            int32_t bond = m->link[k], to = basin_bond_other(&m->bond[bond], v);
            if (f->block[bond] != block || f->distance[to] >= 0) continue;
            f->distance[to] = f->distance[v] + 1;
            f->parent[to] = bond;
            f->root_of[to] = v == root ? to : f->root_of[v]; /* the branch at the root */
            f->queue[last++] = to;
        }
    }
    return last;
}

static uint64_t print_of(int32_t bond) {
    uint64_t word = (uint64_t)bond;
    return basin_hash_words(BASIN_HASH_START, &word, sizeof word);
}

/* All edges that close a ring through the root; `distance` is reset. */
static basin_status add_candidates(finder *f, int32_t root, basin_error *error) {
    basin_molecule *m = f->m;
    for (int32_t i = 0; i < f->bonds; i++) {
        const basin_bond *b = &m->bond[f->bond[i]];
        if (f->distance[b->a] < 0 || f->distance[b->b] < 0 || f->parent[b->a] == f->bond[i] ||
            f->parent[b->b] == f->bond[i] || f->root_of[b->a] == f->root_of[b->b])
            continue;
        candidate c = {f->distance[b->a] + f->distance[b->b] + 1, root, f->bond[i],
                       print_of(f->bond[i])};
        for (int side = 0; side < 2; side++)
            for (int32_t v = side ? b->b : b->a; v != root;
                 v = basin_bond_other(&m->bond[f->parent[v]], v))
                c.print += print_of(f->parent[v]);
        BASIN_TRY(BASIN_GROW(&f->list, &f->capacity, f->candidates + 1, rings_of, error));
        f->list[f->candidates++] = c;
    }
    return BASIN_OK;
}

static void reset_paths(finder *f) {
    for (int32_t i = 0; i < f->bonds; i++) {
        f->distance[f->m->bond[f->bond[i]].a] = -1;
        f->distance[f->m->bond[f->bond[i]].b] = -1;
    }
}

static int by_size(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->size != y->size) return BASIN_COMPARE(x->size, y->size);
    if (x->print != y->print) return BASIN_COMPARE(x->print, y->print);
    return x->root != y->root ? BASIN_COMPARE(x->root, y->root) : BASIN_COMPARE(x->edge, y->edge);
}

/* ---- keeping those that are independent ---- */

/* The bonds and atoms of a candidate, in order around it, after the existing rings. */
static basin_status write_ring(finder *f, const candidate *c, int32_t block, basin_error *error) {
    basin_molecule *m = f->m;
    const basin_bond *b = &m->bond[c->edge];
    int32_t at = f->ring_bonds, size = 0;
    reset_paths(f);
    search_paths(f, c->root, block);
    if (!BASIN_RESERVE(&m->ring_bond, &m->ring_bond_capacity, at + c->size) ||
        !BASIN_RESERVE(&m->ring_atom, &m->ring_atom_capacity, at + c->size))
        return basin_fail_memory(error, rings_of);
    for (int32_t v = b->a; v != c->root; v = basin_bond_other(&m->bond[f->parent[v]], v)) {
        m->ring_atom[at + size] = v;
        m->ring_bond[at + size++] = f->parent[v];
    }
    m->ring_atom[at + size] = c->root;
    int32_t low = size, high = c->size - 1;
    m->ring_bond[at + high] = c->edge; /* from b->b back to b->a */
    for (int32_t v = b->b; v != c->root; v = basin_bond_other(&m->bond[f->parent[v]], v)) {
        m->ring_atom[at + high] = v;
        m->ring_bond[at + --high] = f->parent[v];
    }
    return low == high ? BASIN_OK : basin_fail(error, BASIN_BAD_VALUE, "rings do not close");
}

/* Whether the written ring is independent of those kept; then its row stays. */
static bool is_independent(finder *f, int32_t size, int32_t kept, int32_t words) {
    uint64_t *own = f->row + (size_t)kept * (size_t)words;
    memset(own, 0, (size_t)words * sizeof *own);
    for (int32_t i = 0; i < size; i++) {
        int32_t place = f->place[f->m->ring_bond[f->ring_bonds + i]];
        own[place / 64] |= UINT64_C(1) << place % 64;
    }
    for (int32_t r = 0; r < kept; r++) { /* each row's first bit is in no row below it */
        const uint64_t *row = f->row + (size_t)r * (size_t)words;
        int32_t w = 0;
        while (!row[w]) w++;
        if (own[w] & (row[w] & -row[w]))
            for (int32_t i = w; i < words; i++) own[i] ^= row[i];
    }
    for (int32_t i = 0; i < words; i++)
        if (own[i]) return true;
    return false;
}

static basin_status keep(finder *f, int32_t size, basin_error *error) {
    basin_molecule *m = f->m;
    BASIN_TRY(BASIN_GROW(&m->ring_start, &m->ring_capacity, m->rings + 2, rings_of, error));
    m->ring_start[m->rings] = f->ring_bonds;
    for (int32_t i = 0; i < size; i++) {
        basin_atom *a = &m->atom[m->ring_atom[f->ring_bonds + i]];
        a->rings = a->rings < 255 ? a->rings + 1 : 255;
    }
    f->ring_bonds += size;
    m->ring_start[++m->rings] = f->ring_bonds;
    return BASIN_OK;
}

static basin_status find_in_block(finder *f, int32_t block, basin_error *error) {
    basin_molecule *m = f->m;
    f->bonds = 0, f->candidates = 0;
    for (int32_t i = 0; i < m->bonds; i++)
        if (f->block[i] == block) f->place[i] = f->bonds, f->bond[f->bonds++] = i;
    reset_paths(f);
    int32_t atoms = search_paths(f, m->bond[f->bond[0]].a, block), kept = 0;
    int32_t rings = f->bonds - atoms + 1, words = (f->bonds + 63) / 64;
    int64_t work = ((int64_t)atoms * atoms + (int64_t)rings * words) * rings;
    if (rings > 1 && work > INT64_C(1) << 32)
        return basin_fail(error, BASIN_BAD_VALUE, "too large a system of rings");
    BASIN_SCRATCH_RAW(int32_t, root, atoms, rings_of, error);
    memcpy(root, f->queue, (size_t)atoms * sizeof *root);
    for (int32_t i = 0; i < (rings == 1 ? 1 : atoms); i++) {
        reset_paths(f);
        search_paths(f, root[i], block);
        BASIN_TRY(add_candidates(f, root[i], error));
    }
    qsort(f->list, f->candidates, sizeof *f->list, by_size);
    BASIN_TRY(BASIN_GROW(&f->row, &f->row_capacity, (rings + 1) * words, rings_of, error));
    for (size_t i = 0; i < f->candidates && kept < rings; i++) {
        const candidate *c = &f->list[i];
        if (i && c->size == c[-1].size && c->print == c[-1].print) continue;
        BASIN_TRY(write_ring(f, c, block, error));
        if (!is_independent(f, c->size, kept, words)) continue;
        kept++;
        BASIN_TRY(keep(f, c->size, error));
    }
    return BASIN_OK;
}

static void finder_free(finder *f) { BASIN_FREE(f->low, f->open, f->list, f->row); }

basin_status basin_molecule_find_rings(basin_molecule *m, basin_error *error) {
    BASIN_AT_EXIT(finder_free) finder f = {.m = m};
    size_t n = (size_t)m->atoms, b = (size_t)m->bonds;
    int32_t clock = 0;
    BASIN_TRY(BASIN_NEW(&f.low, 8 * n, rings_of, error));
    BASIN_TRY(BASIN_NEW(&f.open, 4 * b, rings_of, error));
    f.number = f.low + n, f.stack = f.low + 2 * n, f.at = f.low + 3 * n, f.distance = f.low + 4 * n;
    f.parent = f.low + 5 * n, f.root_of = f.low + 6 * n, f.queue = f.low + 7 * n;
    f.block = f.open + b, f.bond = f.open + 2 * b, f.place = f.open + 3 * b;
    m->rings = 0;
    for (int32_t i = 0; i < m->atoms; i++) {
        m->atom[i].rings = 0;
        if (!f.number[i]) search_blocks(&f, i, &clock);
    }
    for (int32_t block = 1; block <= f.blocks; block++) BASIN_TRY(find_in_block(&f, block, error));
    return BASIN_OK;
}

/* ---- Murcko scaffolds ---- */

/* Keeps rings, links between them, and atoms bound to either by a double bond. */
static void find_scaffold(char *keep, int32_t *left, const basin_molecule *m) {
    for (int32_t i = 0; i < m->atoms; i++) keep[i] = 1, left[i] = m->start[i + 1] - m->start[i];
    for (int32_t i = 0; i < m->atoms; i++) /* from each end inwards */
        for (int32_t v = i, next; v >= 0 && keep[v] && !m->atom[v].rings && left[v] <= 1;
             v = next) {
            keep[v] = 0, next = -1;
            for (int32_t k = m->start[v]; k < m->start[v + 1]; k++) {
                int32_t to = basin_bond_other(&m->bond[m->link[k]], v);
                left[to]--;
                if (keep[to]) next = to;
            }
        }
    for (int32_t i = 0; i < m->bonds; i++) {
        const basin_bond *b = &m->bond[i];
        if (b->kekule >= 2 && keep[b->a] + keep[b->b] == 1)
            keep[b->a] = keep[b->a] ? 1 : 2, keep[b->b] = keep[b->b] ? 1 : 2;
    }
}

/* Colours of atoms, refined by those of their neighbours until even far ones are told apart. */
basin_status basin_molecule_scaffold(int64_t *scaffold, const basin_molecule *m,
                                     basin_error *error) {
    size_t n = (size_t)m->atoms;
    *scaffold = 0;
    if (!m->rings) return BASIN_OK;
    BASIN_SCRATCH(uint64_t, colour, 2 * n, rings_of, error);
    BASIN_SCRATCH(int32_t, left, n + n / 4 + 1, rings_of, error);
    char *keep = (char *)(left + n);
    uint64_t *next = colour + n, sum = 0;
    find_scaffold(keep, left, m);
    for (int32_t i = 0; i < m->atoms; i++) {
        const basin_atom *a = &m->atom[i];
        bool pyrrole = a->number == 7 && a->aromatic && /* n with a hydrogen in the scaffold */
                       m->start[i + 1] - m->start[i] + a->hydrogens == 3;
        colour[i] =
            basin_hash_pair((uint64_t)a->number << 8 | (uint64_t)(a->aromatic + 2 * pyrrole),
                            (uint64_t)(a->charge + 128) << 8 | (a->rings > 0));
    }
    for (int32_t r = 0; r < m->rings; r++) /* the size of an atom's smallest ring */
        for (int32_t k = m->ring_start[r]; k < m->ring_start[r + 1]; k++) {
            uint64_t size = (uint64_t)(m->ring_start[r + 1] - m->ring_start[r]);
            uint64_t *min = &next[m->ring_atom[k]];
            if (!*min || size < *min) *min = size;
        }
    for (int32_t i = 0; i < m->atoms; i++) colour[i] = basin_hash_pair(colour[i], next[i]);
    basin_molecule_refine(colour, m, keep, true, 24);
    for (int32_t i = 0; i < m->atoms; i++)
        if (keep[i]) sum += colour[i];
    memcpy(scaffold, &sum, sizeof sum);
    return BASIN_OK;
}
