/* Molecules: SMILES as RDKit 2026.09 reads them, what is none, scaffolds, tables, packed sets. */
#include <math.h>

#include "support/folder.h"
#include "support/test.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/molecule.h"

/* Atoms with charge, hydrogens and a for aromatic; then the bonds by their ends. */
static const char *print(char *text, size_t size, const basin_molecule *m) {
    size_t at = 0;
    for (int32_t i = 0; i < m->atoms; i++) {
        const basin_atom *a = &m->atom[i];
        char charge[8] = "";
        if (a->charge) snprintf(charge, sizeof charge, "%+d", a->charge);
        at += (size_t)snprintf(text + at, size - at, "%s%sh%d%s ", basin_element(a->number), charge,
                               a->hydrogens, a->aromatic ? "a" : "");
    }
    for (int32_t a = 0; a < m->atoms; a++)
        for (int32_t b = a + 1; b < m->atoms; b++)
            for (int32_t i = 0; i < m->bonds; i++)
                if (m->bond[i].a + m->bond[i].b == a + b &&
                    (m->bond[i].a == a || m->bond[i].b == a))
                    at += (size_t)snprintf(text + at, size - at, "%d", m->bond[i].order);
    return text;
}

static const char *const good[][2] = {
    {"CCO", "Ch3 Ch2 Oh1 11"},
    {"C1=CC=CC=C1", "Ch1a Ch1a Ch1a Ch1a Ch1a Ch1a 444444"},
    {"c1ccc2[nH]ccc2c1", "Ch1a Ch1a Ch1a Ch0a Nh1a Ch1a Ch1a Ch0a Ch1a 4444444444"},
    {"CN(=O)=O", "Ch3 N+1h0 O-1h0 Oh0 112"},
    {"[H]C([H])([H])[13C@@H](N)Cl", "Ch3 Ch1 Nh2 Clh0 111"},
    {"C%10CC%10", "Ch2 Ch2 Ch2 111"},
    {"O=C1C=CC(=O)C=C1", "Oh0 Ch0 Ch1 Ch1 Ch0 Oh0 Ch1 Ch1 21121212"},
    {"c1ccsc1", "Ch1a Ch1a Ch1a Sh0a Ch1a 44444"},
    {"[Na+].[Cl-]", "Na+1h0 Cl-1h0 "},
    {"*C#N", "*h0 Ch0 Nh0 13"},
    {"C[N+](C)(C)CC(=O)[O-]", "Ch3 N+1h0 Ch3 Ch3 Ch2 Ch0 Oh0 O-1h0 1111121"},
    {"F/C=C\\Cl", "Fh0 Ch1 Ch1 Clh0 121"},
    {"[H]/N=C/C", "Hh0 Nh0 Ch1 Ch3 121"},
    {"OS(=O)(=O)c1ccccc1", "Oh1 Sh0 Oh0 Oh0 Ch0a Ch1a Ch1a Ch1a Ch1a Ch1a 1221444444"},
    {"c1cc2cccc-2ccc1", "Ch1a Ch1a Ch0a Ch1a Ch1a Ch1a Ch0a Ch1a Ch1a Ch1a 44441444444"},
    {"n1c[nH]cc1", "Nh0a Ch1a Nh1a Ch1a Ch1a 44444"},
    {"[O-]Cl(=O)(=O)=O", "O-1h0 Cl+3h0 O-1h0 O-1h0 O-1h0 1111"},
    {"[Fe].[2H]O", "Feh0 Hh0 Oh1 1"},
    {"C1CC2CCC1C2", "Ch2 Ch2 Ch1 Ch2 Ch2 Ch1 Ch2 11111111"},
    {"O=c1cc[nH]cc1", "Oh0 Ch0a Ch1a Ch1a Nh1a Ch1a Ch1a 2444444"},
    {"C1=CC=C2C=CC=CC2=C1", "Ch1a Ch1a Ch1a Ch0a Ch1a Ch1a Ch1a Ch1a Ch0a Ch1a 44444444444"},
    {"N#[N+][O-]", "Nh0 N+1h0 O-1h0 31"},
};

TEST(smiles) {
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    char text[500];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(basin_molecule_read(&m, good[i][0], &failure));
        assert_string_equal(print(text, sizeof text, &m), good[i][1]);
    }
}

static const char *const bad[][2] = {{"", "no atoms"},
                                     {"C1CC", "ring 1 is not closed"},
                                     {"C(C", "a branch does not end"},
                                     {"CC)", "did not begin"},
                                     {"C(=)C", "without an atom"},
                                     {"CX", "character 2: not a SMILES"},
                                     {"[Xx]", "no such element"},
                                     {"[CH4", "bracket is not closed"},
                                     {"C=", "last bond has no atom"},
                                     {"C==C", "two bonds in a row"},
                                     {"C11", "to itself"},
                                     {"C12CC12", "two bonds between"},
                                     {"C=1CC-1", "in two ways"},
                                     {"C%1C", "% without two digits"},
                                     {"=C", "a bond without an atom"},
                                     {"C.(C)", "a branch without"},
                                     {"1CC1", "ring bond without"},
                                     {"CC.=C", "a bond without"},
                                     {"C(C)(C)(C)(C)C", "atom 1, C, has valence 5"},
                                     {"c1cccc1", "no Kekule structure"},
                                     {"cC", "in no ring"},
                                     {"[cl]1cccc1", "cannot be aromatic"},
                                     {"[C:x]", "a class without"},
                                     {"C<C", "not a SMILES"},
                                     {"C((C)C)C", "a branch without"},
                                     {"CC.", "nothing follows"},
                                     {"[#-]", "no such element"}};

TEST(what_is_no_molecule) {
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_failure(basin_molecule_read(&m, bad[i][0], &failure), BASIN_BAD_VALUE, bad[i][1]);
}

/* They are read in seconds, or refused. */
TEST(large_molecules) {
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    enum { LENGTH = 400000 };
    BASIN_FREE_AT_EXIT char *text = calloc(LENGTH, 1);
    char *at = text + sprintf(text, "C1CC1");
    int64_t scaffold;
    memset(at, 'C', 60000);
    assert_ok(basin_molecule_read(&m, text, &failure));
    assert_ok(basin_molecule_scaffold(&scaffold, &m, &failure));
    memset(at, 'C', 70000);
    assert_failure(basin_molecule_read(&m, text, &failure), BASIN_BAD_VALUE, "more than 65536");
    memset(text, 0, LENGTH);
    at = text + sprintf(text, "[C]");
    for (int i = 0; i < 260; i++) at += sprintf(at, "([H])"); /* 4 in a byte */
    assert_failure(basin_molecule_read(&m, text, &failure), BASIN_BAD_VALUE, "has valence 255");
    memset(text, 0, LENGTH);
    at = text;
    for (int i = 0; i < 1500; i++) at += sprintf(at, "c1ccc(cc1)");
    assert_ok(basin_molecule_read(&m, text, &failure));
    assert_int_equal(m.rings, 1500);
    sprintf(at, "c1cccc1"); /* and other choices in the rest do not help */
    assert_failure(basin_molecule_read(&m, text, &failure), BASIN_BAD_VALUE, "no Kekule");
    memset(text, 0, LENGTH);
    at = text;
    for (int i = 0; i < 2000; i++) /* each bound to the third before it */
        at += sprintf(at, "C%d", (i < 3 || i > 1996 ? 1 : 11) * (i % 3 + 1));
    assert_failure(basin_molecule_read(&m, text, &failure), BASIN_BAD_VALUE, "too large a system");
}

/* The same however they are written; other in mirror images and on the other side. */
TEST(stereo) {
    static const struct {
        const char *smiles;
        int turns[2], sides[2]; /* atoms of labels 2, 3; bonds of labels 5, 6 */
    } table[] = {
        {"N[C@@H](C)C(=O)O", {1, 0}, {0, 0}},
        {"C[C@H](N)C(=O)O", {1, 0}, {0, 0}},
        {"[H][C@](N)(C)C(=O)O", {1, 0}, {0, 0}},
        {"OC(=O)[C@TH2H](N)C", {1, 0}, {0, 0}},
        {"C[C@@](N)([H])C(=O)O", {1, 0}, {0, 0}},
        {"N[C@H](C)C(=O)O", {0, 1}, {0, 0}},
        {"O[C@H]1CCNC1", {0, 1}, {0, 0}},
        {"C1NCC[C@@H]1O", {0, 1}, {0, 0}},
        {"C[C@H](C)O", {0, 0}, {0, 0}},
        {"C[N@@](CC)O", {0, 0}, {0, 0}},
        {"C[Si@SP1](F)(Cl)Br", {0, 0}, {0, 0}},
        {"C[S@@](F)(Cl)(Br)(I)O", {0, 0}, {0, 0}},
        {"F/C=C/F", {0, 0}, {1, 0}},
        {"F\\C=C\\F", {0, 0}, {1, 0}},
        {"C(/F)=C/F", {0, 0}, {0, 1}},
        {"F/C=C\\F", {0, 0}, {0, 1}},
        {"FC=C/F", {0, 0}, {0, 0}},
        {"C/C=C/C=C\\C", {0, 0}, {1, 1}},
        {"F/C(Cl)=C(/Cl)F", {0, 0}, {0, 1}},
        {"C/C=C1/CCCCN1", {0, 0}, {0, 1}},
        {"C/C=C/1CCCCN1", {0, 0}, {1, 0}},
        {"[H]/C(F)=C(/[H])Cl", {0, 0}, {1, 0}},
        {"[H]/C(F)=C(\\[H])Cl", {0, 0}, {0, 1}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
        basin_graphset_options spec = {.text = &table[i].smiles, .count = 1, .stereo = true};
        assert_ok(basin_graphset_read(&set, NULL, &spec, &failure));
        int turns[2] = {0}, sides[2] = {0};
        for (int64_t n = 0; n < set.nodes; n++)
            if (set.node_label[4 * n + 3] > 1) turns[set.node_label[4 * n + 3] - 2]++;
        for (int64_t e = 0; e < set.edges; e++)
            if (set.edge_label[e] > 4) sides[set.edge_label[e] - 5]++;
        if (turns[0] != table[i].turns[0] || turns[1] != table[i].turns[1] ||
            sides[0] != 2 * table[i].sides[0] || sides[1] != 2 * table[i].sides[1])
            fail_msg("%s: turns %d %d, sides %d %d", table[i].smiles, turns[0], turns[1], sides[0],
                     sides[1]);
    }
}

/* The same of one line, another of the next. */
TEST(scaffolds) {
    static const char *const same[][3] = {
        {"Cc1ccccc1", "OC(=O)C1=CC=CC=C1", "c1ccncc1"},
        {"CC1CCCCC1CC", "C1CCCCC1", "C1CCCCCC1"},
        {"c1ccccc1CCc1ccccc1", "CC(Cc1ccccc1)c1ccc(O)cc1", "c1ccccc1Cc1ccccc1"},
        {"O=C1CCCC1", "CC1CCCC1=O", "C1CCCC1"},
        {"Cn1cccc1", "c1cc[nH]c1", "c1ccoc1"},
        {"CC", "CCO", "C1CC1"}};
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    int64_t own[3];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        for (int k = 0; k < 3; k++) {
            assert_ok(basin_molecule_read(&m, same[i][k], &failure));
            assert_ok(basin_molecule_scaffold(&own[k], &m, &failure));
        }
        assert_true(own[0] == own[1] && own[1] != own[2]);
    }
}

static const char table[] = "id,SMILES,y,word,z\n"
                            "a,CCO,1,yes,0.5\n"
                            "b,C1CC,0,no,1\n"
                            "c,[Na+].[Cl-],0,no,\n"
                            "d,*[C@H](F)Cl,,,2\n";

/* Words of another table are the classes of the first one's, whichever of them it has. */
TEST_WITH(words_of_classes, folder_new, folder_remove) {
    basin_graphset set, other;
    char *path = folder_put(state, "m.csv", "smiles,y\nC,low\nCC,high\nCCC,mid\n");
    assert_ok(basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure));
    assert_string_equal(set.columns, "y\n\thigh\n\tlow\n\tmid");
    assert_string_equal(set.column[2], "mid");
    basin_graphset_options again = {.target = set.columns};
    path = folder_put(state, "m.csv", "smiles,y\nC,mid\nCC,low\n");
    assert_ok(basin_graphset_read(&other, path, &again, &failure));
    assert_true(other.classes == 2 && other.class_value[0] == 1 && other.class_value[1] == 2);
    assert_true(other.class_of[0] == 1 && other.class_of[1] == 0);
    assert_string_equal(other.column[0], "low");
    assert_string_equal(other.columns, set.columns);
    basin_graphset_free(&other);
    path = folder_put(state, "m.csv", "smiles,y\nC,mid\nCC,tall\n");
    assert_failure(basin_graphset_read(&other, path, &again, &failure), BASIN_BAD_VALUE,
                   "line 3: column 'y' has 'tall', which is not a class of the model");
    path = folder_put(state, "m.csv", "smiles,y\nC,1\nCC,0\n");
    assert_failure(basin_graphset_read(&other, path, &again, &failure), BASIN_BAD_VALUE,
                   "line 2: column 'y' has '1', which is not a class of the model");
    again = (basin_graphset_options){.target = "y", .values = true};
    assert_ok(basin_graphset_read(&other, path, &again, &failure));
    assert_int_equal(other.task, BASIN_GRAPHS_VALUES); /* of a model of values: not classes */
    basin_graphset_free(&other);
    basin_graphset_free(&set);
}

TEST_WITH(tables, folder_new, folder_remove) {
    basin_graphset set, again;
    char *path = folder_put(state, "m.csv", table);
    char *packed = folder_path(state, "m.safetensors");
    assert_ok(basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure));
    assert_int_equal(set.graphs, 2); /* b is none, d has no y */
    assert_int_equal(set.task, BASIN_GRAPHS_CLASSES);
    assert_int_equal(set.line[1], 4);
    assert_string_equal(set.id + set.id_start[1], "c");
    assert_non_null(strstr(set.note, "line 3: 'C1CC': ring 1 is not closed\n1 of 3 molecules"));
    assert_non_null(strstr(set.note, "1 of 2 molecules are of several parts"));
    assert_non_null(strstr(set.note, "1 of 4 molecules have no value"));
    assert_ok(basin_graphset_write(packed, &set, &failure));
    assert_ok(basin_graphset_read(&again, packed, NULL, &failure));
    assert_string_equal(again.id + again.id_start[1], "c");
    assert_string_equal(again.columns, "y");
    assert_int_equal(again.line[1], 4);
    basin_graphset_free(&again);
    basin_graphset_free(&set);
    assert_ok(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "word"}, &failure));
    assert_non_null(strstr(set.note, "0 is 'no', 1 is 'yes'"));
    assert_int_equal(set.class_of[0], 1);
    basin_graphset_free(&set);
    assert_ok(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "z,y"}, &failure));
    assert_int_equal(set.task, BASIN_GRAPHS_VALUES);
    assert_int_equal(set.graphs, 3);
    assert_string_equal(set.columns, "z\ny");
    assert_string_equal(set.column[1], "y");
    assert_true(set.target[0] == 0.5F && isnan(set.target[2]));
    basin_graphset_free(&set);
    assert_failure(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "w"}, &failure),
        BASIN_BAD_VALUE, "no column 'w' of targets; its columns: id, SMILES");
    assert_failure(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "z,id"}, &failure),
        BASIN_BAD_VALUE, "column 'id' has 'a'");
    path = folder_put(state, "m.csv", "SMILES,y,SMILES\nC,1,CC\n");
    assert_failure(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure),
        BASIN_BAD_VALUE, "two columns are called 'SMILES'");
    path = folder_put(state, "m.csv", "SMILES,y\nC,yes\nCC,900000\n");
    assert_failure(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure),
        BASIN_BAD_VALUE, "column 'y' has '900000', after words; expected only numbers");
    assert_failure(basin_graphset_read(&set, path,
                                       &(basin_graphset_options){.target = "y", .values = true},
                                       &failure),
                   BASIN_BAD_VALUE, "line 2: column 'y' has 'yes', expected a number");
    path = folder_put(state, "m.csv", "SMILES,y\nC,1e30\nCC,1\n");
    assert_ok(basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure));
    assert_int_equal(set.task, BASIN_GRAPHS_VALUES);
    basin_graphset_free(&set);
    assert_failure(basin_graphset_read(
                       &set, NULL,
                       &(basin_graphset_options){.text = (const char *const[]){"X"}, .count = 1},
                       &failure),
                   BASIN_BAD_VALUE, "none of 1 molecules can be used: 'X': character 1");
    path = folder_put(state, "m.csv", "SMILES,y\n");
    assert_failure(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure),
        BASIN_BAD_VALUE, "m.csv: no rows with a molecule");
}

/* Three digits after a comma are not thousands where other numbers say so, and no fraction where
 * none does. */
TEST_WITH(decimal_commas, folder_new, folder_remove) {
    static const char *const read[] = {"SMILES;y\nC;-8,804\nCC;0,5\nCCC;2\n",
                                       "SMILES\ty\nC\t-8,804\nCC\t0,5\nCCC\t2\n",
                                       "SMILES,y\nC,\"-8,804\"\nCC,\"0,5\"\nCCC,2\n",
                                       ("SMILES,y\nC,\xe2\x88\x92" /* a minus */
                                        "8.804\nCC,0.5\nCCC,2\n")};
    static const char *const refused[] = {"SMILES,y\nC,2\nCC,\"8,8 %\"\n",
                                          "SMILES;y\nC;2\nCC;1.234,5\n",
                                          "SMILES;y\nC;2\nCC;0,5 %\n"};
    char *path;
    basin_graphset set;
    for (int i = 0; i < 4; i++) {
        path = folder_put(state, "m.csv", read[i]);
        basin_graphset_options spec = {.target = "y"};
        assert_ok(basin_graphset_read(&set, path, &spec, &failure));
        assert_int_equal(set.task, BASIN_GRAPHS_VALUES);
        assert_true(set.target[0] == -8.804F && set.target[1] == 0.5F && set.target[2] == 2);
        const char *note = "2 of 3 molecules have a number with a decimal comma";
        assert_true((set.note && strstr(set.note, note)) == (i < 3));
        basin_graphset_free(&set);
        path = folder_put(state, "m.csv", refused[i % 3]);
        assert_failure(basin_graphset_read(&set, path, &spec, &failure), BASIN_BAD_VALUE,
                       "after numbers");
    }
    static const char *const unclear[][2] = {
        {"SMILES\ty\nC\t12\nCC\t1,234\n", "line 3: column 'y' has '1,234', a decimal or thousands"},
        {"SMILES;y\nC;1,234\nCC;12.5\n", "'1,234', and other numbers have points"},
        {"SMILES;y\nC;0,5\nCC;1.234\n", "line 2: column 'y' has '0,5', and other numbers"},
        {"SMILES;y;z\nC;0.5;1,234\n", "column 'z' has '1,234', and other numbers"},
        {"SMILES,y\nC,2\nCC,\"1,234\"\n", "line 3: column 'y' has '1,234', a decimal or"}};
    for (int i = 0; i < 5; i++) {
        path = folder_put(state, "m.csv", unclear[i][0]);
        basin_graphset_options spec = {.target = i == 3 ? "y,z" : "y"};
        assert_failure(basin_graphset_read(&set, path, &spec, &failure), BASIN_BAD_VALUE,
                       unclear[i][1]);
    }
    path = folder_put(state, "m.csv", "SMILES\ty\tz\nC\t1,5\t2,5\nCC\t1\t2\n");
    basin_graphset_options two = {.target = "y,z"};
    assert_ok(basin_graphset_read(&set, path, &two, &failure));
    assert_non_null(strstr(set.note, "1 of 2 molecules have a number with a decimal comma"));
    basin_graphset_free(&set);
    path = folder_put(state, "m.csv", "SMILES,y\nC,2-\nCC,2+\nCCC,2-\n"); /* words */
    two.target = "y";
    assert_ok(basin_graphset_read(&set, path, &two, &failure));
    assert_int_equal(set.classes, 2);
    basin_graphset_free(&set);
}

/* Symbols as RDKit takes them; an empty record does not take the next one with it. */
TEST_WITH(symbols_of_molblocks, folder_new, folder_remove) {
    static const char *const symbol[] = {"Cl", "CL", "R#", "Q", "*", "Qq", "Du", "cl"};
    char text[2000] = "", *path;
    basin_graphset set;
    for (int i = 0; i < 8; i++)
        snprintf(text + strlen(text), 200,
                 "m%d\n\n\n  1  0  0  0  0  0            999 V2000\n"
                 "    0.0000    0.0000    0.0000 %-3s 0  0\nM  END\n$$$$\n%s",
                 i, symbol[i], i == 1 ? "$$$$\n" : "");
    path = folder_put(state, "m.sdf", text);
    assert_ok(basin_graphset_read(&set, path, NULL, &failure));
    assert_int_equal(set.graphs, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(set.node_label[4 * i], i < 2 ? 17 : 0);
    assert_string_equal(set.id + set.id_start[2], "m2");
    assert_non_null(strstr(set.note, "molecule 3: '': no atoms"));
    assert_non_null(strstr(set.note, "molecule 7: 'm5': atom 1: no such element 'Qq'"));
    basin_graphset_free(&set);
}

/* Molblocks of both versions have the labels of SMILES; properties are columns; ids are titles. */
TEST_WITH(molblocks, folder_new, folder_remove) {
    static const char text[] =
        "ethanol\r\n  x\r\n\r\n  3  2  0  0  0  0            999 V2000\r\n"
        "    0.0000    0.0000    0.0000 C   0  0  0  0  0  0\r\n"
        "    0.0000    0.0000    0.0000 C   0  0  0  0  0  0\r\n"
        "    0.0000    0.0000    0.0000 O   0  0  0  0  0  0\r\n  1  2  1  0\r\n  2  3  1  0\r\n"
        "M  END\r\n>  <y>\r\n1.5\r\n\r\n$$$$\r\n"
        "acetate\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
        "M  V30 COUNTS 4 3 0 0 0\nM  V30 BEGIN ATOM\nM  V30 1 C 0 0 0 0\nM  V30 2 C 0 0 0 0\n"
        "M  V30 3 O 0 0 0 0\nM  V30 4 O 0 0 0 0 CHG=-1\nM  V30 END ATOM\nM  V30 BEGIN BOND\n"
        "M  V30 1 1 1 2\nM  V30 2 2 2 3\nM  V30 3 1 2 4\nM  V30 END BOND\nM  V30 END CTAB\n"
        "M  END\n> 2 <say \"hi\">\nwhat\n\n> <y>\n2.5\n\n$$$$\n"
        "ammonium\n\n\n  2  1  0  0  0  0            999 V2000\n"
        "    0.0000    0.0000    0.0000 N   0  0  0  0  0  0\n"
        "    0.0000    0.0000    0.0000 Na  0  3  0  0  0 15  0  0  0  0  0\n  1  9  1  0\n"
        "M  CHG  1   1   1\nM  END\n> <y>\n3\n\n$$$$\n"
        "salt\n\n\n  2  0  0  0  0  0            999 V2000\n"
        "    0.0000    0.0000    0.0000 N   0  0\n"
        "    0.0000    0.0000    0.0000 Cl  0  5  0  0  0 15\n"
        "M  CHG  2   1   1   2  -1\nM  ISO  1   1  15\nM  END\n> <y>\n4.25\n\n$$$$\n\n";
    const char *const same[] = {"CCO", "CC(=O)[O-]", "[15NH4+].[Cl-]"};
    basin_graphset set, smiles;
    char *path = folder_put(state, "m.sdf", text);
    basin_graphset_options spec = {.target = "y"}, other = {.text = same, .count = 3};
    assert_ok(basin_graphset_read(&set, path, &spec, &failure));
    assert_ok(basin_graphset_read(&smiles, NULL, &other, &failure));
    assert_int_equal(set.graphs, 3);
    assert_string_equal(set.id + set.id_start[2], "salt");
    assert_int_equal(set.line[2], 4);
    assert_float_equal(set.target[2], 4.25, 0);
    assert_non_null(strstr(set.note, "molecule 3: 'ammonium': a bond joins atoms 1 and 9 of 2"));
    assert_int_equal(set.nodes, smiles.nodes);
    assert_memory_equal(set.node_label, smiles.node_label, 16 * (size_t)set.nodes);
    assert_memory_equal(set.edge_label, smiles.edge_label, 4 * (size_t)set.edges);
    basin_graphset_free(&set);
    basin_graphset_free(&smiles);
    spec.target = "z";
    assert_failure(basin_graphset_read(&set, path, &spec, &failure), BASIN_BAD_VALUE,
                   "its columns: molblock, title, y, say");
}

/* A molblock of four atoms in a chain or a star, in cells as the table has them. */
static void put_block(char *text, size_t size, const char *const element[4], const double at[4][3],
                      const int bond[3][4], int parity, bool newer) {
    size_t n = (size_t)snprintf(text, size, "molblock\v  4  3  0  0  0  0            999 V%d\v",
                                newer ? 3000 : 2000);
    if (newer) n += (size_t)snprintf(text + n, size - n, "M  V30 BEGIN ATOM\v");
    for (int i = 0; i < 4; i++)
        n +=
            (size_t)(newer
                         ? snprintf(text + n, size - n, "M  V30 %d %s %g %g %g 0 CFG=%d\v", i + 1,
                                    element[i], at[i][0], at[i][1], at[i][2], i == 1 ? parity : 0)
                         : snprintf(text + n, size - n, "%10.4f%10.4f%10.4f %-3s 0  0%3d\v",
                                    at[i][0], at[i][1], at[i][2], element[i], i == 1 ? parity : 0));
    if (newer) n += (size_t)snprintf(text + n, size - n, "M  V30 END ATOM\vM  V30 BEGIN BOND\v");
    for (int i = 0; i < 3; i++) {
        const int *b = bond[i], shape = b[3] == 1 ? 1 : b[3] == 6 ? 3 : b[3] ? 2 : 0;
        n += (size_t)(newer
                          ? snprintf(text + n, size - n, "M  V30 %d %d %d %d CFG=%d\v", i + 1, b[2],
                                     b[0], b[1], shape)
                          : snprintf(text + n, size - n, "%3d%3d%3d%3d\v", b[0], b[1], b[2], b[3]));
    }
    snprintf(text + n, size - n, "M  END\v");
}

/* Wedges, points in space, parities and drawn double bonds give the labels that the SMILES of RDKit
 * for these blocks give. */
TEST(stereo_of_molblocks) {
    static const char *const star[] = {"F", "C", "Cl", "Br"}, *const chain[] = {"F", "C", "C",
                                                                                "Cl"};
    static const double flat[4][3] = {{1}, {0}, {-.5, .87}, {-.5, -.87}}, none[4][3] = {{0}},
                        solid[4][3] = {{1, 0, .4}, {0}, {-.5, .87, .4}, {-.5, -.87, .4}},
                        trans[4][3] = {{-.5, -.87}, {0}, {1}, {1.5, .87}},
                        cis[4][3] = {{-.5, .87}, {0}, {1}, {1.5, .87}};
    static const struct {
        const char *smiles, *const *element;
        const double (*at)[3];
        int order, wedge, parity;
    } all[] = {
        {"F[C@H](Cl)Br", star, flat, 1, 1, 0},  {"F[C@@H](Cl)Br", star, flat, 1, 6, 0},
        {"FC(Cl)Br", star, flat, 1, 0, 0},      {"FC(Cl)Br", star, flat, 1, 4, 0},
        {"F[C@H](Cl)Br", star, solid, 1, 0, 0}, {"F[C@@H](Cl)Br", star, none, 1, 0, 1},
        {"F[C@H](Cl)Br", star, none, 1, 0, 2},  {"F/C=C/Cl", chain, trans, 2, 0, 0},
        {"F/C=C\\Cl", chain, cis, 2, 0, 0},     {"FC=CCl", chain, trans, 2, 3, 0},
    };
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0}, other = {0};
    char text[1000];
    for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        const int k = (int)i / 2, two = all[k].order == 2, w = all[k].wedge;
        const int bond[3][4] = {{two ? 1 : 2, two ? 2 : 1, 1, two ? 0 : w},
                                {2, 3, all[k].order, two ? w : 0},
                                {two ? 3 : 2, 4, 1, 0}};
        put_block(text, sizeof text, all[k].element, all[k].at, bond, all[k].parity, i % 2);
        assert_ok(basin_molecule_read_block(&m, text, &failure));
        assert_ok(basin_molecule_read(&other, all[k].smiles, &failure));
        assert_ok(basin_molecule_find_stereo(&m, &failure));
        assert_ok(basin_molecule_find_stereo(&other, &failure));
        assert_int_equal(m.atom[1].turn, other.atom[1].turn);
        assert_int_equal(m.bond[1].stereo, other.bond[1].stereo);
    }
}

/* As RDKit's LargestFragmentChooser and Uncharger give them, with deuterium as hydrogen. */
TEST(standard_form) {
    static const char *const pairs[][2] = {
        {"[Na+].[O-]C(=O)c1ccccc1", "OC(=O)c1ccccc1"},
        {"[Na]OC(=O)c1ccccc1", "OC(=O)c1ccccc1"},
        {"O.Cl.C[NH2+]CC.[Cl-]", "CNCC"},
        {"[NH3+]CC(=O)[O-]", "NCC(=O)O"},
        {"C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"},
        {"[O-]c1ccc([N+](=O)[O-])cc1", "Oc1ccc([N+](=O)[O-])cc1"},
        {"C[n+]1ccccc1.[I-]", "C[n+]1ccccc1"},
        {"c1[nH+]c[nH]c1", "c1nc[nH]c1"},
        {"[2H]C([2H])([2H])O", "CO"},
        {"C[N+]#[C-]", "C[N+]#[C-]"},
        {"F[B-](F)(F)F.[Na+]", "F[B-](F)(F)F"},
    };
    char text[300], expected[300];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {.standard = true}, plain = {0};
        assert_ok(basin_molecule_read(&m, pairs[i][0], &failure));
        assert_ok(basin_molecule_read(&plain, pairs[i][1], &failure));
        print(expected, sizeof expected, &plain);
        assert_string_equal(print(text, sizeof text, &m), expected);
        assert_int_equal(m.parts, 1);
    }
}

TEST_WITH(censored_values, folder_new, folder_remove) {
    char *packed = folder_path(state, "m.safetensors");
    char *path =
        folder_put(state, "m.csv", "smiles,y\nC,1\nCC,<10\nCCC,>= 1e3\nCCCC,\nCO,2\nN,<\n");
    static const int side[] = {0, -1, 1, 0};
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0}, again = {0};
    basin_graphset_options spec = {.target = "y"};
    assert_failure(basin_graphset_read(&set, path, &spec, &failure), BASIN_BAD_VALUE,
                   "line 7: column 'y' has '<'");
    path = folder_put(state, "m.csv", "smiles,y\nC,1\nCC,<10\nCCC,>= 1e3\nCCCC,\nCO,2\n");
    assert_ok(basin_graphset_read(&set, path, &spec, &failure));
    assert_ok(basin_graphset_write(packed, &set, &failure));
    assert_ok(basin_graphset_read(&again, packed, NULL, &failure));
    assert_int_equal(set.graphs, 4);
    assert_true(set.task == BASIN_GRAPHS_VALUES && isnan(set.target[1]) && isnan(set.target[2]));
    assert_true(again.limit[3] == 10 && isnan(again.limit[2]) && again.limit[4] == 1000);
    for (int g = 0; g < 4; g++) assert_int_equal(basin_graphset_side(&again, g, 0), side[g]);
    assert_non_null(strstr(set.note, "2 of 4 molecules have a censored value"));
}

/* Copies become one, with the mean of values that are known or the commonest class. */
TEST_WITH(copies_are_merged, folder_new, folder_remove) {
    static const char values[] = "smiles,id,y\nCCO,a,1.5\nC=O,b,3\nOCC,c,2\nC=O,d,\nCN,e,7\n";
    static const char words[] = "smiles,id,y\nCCO,a,no\nC=O,b,no\nOCC,c,yes\nC(O)C,d,yes\n"
                                "O=C,e,yes\nCN,f,no\n";
    basin_graphset set;
    basin_graphset_options spec = {.target = "y", .merge = true};
    char *path = folder_put(state, "v.csv", values);
    assert_ok(basin_graphset_read(&set, path, &spec, &failure));
    assert_int_equal(set.graphs, 3);
    assert_true(set.target[0] == 1.75f && set.target[1] == 3 && set.target[2] == 7);
    assert_string_equal(set.id + set.id_start[2], "e");
    assert_int_equal(set.line[2], 6);
    assert_int_equal(set.nodes, 3 + 2 + 2);
    assert_int_equal(set.node_label[4 * (set.node_start[2] + 1)], 7);
    assert_non_null(strstr(set.note, "1 molecule is there more than once"));
    basin_graphset_free(&set);
    path = folder_put(state, "w.csv", words);
    assert_ok(basin_graphset_read(&set, path, &spec, &failure));
    assert_int_equal(set.graphs, 3);
    assert_true(set.class_of[0] == 1 && set.class_of[1] == -1 && set.class_of[2] == 0);
    assert_non_null(strstr(set.note, "1 merged molecules have as many copies"));
    basin_graphset_free(&set);
}

/* Lines without a header; what is there twice; few whole numbers. */
TEST_WITH(notes_on_tables, folder_new, folder_remove) {
    static const struct {
        const char *file, *text, *target, *note;
        int graphs, values;
    } all[] = {
        {"a.smi", "CCO eth\"anol\nCCN\n\nC1C bad\n", NULL, "line 4: 'C1C': ring 1", 2, 0},
        {"b.SMI", "smiles name\nCCO a\nOCC b\n", NULL, "more than once, the first in lines 2 and 3",
         2, 0},
        {"c.csv", "smiles,y\nCCO,1\nOCC,2\nC,3\n,4\n", "y", "1 of them with different values", 3,
         0},
        {"d.csv", "smiles,y\nCCO,1\nCC,2\nC,3\n,4\n", "y", "3 different whole numbers, which are",
         3, 0},
        {"e.csv", "smiles,y\nCCO,1\nCC,2\nC,3\n,4\n", "y", "'': the cell is empty", 3, 1},
        {"h.csv", "sep=;\nid;Canonical SMILES;y\na;C1C;2\nb;CC;3\nc;C;4\n", "y",
         "line 3: 'C1C': ring 1", 2, 1},
        {"i.csv", "smiles,relation,y\nCCO,=,0.5\nCC,'>',0.7\nC,,<1\n", "y",
         "1 of 3 molecules have < or > in a column of relations", 3, 1},
        {"j.csv", "smiles;y\nCCO;1.500\nCC;12.250\nC;700\n", "y",
         "line 2: column 'y' has '1.500', read with a decimal point", 3, 1},
        {"k.csv", "smiles,y,z\nCCO,True,-1\nCC,false,\nC,,1\n", "y,z",
         "column 'z' has only 1 and -1", 3, 1},
        {"l.csv", "smiles,y,z\nCCO,1,0\nCC,0,\nC,,0\n", "y,z",
         "column 'z' has one value in all molecules, 0", 3, 1},
        {"f.csv", "smiles,id\nCCO,a\nCC,a\nC,\nN,\n", NULL, "1 id is there more than once", 4, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
        char *path = folder_put(state, all[i].file, all[i].text);
        basin_graphset_options spec = {.target = all[i].target, .values = all[i].values};
        assert_ok(basin_graphset_read(&set, path, &spec, &failure));
        assert_int_equal(set.graphs, all[i].graphs);
        if (!strstr(set.note, all[i].note)) fail_msg("%s: %s", all[i].file, set.note);
        if (!i) assert_string_equal(set.id + set.id_start[0], "eth\"anol");
        if (all[i].target) assert_int_equal(set.target != NULL, all[i].values);
    }
    char *path = folder_put(state, "g.csv", "smiles,y\nC,\n");
    basin_graphset set;
    assert_failure(
        basin_graphset_read(&set, path, &(basin_graphset_options){.target = "y"}, &failure),
        BASIN_BAD_VALUE, "the cells of the target are empty");
}
