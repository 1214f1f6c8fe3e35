/* The state of the server: models that follow each other over one base, additions and their
 * journal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

/* ---- a model over the base ---- */

static void generation_free(basin_generation *g) {
    if (!g) return;
    basin_nodes_live_close(g->live);
    basin_network_free(g->network);
    basin_nodes_close(g->model);
    free(g);
}
static void generation_free_at(basin_generation **g) { generation_free(*g); }

static basin_status generation_open(basin_generation **generation, const basin_serving *o,
                                    basin_error *error) {
    BASIN_AT_EXIT(generation_free_at) basin_generation *g = NULL;
    BASIN_TRY(BASIN_NEW(&g, 1, "a model", error));
    BASIN_TRY(basin_nodes_open(&g->model, "anomaly", o->model, o->backend, error));
    const basin_nodes_info *info = basin_nodes_get_info(g->model);
    g->id = info->id;
    g->uses = 1;
    basin_network_options read = {.schema = info->schema, .memory = o->memory};
    BASIN_TRY(basin_network_open(&g->network, &o->base, 1, &read, error));
    basin_nodes_live_options live = {.memory = o->memory, .cap_nodes = o->cap};
    BASIN_TRY(basin_nodes_live_open(&g->live, g->model, g->network, &live, error));
    *generation = g, g = NULL;
    return BASIN_OK;
}

basin_generation *basin_generation_take(basin_server *s) {
    pthread_mutex_lock(&s->lock);
    basin_generation *g = s->now;
    g->uses++;
    pthread_mutex_unlock(&s->lock);
    return g;
}

void basin_generation_drop(basin_server *s, basin_generation *g) {
    pthread_mutex_lock(&s->lock);
    bool last = --g->uses == 0;
    pthread_mutex_unlock(&s->lock);
    if (last) generation_free(g);
}

/* ---- additions ---- */

/* Written first, then applied, so that nothing is known that the disk could not take; what the
 * columns refuse is taken back. */
static basin_status write_and_apply(basin_server *s, const basin_additions *a, const cJSON *tree,
                                    bool *bad, int64_t added[3], basin_error *error) {
    basin_nodes_live *live = s->now->live;
    basin_journal *j = s->journal;
    int64_t before = basin_nodes_live_count(live).nodes;
    basin_status status = basin_journal_append(j, tree, error);
    if (status) {
        atomic_fetch_add(&s->meters.failures, 1);
        return status;
    }
    status = basin_nodes_live_add(live, a->table[0], a->table[1], error);
    if (status) {
        *bad = status != BASIN_NO_MEMORY;
        basin_error cut;
        if (basin_journal_cut(j, &cut)) s->o->say("basin: %s", cut.text);
        return status;
    }
    added[0] = basin_nodes_live_count(live).nodes - before;
    added[1] = a->rows[0] - added[0];
    added[2] = a->rows[1];
    atomic_store(&s->records, j->records);
    atomic_store(&s->bytes, j->bytes);
    return BASIN_OK;
}

basin_status basin_server_add(basin_server *s, basin_request *r, const cJSON *tree, bool *bad,
                              basin_error *error) {
    BASIN_AT_EXIT(basin_additions_free) basin_additions additions = {0};
    pthread_mutex_lock(&s->adding);
    basin_status status = basin_additions_put(&additions, tree, s->schema, "the body", error);
    if (!status) status = basin_additions_finish(&additions, error);
    *bad = status && status != BASIN_NO_MEMORY;
    r->ids = additions.rows[0] + additions.rows[1];
    if (!status) status = write_and_apply(s, &additions, tree, bad, r->added, error);
    r->journal = atomic_load(&s->records);
    pthread_mutex_unlock(&s->adding);
    return status;
}

void *basin_server_commit(void *server) {
    basin_server *s = server;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->to_sync && !s->ending) pthread_cond_wait(&s->wake, &s->lock);
        basin_request *list = s->to_sync;
        s->to_sync = NULL;
        if (!list) break;
        pthread_mutex_unlock(&s->lock);
        basin_error problem = {0};
        basin_status status = basin_journal_sync(s->journal, &problem);
        atomic_fetch_add(&s->meters.syncs, 1);
        if (status) {
            atomic_fetch_add(&s->meters.failures, 1);
            s->o->say("basin: %s; additions are refused until the server is started again",
                      problem.text);
        }
        basin_request_resume(list, status, &problem);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- reloading ---- */

/* A model that catches up. */
typedef struct replay {
    basin_server *server;
    basin_generation *generation;
    int64_t number;
    bool first; /* when the server starts */
} replay;

/* The last record, which a crash left between writing and applying, may be one that the columns
 * refuse; it was never answered. */
static basin_status apply(void *context, const cJSON *tree, const char *what, basin_error *error) {
    replay *p = context;
    basin_server *s = p->server;
    BASIN_AT_EXIT(basin_additions_free) basin_additions a = {0};
    BASIN_TRY(basin_additions_put(&a, tree, s->schema, what, error));
    BASIN_TRY(basin_additions_finish(&a, error));
    basin_status status = basin_nodes_live_add(p->generation->live, a.table[0], a.table[1], error);
    bool last = p->first && ++p->number == s->journal->records;
    if (!status || !last || status == BASIN_NO_MEMORY || s->o->read_only) return status;
    s->o->say("basin: %s is left out, as it would have been when it was sent: %s", what,
              error->text);
    return basin_journal_cut(s->journal, error);
}

/* The new model catches up with the journal twice: beside additions that go on, then without. */
basin_status basin_server_reload(basin_server *s, basin_error *error) {
    basin_generation *g;
    int64_t bytes = atomic_load(&s->bytes);
    basin_status status = generation_open(&g, s->o, error);
    replay p = {.server = s, .generation = status ? NULL : g};
    if (!status && (status = basin_journal_replay(s->journal, 0, bytes, apply, &p, error)))
        generation_free(g);
    if (!status) {
        pthread_mutex_lock(&s->adding);
        status = basin_journal_replay(s->journal, bytes, s->journal->bytes, apply, &p, error);
        pthread_mutex_lock(&s->lock);
        basin_generation *old = status ? g : s->now;
        if (!status) s->now = g;
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_unlock(&s->adding);
        basin_generation_drop(s, old);
    }
    atomic_fetch_add(&s->meters.reloads[status != BASIN_OK], 1);
    return status;
}

/* ---- beginning and end ---- */

static basin_status open_journal(basin_server *s, basin_error *error) {
    const basin_serving *o = s->o;
    BASIN_FREE_AT_EXIT char *path = NULL;
    char digest[BASIN_SHA256_TEXT];
    BASIN_TRY(BASIN_NEW(&path, strlen(o->base) + sizeof ".journal", "a path", error));
    strcat(strcpy(path, o->base), ".journal");
    BASIN_TRY(basin_file_sha256(digest, o->base, error));
    BASIN_TRY(basin_journal_open(&s->journal, o->journal ? o->journal : path, digest, o->read_only,
                                 error));
    basin_journal *j = s->journal;
    if (j->dropped)
        o->say("basin: %s: dropped %lld bytes behind record %lld: an addition that was not "
               "finished",
               j->path, (long long)j->dropped, (long long)j->records);
    replay p = {.server = s, .generation = s->now, .first = true};
    BASIN_TRY(basin_journal_replay(j, 0, j->bytes, apply, &p, error));
    atomic_store(&s->records, j->records);
    atomic_store(&s->bytes, j->bytes);
    return BASIN_OK;
}

static basin_status read_schema(basin_server *s, basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *base = NULL;
    basin_network_options plain = {.missing = BASIN_MISSING_KEEP, .memory = s->o->memory};
    BASIN_TRY(basin_network_open(&base, &s->o->base, 1, &plain, error));
    return basin_schema_copy(&s->schema, base->schema, error);
}

basin_status basin_server_open(basin_server *s, const basin_serving *o, basin_error *error) {
    s->o = o;
    s->log = -1;
    pthread_mutex_init(&s->adding, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    BASIN_TRY(read_schema(s, error));
    BASIN_TRY(generation_open(&s->now, o, error));
    return open_journal(s, error);
}

void basin_server_close(basin_server *s) {
    basin_journal_close(s->journal);
    generation_free(s->now);
    basin_schema_free(s->schema);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->adding);
}
