/* A network whose edges have a direction, seen from both ends: what one node pays another joins the
 * two, and each has lists of those that come and of those that go. See network.h. */
#include "tasks/nodes/network/network.h"

/* Node i's neighbours of either direction, ascending, each once; returns how many. */
static int64_t join_row(int32_t *to, const basin_relation *a, const basin_relation *b, int64_t i) {
    int64_t x = a->row[i], y = b->row[i], count = 0;
    while (x < a->row[i + 1] || y < b->row[i + 1]) {
        bool first = y == b->row[i + 1] || (x < a->row[i + 1] && a->col[x] <= b->col[y]);
        int32_t next = first ? a->col[x++] : b->col[y++];
        if (!count || next != to[count - 1]) to[count++] = next;
    }
    return count;
}

/* What both directions carry, the lower node's list first: the same at either end. */
static void join_facts(basin_relation *homo, const basin_relation *come, const basin_facts *facts,
                       int64_t nodes) {
    for (int64_t i = 0; i < nodes && homo->fact; i++)
        for (int64_t e = homo->row[i]; e < homo->row[i + 1]; e++) {
            int64_t j = homo->col[e], low = i < j ? i : j, high = i + j - low;
            for (int way = 0; way < 1 + (low < high); way++) {
                int64_t from =
                    basin_relation_find(come, way ? high : low, (int32_t)(way ? low : high));
                if (from >= 0)
                    basin_facts_merge(homo->fact + e * facts->count,
                                      come->fact + from * facts->count, facts);
            }
        }
}

static basin_status turn_facts(basin_relation *go, const basin_relation *come, const int64_t *entry,
                               const basin_facts *facts, basin_error *error) {
    size_t bytes = (size_t)facts->count * sizeof *go->fact;
    BASIN_TRY(basin_relation_alloc_facts(go, facts, error));
    for (int64_t e = 0; e < go->edges && bytes; e++)
        memcpy(go->fact + e * facts->count, come->fact + entry[e] * facts->count, bytes);
    return BASIN_OK;
}

static basin_status join_ways(basin_network *n, basin_error *error) {
    basin_relation *homo = &n->relation[BASIN_HOMO], *come = &n->relation[BASIN_COME];
    basin_relation *go = &n->relation[BASIN_GO];
    BASIN_FREE_AT_EXIT int64_t *entry = NULL;
    BASIN_TRY(basin_relation_turn(go, &entry, come, n->nodes, error));
    BASIN_TRY(turn_facts(go, come, entry, &n->facts, error));
    BASIN_TRY(BASIN_NEW(&homo->row, n->nodes + 1, "a network", error));
    BASIN_TRY(BASIN_NEW_RAW(&homo->col, 2 * come->edges + 1, "a network", error));
    for (int64_t i = 0; i < n->nodes; i++)
        homo->row[i + 1] = homo->row[i] + join_row(homo->col + homo->row[i], come, go, i);
    homo->edges = homo->row[n->nodes];
    BASIN_TRY(basin_relation_alloc_facts(homo, &n->facts, error));
    join_facts(homo, come, &n->facts, n->nodes);
    return BASIN_OK;
}

static basin_status add_ways(basin_network *n, basin_error *error) {
    basin_relation *to, come = n->relation[0];
    n->relations = 0; /* the only one moves; until then it is nowhere */
    basin_status status = basin_network_new_relation(&to, n, "homo", error);
    if (!status) status = basin_network_new_relation(&to, n, "come", error);
    if (status) {
        basin_relation_free(&come);
        return status;
    }
    free(come.name);
    come.name = to->name, *to = come;
    BASIN_TRY(basin_network_new_relation(&to, n, "go", error));
    n->directed = false, n->both = true;
    return join_ways(n, error);
}

basin_status basin_network_both_ways(basin_network **copy, const basin_network *network,
                                     basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *copy = NULL;
    BASIN_TRY(basin_network_ordered(&n, network, error));
    if (!n) BASIN_TRY(basin_network_as_is(&n, network, error));
    if (!n->schema) BASIN_TRY(basin_schema_of(&n->schema, network, BASIN_MISSING_ERROR, error));
    BASIN_TRY(add_ways(n, error));
    *copy = n, n = NULL;
    return BASIN_OK;
}

basin_status basin_network_one_way(basin_network *n, const char *name, basin_error *error) {
    char *own = basin_string_copy(name);
    if (!own) return basin_fail_memory(error, "relations");
    basin_relation_free(&n->relation[BASIN_HOMO]);
    basin_relation_free(&n->relation[BASIN_GO]);
    n->relation[0] = n->relation[BASIN_COME];
    free(n->relation[0].name);
    n->relation[0].name = own;
    n->relations = 1, n->directed = true, n->both = false;
    return BASIN_OK;
}
