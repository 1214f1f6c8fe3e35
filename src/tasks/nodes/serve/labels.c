/* basin serve --in-context: labelled accounts as stored patterns in place of a model. Accounts and
 * transfers stay those of the files; labels are added and corrected. A label is in the journal as
 * the row of an account that has only that column, so that `basin data` reads it as any addition.
 */
#include "tasks/nodes/serve/server.h"

static const char what[] = "labels";

static basin_status number_accounts(basin_generation *g, basin_error *error) {
    char text[BASIN_MAX_NODE];
    int32_t number;
    for (int64_t i = 0; i < g->network->nodes; i++)
        BASIN_TRY(
            basin_dictionary_add(&g->id_of, &number, basin_network_id(g->network, i, text), error));
    return BASIN_OK;
}

basin_network_options basin_labels_reading(const basin_serving *o) {
    return (basin_network_options){
        .missing = BASIN_MISSING_KEEP, .unite = true, .edgeless = true, .memory = o->memory};
}

basin_status basin_labels_open(basin_generation *g, const basin_serving *o, basin_error *error) {
    basin_network_options read = basin_labels_reading(o);
    basin_context_options how = {.passes = o->passes};
    g->id = "in-context", g->threshold = 0.5;
    BASIN_TRY(basin_network_open(&g->network, o->files, o->file_count, &read, error));
    BASIN_TRY(number_accounts(g, error));
    BASIN_TRY(basin_context_open(&g->context, o->weights, o->backend, error));
    BASIN_TRY(basin_context_read(g->context, g->network, o->memory, error));
    return basin_context_store(g->context, &how, error);
}

basin_nodes_live_counts basin_labels_count(const basin_generation *g) {
    int main = basin_network_main_relation(g->network);
    return (basin_nodes_live_counts){.nodes = g->network->nodes,
                                     .edges = main < 0 ? 0 : g->network->relation[main].edges};
}

/* ---- labels of requests and of the journal ---- */

static void change_free(basin_label_change *c) { BASIN_FREE(c->node, c->label, c->before); }

/* The name that the base has for the column of labels. */
static const char *label_name(const basin_schema *schema) {
    for (size_t i = 0; schema && i < schema->nodes.columns; i++)
        if (schema->nodes.column[i].type == BASIN_COLUMN_LABEL) return schema->nodes.column[i].name;
    return "label";
}

static basin_status add_change(basin_label_change *c, const basin_generation *g, const cJSON *row,
                               const char *name, const char *path, basin_error *error) {
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(row, "id"),
                *label = cJSON_GetObjectItemCaseSensitive(row, name);
    bool known = cJSON_IsNumber(label) && (label->valuedouble == 0 || label->valuedouble == 1);
    if (!cJSON_IsString(id) || !known || cJSON_GetArraySize(row) != 2)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: needs \"id\", a string, and \"%s\", 0 or 1, and nothing else", path,
                          name);
    int64_t node = basin_dictionary_find(&g->id_of, id->valuestring);
    if (node < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no account '%.100s'", path, id->valuestring);
    size_t all = (size_t)c->count + 1;
    BASIN_TRY(BASIN_GROW(&c->node, &c->room[0], all, what, error));
    BASIN_TRY(BASIN_GROW(&c->label, &c->room[1], all, what, error));
    BASIN_TRY(BASIN_GROW(&c->before, &c->room[2], all, what, error));
    c->node[c->count] = node, c->label[c->count] = label->valuedouble > 0;
    c->before[c->count++] = basin_context_get_label(g->context, node);
    return BASIN_OK;
}

/* {"id":..,"label":..}, or a list of them. */
static basin_status read_changes(basin_label_change *c, const basin_generation *g,
                                 const cJSON *tree, const char *list, const char *name,
                                 const char *path, basin_error *error) {
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(tree, list), *row;
    if (!rows) return add_change(c, g, tree, name, path, error);
    if (!cJSON_IsArray(rows) || !rows->child || cJSON_GetArraySize(tree) != 1)
        return basin_fail(error, BASIN_BAD_FILE, "%s: needs \"%s\", an array of objects, only",
                          path, list);
    cJSON_ArrayForEach(row, rows) BASIN_TRY(add_change(c, g, row, name, path, error));
    return BASIN_OK;
}

/* The record of the journal. */
static cJSON *record_of(const basin_generation *g, const basin_label_change *c, const char *name) {
    char text[BASIN_MAX_NODE];
    cJSON *tree = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(tree, "accounts");
    bool made = rows != NULL;
    for (int64_t i = 0; i < c->count && made; i++) {
        cJSON *row = cJSON_CreateObject();
        made = row && cJSON_AddItemToArray(rows, row) &&
               cJSON_AddStringToObject(row, "id", basin_network_id(g->network, c->node[i], text)) &&
               cJSON_AddNumberToObject(row, name, c->label[i]);
    }
    if (!made) cJSON_Delete(tree);
    return made ? tree : NULL;
}

/* So that the next score need not encode the context. */
static basin_status encode(const basin_generation *g, basin_error *error) {
    double probability;
    return basin_context_predict(&probability, g->context, &(int64_t){0}, 1, error);
}

static basin_status write_changes(basin_server *s, basin_label_change *c, basin_error *error) {
    basin_generation *g = s->now;
    BASIN_JSON_AT_EXIT cJSON *record = record_of(g, c, label_name(s->schema));
    if (!record) return basin_fail_memory(error, what);
    BASIN_TRY(basin_context_label(g->context, c->node, c->label, c->count, error));
    basin_status status = basin_server_write(s, record, error);
    basin_error again; /* labels of before had both classes */
    if (status) (void)basin_context_label(g->context, c->node, c->before, c->count, &again);
    (void)encode(g, &again);
    return status;
}

basin_status basin_labels_take(basin_request *r, const cJSON *tree, basin_error *error) {
    basin_server *s = r->server;
    BASIN_AT_EXIT(change_free) basin_label_change c = {0};
    pthread_rwlock_rdlock(&s->using);
    pthread_mutex_lock(&s->adding);
    basin_status status = read_changes(&c, s->now, tree, "labels", "label", "the body", error);
    r->ids = c.count;
    if (!status && c.count > s->o->max_ids)
        status = basin_fail(error, BASIN_BAD_SHAPE, "%lld labels, at most %lld are accepted",
                            (long long)c.count, (long long)s->o->max_ids);
    if (!status) status = write_changes(s, &c, error);
    int64_t bytes = s->meters.bytes;
    r->journal = s->meters.records;
    pthread_mutex_unlock(&s->adding);
    pthread_rwlock_unlock(&s->using);
    BASIN_TRY(status);
    s->meters.added += c.count;
    return basin_server_sync(s, bytes, error);
}

/* A record of the journal; all of them become labels together. */
basin_status basin_labels_replay(basin_generation *g, const basin_schema *schema, const cJSON *tree,
                                 const char *path, basin_error *error) {
    int64_t before = g->replayed.count;
    basin_status status =
        read_changes(&g->replayed, g, tree, "accounts", label_name(schema), path, error);
    if (status) g->replayed.count = before;
    return status;
}

basin_status basin_labels_settle(basin_generation *g, basin_error *error) {
    basin_label_change *c = &g->replayed;
    if (!g->context) return BASIN_OK;
    if (c->count) BASIN_TRY(basin_context_label(g->context, c->node, c->label, c->count, error));
    change_free(c);
    *c = (basin_label_change){0};
    return encode(g, error);
}

void basin_labels_close(basin_generation *g) {
    change_free(&g->replayed);
    basin_context_close(g->context);
    basin_dictionary_free(&g->id_of);
}

/* ---- scores ---- */

basin_status basin_labels_score(basin_nodes_live_score *score, basin_server *s, const char *id,
                                basin_error *error) {
    const basin_generation *g = s->now;
    *score = (basin_nodes_live_score){.node = basin_dictionary_find(&g->id_of, id)};
    if (score->node < 0) return BASIN_OK;
    pthread_mutex_lock(&s->adding);
    basin_status status =
        basin_context_predict(&score->probability, g->context, &score->node, 1, error);
    pthread_mutex_unlock(&s->adding);
    score->anomalous = score->probability > g->threshold;
    return status;
}

static void put_source(basin_json *json, const basin_generation *g,
                       const basin_context_source *of) {
    char text[BASIN_MAX_NODE], name[BASIN_MAX_COLUMN];
    basin_json_object(json, NULL);
    basin_json_text(json, "id", basin_network_id(g->network, of->node, text));
    basin_json_integer(json, "label", of->label);
    basin_json_number(json, "share", of->share);
    basin_json_number(json, "moves", of->move);
    basin_json_array(json, "agrees");
    for (int i = 0; i < BASIN_CONTEXT_AGREEING && of->column[i] >= 0; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "column", basin_context_column(name, g->context, of->column[i]));
        basin_json_number(json, "value", of->asked[i]);
        basin_json_number(json, "stored", of->value[i]);
        basin_json_number(json, "agreement", of->agreement[i]);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_end(json);
}

basin_status basin_labels_explain(basin_json *json, basin_server *s, int64_t node, int64_t max,
                                  basin_error *error) {
    const basin_generation *g = s->now;
    basin_context_explanation *e = NULL;
    pthread_mutex_lock(&s->adding);
    basin_status status = basin_context_explain(&e, g->context, NULL, node, error);
    pthread_mutex_unlock(&s->adding);
    BASIN_TRY(status);
    basin_json_number(json, "logit", e->logit);
    basin_json_number(json, "odds", e->odds);
    basin_json_number(json, "retrieved_from_anomalies", e->anomalous);
    basin_json_array(json, "sources");
    for (int64_t i = 0; i < e->sources && i < max; i++) put_source(json, g, &e->source[i]);
    basin_json_end(json);
    basin_context_explanation_free(e);
    return BASIN_OK;
}
