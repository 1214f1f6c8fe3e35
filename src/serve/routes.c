/* What each request does, and its answer. */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/server.h"

/* ---- answers ---- */

/* A JSON object with the model's id and the journal's position; NULL without memory. */
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

/* ---- ids ---- */

typedef struct asked {
    const char **id; /* [count] borrowed from the tree */
    int64_t count, reasons;
} asked;

static basin_status add_argument(void *context, const char *key, const char *value, size_t length,
                                 basin_error *error) {
    cJSON *tree = context;
    bool id = !strcmp(key, "id");
    if (!value || strlen(value) != length)
        return basin_fail(error, BASIN_BAD_VALUE, "'%.100s' has no value, or one with a zero byte",
                          key);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, "ids");
    cJSON *item = id ? cJSON_CreateString(value) : cJSON_CreateNumber(strtod(value, NULL));
    if (!id && strcmp(key, "reasons") != 0) {
        cJSON_Delete(item);
        return basin_fail(error, BASIN_BAD_VALUE, "unknown argument '%.100s', needs id", key);
    }
    if (item && (id ? cJSON_AddItemToArray(list, item) : cJSON_AddItemToObject(tree, key, item)))
        return BASIN_OK;
    cJSON_Delete(item);
    return basin_fail_memory(error, "arguments");
}

/* {"ids":[..],"reasons":N}: the body, or the arguments of GET. */
static basin_status read_tree(cJSON **tree, basin_request *r, basin_error *error) {
    if (!strcmp(r->method, "POST"))
        return basin_json_parse(tree, r->body, r->length, "the request", "the body", error);
    *tree = cJSON_CreateObject();
    if (!*tree || !cJSON_AddArrayToObject(*tree, "ids"))
        return basin_fail_memory(error, "arguments");
    return basin_request_arguments(r, add_argument, *tree, error);
}

static basin_status add_id(asked *a, const cJSON *value, basin_error *error) {
    if (!cJSON_IsString(value) || !*value->valuestring)
        return basin_fail(error, BASIN_BAD_VALUE, "id %lld is not a string with a character",
                          (long long)a->count);
    a->id[a->count++] = value->valuestring;
    return BASIN_OK;
}

/* *count: how many ids there are, for an error of too many. */
static basin_status read_ids(asked *a, const cJSON *tree, bool explain, int64_t most,
                             basin_error *error) {
    const cJSON *one = NULL, *list = NULL;
    a->reasons = 5;
    for (const cJSON *item = tree->child; item; item = item->next) {
        const cJSON **at = !strcmp(item->string, "id")    ? &one
                           : !strcmp(item->string, "ids") ? &list
                                                          : NULL;
        if (explain && !strcmp(item->string, "reasons")) {
            if (!(item->valuedouble >= 1 && item->valuedouble <= 1000))
                return basin_fail(error, BASIN_BAD_VALUE, "reasons needs a number, 1 to 1000");
            a->reasons = (int64_t)item->valuedouble;
        } else if (!at || *at) {
            return basin_fail(error, BASIN_BAD_VALUE, "%s key '%.100s', needs \"id\" or \"ids\"%s",
                              at ? "repeated" : "unknown", item->string,
                              explain ? ", \"reasons\"" : "");
        } else {
            *at = item;
        }
    }
    if (!!one + !!list != 1 || (list && !cJSON_IsArray(list)))
        return basin_fail(error, BASIN_BAD_VALUE, "needs \"id\": a string, or \"ids\": an array");
    int64_t count = list ? cJSON_GetArraySize(list) : 1;
    if (!count) return basin_fail(error, BASIN_BAD_VALUE, "there is no id to score");
    if (count > most)
        return basin_fail(error, BASIN_BAD_SHAPE, "%lld ids, at most %lld are accepted",
                          (long long)count, (long long)most);
    BASIN_TRY(BASIN_NEW(&a->id, count, "ids", error));
    if (one) return add_id(a, one, error);
    for (const cJSON *item = list->child; item; item = item->next)
        BASIN_TRY(add_id(a, item, error));
    return BASIN_OK;
}

/* ---- scores ---- */

static bool late(const basin_request *r) {
    return basin_clock() - r->arrived > r->server->o->timeout;
}

static basin_status score_all(basin_nodes_live_score *score, basin_request *r,
                              const basin_generation *g, const asked *a, basin_error *error) {
    enum { TOGETHER = 16 }; /* between looks at the clock */
    basin_meters *m = &r->server->meters;
    for (int64_t i = 0; i < a->count; i += TOGETHER) {
        int64_t count = a->count - i < TOGETHER ? a->count - i : TOGETHER, known = 0;
        double begun = basin_clock();
        if (late(r))
            return basin_fail(error, BASIN_IO, "%lld of %lld ids were scored within %g s",
                              (long long)i, (long long)a->count, r->server->o->timeout);
        BASIN_TRY(basin_nodes_live_get(score + i, g->live, a->id + i, count, error));
        for (int64_t k = i; k < i + count; k++) {
            known += score[k].node >= 0;
            atomic_fetch_add(&m->capped, score[k].capped);
        }
        if (known) basin_meter_add(&m->node, (basin_clock() - begun) / (double)known, known);
    }
    return BASIN_OK;
}

static void put_score(basin_json *json, const char *id, const basin_nodes_live_score *score) {
    basin_json_object(json, NULL);
    basin_json_text(json, "id", id);
    if (score->node < 0) {
        basin_json_text(json, "error", "no account of this id");
    } else {
        basin_json_number(json, "probability", score->probability);
        basin_json_boolean(json, "anomalous", score->anomalous);
        basin_json_integer(json, "nodes", score->nodes);
        basin_json_boolean(json, "capped", score->capped);
    }
}

/* What moves a score: of each list the entries that move it most. */
static void put_reasons(basin_json *json, const basin_generation *g,
                        const basin_nodes_explanation *e, int64_t most) {
    char text[BASIN_REASON_TEXT];
    basin_json_number(json, "logit", e->logit);
    basin_json_number(json, "typical_logit", e->typical_logit);
    basin_json_number(json, "own", e->own);
    basin_json_number(json, "rest", e->rest);
    basin_json_array(json, "features");
    for (int64_t i = 0; i < e->features && i < most; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "feature", basin_nodes_reason_name(text, g->network, &e->feature[i]));
        basin_json_number(json, "moves", e->feature[i].share);
        basin_json_number(json, "value", e->feature[i].value);
        basin_json_number(json, "typical", e->feature[i].typical);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_array(json, "neighbours");
    for (int64_t i = 0; i < e->neighbours && i < most; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "id", basin_network_id(g->network, e->neighbour[i].node, text));
        basin_json_number(json, "moves", e->neighbour[i].push);
        basin_json_number(json, "probability", e->neighbour[i].probability);
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void put_scores(basin_request *r, const basin_generation *g, const asked *a,
                       const basin_nodes_live_score *score, basin_nodes_explanation *const *why) {
    basin_json json;
    int64_t unknown = 0;
    for (int64_t i = 0; i < a->count; i++) unknown += score[i].node < 0;
    if (!begin(r, &json, unknown == a->count ? 404 : 200)) return;
    basin_json_number(&json, "threshold", basin_nodes_get_info(g->model)->threshold);
    basin_json_array(&json, "results");
    for (int64_t i = 0; i < a->count; i++) {
        put_score(&json, a->id[i], &score[i]);
        if (why[i]) put_reasons(&json, g, why[i], a->reasons);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_array(&json, "unknown");
    for (int64_t i = 0; i < a->count; i++)
        if (score[i].node < 0) basin_json_text(&json, NULL, a->id[i]);
    basin_json_end(&json);
    basin_json_end(&json);
}

static basin_status explain_all(basin_nodes_explanation **why, basin_request *r,
                                const basin_generation *g, const basin_nodes_live_score *score,
                                int64_t count, basin_error *error) {
    basin_nodes_work work = {.brief = true};
    for (int64_t i = 0; i < count; i++) {
        if (late(r))
            return basin_fail(error, BASIN_IO, "%lld of %lld ids were explained within %g s",
                              (long long)i, (long long)count, r->server->o->timeout);
        if (score[i].node >= 0)
            BASIN_TRY(basin_nodes_explain(&why[i], g->model, g->network, &score[i].node, 1, &work,
                                          error));
    }
    return BASIN_OK;
}

static void answer_scores(basin_request *r) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    BASIN_FREE_AT_EXIT basin_nodes_live_score *score = NULL;
    BASIN_FREE_AT_EXIT basin_nodes_explanation **why = NULL;
    asked a = {0};
    basin_error error;
    bool explain = r->route == BASIN_ROUTE_EXPLAIN;
    basin_status status = read_tree(&tree, r, &error);
    if (!status) status = read_ids(&a, tree, explain, r->server->o->max_ids, &error);
    if (status) {
        basin_request_fail(r, status == BASIN_BAD_SHAPE ? 413 : 400, "%s", error.text);
        free(a.id);
        return;
    }
    basin_generation *g = basin_generation_take(r->server);
    snprintf(r->model, sizeof r->model, "%s", g->id); /* the one that answers */
    r->ids = a.count;
    status = BASIN_NEW(&score, a.count, "scores", &error);
    if (!status) status = BASIN_NEW(&why, a.count, "explanations", &error);
    if (!status) status = score_all(score, r, g, &a, &error);
    if (!status && explain) status = explain_all(why, r, g, score, a.count, &error);
    if (status)
        basin_request_fail(r, status == BASIN_IO || status == BASIN_NO_MEMORY ? 503 : 500, "%s",
                           error.text);
    else
        put_scores(r, g, &a, score, why);
    for (int64_t i = 0; why && i < a.count; i++) basin_nodes_explanation_free(why[i]);
    basin_generation_drop(r->server, g);
    free(a.id);
}

/* ---- additions and the model ---- */

static void answer_added(basin_request *r) {
    basin_json json;
    basin_meters *m = &r->server->meters;
    if (r->waited) {
        basin_request_fail(r, 503, "%s", r->problem.text);
        return;
    }
    atomic_fetch_add(&m->accounts, r->added[0]);
    atomic_fetch_add(&m->updated, r->added[1]);
    atomic_fetch_add(&m->edges, r->added[2]);
    if (!begin(r, &json, 200)) return;
    basin_json_integer(&json, "accounts", r->added[0]);
    basin_json_integer(&json, "updated", r->added[1]);
    basin_json_integer(&json, "edges", r->added[2]);
    basin_json_end(&json);
}

static int64_t count_rows(const cJSON *tree) {
    int64_t rows = 0;
    for (const cJSON *list = tree->child; list; list = list->next) rows += cJSON_GetArraySize(list);
    return rows;
}

static void add(basin_request *r) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    basin_error error;
    basin_server *s = r->server;
    bool bad = true;
    if (r->stage == BASIN_WAITING) {
        answer_added(r);
        return;
    }
    if (s->o->read_only) {
        basin_request_fail(r, 403, "this server is read-only");
        return;
    }
    basin_status status =
        basin_json_parse(&tree, r->body, r->length, "the request", "the body", &error);
    if (!status && count_rows(tree) > s->o->max_ids) {
        basin_request_fail(r, 413, "%lld rows, at most %lld are accepted",
                           (long long)count_rows(tree), (long long)s->o->max_ids);
        return;
    }
    if (!status) status = basin_server_add(s, r, tree, &bad, &error);
    if (status) {
        basin_request_fail(r, bad ? 400 : 503, "%s", error.text);
        return;
    }
    pthread_mutex_lock(&s->lock);
    basin_request_suspend(r, &s->to_sync);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static void reload(basin_request *r) {
    basin_server *s = r->server;
    basin_json json;
    if (r->stage != BASIN_WAITING) {
        pthread_mutex_lock(&s->lock);
        basin_request_suspend(r, &s->to_reload);
        pthread_mutex_unlock(&s->lock);
        kill(getpid(), SIGHUP); /* the main thread does it */
    } else if (r->waited) {
        basin_request_fail(r, 503, "the model was not reloaded: %s", r->problem.text);
    } else if (begin(r, &json, 200)) {
        basin_json_boolean(&json, "reloaded", true);
        basin_json_end(&json);
    }
}

/* ---- the rest ---- */

static void answer_health(basin_request *r) {
    basin_json json;
    bool stopping = atomic_load(&r->server->stopping);
    basin_generation *g = basin_generation_take(r->server);
    basin_nodes_live_counts counts = basin_nodes_live_count(g->live);
    basin_generation_drop(r->server, g);
    if (!begin(r, &json, stopping ? 503 : 200)) return;
    basin_json_text(&json, "health", stopping ? "stopping" : "ok");
    basin_json_integer(&json, "accounts", counts.nodes);
    basin_json_integer(&json, "edges", counts.edges);
    basin_json_boolean(&json, "read_only", r->server->o->read_only);
    basin_json_end(&json);
}

static void answer_metrics(basin_request *r) {
    r->status = 200;
    if (basin_memory_file_open(&r->answer)) basin_metrics_print(r->answer.file, r->server);
}

static const struct {
    const char *path, *methods;
    void (*answer)(basin_request *r);
} routes[BASIN_ROUTES] = {
    [BASIN_ROUTE_SCORE] = {"/score", "GET, POST", answer_scores},
    [BASIN_ROUTE_EXPLAIN] = {"/explain", "GET, POST", answer_scores},
    [BASIN_ROUTE_ADD] = {"/add", "POST", add},
    [BASIN_ROUTE_RELOAD] = {"/reload", "POST", reload},
    [BASIN_ROUTE_HEALTH] = {"/health", "GET", answer_health},
    [BASIN_ROUTE_METRICS] = {"/metrics", "GET", answer_metrics},
    [BASIN_ROUTE_OTHER] = {"other", "", NULL},
};

basin_route basin_route_find(const char *path) {
    int i = 0;
    while (i < BASIN_ROUTE_OTHER && strcmp(routes[i].path, path) != 0) i++;
    return (basin_route)i;
}

const char *basin_route_path(basin_route route) { return routes[route].path; }

/* In a time that does not depend on where they differ. */
static bool allowed(basin_request *r) {
    const char *token = r->server->token, *given = basin_request_header(r, "Authorization");
    if (!*token || r->route == BASIN_ROUTE_HEALTH) return true;
    if (!given || strncasecmp(given, "Bearer ", 7) != 0) return false;
    given += 7;
    size_t length = strlen(given), wanted = strlen(token);
    unsigned differs = length != wanted;
    for (size_t i = 0; i < wanted; i++)
        differs |=
            (unsigned)(unsigned char)token[i] ^ (unsigned char)given[i < length ? i : length];
    return !differs;
}

static bool is_json(basin_request *r) {
    static const char wanted[] = "application/json";
    const char *type = basin_request_header(r, "Content-Type");
    size_t length = sizeof wanted - 1;
    return type && !strncasecmp(type, wanted, length) && strchr("; ", type[length]);
}

void basin_request_answer(basin_request *r) {
    basin_server *s = r->server;
    if (r->stage != BASIN_WAITING) {
        r->arrived = basin_clock();
        r->journal = atomic_load(&s->records);
    }
    bool post = !strcmp(r->method, "POST"), get = !strcmp(r->method, "GET");
    basin_generation *g = basin_generation_take(s);
    snprintf(r->model, sizeof r->model, "%s", g->id);
    basin_generation_drop(s, g);
    if (r->stage == BASIN_WAITING)
        routes[r->route].answer(r);
    else if (!allowed(r))
        basin_request_fail(r, 401, "needs the header Authorization: Bearer TOKEN with the token");
    else if (r->route == BASIN_ROUTE_OTHER)
        basin_request_fail(r, 404,
                           "no such path; there are /score, /explain, /add, /reload, "
                           "/health and /metrics");
    else if (!(post && strstr(routes[r->route].methods, "POST")) &&
             !(get && strstr(routes[r->route].methods, "GET")))
        r->allow = routes[r->route].methods,
        basin_request_fail(r, 405, "%s takes %s", routes[r->route].path, r->allow);
    else if (post && r->length > (size_t)s->o->max_body)
        basin_request_fail(r, 413, "the body is longer than %lld bytes", (long long)s->o->max_body);
    else if (post && r->length && !is_json(r))
        basin_request_fail(r, 415, "needs the header Content-Type: application/json");
    else
        routes[r->route].answer(r);
}
