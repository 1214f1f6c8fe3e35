/* CSV of edges and nodes: quotes, delimiters, gz, columns that are no numbers, and mistakes. */
#include "tasks/nodes/network/networks.h"

#include <math.h>
#include <unistd.h>
#include <zlib.h>

#include "tasks/nodes/network/network.h"

static basin_status read_text(basin_network **n, const basin_network_options *o, basin_error *error,
                              const char *edges, const char *nodes) {
    basin_csv_source source[] = {
        {.path = "edges.csv", .data = edges, .size = strlen(edges)},
        {.path = "nodes.csv", .data = nodes, .size = nodes ? strlen(nodes) : 0}};
    return basin_network_csv_read(n, source, nodes ? 2 : 1, o, error);
}

static basin_network *must_read(const basin_network_options *o, const char *edges,
                                const char *nodes) {
    basin_network *n;
    basin_error error;
    if (read_text(&n, o, &error, edges, nodes)) fail_msg("%s", error.text);
    return n;
}

TEST(reads_nodes_and_edges) {
    BASIN_AT_EXIT(free_network)
    basin_network *n = must_read(NULL,
                                 "src,dst,relation\n"
                                 "ann,\"bob, jr\",pays\n"
                                 "ann,c\"c,knows\r\n"
                                 "\n"
                                 "\"c\"\"c\",ann,pays\n",
                                 "\xef\xbb\xbfid,amount,label,city,split\n"
                                 "ann,1.5,1,Rome,train\n"
                                 "\"bob, jr\",-2e1,0,\"Aachen\nsouth\",valid\n"
                                 "\"c\"\"c\",+.5,,Rome,test\n"
                                 "dee,0,?,,\n");
    char text[BASIN_MAX_NODE];
    assert_int_equal(n->nodes, 4);
    assert_string_equal(basin_network_id(n, 1, text), "bob, jr");
    assert_string_equal(basin_network_id(n, 2, text), "c\"c");
    assert_int_equal(basin_network_find(n, "dee"), 3);
    assert_int_equal(basin_network_find(n, "eve"), -1);
    ASSERT_ROW(&n->relation[basin_network_relation(n, "pays")], 0, 1, 2);
    ASSERT_ROW(&n->relation[basin_network_relation(n, "knows")], 2, 0);
    const int32_t label[] = {1, 0, -1, -1};
    assert_memory_equal(n->label, label, sizeof label);
    assert_int_equal(n->features, 3);
    const float x[] = {1.5f, 0, 1, -20, 1, 0, 0.5f, 0, 1, 0, 0, 0};
    assert_memory_equal(n->feature, x, sizeof x);
    assert_string_equal(n->column.text + n->column.at[0], "amount");
    assert_string_equal(n->column.text + n->column.at[1], "city=Aachen\nsouth");
    assert_string_equal(n->column.text + n->column.at[2], "city=Rome");
    assert_true(n->train[0] && n->val[1] && n->test[2] && !n->test[3]);
}

TEST(reads_edges_alone) {
    basin_network *n = must_read(NULL, "Source\tTarget\tweight\n0\t1\t3\n1\t2\t4", NULL);
    assert_int_equal(n->nodes, 3);
    assert_int_equal(n->id.count, 0); /* they are their own numbers */
    assert_null(n->feature);
    assert_string_equal(n->relation[0].name, "homo");
    basin_network_close(n);
    basin_network_options o = {.table = &(basin_table_options){.source = "a", .target = "b"},
                               .directed = true};
    n = must_read(&o, "a;b\nx;y\nx;y\ny;x\n", NULL);
    assert_int_equal(n->relation[0].edges, 2);
    assert_non_null(strstr(n->note, "1 of 3 rows repeat others and count once; edges carry "
                                    "counts where rows have a third column"));
    assert_int_equal(n->facts.count, 0);
    basin_network_close(n);
    n = must_read(&o, "a;b;c\nx;y;1\nx;y;1\ny;x;1\n", NULL);
    assert_string_equal(n->facts.name.text, "count");
    const float *fact = n->relation[0].fact; /* of both edges */
    assert_int_equal(fact[0] + fact[n->facts.count], 3);
    basin_network_close(n);
    n = must_read(NULL, "src,dst\nx,y\nx,y\ny,x\nx,x\nx,x\n", NULL);
    assert_non_null(strstr(n->note, "3 of 5 rows repeat others and count once"));
    basin_network_close(n);
}

/* An edge without a relation is none that stands for the whole graph. */
TEST(empty_relations_are_one) {
    basin_network_options o = {.unite = true};
    basin_network *n = must_read(&o, "src,dst,type\na,b,wire\nb,c,card\nc,d, \nd,a,wire\n", NULL);
    assert_int_equal(basin_network_relation(n, "homo"), -1);
    assert_int_equal(n->relation[basin_network_relation(n, "(empty)")].edges, 2);
    assert_non_null(strstr(n->note, "1 without a relation form another one, called '(empty)'"));
    assert_int_equal(basin_network_add_union(n, NULL), BASIN_OK);
    assert_int_equal(n->relation[basin_network_relation(n, "homo")].edges, 8);
    basin_network_close(n);
    n = must_read(NULL, "src,dst,type\na,b,\nb,c,\n", NULL);
    assert_true(n->relations == 1 && !strcmp(n->relation[0].name, "homo"));
    basin_network_close(n);
}

TEST(chooses_columns) {
    const char *nodes = "k,who,when,amount,cls\n1,a,mon,5,yes\n2,b,tue,6,no\n3,c,wed,7,unknown\n";
    basin_network_options o = {.table = &(basin_table_options){
                                   .id = "who", .label = "cls", .drop = "k", .max_categories = 2}};
    BASIN_AT_EXIT(free_network) basin_network *n = must_read(&o, "src,dst\na,b\n", nodes);
    assert_int_equal(n->features, 1);
    assert_true(n->feature[2] == 7);
    assert_non_null(strstr(n->note, "columns left out: when (more than 2 values)"));
    const int32_t label[] = {1, 0, -1};
    assert_memory_equal(n->label, label, sizeof label);
}

TEST(joins_files_of_nodes) {
    const char *text[] = {"id,f\nb,1\na,2\n", "src,dst\na,b\n", "id,label\na,1\nb,0\n"};
    basin_csv_source source[3];
    for (int i = 0; i < 3; i++)
        source[i] =
            (basin_csv_source){.path = "part.csv", .data = text[i], .size = strlen(text[i])};
    BASIN_AT_EXIT(free_network) basin_network *n;
    assert_int_equal(basin_network_csv_read(&n, source, 3, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_network_find(n, "a"), 1);
    assert_int_equal(n->label[1], 1);
    assert_true(n->feature[1] == 2);
}

/* What one table does not know another may; what two tables say must be the same. */
TEST(joins_labels) {
    const char *text[] = {"src,dst\na,b\n", "id,label\na,1\nb,\nc,0\n", "id,label\na,\nb,1\nc,0\n",
                          "id,label\na,0\n"};
    const int32_t label[] = {1, 1, 0};
    basin_csv_source source[4];
    for (int i = 0; i < 4; i++)
        source[i] =
            (basin_csv_source){.path = "part.csv", .data = text[i], .size = strlen(text[i])};
    basin_network *n;
    assert_int_equal(basin_network_csv_read(&n, source, 3, NULL, NULL), BASIN_OK);
    assert_memory_equal(n->label, label, sizeof label);
    basin_network_close(n);
    assert_failure(basin_network_csv_read(&n, source, 4, NULL, &failure), BASIN_BAD_FILE,
                   "line 2: node 'a' has the label '0', and another one");
}

/* A second column that may be the answer is noted; one without a name is not a feature. */
TEST(notes_what_columns_tell) {
    basin_network *n =
        must_read(NULL, "src,dst\na,b\n", ",id,label,Is_Fraud,f,,\n0,a,1,1,5,,\n1,b,0,0,6,,\n");
    assert_int_equal(n->features, 2);
    assert_non_null(strstr(n->note,
                           "have the usual name of labels; one that reveals the answer must be "
                           "left out (drop): Is_Fraud"));
    assert_non_null(strstr(n->note, "left out: column 1 (no name), column 6 (no name)"));
    basin_network_close(n);
    n = must_read(&(basin_network_options){.table = &(basin_table_options){.drop = "is_fraud"}},
                  "src,dst,,\na,b,,\n", "id,label,is_fraud\na,1,1\nb,0,0\n");
    assert_null(n->note && strstr(n->note, "usual name of labels"));
    assert_int_equal(n->facts.count, 0);
    basin_network_close(n);
}

/* A format is there for the columns that want it. */
TEST(reads_dates_of_two_forms) {
    basin_network_options o = {
        .table = &(basin_table_options){.date_format = "%d.%m.%Y", .max_categories = 1}};
    BASIN_AT_EXIT(free_network)
    basin_network *n =
        must_read(&o, "src,dst\na,b\n",
                  "id,opened,closed\na,1970-01-02,03.01.1970\nb,1970-01-04,05.01.1970\n");
    const float x[] = {1, 2, 3, 4};
    assert_int_equal(n->features, 2);
    assert_memory_equal(n->feature, x, sizeof x);
}

/* The tables of nodes and of edges may each have a format; a schema remembers both. */
TEST(reads_dates_by_table) {
    basin_network_options o = {
        .table = &(basin_table_options){.date_format = "%d.%m.%Y", .edge_date_format = "%m/%d/%Y"}};
    const char *edges = "src,dst,time\na,b,02/03/1970\n",
               *nodes = "id,opened\na,02.03.1970\nb,03.01.1970\n";
    BASIN_AT_EXIT(free_network) basin_network *n = must_read(&o, edges, nodes), *again = NULL;
    assert_true(n->feature[0] == 60 && n->feature[1] == 2);
    assert_true(n->relation[0].fact[n->facts.time] == 33);
    BASIN_FREE_AT_EXIT char *text = basin_schema_print(n->schema);
    assert_non_null(strstr(text, "\"edge_date_format\":\"%m/%d/%Y\""));
    basin_schema *schema;
    assert_int_equal(basin_schema_parse(&schema, text, "s", NULL), BASIN_OK);
    again = must_read(&(basin_network_options){.schema = schema}, edges, nodes);
    assert_memory_equal(again->feature, n->feature, 2 * sizeof *n->feature);
    assert_true(again->relation[0].fact[again->facts.time] == 33);
    basin_schema_free(schema);
}

/* One cell that allows one decimal mark settles it for its file, whatever the schema's tables had;
 * where no cell does, the schema's stands. */
TEST(settles_the_decimal_mark_by_file) {
    const char *points = "id,a,b\nx,1.5,2.25\ny,3.5,1234\n", *edges = "src,dst,n\nx,y,1.5\n";
    basin_network *n = must_read(NULL, edges, points);
    basin_network_options o = {.schema = n->schema};
    const struct {
        const char *nodes, *edges;
        float a, b, amount;
    } trial[] = {
        {"id;a;b\nx;1.234;2\ny;2.127,34;1\n", "src;dst;n\nx;y;1.5\n", 1234, 2, 1.5},
        {"id;a;b\nx;1.234;2\ny;1;1\n", "src;dst;n\nx;y;1,5\n", 1.234f, 2, 1.5},
        {"id;a;b\nx;1;1.234\ny;2,5;1\n", "src;dst;n\nx;y;1.234\ny;x;2,5\n", 1, 1234, 1236.5}};
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_network *m = must_read(&o, trial[i].edges, trial[i].nodes);
        assert_true(m->feature[0] == trial[i].a && m->feature[1] == trial[i].b);
        assert_true(m->relation[0].fact[1] == trial[i].amount);
        basin_network_close(m);
    }
    basin_error error;
    basin_network *none;
    assert_int_equal(read_text(&none, &o, &error, edges, "id;a;b\nx;1.5;2\ny;2.127,34;1\n"),
                     BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "line 2: column 'a' holds '1.5', expected a number as in "
                                       "training, with the decimal mark of the file's"));
    basin_network_close(n);
    n = must_read(NULL, "src;dst\nx;y\n", "id;a;b\nx;1.234;2,5\ny;2.500;1,5\n");
    assert_true(n->feature[0] == 1234 && n->feature[1] == 2.5f);
    basin_network_close(n);
}

/* Numbers that a program wrote have a decimal point, whatever the tables of the schema have. */
TEST(takes_numbers_as_numbers) {
    BASIN_AT_EXIT(free_network)
    basin_network *n = must_read(NULL, "src;dst\nx;y\n", "id;a\nx;1,5\ny;2,5\n"), *m = NULL;
    const char *path[] = {"nodes", "edges"},
               *text[] = {"\"id\",\"a\"\n\"x\",1.234\n\"y\",\"1.234\"\n", "src,dst\nx,y\n"};
    basin_network_options o = {.schema = n->schema,
                               .table = &(basin_table_options){.text = text, .exact = true}};
    assert_int_equal(basin_network_open(&m, path, 2, &o, NULL), BASIN_OK);
    assert_true(m->feature[0] == 1.234f && m->feature[1] == 1234);
}

/* A semicolon parts the fields of a header in which a name has a comma. */
TEST(counts_delimiters) {
    basin_network *n =
        must_read(NULL, "src;dst\na;b\n", "id;sum (EUR, net);y\na;1.234,50;1\nb;2,25;0\n");
    assert_int_equal(n->features, 1);
    assert_true(n->feature[0] == 1234.5f && n->feature[1] == 2.25f);
    basin_network_close(n);
}

TEST(fills_gaps) {
    basin_network *n;
    basin_error error;
    const char *nodes = "id,f,label\na,1,0\nb,,1\nc,5,1\n";
    assert_int_not_equal(read_text(&n, NULL, &error, "src,dst\na,b\n", nodes), BASIN_OK);
    assert_non_null(strstr(error.text, "feature 0 f of node b is missing or NaN"));
    basin_network_options o = {.missing = BASIN_MISSING_MEAN};
    n = must_read(&o, "src,dst\na,b\n", nodes);
    assert_true(n->feature[1] == 3);
    basin_network_close(n);
    n = must_read(&o, "src,dst\na,b\n", "id,f,label\na,1, no\nb,  , \nc,5, NA \n");
    const int32_t label[] = {0, -1, -1};
    assert_true(n->features == 1 && n->feature[1] == 3);
    assert_memory_equal(n->label, label, sizeof label);
    basin_network_close(n);
}

/* What is asked for goes before what a file was made with; what is not asked for does not. */
TEST(a_file_takes_the_option_missing) {
    char *path = folder_path(state, "made.basin");
    const char *one = path;
    for (int made = 0; made < 2; made++) {
        basin_network_options o = {.missing = made ? BASIN_MISSING_MEAN : BASIN_MISSING_ERROR};
        basin_network *n = must_read(&o, "src,dst\na,b\n", "id,f,label\na,1,0\nb,2,1\n");
        assert_ok(basin_network_write(path, n, &failure));
        basin_network_close(n);
        const basin_missing asked[] = {BASIN_MISSING_ERROR, BASIN_MISSING_ZERO, BASIN_MISSING_MEAN,
                                       BASIN_MISSING_REFUSE};
        const basin_missing expected[] = {o.missing, BASIN_MISSING_ZERO, BASIN_MISSING_MEAN,
                                          BASIN_MISSING_ERROR};
        for (int i = 0; i < 4; i++) {
            o.missing = asked[i];
            assert_ok(basin_network_open(&n, &one, 1, &o, &failure));
            assert_int_equal(n->schema->missing, expected[i]);
            basin_network_close(n);
        }
    }
}

TEST(reads_gz) {
    char *edges = folder_path(state, "edges.tsv.gz");
    char *cut = folder_path(state, "cut.tsv.gz");
    char *nodes = folder_path(state, "nodes.csv");
    gzFile gz = gzopen(edges, "wb");
    gzprintf(gz, "src\tdst\n");
    for (int i = 0; i < 5000; i++) gzprintf(gz, "n%d\tn%d\n", i * 7919 % 5000, i);
    gzclose(gz);
    FILE *file = fopen(nodes, "wb");
    fprintf(file, "id,f\n");
    for (int i = 0; i < 5000; i++) fprintf(file, "n%d,%d\n", i, i);
    fclose(file);
    basin_network *n;
    const char *path[] = {edges, nodes};
    assert_int_equal(basin_network_open(&n, path, 2, NULL, NULL), BASIN_OK);
    assert_int_equal(n->nodes, 5000);
    assert_true(n->feature[4321] == 4321);
    basin_network_close(n);
    static unsigned char bytes[1 << 17];
    size_t size = file_get(bytes, sizeof bytes, edges);
    assert_int_equal(file_put(cut, bytes, size / 2), 0);
    assert_refused(cut, "cut off");
}

TEST(reads_zstd) {
    /* "src,dst\na,b\nb,c\n" as zstd packs it */
    static const unsigned char bytes[] = {
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x81, 0x00, 0x00, 0x73, 0x72, 0x63, 0x2c, 0x64, 0x73,
        0x74, 0x0a, 0x61, 0x2c, 0x62, 0x0a, 0x62, 0x2c, 0x63, 0x0a, 0xcc, 0x98, 0xc2, 0xa3};
    basin_network *n;
    char *path = folder_path(state, "edges.csv.zst");
    assert_int_equal(file_put(path, bytes, sizeof bytes), 0);
    assert_ok(open_one(&n, path, NULL, &failure));
    assert_int_equal(n->nodes, 3);
    assert_int_equal(n->relation[0].edges, 4);
    basin_network_close(n);
    path = folder_path(state, "cut.csv.zst");
    assert_int_equal(file_put(path, bytes, sizeof bytes - 9), 0);
    assert_refused(path, "cut.csv.zst: damaged");
}

/* A pipe as a shell hands it over: it can be read once only. */
TEST(reads_pipes) {
    static const char nodes[] = "id,f\na,1\nb,2\n", edges[] = "src,dst\na,b\n";
    int first[2], second[2];
    char path[2][40];
    BASIN_AT_EXIT(free_network) basin_network *n;
    assert_false(pipe(first) || pipe(second));
    assert_int_equal(write(first[1], nodes, sizeof nodes - 1), sizeof nodes - 1);
    assert_int_equal(write(second[1], edges, sizeof edges - 1), sizeof edges - 1);
    close(first[1]);
    close(second[1]);
    snprintf(path[0], sizeof path[0], "/dev/fd/%d", first[0]);
    snprintf(path[1], sizeof path[1], "/dev/fd/%d", second[0]);
    const char *both[] = {path[0], path[1]};
    assert_ok(basin_network_open(&n, both, 2, NULL, &failure));
    assert_true(n->nodes == 2 && n->feature[1] == 2);
    close(first[0]);
    close(second[0]);
}

TEST(reads_edges_without_a_header) {
    const char *const list[] = {"0 1\n1 2\n", "# nodes: 3\n# from\tto\n0\t1\n1\t2\n",
                                "0,1,0.5\r\n1,2,-3e2\r\n"};
    for (int i = 0; i < 3; i++) {
        basin_network *n = must_read(NULL, list[i], NULL);
        assert_int_equal(n->nodes, 3);
        ASSERT_ROW(&n->relation[0], 1, 0, 2);
        assert_non_null(strstr(n->note, "edges.csv has no header: taken as a list of edges"));
        basin_network_close(n);
    }
    basin_network *n;
    const char *text = "ann,bob,pays\nbob,cem,knows\n";
    basin_csv_source source = {
        .path = "x.csv", .data = text, .size = strlen(text), .no_header = true};
    assert_int_equal(basin_network_csv_read(&n, &source, 1, NULL, NULL), BASIN_OK);
    assert_int_equal(n->nodes, 3);
    assert_int_equal(n->relation[basin_network_relation(n, "knows")].edges, 2);
    basin_network_close(n);
}

/* Schemas are JSON: what is not UTF-8 would not come back as the same text. */
TEST(reads_latin_1) {
    BASIN_AT_EXIT(free_network)
    basin_network *n = must_read(NULL, "src,dst,when\na,b,1\n", "id,c\na,K\xf6ln\nb,K\xc3\xb6ln\n");
    assert_int_equal(n->features, 1); /* the same town twice */
    assert_string_equal(n->column.text, "c=K\xc3\xb6ln");
    assert_non_null(strstr(n->note, "nodes.csv holds text that is not UTF-8, taken as Latin-1"));
    assert_non_null(strstr(n->note, "1 rows became 1 edges that carry count"));
}

/* Ends that no table of nodes has: skipped, or added with the mean of every number. */
TEST(ends_may_be_unknown) {
    const char *edges = "nameOrig,nameDest\na,b\na,z\nz,y\n", *nodes = "id,f,c\na,1,u\nb,5,v\n";
    basin_network_options o = {.table = &(basin_table_options){.unknown = BASIN_UNKNOWN_SKIP}};
    basin_network *n = must_read(&o, edges, nodes);
    assert_int_equal(n->nodes, 2);
    assert_int_equal(n->relation[0].edges, 2);
    assert_non_null(strstr(n->note, "2 left out: an end is in no file of nodes ('z')"));
    basin_network_close(n);
    o.table = &(basin_table_options){.unknown = BASIN_UNKNOWN_ADD};
    n = must_read(&o, edges, nodes);
    assert_int_equal(n->nodes, 4);
    assert_int_equal(basin_network_find(n, "y"), 3);
    const float x[] = {1, 1, 0, 5, 0, 1, 3, 0, 0, 3, 0, 0};
    assert_memory_equal(n->feature, x, sizeof x);
    assert_non_null(strstr(n->note, "2 nodes added that are in no file of nodes ('z')"));
    basin_network_close(n);
}

/* What may be another thing than it was read as is said. */
TEST(notes_what_may_be_meant_otherwise) {
    basin_network_options o = {.missing = BASIN_MISSING_MEAN};
    basin_network *n = must_read(&o, "src,dst,amount\na,b,2\nb,a,\nb,c,4\n",
                                 "id;opened;balance\na;01/02/2026;1.234\nb;13/02/2026;2.500\n"
                                 "c;2026-04-01;7.000\n");
    assert_non_null(strstr(n->note, "texts that look like dates; date_format reads them, such as "
                                    "%d/%m/%Y: opened"));
    assert_non_null(strstr(n->note, "either decimal mark can read, taken with a point: balance"));
    assert_non_null(strstr(n->note, "edges: 1 gaps filled with the mean of their column"));
    basin_network_close(n);
    n = must_read(&o, "src,dst\na,b\n",
                  "id;place;balance;rate\na;1/2 mile;1.234;0,5\nb;Rome;2.500;0,25\n");
    assert_null(strstr(n->note, "look like dates"));
    assert_null(strstr(n->note, "either decimal mark"));
    assert_true(n->feature[2] == 1234);
    basin_network_close(n);
}

TEST(refuses_mistakes) {
    const struct {
        const char *edges, *nodes, *wanted;
    } trial[] = {
        {"", NULL, "edges.csv: the file is empty"},
        {"a,b\n1,2\n", NULL, "no table of transfers is given"},
        {"src,dst\n", NULL, "no row below the header"},
        {"src,dst\n1,2\n3\n", NULL, "edges.csv: line 3 has 1 fields, expected 2"},
        {"src,dst\n1,\n", NULL, "line 2: an end of the edge is empty"},
        {"src,dst\n1,\"2\n3,4\n", NULL, "ends within quotes; the record begins in line 2"},
        {"src,dst\na,z\n", "id,7.5\na ,1.5\n",
         "edges.csv: line 2: node 'a' is in no file of nodes, where ids are like 'a ' (the"},
        {"src,dst\na,z\n", "id,f\n", "node 'a' is in no file of nodes, where there is no row ("},
        {"src,dst\na,a\n", "id,f\na,1\na,2\n",
         "line 3: node 'a' for the second time in column 'id'"},
        {"src,dst\na,b\n", "id,f\na,1\nb,2\nc,x\n",
         "nodes.csv: line 4: column 'f' holds 'x', expected a number"},
        {"src,dst\na,b\n", "id,f,label\na,1,0\nb,1,maybe\n",
         "nodes.csv: line 3: the label 'maybe'"},
        {"src,dst\na,b\n", "id,f,label\na,1,0\nb,1,0.5\n", "the label '0.5'"},
        {"src,dst\na,b\n", "id,f,split\na,1,train\nb,1,tets\n", "split is 'tets'"},
        {"src,dst\na,b\n", "a,1.5,0\nb,2.5,1\n", "nodes.csv: line 1 has the value '1.5', expected"},
        {"a,b,1.5,x\nb,a,2.5,y\n", "id,f\na,1\nb,2\n", "edges.csv: line 1 has the value '1.5'"},
        {"src,dst\na,b\n", "id,f,f\na,1,2\nb,1,2\n", "nodes.csv: two columns are called 'f'"},
        {"src,dst\na,b\n", "id,id,f\na,1,2\nb,1,2\n", "nodes.csv: two columns are called 'id'"},
        {"src,dst,sum,Sum\na,b,1,2\n", NULL, "edges.csv: two columns are called 'Sum'"},
        {"src,dst\na,b\n", "id,f\na,1\n,2\n", "nodes.csv: line 3: column 'id' is empty, expected"},
        {"src,dst\na,b\n", "id,f\ra,1\rb,2\r", "nodes.csv: lines end with a carriage return"},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_network *n;
        basin_error error;
        basin_status status = read_text(&n, NULL, &error, trial[i].edges, trial[i].nodes);
        assert_int_not_equal(status, BASIN_OK);
        assert_null(n);
        if (!strstr(error.text, trial[i].wanted))
            fail_msg("\"%s\" is not in \"%s\"", trial[i].wanted, error.text);
    }
    basin_network *n;
    basin_csv_source zero = {.path = "z.csv", .data = "src,dst\n1,\0002\n", .size = 13};
    assert_failure(basin_network_csv_read(&n, &zero, 1, NULL, &failure), BASIN_BAD_FILE,
                   "line 2 holds a zero byte; save UTF-16");
}

TEST(notes_one_class) {
    BASIN_AT_EXIT(free_network)
    basin_network *n = must_read(NULL, "src,dst\na,b\n", "id,f,label\na,1,0\nb,1,0\n");
    assert_non_null(strstr(n->note, "all labels are 0"));
}

TEST(texts_in_place_of_files) {
    const char *path[] = {"X", "edges"}, *text[] = {"id,f\na,1\nb,2\n", "src,dst,amount\na,b,3\n"};
    basin_network_options options = {.table = &(basin_table_options){.text = text}};
    BASIN_AT_EXIT(free_network) basin_network *n = NULL;
    assert_ok(basin_network_open(&n, path, 2, &options, &failure));
    assert_int_equal(n->nodes, 2);
    assert_int_equal(n->facts.count, 7); /* of the amount six */
    basin_network *none;
    text[1] = "src,dst\na,z\n";
    assert_failure(basin_network_open(&none, path, 2, &options, &failure), BASIN_BAD_FILE,
                   "edges: line 2: node 'z'");
}

int main(void) { return tests_run(folder_new, folder_remove); }
