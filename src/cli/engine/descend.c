/* basin descend: lets given tokens fall down the energy of a given block, and shows the way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/version.h"
#include "cli/command.h"
#include "cli/engine/trace.h"
#include "verify/weights.h"

typedef struct options {
    const char *weights, *prefix, *output, *edges, *trace, *svg, *hopfield_kind;
    const char *backend, *products, *dtype;
    int64_t steps, threads, seed;
    double alpha, tolerance, noise, hopfield_power;
    bool guard, accelerate, self, no_attention, no_hopfield, quiet, json;
} options;

static const options defaults = {.prefix = "",
                                 .hopfield_kind = "relu",
                                 .hopfield_power = 3,
                                 .backend = "cpu",
                                 .products = "f32",
                                 .steps = 12,
                                 .alpha = 0.1};

static const basin_option table[] = {
    BASIN_TEXT(options, weights, 'w', "weights", "FILE",
               "The weights of the block; without it, TOKENS must hold them."),
    BASIN_TEXT(options, prefix, 0, "prefix", "TEXT",
               "What the names of weights and tokens begin with: block0. for instance."),
    BASIN_TEXT(options, output, 'o', "output", "FILE",
               "Write the final tokens x, their activations g, the trace and the settings, as "
               "safetensors, or as npz if the name ends so.",
               .writes = true),
    BASIN_INTEGER(options, steps, "steps", "T", 0, 1000000, "Most steps to take."),
    BASIN_REAL(options, alpha, "alpha", "X", 0, 1e300, "Size of a step."),
    BASIN_REAL(options, tolerance, "tolerance", "X", 0, 1e30,
               "Stop when no element of g moves by more than this in a step; 0: never."),
    BASIN_FLAG(options, guard, 0, "guard",
               "Halve any step that would raise the energy until it does not."),
    BASIN_FLAG(options, accelerate, 0, "accelerate",
               "Nesterov's momentum, dropped where the energy would rise: fewer steps to a "
               "--tolerance."),
    BASIN_REAL(
        options, noise, "noise", "SIGMA", 0, 1e30,
        "Langevin noise: add sqrt(alpha) times normal noise of this deviation in each step."),
    BASIN_SWITCH(options, self, "self", "Let a token attend to itself.",
                 .needs = "no-attention=off"),
    BASIN_FLAG(options, no_attention, 0, "no-attention", "Leave attention out of the energy."),
    BASIN_FLAG(options, no_hopfield, 0, "no-hopfield",
               "Leave the Hopfield network out of the energy."),
    BASIN_TEXT(options, hopfield_kind, 0, "hopfield-kind", "relu|power|softmax",
               "What the Hopfield network makes of a memory's overlap.",
               .needs = "no-hopfield=off"),
    BASIN_REAL(options, hopfield_power, "hopfield-power", "N", 1, 100, "The n of the power.",
               .needs = "no-hopfield=off hopfield-kind=power"),
    BASIN_TEXT(options, edges, 0, "edges", "FILE",
               "Attend along the edges of a graph only. The file has a tensor edges [E, 2], "
               "undirected, or row [N + 1] and col [pairs].",
               .needs = "no-attention=off"),
    BASIN_TEXT(options, trace, 0, "energy-trace", "FILE", "Write the energies of all steps as CSV.",
               .writes = true),
    BASIN_TEXT(options, svg, 0, "svg", "FILE", "Draw the energies of all steps there.",
               .writes = true),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_SEED_FOR(options, "noise!=0"),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

/* All that a descent owns; freed in one place. */
typedef struct job {
    const options *o;
    basin_bundle *tokens_file, *weights_file;
    const basin_tensor *tokens;
    basin_weights weights;
    basin_pairs pairs;
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_block block;
    basin_pattern pattern;
    basin_energy energy;
    basin_descent *descent;
    basin_descent_result result;
} job;

static void job_free(job *j) {
    basin_descent_result_free(&j->result);
    basin_descent_free(j->descent);
    basin_store_free(j->store);
    basin_params_free(&j->params);
    basin_graph_free(j->graph);
    basin_backend_close(j->backend);
    basin_pairs_free(&j->pairs);
    basin_weights_free(&j->weights);
    basin_bundle_free(j->weights_file);
    basin_bundle_free(j->tokens_file);
}

/* The kind of Hopfield network; false where there is none of that name. 0.1 said power3. */
static bool read_kind(basin_block_config *config, const options *o) {
    const char *kind = o->hopfield_kind;
    bool power = !strncmp(kind, "power", 5);
    config->hopfield = power ? BASIN_HOPFIELD_POWER : basin_hopfield_named(kind);
    if (!power) return !strcmp(kind, "relu") || !strcmp(kind, "softmax");
    char *end = (char *)kind + 5;
    config->power = *end ? strtod(end, &end) : o->hopfield_power;
    return !*end && config->power > 1 && config->power <= 100;
}

static basin_status read_files(job *j, const char *path, const basin_block_config *config,
                               basin_error *error) {
    const options *o = j->o;
    basin_status status = basin_bundle_read(&j->tokens_file, path, error);
    if (!status && o->weights) status = basin_bundle_read(&j->weights_file, o->weights, error);
    if (!status) status = basin_tokens_find(&j->tokens, j->tokens_file, o->prefix, error);
    const basin_bundle *source = j->weights_file ? j->weights_file : j->tokens_file;
    if (!status) status = basin_weights_read(&j->weights, source, o->prefix, config, error);
    if (status) return status;
    basin_shape shape = j->tokens->shape;
    if (shape.dim[shape.rank - 1] != j->weights.config.dim) {
        char text[BASIN_SHAPE_TEXT];
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: tokens %s; wanted their last axis to be %lld, the width of %s", path,
                          basin_shape_print(text, shape), (long long)j->weights.config.dim,
                          basin_bundle_path(source));
    }
    if (!o->edges) return BASIN_OK;
    if (shape.rank == 3)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a batch of %lld token sets with --edges; wanted tokens [N, D]", path,
                          (long long)shape.dim[0]);
    return basin_edges_read(&j->pairs, o->edges, shape.dim[0], o->self, error);
}

static basin_status build(job *j, basin_block_bound *bound, basin_error *error) {
    const options *o = j->o;
    j->graph = basin_graph_new();
    if (!j->graph) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    basin_params_begin(&j->params, j->graph);
    basin_expr x = basin_input(j->graph, "x", j->tokens->shape);
    j->pattern = o->self ? BASIN_ALL_PAIRS : BASIN_OTHER_PAIRS;
    if (o->edges)
        j->pattern =
            basin_pairs_declare(j->graph, "pairs", j->pairs.queries, j->pairs.keys, j->pairs.pairs);
    if (basin_block_declare(&j->block, &j->params, "", &j->weights.config)) {
        if (error) *error = *basin_graph_error(j->graph);
        return basin_graph_error(j->graph)->status;
    }
    *bound = (basin_block_bound){.block = &j->block, .pattern = &j->pattern};
    j->energy = basin_block_energy(bound);
    basin_descent_spec spec = {.steps = (int)o->steps,
                               .alpha = o->alpha,
                               .noise = o->noise,
                               .noise_seed = (uint64_t)o->seed,
                               .tolerance = o->tolerance,
                               .guard = o->guard,
                               .accelerate = o->accelerate};
    return basin_descent_new(&j->descent, j->store, &j->energy, x, &spec, error);
}

static basin_status compute(job *j, basin_error *error) {
    basin_block_bound bound;
    const options *o = j->o;
    basin_status status =
        basin_option_backend(&j->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = basin_store_new(&j->store, j->backend, error);
    if (!status) status = basin_weights_store(&j->weights, j->store, error);
    if (!status) status = build(j, &bound, error);
    if (!status && o->edges)
        status = basin_pairs_write(basin_descent_plan(j->descent), &j->pattern, &j->pairs, error);
    return status ? status : basin_descent_run(j->descent, &j->result, j->tokens, error);
}

/* ---- results ---- */

static basin_status add_tensor(basin_bundle *out, const char *name, const void *data,
                               basin_dtype from, basin_dtype to, basin_shape shape,
                               basin_error *error) {
    basin_tensor view = basin_tensor_borrow(data, from, shape), copy = {0};
    basin_status status = basin_tensor_new(&copy, to, shape, error);
    if (!status) status = basin_tensor_convert(&copy, &view, error);
    if (!status) status = basin_bundle_add(out, name, &copy, error);
    basin_tensor_free(&copy);
    return status;
}

static basin_status add_tensors(basin_bundle *out, const job *j, basin_error *error) {
    const basin_descent_result *r = &j->result;
    basin_dtype dtype = basin_backend_dtype(j->backend);
    basin_shape trace = j->tokens->shape.rank == 3 ? BASIN_SHAPE(r->steps + 1, r->parts, r->samples)
                                                   : BASIN_SHAPE(r->steps + 1, r->parts);
    basin_status status = add_tensor(out, "x", r->x.data, r->x.dtype, dtype, r->x.shape, error);
    if (!status) status = add_tensor(out, "g", r->g.data, r->g.dtype, dtype, r->g.shape, error);
    if (!status) status = add_tensor(out, "energy", r->energy, BASIN_F64, BASIN_F64, trace, error);
    if (!status)
        status = add_tensor(out, "change", r->change, BASIN_F64, BASIN_F64, BASIN_SHAPE(r->steps),
                            error);
    return status;
}

static basin_status add_setting(basin_bundle *out, const char *key, const char *format,
                                double number, const char *text, basin_error *error) {
    char value[BASIN_NUMBER_TEXT + 300];
    if (text)
        snprintf(value, sizeof value, format, text);
    else
        basin_number_print(value, number);
    return basin_bundle_meta_set(out, key, value, error);
}

/* What would repeat the run, by the names of the options. */
static basin_status add_settings(basin_bundle *out, const job *j, basin_error *error) {
    const options *o = j->o;
    const struct {
        const char *key, *text;
        double number;
    } all[] = {{"format", "basin descend", 0},
               {"version", basin_version(), 0},
               {"backend", o->backend, 0},
               {"products", o->products, 0},
               {"dtype", basin_dtype_name(basin_backend_storage(j->backend)), 0},
               {"steps", NULL, (double)o->steps},
               {"alpha", NULL, o->alpha},
               {"tolerance", NULL, o->tolerance},
               {"noise", NULL, o->noise},
               {"seed", NULL, (double)o->seed},
               {"guard", o->guard ? "true" : "false", 0},
               {"accelerate", o->accelerate ? "true" : "false", 0},
               {"self", o->self ? "true" : "false", 0},
               {"attention", o->no_attention ? "false" : "true", 0},
               {"hopfield", o->no_hopfield ? "none" : o->hopfield_kind, 0},
               {"hopfield_power", NULL, o->hopfield_power},
               {"pairs", o->edges ? "list" : "all", 0},
               {"tokens_file", basin_bundle_path(j->tokens_file), 0},
               {"weights_file", o->weights ? o->weights : basin_bundle_path(j->tokens_file), 0},
               {"steps_taken", NULL, j->result.steps},
               {"converged", j->result.converged ? "true" : "false", 0},
               {"halvings", NULL, (double)j->result.halvings},
               {"energy_parts", j->energy.parts > 1 ? "attention,hopfield" : j->energy.name[0], 0}};
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++)
        status = add_setting(out, all[i].key, "%s", all[i].number, all[i].text, error);
    return status;
}

static basin_status write_result(const job *j, basin_error *error) {
    basin_bundle *out = NULL;
    basin_status status = basin_bundle_new(&out, error);
    if (!status) status = add_tensors(out, j, error);
    if (!status) status = add_settings(out, j, error);
    if (!status) status = basin_bundle_write(j->o->output, out, error);
    basin_bundle_free(out);
    return status;
}

static bool print_result(const job *j, const basin_trace *trace) {
    if (j->o->json) {
        basin_json json = basin_json_begin(stdout);
        basin_json_text(&json, "backend", j->o->backend);
        basin_trace_json(trace, &json);
        basin_json_end(&json);
        return true;
    }
    if (!basin_trace_print(trace, stdout)) return false;
    if (j->result.converged)
        printf("converged: no element of g moved by more than %g in the last step\n",
               j->o->tolerance);
    if (j->o->guard) printf("steps halved by the guard: %lld\n", (long long)j->result.halvings);
    return true;
}

static basin_status write_files(const job *j, const basin_trace *trace, basin_error *error) {
    const options *o = j->o;
    basin_status status = o->output ? write_result(j, error) : BASIN_OK;
    if (!status && o->trace) status = basin_trace_csv(trace, o->trace, error);
    if (!status && o->svg) status = basin_trace_plot(trace, o->svg, "Energy descent", error);
    return status;
}

static int finish(const job *j) {
    basin_error error;
    basin_trace trace = {&j->result, j->energy.name};
    if (!print_result(j, &trace)) return BASIN_EXIT_FAILURE;
    int broken = basin_trace_broken(&trace), risen = basin_trace_risen(&trace);
    if (broken >= 0) {
        basin_fail(&error, BASIN_BAD_VALUE,
                   "the energy is not finite at step %d; nothing is written (a smaller --alpha or "
                   "--guard may help)",
                   broken);
        return basin_report(&error);
    }
    if (risen >= 0 && j->o->noise == 0 && !j->o->quiet)
        fprintf(
            stderr,
            "basin: note: the energy rose in step %d; --guard or a smaller --alpha prevents it\n",
            risen);
    return write_files(j, &trace, &error) ? basin_report(&error) : BASIN_EXIT_OK;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    (void)operands;
    basin_block_config config = {.no_attention = o->no_attention, .no_hopfield = o->no_hopfield};
    if (o->no_attention && o->no_hopfield)
        return basin_report_usage(&basin_command_descend,
                                  "--no-attention and --no-hopfield leave no energy");
    if (!read_kind(&config, o))
        return basin_report_usage(&basin_command_descend,
                                  "--hopfield-kind: '%s' is not relu, softmax, or power with a "
                                  "--hopfield-power above 1",
                                  o->hopfield_kind);
    if (o->guard && o->noise > 0)
        return basin_report_usage(&basin_command_descend,
                                  "--guard and --noise: noise may raise the energy, which the "
                                  "guard forbids");
    basin_error error;
    job j = {.o = o};
    basin_status status = read_files(&j, operand[0], &config, &error);
    if (!status) status = compute(&j, &error);
    int code = status ? basin_report(&error) : finish(&j);
    job_free(&j);
    return code;
}

const basin_command basin_command_descend = {
    .name = "descend",
    .summary = "Run the dynamics on given tokens and block weights",
    .operands = "TOKENS",
    .operands_least = 1,
    .operands_most = 1,
    .text =
        "Tokens x follow x <- x - alpha dE/dg with g = layernorm(x) and E the energy of the block: "
        "attention plus a Hopfield network. Prints the energy before each step and at the end, in "
        "total and by part, summed over a batch.\n\n"
        "TOKENS is a safetensors or npz file with tokens [N, D] or [B, N, D]: x, x0, or the only "
        "tensor of two or three axes. Weights are wk and wq [H, Y, D], xi [M, D], and where they "
        "are there gamma [], delta [D], beta [H], mix [H, H]; or the published names Wk, Wq, Xi "
        "[D, M], LNORM_gamma, LNORM_bias.",
    .example = "  basin descend tokens.npz -w weights.npz --self -o end.safetensors\n"
               "  basin descend case.safetensors --guard --tolerance 1e-4 --steps 1000 \\\n"
               "      --energy-trace trace.csv --svg trace.svg\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
