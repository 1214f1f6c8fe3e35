/* What each kind of database has to do; database.c calls it. */
#ifndef BASIN_DATA_DATABASE_ENGINE_H
#define BASIN_DATA_DATABASE_ENGINE_H

#include "data/database/database.h"

typedef struct basin_database_engine {
    /* Connects and begins the transaction in which everything is read. `close` follows in any case.
     */
    basin_status (*open)(basin_database *database, basin_error *error);
    void (*close)(basin_database *database);
    basin_status (*query)(basin_database *database, basin_error *error);
    void (*end)(basin_database *database);
    int (*columns)(const basin_database *database);
    const char *(*column)(const basin_database *database, int column);
    basin_status (*next)(bool *more, basin_database *database, basin_error *error);
    basin_status (*cell)(const char **text, size_t *length, basin_database *database, int column,
                         basin_error *error);
} basin_database_engine;

struct basin_database {
    const basin_database_engine *engine;
    char *address, *name; /* the second for messages */
    const char *sql;      /* of the query that runs, or NULL */
    void *state;          /* the engine's */
};

extern const basin_database_engine basin_database_sqlite, basin_database_postgresql;

/* An error of the query that runs, or of the connection, in one line. */
basin_status basin_database_fail(const basin_database *database, const char *message,
                                 basin_error *error);
/* Overwrites the passwords of the address wherever the message has them. */
void basin_database_hide(char *message, const char *address);

#endif
