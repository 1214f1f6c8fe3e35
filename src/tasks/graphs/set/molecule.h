/* Molecules: atoms and bonds read from SMILES, brought to one form as RDKit's
 * sanitisation does (explicit hydrogens merged, nitro groups charged, rings, aromaticity). */
#ifndef BASIN_DATA_GRAPHSET_MOLECULE_H
#define BASIN_DATA_GRAPHSET_MOLECULE_H

#include "basin/tasks/graphset.h"

typedef struct basin_atom {
    uint8_t number; /* atomic number; 0: a wildcard */
    int16_t charge;
    uint8_t hydrogens; /* bound to it and not listed as atoms */
    bool chiral;       /* as written */
    uint8_t turn;      /* 1: @, 2: @@; see stereo.c */
    uint16_t isotope;  /* 0: not given */
    bool aromatic;
    bool fixed;       /* it was written in brackets: no hydrogens are implied */
    uint8_t radicals; /* unpaired electrons */
    uint8_t rings;    /* of the smallest set of rings, those that it is in */
    float at[3];      /* of a molblock: where it is drawn */
} basin_atom;

enum {
    BASIN_ATOM_LABELS = 4,
    BASIN_BOND_OTHER = 0,
    BASIN_BOND_AROMATIC = 4,
    BASIN_BOND_OPPOSITE, /* double, its neighbours of highest rank on opposite sides, or on one */
    BASIN_BOND_SAME
};
typedef struct basin_bond {
    int32_t a, b;
    uint8_t order;  /* 1, 2, 3; 4 where it is aromatic; 0 for another: dative from a to b, any */
    uint8_t kekule; /* 1, 2, 3 also where it is aromatic */
    bool ring;
    char mark;        /* as written from a to b: / or \, else 0 */
    uint8_t stereo;   /* BASIN_BOND_OPPOSITE, BASIN_BOND_SAME; 0: none is known */
    int32_t place[2]; /* where a and b name it in the text; -1: before the atom itself */
    uint8_t wedge; /* of a molblock, from a: 1 up, 6 down, 4 either; 3: a double bond of either */
} basin_bond;

typedef struct basin_molecule {
    int32_t atoms, bonds, rings, parts;
    bool standard;         /* set by the caller: it is brought to standard form (sanitise.c), */
    bool cut, neutralised; /* by leaving out parts, by protons */
    int dimensions;        /* of the points of its atoms; 0: these have none */
    basin_atom *atom;      /* [atoms] */
    basin_bond *bond;      /* [bonds] */
    int32_t *start;        /* [atoms + 1] of each atom's in link */
    int32_t *link;         /* [2 bonds] numbers of bonds */
    int32_t *ring_start;   /* [rings + 1] of each ring's in ring_bond and ring_atom */
    int32_t *ring_bond, *ring_atom;
    size_t atom_capacity, bond_capacity, start_capacity, link_capacity, ring_capacity;
    size_t ring_bond_capacity, ring_atom_capacity;
} basin_molecule;

/* Overwrites the molecule. BASIN_BAD_VALUE where the text is not a molecule; the error says why. A
 * name may follow after a blank and is ignored. */
basin_status basin_molecule_read(basin_molecule *molecule, const char *smiles, basin_error *error);
void basin_molecule_free(basin_molecule *molecule);

static inline int32_t basin_bond_other(const basin_bond *bond, int32_t atom) {
    return bond->a == atom ? bond->b : bond->a;
}
const char *basin_element(int number); /* "C"; "*" of a wildcard */

/* A number of its Murcko scaffold, rings and what links them without side chains, as RDKit has it:
 * equal for equal ones. 0: it has no rings. */
basin_status basin_molecule_scaffold(int64_t *scaffold, const basin_molecule *m,
                                     basin_error *error);

/* Colours [2 atoms, the second half for work], refined by those of neighbours; `keep` (or NULL):
 * only these atoms; with `rings` bonds of rings differ from others. */
void basin_molecule_refine(uint64_t *colour, const basin_molecule *m, const char *keep, bool rings,
                           int rounds);
/* Turns of atoms and sides of double bonds, the same however it is written. */
basin_status basin_molecule_find_stereo(basin_molecule *m, basin_error *error);
/* The same of a molblock, as basin_sdf_table puts it into a cell. */
basin_status basin_molecule_read_block(basin_molecule *m, const char *text, basin_error *error);
bool basin_molecule_is_block(const char *text);
/* Whether a name is that of such a file, or of any table of molecules. */
bool basin_molecules_are_blocks(const char *path);
bool basin_molecules_are_there(const char *path, const basin_graphset_options *options);
/* A table of molecules; `path` NULL: the SMILES of the options. */
basin_status basin_molecules_read(basin_graphset *set, const char *path,
                                  const basin_graphset_options *options, basin_error *error);
/* A file of molblocks (SDF, also packed) as CSV with columns molblock, title, properties. */
basin_status basin_sdf_table(char **table, size_t *size, const char *path, basin_error *error);
/* Lines of SMILES and a name without a header (.smi) as CSV with columns smiles, id; *table stays
 * NULL where the file is a table with a header. */
basin_status basin_smi_table(char **table, size_t *size, const char *path, basin_error *error);

/* ---- its parts, for the readers ---- */

/* From turns as written to turns by the numbers of neighbours. */
void basin_molecule_order_turns(basin_molecule *m);

basin_status basin_molecule_add_atom(basin_molecule *m, basin_atom atom, basin_error *error);
basin_status basin_molecule_add_bond(basin_molecule *m, basin_bond bond, basin_error *error);
int basin_element_find(const char *symbol, int length); /* -1: none */
/* Derives from the atoms as written: hydrogens, charges, valences, rings, Kekule structure,
 * aromaticity. */
basin_status basin_molecule_sanitise(basin_molecule *m, basin_error *error);
/* Sets start and link. */
basin_status basin_molecule_link(basin_molecule *m, basin_error *error);
/* The smallest set of smallest rings, and which bonds are in a ring. */
basin_status basin_molecule_find_rings(basin_molecule *m, basin_error *error);

#endif
