/* basin serve: options and the life of the process; src/serve does the rest. */
#include "serve/serve.h"

#include "base/team/team.h"
#include "cli/cli.h"

static const basin_option table[] = {
    BASIN_TEXT(listen, 0, "listen", "HOST:PORT",
               "Where to listen. An address that others can reach needs --token; port 0: any that "
               "is free.",
               .text = "127.0.0.1:8470"),
    BASIN_TEXT(socket, 0, "socket", "PATH", "Listen on a Unix socket of mode 0600 instead.",
               .needs = "listen=127.0.0.1:8470"),
    BASIN_TEXT(token, 0, "token", "FILE",
               "Requests need this token: one line, in a file that only its owner may read."),
    BASIN_TEXT(journal, 0, "journal", "FILE", "Where additions are written [BASE.journal]."),
    BASIN_FLAG(read_only, "read-only", "Take no additions; a journal that is there is read."),
    BASIN_TEXT(training.log, 0, "log", "FILE",
               "One JSON object per request goes there instead of standard output."),
    BASIN_REAL(max_body, "max-body", "MIB", 0.001, 1024, "Longest body of a request.", .initial = 1,
               .more = true),
    BASIN_INTEGER(max_ids, "max-ids", "N", 1, 1e6,
                  "Most ids of a request, and most rows of an addition.", .initial = 1000,
                  .more = true),
    BASIN_INTEGER(connections, "connections", "N", 1, 60000,
                  "Most connections at a time; others are refused by 503.", .initial = 256,
                  .more = true),
    BASIN_REAL(timeout, "timeout", "SECONDS", 0.1, 3600,
               "Longest time for a body to arrive, for an answer to be computed, and of silence.",
               .initial = 10, .more = true),
    BASIN_INTEGER(cap, "cap", "N", 0, 1e8,
                  "Most accounts of a neighbourhood that a score computes; 0: the default, 1024.",
                  .more = true),
    BASIN_WORK_OPTIONS,
    BASIN_OPTIONS_END,
};

static void say_nothing(const char *format, ...) { (void)format; }

static basin_status run(basin_args *args, basin_error *error) {
    basin_serve_prepare();
    BASIN_TRY(basin_compute_open(args, error));
    basin_serving serving = {
        .model = args->operand[0],
        .base = args->operand[1],
        .listen = args->listen,
        .socket = args->socket,
        .token = args->token,
        .journal = args->journal,
        .log = args->training.log,
        .read_only = args->read_only,
        .max_body = (int64_t)(args->max_body * (1 << 20)),
        .max_ids = args->max_ids,
        .connections = args->connections,
        .threads = args->threads ? args->threads : basin_processors_here(),
        .cap = args->cap,
        .timeout = args->timeout,
        .memory = (size_t)(args->memory * (double)(1 << 30)),
        .backend = args->compute,
        .say = args->quiet ? say_nothing : basin_say,
    };
    return basin_serve(&serving, error);
}

const basin_command basin_command_serve = {"serve", table, .run = run};
