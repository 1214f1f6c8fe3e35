#define _GNU_SOURCE /* memmem */
/* Fuzz target: any bytes as a request to the server, without a socket: a line METHOD PATH, lines of
 * headers, an empty line, a body. The answer is JSON of a known status. */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/serving.h"
#include "tasks/nodes/serve/server.h"

enum { REOPEN = 500 }; /* additions, so that the network stays small */

static void say(const char *format, ...) { (void)format; }

static void must_at(bool done, int line) {
    if (done) return;
    fprintf(stderr, "fuzz_request.c:%d: does not hold\n", line);
    abort();
}
#define must(done) must_at(done, __LINE__)

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    must(file && fputs(text, file) >= 0 && !fclose(file));
}

typedef struct world {
    char folder[100], nodes[120], edges[120], model[120], base[120], journal[MEMORY_PATH];
    basin_backend *backend;
    basin_serving serving;
    basin_server *server;
    int fd;
} world;

static void train(world *w) {
    const char *path[] = {w->edges, w->nodes};
    basin_network *n;
    basin_settings *settings;
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_network_options read = {.table = &(basin_table_options){.edge_type = "kind"},
                                  .missing = BASIN_MISSING_MEAN,
                                  .unite = true};
    must(!basin_network_open(&n, path, 2, &read, NULL) && !basin_network_write(w->base, n, NULL));
    must(!basin_settings_new(&settings, "anomaly", NULL, NULL));
    static const char *const set[][2] = {
        {"trees", "0"}, {"members", "1"}, {"epochs", "1"}, {"dim", "4"}, {"head_dim", "2"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        must(!basin_settings_set(settings, set[i][0], set[i][1], NULL));
    uint8_t part[4] = {BASIN_SPLIT_TRAIN, BASIN_SPLIT_TRAIN, BASIN_SPLIT_VAL, BASIN_SPLIT_VAL};
    basin_nodes_data data = {.network = n, .part = part};
    basin_training_options training = {.backend = w->backend};
    must(!basin_nodes_train(&model, &outcome, settings, &data, &training, NULL) &&
         !basin_nodes_write(w->model, model, NULL));
    basin_nodes_close(model);
    basin_network_close(n);
    basin_settings_free(settings);
}

static void remove_files(void) {
    char path[200];
    static const char *const name[] = {"n.csv", "e.csv", "m.safetensors", "b.basin"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "/tmp/basin-fuzz-%ld-%s", (long)getpid(), name[i]);
        unlink(path);
    }
}

static void open_server(world *w) {
    basin_error error;
    if (w->server) {
        basin_server_close(w->server, true);
        free(w->server);
        close(w->fd);
    }
    w->fd = memory_file(w->journal, NULL, 0);
    w->server = calloc(1, sizeof *w->server);
    must(w->server);
    w->server->o = &w->serving;
    must(!basin_server_open(w->server, &error));
}

static world *world_get(void) {
    static world w;
    if (w.server && w.server->meters.records < REOPEN) return &w;
    if (!w.server) {
        atexit(remove_files);
        snprintf(w.nodes, sizeof w.nodes, "/tmp/basin-fuzz-%ld-n.csv", (long)getpid());
        snprintf(w.edges, sizeof w.edges, "/tmp/basin-fuzz-%ld-e.csv", (long)getpid());
        snprintf(w.model, sizeof w.model, "/tmp/basin-fuzz-%ld-m.safetensors", (long)getpid());
        snprintf(w.base, sizeof w.base, "/tmp/basin-fuzz-%ld-b.basin", (long)getpid());
        write_text(w.nodes, SERVING_NODES), write_text(w.edges, SERVING_EDGES);
        must(!basin_backend_open(&w.backend, &(basin_compute){.backend = "ref", .threads = 1},
                                 NULL));
        train(&w);
        w.serving = (basin_serving){.model = w.model,
                                    .base = w.base,
                                    .listen = "127.0.0.1:1",
                                    .host = "scores.example",
                                    .journal = w.journal,
                                    .max_body = 1 << 20,
                                    .max_ids = 20,
                                    .connections = 4,
                                    .threads = 1,
                                    .timeout = 60,
                                    .backend = w.backend,
                                    .say = say};
    }
    open_server(&w);
    return &w;
}

/* "Name: value" lines; the arguments of the path, without decoding. */
static void read_head(basin_request *r, char *head) {
    char *line = strtok(head, "\n"), *path = line ? strchr(line, ' ') : NULL;
    r->post = line && !strncmp(line, "POST ", 5), r->get = line && !strncmp(line, "GET ", 4);
    char *query = path ? strchr(path, '?') : NULL;
    if (query) *query++ = 0;
    r->route = basin_route_find(path ? path + 1 : "");
    while ((line = strtok(NULL, "\n"))) {
        char *value = strstr(line, ": ");
        if (!value) continue;
        *value = 0, value += 2;
        const char **to = !strcmp(line, "Host")            ? &r->host
                          : !strcmp(line, "Origin")        ? &r->origin
                          : !strcmp(line, "Authorization") ? &r->authorization
                          : !strcmp(line, "Content-Type")  ? &r->type
                                                           : NULL;
        if (to) *to = value;
    }
    for (char *pair = query ? strtok(query, "&") : NULL; pair; pair = strtok(NULL, "&")) {
        char *value = strchr(pair, '=');
        if (value) *value++ = 0;
        basin_request_argument(r, pair, value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    world *w = world_get();
    const uint8_t *end = size > 1 ? memmem(data, size, "\n\n", 2) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    char *head = malloc(length + 1);
    must(head);
    memcpy(head, data, length), head[length] = 0;
    basin_request r = {
        .server = w->server, .local = "127.0.0.1", .arguments = cJSON_CreateObject()};
    read_head(&r, head);
    r.length = end ? size - length - 2 : 0;
    r.body = malloc(r.length + 1);
    must(r.body && r.arguments);
    if (end) memcpy(r.body, end + 2, r.length);
    if (r.route != RELOAD) basin_request_answer(&r); /* it would read the model every time */
    char *text = r.answer.file ? basin_memory_file_close(&r.answer) : NULL;
    if (r.status) {
        static const int known[] = {200, 400, 403, 404, 405, 413, 415, 422};
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= r.status == known[i];
        must(found && text);
        cJSON *tree = r.route == METRICS && r.status == 200 ? NULL : cJSON_Parse(text);
        must(r.route == METRICS || (tree && cJSON_GetObjectItem(tree, "model")));
        must(r.status == 200 || r.status == 404 || cJSON_GetObjectItem(tree, "error"));
        cJSON_Delete(tree);
    }
    cJSON_Delete(r.arguments);
    free(text), free(r.body), free(head);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char *const seed[] = {
        "GET /score?id=a&reasons=2\nHost: localhost:8470\n\n",
        "GET /explain?id=c\nHost: [::1]:1\nOrigin: http://scores.example\n\n",
        "POST /score\nHost: 127.0.0.1\nContent-Type: "
        "application/json\n\n{\"ids\":[\"a\",\"b\",\"x\"]}",
        "POST /explain\nContent-Type: application/json; "
        "charset=utf-8\n\n{\"id\":\"d\",\"reasons\":9}",
        "POST /add\nContent-Type: application/json\n\n" SERVING_ADDITION,
        "POST /add\nContent-Type: application/json\n\n{\"accounts\":[{\"id\":\"new\"}]}",
        "GET /metrics\nHost: scores.example\n\n",
        "GET /health\nOrigin: null\n\n",
    };
    if (index >= (int)(sizeof seed / sizeof *seed)) return 0;
    memcpy(out, seed[index], strlen(seed[index]));
    return strlen(seed[index]);
}
