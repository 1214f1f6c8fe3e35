/* Networks in parts: every node and edge is in one of them, halos and what is sent fit together,
 * files bring back what was cut, rows travel where they belong, damage and nonsense are refused. */
#include "basin/random.h"
#include "support/test.h"
#include "tasks/nodes/network/networks.h"
#include "tasks/nodes/network/parts/parts.h"

static const char *const methods[] = {"range", "stream"};
enum { METHODS = 2 };

/* A ring of groups, with ids, masks and two relations besides the union. */
static basin_network *fraud(int64_t nodes, uint64_t seed) {
    basin_network *n;
    int32_t *pair = calloc((size_t)nodes * 10, sizeof *pair), *label = calloc((size_t)nodes, 4);
    float *x = calloc((size_t)nodes * 3, sizeof *x);
    basin_random random = basin_random_start(seed, 1, 0);
    for (int64_t i = 0; i < 10 * nodes; i++) {
        uint64_t u = basin_random_below(&random, (uint64_t)nodes); /* the first have more edges */
        pair[i] = (int32_t)(u * u / (uint64_t)nodes);
    }
    for (int64_t i = 0; i < nodes; i++) label[i] = i % 14 == 3;
    basin_random_fill_normal(x, seed, 2, 0, (size_t)nodes * 3);
    basin_tensor features = BORROW(x, BASIN_F32, nodes, 3), y = BORROW(label, BASIN_I32, nodes);
    basin_edges edges = {pair, pair + 1, BASIN_I32, 2, nodes * 5};
    assert_ok(basin_network_new(&n, "made", nodes, &failure));
    assert_ok(basin_network_set_features(n, &features, NULL, &failure));
    assert_ok(basin_network_set_label_tensor(n, &y, NULL, &failure));
    assert_ok(basin_network_add_relation(n, "homo", &edges, NULL, &failure));
    free(pair), free(label), free(x);
    uint8_t *mask = calloc((size_t)nodes, 1);
    for (int64_t i = 0; i < nodes; i++) mask[i] = i % 3 == 0;
    basin_tensor t = BORROW(mask, BASIN_U8, nodes);
    assert_ok(basin_network_set_masks(n, "train", &t, &failure));
    free(mask);
    return n;
}

static basin_parts *cut(const basin_network *n, int64_t count, const char *method) {
    basin_parts *parts = NULL;
    basin_cut_spec spec = {.parts = count, .method = method};
    assert_ok(basin_parts_cut(&parts, n, &spec, NULL, &failure));
    return parts;
}

/* The number in the whole graph of a number of `col`. */
static int64_t number_of(const basin_parts *p, const basin_part *part, int32_t col) {
    int64_t own = part->network->nodes, at = col - own, q = 0;
    if (at < 0) return part->network->origin[col];
    while (part->halo_at[q + 1] <= at) q++;
    const basin_part *other = p->part[q];
    return other->network->origin[other->send[other->send_at[part->part] + at - part->halo_at[q]]];
}

static void check_part(const basin_network *n, const basin_parts *p, const basin_part *part) {
    const basin_network *own = part->network;
    for (int64_t i = 0; i < own->nodes; i++) {
        int64_t v = own->origin[i];
        assert_int_equal(p->owner[v], part->part);
        assert_int_equal(own->label[i], n->label[v]);
        assert_int_equal(own->train[i], n->train[v]);
        assert_memory_equal(own->feature + i * 3, n->feature + v * 3, 3 * sizeof(float));
        for (int r = 0; r < n->relations; r++) {
            const basin_relation *a = &own->relation[r], *b = &n->relation[r];
            assert_int_equal(a->row[i + 1] - a->row[i], b->row[v + 1] - b->row[v]);
            for (int64_t e = 0; e < a->row[i + 1] - a->row[i]; e++)
                assert_int_equal(number_of(p, part, a->col[a->row[i] + e]), b->col[b->row[v] + e]);
        }
    }
}

static void check_face(const basin_network *n, const basin_parts *p) {
    const basin_network *face = basin_parts_face(p);
    assert_int_equal(face->nodes, n->nodes);
    assert_int_equal(face->features, n->features);
    assert_memory_equal(face->label, n->label, (size_t)n->nodes * sizeof *n->label);
    assert_memory_equal(face->train, n->train, (size_t)n->nodes);
    assert_string_equal(face->relation[0].name, n->relation[0].name);
    assert_int_equal(face->relation[0].edges, n->relation[0].edges);
}

TEST(parts_make_up_the_whole) {
    for (int m = 0; m < METHODS; m++)
        for (int64_t count = 1; count <= 9; count += 2) {
            basin_network *n = fraud(120, (uint64_t)count);
            basin_parts *p = cut(n, count, methods[m]);
            for (int64_t k = 0; k < count; k++) check_part(n, p, p->part[k]);
            check_face(n, p);
            basin_parts_close(p);
            basin_network_close(n);
        }
}

/* Of 6 cliques of 20 in a ring, 6 parts cut little; their sizes are alike. */
TEST(neighbours_stay_together) {
    enum { GROUPS = 6, SIZE = 20, NODES = GROUPS * SIZE, MOST = NODES * SIZE };
    static int32_t edge[2 * MOST];
    int64_t count = 0;
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < i; j++)
            if (i % GROUPS == j % GROUPS || (i == j + 1 && i < GROUPS))
                edge[2 * count] = i, edge[2 * count++ + 1] = j;
    basin_edges edges = {edge, edge + 1, BASIN_I32, 2, count};
    BASIN_AT_EXIT(free_network) basin_network *n;
    assert_ok(basin_network_new(&n, "cliques", NODES, &failure));
    assert_ok(basin_network_add_relation(n, "homo", &edges, NULL, &failure));
    basin_partition *c;
    basin_cut_spec spec = {.parts = GROUPS};
    assert_ok(basin_partition_new(&c, n, &spec, &failure));
    basin_cut_report r = c->report;
    assert_int_equal(r.edges, 2 * count);
    assert_true(r.cut < r.edges / 3);
    assert_true(r.node_balance < 1.2 && r.edge_balance < 1.2);
    basin_partition_free(c);
}

TEST(files_bring_back_the_parts) {
    BASIN_AT_EXIT(free_network) basin_network *n = fraud(90, 2);
    basin_cut_spec spec = {.parts = 4, .method = "range"};
    basin_cut_report report;
    basin_parts *read, *made = cut(n, 4, "range");
    char *folder = folder_path(state, "cut");
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    assert_true(basin_cut_is(folder));
    assert_ok(basin_parts_open(&read, folder, NULL, &failure));
    assert_int_equal(basin_parts_count(read), 4);
    for (int64_t k = 0; k < 4; k++) {
        assert_int_equal(read->part[k]->stamp, made->part[k]->stamp);
        check_part(n, read, read->part[k]);
    }
    check_face(n, read);
    basin_parts_close(read);
    basin_parts_close(made);
}

/* What edges carry goes with them, into files too, and so does the latest time. */
TEST(parts_keep_what_edges_carry) {
    static const char table[] =
        "src,dst,amount,day\na,b,10,3\nb,a,5,1\nb,c,7,5\nd,c,2,4\nc,a,1,2\n";
    basin_csv_source source = {.path = "t.csv", .data = table, .size = sizeof table - 1};
    basin_network_options o = {.table = &(basin_table_options){.time = "day"}};
    BASIN_AT_EXIT(free_network) basin_network *n = NULL;
    char *folder = folder_path(state, "facts");
    basin_cut_spec spec = {.parts = 2, .method = "range"};
    basin_cut_report report;
    basin_parts *p[2];
    assert_ok(basin_network_csv_read(&n, &source, 1, &o, &failure));
    assert_ok(basin_network_finish(n, &o, &failure));
    p[0] = cut(n, 2, "range");
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    assert_ok(basin_parts_open(&p[1], folder, NULL, &failure));
    for (int i = 0; i < 4; i++) {
        const basin_network *own = p[i / 2]->part[i % 2]->network;
        const basin_relation *a = &own->relation[0], *b = &n->relation[0];
        int64_t F = n->facts.count;
        assert_int_equal(own->facts.count, F);
        assert_true(own->facts.now == 5 && basin_parts_face(p[i / 2])->facts.now == 5);
        for (int64_t k = 0; k < own->nodes; k++)
            assert_memory_equal(a->fact + a->row[k] * F, b->fact + b->row[own->origin[k]] * F,
                                (size_t)((a->row[k + 1] - a->row[k]) * F) * sizeof *a->fact);
    }
    basin_parts_close(p[0]);
    basin_parts_close(p[1]);
    n->directed = true;
    assert_failure(basin_network_cut(&report, folder, n, &spec, &failure), BASIN_UNSUPPORTED,
                   "t.csv: is directed");
}

TEST(parts_of_two_cuts_are_refused) {
    char from[PATH_TEXT + 20], to[PATH_TEXT + 20];
    char *folder = folder_path(state, "one");
    char *other = folder_path(state, "two");
    BASIN_AT_EXIT(free_network) basin_network *n = fraud(90, 3);
    basin_cut_spec spec = {.parts = 2, .method = "range"};
    basin_cut_report report;
    basin_parts *parts;
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    spec.method = "stream";
    assert_ok(basin_network_cut(&report, other, n, &spec, &failure));
    snprintf(from, sizeof from, "%s/part-1.basin", other);
    snprintf(to, sizeof to, "%s/part-1.basin", folder);
    assert_int_equal(rename(from, to), 0);
    assert_failure(basin_parts_open(&parts, folder, NULL, &failure), BASIN_BAD_FILE,
                   "different cuts");
}

/* Every row of a halo comes from its owner; what goes back is added there. */
TEST(rows_travel_there_and_back) {
    BASIN_AT_EXIT(free_network) basin_network *n = fraud(100, 5);
    basin_parts *p = cut(n, 5, "stream");
    basin_exchange_rows rows[5];
    float *own[5], *all[5], *back[5];
    for (int64_t k = 0; k < 5; k++) {
        int64_t count = p->part[k]->network->nodes, halo = p->part[k]->halo;
        own[k] = calloc((size_t)count * 2, sizeof(float));
        all[k] = calloc((size_t)(count + halo) * 2, sizeof(float));
        back[k] = calloc((size_t)count * 2, sizeof(float));
        for (int64_t i = 0; i < count; i++) {
            own[k][2 * i] = (float)p->part[k]->network->origin[i];
            own[k][2 * i + 1] = 1;
        }
        rows[k] = (basin_exchange_rows){own[k], all[k], count, halo, 2, BASIN_F32, false};
    }
    assert_ok(basin_parts_move(p, rows, 5, &failure));
    for (int64_t k = 0; k < 5; k++) {
        int64_t count = p->part[k]->network->nodes;
        for (int64_t i = 0; i < count + p->part[k]->halo; i++)
            assert_int_equal((int64_t)all[k][2 * i], number_of(p, p->part[k], (int32_t)i));
        rows[k].from = all[k], rows[k].to = back[k], rows[k].back = true;
    }
    assert_ok(basin_parts_move(p, rows, 5, &failure));
    for (int64_t k = 0; k < 5; k++)
        for (int64_t i = 0; i < p->part[k]->network->nodes; i++) {
            int64_t sent = 1; /* to itself, and to every part that sees it */
            for (int64_t s = 0; s < p->part[k]->send_at[5]; s++) sent += p->part[k]->send[s] == i;
            assert_int_equal((int64_t)back[k][2 * i + 1], sent);
            assert_int_equal((int64_t)back[k][2 * i], sent * p->part[k]->network->origin[i]);
        }
    for (int64_t k = 0; k < 5; k++) free(own[k]), free(all[k]), free(back[k]);
    basin_parts_close(p);
}

TEST(nonsense_is_refused) {
    BASIN_AT_EXIT(free_network) basin_network *n = small_network(NULL);
    basin_error error;
    basin_partition *c;
    basin_parts *parts;
    char *folder = folder_path(state, "nothing");
    const struct {
        basin_cut_spec spec;
        const char *wanted;
    } cases[] = {{{.parts = 0}, "0 parts, expected 1 to"},
                 {{.parts = 2, .method = "knife"}, "the method knife, needs stream or range"},
                 {{.parts = 7, .method = "range"}, "is empty, expected fewer parts"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        basin_cut_spec spec = cases[i].spec;
        assert_failure(basin_partition_new(&c, n, &spec, &failure), BASIN_BAD_VALUE,
                       cases[i].wanted);
        assert_null(c);
    }
    assert_false(basin_cut_is(folder));
    assert_int_not_equal(basin_parts_open(&parts, folder, NULL, &error), BASIN_OK);
}

/* Bytes of the header, of lists and of lengths are changed; none may lead outside of the file. */
TEST(damage_is_noticed_or_harmless) {
    char path[PATH_TEXT + 20];
    char *folder = folder_path(state, "worn");
    BASIN_AT_EXIT(free_network) basin_network *n = fraud(40, 7);
    basin_cut_spec spec = {.parts = 2, .method = "range"};
    basin_cut_report report;
    basin_error error;
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    snprintf(path, sizeof path, "%s/part-0.basin", folder);
    FILE *file = fopen(path, "rb+");
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    int refused = 0;
    for (long at = 0; at < size; at += 1 + at / 40) {
        basin_part *part = NULL;
        fseek(file, at, SEEK_SET);
        int was = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(was ^ 0x41, file);
        fflush(file);
        refused += basin_part_open(&part, folder, 0, &error) != BASIN_OK;
        basin_part_free(part);
        fseek(file, at, SEEK_SET);
        fputc(was, file);
    }
    fclose(file);
    assert_true(refused > 40);
}

/* A folder of parts is cut anew into as many alone; what a killed run left there goes. */
TEST(other_parts_are_not_replaced) {
    char left[PATH_TEXT + 40];
    BASIN_AT_EXIT(free_network) basin_network *n = fraud(40, 7);
    basin_cut_report report;
    basin_cut_spec spec = {.parts = 4, .method = "range"};
    char *folder = folder_path(state, "again");
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    snprintf(left, sizeof left, "%s/part-1.basin.tmp-999999999-0", folder);
    assert_int_equal(file_put(left, "x", 1), 0);
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    assert_int_not_equal(access(left, F_OK), 0);
    spec.parts = 2;
    assert_failure(basin_network_cut(&report, folder, n, &spec, &failure), BASIN_BAD_VALUE,
                   "holds a graph in 4 parts, expected as many");
    spec.replace = true;
    assert_ok(basin_network_cut(&report, folder, n, &spec, &failure));
    snprintf(left, sizeof left, "%s/part-2.basin", folder);
    assert_int_not_equal(access(left, F_OK), 0);
}

int main(void) { return tests_run(folder_new, folder_remove); }
