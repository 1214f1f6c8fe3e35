/* Reading SMILES: organic subset, brackets with isotope, chirality, hydrogens, charge and class,
 * bonds, branches, rings and dots, as OpenSMILES has them, and dative bonds as RDKit writes them.
 */
#include <ctype.h>

#include "base/try.h"
#include "tasks/graphs/set/molecule.h"

static const char symbols[] =
    "* H HeLiBeB C N O F NeNaMgAlSiP S ClArK CaScTiV CrMnFeCoNiCuZnGaGeAsSeBrKrRbSrY ZrNbMoTcRuRhPd"
    "AgCdInSnSbTeI XeCsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaW ReOsIrPtAuHgTlPbBiPoAtRnFrRaAcThPaU Np"
    "PuAmCmBkCfEsFmMdNoLrRfDbSgBhHsMtDsRgCnNhFlMcLvTsOg";
enum { ELEMENTS = (int)(sizeof symbols / 2) };

const char *basin_element(int number) {
    static _Thread_local char text[3];
    memcpy(text, symbols + 2 * (number > 0 && number < ELEMENTS ? number : 0), 2);
    if (text[1] == ' ') text[1] = 0;
    return text;
}

int basin_element_find(const char *symbol, int length) {
    for (int i = 0; i < ELEMENTS && (length == 1 || length == 2); i++)
        if (symbols[2 * i] == symbol[0] && symbols[2 * i + 1] == (length == 2 ? symbol[1] : ' '))
            return i;
    return -1;
}

static const char a_molecule[] = "a molecule";
enum { MAX_ATOMS = 1 << 16 }; /* and bonds: some searches take their square */

basin_status basin_molecule_add_atom(basin_molecule *m, basin_atom atom, basin_error *error) {
    if (m->atoms >= MAX_ATOMS)
        return basin_fail(error, BASIN_BAD_VALUE, "more than %d atoms", MAX_ATOMS);
    BASIN_TRY(BASIN_GROW(&m->atom, &m->atom_capacity, m->atoms + 1, a_molecule, error));
    m->atom[m->atoms++] = atom;
    return BASIN_OK;
}

basin_status basin_molecule_add_bond(basin_molecule *m, basin_bond bond, basin_error *error) {
    if (m->bonds >= MAX_ATOMS)
        return basin_fail(error, BASIN_BAD_VALUE, "more than %d bonds", MAX_ATOMS);
    BASIN_TRY(BASIN_GROW(&m->bond, &m->bond_capacity, m->bonds + 1, a_molecule, error));
    m->bond[m->bonds++] = bond;
    return BASIN_OK;
}

void basin_molecule_free(basin_molecule *m) {
    BASIN_FREE(m->atom, m->bond, m->start, m->link, m->ring_start, m->ring_bond, m->ring_atom);
    *m = (basin_molecule){0};
}

enum { RING_NUMBERS = 1000 };

typedef struct open_ring {
    int32_t atom; /* 1 + it; 0: the number is free */
    int32_t place;
    char bond;
} open_ring;

typedef struct reader {
    basin_molecule *m;
    const char *text, *at;
    int32_t last;   /* the atom that the next one is bound to; -1: none */
    char bond;      /* written after it; 0: none */
    int32_t *stack; /* [depth] where branches began */
    size_t depth, capacity;
    open_ring ring[RING_NUMBERS];
    int open;
    basin_error *error;
} reader;

static basin_status wrong(reader *r, const char *what) {
    return basin_fail(r->error, BASIN_BAD_VALUE, "character %d: %s", (int)(r->at - r->text) + 1,
                      what);
}

/* The bond of a symbol between two atoms; 0 where none was written. Dative ones are > and <. */
static basin_bond bond_of(const basin_molecule *m, char symbol, int32_t a, int32_t b) {
    bool aromatic = m->atom[a].aromatic && m->atom[b].aromatic;
    basin_bond bond = {.a = a, .b = b};
    if (symbol == '<') bond.a = b, bond.b = a;
    if (symbol == '/' || symbol == '\\') bond.mark = symbol;
    bond.order = symbol == '=' ? 2 : symbol == '#' ? 3 : symbol == ':' ? BASIN_BOND_AROMATIC : 1;
    if (!symbol && aromatic) bond.order = BASIN_BOND_AROMATIC;
    if (symbol == '>' || symbol == '<' || symbol == '~' || symbol == '$') bond.order = 0;
    return bond;
}

static int32_t place_of(const reader *r) { return (int32_t)(r->at - r->text) + 1; }

/* `place` is where a names it; b is the last atom, and names it here, or before itself. */
static basin_status add_bond(reader *r, int32_t a, int32_t b, char symbol, int32_t place,
                             bool before) {
    basin_bond bond = bond_of(r->m, symbol, a, b);
    bond.place[bond.a != a] = place, bond.place[bond.a == a] = before ? -1 : place_of(r);
    return basin_molecule_add_bond(r->m, bond, r->error);
}

static basin_status bind(reader *r, int32_t a, int32_t b, char symbol, int32_t place) {
    for (int32_t i = 0; i < r->m->bonds; i++)
        if ((r->m->bond[i].a == a && r->m->bond[i].b == b) ||
            (r->m->bond[i].a == b && r->m->bond[i].b == a))
            return wrong(r, "two bonds between the same atoms");
    return add_bond(r, a, b, symbol, place, false);
}

static basin_status put_atom(reader *r, basin_atom atom) {
    BASIN_TRY(basin_molecule_add_atom(r->m, atom, r->error));
    int32_t own = r->m->atoms - 1;
    if (r->last < 0 && r->bond) return wrong(r, "a bond without an atom before it");
    if (r->last >= 0) /* a new atom has no bond yet, so that none is there twice */
        BASIN_TRY(add_bond(r, r->last, own, r->bond, place_of(r), true));
    r->last = own;
    r->bond = 0;
    return BASIN_OK;
}

static int read_number(reader *r, int digits) {
    int number = 0;
    for (; digits-- && isdigit((unsigned char)*r->at); r->at++) number = 10 * number + *r->at - '0';
    return number;
}

/* + ++ +2 - -- -2 */
static int read_charge(reader *r) {
    int sign = *r->at == '+' ? 1 : -1, count = 1;
    char own = *r->at++;
    if (isdigit((unsigned char)*r->at)) return sign * read_number(r, 2);
    for (; *r->at == own && count < 15; r->at++) count++;
    return sign * count;
}

/* @ @@ @TH1 @AL2 @SP3 @TB10 @OH22; the turn of the first three, else 0. */
static uint8_t read_chirality(reader *r) {
    size_t count = strspn(r->at, "@");
    bool tetrahedral = !strncmp(r->at, "@TH", 3);
    r->at += count;
    if (!isupper((unsigned char)r->at[0]) || !isupper((unsigned char)r->at[1]))
        return count < 3 ? (uint8_t)count : 0;
    r->at += 2;
    int number = read_number(r, 2);
    return tetrahedral && number < 3 ? (uint8_t)number : 0;
}

static basin_status read_symbol(reader *r, basin_atom *atom) {
    const char *at = r->at;
    char name[2] = {(char)toupper((unsigned char)at[0]), *at ? at[1] : 0};
    int length = islower((unsigned char)name[1]) ? 2 : 1, number;
    atom->aromatic = islower((unsigned char)at[0]) != 0;
    if (*at == '#') {
        number = isdigit((unsigned char)*++r->at) ? read_number(r, 3) : -1;
        length = 0;
    } else {
        number = basin_element_find(name, length);
        if (number < 0 && length == 2) number = basin_element_find(name, length = 1);
    }
    if (number < 0 || number >= ELEMENTS) return wrong(r, "no such element");
    if (atom->aromatic && !strchr("\05\06\07\010\016\017\020\041\042\064", number))
        return wrong(r, "this element cannot be aromatic");
    atom->number = (uint8_t)number;
    r->at += length;
    return BASIN_OK;
}

static basin_status read_bracket(reader *r) {
    basin_atom atom = {.fixed = true};
    r->at++;
    atom.isotope = (uint16_t)read_number(r, 4);
    BASIN_TRY(read_symbol(r, &atom));
    atom.chiral = *r->at == '@';
    if (atom.chiral) atom.turn = read_chirality(r);
    if (*r->at == 'H') {
        r->at++;
        atom.hydrogens = isdigit((unsigned char)*r->at) ? (uint8_t)read_number(r, 2) : 1;
    }
    if (*r->at == '+' || *r->at == '-') atom.charge = (int16_t)read_charge(r);
    if (*r->at == ':') {
        r->at++;
        if (!isdigit((unsigned char)*r->at)) return wrong(r, "a class without a number");
        while (isdigit((unsigned char)*r->at)) r->at++;
    }
    if (*r->at != ']') return wrong(r, "the bracket is not closed here, or not a SMILES atom");
    r->at++;
    return put_atom(r, atom);
}

static basin_status read_organic(reader *r) {
    static const char plain[] = "BCNOPSFI*bcnops";
    char c = *r->at, big = (char)toupper((unsigned char)c);
    bool two = (c == 'C' && r->at[1] == 'l') || (c == 'B' && r->at[1] == 'r');
    if (!two && !strchr(plain, c)) return wrong(r, "not a SMILES character");
    basin_atom atom = {.aromatic = islower((unsigned char)c) != 0};
    const char name[2] = {big, two ? r->at[1] : ' '};
    atom.number = (uint8_t)basin_element_find(name, two ? 2 : 1);
    r->at += two ? 2 : 1;
    return put_atom(r, atom);
}

/* Opens a ring bond, or closes it. */
static basin_status read_ring(reader *r) {
    int number;
    if (r->last < 0) return wrong(r, "a ring bond without an atom");
    if (*r->at != '%')
        number = read_number(r, 1);
    else if (r->at[1] == '(' && isdigit((unsigned char)r->at[2])) {
        r->at += 2;
        number = read_number(r, 3);
        if (*r->at != ')') return wrong(r, "a ring number that does not end");
        r->at++;
    } else if (isdigit((unsigned char)r->at[1]) && isdigit((unsigned char)r->at[2])) {
        r->at++;
        number = read_number(r, 2);
    } else
        return wrong(r, "% without two digits");
    open_ring *ring = &r->ring[number];
    char symbol = r->bond;
    r->bond = 0;
    if (!ring->atom) {
        *ring = (open_ring){r->last + 1, place_of(r), symbol};
        r->open++;
        return BASIN_OK;
    }
    int32_t other = ring->atom - 1;
    bool marks = strchr("/\\", symbol) && strchr("/\\", ring->bond);
    if (other == r->last) return wrong(r, "a ring bond of an atom to itself");
    if (symbol && ring->bond && symbol != ring->bond && !marks)
        return wrong(r, "a ring bond that is written in two ways");
    ring->atom = 0;
    r->open--;
    if (symbol == '/' || symbol == '\\') symbol = symbol == '/' ? '\\' : '/'; /* from b to a */
    return bind(r, other, r->last, ring->bond ? ring->bond : symbol, ring->place);
}

static basin_status read_branch(reader *r) {
    if (*r->at == '(') {
        if (r->last < 0 || r->bond || r->at[-1] == '(') return wrong(r, "a branch without an atom");
        BASIN_TRY(BASIN_GROW(&r->stack, &r->capacity, r->depth + 1, a_molecule, r->error));
        r->stack[r->depth++] = r->last;
    } else {
        if (!r->depth) return wrong(r, "a branch ends that did not begin");
        if (r->bond || r->at[-1] == '(') return wrong(r, "a bond or a branch without an atom");
        r->last = r->stack[--r->depth];
    }
    r->at++;
    return BASIN_OK;
}

static basin_status read_bond(reader *r) {
    if (r->bond) return wrong(r, "two bonds in a row");
    bool to = r->at[0] == '-' && r->at[1] == '>', from = r->at[0] == '<' && r->at[1] == '-';
    if (*r->at == '<' && !from) return wrong(r, "not a SMILES character");
    r->bond = to ? '>' : *r->at;
    bool twice = r->at[0] == '\\' && r->at[1] == '\\'; /* as some files escape it */
    r->at += to || from || twice ? 2 : 1;
    return BASIN_OK;
}

static basin_status read_next(reader *r) {
    char c = *r->at;
    if (c == '[') return read_bracket(r);
    if (c == '(' || c == ')') return read_branch(r);
    if (isdigit((unsigned char)c) || c == '%') return read_ring(r);
    if (strchr("-=#$:/\\~<", c)) return read_bond(r);
    if (c != '.') return read_organic(r);
    if (r->bond || r->last < 0 || r->depth) return wrong(r, "a dot in a wrong place");
    r->last = -1;
    r->at++;
    return BASIN_OK;
}

static basin_status read_all(reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
    while (*r->at && !isspace((unsigned char)*r->at)) BASIN_TRY(read_next(r));
    if (r->depth) return wrong(r, "a branch does not end");
    if (r->bond) return wrong(r, "the last bond has no atom");
    for (int i = 0; r->open && i < RING_NUMBERS; i++)
        if (r->ring[i].atom)
            return basin_fail(r->error, BASIN_BAD_VALUE, "ring %d is not closed", i);
    if (r->last < 0 && r->m->atoms) return wrong(r, "nothing follows the dot");
    return r->m->atoms ? BASIN_OK : wrong(r, "no atoms");
}

basin_status basin_molecule_read(basin_molecule *m, const char *smiles, basin_error *error) {
    reader r = {.m = m, .text = smiles, .at = smiles, .last = -1, .error = error};
    m->atoms = m->bonds = m->rings = m->dimensions = 0;
    basin_status status = read_all(&r);
    free(r.stack);
    BASIN_TRY(status);
    basin_molecule_order_turns(m);
    return basin_molecule_sanitise(m, error);
}
