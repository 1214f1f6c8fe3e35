/* What is made of the tables of options: man pages, well formed and with every option, and scripts
 * that complete commands, run by the shells themselves where they are installed. */
#include <stdbool.h>

#include "program/program.h"

typedef void (*visit)(void **state, const char *command);

/* Calls `with` for each command that the overview lists. */
static void each_command(void **state, visit with) {
    char name[64], *overview = strdup(run(state, "help")->out);
    int count = 0;
    assert_non_null(overview);
    for (const char *line = overview; *line; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, "  ", 2) != 0) continue;
        const char *end = strstr(line + 2, "  ");
        assert_non_null(end);
        snprintf(name, sizeof name, "%.*s", (int)(end - line - 2), line + 2);
        with(state, name);
        count++;
    }
    free(overview);
    assert_true(count > 20);
}

static bool has_tool(const char *name) {
    char line[200];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", name);
    return system(line) == 0;
}

/* Runs a line in the folder; its output must be empty and its exit code 0. */
static void check_silent(void **state, const char *format, const char *what) {
    char line[1000], command[800], text[2000];
    snprintf(command, sizeof command, format, what);
    snprintf(line, sizeof line, "cd '%s' && (%s) >.out 2>&1", (const char *)*state, command);
    int code = system(line);
    slurp(text, sizeof text, folder_path(state, ".out"));
    if (code || *text) fail_msg("%s: %s", command, text);
}

/* "image train" -> "basin-image-train.1" */
static void page_name(char name[80], const char *command) {
    snprintf(name, 80, "basin-%s.1", command);
    for (char *c = name; *c; c++)
        if (*c == ' ') *c = '-';
}

/* ---- man pages ---- */

/* The options of a page of help: its rows begin with blanks and a dash. */
static void check_options(const char *page, const char *help) {
    char name[64], wanted[200];
    int rows = 0;
    for (const char *line = help; *line;
         line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        const char *at = line + strspn(line, " ");
        if (at - line != 2 && at - line != 6) continue;
        if (at[0] == '-' && at[1] != '-') at += strlen("-o, ");
        if (strncmp(at, "--", 2) != 0) continue;
        at += 2;
        bool negatable = !strncmp(at, "[no-]", 5);
        if (negatable) at += 5;
        snprintf(name, sizeof name, "%.*s",
                 (int)strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-"), at);
        size_t put = (size_t)snprintf(wanted, sizeof wanted, "\\fB\\-\\-%s",
                                      negatable ? "\\fR[\\fBno\\-\\fR]\\fB" : "");
        for (const char *c = name; *c; c++)
            put +=
                (size_t)snprintf(wanted + put, sizeof wanted - put, *c == '-' ? "\\-" : "%c", *c);
        snprintf(wanted + put, sizeof wanted - put, "\\fR");
        assert_contains(page, wanted);
        rows++;
    }
    assert_true(rows > 0);
}

/* Only requests that we mean to use, so that no text begins with a dot by accident. */
static void check_requests(const char *page) {
    static const char *const known[] = {".TH ", ".SH ", ".SS ", ".TP\n", ".PP\n", ".br\n",
                                        ".B ",  ".BR ", ".I ",  ".nf\n", ".fi\n", ".ad l\n"};
    for (const char *line = page; *line; line += strcspn(line, "\n") + 1) {
        bool good = *line != '.' && *line != '\'';
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            good = good || !strncmp(line, known[i], strlen(known[i]));
        if (!good) fail_msg("a request that is not ours: %.60s", line);
    }
}

static void check_sections(const char *page, bool command) {
    static const char *const section[] = {
        ".SH NAME\n",    ".SH SYNOPSIS\n",        ".SH DESCRIPTION\n",
        ".SH OPTIONS\n", ".SH \"EXIT STATUS\"\n", ".SH \"SEE ALSO\"\n"};
    assert_true(!strncmp(page, ".TH \"BASIN", 10));
    const char *at = page;
    for (size_t i = 0; i < sizeof section / sizeof *section; i++) {
        if (i == 3 && !command) continue;
        at = strstr(at, section[i]);
        if (!at) fail_msg("no %s, or not in its place", section[i]);
    }
}

static void check_page(void **state, const char *command) {
    static char page[65536];
    char name[80];
    page_name(name, command);
    slurp(page, sizeof page, folder_path(state, name));
    check_sections(page, true);
    check_requests(page);
    check_options(page, run(state, "%s --help-all", command)->out);
}

static void check_listed(void **state, const char *command) {
    char page[16384], line[100];
    slurp(page, sizeof page, folder_path(state, "basin.1"));
    snprintf(line, sizeof line, ".TP\n.B %s\n", command);
    assert_contains(page, line);
}

/* As cmake/manual.cmake makes them. */
static void write_pages(void **state) {
    run_ok(state, "help --markdown >commands.md");
    check_silent(state, "awk -v version=1 -v folder=. -f '%s/cmake/manual.awk' commands.md",
                 BASIN_SOURCE);
}

TEST(writes_pages) {
    char page[16384];
    write_pages(state);
    each_command(state, check_page);
    each_command(state, check_listed);
    slurp(page, sizeof page, folder_path(state, "basin.1"));
    check_sections(page, false);
    check_requests(page);
}

static void lint_page(void **state, const char *command) {
    char name[80];
    page_name(name, command);
    if (has_tool("groff")) check_silent(state, "groff -man -ww -Tutf8 -z %s", name);
    if (has_tool("mandoc")) check_silent(state, "mandoc -T lint -W error %s", name);
}

TEST(lints_pages) {
    if (!has_tool("groff") && !has_tool("mandoc")) skip();
    write_pages(state);
    each_command(state, lint_page);
    if (has_tool("groff")) check_silent(state, "groff -man -ww -Tutf8 -z %s", "basin.1");
}

/* ---- completion ---- */

/* Words, the last of them unfinished, and what bash offers. */
static const char *const completed[][2] = {
    {"im", "image"},
    {"image ''", "train complete eval report export"},
    {"image train --pre", "--preset"},
    {"image train --preset fas", "fashion-large fashion"},
    {"image train --backend ''", "ref cpu cuda"},
    {"image train --backend = c", "cpu cuda"},
    {"image train --no-fl", "--no-flip"},
    {"image train --output ''", ""},
    {"image train pictures", ""},
    {"image train --backend=c", "--backend=cpu --backend=cuda"},
    {"bench --sh", "--shape"},
    {"help data ''", "convert info part journal get"},
    {"help --completion z", "zsh"},
};

static const char harness[] = "source ./basin.bash\n"
                              "try() {\n"
                              "    COMP_WORDS=(\"$@\")\n"
                              "    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                              "    _basin\n"
                              "    local IFS=' '\n"
                              "    echo \"${COMPREPLY[*]}\"\n"
                              "}\n"
                              "complete -p basin\n";

TEST(completes_in_bash) {
    char line[1000], text[4000], wanted[4000], script[4000];
    if (!has_tool("bash")) skip();
    run_ok(state, "help --completion bash >basin.bash");
    snprintf(script, sizeof script, "%s", harness);
    snprintf(wanted, sizeof wanted, "complete -o default -F _basin basin\n");
    for (size_t i = 0; i < sizeof completed / sizeof *completed; i++) {
        snprintf(script + strlen(script), 200, "try basin %s\n", completed[i][0]);
        snprintf(wanted + strlen(wanted), 200, "%s\n", completed[i][1]);
    }
    folder_put(state, "try.bash", script);
    folder_put(state, "basin", "#!/bin/sh\nexec " BASIN_PROGRAM " \"$@\"\n");
    snprintf(line, sizeof line,
             "cd '%s' && chmod +x basin && PATH=$PWD:$PATH bash --norc try.bash >offered 2>&1",
             (const char *)*state);
    assert_int_equal(system(line), 0);
    slurp(text, sizeof text, folder_path(state, "offered"));
    assert_string_equal(text, wanted);
}

static void check_offered(void **state, const char *command) {
    char line[100]; /* of the manual, which completion reads */
    snprintf(line, sizeof line, "\n## basin %s\n", command);
    assert_contains(run(state, "help --markdown")->out, line);
}

TEST(knows_all_commands) {
    each_command(state, check_offered);
    assert_error(run(state, "help --completion tcsh"), 2, "'tcsh' is not one of bash|zsh|fish");
}

TEST(parses_in_zsh) {
    run_ok(state, "help --completion zsh >_basin");
    if (!has_tool("zsh")) skip();
    check_silent(state, "zsh -n %s", "_basin");
}

TEST(parses_in_fish) {
    run_ok(state, "help --completion fish >basin.fish");
    if (!has_tool("fish")) skip();
    check_silent(state, "fish -n %s", "basin.fish");
}

int main(void) { return tests_run(folder_new, program_teardown); }
