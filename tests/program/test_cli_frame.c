/* The frame of the program: help everywhere, wrong usage in one line with a suggestion, exit codes,
 * settings, and what the build says of itself. */
#include <stdbool.h>

#include "program/program.h"

#include "basin/version.h"

TEST(helps) {
    const program *p = run_ok(state, "");
    assert_contains(p->out, "Usage: basin COMMAND");
    assert_contains(p->out, "  info ");
    assert_contains(run(state, "--help")->out, "Usage: basin COMMAND");
    assert_contains(run(state, "help info")->out, "Usage: basin info FILE...");
    assert_contains(run(state, "info --help")->out, "--json");
    assert_contains(run(state, "info x -h")->out, "--json");
    assert_contains(run(state, "anomaly train --help-all")->out, "|standard|quantile\n");
    p = run_ok(state, "help help");
    assert_string_equal(p->err, "");
}

/* A noun alone names its commands, in each way to ask. */
TEST(lists_groups) {
    static const char *const noun[] = {"image", "anomaly", "graph", "data"};
    char line[100], entry[100];
    for (int i = 0; i < 4; i++) {
        snprintf(entry, sizeof entry, "  %s %s", noun[i], i < 3 ? "train" : "get");
        for (int way = 0; way < 4; way++) {
            snprintf(line, sizeof line,
                     way == 0   ? "%s"
                     : way == 1 ? "%s --help"
                     : way == 2 ? "%s -h"
                                : "help %s",
                     noun[i]);
            const program *p = run_ok(state, "%s", line);
            assert_string_equal(p->err, "");
            assert_contains(p->out, entry);
            assert_null(strstr(p->out, "  info "));
        }
    }
    assert_contains(run(state, "help 'data get'")->out, "Usage: basin data get NAME...");
    assert_error(run(state, "image trian"), 2, "'image trian'; did you mean 'image train'?");
    assert_error(run(state, "image frobnicate"), 2, "'image frobnicate' (see 'basin help image')");
    assert_error(run(state, "image --frob"), 2, "image --frob");
}

/* Every setting by its name, also those without a line in the help; the last one counts. */
TEST(settings_are_options) {
    cJSON *tree = run_json(run(state, "image train --rate-first=0.25 --rate-last 0.5 --no-flip "
                                      "--epochs 3 --epochs 4 --print-config"));
    assert_true(json_number(tree, "settings.rate_first") == 0.25);
    assert_true(json_number(tree, "settings.rate_last") == 0.5);
    assert_true(json_number(tree, "settings.epochs") == 4);
    assert_true(cJSON_IsFalse(json_at(tree, "settings.flip")));
    assert_error(run(state, "image train --epohcs 4"), 2, "did you mean '--epochs'?");
    assert_error(run(state, "image train --epochs many"), 2, "--epochs: ");
    assert_error(run(state, "info --epochs 4"), 2, "unknown option '--epochs'");
}

static int count_lines(const char *text) {
    int lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

/* What most people need fits a screen; the rest is one option away. */
TEST(help_fits_a_screen) {
    enum { SCREEN = 60 };
    char name[64], *overview = strdup(run(state, "help")->out);
    int commands = 0;
    for (const char *line = overview; *line; line += strcspn(line, "\n") + 1) {
        const char *end = strncmp(line, "  ", 2) ? NULL : strstr(line + 2, "  ");
        if (!end) continue;
        commands++;
        snprintf(name, sizeof name, "%.*s", (int)(end - line - 2), line + 2);
        int lines = count_lines(run(state, "%s --help", name)->out);
        if (lines > SCREEN) fail_msg("%s --help has %d lines", name, lines);
        assert_true(count_lines(run(state, "%s --help-all", name)->out) >= lines - 1);
    }
    free(overview);
    assert_in_range(commands, 30, 40);
    assert_null(strstr(run(state, "image train --help")->out, "--save-every"));
    assert_contains(run(state, "image train --help-all")->out, "--save-every");
}

/* Names from other tools lead to ours, where the command has it. */
TEST(hints_at_foreign_names) {
    static const char *const pair[][2] = {
        {"lr", "rate"},        {"batch-size", "batch"}, {"device", "backend"},
        {"gpu", "backend"},    {"workers", "threads"},  {"num-workers", "threads"},
        {"jobs", "threads"},   {"epoch", "epochs"},     {"weight-decay", "decay"},
        {"hidden-dim", "dim"}, {"embed-dim", "dim"},    {"num-heads", "heads"},
        {"layers", "steps"},   {"depth", "steps"},      {"out", "output"},
        {"img-size", "size"},  {"patch-size", "patch"},
    };
    char hint[100];
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        snprintf(hint, sizeof hint, "'--%s'; did you mean '--%s'?", pair[i][0], pair[i][1]);
        assert_error(run(state, "image train --%s 3 x", pair[i][0]), 2, hint);
    }
    assert_error(run(state, "graph train --dropout-rate 3"), 2, "did you mean '--dropout'?");
    assert_error(run(state, "graph train --layers 3"), 2, "did you mean '--blocks'?");
    assert_error(run(state, "info --lr 3"), 2, "unknown option '--lr' (see");
}

/* ---- one flag for one thing ---- */

/* A row of the manual: "| `-o, --output FILE` | default | help |". */
typedef struct row {
    char command[40], name[40], value[300], help[1000];
} row;

/* Calls `with` for every option of every command. */
static void each_option(const char *manual, void (*with)(void *context, const row *r),
                        void *context) {
    row r = {0};
    for (const char *line = manual; *line; line += strcspn(line, "\n") + 1) {
        int length = (int)strcspn(line, "\n");
        sscanf(line, "## basin %39[^\n]", r.command);
        const char *at = strncmp(line, "| `", 3) ? NULL : strstr(line, "--");
        if (!at || at > line + 8) continue;
        const char *end = strstr(at, "` |"), *help = end ? strstr(end + 3, " | ") : NULL;
        assert_true(help && help < line + length);
        int name = (int)strcspn(at, " `");
        snprintf(r.name, sizeof r.name, "%.*s", name, at);
        snprintf(r.value, sizeof r.value, "%.*s", (int)(end - at) - name, at + name);
        snprintf(r.help, sizeof r.help, "%.*s", (int)(line + length - help), help);
        with(context, &r);
    }
}

/* These mean the same everywhere, but for verify, which has its own words for what it compares. */
static bool is_shared(const row *r) {
    static const char *const shared[] = {"--json",  "--quiet",   "--backend", "--products",
                                         "--dtype", "--threads", "--preset",  "--config"};
    bool own = !strcmp(r->command, "verify") && strcmp(r->name, "--json") != 0;
    for (size_t i = 0; i < sizeof shared / sizeof *shared && !own; i++)
        if (!strcmp(r->name, shared[i])) return true;
    return false;
}

typedef struct meanings {
    row first[16];
    int count, met;
} meanings;

static void check_meaning(void *context, const row *r) {
    meanings *m = context;
    m->met++;
    if (strlen(r->help) < 8) fail_msg("%s %s has no help in commands.md", r->command, r->name);
    if (strcmp(r->name, "--out") == 0 || strcmp(r->name, "--edge-type") == 0)
        fail_msg("%s has %s", r->command, r->name);
    if (!is_shared(r)) return;
    int i = 0;
    while (i < m->count && strcmp(m->first[i].name, r->name) != 0) i++;
    if (i == m->count) m->first[m->count++] = *r;
    const row *first = &m->first[i];
    bool presets = !strcmp(r->name, "--preset"); /* each task has its own */
    if (strcmp(r->help, first->help) != 0 || (!presets && strcmp(r->value, first->value) != 0))
        fail_msg("%s of %s and of %s differ:\n%s%s\n%s%s", r->name, r->command, first->command,
                 r->value, r->help, first->value, first->help);
}

/* Whether a command that has --backend has the options that go with it. */
typedef struct company {
    char command[40];
    const char *wanted;
    bool backend, has;
    int without;
} company;

static void close_command(company *c) {
    c->without += c->backend && !c->has;
    c->backend = c->has = false;
}

static void check_company(void *context, const row *r) {
    company *c = context;
    if (strcmp(c->command, r->command) != 0) close_command(c);
    snprintf(c->command, sizeof c->command, "%s", r->command);
    c->backend |= !strcmp(r->name, "--backend");
    c->has |= !strcmp(r->name, c->wanted);
}

TEST(has_one_flag_for_one_thing) {
    static meanings m;
    /* How many commands that compute still lack it; each number may only fall, but for --json,
     * which a report does without: it is a page. */
    static const struct {
        const char *name;
        int without;
    } company_of[] = {
        {"--threads", 0}, {"--quiet", 1}, {"--products", 0}, {"--dtype", 1}, {"--json", 4}};
    char *manual = strdup(run(state, "help --markdown")->out);
    assert_non_null(manual);
    each_option(manual, check_meaning, &m);
    assert_true(m.met > 300 && m.count == 8);
    for (size_t i = 0; i < sizeof company_of / sizeof *company_of; i++) {
        company c = {.wanted = company_of[i].name};
        each_option(manual, check_company, &c);
        close_command(&c);
        if (c.without > company_of[i].without)
            fail_msg("%d commands have --backend and no %s", c.without, c.wanted);
    }
    free(manual);
}

TEST(rejects_wrong_usage) {
    assert_error(run(state, "inof"), 2, "did you mean 'info'?");
    assert_error(run(state, "xyzzy"), 2, "unknown command 'xyzzy'");
    assert_error(run(state, "train x"), 2, "expected one of 'image train', 'anomaly train'");
    assert_error(run(state, "version"), 2, "did you mean '--version'?");
    assert_error(run(state, "help inof"), 2, "did you mean 'info'?");
    assert_error(run(state, "--frob"), 2, "--frob");
    assert_error(run(state, "info --jsno x"), 2, "did you mean '--json'?");
    assert_error(run(state, "info -z x"), 2, "unknown option '-z'");
    assert_error(run(state, "info --json=1 x"), 2, "--json takes no value");
    assert_error(run(state, "info"), 2, "needs FILE...");
    assert_error(run(state, "--version x"), 2, "unexpected argument 'x'");
    assert_string_equal(run(state, "inof")->out, "");
    assert_error(run(state, "image train --preset nothing"), 2, "there is no preset 'nothing'");
    assert_error(run(state, "image train --config nowhere.json"), 1, "nowhere.json: ");
}

TEST(ends_options) {
    assert_error(run(state, "info -- --json"), 1, "--json");
    assert_error(run(state, "--version >/dev/full"), 1, "standard output");
    assert_error(run(state, "help --markdown >/dev/full"), 1, "No space left on device");
}

TEST(names_the_build) {
    const program *p = run_ok(state, "--version");
    assert_contains(p->out, "basin " BASIN_VERSION_STRING "\n");
    assert_contains(p->out, "compiler");
    cJSON *tree = run_json(run(state, "--version --json"));
    assert_string_equal(json_at(tree, "version")->valuestring, BASIN_VERSION_STRING);
    assert_string_equal(json_at(tree, "backends.0")->valuestring, "ref");
    assert_true(json_number(tree, "threads") >= 1);
    assert_contains(run_ok(state, "--version --help")->out, "BASIN_ISA");
}

int main(void) { return tests_run(folder_new, program_teardown); }
