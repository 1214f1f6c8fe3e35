/* What the commands of graphs share; see graph_options.h. */
#include "cli/graph/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *basin_graphs_cache(const char *option, char *text, size_t size) {
    if (option) return strcmp(option, "none") ? option : NULL;
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (base && *base)
        n = snprintf(text, size, "%s", base);
    else if (home && *home)
        n = snprintf(text, size, "%s/.cache", home);
    if (n < 0 || (size_t)n + 7 > size) return NULL;
    mkdir(text, 0777);
    memcpy(text + n, "/basin", 7);
    return text;
}

basin_status basin_graphs_part(int64_t **list, int64_t *count, const basin_graphset *set,
                               const char *part, const char *path, basin_error *error) {
    static const char *const name[3] = {"train", "validation", "test"};
    int64_t first = 0;
    if (!strcmp(part, "auto")) part = set->split[2] ? "test" : "all";
    *count = set->graphs;
    for (int i = 0, found = 0; i < 3 && strcmp(part, "all") && !found; i++) {
        found = !strcmp(part, name[i]);
        *count = set->split[i];
        first += found ? 0 : *count;
    }
    if (strcmp(part, "all") && !*count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: no graphs are set apart for '%s'; wanted a set with splits, or all",
                          path, part);
    *list = basin_graphs_range(first, *count);
    return *list ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "no memory for a list of graphs");
}

void basin_graphs_score_json(basin_json *json, const basin_graphs_score *score,
                             basin_graphs_target task) {
    basin_json_integer(json, task == BASIN_NODE_CLASSES ? "nodes" : "graphs", score->items);
    if (task == BASIN_GRAPHS_VALUES) {
        basin_json_number(json, "mae", score->loss);
        basin_json_number(json, "rmse", score->deviation);
    } else {
        basin_json_number(json, "accuracy", score->accuracy);
        basin_json_number(json, "balanced_accuracy", score->balanced);
        basin_json_number(json, "cross_entropy", score->loss);
    }
}

void basin_graphs_score_text(char *text, size_t size, const basin_graphs_score *score,
                             basin_graphs_target task) {
    if (task == BASIN_GRAPHS_VALUES)
        snprintf(text, size, "mean absolute error %.4f, root mean square error %.4f", score->loss,
                 score->deviation);
    else
        snprintf(text, size, "accuracy %.2f %%, class-averaged %.2f %%, cross entropy %.4f",
                 score->accuracy, score->balanced, score->loss);
}

/* ---- using a model ---- */

/* A set may lack some of the model's classes, or have others, which are then unknown. */
static void renumber(basin_graphset *set, const basin_graphs_session *s, int32_t *fresh) {
    int64_t items = set->task == BASIN_NODE_CLASSES ? set->nodes : set->graphs;
    for (int64_t i = 0; i < items; i++) {
        int64_t value = set->class_of[i] < 0 ? -1 : set->class_value[set->class_of[i]];
        fresh[i] = -1;
        for (int64_t c = 0; c < s->classes && set->class_of[i] >= 0; c++)
            if (s->class_value[c] == value) fresh[i] = (int32_t)c;
    }
    memcpy(set->class_of, fresh, (size_t)items * sizeof *fresh);
}

static basin_status match(basin_graphs_use *u, const char *data, bool labels, basin_error *error) {
    const basin_graphs_session *s = &u->session;
    if (!u->set.class_of && !u->set.target) {
        u->set.task = s->task;
        return labels ? basin_graphs_check_labels(&u->set, data, error) : BASIN_OK;
    }
    if (u->set.task != s->task)
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %s; the model wants %s", data,
                          basin_graphs_target_name(u->set.task), basin_graphs_target_name(s->task));
    if (s->task == BASIN_GRAPHS_VALUES) {
        if (u->set.targets == s->outputs) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %lld values a graph; the model has %lld",
                          data, (long long)u->set.targets, (long long)s->outputs);
    }
    int64_t items = s->task == BASIN_NODE_CLASSES ? u->set.nodes : u->set.graphs;
    bool same = u->set.classes == s->classes;
    for (int64_t c = 0; c < s->classes && same; c++)
        same = u->set.class_value[c] == s->class_value[c];
    if (same) return BASIN_OK;
    if (u->set.file)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: other classes than the model's", data);
    int32_t *fresh = malloc((size_t)items * sizeof *fresh);
    if (!fresh) return basin_fail(error, BASIN_NO_MEMORY, "no memory for classes");
    renumber(&u->set, s, fresh);
    u->set.classes = s->classes;
    free(fresh);
    return BASIN_OK;
}

/* A part is a run of graphs. */
static int64_t first_of(const basin_graphs_use *u) { return u->count ? u->list[0] : 0; }

basin_status basin_graphs_use_open(basin_graphs_use *u, const char *model, const char *data,
                                   const char *part, const char *cache, const char *backend,
                                   const char *products, int64_t threads, bool labels,
                                   basin_error *error) {
    char text[4096];
    const char *folder = basin_graphs_cache(cache, text, sizeof text);
    *u = (basin_graphs_use){0};
    basin_status status = basin_backend_open(&u->backend, backend, (int)threads, error);
    if (status) return status;
    basin_backend_set_products(u->backend, basin_option_products(products));
    status = basin_graphs_session_open(&u->session, model, u->backend, error);
    if (!status) status = basin_graphset_read(&u->set, data, error);
    if (!status) status = basin_graphs_part(&u->list, &u->count, &u->set, part, data, error);
    if (!status)
        status = basin_graphset_add_edge_walks_part(&u->set, u->session.settings.edge_walks,
                                                    first_of(u), u->count, error);
    if (!status) status = basin_graphset_encoding_check(&u->session.encoding, &u->set, data, error);
    if (!status) status = match(u, data, labels, error);
    if (!status)
        status = basin_graphs_session_positions_part(&u->positions, &u->session.settings, &u->set,
                                                     first_of(u), u->count, folder, error);
    if (status) return status;
    size_t rows = (size_t)basin_graphs_rows(&u->set, u->list, u->count);
    u->output = calloc(rows * (size_t)u->session.outputs + 1, sizeof *u->output);
    if (!u->output) return basin_fail(error, BASIN_NO_MEMORY, "no memory for outputs");
    basin_graphs_plans plans;
    basin_graphs_plans_begin(&plans, &u->session, &u->set, u->list, u->count, NULL);
    status = basin_graphs_plans_score(&plans, u->output, &u->set, &u->positions, u->list, u->count,
                                      error);
    basin_graphs_plans_free(&plans);
    return status;
}

void basin_graphs_use_free(basin_graphs_use *u) {
    free(u->list);
    free(u->output);
    basin_graphs_session_close(&u->session);
    if (u->backend) basin_backend_close(u->backend);
    basin_positions_free(&u->positions);
    basin_graphset_free(&u->set);
}
