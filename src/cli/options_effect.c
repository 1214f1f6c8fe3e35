/* Options that do not go with what stands beside them: one that others make idle, one that would
 * write over a file that is read; see `needs` and `writes` in options.h. */
#include <stdio.h>
#include <string.h>

#include "base/needs.h"
#include "cli/options.h"
#include "io/file.h"

typedef struct beside {
    const void *values;
    const basin_option *table;
    const char *operand; /* the first; "" where there is none */
} beside;

static const char operand_name[] = "OPERAND";

static const basin_option *find_named(const basin_option *table, const char *name, size_t length) {
    for (; table->name; table++)
        if (strlen(table->name) == length && !strncmp(table->name, name, length)) return table;
    return NULL;
}

static bool value_of(char text[BASIN_NEEDS_VALUE], const void *context, const char *name,
                     size_t length) {
    const beside *b = context;
    const basin_option *o = find_named(b->table, name, length);
    if (basin_needs_names(name, operand_name))
        return snprintf(text, BASIN_NEEDS_VALUE, "%s", b->operand), true;
    if (!o) return false;
    const void *at = (const char *)b->values + o->offset;
    const char *word = NULL;
    if (o->kind <= BASIN_OPTION_SWITCH) word = *(const bool *)at ? "on" : "off";
    if (o->kind >= BASIN_OPTION_TEXT) word = *(const char *const *)at;
    if (o->kind == BASIN_OPTION_INTEGER)
        snprintf(text, BASIN_NEEDS_VALUE, "%lld", (long long)*(const int64_t *)at);
    else if (o->kind == BASIN_OPTION_REAL)
        snprintf(text, BASIN_NEEDS_VALUE, "%.15g", *(const double *)at);
    else
        snprintf(text, BASIN_NEEDS_VALUE, "%s", word ? word : "");
    return true;
}

/* What would help, of a clause whose conditions all fail: "--top or --kind hard". */
static void list_wanted(char *text, size_t size, const char *clause, const basin_option *table) {
    size_t used = 0;
    *text = 0;
    for (const char *at = clause, *end = at + strcspn(at, " "); at < end; at += strspn(at, ",")) {
        size_t length, name = strcspn(at, "!=");
        bool wanted;
        const char *words = basin_needs_words(at, &length, &wanted);
        const basin_option *o = find_named(table, at, name);
        bool plain = !wanted || !o || o->kind <= BASIN_OPTION_SWITCH;
        if (o && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s--%s%s%.*s", used ? " or " : "",
                                     o->name, plain ? "" : " ", plain ? 0 : (int)length, words);
        at = words + length;
    }
}

static basin_status fail_idle(const basin_option *option, const char *condition,
                              const basin_parsed *parsed, const beside *b, basin_error *error) {
    char wanted[200];
    const basin_option *table = b->table;
    if (basin_needs_names(condition, operand_name))
        return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect with%s %.100s", option->name,
                          *b->operand ? "" : "out an", *b->operand ? b->operand : "operand");
    const basin_option *other = find_named(table, condition, strcspn(condition, "!="));
    const char *given = parsed->option[other - table];
    bool worded = given && other->kind > BASIN_OPTION_SWITCH;
    list_wanted(wanted, sizeof wanted, condition, table);
    if (given)
        return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect with --%s%s%.100s",
                          option->name, other->name, worded ? " " : "", worded ? given : "");
    return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect without %s", option->name,
                      wanted);
}

/* ---- files ---- */

/* The file that an option writes; NULL: none. */
static const char *written(const beside *b, const basin_option *o) {
    if (!o->writes) return NULL;
    return *(const char *const *)(const void *)((const char *)b->values + o->offset);
}

static basin_status check_file(const beside *b, const basin_option *option, char **operand,
                               int operands, basin_error *error) {
    const char *path = written(b, option);
    basin_status status = BASIN_OK;
    bool same = false;
    for (int i = 0; path && i < operands && !status; i++) {
        status = basin_file_same(&same, path, operand[i], error);
        if (same)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--%s %s would be written over %s, which is read; wanted another "
                              "file",
                              option->name, path, operand[i]);
    }
    for (const basin_option *o = b->table; path && o < option && !status; o++) {
        if (!written(b, o)) continue;
        status = basin_file_same(&same, path, written(b, o), error);
        if (same)
            return basin_fail(error, BASIN_BAD_VALUE, "--%s and --%s are both %s; wanted two files",
                              o->name, option->name, path);
    }
    return status;
}

basin_status basin_options_check(const void *values, const basin_parsed *parsed,
                                 const basin_option_set *set, char **operand, basin_error *error) {
    const beside b = {values, set->option, parsed->operands ? operand[0] : ""};
    for (int i = 0; set->option[i].name; i++) {
        const char *unmet =
            parsed->option[i] ? basin_needs_unmet(set->option[i].needs, value_of, &b) : NULL;
        if (unmet) return fail_idle(&set->option[i], unmet, parsed, &b, error);
    }
    basin_status status = BASIN_OK;
    for (const basin_option *o = set->option; o->name && !status; o++)
        status = check_file(&b, o, operand, parsed->operands, error);
    return status;
}

basin_status basin_options_try_files(const void *values, const basin_parsed *parsed,
                                     const basin_option_set *set, basin_error *error) {
    const beside b = {values, set->option, ""};
    basin_status status = BASIN_OK;
    for (int i = 0; set->option[i].name && !status; i++)
        if (parsed->option[i] && written(&b, &set->option[i]))
            status = basin_writer_try(written(&b, &set->option[i]), error);
    return status;
}
