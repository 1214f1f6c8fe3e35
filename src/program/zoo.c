/* basin zoo list: published models and their verdicts, or one of them, from the page docs/zoo.md;
 * scripts/zoo-verdicts measures what its table has. */
#include "basin/zoo.h"
#include "program/cli.h"

typedef struct options {
    BASIN_ARGS;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_OPTION_JSON_FOR("OPERAND="),
    BASIN_OPTIONS_END,
};

extern const char *const basin_zoo_page[]; /* the lines of docs/zoo.md */

/* The section whose first line names the model, without its picture. */
static basin_status show_one(const char *name, basin_error *error) {
    char quoted[80];
    const char *const *at = basin_zoo_page, *title = "";
    snprintf(quoted, sizeof quoted, "`%s`", name);
    for (; *at && !(*title && strstr(*at, quoted)); at++)
        if (!strncmp(*at, "##", 2)) title = (*at)[2] == '#' ? *at + strlen("### ") : "";
    if (!*at) return basin_usage(error, "no model '%s' in the zoo", name);
    printf("%s\n", title);
    for (; *at && **at != '#' && **at != '!'; at++) fputs(*at, stdout);
    return BASIN_OK;
}

/* The next cell of a row "| a | b |"; false after the last. */
static bool next_cell(char text[80], const char **row) {
    const char *start = *row + 2, *end = strchr(*row + 1, '|');
    if (!end) return false;
    snprintf(text, 80, "%.*s", (int)(end - start - 1), start);
    return *row = end, true;
}

/* The table of the page. */
static void put_table(basin_record *r, const void *context) {
    (void)context;
    const char *const *at = basin_zoo_page;
    while (strncmp(*at, "| model |", 9) != 0) at++;
    const char *const *heading = at;
    basin_record_table(r, "models", NULL);
    for (at += 2; **at == '|'; at++) {
        char key[80], value[80];
        const char *name = *heading, *row = *at;
        basin_record_row(r);
        while (next_cell(key, &name) && next_cell(value, &row)) {
            for (char *c = key; *c && basin_record_form(r) == BASIN_FORM_JSON; c++)
                if (*c == ' ') *c = '_';
            basin_record_text(r, key, value);
        }
    }
    basin_record_end(r);
}

static basin_status run(void *context, basin_error *error) {
    options *o = context;
    return o->operands ? show_one(o->operand[0], error)
                       : basin_record_print(o->json, put_table, NULL, error);
}

const basin_command basin_command_zoo_list = {BASIN_COMMAND("zoo list", table), .run = run};
