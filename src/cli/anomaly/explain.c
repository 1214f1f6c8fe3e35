/* basin anomaly explain: why a node scores as it does, as text, JSON and a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/anomaly/options.h"
#include "cli/reasons/reasons.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "view/svg.h"

typedef struct options {
    const char *svg, *backend, *products, *dtype;
    basin_network_flags data;
    double memory;
    int64_t neighbours, features, threads;
    bool json, quiet;
} options;

static const options defaults = {.data = BASIN_NETWORK_UNITED,
                                 .neighbours = 10,
                                 .features = 10,
                                 .backend = "cpu",
                                 .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, svg, 0, "svg", "FILE", "Draw the neighbourhood there.", .writes = true),
    BASIN_INTEGER(options, neighbours, "neighbours", "N", 0, 1000000, "Neighbours to name."),
    BASIN_INTEGER(options, features, "features", "N", 0, 1000000, "Features to name."),
    BASIN_OPTIONS_NETWORK(options, data),
    BASIN_OPTION_JSON(options),
    BASIN_WORK_OPTIONS(options),
    BASIN_OPTIONS_END,
};

static void print_energy(const basin_anomaly_explanation *e) {
    if (!e->has_energy) return;
    printf(
        "energy %.4g (attention %.4g, memories %.4g); of all nodes %.1f %% lie lower (mean %.4g, "
        "deviation %.4g)\n",
        e->energy, e->attention, e->hopfield, 100 * e->energy_below, e->energy_mean,
        e->energy_deviation);
}

static bool print_text(const basin_story *s) {
    const basin_anomaly_explanation *e = s->e;
    char id[BASIN_NODE_TEXT], label[BASIN_NODE_TEXT];
    printf("node %s: probability %.4f (threshold %.4f), rank %lld of %lld, label %s\n",
           basin_network_id(s->network, e->node, id), e->probability, e->threshold,
           (long long)e->rank, (long long)s->network->nodes, basin_story_label(s, e->node, label));
    if (e->nearby)
        printf(
            "(the graph does not fit into the memory allowed as one plan: energies and attention "
            "are not known)\n");
    print_energy(e);
    return basin_story_print(s);
}

static void print_json(const basin_story *s) {
    const basin_anomaly_explanation *e = s->e;
    char id[BASIN_NODE_TEXT];
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "node", basin_network_id(s->network, e->node, id));
    basin_json_number(&json, "probability", e->probability);
    basin_json_number(&json, "threshold", e->threshold);
    basin_json_integer(&json, "rank", e->rank);
    basin_json_boolean(&json, "without_attention", e->nearby);
    if (e->has_energy) {
        basin_json_object(&json, "energy");
        basin_json_number(&json, "total", e->energy);
        basin_json_number(&json, "attention", e->attention);
        basin_json_number(&json, "hopfield", e->hopfield);
        basin_json_number(&json, "mean", e->energy_mean);
        basin_json_number(&json, "deviation", e->energy_deviation);
        basin_json_number(&json, "below", e->energy_below);
        basin_json_end(&json);
    }
    basin_story_put(&json, s);
    basin_json_end(&json);
}

/* ---- the picture ---- */

enum { RAYS = 20 };

/* The neighbour of the n-th most attention; equal ones in their order. */
static const basin_anomaly_neighbour *most_attended(const basin_anomaly_explanation *e, int n) {
    for (int64_t i = 0; i < e->neighbours; i++) {
        int before = 0;
        for (int64_t k = 0; k < e->neighbours && before <= n; k++)
            before += e->neighbour[k].share > e->neighbour[i].share ||
                      (e->neighbour[k].share == e->neighbour[i].share && k < i);
        if (before == n) return &e->neighbour[i];
    }
    return e->neighbour;
}

/* What there is no picture of, and why. */
static const char *why_none(const basin_anomaly_explanation *e, const basin_anomaly_model *model) {
    if (e->nearby) return "does not fit into the memory allowed";
    return basin_anomaly_share(model) > 0
               ? "this model does not have"
               : "has no share in this detector, whose trees decide alone";
}

static basin_status draw(const basin_story *s, const basin_anomaly_model *model, const char *path,
                         basin_error *error) {
    const basin_anomaly_explanation *e = s->e;
    char id[RAYS + 1][BASIN_NODE_TEXT], title[200], subtitle[200];
    basin_star_ray ray[RAYS];
    int rays = 0;
    if (!e->has_attention)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: not drawn, since the picture shows attention, which %s; the "
                          "neighbours are listed",
                          path, why_none(e, model));
    for (; rays < RAYS && rays < e->neighbours; rays++) {
        const basin_anomaly_neighbour *n = most_attended(e, rays);
        ray[rays] = (basin_star_ray){basin_network_id(s->network, n->node, id[rays]), n->share,
                                     n->probability};
    }
    const char *name = basin_network_id(s->network, e->node, id[RAYS]);
    snprintf(title, sizeof title, "Node %.80s: score %.3f, rank %lld of %lld", name, e->probability,
             (long long)e->rank, (long long)s->network->nodes);
    snprintf(subtitle, sizeof subtitle, "energy %.4g, higher than that of %.1f %% of the nodes",
             e->energy, 100 * e->energy_below);
    basin_star star = {.title = title,
                       .subtitle = e->has_energy ? subtitle : NULL,
                       .name = name,
                       .score = e->probability,
                       .ray = ray,
                       .rays = rays,
                       .left_out = e->neighbours - rays};
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    if (status) return status;
    basin_star_write(writer.file, &star);
    return basin_writer_commit(&writer, error);
}

/* ---- running ---- */

static basin_status tell(const basin_story *s, const basin_anomaly_model *model, const options *o,
                         bool *printed, basin_error *error) {
    *printed = true;
    if (o->json)
        print_json(s);
    else
        *printed = print_text(s);
    return o->svg ? draw(s, model, o->svg, error) : BASIN_OK;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_cli_watch watch;
    basin_error error;
    basin_backend *backend = NULL;
    basin_anomaly_model *model = NULL;
    basin_network *network = NULL;
    basin_anomaly_explanation *e = NULL;
    int64_t node = 0;
    bool printed = true;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_anomaly_work work = {.size = sizeof work,
                               .watch = &watch.watch,
                               .memory = (size_t)(o->memory * (double)(1 << 30))};
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status) status = basin_anomaly_open(&model, operand[0], backend, &error);
    if (!status)
        status = basin_open_as_trained(&network, model, operand[0], &o->data, o->memory,
                                       operands - 2, operand + 2, o->quiet, &error);
    if (!status) status = basin_find_node(&node, network, operand[1], &error);
    if (!status) status = basin_anomaly_explain(&e, model, network, node, &work, &error);
    basin_cli_watch_end(&watch);
    basin_story s = {.e = e,
                     .network = network,
                     .schema = model ? basin_anomaly_get_schema(model) : NULL,
                     .neighbours = o->neighbours,
                     .features = o->features};
    if (!status) status = tell(&s, model, o, &printed, &error);
    basin_anomaly_explanation_free(e);
    basin_anomaly_close(model);
    basin_network_free(network);
    basin_backend_close(backend);
    if (status) return basin_report(&error);
    return printed ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

const basin_command basin_command_anomaly_explain = {
    .name = "anomaly explain",
    .summary = "Say why a node scores as it does",
    .operands = "MODEL NODE FILE...",
    .operands_least = 3,
    .operands_most = 18,
    .text = "Three views of one node. Its energy at the end of the descent, and how many nodes lie "
            "lower: what is unusual fits the memories and its neighbours badly. The features, its "
            "own and those of nodes nearby, that move its logit away from that of a typical node "
            "(one of median features) in its place. And the neighbours that this comes through, "
            "with the attention that it gives them and gets back. Both lists add up to the "
            "difference: integrated gradients of the network over the node and its surroundings, "
            "Shapley values of trees. Values are those of the table. score --explain tells of many "
            "nodes at once.",
    .example = "  basin anomaly explain model.safetensors A1042 accounts.csv transfers.csv\n"
               "  basin anomaly explain model.safetensors 17 amazon.npz --svg why.svg --json\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
