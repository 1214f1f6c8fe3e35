/* Files of molecules with atoms and bonds (SDF; molblocks of versions V2000 and V3000) as a table
 * in memory: a cell with the molblock, one with the title, one per property. See molecule.h. */
#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "base/dictionary.h"
#include "base/file.h"
#include "base/try.h"
#include "tasks/common/packed.h"
#include "tasks/graphs/set/molecule.h"

static const char start[] = "molblock";
enum { LINE = '\v', FIELD = 16, MAX_PROPERTIES = 1024 };

static int read_integer(const char *text) { return (int)strtol(text, NULL, 10); }

/* Columns from .. from + width - 1 of a line as a whole number; 0 where they are blank. */
static int number_at(const char *line, size_t from, size_t width) {
    char text[FIELD] = "";
    size_t length = strcspn(line, "\v");
    if (length > from) memcpy(text, line + from, length - from < width ? length - from : width);
    return read_integer(text);
}

/* The same of ten columns as a number. */
static double real_at(const char *line, size_t from) {
    char text[FIELD] = "";
    size_t length = strcspn(line, "\v");
    if (length > from) memcpy(text, line + from, length - from < 10 ? length - from : 10);
    return strtod(text, NULL);
}

static const char *next_line(const char *at, const char *end) {
    at += strcspn(at, end);
    return at + (*at != 0);
}

/* An element, also as CL, D and T of hydrogen. Names of any atom and lists [N,O] are wildcards. */
static basin_status atom_of(basin_atom *atom, const char *text, int32_t place, basin_error *error) {
    static const char any[] = " A AH Q QH X XH M MH L LP R Pol Mod ";
    int length = (int)strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    char symbol[2] = {text[0], (char)tolower((unsigned char)text[length > 1])}, name[8];
    bool heavy = length == 1 && (*text == 'D' || *text == 'T');
    int number = heavy ? 1 : basin_element_find(symbol, length);
    snprintf(name, sizeof name, " %.*s ", length < 6 ? length : 5, text);
    bool wild = strstr(any, name) || *text == '*' || text[length] == '[';
    if (number < 0 && !wild)
        return basin_fail(error, BASIN_BAD_VALUE, "atom %d: no such element '%.*s'", place, length,
                          text);
    *atom = (basin_atom){.number = (uint8_t)(number > 0 ? number : 0)};
    if (heavy) atom->isotope = *text == 'D' ? 2 : 3;
    return BASIN_OK;
}

static basin_status add_bond(basin_molecule *m, int order, int a, int b, int wedge,
                             basin_error *error) {
    if (a < 1 || b < 1 || a > m->atoms || b > m->atoms || a == b)
        return basin_fail(error, BASIN_BAD_VALUE, "a bond joins atoms %d and %d of %d", a, b,
                          m->atoms);
    if (order == BASIN_BOND_AROMATIC) m->atom[a - 1].aromatic = m->atom[b - 1].aromatic = true;
    basin_bond bond = {.a = a - 1,
                       .b = b - 1,
                       .order = (uint8_t)(order >= 1 && order <= 4 ? order : BASIN_BOND_OTHER),
                       .place = {b, a},
                       .wedge = (uint8_t)wedge};
    return basin_molecule_add_bond(m, bond, error);
}

/* "M  CHG  2   1   1   4  -1": charges, isotopes; the first list of charges replaces those of
 * atoms. */
static void take_list(basin_molecule *m, const char *line, bool *charged) {
    bool charge = !strncmp(line, "M  CHG", 6), radical = !strncmp(line, "M  RAD", 6);
    if (!charge && !radical && strncmp(line, "M  ISO", 6) != 0) return;
    for (int i = 0; i < m->atoms && charge && !*charged; i++) m->atom[i].charge = 0;
    *charged = *charged || charge;
    for (int i = 0; i < number_at(line, 6, 3); i++) {
        int atom = number_at(line, 9 + 8 * (size_t)i, 4),
            value = number_at(line, 13 + 8 * (size_t)i, 4);
        if (atom < 1 || atom > m->atoms) continue;
        if (charge)
            m->atom[atom - 1].charge = (int16_t)value;
        else if (radical)
            m->atom[atom - 1].radicals = value == 2 ? 1 : 2;
        else
            m->atom[atom - 1].isotope = (uint16_t)value;
    }
}

/* A valence that is stated (none is `zero`) leaves nothing to imply. */
static void take_valence(basin_molecule *m, int32_t atom, int valence, int zero) {
    if (!valence) return;
    int sum = 0;
    for (int32_t b = 0; b < m->bonds; b++)
        if (m->bond[b].a == atom || m->bond[b].b == atom)
            sum += m->bond[b].order == BASIN_BOND_AROMATIC ? 1 : m->bond[b].order;
    int left = (valence == zero ? 0 : valence) - sum;
    m->atom[atom].fixed = true, m->atom[atom].hydrogens = (uint8_t)(left > 0 ? left : 0);
}

/* An atom's point, and the parity that the block states where it has no points. */
static void put_point(basin_molecule *m, basin_atom *atom, const double at[3], int parity) {
    int dimensions = at[2] != 0 ? 3 : at[0] != 0 || at[1] != 0 ? 2 : 0;
    m->dimensions = dimensions > m->dimensions ? dimensions : m->dimensions;
    for (int c = 0; c < 3; c++) atom->at[c] = isfinite(at[c]) ? (float)at[c] : 0;
    atom->turn = (uint8_t)(parity == 1 || parity == 2 ? parity : 0);
}

enum { NEIGHBOURS = 4 };

/* Which way the neighbours of an atom turn in the order of their numbers, an implicit hydrogen
 * before them: 1 or 2 as @ or @@; 0: that is not drawn. In the plane a wedge is up or down. */
static uint8_t turn_at(const basin_molecule *m, int32_t own) {
    double v[NEIGHBOURS][3] = {{0}}, edge[3][3];
    int32_t key[NEIGHBOURS] = {0};
    int count = m->start[own + 1] - m->start[own], from = NEIGHBOURS - count, parity = 0;
    bool drawn = m->dimensions == 3;
    if (from < 0 || from > 1) return 0;
    for (int i = from; i < NEIGHBOURS; i++) {
        const basin_bond *b = &m->bond[m->link[m->start[own] + i - from]];
        int32_t other = basin_bond_other(b, own);
        double length = 0, arm[3];
        int at = i, wedge = b->a == own && m->dimensions == 2 ? b->wedge : 0;
        if (wedge == 4 || (m->atom[own].number == 6 && b->order != 1)) return 0;
        for (int c = 0; c < 3; c++) {
            arm[c] = (double)m->atom[other].at[c] - (double)m->atom[own].at[c];
            length += arm[c] * arm[c];
        }
        for (; at > from && key[at - 1] > other; at--) {
            key[at] = key[at - 1];
            memcpy(v[at], v[at - 1], sizeof *v);
        }
        key[at] = other;
        for (int c = 0; c < 3; c++) v[at][c] = length > 0 ? arm[c] / sqrt(length) : 0;
        if (wedge) v[at][2] = wedge == 1 ? 1 : -1;
        drawn = drawn || wedge;
    }
    parity = m->atom[own].turn;
    if (!m->dimensions) return (uint8_t)(parity && !from ? 3 - parity : parity);
    for (int c = 0; c < 3 && from; c++) v[0][c] = -v[1][c] - v[2][c] - v[3][c];
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 3; c++) edge[i][c] = v[i + 1][c] - v[0][c];
    double volume = edge[0][0] * (edge[1][1] * edge[2][2] - edge[1][2] * edge[2][1]) -
                    edge[0][1] * (edge[1][0] * edge[2][2] - edge[1][2] * edge[2][0]) +
                    edge[0][2] * (edge[1][0] * edge[2][1] - edge[1][1] * edge[2][0]);
    return !drawn || fabs(volume) < (m->dimensions == 3 ? 0.2 : 0.01) ? 0 : volume < 0 ? 1 : 2;
}

static basin_status read_v2000(basin_molecule *m, const char *at, basin_error *error) {
    static const int charge[] = {0, 3, 2, 1, 0, -1, -2, -3};
    int atoms = number_at(at, 0, 3), bonds = number_at(at, 3, 3);
    bool charged = false;
    const char *first = next_line(at, "\v");
    for (at = first; atoms-- > 0; at = next_line(at, "\v")) {
        if (strcspn(at, "\v") < 32)
            return basin_fail(error, BASIN_BAD_VALUE, "atom %d is cut off", m->atoms + 1);
        basin_atom atom;
        BASIN_TRY(atom_of(&atom, at + 31 + (at[31] == ' '), m->atoms + 1, error));
        int code = number_at(at, 36, 3);
        const double point[3] = {real_at(at, 0), real_at(at, 10), real_at(at, 20)};
        put_point(m, &atom, point, number_at(at, 39, 3));
        atom.charge = (int16_t)(code > 0 && code < 8 ? charge[code] : 0);
        BASIN_TRY(basin_molecule_add_atom(m, atom, error));
    }
    for (; bonds-- > 0; at = next_line(at, "\v"))
        BASIN_TRY(add_bond(m, number_at(at, 6, 3), number_at(at, 0, 3), number_at(at, 3, 3),
                           number_at(at, 9, 3), error));
    for (int32_t i = 0; i < m->atoms; i++, first = next_line(first, "\v"))
        take_valence(m, i, number_at(first, 48, 3), 15);
    for (; *at && strncmp(at, "M  END", 6) != 0; at = next_line(at, "\v"))
        take_list(m, at, &charged);
    return BASIN_OK;
}

/* The number after a name such as " CHG="; 0 where the name is absent. */
static int named(const char *line, const char *name) {
    const char *at = strstr(line, name);
    return at ? read_integer(at + strlen(name)) : 0;
}

static basin_status add_v30(basin_molecule *m, const char *line, bool bond, basin_error *error) {
    int number[4] = {0}, count = 0;
    char *end = (char *)line;
    for (const char *from = line; count < 4; from = end) {
        number[count] = (int)strtol(from, &end, 10);
        if (end == from) break;
        count++;
    }
    static const int wedge[2][4] = {{0, 1, 4, 6}, {0, 0, 3, 0}};
    int shape = named(line, " CFG=") & 3;
    if (bond)
        return add_bond(m, number[1], number[2], number[3], wedge[number[1] == 2][shape], error);
    end += strspn(end, " ");
    basin_atom atom;
    BASIN_TRY(atom_of(&atom, end, m->atoms + 1, error));
    double point[3] = {0};
    end += strcspn(end, " ");
    for (int c = 0; c < 3; c++) point[c] = strtod(end, &end);
    put_point(m, &atom, point, shape);
    atom.charge = (int16_t)named(line, " CHG=");
    if (named(line, " MASS=")) atom.isotope = (uint16_t)named(line, " MASS=");
    if (named(line, " RAD=")) atom.radicals = named(line, " RAD=") == 2 ? 1 : 2;
    return basin_molecule_add_atom(m, atom, error);
}

/* "M  V30 1 C 0.5 1.2 0 0 CHG=1", "M  V30 1 2 1 3" between BEGIN and END of ATOM and BOND; once
 * more for the valences that atoms state, when bonds are known. */
static basin_status read_v3000(basin_molecule *m, const char *text, basin_error *error) {
    for (int pass = 0; pass < 2; pass++) {
        int32_t part = 0, atom = 0;
        for (const char *at = text; *at && strncmp(at, "M  END", 6) != 0;
             at = next_line(at, "\v")) {
            char line[256];
            if (strncmp(at, "M  V30 ", 7) != 0) continue;
            snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 7, "\v"), at + 7);
            if (!strncmp(line, "BEGIN ", 6) || !strncmp(line, "END ", 4))
                part = *line != 'B' ? 0 : line[6] == 'A' ? 1 : line[6] == 'B' ? 2 : 0;
            else if (part && !pass)
                BASIN_TRY(add_v30(m, line, part == 2, error));
            else if (part == 1)
                take_valence(m, atom++, named(line, " VAL="), -1);
        }
    }
    return BASIN_OK;
}

bool basin_molecule_is_block(const char *text) { return !strncmp(text, start, sizeof start - 1); }

basin_status basin_molecule_read_block(basin_molecule *m, const char *text, basin_error *error) {
    const char *at = next_line(text, "\v");
    m->atoms = m->bonds = m->rings = m->dimensions = 0;
    bool newer = memchr(at, 'V', strcspn(at, "\v")) && strstr(at, "V3000");
    BASIN_TRY(newer ? read_v3000(m, at, error) : read_v2000(m, at, error));
    if (!m->atoms) return basin_fail(error, BASIN_BAD_VALUE, "no atoms");
    BASIN_TRY(basin_molecule_link(m, error));
    for (int32_t i = 0; i < m->atoms; i++) m->atom[i].turn = turn_at(m, i);
    basin_molecule_order_turns(m);
    return basin_molecule_sanitise(m, error);
}

static basin_status load(char **text, const char *path, basin_error *error) {
    basin_packed *packed;
    size_t used = 0, capacity = 0, got = 1;
    BASIN_TRY(basin_packed_open(&packed, path, error));
    basin_status status = BASIN_OK;
    while (!status && got) {
        if (!BASIN_RESERVE(text, &capacity, (int64_t)used + (1 << 16) + 1))
            status = basin_fail_memory(error, path);
        if (!status) status = basin_packed_read(&got, *text + used, 1 << 16, packed, error);
        if (!status) used += got, (*text)[used] = 0;
    }
    basin_packed_close(packed);
    return status;
}

static void put_quoted(FILE *file, const char *text, size_t length) {
    if (!memchr(text, '"', length)) {
        fwrite(text, 1, length, file);
        return;
    }
    for (size_t i = 0; i < length; i++) fprintf(file, text[i] == '"' ? "\"\"" : "%c", text[i]);
}

/* Writes lines up to a property or the end of the record, of a value up to a blank one; quotes are
 * doubled, ends of lines become `between`. */
static const char *put_cell(FILE *file, const char *at, bool value, int64_t max, char between) {
    const char *first = at;
    for (; *at && max-- && strncmp(at, "$$$$", 4) != 0 && (value || *at != '>');) {
        size_t length = strcspn(at, "\r\n");
        if (value && !length) break;
        if (file && at != first) fputc(between, file);
        if (file) put_quoted(file, at, length);
        at += length, at += *at == '\r', at += *at == '\n';
    }
    return at;
}

/* The property that a line "> 25 <NAME>" begins; NULL: none. */
static const char *property(char name[200], const char *at) {
    size_t length = strcspn(at, "\r\n");
    const char *from = *at == '>' ? memchr(at, '<', length) : NULL;
    if (from) snprintf(name, 200, "%.*s", (int)strcspn(from + 1, ">\r\n"), from + 1);
    return from;
}

/* One record as a line of the table; returns where the next begins. Without a file the names of
 * its properties are added. */
static const char *put_record(FILE *file, const char *at, basin_dictionary *names,
                              basin_status *status, basin_error *error) {
    int64_t columns = names->names.count;
    char name[200];
    const char *value[MAX_PROPERTIES] = {0}, *title = at;
    int32_t number;
    for (int i = 0; i < 3 && strncmp(at, "$$$$", 4) != 0; i++) at = next_line(at, "\n");
    if (file) fprintf(file, "\"%s%c", start, LINE);
    at = put_cell(file, at, false, -1, LINE);
    for (; *at && strncmp(at, "$$$$", 4) != 0; at = next_line(at, "\n")) {
        if (!property(name, at)) continue;
        if (!file) *status = *status ? *status : basin_dictionary_add(names, &number, name, error);
        number = basin_dictionary_find(names, name);
        if (number >= 0 && number < MAX_PROPERTIES) value[number] = next_line(at, "\n");
    }
    if (file) fprintf(file, "\",\"");
    if (file) put_cell(file, title, true, 1, ' ');
    for (int64_t c = 0; c < columns && file; c++) {
        fputs("\",\"", file);
        if (value[c]) put_cell(file, value[c], true, -1, ' ');
    }
    if (file) fputs("\"\n", file);
    return *at ? next_line(at, "\n") : at;
}

basin_status basin_sdf_table(char **table, size_t *size, const char *path, basin_error *error) {
    BASIN_FREE_AT_EXIT char *text = NULL;
    BASIN_AT_EXIT(basin_dictionary_free) basin_dictionary names = {0};
    basin_status status = BASIN_OK;
    BASIN_TRY(load(&text, path, error));
    const char *last = text;
    for (const char *at = text; at[strspn(at, " \r\n")];)
        at = put_record(NULL, last = at, &names, &status, error);
    BASIN_TRY(status);
    const char *end = strstr(last, "M  END");
    if (!end || (strstr(end, "\n>") && !strstr(end, "$$$$")))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: ends within a molecule, without '%s'; the file is cut", path,
                          end ? "$$$$" : "M  END");
    if (names.names.count > MAX_PROPERTIES)
        return basin_fail(error, BASIN_BAD_FILE, "%s: more than %d properties", path,
                          MAX_PROPERTIES);
    FILE *file = open_memstream(table, size);
    if (!file) return basin_fail_memory(error, path);
    fputs("molblock,title", file);
    for (int64_t c = 0; c < names.names.count; c++) {
        fputs(",\"", file);
        put_cell(file, names.names.text + names.names.at[c], true, 1, ' ');
        fputs("\"", file);
    }
    fputs("\n", file);
    for (const char *at = text; at[strspn(at, " \r\n")];)
        at = put_record(file, at, &names, &status, error);
    return fclose(file) ? basin_fail_memory(error, path) : BASIN_OK;
}

basin_status basin_smi_table(char **table, size_t *size, const char *path, basin_error *error) {
    static const char blanks[] = " \t";
    BASIN_FREE_AT_EXIT char *text = NULL;
    BASIN_TRY(load(&text, path, error));
    const char *at = text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3);
    bool header = !strncasecmp(at, "smiles", 6);
    size_t first = strcspn(at, "\r\n"), commas = strcspn(at, ",;\t");
    if (commas < first && (header || at[commas] != '\t')) return BASIN_OK;
    FILE *file = open_memstream(table, size);
    if (!file) return basin_fail_memory(error, path);
    fputs("smiles,id\n", file); /* then a line of the file is the line before it of the table */
    for (; *at; at = next_line(at, "\n"), header = false) {
        size_t length = strcspn(at, "\r\n"), blank = strspn(at, blanks);
        size_t end = blank + strcspn(at + blank, " \t\r\n"), name = end + strspn(at + end, blanks);
        if (length > blank && !header) {
            fprintf(file, "\"%.*s\",\"", (int)(end - blank), at + blank);
            if (name < length) put_quoted(file, at + name, length - name);
            fputc('"', file);
        }
        fputc('\n', file);
    }
    return fclose(file) ? basin_fail_memory(error, path) : BASIN_OK;
}
