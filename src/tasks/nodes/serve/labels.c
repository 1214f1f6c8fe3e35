/* basin serve --in-context: labelled accounts as stored patterns in place of a model. Accounts and
 * transfers stay those of the files; labels are added and corrected. A label is an addition like
 * others: the row of an account that has only that column. */
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

/* ---- additions ---- */

void basin_labels_free(basin_labels *l) { BASIN_FREE(l->node, l->label); }

/* The name that the base has for the column of ids, or of labels. */
static const char *name_of(const basin_schema *schema, basin_column_type type) {
    for (size_t i = 0; schema && i < schema->nodes.columns; i++)
        if (schema->nodes.column[i].type == type) return schema->nodes.column[i].name;
    return type == BASIN_COLUMN_ID ? "id" : "label";
}

cJSON *basin_labels_as_addition(cJSON *body, const basin_schema *schema) {
    cJSON *rows = cJSON_DetachItemFromObjectCaseSensitive(body, "labels"), *row, *label;
    cJSON *tree = rows ? body : cJSON_CreateObject();
    if (!rows && !cJSON_AddItemToArray(rows = cJSON_CreateArray(), body)) cJSON_Delete(body);
    if (!cJSON_AddItemToObject(tree, "accounts", rows)) cJSON_Delete(rows);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(tree, "accounts")) {
        label = cJSON_DetachItemFromObjectCaseSensitive(row, "label");
        if (label) cJSON_AddItemToObject(row, name_of(schema, BASIN_COLUMN_LABEL), label);
    }
    return tree;
}

static basin_status add_label(basin_labels *l, const basin_generation *g, const cJSON *row,
                              const basin_schema *schema, const char *path, basin_error *error) {
    const char *id_name = name_of(schema, BASIN_COLUMN_ID);
    const cJSON *label = cJSON_GetObjectItemCaseSensitive(row, name_of(schema, BASIN_COLUMN_LABEL));
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(row, "id");
    if (!id) id = cJSON_GetObjectItemCaseSensitive(row, id_name);
    bool known = cJSON_IsNumber(label) && (label->valuedouble == 0 || label->valuedouble == 1);
    if (!cJSON_IsString(id) || !known || cJSON_GetArraySize(row) != 2)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: needs \"id\", a string, and the label, 0 or 1, and nothing else",
                          path);
    int64_t node = basin_dictionary_find(&g->id_of, id->valuestring);
    if (node < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no account '%.100s'", path, id->valuestring);
    BASIN_TRY(BASIN_GROW(&l->node, &l->room[0], (size_t)l->count + 1, what, error));
    BASIN_TRY(BASIN_GROW(&l->label, &l->room[1], (size_t)l->count + 1, what, error));
    l->node[l->count] = node, l->label[l->count++] = label->valuedouble > 0;
    return BASIN_OK;
}

basin_status basin_labels_take(basin_labels *l, const basin_generation *g,
                               const basin_schema *schema, const cJSON *tree, const char *path,
                               basin_error *error) {
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(tree, "accounts"), *row;
    int64_t before = l->count;
    if (!cJSON_IsArray(rows) || !rows->child || cJSON_GetArraySize(tree) != 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: needs labels of accounts and nothing else; for other accounts and "
                          "edges start the server with other files",
                          path);
    cJSON_ArrayForEach(row, rows) {
        basin_status status = add_label(l, g, row, schema, path, error);
        if (status) l->count = before;
        BASIN_TRY(status);
    }
    return BASIN_OK;
}

basin_status basin_labels_store(basin_generation *g, const basin_labels *l,
                                const basin_near_commit *commit, basin_error *error) {
    double probability; /* so that the next score need not encode the context */
    basin_error again;
    basin_status status =
        l->count ? basin_context_commit(g->context, l->node, l->label, l->count, commit, error)
                 : BASIN_OK;
    (void)basin_context_predict(&probability, g->context, &(int64_t){0}, 1, &again);
    return status;
}

void basin_labels_close(basin_generation *g) {
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
