/* What each request does, and its answer. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <strings.h>

#include "base/clock.h"
#include "base/file.h"
#include "tasks/nodes/serve/server.h"

/* ---- answers ---- */

/* A JSON object with the model's id, the journal's position and these fields, numbers and plain
 * words; it is left open. NULL without memory, which http.c then says. */
static FILE *begin(basin_request *r, int status, const char *format, ...) {
    va_list args;
    if (r->answer.file) free(basin_memory_file_close(&r->answer));
    r->status = status;
    FILE *file = basin_memory_file_open(&r->answer);
    if (!file) return NULL;
    fprintf(file, "{\"model\":\"%s\",\"journal\":%lld,", r->model, (long long)r->journal);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    return file;
}

void basin_request_fail(basin_request *r, int status, const char *format, ...) {
    char text[BASIN_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    FILE *file = begin(r, status, "\"status\":%d,\"request\":\"%s\",\"error\":", status, r->name);
    if (!file) return;
    basin_json_quote(file, text, false);
    fputs("}\n", file);
}

/* A request that is refused. BASIN_IO is the server's fault, BASIN_BAD_SHAPE a limit; a value that
 * columns refuse is another matter than a body of another form. */
static void fail(basin_request *r, const basin_error *error) {
    basin_status s = error->status;
    bool ours = s == BASIN_IO || s == BASIN_NO_MEMORY,
         value = (r->route == ADD || r->route == LABEL) && s == BASIN_BAD_VALUE;
    basin_request_fail(r,
                       ours                   ? 503
                       : s == BASIN_BAD_SHAPE ? 413
                       : value                ? 422
                                              : 400,
                       "%s", error->text);
}

/* A sound request that could not be answered. */
static void fail_inside(basin_request *r, const basin_error *error) {
    bool later = error->status == BASIN_IO || error->status == BASIN_NO_MEMORY;
    basin_request_fail(r, later ? 503 : 500, "%s", error->text);
}

/* ---- scores ---- */

void basin_request_argument(basin_request *r, const char *key, const char *value) {
    if (!strcmp(key, "reasons") && value)
        cJSON_AddNumberToObject(r->arguments, key, strtod(value, NULL));
    else
        cJSON_AddStringToObject(r->arguments, key, value ? value : "");
}

/* {"ids":[..],"reasons":N}: the body, or the arguments of GET; *owned is to be deleted. */
static basin_status read_tree(const cJSON **tree, cJSON **owned, const basin_request *r,
                              basin_error *error) {
    *tree = r->arguments;
    if (!*tree) return basin_fail_memory(error, "arguments");
    if (r->zero) return basin_fail(error, BASIN_BAD_VALUE, "the id has a zero byte");
    if (!r->post) return BASIN_OK;
    if (r->arguments->child)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the path has the argument '%.100s'; expected it in the body",
                          r->arguments->child->string);
    BASIN_TRY(basin_json_parse(owned, r->body, r->length, "the request", "the body", error));
    *tree = *owned;
    return BASIN_OK;
}

/* The first id, of a list or alone; *most is how many reasons are asked for. */
static basin_status read_ids(const cJSON **first, int64_t *max, basin_request *r, const cJSON *tree,
                             basin_error *error) {
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(tree, "id");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, "ids");
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(tree, "reasons");
    double number = reasons ? reasons->valuedouble : 5;
    *max = number >= 1 && number <= 1000 ? (int64_t)number : 0;
    *first = list ? list->child : one;
    r->ids = list ? cJSON_GetArraySize(list) : 1;
    for (const cJSON *key = tree->child; key; key = key->next)
        if (key != one && key != list && key != reasons)
            return basin_fail(error, BASIN_BAD_VALUE, "key '%.100s' is unknown, or there twice",
                              key->string);
    if (!one == !list || (list && !cJSON_IsArray(list)) || !*first || !*max)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "needs an id: \"id\", a string, or \"ids\", an array of them; \"reasons\" "
            "is a number, 1 to 1000");
    if (r->ids > r->server->o->max_ids)
        return basin_fail(error, BASIN_BAD_SHAPE, "%lld ids, at most %lld are accepted",
                          (long long)r->ids, (long long)r->server->o->max_ids);
    for (const cJSON *id = *first; id; id = list ? id->next : NULL)
        if (!cJSON_IsString(id) || !*id->valuestring)
            return basin_fail(error, BASIN_BAD_VALUE, "an id is not a string with a character");
    return BASIN_OK;
}

/* What moves a score: of each list the entries that move it most. */
static void put_reasons(basin_json *json, const basin_generation *g,
                        const basin_nodes_explanation *e, int64_t max) {
    char text[1024];
    basin_json_number(json, "logit", e->logit);
    basin_json_number(json, "typical_logit", e->typical_logit);
    basin_json_number(json, "own", e->own);
    basin_json_number(json, "rest", e->rest);
    basin_json_array(json, "features");
    for (int64_t i = 0; i < e->features && i < max; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "feature", basin_nodes_reason_name(text, g->network, &e->feature[i]));
        basin_json_number(json, "moves", e->feature[i].share);
        basin_json_number(json, "value", e->feature[i].value);
        basin_json_number(json, "typical", e->feature[i].typical);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_array(json, "neighbours");
    for (int64_t i = 0; i < e->neighbours && i < max; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "id",
                        basin_nodes_live_id(g->live, e->neighbour[i].node, text, sizeof text));
        basin_json_number(json, "moves", e->neighbour[i].push);
        basin_json_number(json, "probability", e->neighbour[i].probability);
        basin_json_end(json);
    }
    basin_json_end(json);
}

/* One line of the results. */
static basin_status put_score(FILE *file, bool *known, const basin_request *r, const cJSON *id,
                              int64_t max, basin_error *error) {
    basin_meters *m = &r->server->meters;
    const basin_generation *g = r->server->now;
    basin_nodes_live_score score;
    basin_nodes_explanation *why = NULL;
    double begun = basin_clock();
    if (begun - r->arrived > r->server->o->timeout)
        return basin_fail(error, BASIN_IO, "not all ids were done within %g s",
                          r->server->o->timeout);
    BASIN_TRY(g->context ? basin_labels_score(&score, r->server, id->valuestring, error)
                         : basin_nodes_live_predict(
                               &score, g->live, (const char *const *)&id->valuestring, 1, error));
    *known = score.node >= 0;
    if (*known) basin_times_add(&m->node, basin_clock() - begun);
    if (*known && r->route == EXPLAIN && !g->context)
        BASIN_TRY(basin_nodes_live_explain(&why, g->live, id->valuestring, error));
    basin_json json = basin_json_begin_line(file);
    basin_json_text(&json, "id", id->valuestring);
    if (*known) {
        m->scored++;
        m->capped += score.capped;
        m->anomalous += score.anomalous;
        basin_scores_add(&m->score, score.probability);
        basin_json_number(&json, "probability", score.probability);
        basin_json_boolean(&json, "anomalous", score.anomalous);
        if (!g->context) basin_json_integer(&json, "nodes", score.nodes);
        if (!g->context) basin_json_boolean(&json, "capped", score.capped);
    } else {
        basin_json_text(&json, "error", "no account of this id");
    }
    if (why) put_reasons(&json, g, why, max);
    if (*known && r->route == EXPLAIN && g->context)
        BASIN_TRY(basin_labels_explain(&json, r->server, score.node, max, error));
    basin_json_end(&json);
    basin_nodes_explanation_free(why);
    return BASIN_OK;
}

static basin_status put_scores(basin_request *r, const cJSON *id, int64_t max, basin_error *error) {
    int64_t unknown = 0;
    bool known;
    snprintf(r->model, sizeof r->model, "%s", r->server->now->id);
    FILE *file = begin(r, 200, "\"threshold\":");
    if (!file) return BASIN_OK;
    basin_json_put_number(file, r->server->now->threshold);
    fputs(",\"results\":[", file);
    for (int64_t i = 0; i < r->ids; i++, id = id->next, unknown += !known) {
        if (i) fputc(',', file);
        BASIN_TRY(put_score(file, &known, r, id, max, error));
    }
    fprintf(file, "],\"unknown\":%lld}\n", (long long)unknown);
    if (unknown == r->ids) r->status = 404;
    return BASIN_OK;
}

static void answer_scores(basin_request *r) {
    BASIN_JSON_AT_EXIT cJSON *owned = NULL;
    basin_server *s = r->server;
    basin_error error;
    const cJSON *id, *tree;
    int64_t max;
    if (read_tree(&tree, &owned, r, &error) || read_ids(&id, &max, r, tree, &error)) {
        fail(r, &error);
        return;
    }
    sem_wait(&s->slots);
    pthread_rwlock_rdlock(&s->using);
    if (put_scores(r, id, max, &error)) fail_inside(r, &error);
    pthread_rwlock_unlock(&s->using);
    sem_post(&s->slots);
}

/* ---- the others ---- */

/* Labels are additions to a server without a model. */
static void answer_add(basin_request *r) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    basin_server *s = r->server;
    bool label = r->route == LABEL;
    basin_error error;
    int64_t added[3];
    if (s->o->read_only) {
        basin_request_fail(r, 403, "this server is read-only");
        return;
    }
    if (label && !s->o->files) {
        basin_request_fail(r, 404,
                           "labels are taken by a server without a model (in context); a model "
                           "learns them by training");
        return;
    }
    basin_status status =
        basin_json_parse(&tree, r->body, r->length, "the request", "the body", &error);
    if (!status && label && !(tree = basin_labels_as_addition(tree, s->schema)))
        status = basin_fail_memory(&error, "labels");
    if (status || basin_server_add(added, r, tree, &error))
        fail(r, &error);
    else if (label)
        begin(r, 200, "\"labels\":%lld}\n", (long long)r->ids);
    else
        begin(r, 200, "\"accounts\":%lld,\"updated\":%lld,\"edges\":%lld}\n", (long long)added[0],
              (long long)added[1], (long long)added[2]);
}

static void answer_reload(basin_request *r) {
    basin_error error;
    if (basin_server_reload(r->server, &error)) {
        basin_request_fail(r, 503, "the model was not reloaded: %s", error.text);
        return;
    }
    basin_server_look(r->server, r->model);
    begin(r, 200, "\"reloaded\":true}\n");
}

static void answer_health(basin_request *r) {
    bool stopping = r->server->stopping;
    basin_nodes_live_counts counts = basin_server_look(r->server, NULL);
    begin(r, stopping ? 503 : 200,
          "\"health\":\"%s\",\"accounts\":%lld,\"edges\":%lld,\"read_only\":%s}\n",
          stopping ? "stopping" : "ok", (long long)counts.nodes, (long long)counts.edges,
          r->server->o->read_only ? "true" : "false");
}

static void answer_metrics(basin_request *r) {
    r->status = 200;
    if (basin_memory_file_open(&r->answer)) basin_metrics_print(r->answer.file, r->server);
}

const basin_route_entry basin_routes[ROUTES] = {
    [SCORE] = {"/score", "GET, POST", answer_scores},
    [EXPLAIN] = {"/explain", "GET, POST", answer_scores},
    [ADD] = {"/add", "POST", answer_add},
    [LABEL] = {"/label", "POST", answer_add},
    [RELOAD] = {"/reload", "POST", answer_reload},
    [HEALTH] = {"/health", "GET", answer_health},
    [METRICS] = {"/metrics", "GET", answer_metrics},
    [OTHER] = {"other", "", NULL},
};

/* In a time that does not depend on where they differ. */
static bool allowed(const basin_request *r) {
    const char *token = r->server->token, *given = r->authorization;
    if (!*token || r->route == HEALTH) return true;
    if (!given || strncasecmp(given, "Bearer ", 7) != 0) return false;
    given += 7;
    size_t length = strlen(given), expected = strlen(token);
    unsigned differs = length != expected;
    for (size_t i = 0; i < expected; i++)
        differs |= (unsigned char)token[i] ^ (unsigned char)given[i < length ? i : length];
    return !differs;
}

static bool is_json(const basin_request *r) {
    static const char expected[] = "application/json";
    size_t length = sizeof expected - 1;
    return r->type && !strncasecmp(r->type, expected, length) && strchr("; ", r->type[length]);
}

/* Names of the server: those of loopback, of --listen, of the address where
 * the request came in, and of --host. A page of another site in a browser has another one. */
static bool is_own(const basin_request *r, const char *name, size_t length) {
    const basin_serving *o = r->server->o;
    const char *colon = strrchr(o->listen ? o->listen : "", ':');
    struct in_addr four;
    char text[256];
    if (length >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    if (!strcasecmp(text, "localhost") || !strcmp(text, "::1") || !strcasecmp(text, r->local) ||
        (inet_pton(AF_INET, text, &four) == 1 && ntohl(four.s_addr) >> 24 == 127))
        return true;
    if (colon && (size_t)(colon - o->listen) == length && !strncasecmp(text, o->listen, length))
        return true;
    for (const char *at = o->host; at && *at; at += strspn(at, ",")) {
        size_t one = strcspn(at, ",");
        if (one == length && !strncasecmp(at, text, length)) return true;
        at += one;
    }
    return false;
}

/* "NAME", "NAME:PORT", "[::1]:PORT". */
static bool is_own_host(const basin_request *r, const char *host) {
    bool bracket = *host == '[';
    return is_own(r, host + bracket, strcspn(host + bracket, bracket ? "]" : ":"));
}

static bool is_own_origin(const basin_request *r) {
    const char *host = strstr(r->origin, "://");
    return host && is_own_host(r, host + 3);
}

basin_route basin_route_find(const char *path) {
    basin_route route = 0;
    while (route < OTHER && strcmp(basin_routes[route].path, path) != 0) route++;
    return route;
}

void basin_request_answer(basin_request *r) {
    const char *methods = basin_routes[r->route].methods;
    basin_server *s = r->server;
    r->arrived = basin_clock();
    r->journal = s->meters.records;
    basin_server_look(s, r->model);
    if (r->host && !s->o->socket && !is_own_host(r, r->host))
        basin_request_fail(r, 403, "this server is not '%.100s'; the option host allows names",
                           r->host);
    else if (r->origin && !is_own_origin(r))
        basin_request_fail(r, 403, "a page of '%.100s' may not ask; the option host allows names",
                           r->origin);
    else if (!allowed(r))
        basin_request_fail(r, 401, "needs the header Authorization: Bearer TOKEN with the token");
    else if (r->route == OTHER)
        basin_request_fail(r, 404,
                           "no such path; there are /score, /explain, /add, /label, /reload, "
                           "/health and /metrics");
    else if (!(r->post && strstr(methods, "POST")) && !(r->get && strstr(methods, "GET")))
        basin_request_fail(r, 405, "%s takes %s", basin_routes[r->route].path, methods);
    else if (r->length > (size_t)s->o->max_body)
        basin_request_fail(r, 413, "the body is longer than %lld bytes", (long long)s->o->max_body);
    else if (r->post && r->length && !is_json(r))
        basin_request_fail(r, 415, "needs the header Content-Type: application/json");
    else
        basin_routes[r->route].answer(r);
}
