/* basin serve: options and the life of the process; src/tasks/nodes/serve does the work. */
#include "tasks/nodes/serve/serve.h"
#include "base/info.h"

#include "base/parallel.h"
#include "program/cli.h"

typedef struct options {
    BASIN_ARGS;
    const char *listen, *socket, *host, *token, *journal;
    int64_t max_ids, connections, cap;
    double max_body, timeout;
    bool read_only, allow_future, allow_unknown;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_FLAG(context.on, "in-context"),
    BASIN_INTEGER(context.passes, "passes", "N", 1, 4, .needs = "in-context=on", .initial = 1,
                  .more = true),
    BASIN_TEXT(context.weights, 0, "weights", "FILE", .needs = "in-context=on", .more = true),
    BASIN_TEXT(listen, 0, "listen", "HOST:PORT", .text = "127.0.0.1:8470"),
    BASIN_TEXT(socket, 0, "socket", "PATH", .needs = "listen=127.0.0.1:8470"),
    BASIN_TEXT(host, 0, "host", "NAMES"),
    BASIN_TEXT(token, 0, "token", "FILE"),
    BASIN_TEXT(journal, 0, "journal", "FILE"),
    BASIN_FLAG(read_only, "read-only"),
    BASIN_FLAG(allow_future, "allow-future", .needs = "in-context=off read-only=off"),
    BASIN_FLAG(allow_unknown, "allow-unknown", .needs = "in-context=off read-only=off"),
    BASIN_TEXT(training.log, 0, "log", "FILE"),
    BASIN_REAL(max_body, "max-body", "MIB", 0.001, 1024, .initial = 1, .more = true),
    BASIN_INTEGER(max_ids, "max-ids", "N", 1, 1e6, .initial = 1000, .more = true),
    BASIN_INTEGER(connections, "connections", "N", 1, 60000, .initial = 256, .more = true),
    BASIN_REAL(timeout, "timeout", "SECONDS", 0.1, 3600, .initial = 10, .more = true),
    BASIN_INTEGER(cap, "cap", "N", 0, 1e8, .needs = "in-context=off", .more = true),
    BASIN_OPTION_JSON,
    BASIN_WORK_OPTIONS,
    BASIN_OPTIONS_END,
};

static void say_nothing(const char *format, ...) { (void)format; }

static basin_status run(void *context, basin_error *error) {
    options *o = context;
    bool labels = o->context.on;
    if (labels && !o->operands)
        return basin_usage(error, "--in-context needs files: ACCOUNTS, with labels, and TRANSFERS");
    if (!labels && o->operands != 2) return basin_usage(error, "needs MODEL BASE");
    basin_serve_prepare();
    BASIN_TRY(basin_compute_open(&o->args, error));
    basin_serving serving = {
        .model = labels ? NULL : o->operand[0],
        .base = o->operand[labels ? 0 : 1],
        .files = labels ? (const char *const *)o->operand : NULL,
        .file_count = o->operands,
        .passes = o->context.passes,
        .weights = o->context.weights,
        .listen = o->listen,
        .socket = o->socket,
        .host = o->host,
        .token = o->token,
        .journal = o->journal,
        .log = o->training.log,
        .read_only = o->read_only,
        .json = o->json,
        .allow_future = o->allow_future,
        .allow_unknown = o->allow_unknown,
        .max_body = (int64_t)(o->max_body * (1 << 20)),
        .max_ids = o->max_ids,
        .connections = o->connections,
        .threads = o->threads ? o->threads : basin_machine_info_now().processors,
        .cap = o->cap,
        .timeout = o->timeout,
        .memory = (size_t)(o->memory * (double)(1 << 30)),
        .backend = o->compute,
        .say = o->quiet ? say_nothing : basin_say,
    };
    return basin_serve(&serving, error);
}

const basin_command basin_command_serve = {BASIN_COMMAND("serve", table), .run = run};
