/* What each request does, and its answer. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "serve/server.h"

/* ---- answers ---- */

/* A JSON object with the model's id and the journal's position. Without memory, http.c says so. */
static bool begin(basin_request *r, basin_json *json, int status) {
    r->status = status;
    if (!basin_memory_file_open(&r->answer)) return false;
    *json = basin_json_begin_line(r->answer.file);
    basin_json_text(json, "model", r->model);
    basin_json_integer(json, "journal", r->journal);
    return true;
}

void basin_request_fail(basin_request *r, int status, const char *format, ...) {
    char text[BASIN_ERROR_TEXT];
    basin_json json;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!begin(r, &json, status)) return;
    basin_json_text(&json, "error", text);
    basin_json_integer(&json, "status", status);
    basin_json_text(&json, "request", r->name);
    basin_json_end(&json);
}

/* An object with these fields, plain numbers and words, besides. */
static void reply(basin_request *r, int status, const char *format, ...) {
    va_list args;
    r->status = status;
    if (!basin_memory_file_open(&r->answer)) return;
    fprintf(r->answer.file, "{\"model\":\"%s\",\"journal\":%lld,", r->model, (long long)r->journal);
    va_start(args, format);
    vfprintf(r->answer.file, format, args);
    va_end(args);
    fputs("}\n", r->answer.file);
}

/* The status of what failed: BASIN_IO is the server's, BASIN_BAD_SHAPE a limit. */
static void fail(basin_request *r, const basin_error *error) {
    basin_status s = error->status;
    bool ours = s == BASIN_IO || s == BASIN_NO_MEMORY;
    basin_request_fail(r, ours ? 503 : s == BASIN_BAD_SHAPE ? 413 : 400, "%s", error->text);
}

/* ---- scores ---- */

/* {"ids":[..],"reasons":N}: the body, or the arguments of GET. */
static basin_status read_tree(cJSON **tree, const basin_request *r, basin_error *error) {
    if (r->post)
        return basin_json_parse(tree, r->body, r->length, "the request", "the body", error);
    size_t length = 0;
    const char *id = basin_request_argument(r, "id", &length);
    const char *reasons = basin_request_argument(r, "reasons", NULL);
    if (id && strlen(id) != length)
        return basin_fail(error, BASIN_BAD_VALUE, "the id has a zero byte");
    *tree = cJSON_CreateObject();
    bool made = *tree && (!id || cJSON_AddStringToObject(*tree, "id", id)) &&
                (!reasons || cJSON_AddNumberToObject(*tree, "reasons", strtod(reasons, NULL)));
    return made ? BASIN_OK : basin_fail_memory(error, "arguments");
}

/* What is asked, and what came out. */
typedef struct asked {
    int64_t count, reasons;
    const char **id; /* [count] borrowed from the tree */
    basin_nodes_live_score *score;
    basin_nodes_explanation **why; /* NULL of those that are not explained */
} asked;

static void asked_free(asked *a) {
    for (int64_t i = 0; a->why && i < a->count; i++) basin_nodes_explanation_free(a->why[i]);
    free(a->id);
    free(a->score);
    free(a->why);
}

static basin_status read_ids(asked *a, const cJSON *tree, bool explain, int64_t most,
                             basin_error *error) {
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(tree, "id");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, "ids");
    const cJSON *reasons = explain ? cJSON_GetObjectItemCaseSensitive(tree, "reasons") : NULL;
    a->reasons = reasons ? (int64_t)cJSON_GetNumberValue(reasons) : 5;
    for (const cJSON *key = tree->child; key; key = key->next)
        if (key != one && key != list && key != reasons)
            return basin_fail(error, BASIN_BAD_VALUE, "key '%.100s' is unknown, or there twice",
                              key->string);
    if (reasons && !(a->reasons >= 1 && a->reasons <= 1000))
        return basin_fail(error, BASIN_BAD_VALUE, "reasons needs a number, 1 to 1000");
    if (!one == !list || (list && !(cJSON_IsArray(list) && list->child)))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "needs an id: \"id\", a string, or \"ids\", an array of them");
    int64_t count = list ? cJSON_GetArraySize(list) : 1;
    if (count > most)
        return basin_fail(error, BASIN_BAD_SHAPE, "%lld ids, at most %lld are accepted",
                          (long long)count, (long long)most);
    BASIN_TRY(BASIN_NEW(&a->id, count, "ids", error));
    BASIN_TRY(BASIN_NEW(&a->score, count, "ids", error));
    BASIN_TRY(BASIN_NEW(&a->why, count, "ids", error));
    for (const cJSON *id = list ? list->child : one; id; id = list ? id->next : NULL) {
        if (!cJSON_IsString(id) || !*id->valuestring)
            return basin_fail(error, BASIN_BAD_VALUE, "id %lld is not a string with a character",
                              (long long)a->count);
        a->id[a->count++] = id->valuestring;
    }
    return BASIN_OK;
}

static basin_status score_all(asked *a, basin_request *r, basin_error *error) {
    basin_meters *m = &r->server->meters;
    const basin_generation *g = r->server->now;
    basin_nodes_work work = {.brief = true};
    for (int64_t i = 0; i < a->count; i++) {
        basin_nodes_live_score *score = &a->score[i];
        double begun = basin_clock();
        if (begun - r->arrived > r->server->o->timeout)
            return basin_fail(error, BASIN_IO, "%lld of %lld ids were done within %g s",
                              (long long)i, (long long)a->count, r->server->o->timeout);
        BASIN_TRY(basin_nodes_live_get(score, g->live, &a->id[i], 1, error));
        if (score->node < 0) continue;
        basin_times_add(&m->node, basin_clock() - begun);
        m->scored++;
        m->capped += score->capped;
        if (r->route == EXPLAIN)
            BASIN_TRY(basin_nodes_explain(&a->why[i], g->model, g->network, &score->node, 1, &work,
                                          error));
    }
    return BASIN_OK;
}

/* What moves a score: of each list the entries that move it most. */
static void put_reasons(basin_json *json, const basin_network *network,
                        const basin_nodes_explanation *e, int64_t most) {
    char text[BASIN_REASON_TEXT];
    basin_json_number(json, "logit", e->logit);
    basin_json_number(json, "typical_logit", e->typical_logit);
    basin_json_number(json, "own", e->own);
    basin_json_number(json, "rest", e->rest);
    basin_json_array(json, "features");
    for (int64_t i = 0; i < e->features && i < most; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "feature", basin_nodes_reason_name(text, network, &e->feature[i]));
        basin_json_number(json, "moves", e->feature[i].share);
        basin_json_number(json, "value", e->feature[i].value);
        basin_json_number(json, "typical", e->feature[i].typical);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_array(json, "neighbours");
    for (int64_t i = 0; i < e->neighbours && i < most; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "id", basin_network_id(network, e->neighbour[i].node, text));
        basin_json_number(json, "moves", e->neighbour[i].push);
        basin_json_number(json, "probability", e->neighbour[i].probability);
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void put_score(basin_json *json, const asked *a, int64_t i, const basin_network *network) {
    const basin_nodes_live_score *score = &a->score[i];
    basin_json_object(json, NULL);
    basin_json_text(json, "id", a->id[i]);
    if (score->node < 0) {
        basin_json_text(json, "error", "no account of this id");
    } else {
        basin_json_number(json, "probability", score->probability);
        basin_json_boolean(json, "anomalous", score->anomalous);
        basin_json_integer(json, "nodes", score->nodes);
        basin_json_boolean(json, "capped", score->capped);
    }
    if (a->why[i]) put_reasons(json, network, a->why[i], a->reasons);
    basin_json_end(json);
}

static void put_scores(basin_request *r, const asked *a) {
    const basin_generation *g = r->server->now;
    basin_json json;
    int64_t unknown = 0;
    for (int64_t i = 0; i < a->count; i++) unknown += a->score[i].node < 0;
    if (!begin(r, &json, unknown == a->count ? 404 : 200)) return;
    basin_json_number(&json, "threshold", basin_nodes_get_info(g->model)->threshold);
    basin_json_array(&json, "results");
    for (int64_t i = 0; i < a->count; i++) put_score(&json, a, i, g->network);
    basin_json_end(&json);
    basin_json_integer(&json, "unknown", unknown);
    basin_json_end(&json);
}

static void answer_scores(basin_request *r) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    BASIN_AT_EXIT(asked_free) asked a = {0};
    basin_error error;
    basin_status status = read_tree(&tree, r, &error);
    if (!status) status = read_ids(&a, tree, r->route == EXPLAIN, r->server->o->max_ids, &error);
    if (status) {
        fail(r, &error);
        return;
    }
    basin_server *s = r->server;
    r->ids = a.count;
    sem_wait(&s->slots);
    pthread_rwlock_rdlock(&s->using);
    snprintf(r->model, sizeof r->model, "%s", s->now->id);
    if (score_all(&a, r, &error))
        fail(r, &error);
    else
        put_scores(r, &a);
    pthread_rwlock_unlock(&s->using);
    sem_post(&s->slots);
}

/* ---- the others ---- */

static void answer_add(basin_request *r) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    basin_error error;
    int64_t added[3];
    if (r->server->o->read_only)
        basin_request_fail(r, 403, "this server is read-only");
    else if (basin_json_parse(&tree, r->body, r->length, "the request", "the body", &error) ||
             basin_server_add(added, r, tree, &error))
        fail(r, &error);
    else
        reply(r, 200, "\"accounts\":%lld,\"updated\":%lld,\"edges\":%lld", (long long)added[0],
              (long long)added[1], (long long)added[2]);
}

static void answer_reload(basin_request *r) {
    basin_error error;
    if (basin_server_reload(r->server, &error)) {
        basin_request_fail(r, 503, "the model was not reloaded: %s", error.text);
        return;
    }
    basin_server_look(r->server, r->model);
    reply(r, 200, "\"reloaded\":true");
}

static void answer_health(basin_request *r) {
    bool stopping = r->server->stopping;
    basin_nodes_live_counts counts = basin_server_look(r->server, NULL);
    reply(r, stopping ? 503 : 200,
          "\"health\":\"%s\",\"accounts\":%lld,\"edges\":%lld,\"read_only\":%s",
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
    [RELOAD] = {"/reload", "POST", answer_reload},
    [HEALTH] = {"/health", "GET", answer_health},
    [METRICS] = {"/metrics", "GET", answer_metrics},
    [OTHER] = {"other", "", NULL},
};

/* In a time that does not depend on where they differ. */
static bool allowed(const basin_request *r) {
    const char *token = r->server->token, *given = basin_request_header(r, "Authorization");
    if (!*token || r->route == HEALTH) return true;
    if (!given || strncasecmp(given, "Bearer ", 7) != 0) return false;
    given += 7;
    size_t length = strlen(given), wanted = strlen(token);
    unsigned differs = length != wanted;
    for (size_t i = 0; i < wanted; i++)
        differs |= (unsigned char)token[i] ^ (unsigned char)given[i < length ? i : length];
    return !differs;
}

static bool is_json(const basin_request *r) {
    static const char wanted[] = "application/json";
    const char *type = basin_request_header(r, "Content-Type");
    size_t length = sizeof wanted - 1;
    return type && !strncasecmp(type, wanted, length) && strchr("; ", type[length]);
}

void basin_request_answer(basin_request *r) {
    const char *methods = basin_routes[r->route].methods;
    basin_server *s = r->server;
    r->arrived = basin_clock();
    r->journal = s->meters.records;
    basin_server_look(s, r->model);
    if (!allowed(r))
        basin_request_fail(r, 401, "needs the header Authorization: Bearer TOKEN with the token");
    else if (r->route == OTHER)
        basin_request_fail(r, 404,
                           "no such path; there are /score, /explain, /add, /reload, "
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
