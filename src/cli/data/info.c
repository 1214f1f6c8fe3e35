/* basin data info: what a network holds. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/network.h"
#include "cli/table.h"
#include "io/json_writer.h"

typedef struct options {
    basin_network_flags network;
    bool histogram, json;
} options;

static const options defaults = {.network = BASIN_NETWORK_FLAGS};

static const basin_option table[] = {
    BASIN_FLAG(options, histogram, 0, "histogram", "Draw the distribution of degrees."),
    BASIN_OPTIONS_NETWORK(options, network),
    BASIN_OPTIONS_NETWORK_EDGES(options, network),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static int64_t count_mask(const basin_network *n, const uint8_t *mask) {
    int64_t count = 0;
    for (int64_t i = 0; mask && i < n->nodes; i++) count += mask[i] != 0;
    return count;
}

/* ---- as text ---- */

static void add_share(basin_table *rows, double value) {
    if (isnan(value))
        basin_table_add(rows, "-");
    else
        basin_table_add(rows, "%.3f", value);
}

static void print_labels(const basin_network *n) {
    int32_t most = basin_network_greatest_label(n);
    int64_t unknown = basin_network_count_label(n, -1), known = n->nodes - unknown;
    if (most < 0) {
        printf("labels: none\n");
        return;
    }
    printf("labels:");
    for (int32_t y = 0; y <= most; y++) {
        int64_t count = basin_network_count_label(n, y);
        if (count)
            printf(" %lld of %d (%.2f %%),", (long long)count, y,
                   100 * (double)count / (double)known);
    }
    printf(" %lld unknown\n", (long long)unknown);
}

static void print_histogram(const char *name, const basin_degrees *d) {
    enum { WIDTH = 50 };
    int64_t most = 1;
    int last = 0;
    for (int b = 0; b < BASIN_DEGREE_BINS; b++) {
        if (d->bin[b] > most) most = d->bin[b];
        if (d->bin[b]) last = b;
    }
    printf("degrees of %s:\n", name);
    for (int b = 0; b <= last; b++) {
        int64_t low = b ? INT64_C(1) << (b - 1) : 0;
        printf("  %10lld%s %10lld ", (long long)low, b > 1 ? "+" : " ", (long long)d->bin[b]);
        int stars = (int)(WIDTH * d->bin[b] / most);
        for (int i = 0; i < stars || (i == 0 && d->bin[b]); i++) putchar('#');
        putchar('\n');
    }
}

static void print_facts(const basin_facts *facts) {
    printf("edges carry:");
    for (int64_t i = 0; i < facts->count; i++)
        printf("%s %s", i ? "," : "", facts->name.text + facts->name.at[i]);
    printf("\n");
}

static bool print_text(const basin_network *n, const basin_degrees *degrees, const options *o) {
    printf("%s: %lld nodes, %lld features, %s%s\n", n->path, (long long)n->nodes,
           (long long)n->features, n->directed ? "directed" : "undirected",
           n->file ? ", mapped" : "");
    int length;
    for (const char *note = NULL; (note = basin_network_next_note(&length, n, note));)
        printf("note: %.*s\n", length, note);
    print_labels(n);
    if (n->splits)
        printf("masks: %lld split%s; the first %lld train, %lld validate, %lld test\n",
               (long long)n->splits, n->splits == 1 ? "" : "s", (long long)count_mask(n, n->train),
               (long long)count_mask(n, n->val), (long long)count_mask(n, n->test));
    if (n->facts.count) print_facts(&n->facts);
    if (n->id.count) printf("ids: %s ... %s\n", n->id.text, n->id.text + n->id.at[n->id.count - 1]);
    basin_table rows = {.layout = "lrrrrrrrrr"};
    const char *heading[] = {"relation", "edges", "mean",  "min",       "median",
                             "max",      "alone", "loops", "homophily", "of anomalies"};
    for (int i = 0; i < 10; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int r = 0; r < n->relations; r++) {
        const basin_degrees *d = &degrees[r];
        const int64_t number[] = {d->least, d->median, d->most, d->isolated, d->self_loops};
        basin_table_add(&rows, "%s", n->relation[r].name);
        basin_table_add(&rows, "%lld", (long long)d->edges);
        basin_table_add(&rows, "%.2f", d->mean);
        for (int i = 0; i < 5; i++) basin_table_add(&rows, "%lld", (long long)number[i]);
        add_share(&rows, d->homophily);
        add_share(&rows, d->anomaly_homophily);
    }
    bool good = basin_table_print(&rows, stdout, 2);
    for (int r = 0; o->histogram && r < n->relations; r++)
        print_histogram(n->relation[r].name, &degrees[r]);
    return good;
}

/* ---- as JSON ---- */

static void json_relation(basin_json *json, const char *name, const basin_degrees *d) {
    basin_json_object(json, NULL);
    basin_json_text(json, "name", name);
    basin_json_integer(json, "edges", d->edges);
    basin_json_integer(json, "self_loops", d->self_loops);
    basin_json_boolean(json, "symmetric", d->symmetric);
    basin_json_object(json, "degree");
    basin_json_number(json, "mean", d->mean);
    basin_json_integer(json, "min", d->least);
    basin_json_integer(json, "median", d->median);
    basin_json_integer(json, "max", d->most);
    basin_json_integer(json, "isolated", d->isolated);
    basin_json_array(json, "histogram");
    for (int b = 0; b < BASIN_DEGREE_BINS; b++) basin_json_integer(json, NULL, d->bin[b]);
    basin_json_end(json);
    basin_json_end(json);
    basin_json_number(json, "homophily", d->homophily);
    basin_json_number(json, "anomaly_homophily", d->anomaly_homophily);
    basin_json_end(json);
}

static void print_json(const basin_network *n, const basin_degrees *degrees) {
    int32_t most = basin_network_greatest_label(n);
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "file", n->path);
    basin_json_integer(&json, "nodes", n->nodes);
    basin_json_integer(&json, "features", n->features);
    basin_json_boolean(&json, "directed", n->directed);
    basin_json_boolean(&json, "mapped", n->file != NULL);
    basin_json_boolean(&json, "ids", n->id.count > 0);
    basin_json_text(&json, "note", n->note);
    basin_json_object(&json, "labels");
    basin_json_integer(&json, "unknown", basin_network_count_label(n, -1));
    basin_json_array(&json, "count");
    for (int32_t y = 0; y <= most; y++)
        basin_json_integer(&json, NULL, basin_network_count_label(n, y));
    basin_json_end(&json);
    basin_json_end(&json);
    basin_json_array(&json, "columns");
    for (int64_t f = 0; f < n->column.count; f++)
        basin_json_text(&json, NULL, n->column.text + n->column.at[f]);
    basin_json_end(&json);
    basin_json_array(&json, "splits");
    for (int64_t s = 0; s < n->splits; s++) {
        basin_json_object(&json, NULL);
        basin_json_integer(&json, "train",
                           count_mask(n, n->train ? n->train + s * n->nodes : NULL));
        basin_json_integer(&json, "val", count_mask(n, n->val ? n->val + s * n->nodes : NULL));
        basin_json_integer(&json, "test", count_mask(n, n->test ? n->test + s * n->nodes : NULL));
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_array(&json, "relations");
    for (int r = 0; r < n->relations; r++) json_relation(&json, n->relation[r].name, &degrees[r]);
    basin_json_end(&json);
    basin_json_end(&json);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_network *n = NULL;
    basin_degrees *degrees = NULL;
    basin_error error;
    bool good = true;
    basin_status status =
        basin_network_flags_open(&n, &o->network, NULL, 0, operands, operand, true, &error);
    if (!status && !(degrees = calloc((size_t)n->relations + 1, sizeof *degrees)))
        status = basin_fail(&error, BASIN_NO_MEMORY, "%s: out of memory", n->path);
    for (int r = 0; !status && r < n->relations; r++)
        status = basin_network_degrees(&degrees[r], n, r, &error);
    if (!status && o->json)
        print_json(n, degrees);
    else if (!status)
        good = print_text(n, degrees, o);
    free(degrees);
    basin_network_free(n);
    if (status) return basin_report(&error);
    return good ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

const basin_command basin_command_data_info = {
    .name = "data info",
    .summary = "Describe a graph of nodes: edges, degrees, labels, features, masks",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = INT_MAX,
    .text = "Opens what 'basin data convert' opens; several files are the edges and the nodes of "
            "one network in CSV. Edges count both ways. Homophily is the share of edges that join "
            "equal labels, of all and of those at anomalous nodes.",
    .example = "  basin data info amazon.basin\n"
               "  basin data info payments.csv accounts.csv --label is_fraud --histogram\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
