/* From atoms as written to one form of each molecule, by the rules of RDKit's sanitisation:
 * explicit hydrogens become counts, nitro groups and the like get charges, hydrogens are implied by
 * valences, aromatic bonds get a Kekule structure, which must exist, and aromaticity is perceived
 * anew from it, so that Kekule and aromatic SMILES of a molecule are one. In standard form only the
 * largest part is left, neutral where protons make it so. */
#include "base/hash.h"
#include "base/try.h"
#include "tasks/graphs/set/molecule.h"

static const char a_molecule[] = "a molecule";

/* ---- elements ---- */

/* Valences; + allows more. Elements without any allow all. */
static const char *const valences[119] = {
    "",   "1",   "0", "1+", "2",   "3",  "4",  "3",   "2",   "1",    "0",   "1+", "2+", "3", "4",
    "35", "246", "1", "0",  "1+",  "2+", "",   "",    "",    "",     "",    "",   "",   "",  "",
    "",   "3",   "4", "35", "246", "1",  "0",  "1+",  "2+",  "",     "",    "",   "",   "",  "",
    "",   "",    "",  "",   "3",   "24", "35", "246", "135", "0246", "1",   "2+", "",   "",  "",
    "",   "",    "",  "",   "",    "",   "",   "",    "",    "",     "",    "",   "",   "",  "",
    "",   "",    "",  "",   "",    "",   "",   "24",  "35",  "246",  "135", "0",  "1",  "2+"};

static const char *valences_of(int number) { return valences[number] ? valences[number] : ""; }

static int first_valence(int number) { /* -1: any */
    return *valences_of(number) ? *valences_of(number) - '0' : -1;
}

static int last_valence(int number) {
    const char *list = valences_of(number);
    int last = -1;
    for (; *list; list++) last = *list == '+' ? -1 : *list - '0';
    return last;
}

/* Electrons of the outer shell. */
static int outer(int number) {
    static const uint8_t noble[] = {0, 2, 10, 18, 36, 54, 86};
    int period = 0;
    while (period < 6 && number > noble[period + 1]) period++;
    int place = number - noble[period];
    if (period == 5 && place > 17) place -= 14;
    if (period >= 3 && place > 11) place -= 10;
    return place;
}

/* What it is alike in valences: N+ as C. */
static int effective(const basin_atom *a) {
    int number = a->number - a->charge;
    return !*valences_of(a->number) ? a->number : number < 0 ? 0 : number > 118 ? 118 : number;
}

static bool is_metal(int z) {
    return z == 3 || z == 4 || (z >= 11 && z <= 13) || (z >= 19 && z <= 31) ||
           (z >= 37 && z <= 50) || (z >= 55 && z <= 84) || z >= 87;
}

static int32_t degree(const basin_molecule *m, int32_t i) { return m->start[i + 1] - m->start[i]; }

static basin_bond *bond_at(const basin_molecule *m, int32_t at) { return &m->bond[m->link[at]]; }

/* In halves; a dative bond counts for the atom that receives it. */
static int halves(const basin_bond *b, int32_t atom) {
    if (b->order == BASIN_BOND_AROMATIC) return 3;
    return b->order ? 2 * b->order : b->b == atom ? 2 : 0;
}

basin_status basin_molecule_link(basin_molecule *m, basin_error *error) {
    if (!BASIN_RESERVE(&m->start, &m->start_capacity, m->atoms + 2) ||
        !BASIN_RESERVE(&m->link, &m->link_capacity, 2 * m->bonds + 1))
        return basin_fail_memory(error, a_molecule);
    memset(m->start, 0, (size_t)(m->atoms + 2) * sizeof *m->start);
    for (int32_t i = 0; i < m->bonds; i++)
        m->start[m->bond[i].a + 2]++, m->start[m->bond[i].b + 2]++;
    for (int32_t i = 2; i < m->atoms + 2; i++) m->start[i] += m->start[i - 1];
    for (int32_t i = 0; i < m->bonds; i++) {
        m->link[m->start[m->bond[i].a + 1]++] = i;
        m->link[m->start[m->bond[i].b + 1]++] = i;
    }
    return BASIN_OK;
}

/* ---- hydrogens that are atoms ---- */

/* One that says which side of a double bond is meant, [H]/N=C, stays where nothing else does. */
static bool marks_side(const basin_molecule *m, const basin_bond *own, int32_t heavy) {
    bool twofold = false, other = false;
    for (int32_t k = m->start[heavy]; k < m->start[heavy + 1]; k++) {
        const basin_bond *b = bond_at(m, k);
        twofold |= b->order == 2;
        other |= b != own && b->order == 1;
    }
    return own->mark && twofold && !other;
}

/* In standard form also deuterium, and an alkali metal that is bound instead of hydrogen. */
static bool is_merged(const basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    if (a->charge || a->hydrogens || degree(m, i) != 1) return false;
    const basin_bond *b = bond_at(m, m->start[i]);
    int32_t heavy = basin_bond_other(b, i);
    if (a->number != 1)
        return m->standard && b->order == 1 && memchr("\3\13\23\45\67", a->number, 5) &&
               memchr("\7\10\20", m->atom[heavy].number, 3);
    return (m->standard || !a->isotope) && b->order == 1 && m->atom[heavy].number > 1 &&
           !marks_side(m, b, heavy);
}

/* Leaves out the atoms whose new number is -1. */
static basin_status renumber(basin_molecule *m, const int32_t *now, int32_t atoms,
                             basin_error *error) {
    int32_t bonds = 0;
    for (int32_t i = 0; i < m->bonds; i++) {
        basin_bond b = m->bond[i];
        if (now[b.a] < 0 || now[b.b] < 0) continue;
        b.a = now[b.a], b.b = now[b.b];
        m->bond[bonds++] = b;
    }
    for (int32_t i = 0; i < m->atoms; i++)
        if (now[i] >= 0) m->atom[now[i]] = m->atom[i];
    m->atoms = atoms, m->bonds = bonds;
    return basin_molecule_link(m, error);
}

/* The side that a hydrogen is on says on which another neighbour of its atom is. */
static void hand_mark(basin_molecule *m, const basin_bond *own, int32_t heavy) {
    for (int32_t k = m->start[heavy]; k < m->start[heavy + 1] && own->mark; k++) {
        basin_bond *b = bond_at(m, k);
        if (b == own || b->order != 1 || b->mark) continue;
        bool alike = (own->a == heavy) != (b->a == heavy);
        b->mark = alike ? own->mark : own->mark == '/' ? '\\' : '/';
        return;
    }
}

static basin_status merge_hydrogens(basin_molecule *m, basin_error *error) {
    bool any = false;
    for (int32_t i = 0; i < m->atoms && !any; i++) any = is_merged(m, i);
    if (!any) return BASIN_OK;
    BASIN_SCRATCH_RAW(int32_t, now, m->atoms, a_molecule, error);
    int32_t atoms = 0;
    for (int32_t i = 0; i < m->atoms; i++) {
        now[i] = is_merged(m, i) ? -1 : atoms++;
        m->neutralised = m->neutralised || (now[i] < 0 && m->atom[i].number > 1);
    }
    for (int32_t i = 0; i < m->bonds; i++) {
        const basin_bond *b = &m->bond[i];
        basin_atom *heavy = now[b->a] < 0 ? &m->atom[b->b] : now[b->b] < 0 ? &m->atom[b->a] : NULL;
        bool counted = heavy && (heavy->fixed || (heavy->aromatic && heavy->number != 6));
        if (counted && heavy->hydrogens < UINT8_MAX) heavy->hydrogens++;
        if (heavy) hand_mark(m, b, (int32_t)(heavy - m->atom));
    }
    return renumber(m, now, atoms, error);
}

/* ---- charges that are implied ---- */

/* The valence used by bonds and explicit hydrogens, in halves. */
static int valence_halves(const basin_molecule *m, int32_t i) {
    int sum = 2 * m->atom[i].hydrogens;
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) sum += halves(bond_at(m, k), i);
    return sum;
}

/* A double bond to a neutral oxygen or a triple one to a neutral nitrogen loses one order. */
static bool separate(basin_molecule *m, int32_t i, int32_t at) {
    basin_bond *b = bond_at(m, at);
    basin_atom *other = &m->atom[basin_bond_other(b, i)];
    if (other->charge || !((other->number == 8 && b->order == 2) ||
                           (other->number == 7 && b->order == 3 && m->atom[i].number == 7)))
        return false;
    b->order--;
    other->charge--;
    m->atom[i].charge++;
    return true;
}

/* N(=O)=O; Cl(=O)(=O)=O bound only to oxygens; C=P(=O). */
static void separate_charges(basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    int z = a->number, valence = valence_halves(m, i);
    bool halogen = z == 17 || z == 35 || z == 53, twofold = false;
    if (a->charge || (z != 7 && z != 15 && !halogen)) return;
    if (halogen && valence != 14 && valence != 10 && valence != 6) return;
    if (!halogen && valence / 2 != 5) return;
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) {
        const basin_bond *b = bond_at(m, k);
        int other = m->atom[basin_bond_other(b, i)].number;
        if (halogen && other != 8) return;
        twofold |=
            b->order == 2 && (other == 6 || other == 7) && degree(m, basin_bond_other(b, i)) > 1;
    }
    if (z == 15 && (degree(m, i) != 3 || !twofold)) return;
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++)
        if (separate(m, i, k) && !halogen) return;
}

/* ---- hydrogens that are implied ---- */

static basin_status too_many(const basin_molecule *m, int32_t i, int valence, basin_error *error) {
    return basin_fail(error, BASIN_BAD_VALUE, "atom %d, %s, has valence %d", (int)i + 1,
                      basin_element(m->atom[i].number), valence);
}

/* Bonds and given hydrogens as a whole number. An aromatic atom beyond its first valence takes the
 * highest one below. */
static int round_valence(const basin_atom *a, int twice) {
    const char *list = valences_of(effective(a));
    int taken = first_valence(effective(a));
    if (!a->aromatic || !*list || twice <= 2 * taken) return (twice + 1) / 2;
    for (; *list && *list != '+' && 2 * (*list - '0') <= twice; list++) taken = *list - '0';
    return twice - 2 * taken <= 3 ? taken : (twice + 1) / 2;
}

/* A single bond to a metal that is one too many for the other atom is dative. */
static void find_dative(basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    int max = last_valence(effective(a)), twice = valence_halves(m, i);
    if (is_metal(a->number) || !a->number || max <= 0) return;
    for (int32_t k = m->start[i]; k < m->start[i + 1] && round_valence(a, twice) > max; k++) {
        basin_bond *b = bond_at(m, k);
        int32_t metal = basin_bond_other(b, i);
        if (b->order == 1 && is_metal(m->atom[metal].number))
            b->order = BASIN_BOND_OTHER, b->a = i, b->b = metal, twice -= 2;
    }
}

static basin_status imply_hydrogens(basin_molecule *m, int32_t i, basin_error *error) {
    basin_atom *a = &m->atom[i];
    int like = effective(a), valence = round_valence(a, valence_halves(m, i));
    int max = last_valence(like), shift = 0;
    bool heavy = (like > 16 && (a->number == 15 || a->number == 16)) ||
                 (like > 34 && (a->number == 33 || a->number == 34));
    if (heavy) max = last_valence(a->number), shift = a->charge;
    if (a->number == 1 && a->charge == -1) max = 2;
    if (max >= 0 && last_valence(a->number) >= 0 && valence + shift > max)
        return too_many(m, i, valence, error);
    const char *list = valences_of(like);
    if (a->fixed || !*list) return BASIN_OK;
    if (a->aromatic && valence > first_valence(like)) /* then it must be one of them */
        return strchr(list, '0' + valence) ? BASIN_OK : too_many(m, i, valence, error);
    while (*list && *list != '+' && *list - '0' < valence) list++;
    if (!*list) return too_many(m, i, valence, error);
    int left = *list - '0' - valence - a->radicals; /* of molblocks, which state these */
    if (*list != '+' && left > 0) a->hydrogens = (uint8_t)(a->hydrogens + left);
    return BASIN_OK;
}

/* ---- the largest part ---- */

/* What is larger: with carbon, of more atoms (hydrogens among them), heavier; then by what is
 * around the atoms, which does not depend on how the molecule is written. */
typedef struct part_size {
    int64_t carbon, atoms, mass;
    uint64_t colours;
} part_size;

static bool is_larger(const part_size *a, const part_size *b) {
    if (a->carbon != b->carbon) return a->carbon > b->carbon;
    if (a->atoms != b->atoms) return a->atoms > b->atoms;
    return a->mass != b->mass ? a->mass > b->mass : a->colours > b->colours;
}

static basin_status keep_largest(basin_molecule *m, basin_error *error) {
    int32_t n = m->atoms, largest = 0, count = 0;
    BASIN_SCRATCH_RAW(int32_t, part, 2 * n, a_molecule, error); /* -1: not yet */
    BASIN_SCRATCH_RAW(uint64_t, colour, 2 * n, a_molecule, error);
    BASIN_SCRATCH(part_size, size, n, a_molecule, error);
    int32_t *list = part + n;
    for (int32_t i = 0; i < n; i++)
        part[i] = -1, colour[i] = (uint64_t)m->atom[i].number << 8 | m->atom[i].hydrogens;
    basin_molecule_refine(colour, m, NULL, false, 8);
    for (int32_t i = 0; i < n; i++) {
        if (part[i] >= 0) continue;
        int32_t end = 0;
        part[list[end++] = i] = count;
        for (int32_t at = 0; at < end; at++) {
            part_size *own = &size[count];
            own->carbon |= m->atom[list[at]].number == 6;
            own->atoms += 1 + m->atom[list[at]].hydrogens, own->mass += m->atom[list[at]].number;
            own->colours += basin_hash_pair(colour[list[at]], 0);
            for (int32_t k = m->start[list[at]]; k < m->start[list[at] + 1]; k++) {
                int32_t to = basin_bond_other(bond_at(m, k), list[at]);
                if (part[to] < 0) part[list[end++] = to] = count;
            }
        }
        if (is_larger(&size[count], &size[largest])) largest = count;
        count++;
    }
    if (count < 2) return BASIN_OK;
    m->cut = true;
    int32_t atoms = 0;
    for (int32_t i = 0; i < n; i++) list[i] = part[i] == largest ? atoms++ : -1;
    return renumber(m, list, atoms, error);
}

/* ---- charges that protons explain ---- */

/* Whether a neighbour has a charge of this sign that no hydrogen explains, as in nitro groups. */
static bool is_beside(const basin_molecule *m, int32_t i, int sign) {
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) {
        const basin_atom *a = &m->atom[basin_bond_other(bond_at(m, k), i)];
        if (a->charge * sign > 0 && (sign < 0 || !a->hydrogens)) return true;
    }
    return false;
}

static bool can_take_proton(const basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    if (a->charge >= 0 || is_beside(m, i, 1)) return false;
    return a->aromatic ||
           strchr(valences_of(a->number), '0' + valence_halves(m, i) / 2 - a->charge);
}

static void set_neutral(basin_molecule *m, int32_t i, int protons) {
    basin_atom *a = &m->atom[i];
    a->charge = (int16_t)(a->charge + protons), a->hydrogens = (uint8_t)(a->hydrogens + protons);
    a->fixed = m->neutralised = true;
    if (a->number == 7) a->turn = 0, a->chiral = false; /* an amine turns over */
}

/* Acids get their protons and ammonium gives its away; as many negative charges as there are
 * positive ones without hydrogen stay, those of the highest ranks. */
static basin_status neutralise(basin_molecule *m, basin_error *error) {
    int64_t quaternary = 0, negative = 0;
    bool any = false;
    for (int32_t i = 0; i < m->atoms; i++) any = any || m->atom[i].charge;
    if (!any) return BASIN_OK;
    BASIN_SCRATCH_RAW(uint64_t, colour, 2 * m->atoms, a_molecule, error);
    for (int32_t i = 0; i < m->atoms; i++) {
        const basin_atom *a = &m->atom[i];
        colour[i] = (uint64_t)a->number << 16 | (uint64_t)a->hydrogens << 8 | (a->charge & 255);
        if (a->charge > 0 && !a->hydrogens && !is_beside(m, i, -1)) quaternary += a->charge;
        if (can_take_proton(m, i)) negative -= a->charge;
    }
    basin_molecule_refine(colour, m, NULL, false, 16);
    while (negative > quaternary) {
        int32_t first = -1;
        for (int32_t i = 0; i < m->atoms; i++)
            if (can_take_proton(m, i) && (first < 0 || colour[i] < colour[first])) first = i;
        if (first < 0) break;
        negative += m->atom[first].charge;
        set_neutral(m, first, -m->atom[first].charge);
    }
    for (int32_t i = 0; i < m->atoms; i++) {
        const basin_atom *a = &m->atom[i];
        bool base = memchr("\7\10\17\20\42", a->number, 5) != NULL;
        if (base && a->charge > 0 && a->hydrogens >= a->charge && !is_beside(m, i, -1))
            set_neutral(m, i, -a->charge);
    }
    return BASIN_OK;
}

/* ---- Kekule structures ---- */

/* Whether an aromatic atom needs a double bond within its rings. */
static bool needs_double(const basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    int sum = a->hydrogens, sigma = a->hydrogens;
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) {
        const basin_bond *b = bond_at(m, k);
        int own = b->order == BASIN_BOND_AROMATIC ? 1 : halves(b, i) / 2;
        sum += own, sigma += own > 0;
    }
    int like = effective(a), expected = first_valence(like);
    for (const char *list = valences_of(like); *list && *list != '+' && sum > expected; list++)
        expected = *list - '0';
    if (sigma >= expected) return false;
    return expected == sum + 1 || (a->fixed && expected == sum + 2);
}

/* A perfect matching of the atoms that need a double bond, by aromatic bonds in rings, one part of
 * them after the other. */
typedef struct matching {
    const basin_molecule *m;
    int32_t *match, *trail, made; /* [atoms] partners, or of what follows; in order */
    int64_t budget;               /* of choices that may turn out wrong */
} matching;
enum { MAX_CHOICES = 100000, MAX_DEPTH = 1000, NOT_YET = -1, NOT_NEEDED = -2, LATER = -3 };

/* The k-th neighbour that an atom may still be matched with; -1: it has fewer. */
static int32_t partner(const matching *t, int32_t i, int k) {
    const basin_molecule *m = t->m;
    for (int32_t at = m->start[i]; at < m->start[i + 1]; at++) {
        const basin_bond *b = bond_at(m, at);
        int32_t to = basin_bond_other(b, i);
        if (b->order == BASIN_BOND_AROMATIC && b->ring && t->match[to] == -1 && !k--) return to;
    }
    return -1;
}

static void join(matching *t, int32_t a, int32_t b) {
    t->match[a] = b, t->match[b] = a;
    t->trail[t->made++] = a;
}

/* Takes what is forced, then tries each partner of an atom. */
static bool match_rest(matching *t, int depth) {
    int32_t made = t->made, open = -1, first;
    for (bool again = true; again;) {
        again = false, open = -1;
        for (int32_t i = 0; i < t->m->atoms; i++) {
            if (t->match[i] != -1) continue;
            first = partner(t, i, 0);
            if (first >= 0 && partner(t, i, 1) < 0) join(t, i, first), again = true;
            if (t->match[i] == -1) open = i;
            if (first >= 0) continue;
            open = -2; /* a dead end */
            again = false;
            break;
        }
    }
    for (int k = 0; open >= 0 && depth < MAX_DEPTH && t->budget-- > 0; k++) {
        if ((first = partner(t, open, k)) < 0) break;
        int32_t before = t->made;
        join(t, open, first);
        if (match_rest(t, depth + 1)) return true;
        t->match[open] = t->match[first] = -1;
        t->made = before;
    }
    if (open == -1) return true;
    while (t->made > made) {
        int32_t a = t->trail[--t->made];
        t->match[t->match[a]] = -1, t->match[a] = -1;
    }
    return false;
}

/* An atom and all that its partner depends on. */
static bool match_part(matching *t, int32_t first) {
    int32_t count = 0;
    t->match[t->trail[count++] = first] = NOT_YET;
    while (count) {
        int32_t i = t->trail[--count];
        for (int32_t at = t->m->start[i]; at < t->m->start[i + 1]; at++) {
            const basin_bond *b = bond_at(t->m, at);
            int32_t to = basin_bond_other(b, i);
            if (b->order == BASIN_BOND_AROMATIC && b->ring && t->match[to] == LATER)
                t->match[t->trail[count++] = to] = NOT_YET;
        }
    }
    t->made = 0;
    return match_rest(t, 0);
}

static basin_status kekulise(basin_molecule *m, basin_error *error) {
    size_t n = (size_t)m->atoms;
    bool aromatic = false;
    for (int32_t i = 0; i < m->atoms; i++) aromatic |= m->atom[i].aromatic;
    for (int32_t i = 0; i < m->bonds; i++) {
        basin_bond *b = &m->bond[i];
        if (b->order == BASIN_BOND_AROMATIC && !b->ring) b->order = 1;
        b->kekule = b->order == BASIN_BOND_AROMATIC ? 1 : b->order;
        aromatic |= b->order == BASIN_BOND_AROMATIC;
    }
    if (!aromatic) return BASIN_OK;
    BASIN_SCRATCH_RAW(int32_t, whole, 2 * n, a_molecule, error);
    matching t = {m, whole, whole + n, 0, MAX_CHOICES};
    for (int32_t i = 0; i < m->atoms; i++) {
        if (m->atom[i].aromatic && !m->atom[i].rings)
            return basin_fail(error, BASIN_BAD_VALUE, "atom %d, %s, is aromatic and in no ring",
                              (int)i + 1, basin_element(m->atom[i].number));
        t.match[i] = m->atom[i].aromatic && needs_double(m, i) ? LATER : NOT_NEEDED;
    }
    for (int32_t i = 0; i < m->atoms; i++)
        if (t.match[i] == LATER && !match_part(&t, i))
            return basin_fail(error, BASIN_BAD_VALUE, "aromatic atoms have no Kekule structure");
    for (int32_t i = 0; i < m->bonds; i++) {
        basin_bond *b = &m->bond[i];
        if (b->order == BASIN_BOND_AROMATIC && t.match[b->a] == b->b) b->kekule = 2;
        b->order = b->kekule;
    }
    for (int32_t i = 0; i < m->atoms; i++) m->atom[i].aromatic = false;
    return BASIN_OK;
}

/* Unpaired electrons of atoms in brackets. */
static void find_radicals(basin_molecule *m, int32_t i) {
    basin_atom *a = &m->atom[i];
    const char *list = valences_of(a->number);
    int valence = valence_halves(m, i) / 2, shell = outer(a->number);
    if (!a->fixed || !*list) return;
    int late = (a->number <= 2 ? 2 : 8) - shell - valence + a->charge;
    int early = shell - valence - a->charge;
    for (; late < 0 && list[1] && *list; list++)
        if (*list != '+' && *list - '0' - valence + a->charge >= 0)
            late = *list - '0' - valence + a->charge;
    late = late < 0 ? 0 : late;
    a->radicals = (uint8_t)(early >= 0 && early < late ? early : late);
}

/* ---- aromaticity ---- */

enum { NONE = -1, VACANT = 0, ONE = 1, TWO = 2, WILD = 3 }; /* electrons that an atom gives */
enum { MAX_FUSED = 6, MAX_RING = 24 };

/* The other end of a double or triple bond, in a ring or not; -1: none. */
static int32_t multiple(const basin_molecule *m, int32_t i, bool ring) {
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) {
        const basin_bond *b = bond_at(m, k);
        if (b->order >= 2 && b->ring == ring) return basin_bond_other(b, i);
    }
    return -1;
}

static bool attracts_more(int one, int other) {
    int a = outer(one), b = outer(other);
    return a != b ? a > b : one < other;
}

static int electrons(const basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    int normal = first_valence(a->number), sigma = a->hydrogens;
    if (normal <= 1) return -1;
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) sigma += halves(bond_at(m, k), i) > 0;
    if (sigma > 3) return -1;
    int pairs = outer(a->number) - normal - a->charge;
    int sum = normal - sigma + (pairs > 0 ? pairs : 0) - a->radicals;
    return sum > 1 && valence_halves(m, i) / 2 - sigma > 1 ? 1 : sum;
}

static int donates(const basin_molecule *m, int32_t i) {
    const basin_atom *a = &m->atom[i];
    int32_t out = multiple(m, i, false);
    bool in = multiple(m, i, true) >= 0;
    if (!a->number) return in ? ONE : WILD;
    int sum = electrons(m, i);
    bool lost = out >= 0 && attracts_more(m->atom[out].number, a->number);
    if (sum < 0) return NONE;
    if (sum == 0) return out >= 0 ? VACANT : in ? ONE : NONE;
    if (sum == 1) {
        if (out >= 0) return lost ? VACANT : ONE;
        return in ? ONE : a->charge == 1 ? VACANT : NONE;
    }
    return (sum - lost) % 2 ? ONE : TWO;
}

static bool can_be_aromatic(const basin_molecule *m, int32_t i, int gives) {
    const basin_atom *a = &m->atom[i];
    int valence = valence_halves(m, i) / 2, multiples = 0;
    if ((a->number > 18 && a->number != 34 && a->number != 52) || gives == NONE) return false;
    if (first_valence(a->number) > 0 && valence > first_valence(effective(a))) return false;
    if (a->radicals && (a->number != 6 || a->charge)) return false;
    for (int32_t k = m->start[i]; k < m->start[i + 1]; k++) multiples += bond_at(m, k)->order >= 2;
    return multiples < 2;
}

typedef struct perception {
    basin_molecule *m;
    int32_t *gives; /* [atoms] */
    int32_t *ring;  /* [count] candidates of all rings */
    int32_t count;
    int32_t *system, size;       /* of the fused system: places in `ring` */
    int32_t *times, *bond_times; /* [atoms] [bonds] zeros between uses */
    bool *done;                  /* [count] */
    bool *marked;                /* [bonds] already aromatic */
} perception;

static int32_t ring_size(const basin_molecule *m, int32_t r) {
    return m->ring_start[r + 1] - m->ring_start[r];
}

/* Whether two rings share one bond, and neither is too large to be fused. */
static bool fused(const perception *p, int32_t a, int32_t b) {
    const basin_molecule *m = p->m;
    int32_t x = p->ring[a], y = p->ring[b], shared = 0;
    if (ring_size(m, x) > MAX_RING || ring_size(m, y) > MAX_RING) return false;
    for (int32_t i = m->ring_start[x]; i < m->ring_start[x + 1]; i++)
        for (int32_t k = m->ring_start[y]; k < m->ring_start[y + 1]; k++)
            shared += m->ring_bond[i] == m->ring_bond[k];
    return shared == 1;
}

static bool connected(const perception *p, const int32_t *pick, int count) {
    unsigned seen = 1, before = 0;
    while (seen != before) {
        before = seen;
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count && !(seen >> i & 1); k++)
                if ((seen >> k & 1) && fused(p, p->system[pick[i]], p->system[pick[k]]))
                    seen |= 1U << i;
    }
    return seen == (1U << count) - 1;
}

/* Hueckel's rule over atoms in one or two of the rings. */
static bool is_aromatic(const perception *p, const int32_t *pick, int count) {
    const basin_molecule *m = p->m;
    int low = 0, high = 0, wild = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int c = 0; c < count; c++) {
            int32_t r = p->ring[p->system[pick[c]]];
            for (int32_t k = m->ring_start[r]; k < m->ring_start[r + 1]; k++) {
                int32_t atom = m->ring_atom[k];
                if (pass != 1) {
                    p->times[atom] = pass ? 0 : p->times[atom] + 1;
                } else if (p->times[atom] == 1 || p->times[atom] == 2) {
                    int gives = p->gives[atom];
                    p->times[atom] = 3; /* counted */
                    wild += gives == WILD;
                    low += gives == WILD ? 1 : gives, high += gives == WILD ? 2 : gives;
                }
            }
        }
    if (wild > 1) return false;
    for (int sum = low; sum <= high && high >= 6; sum++)
        if ((sum - 2) % 4 == 0) return true;
    return high == 2;
}

/* Atoms of the rings, and bonds of one of them alone. */
static int32_t mark(perception *p, const int32_t *pick, int count) {
    basin_molecule *m = p->m;
    int32_t marked = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int c = 0; c < count; c++) {
            int32_t r = p->ring[p->system[pick[c]]];
            for (int32_t k = m->ring_start[r]; k < m->ring_start[r + 1]; k++) {
                int32_t bond = m->ring_bond[k];
                m->atom[m->ring_atom[k]].aromatic = true;
                if (pass != 1)
                    p->bond_times[bond] = pass ? 0 : p->bond_times[bond] + 1;
                else if (p->bond_times[bond] == 1 && !p->marked[bond])
                    p->marked[bond] = true, marked++;
            }
        }
    return marked;
}

static bool next_pick(int32_t *pick, int count, int32_t size) {
    int i = count - 1;
    while (i >= 0 && pick[i] == size - count + i) i--;
    if (i < 0) return false;
    pick[i]++;
    for (int k = i + 1; k < count; k++) pick[k] = pick[k - 1] + 1;
    return true;
}

static int32_t count_bonds(const perception *p) {
    const basin_molecule *m = p->m;
    int32_t bonds = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < p->size; i++) {
            int32_t r = p->ring[p->system[i]];
            for (int32_t k = m->ring_start[r]; k < m->ring_start[r + 1]; k++) {
                bonds += !pass && !p->bond_times[m->ring_bond[k]];
                p->bond_times[m->ring_bond[k]] = !pass;
            }
        }
    return bonds;
}

/* Single rings of a fused system, then pairs, threes, .. until all bonds are aromatic. */
static void try_system(perception *p) {
    int32_t left = count_bonds(p), budget = 1 << 23, pick[MAX_FUSED];
    for (int count = 1; count <= MAX_FUSED && count <= p->size && left > 0; count++) {
        if (count > 2 && p->size > 300) return;
        for (int i = 0; i < count; i++) pick[i] = i;
        do
            if (connected(p, pick, count) && is_aromatic(p, pick, count))
                left -= mark(p, pick, count);
        while (--budget > 0 && next_pick(pick, count, p->size));
    }
}

static void perceive(perception *p) {
    for (int32_t first = 0; first < p->count; first++) {
        if (p->done[first]) continue;
        p->size = 0;
        p->done[p->system[p->size++] = first] = true;
        for (int32_t i = 0; i < p->size; i++)
            for (int32_t k = 0; k < p->count; k++)
                if (!p->done[k] && fused(p, p->system[i], k))
                    p->done[p->system[p->size++] = k] = true;
        try_system(p);
    }
}

static basin_status find_aromatic(basin_molecule *m, basin_error *error) {
    size_t n = (size_t)m->atoms, b = (size_t)m->bonds, r = (size_t)m->rings;
    if (!m->rings) return BASIN_OK;
    BASIN_SCRATCH(int32_t, whole, 2 * n + b + 2 * r, a_molecule, error);
    BASIN_SCRATCH(bool, flags, b + r, a_molecule, error);
    perception p = {.m = m, .ring = whole, .system = whole + r, .done = flags};
    p.times = p.system + r, p.bond_times = p.times + n, p.gives = p.bond_times + b;
    p.marked = flags + r;
    for (int32_t i = 0; i < m->rings; i++) {
        bool good = true, wild = true;
        for (int32_t k = m->ring_start[i]; k < m->ring_start[i + 1] && good; k++) {
            int32_t atom = m->ring_atom[k];
            int gives = donates(m, atom);
            p.gives[atom] = gives;
            good = can_be_aromatic(m, atom, gives);
            wild = wild && !m->atom[atom].number;
        }
        if (good && !wild) p.ring[p.count++] = i;
    }
    perceive(&p);
    for (int32_t i = 0; i < m->bonds; i++)
        if (p.marked[i]) m->bond[i].order = BASIN_BOND_AROMATIC;
    return BASIN_OK;
}

basin_status basin_molecule_sanitise(basin_molecule *m, basin_error *error) {
    m->cut = m->neutralised = false;
    BASIN_TRY(basin_molecule_link(m, error));
    BASIN_TRY(merge_hydrogens(m, error));
    for (int32_t i = 0; i < m->atoms; i++) separate_charges(m, i);
    for (int32_t i = 0; i < m->atoms; i++) find_dative(m, i);
    for (int32_t i = 0; i < m->atoms; i++) BASIN_TRY(imply_hydrogens(m, i, error));
    if (m->standard) BASIN_TRY(keep_largest(m, error));
    if (m->standard) BASIN_TRY(neutralise(m, error));
    BASIN_TRY(basin_molecule_find_rings(m, error));
    BASIN_TRY(kekulise(m, error));
    for (int32_t i = 0; i < m->atoms; i++) find_radicals(m, i);
    m->parts = m->atoms - m->bonds + m->rings;
    return find_aromatic(m, error);
}
