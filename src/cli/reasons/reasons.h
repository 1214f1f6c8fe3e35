/* Reasons as tables and as JSON: what moves the score of a node, or the odds of its class. */
#ifndef BASIN_CLI_REASONS_REASONS_H
#define BASIN_CLI_REASONS_REASONS_H

#include "basin/tasks/anomaly.h"
#include "data/network/network.h"
#include "io/json_writer.h"

typedef struct basin_story {
    const basin_anomaly_explanation *e;
    const basin_network *network;
    const basin_schema *schema;
    int64_t neighbours, features; /* at most so many of each */
    bool classes;                 /* labels are classes; else normal and anomalous */
} basin_story;

/* A node's label in words; "-" where there is none. */
const char *basin_story_label(const basin_story *story, int64_t node, char text[BASIN_NODE_TEXT]);
/* Neighbours and features, each as a table; false where standard output fails. */
bool basin_story_print(const basin_story *story);
/* Logits, neighbours and features, as fields of an object. */
void basin_story_put(basin_json *json, const basin_story *story);

#endif
