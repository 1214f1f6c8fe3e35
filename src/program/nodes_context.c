/* --in-context of basin anomaly score, explain and eval: labelled nodes as stored patterns. */
#include "base/number.h"
#include "base/sort.h"
#include "basin/random.h"
#include "program/nodes.h"

/* ---- opening ---- */

static void note_stored(const basin_args *args, const basin_context *context) {
    const basin_context_info *i = basin_context_get_info(context);
    if (i->reduced)
        basin_note(args, "%lld columns: their principal components are compared instead",
                   (long long)i->reduced);
    if (i->stored[0] + i->stored[1] < i->labelled[0] + i->labelled[1])
        basin_note(args,
                   "%lld of %lld anomalous and %lld of %lld normal nodes with a label are stored: "
                   "anomalies first, normal nodes near to them, and others at random",
                   (long long)i->stored[1], (long long)i->labelled[1], (long long)i->stored[0],
                   (long long)i->labelled[0]);
    if (i->labelled[1] < 5)
        basin_note(args, "only %lld anomalous node%s: expect little of such scores",
                   (long long)i->labelled[1], i->labelled[1] == 1 ? "" : "s");
}

void basin_args_context_read(basin_args *args) {
    if (!args->context.on) return;
    args->network.edgeless = true;
    if (!args->missing) args->missing = "keep"; /* gaps are known as such */
}

basin_status basin_args_context(basin_context **context, const basin_args *args,
                                const basin_network *network, basin_error *error) {
    BASIN_TRY(basin_context_open(context, args->context.weights, args->compute, error));
    return basin_context_read(*context, network, (size_t)(args->memory * (double)(1 << 30)), error);
}

basin_status basin_args_store(basin_context *context, const basin_args *args, const int32_t *label,
                              basin_error *error) {
    basin_context_options how = {
        .label = label, .passes = args->context.passes, .watch = &args->watch.watch};
    BASIN_TRY(basin_context_store(context, &how, error));
    if (!label) note_stored(args, context);
    return BASIN_OK;
}

/* ---- score ---- */

basin_status basin_context_score(double *probability, const basin_args *args,
                                 const basin_network *network, basin_error *error) {
    BASIN_AT_EXIT(basin_context_close_at) basin_context *context = NULL;
    int64_t count = 0;
    BASIN_SCRATCH_RAW(int64_t, node, network->nodes, "scores", error);
    BASIN_SCRATCH_RAW(double, found, network->nodes, "scores", error);
    BASIN_TRY(basin_args_context(&context, args, network, error));
    BASIN_TRY(basin_args_store(context, args, NULL, error));
    for (int64_t i = 0; i < network->nodes; i++) {
        probability[i] = NAN;
        if (network->label[i] < 0) node[count++] = i;
    }
    if (!count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: every node has a label; nothing to score",
                          network->path);
    BASIN_TRY(basin_context_predict(found, context, node, count, error));
    for (int64_t i = 0; i < count; i++) probability[node[i]] = found[i];
    return BASIN_OK;
}

/* ---- explain ---- */

static void put_agreement(basin_record *r, const basin_context *context,
                          const basin_context_source *s) {
    char name[BASIN_MAX_COLUMN], text[3 * BASIN_MAX_COLUMN] = "";
    if (basin_record_form(r) == BASIN_FORM_JSON) {
        basin_record_table(r, "agrees", NULL);
        for (int i = 0; i < BASIN_CONTEXT_AGREEING && s->column[i] >= 0; i++) {
            basin_record_row(r);
            basin_record_fields(r, "column=%s;value=%g;stored=%g;agreement=%g",
                                basin_context_column(name, context, s->column[i]), s->asked[i],
                                s->value[i], s->agreement[i]);
        }
        basin_record_end(r);
        return;
    }
    for (int i = 0; i < BASIN_CONTEXT_AGREEING && s->column[i] >= 0; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.100s %.3g (%.3g)",
                 i ? "; " : "", basin_context_column(name, context, s->column[i]), s->value[i],
                 s->asked[i]);
    basin_record_text(r, "agrees in (its value)", text);
}

void basin_record_context(basin_record *r, const basin_context *context,
                          const basin_context_explanation *e, const basin_network *network,
                          int64_t sources) {
    char id[BASIN_MAX_NODE];
    int64_t falls = 0;
    for (int64_t b = 0; b < e->blocks; b++) falls += e->energy[2 * b + 1] < e->energy[2 * b];
    basin_record_fields(r, "node=%s;probability=%.4f;logit=%+.3f;odds|log odds of labels=%+.3f",
                        basin_network_id(network, e->node, id), e->probability, e->logit, e->odds);
    basin_record_number(r, "anomalous|retrieved from anomalies", "%.3f", e->anomalous);
    basin_record_table(r, ".energy", NULL);
    for (int64_t b = 0; b < e->blocks; b++) {
        basin_record_row(r);
        basin_record_fields(r, ".begin=%g;.end=%g", e->energy[2 * b], e->energy[2 * b + 1]);
    }
    basin_record_end(r);
    basin_record_note(r, "its energy falls in %lld of %lld blocks", (long long)falls,
                      (long long)e->blocks);
    basin_record_table(r, "sources", "labelled nodes that its score was retrieved from:");
    for (int64_t i = 0; i < basin_int_min(e->sources, sources); i++) {
        const basin_context_source *s = &e->source[i];
        basin_record_row(r);
        basin_record_fields(r, "node=%s;label=%s;share=%.4f;moves|moves by=%+.4f",
                            basin_network_id(network, s->node, id),
                            s->label ? "anomalous" : "normal", s->share, s->move);
        put_agreement(r, context, s);
    }
    basin_record_end(r);
}

/* ---- eval ---- */

basin_status basin_labels_parse(int64_t labels[2], const char *text, basin_error *error) {
    const char *at = text;
    int64_t ones = 0, zeros = 0, max = BASIN_CONTEXT_LABELS;
    bool read = basin_integer_read(&ones, &at) && *at++ == ':' && basin_integer_read(&zeros, &at);
    if (!read || *at || ones < 1 || zeros < 1 || ones > max || zeros > max - ones)
        return basin_usage(error,
                           "--labels '%.40s'; expected ANOMALOUS:NORMAL, such as 20:180, at most "
                           "%d in all",
                           text, BASIN_CONTEXT_LABELS);
    labels[0] = zeros, labels[1] = ones;
    return BASIN_OK;
}

enum { QUERIES = 4000 };

basin_status basin_labels_draw(uint8_t *part, const int64_t labels[2], const basin_network *network,
                               uint64_t seed, uint64_t run, basin_error *error) {
    int64_t taken[2] = {0, 0}, tested = 0, tests[2] = {0, 0};
    BASIN_SCRATCH_RAW(int64_t, order, network->nodes, "an evaluation", error);
    basin_random_permutation(order, (size_t)network->nodes, seed, run);
    for (int64_t i = 0; i < network->nodes; i++) {
        int32_t y = network->label ? network->label[order[i]] : -1;
        part[order[i]] = BASIN_SPLIT_NONE;
        if (y < 0 || y > 1) continue;
        if (taken[y] < labels[y])
            part[order[i]] = BASIN_SPLIT_TRAIN, taken[y]++;
        else if (tested < QUERIES)
            part[order[i]] = BASIN_SPLIT_TEST, tested++, tests[y]++;
    }
    if (tests[0] && tests[1]) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: %lld anomalous and %lld normal labels leave no node of each class to "
                      "test on",
                      network->path, (long long)labels[1], (long long)labels[0]);
}

basin_status basin_context_compare(double *probability, basin_context *context,
                                   const basin_args *args, int model, const uint8_t *part,
                                   const basin_network *network, uint64_t seed,
                                   basin_error *error) {
    int64_t count = 0;
    BASIN_SCRATCH_RAW(int32_t, label, network->nodes, "an evaluation", error);
    BASIN_SCRATCH_RAW(int64_t, node, network->nodes, "an evaluation", error);
    BASIN_SCRATCH_RAW(double, found, network->nodes, "an evaluation", error);
    for (int64_t i = 0; i < network->nodes; i++) {
        label[i] = part[i] == BASIN_SPLIT_TRAIN ? network->label[i] : -1;
        if (part[i] == BASIN_SPLIT_TEST) node[count++] = i;
    }
    if (!model) BASIN_TRY(basin_args_store(context, args, label, error));
    BASIN_TRY(model ? basin_context_run_rival(found, context, (basin_context_rival)(model - 1),
                                              seed, node, count, error)
                    : basin_context_predict(found, context, node, count, error));
    for (int64_t i = 0; i < count; i++) probability[node[i]] = found[i];
    return BASIN_OK;
}
