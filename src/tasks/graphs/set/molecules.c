/* Tables of molecules as sets of graphs: a column of SMILES, columns to learn, ids; or SMILES in
 * memory. Labels of atoms: atomic number, charge, hydrogens, aromatic. Labels of bonds: 1, 2, 3, 4
 * for aromatic, 0 for others. */
#include <ctype.h>
#include <float.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/text.h"
#include "tasks/common/table/table.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/molecule.h"

static const char molecules[] = "molecules";
enum { MAX_TARGETS = 1024, SHOWN = 100, CLASSES = 10 };

/* What is worth a note, and how many molecules have it. */
enum { SALT, NEUTRAL, WILD, STEREO, ISOTOPE, UNKNOWN, COMMA, CENSORED, RELATION, FACTS };

typedef struct reading {
    const char *path;
    const basin_graphset_options *spec;
    basin_table_rows rows;
    char *header; /* the names of all columns, each ends with a zero byte */
    char *made;   /* of a file of molblocks or of lines: the table */
    bool blocks;  /* of molblocks */
    int smiles, id, relation, targets, target[MAX_TARGETS];
    basin_molecule molecule;
    basin_graphset_arrays a;
    int64_t *nodes, *from, *to, *line, *scaffold, *class_of, atoms;
    int32_t *atom, *bond;
    float *value, *limit;
    size_t capacity[10];
    basin_names ids;
    basin_dictionary word[MAX_TARGETS]; /* cells of the targets that are not numbers */
    const char **class_word;            /* of one target of words, in the order of classes */
    int64_t given;                      /* how many words, from the first on, are the model's */
    bool numbers[MAX_TARGETS], whole[MAX_TARGETS], flags; /* some; all integers; only 0 and 1 */
    int64_t read, skipped, fact[FACTS];
    char first[200];      /* why the first was skipped */
    char comma[200];      /* the first number with a comma */
    char point[200];      /* the first whose point may be between thousands */
    bool decimal, points; /* whether one has a comma that no thousands have; a decimal point */
    bool fraction, plain; /* whether one has a point that no thousands have; neither mark */
    basin_memory_file notes;
    FILE *note;
} reading;

static basin_status reserve(reading *r, basin_error *error) {
    const basin_molecule *m = &r->molecule;
    int64_t g = r->a.graphs + 1, b = r->a.edges + m->bonds + 1;
    return BASIN_RESERVE(&r->nodes, &r->capacity[0], g) &&
                   BASIN_RESERVE(&r->line, &r->capacity[1], g) &&
                   BASIN_RESERVE(&r->scaffold, &r->capacity[2], g) &&
                   BASIN_RESERVE(&r->from, &r->capacity[3], b) &&
                   BASIN_RESERVE(&r->to, &r->capacity[4], b) &&
                   BASIN_RESERVE(&r->bond, &r->capacity[5], b) &&
                   BASIN_RESERVE(&r->atom, &r->capacity[6],
                                 (r->atoms + m->atoms) * BASIN_ATOM_LABELS) &&
                   BASIN_RESERVE(&r->value, &r->capacity[7], g * (r->targets + 1)) &&
                   BASIN_RESERVE(&r->class_of, &r->capacity[8], g) &&
                   BASIN_RESERVE(&r->limit, &r->capacity[9], g * (2 * r->targets + 1))
               ? BASIN_OK
               : basin_fail_memory(error, molecules);
}

static void count_facts(reading *r) {
    const basin_molecule *m = &r->molecule;
    bool has[FACTS] = {[SALT] = m->parts > 1 || m->cut, [NEUTRAL] = m->neutralised};
    for (int32_t i = 0; i < m->atoms; i++) {
        has[WILD] |= !m->atom[i].number;
        has[STEREO] |= m->dimensions ? m->atom[i].turn > 0 : m->atom[i].chiral;
        has[ISOTOPE] |= m->atom[i].isotope > 0;
    }
    for (int32_t i = 0; i < m->bonds; i++) has[STEREO] |= m->bond[i].mark || m->bond[i].stereo;
    for (int i = 0; i < FACTS; i++) r->fact[i] += has[i];
}

static basin_status put_molecule(reading *r, int64_t line, basin_error *error) {
    const basin_molecule *m = &r->molecule;
    int64_t g = r->a.graphs;
    BASIN_TRY(reserve(r, error));
    for (int32_t i = 0; i < m->atoms; i++) {
        const basin_atom *a = &m->atom[i];
        int32_t *to = r->atom + (r->atoms + i) * BASIN_ATOM_LABELS;
        to[0] = a->number, to[1] = a->charge, to[2] = a->hydrogens, to[3] = a->aromatic;
        if (a->turn && r->spec->stereo && !a->aromatic) to[3] = 1 + a->turn;
    }
    for (int32_t i = 0; i < m->bonds; i++) {
        int64_t at = r->a.edges + i;
        r->from[at] = r->atoms + m->bond[i].a, r->to[at] = r->atoms + m->bond[i].b;
        bool sides = m->bond[i].stereo && r->spec->stereo;
        r->bond[at] = sides ? m->bond[i].stereo : m->bond[i].order;
    }
    BASIN_TRY(basin_molecule_scaffold(&r->scaffold[g], m, error));
    r->nodes[g] = m->atoms, r->line[g] = line;
    r->atoms += m->atoms, r->a.edges += m->bonds;
    r->a.graphs++;
    count_facts(r);
    return BASIN_OK;
}

/* A molecule that is left out, for the notes. */
static void skip(reading *r, int64_t line, const char *what, const char *why) {
    if (r->blocks && r->id >= 0) what = basin_table_rows_trimmed(&r->rows, r->id);
    if (!r->skipped) snprintf(r->first, sizeof r->first, "'%.60s': %.120s", what, why);
    if (r->skipped++ < SHOWN)
        fprintf(r->note, "%s %lld: '%.60s': %s\n", r->spec->text || r->blocks ? "molecule" : "line",
                (long long)line, what, why);
}

/* BASIN_BAD_VALUE of a bad molecule; other errors end all. */
static basin_status add(reading *r, const char *smiles, int64_t line, bool *added,
                        basin_error *error) {
    basin_error own;
    r->read++;
    *added = false;
    if (!*smiles) return skip(r, line, "", "the cell is empty"), BASIN_OK;
    basin_status status =
        (basin_molecule_is_block(smiles) ? basin_molecule_read_block
                                         : basin_molecule_read)(&r->molecule, smiles, &own);
    if (!status && (r->spec->stereo || r->molecule.dimensions))
        status = basin_molecule_find_stereo(&r->molecule, &own);
    *added = !status;
    if (status == BASIN_BAD_VALUE) return skip(r, line, smiles, own.text), BASIN_OK;
    return status ? basin_fail_memory(error, molecules) : put_molecule(r, line, error);
}

static const char *name_of(const reading *r, int column) {
    const char *at = r->header;
    while (column--) at += strlen(at) + 1;
    return at;
}

/* Letters of any case, and a blank for an underscore. */
static bool is_alike(const char *a, const char *b, int length) {
    for (int i = 0; i < length; i++) {
        int x = a[i] == ' ' ? '_' : tolower((unsigned char)a[i]);
        if (x != (b[i] == ' ' ? '_' : tolower((unsigned char)b[i]))) return false;
    }
    return true;
}

static int find_column(const reading *r, const char *name, int length) {
    for (int pass = 0; pass < 2; pass++) /* as written, then what is alike */
        for (int i = 0; i < (int)r->rows.columns; i++) {
            const char *own = name_of(r, i);
            if ((int)strlen(own) == length &&
                (pass ? is_alike(own, name, length) : !strncmp(own, name, (size_t)length)))
                return i;
        }
    return -1;
}

/* The column that is asked for, or the first of a list that there is. */
static int find_named(const reading *r, const char *name, const char *list) {
    int column = name ? find_column(r, name, (int)strlen(name)) : -1;
    for (const char *at = name ? "" : list; *at && column < 0; at += strspn(at, " ")) {
        int length = (int)strcspn(at, " ");
        column = find_column(r, at, length);
        at += length;
    }
    return column;
}

static basin_status no_column(const reading *r, const char *option, const char *name, int length,
                              basin_error *error) {
    basin_list list = {0};
    for (int i = 0; i < (int)r->rows.columns; i++) basin_list_add(&list, name_of(r, i));
    return basin_fail(error, BASIN_BAD_VALUE, "%s: no column '%.*s' of %s; its columns: %s",
                      r->path, length, name, option, list.text);
}

/* The words of a model's classes follow the column's name, each after a line feed and a tab. */
static basin_status take_words(reading *r, const char *at, basin_error *error) {
    for (; at; at = strstr(at, "\n\t"), r->given++) {
        char word[1024];
        int32_t number;
        at += 2;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, "\n"), at);
        BASIN_TRY(basin_dictionary_add(&r->word[0], &number, word, error));
    }
    return BASIN_OK;
}

/* Names with commas, or line feeds, between; a name may have commas itself. */
static basin_status choose_targets(reading *r, basin_error *error) {
    const char *between = r->spec->target && strchr(r->spec->target, '\n') ? "\n" : ",";
    for (const char *at = r->spec->target; at && *at;) {
        if (r->targets == 1 && *at == '\t') return take_words(r, at - 1, error);
        int length = (int)strcspn(at, between), first = length, column;
        while ((column = find_column(r, at, length)) < 0 && at[length])
            length += 1 + (int)strcspn(at + length + 1, between);
        if (column < 0) return no_column(r, "targets", at, first, error);
        if (column == r->smiles)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: column '%s' has the SMILES; needs another "
                              "as target",
                              r->path, name_of(r, column));
        if (r->targets >= MAX_TARGETS)
            return basin_fail(error, BASIN_BAD_VALUE, "more than %d targets", MAX_TARGETS);
        for (int t = 0; t < r->targets; t++)
            if (r->target[t] == column)
                return basin_fail(error, BASIN_BAD_VALUE, "%s: column '%s' is a target twice",
                                  r->path, name_of(r, column));
        r->target[r->targets++] = column;
        at += length + (at[length] != 0);
    }
    return BASIN_OK;
}

/* Two columns of one name leave open which is meant. */
static basin_status check_name(const reading *r, int column, basin_error *error) {
    const char *name = column < 0 ? NULL : name_of(r, column), *at = r->header;
    for (int i = 0; name && i < (int)r->rows.columns; i++, at += strlen(at) + 1)
        if (i != column && !strcmp(at, name))
            return basin_fail(error, BASIN_BAD_VALUE, "%s: two columns are called '%.40s'", r->path,
                              name);
    return BASIN_OK;
}

static basin_status open_columns(reading *r, basin_error *error) {
    const basin_graphset_options *s = r->spec;
    static const char usual[] = "smiles canonical_smiles isomeric_smiles structure molecule mol";
    static const char relations[] = "standard_relation relation operator qualifier";
    static const char ids[] = "id mol_id molecule_id compound_id cid chembl_id name compound";
    BASIN_TRY(BASIN_NEW_RAW(&r->header, r->rows.length + 1, molecules, error));
    memcpy(r->header, r->rows.text, r->rows.length);
    r->smiles = find_named(r, s->smiles, r->blocks ? "molblock" : usual);
    const char *name = s->smiles ? s->smiles : "smiles";
    if (r->smiles < 0) return no_column(r, "SMILES", name, (int)strlen(name), error);
    r->id = find_named(r, s->id, r->blocks ? "title" : ids);
    if (r->id < 0 && s->id) return no_column(r, "ids", s->id, (int)strlen(s->id), error);
    BASIN_TRY(check_name(r, r->smiles, error));
    BASIN_TRY(check_name(r, r->id, error));
    BASIN_TRY(choose_targets(r, error));
    r->relation = r->targets ? find_named(r, NULL, relations) : -1;
    for (int t = 0; t < r->targets; t++) BASIN_TRY(check_name(r, r->target[t], error));
    return BASIN_OK;
}

/* As programs write it, with any minus, also with a decimal comma. That of 8,804 may be between
 * thousands: other numbers say which (check_commas). */
static bool read_number(reading *r, double *value, const char *text) {
    basin_written w;
    if (basin_cell_number(value, text)) return true;
    if (!basin_cell_written(&w, text) || strpbrk(text, "()") || text[strlen(text) - 1] == '-')
        return false;
    bool point = w.valid[BASIN_DECIMAL_POINT], groups = w.marks == BASIN_MARK_GROUPS;
    bool comma = w.valid[BASIN_DECIMAL_COMMA] && strchr(text, ',');
    if (w.marks ? !groups || !point || !comma : !point && !comma) return false;
    *value = w.value[!point || groups ? BASIN_DECIMAL_COMMA : BASIN_DECIMAL_POINT];
    r->decimal = r->decimal || !point;
    return true;
}

/* 1,234 is read as 1.234 where another number, such as 0,5, says so, and none has a point. */
static basin_status check_commas(const reading *r, basin_error *error) {
    if (!r->comma[0] || (r->decimal && !r->points)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: %s, %s", r->path, r->comma,
                      r->points ? "and other numbers have points; needs either in all of them"
                                : "a decimal or thousands; needs a point, or nothing, there");
}

/* 1.234 where commas are not between cells: 1234 where somebody groups thousands by points. */
static void see_point(reading *r, int t, const char *text) {
    basin_written w;
    bool point = strchr(text, '.') != NULL;
    bool groups = point && basin_cell_written(&w, text) && w.valid[BASIN_DECIMAL_COMMA];
    if (groups && !r->point[0])
        snprintf(r->point, sizeof r->point, "line %lld: column '%.40s' has '%.40s'",
                 (long long)r->line[r->a.graphs - 1], name_of(r, r->target[t]), text);
    r->fraction = r->fraction || (point && !groups), r->plain = r->plain || !point;
}

/* <10 or >1000: below or above what a value is; false: it is not one. */
static bool read_limit(reading *r, int t, const char *text) {
    double limit;
    bool above = *text == '>';
    if (!above && *text != '<') return false;
    text += 1 + (text[1] == '=');
    if (!read_number(r, &limit, text + strspn(text, " ")) || fabs(limit) > (double)FLT_MAX)
        return false;
    r->limit[2 * r->targets * (r->a.graphs - 1) + (above ? 0 : r->targets) + t] = (float)limit;
    return true;
}

/* Values of the molecule that was added last. */
static basin_status read_targets(reading *r, basin_error *error) {
    int64_t g = r->a.graphs - 1;
    bool comma = false, censored = false;
    for (int t = 0; t < 2 * r->targets; t++) r->limit[2 * r->targets * g + t] = NAN;
    for (int t = 0; t < r->targets; t++) {
        const char *text = basin_table_rows_trimmed(&r->rows, r->target[t]);
        double value = NAN;
        int32_t number = -1;
        bool missing = basin_cell_missing(text), limited = read_limit(r, t, text);
        int32_t yes; /* or no, among several */
        if (r->targets > 1 && isalpha((unsigned char)*text) && basin_cell_label(&yes, text) &&
            yes >= 0)
            text = yes ? "1" : "0";
        if (limited) r->flags = r->whole[t] = false, missing = censored = r->numbers[t] = true;
        if (!missing && !read_number(r, &value, text)) {
            BASIN_TRY(basin_dictionary_add(&r->word[t], &number, text, error));
            value = number;
        } else if (!missing) {
            const char *mark = strpbrk(text, ".,");
            if (mark && *mark == ',' && !r->comma[0])
                snprintf(r->comma, sizeof r->comma, "line %lld: column '%.40s' has '%.40s'",
                         (long long)r->line[g], name_of(r, r->target[t]), text);
            comma = comma || (mark && *mark == ',');
            r->points = r->points || (mark && *mark == '.');
            see_point(r, t, text);
            r->numbers[t] = true;
            r->whole[t] = r->whole[t] && value == rint(value) && fabs(value) < 1 << 24;
        }
        int64_t words = r->word[t].names.count;
        bool numbers = r->targets > 1 || r->spec->values;
        bool beyond = fabs(value) > (double)FLT_MAX;
        if (beyond ||
            (words > r->given ? r->given || numbers || r->numbers[t] : words && r->numbers[t]))
            return basin_fail(error, BASIN_BAD_VALUE, "%s: line %lld: column '%s' has '%.40s', %s",
                              r->path, (long long)r->line[g], name_of(r, r->target[t]), text,
                              beyond       ? "expected a number of at most 3.4e38"
                              : r->given   ? "which is not a class of the model"
                              : numbers    ? "expected a number"
                              : number < 0 ? "after words; expected only numbers or only words"
                                           : "after numbers; expected only numbers or only words");
        r->flags = r->flags && (missing || value == 0 || value == 1);
        r->value[g * r->targets + t] = (float)value;
    }
    r->fact[COMMA] += comma, r->fact[CENSORED] += censored;
    if (r->relation >= 0)
        r->fact[RELATION] += strpbrk(basin_table_rows_trimmed(&r->rows, r->relation), "<>") != NULL;
    return BASIN_OK;
}

static basin_status read_rows(reading *r, basin_error *error) {
    bool more, added;
    for (;;) {
        BASIN_TRY(basin_table_rows_next(&r->rows, &more, error));
        if (!more) return BASIN_OK;
        const char *smiles = basin_table_rows_trimmed(&r->rows, r->smiles);
        /* With one target, a molecule without it cannot be learnt from or scored. */
        if (r->targets == 1 &&
            basin_cell_missing(basin_table_rows_trimmed(&r->rows, r->target[0]))) {
            r->fact[UNKNOWN]++;
            continue;
        }
        BASIN_TRY(add(r, smiles, r->rows.line - (r->made != NULL), &added, error));
        if (!added) continue;
        BASIN_TRY(read_targets(r, error));
        const char *id = r->id >= 0 ? basin_table_rows_trimmed(&r->rows, r->id) : "";
        if (r->id >= 0) BASIN_TRY(basin_names_add(&r->ids, id, error));
    }
}

/* How many different numbers a target has; at most `max` + 1 are counted. */
static int count_different(const reading *r, int max) {
    float seen[CLASSES + 1];
    int count = 0;
    for (int64_t g = 0; g < r->a.graphs && count <= max; g++) {
        int k = 0;
        while (k < count && seen[k] != r->value[g]) k++;
        if (k == count && !isnan(r->value[g])) seen[count++] = r->value[g];
    }
    return count;
}

/* Words get numbers in the order of the alphabet. */
static basin_status number_words(reading *r, basin_error *error) {
    const basin_names *names = &r->word[0].names;
    BASIN_TRY(BASIN_NEW_RAW(&r->class_word, names->count + 1, molecules, error));
    const char **sorted = r->class_word;
    for (int64_t i = 0; i < names->count; i++) sorted[i] = names->text + names->at[i];
    if (r->given) return BASIN_OK;
    if (names->count > CLASSES && names->count > r->a.graphs / 2)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: column '%s' has %lld different words in %lld molecules; needs "
                          "classes of several molecules, or numbers",
                          r->path, name_of(r, r->target[0]), (long long)names->count,
                          (long long)r->a.graphs);
    qsort(sorted, (size_t)names->count, sizeof *sorted, basin_compare_text);
    fprintf(r->note, "classes of %s:", name_of(r, r->target[0]));
    for (int64_t i = 0; i < names->count; i++)
        fprintf(r->note, "%s %lld is '%.40s'", i ? "," : "", (long long)i, sorted[i]);
    fprintf(r->note, "\n");
    for (int64_t g = 0; g < r->a.graphs; g++) {
        const char *own = names->text + names->at[(int)r->value[g]];
        void *at = bsearch(&own, sorted, (size_t)names->count, sizeof *sorted, basin_compare_text);
        r->value[g] = (float)((const char **)at - sorted);
    }
    return BASIN_OK;
}

/* Names targets of one value, and those of 1 and -1. */
static void note_values(reading *r, int t) {
    float low = INFINITY, high = -INFINITY;
    bool signs = r->targets > 1;
    for (int64_t g = 0; g < r->a.graphs; g++) {
        float v = r->value[g * r->targets + t];
        if (isnan(v)) continue;
        low = fminf(low, v), high = fmaxf(high, v), signs = signs && fabsf(v) == 1;
    }
    if (low == high && r->a.graphs > 1)
        fprintf(r->note, "column '%s' has one value in all molecules, %g\n",
                name_of(r, r->target[t]), (double)low);
    else if (low < high && signs)
        fprintf(r->note,
                "column '%s' has only 1 and -1, which are learnt as values; yes and no are 1 and "
                "0\n",
                name_of(r, r->target[t]));
}

static basin_status settle_targets(reading *r, basin_error *error) {
    if (!r->targets) return BASIN_OK;
    BASIN_TRY(check_commas(r, error));
    bool words = r->word[0].names.count > 0;
    if (r->targets == 1 && words) BASIN_TRY(number_words(r, error));
    int kinds =
        r->targets == 1 && r->whole[0] && !r->spec->values ? count_different(r, CLASSES) : 0;
    if (kinds && (words || kinds <= CLASSES)) {
        if (!words && kinds > 2)
            fprintf(r->note,
                    "column '%s' has %d different whole numbers, which are classes unless 'values' "
                    "is on\n",
                    name_of(r, r->target[0]), kinds);
        for (int64_t g = 0; g < r->a.graphs; g++) r->class_of[g] = (int64_t)r->value[g];
        r->a.graph_class = r->class_of;
    } else {
        r->a.target = r->value, r->a.targets = r->targets;
        for (int t = 0; t < r->targets; t++) note_values(r, t);
        if (r->rows.delimiter != ',' && r->point[0] && r->plain && !r->fraction)
            fprintf(r->note,
                    "%s, read with a decimal point; three digits follow each point of the targets, "
                    "so they may be thousands\n",
                    r->point);
    }
    return BASIN_OK;
}

/* Whether what is to be learnt of two molecules differs. */
static bool differ(const reading *r, int64_t a, int64_t b) {
    for (int t = 0; t < r->targets; t++) {
        float x = r->value[a * r->targets + t], y = r->value[b * r->targets + t];
        if (x != y && !isnan(x) && !isnan(y)) return true;
    }
    return false;
}

/* Says how many of the numbers `same` [graphs] are there more than once; 0 are left out. */
static basin_status note_repeats(reading *r, const double *same, const char *what, bool values,
                                 basin_error *error) {
    int64_t repeated = 0, different = 0, copies = 0, n = r->a.graphs, first[2] = {0};
    BASIN_SCRATCH_RAW(basin_ranked, all, n + 1, molecules, error);
    for (int64_t g = 0; g < n; g++) all[g] = (basin_ranked){same[g], g};
    qsort(all, (size_t)n, sizeof *all, basin_lower_first);
    for (int64_t i = 0, next; i < n; i = next) {
        bool other = false;
        for (next = i + 1; next < n && all[next].value == all[i].value; next++)
            other = other || (values && differ(r, all[i].at, all[next].at));
        if (next == i + 1 || all[i].value == 0) continue;
        if (!repeated++ || all[i].at < first[0]) first[0] = all[i].at, first[1] = all[i + 1].at;
        different += other, copies += next - i - 1;
    }
    if (!repeated) return BASIN_OK;
    fprintf(r->note, "%lld %s%s there more than once, the first in lines %lld and %lld",
            (long long)repeated, what, repeated == 1 ? " is" : "s are",
            (long long)r->line[first[0]], (long long)r->line[first[1]]);
    if (copies > repeated) fprintf(r->note, ", %lld copies in all", (long long)copies);
    if (different)
        fprintf(r->note, "; %lld of them with different values to learn", (long long)different);
    if (values && r->targets)
        fprintf(r->note, r->spec->merge ? "; they are merged, with the mean value or the commonest "
                                          "class"
                                        : "; copies stay in one part of a split (replicates: mean "
                                          "merges them)");
    fprintf(r->note, "\n");
    return BASIN_OK;
}

/* Says which molecules and ids are there more than once, and merges
 * molecules where that is asked for. */
static basin_status settle_copies(basin_graphset *set, reading *r, basin_error *error) {
    int64_t n = set->graphs, undecided = 0;
    BASIN_SCRATCH_RAW(int64_t, copy, n, molecules, error);
    BASIN_SCRATCH_RAW(double, same, n, molecules, error);
    if (r->spec->text) return BASIN_OK;
    BASIN_TRY(basin_graphset_copies(copy, set, error));
    for (int64_t g = 0; g < n; g++) same[g] = (double)copy[g] + 1;
    BASIN_TRY(note_repeats(r, same, "molecule", true, error));
    for (int64_t g = 0; g < n && r->id >= 0; g++) {
        const char *id = set->id + set->id_start[g];
        same[g] = *id ? (double)(basin_hash_text(BASIN_HASH_START, id) >> 11) : 0;
    }
    if (r->id >= 0) BASIN_TRY(note_repeats(r, same, "id", false, error));
    if (r->spec->merge) BASIN_TRY(basin_graphset_merge(&undecided, set, copy, error));
    if (undecided)
        fprintf(r->note,
                "%lld merged molecules have as many copies of one class as of another, and "
                "are left out\n",
                (long long)undecided);
    return BASIN_OK;
}

static void put_notes(reading *r) {
    const char *const what[FACTS] = {
        [SALT] = r->spec->as_is ? "are of several parts, such as salts; all are read as one graph"
                                : "are of several parts, such as salts; the largest is kept",
        [NEUTRAL] = "are charged by protons, more or less, and neutralised",
        [WILD] = "have wildcards (*), which are atoms of number 0",
        [STEREO] = "have stereochemistry, which is not used (stereo is off)",
        [ISOTOPE] = "have isotopes, which are not used",
        [UNKNOWN] = "have no value to learn and are left out",
        [COMMA] = "have a number with a decimal comma",
        [CENSORED] = "have a censored value (<, >), which is learnt from one side and left out of "
                     "scores, intervals and the memory",
        [RELATION] = "have < or > in a column of relations, which is not used: the limits of "
                     "censored values stand in the target's cells (<10)"};
    if (r->skipped > SHOWN)
        fprintf(r->note, "and %lld more like these\n", (long long)(r->skipped - SHOWN));
    if (r->skipped)
        fprintf(r->note, "%lld of %lld molecules could not be read and are left out\n",
                (long long)r->skipped, (long long)r->read);
    for (int i = 0; i < FACTS; i++)
        if (r->fact[i])
            fprintf(r->note, "%lld of %lld molecules %s\n", (long long)r->fact[i],
                    (long long)(i == UNKNOWN ? r->read + r->fact[i] : r->a.graphs),
                    i == STEREO && r->spec->stereo ? "have stereochemistry, read as labels"
                                                   : what[i]);
}

static void reading_free(reading *r) {
    basin_table_rows_close(&r->rows);
    basin_molecule_free(&r->molecule);
    BASIN_FREE(r->header, r->nodes, r->from, r->to, r->line, r->scaffold, r->class_of, r->atom,
               r->bond, r->value, r->limit, r->class_word, r->made);
    for (int t = 0; t < r->targets; t++) basin_dictionary_free(&r->word[t]);
    basin_names_free(&r->ids);
    if (r->note) free(basin_memory_file_close(&r->notes));
}

static basin_status read_all(reading *r, basin_error *error) {
    const basin_graphset_options *s = r->spec;
    bool added;
    for (int64_t i = 0; s->text && i < s->count; i++)
        BASIN_TRY(add(r, s->text[i], i, &added, error));
    if (s->text) return BASIN_OK;
    basin_csv_source source = {.path = r->path};
    r->blocks = basin_molecules_are_blocks(r->path);
    bool lines = !s->smiles && !(s->target && *s->target) && basin_text_ends(r->path, ".smi");
    if (r->blocks || lines)
        BASIN_TRY((r->blocks ? basin_sdf_table : basin_smi_table)(&r->made, &source.size, r->path,
                                                                  error));
    source.data = r->made;
    BASIN_TRY(basin_table_rows_open(&r->rows, &source, error));
    BASIN_TRY(open_columns(r, error));
    return read_rows(r, error);
}

/* The names of the targets, line feeds between, and words of classes as take_words reads them. */
static char *join_names(const reading *r) {
    basin_memory_file memory;
    FILE *file = basin_memory_file_open(&memory);
    for (int t = 0; file && t < r->targets; t++)
        fprintf(file, "%s%s", t ? "\n" : "", name_of(r, r->target[t]));
    for (int64_t i = 0; file && r->class_word && i < r->word[0].names.count; i++)
        fprintf(file, "\n\t%s", r->class_word[i]);
    return file ? basin_memory_file_close(&memory) : NULL;
}

static basin_status finish(basin_graphset *set, reading *r, basin_error *error) {
    basin_graphset_arrays *a = &r->a;
    const char *path = r->path, *base = path ? strrchr(path, '/') : NULL;
    long long rows = (long long)(r->read + r->fact[UNKNOWN]);
    if (!rows)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no rows with a molecule",
                          path ? path : molecules);
    if (!a->graphs)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: none of %lld molecules can be used%s%s",
                          path ? path : molecules, rows, r->skipped || r->fact[UNKNOWN] ? ": " : "",
                          r->skipped         ? r->first
                          : r->fact[UNKNOWN] ? "the cells of the target are empty"
                                             : "");
    BASIN_TRY(settle_targets(r, error));
    put_notes(r);
    a->name = base ? base + 1 : path ? path : molecules;
    a->nodes = r->nodes, a->from = r->from, a->to = r->to, a->undirected = true;
    a->node_label = r->atom, a->node_labels = BASIN_ATOM_LABELS;
    a->edge_label = r->bond, a->edge_labels = 1;
    BASIN_TRY(basin_graphset_from_arrays(set, a, error));
    set->binary =
        r->flags && a->targets > 1; /* one of 0 and 1 is a class, or asked for as values */
    set->scaffold = r->scaffold, r->scaffold = NULL;
    if (r->fact[CENSORED]) set->limit = r->limit, r->limit = NULL;
    set->id = r->ids.text, set->id_start = r->ids.at;
    set->id_bytes = set->id ? set->id_start[a->graphs] : 0;
    r->ids = (basin_names){0};
    int64_t *line = set->line = r->line; /* which notes still read */
    basin_status copied = settle_copies(set, r, error);
    r->line = NULL, set->line = line;
    if (copied) return basin_graphset_free(set), copied;
    set->note = basin_memory_file_close(&r->notes), r->note = NULL;
    BASIN_FREE_AT_EXIT char *names = join_names(r);
    basin_status status = set->note && names ? basin_graphset_name_columns(set, names, error)
                                             : basin_fail_memory(error, molecules);
    if (status) basin_graphset_free(set);
    return status;
}

basin_status basin_molecules_read(basin_graphset *set, const char *path,
                                  const basin_graphset_options *options, basin_error *error) {
    BASIN_AT_EXIT(reading_free)
    reading r = {.path = path, .spec = options, .id = -1, .flags = true};
    r.molecule.standard = !options->as_is;
    for (int t = 0; t < MAX_TARGETS; t++) r.whole[t] = true;
    if (!(r.note = basin_memory_file_open(&r.notes))) return basin_fail_memory(error, molecules);
    BASIN_TRY(read_all(&r, error));
    return finish(set, &r, error);
}
