/* What is made of the tables of options: help, the manual as Markdown (and cmake/manual.awk makes
 * man pages of that); and basin help, which prints them and completions. See cli.h. */
#include "program/cli.h"

enum { WIDTH = 80 }; /* of a page */

/* ---- options ---- */

/* One option as pages show it, whichever table it comes from. */
typedef struct option_row {
    char letter;      /* 0 where there is none */
    char name[64];    /* without dashes: "head-dim" */
    bool negatable;   /* there is also --no-name */
    char value[300];  /* "N", "ref|cpu"; "" where it takes none */
    char initial[64]; /* the default; "" where there is none worth a word */
    char help[700];
    bool setting; /* of the task's table */
    bool more;    /* not in the short help */
} option_row;

/* ---- commands.md: a section for each command, and one for options of several ---- */

extern const char *const basin_command_pages[]; /* its lines */

static bool begins(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

/* Adds `gap` and a line without its line feed. */
static void add_line(char *text, size_t size, const char *gap, const char *line) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%.*s", gap, (int)strcspn(line, "\n"), line);
}

const char *const *basin_section_find(const char *name) {
    const char *const *line = basin_command_pages;
    size_t end = 3 + strlen(name);
    while (*line && !(begins(*line, "## ") && begins(*line + 3, name) && (*line)[end] &&
                      strchr(" \n", (*line)[end])))
        line++;
    return line;
}

void basin_page_read(basin_page *page, const basin_command *command) {
    const char *const *line = basin_section_find(command->name);
    *page = (basin_page){0};
    if (!*line) return;
    const char *operands = *line + 3 + strlen(command->name), *gap = "";
    add_line(page->operands, sizeof page->operands, "", operands + strspn(operands, " "));
    add_line(page->summary, sizeof page->summary, "", line[2]);
    for (line += 4; *line && !begins(*line, "## "); line++) {
        bool example = begins(*line, "    "), blank = **line == '\n' || !**line;
        if (example)
            add_line(page->example, sizeof page->example, *page->example ? "\n" : "", *line + 2);
        else if (!blank && !begins(*line, "- --"))
            add_line(page->text, sizeof page->text, gap, *line);
        gap = blank ? "\n\n" : " ";
    }
}

/* The line "- --NAME: HELP" of the command's section, or else of the one for several. */
static void read_help(option_row *row, const basin_command *command) {
    const char *section[] = {command->name, "several commands"};
    char start[80];
    snprintf(start, sizeof start, "- --%s: ", row->name);
    for (int i = 0; i < 2 && !*row->help; i++) {
        const char *const *line = basin_section_find(section[i]);
        while (*line && *++line && !begins(*line, "## "))
            if (begins(*line, start))
                add_line(row->help, sizeof row->help, "", *line + strlen(start));
    }
}

/* Settings that most people set; a name means the same in all tasks that have it. */
static bool is_basic(const char *name) {
    static const char *const basic[] = {"batch",   "blocks", "dim",  "epochs", "heads", "length",
                                        "members", "patch",  "rate", "seed",   "size",  "steps"};
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++)
        if (!strcmp(basic[i], name)) return true;
    return false;
}

/* The i-th row of basin_option_at. False after the last. */
static bool option_row_at(option_row *row, const basin_args *args, int i) {
    const basin_option *o;
    const basin_setting_entry *e = basin_option_at(&o, args, i);
    if (!e) return false;
    const basin_setting *s = &e->is;
    bool flag = o && o->flag, unset = o && s->kind <= BASIN_SETTING_REAL && o->initial < s->low;
    *row = (option_row){.letter = o ? o->letter : 0,
                        .negatable = s->kind == BASIN_SETTING_SWITCH && !flag,
                        .setting = !o,
                        .more = o ? o->more : !is_basic(s->name)};
    snprintf(row->name, sizeof row->name, "%s", s->name);
    for (char *c = row->name; *c; c++)
        if (*c == '_') *c = '-';
    const char *const *words = s->choices;
    if (o && args->command->task && !strcmp(s->name, "preset"))
        words = basin_settings_presets(args->command->task);
    if (words)
        basin_choices_print(row->value, sizeof row->value, words);
    else if (s->value)
        snprintf(row->value, sizeof row->value, "%s", s->value);
    if (!flag && !unset)
        basin_setting_print(row->initial, sizeof row->initial, o ? args : args->settings->values,
                            e);
    if (s->help)
        snprintf(row->help, sizeof row->help, "%s", s->help);
    else
        read_help(row, args->command);
    return true;
}

/* "-o, --output FILE", "--[no-]flip". */
static void option_row_name(char *text, size_t size, const option_row *row) {
    char letter[8] = "";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(text, size, "%s--%s%s%s%s", letter, row->negatable ? "[no-]" : "", row->name,
             *row->value ? " " : "", row->value);
}

/* ---- help ---- */

/* `text` wrapped to the page, continued at `indent`; the cursor stands at `column`. */
static void wrap(const char *text, int column, int indent) {
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + length > WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column < indent) {
            printf("%*s", indent - column, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        for (; *text == ' ' || *text == '\n'; text++)
            if (*text == '\n') putchar('\n'), column = 0;
    }
    putchar('\n');
}

/* Up to the first full stop or semicolon: what the short help has space for. */
static int first_clause(const char *help) {
    const char *at = help;
    while (*at && !((*at == '.' || *at == ';') && (at[1] == ' ' || !at[1]))) at++;
    return (int)(at - help);
}

static void print_row(const option_row *row, bool all) {
    enum { INDENT = 30 };
    char name[400], text[1200];
    int first = all ? (int)strlen(row->help) : first_clause(row->help);
    option_row_name(name, sizeof name, row);
    if (!all && strlen(name) > 50) snprintf(name + 48, 4, "..");
    int length = printf(row->letter ? "  %s" : "      %s", name);
    snprintf(text, sizeof text, *row->initial ? "%.*s [%s]" : "%.*s", first, row->help,
             row->initial);
    if (length + 2 > INDENT) putchar('\n'), length = 0;
    wrap(text, length, INDENT);
}

static void print_usage(const basin_command *command, const basin_page *page) {
    printf("basin %s%s%s%s", command->name, *page->operands ? " " : "", page->operands,
           command->option->entry.is.name ? " [options]" : "");
}

void basin_command_help_print(const basin_command *command, bool all) {
    option_row row;
    basin_args *args;
    basin_error error;
    bool settings = false;
    int left_out = 0;
    basin_page page;
    basin_page_read(&page, command);
    printf("basin %s: %s\n\nUsage: ", command->name, page.summary);
    print_usage(command, &page);
    puts("\n");
    wrap(page.text, 0, 0);
    puts("\nOptions:");
    if (basin_args_new(&args, command, &error)) return;
    for (int i = 0; option_row_at(&row, args, i); i++) {
        left_out += row.more && !all;
        if (row.more && !all) continue;
        if (row.setting && !settings) puts("\nSettings, with the values of the default preset:");
        settings = row.setting;
        print_row(&row, all);
    }
    basin_args_free(args);
    if (left_out) printf("\n--help-all explains these in full, and %d more.\n", left_out);
    if (*page.example) printf("\nExamples:\n%s\n", page.example);
}

static const char *summary_of(basin_page *page, const basin_command *command) {
    basin_page_read(page, command);
    return page->summary;
}

static void print_commands(const basin_noun *group) {
    basin_page page;
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (basin_command_noun(*at) == group)
            printf("  %-16s  %s\n", (*at)->name, summary_of(&page, *at));
}

void basin_noun_help_print(const basin_noun *group) {
    printf("%s.\n\nUsage: basin %s COMMAND [operands] [options]\n\nCommands:\n", group->summary,
           group->noun);
    print_commands(group);
    printf("\nbasin help %s COMMAND describes one.\n", group->noun);
}

/* The lines below a heading of commands.md, as they are, up to the blank one before the next. */
static void print_section(const char *name) {
    const char *const *line = basin_section_find(name);
    while (*++line && line[1] && !begins(line[1], "## ")) fputs(*line, stdout);
}

static void print_overview(void) {
    puts("Basin: Energy Transformers. You write the energy; Basin derives the network.\n\n"
         "Usage: basin COMMAND [operands] [options]");
    for (const basin_noun *group = basin_nouns;; group++) {
        printf("\n%s\n", group->summary);
        print_commands(group);
        if (!*group->noun) break;
    }
    print_section("the overview");
}

/* ---- Markdown ---- */

/* Text of a cell: a bar would end it, and stars would make words between them italic. */
static void print_cell(const char *text) {
    for (; *text; text++) printf(strchr("|*", *text) ? "\\%c" : "%c", *text);
}

static void print_table(const basin_command *command) {
    char name[400];
    option_row row;
    basin_args *args;
    basin_error error;
    if (!command->option->entry.is.name || basin_args_new(&args, command, &error)) return;
    puts("\n| option | default | |\n|---|---|---|");
    for (int i = 0; option_row_at(&row, args, i); i++) {
        if (row.letter == 'h' || !strcmp(row.name, "help-all")) continue;
        option_row_name(name, sizeof name, &row);
        printf("| `");
        for (const char *at = name; *at; at++) printf(*at == '|' ? "\\|" : "%c", *at);
        printf("` | %s | ", row.initial);
        print_cell(row.help);
        puts(" |");
    }
    basin_args_free(args);
}

static void print_manual(void) {
    puts("# The program");
    print_section("the manual");
    for (const basin_command *const *at = basin_commands; *at; at++) {
        basin_page page;
        basin_page_read(&page, *at);
        printf("\n## basin %s\n\n%s: `", (*at)->name, page.summary);
        print_usage(*at, &page);
        printf("`\n\n%s\n", page.text);
        print_table(*at);
        if (*page.example) printf("\n```\n%s\n```\n", page.example);
    }
}

/* ---- basin help ---- */

extern const char *const basin_completion_bash[], *const basin_completion_zsh[];
extern const char *const basin_completion_fish[], *const basin_completion_awk[];

/* The script of a shell (share/basin/completion.*), with the awk program in the place of @AWK@. */
static void print_lines(const char *const *line) {
    for (; *line; line++)
        if (begins(*line, "@AWK@"))
            print_lines(basin_completion_awk);
        else
            fputs(*line, stdout);
}

typedef struct options {
    BASIN_ARGS;
    const char *completion;
    bool markdown;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_FLAG(markdown, "markdown", .needs = "OPERAND= completion="),
    BASIN_CHOICE(completion, "completion", "bash|zsh|fish", .needs = "OPERAND="),
    BASIN_OPTIONS_END,
};

static basin_status run(void *context, basin_error *error) {
    options *o = context;
    int used;
    const basin_noun *group = o->operands == 1 ? basin_noun_find(o->operand[0]) : NULL;
    const basin_command *command = NULL;
    if (group) return basin_noun_help_print(group), BASIN_OK;
    if (o->operands && !(command = basin_command_find(&used, o->operands, o->operand, error)))
        return BASIN_USAGE;
    if (command)
        basin_command_help_print(command, false);
    else if (o->markdown)
        print_manual();
    else if (o->completion)
        print_lines(*o->completion == 'b'   ? basin_completion_bash
                    : *o->completion == 'z' ? basin_completion_zsh
                                            : basin_completion_fish);
    else
        print_overview();
    return BASIN_OK;
}

const basin_command basin_command_help = {BASIN_COMMAND("help", table), .run = run,
                                          .max_operands = 2};
