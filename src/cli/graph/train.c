/* basin graph train: a model from a set of graphs. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/graph/options.h"
#include "cli/training.h"
#include "cli/watch.h"
#include "io/file.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    const char *out, *log, *cache, *backend, *products;
    double validation;
    int64_t threads, save_every;
    bool resume, quiet, json;
} options;

static const options defaults = {.start = {.preset = "default"},
                                 .out = "model.safetensors",
                                 .backend = "cpu",
                                 .products = "f32",
                                 .save_every = 60,
                                 .validation = 0.1};

static const basin_option table[] = {
    BASIN_TEXT(options, out, 'o', "output", "FILE", "The model file to write."),
    BASIN_TEXT(options, log, 0, "log", "FILE", "Write a log, one JSON object a line."),
    BASIN_FLAG(options, resume, 0, "resume",
               "Go on from the checkpoint that an interrupted run left. Ends with the same bits as "
               "a run that was never cut."),
    BASIN_INTEGER(options, save_every, "save-every", "SECONDS", 1, 1e9,
                  "How often a checkpoint is written."),
    BASIN_REAL(options, validation, "validation", "X", 0, 0.5,
               "A set without splits: this part of it, stratified, chooses the epoch; 0: the last "
               "epoch is kept."),
    BASIN_OPTIONS_START(options),
    BASIN_GRAPH_OPTION_CACHE(options),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_PRODUCTS(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    char checkpoint[4096];
    basin_graphset set;
    basin_positions positions;
    basin_folds folds; /* one: what is trained on, what chooses the epoch */
    basin_backend *backend;
    basin_graphs_session session;
    basin_graphs_outcome outcome;
} job;

/* The set's own split, or a stratified part for validation. */
static basin_status divide(job *j, basin_error *error) {
    const basin_graphset *set = &j->set;
    basin_fold *f;
    j->folds = (basin_folds){1, calloc(1, sizeof *j->folds.fold)};
    if (!(f = j->folds.fold)) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a split");
    if (set->split[0]) {
        f->count[0] = set->split[0], f->count[1] = set->split[1];
        f->item[0] = basin_graphs_range(0, f->count[0]);
        f->item[1] = basin_graphs_range(f->count[0], f->count[1]);
    } else {
        f->count[0] = set->graphs;
        f->item[0] = basin_graphs_range(0, set->graphs);
        if (f->item[0])
            return basin_fold_part(
                f, set->task == BASIN_GRAPHS_CLASSES ? set->class_of : NULL, j->o->validation,
                (uint64_t)((const basin_graphs_settings *)j->o->settings->values)->seed, error);
    }
    return f->item[0] ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "no memory for a split");
}

static basin_status open_all(job *j, const char *path, basin_error *error) {
    const options *o = j->o;
    char text[4096];
    const char *cache = basin_graphs_cache(o->cache, text, sizeof text);
    basin_status status =
        basin_graphs_settings_check((const basin_graphs_settings *)o->settings->values, error);
    if (!status) status = basin_graphset_read(&j->set, path, error);
    if (!status) status = basin_graphs_check_labels(&j->set, path, error);
    if (!status)
        status = basin_graphset_add_edge_walks(
            &j->set, ((const basin_graphs_settings *)o->settings->values)->edge_walks, error);
    if (!status) status = divide(j, error);
    if (!status)
        status = basin_graphs_session_positions(&j->positions,
                                                (const basin_graphs_settings *)o->settings->values,
                                                &j->set, cache, error);
    if (!status) status = basin_backend_open(&j->backend, o->backend, (int)o->threads, error);
    if (status) return status;
    basin_backend_set_products(j->backend, basin_option_products(o->products));
    return basin_graphs_session_new(&j->session, (const basin_graphs_settings *)o->settings->values,
                                    &j->set, j->folds.fold->item[0], j->folds.fold->count[0],
                                    j->backend, error);
}

/* Before the time is spent: whether the model's file can be written where it is wanted. */
static basin_status check_out(const job *j, basin_error *error) {
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, j->checkpoint, error);
    if (!status) basin_writer_discard(&writer);
    return status;
}

static basin_status train(job *j, basin_error *error) {
    const options *o = j->o;
    const basin_fold *f = j->folds.fold;
    struct stat info;
    basin_cli_watch watch;
    basin_graphs_run run = {.set = &j->set,
                            .positions = &j->positions,
                            .train = f->item[0],
                            .trains = f->count[0],
                            .validation = f->item[1],
                            .validations = f->count[1],
                            .checkpoint = j->checkpoint,
                            .checkpoint_seconds = (double)o->save_every,
                            .log = o->log,
                            .patience =
                                ((const basin_graphs_settings *)o->settings->values)->patience,
                            .resume = o->resume,
                            .watch = &watch.watch};
    if (o->resume && stat(j->checkpoint, &info))
        return basin_fail(error, BASIN_IO, "%s: no checkpoint to go on from", j->checkpoint);
    basin_cli_watch_begin(&watch, o->quiet);
    basin_status status = basin_graphs_train(&j->outcome, &j->session, &run, error);
    basin_cli_watch_end(&watch);
    if (status || j->outcome.stopped) return status;
    status = basin_graphs_session_write(o->out, &j->session, error);
    if (!status) unlink(j->checkpoint);
    return status;
}

static void print_json(const job *j) {
    const basin_graphs_outcome *r = &j->outcome;
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "model", j->o->out);
    basin_json_boolean(&json, "finished", !r->stopped);
    basin_json_text(&json, "data", j->set.name);
    basin_json_text(&json, "task", basin_graphs_target_name(j->set.task));
    basin_json_integer(&json, "parameters", basin_graphs_session_parameters(&j->session));
    basin_json_integer(&json, "train_graphs", j->folds.fold->count[0]);
    basin_json_integer(&json, "epochs", r->epochs);
    basin_json_integer(&json, "best_epoch", r->best_epoch);
    basin_json_number(&json, "train_loss", r->loss);
    if (j->folds.fold->count[1]) {
        basin_json_object(&json, "validation");
        basin_graphs_score_json(&json, &r->validation, j->set.task);
        basin_json_end(&json);
    }
    basin_json_number(&json, "seconds", r->seconds);
    basin_json_number(&json, "epoch_seconds", r->epoch_seconds);
    basin_json_integer(&json, "memory_bytes", (int64_t)r->bytes);
    basin_json_end(&json);
}

static void print_text(const job *j) {
    const basin_graphs_outcome *r = &j->outcome;
    char text[200];
    if (r->stopped) {
        printf(
            "interrupted after %lld epochs; the checkpoint is %s; to go on, give the same command "
            "with --resume\n",
            (long long)r->epochs, j->checkpoint);
        return;
    }
    printf("%s: %lld parameters, trained on %lld graphs for %lld epochs, loss %.4f\n", j->o->out,
           (long long)basin_graphs_session_parameters(&j->session),
           (long long)j->folds.fold->count[0], (long long)r->epochs, r->loss);
    if (j->folds.fold->count[1]) {
        basin_graphs_score_text(text, sizeof text, &r->validation, j->set.task);
        printf("validation, which chose epoch %lld: %s\n", (long long)r->best_epoch, text);
    }
    printf("%.0f s, %.3g s an epoch, %.0f MiB\n", r->seconds, r->epoch_seconds,
           (double)r->bytes / 1048576);
}

static void job_free(job *j) {
    basin_graphs_session_close(&j->session);
    if (j->backend) basin_backend_close(j->backend);
    basin_positions_free(&j->positions);
    basin_folds_free(&j->folds);
    basin_graphset_free(&j->set);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    job j = {.o = o};
    if (o->start.print_config) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_graph_train, "wants DATA");
    snprintf(j.checkpoint, sizeof j.checkpoint, "%s.checkpoint", o->out);
    basin_status status = check_out(&j, &error);
    if (!status) status = open_all(&j, operand[0], &error);
    if (!status) status = train(&j, &error);
    int code = status || j.outcome.stopped ? BASIN_EXIT_FAILURE : BASIN_EXIT_OK;
    if (status)
        code = basin_report(&error);
    else if (o->json)
        print_json(&j);
    else
        print_text(&j);
    job_free(&j);
    return code;
}

const basin_command basin_command_graph_train = {
    .name = "graph train",
    .summary = "Train a model of graphs: classes of graphs or nodes, or values",
    .operands = "DATA",
    .operands_least = 0,
    .operands_most = 1,
    .text =
        "DATA is a TUDataset (folder or zip), a packed set (basin graph make), or ZINC as npz. A "
        "set with splits is trained on its training part, and its validation part chooses the "
        "epoch; otherwise --validation sets a part aside. A checkpoint stands beside the model "
        "while it is trained.",
    .example = "  basin graph train PROTEINS.zip -o proteins.safetensors\n"
               "  basin graph train zinc12k.npz --preset zinc-default -o zinc.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .task = "graphs",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run = run,
};
