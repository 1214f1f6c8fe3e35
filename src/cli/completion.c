/* Completion of commands. The scripts of the three shells are a few lines each: they ask the
 * program itself, `basin __complete WORDS..`, what may stand in place of the last word, and it
 * answers from the tables of options, one candidate per line with a tab before what it is. Where it
 * answers nothing, the shell offers names of files. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const char bash[] =
    "# Completion of basin for bash. Made by: basin help --completion bash\n"
    "_basin() {\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null | cut -f1))\n"
    "}\n"
    "complete -o default -F _basin basin\n";

static const char zsh[] =
    "#compdef basin\n"
    "# Completion of basin for zsh. Made by: basin help --completion zsh\n"
    "_basin() {\n"
    "    local -a offered\n"
    "    offered=(\"${(@f)$($words[1] __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    if [[ -z $offered ]]; then\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    offered=(\"${(@)offered//:/\\\\:}\")\n"
    "    offered=(\"${(@)offered//$'\\t'/:}\")\n"
    "    _describe -t commands basin offered\n"
    "}\n\n"
    "_basin \"$@\"\n";

static const char fish[] =
    "# Completion of basin for fish. Made by: basin help --completion fish\n"
    "function __basin_offered\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    $words[1] __complete $words[2..-1] 2>/dev/null\n"
    "end\n"
    "complete -c basin -f -n 'count (__basin_offered) >/dev/null' -a '(__basin_offered)'\n"
    "complete -c basin -F -n 'not count (__basin_offered) >/dev/null'\n";

void basin_completion_print(FILE *file, const char *shell) {
    fputs(*shell == 'b' ? bash : *shell == 'z' ? zsh : fish, file);
}

/* ---- candidates ---- */

static bool begins(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

/* A candidate, if it goes on from `typed`, and the first sentence on it. */
static void offer(const char *before, const char *name, size_t length, const char *typed,
                  const char *help) {
    size_t given = strlen(typed);
    const char *stop = strstr(help, ". ");
    int sentence = stop ? (int)(stop - help) : (int)strlen(help);
    if (given > length || strncmp(name, typed, given) != 0) return;
    printf("%s%.*s\t%.*s\n", before, (int)length, name, sentence, help);
}

static void offer_firsts(const char *typed) {
    for (const basin_noun *group = basin_nouns; *group->noun; group++)
        offer("", group->noun, strlen(group->noun), typed, group->summary);
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (!strchr((*at)->name, ' '))
            offer("", (*at)->name, strlen((*at)->name), typed, (*at)->summary);
}

static void offer_verbs(const char *noun, const char *typed) {
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *blank = strchr((*at)->name, ' ');
        if (blank && begins((*at)->name, noun) && (*at)->name + strlen(noun) == blank)
            offer("", blank + 1, strlen(blank + 1), typed, (*at)->summary);
    }
}

static void offer_options(const basin_option_set *set, const void *values, const char *typed) {
    basin_option_row row;
    char name[80];
    for (int i = 0; basin_option_row_at(&row, set, values, i); i++)
        for (int no = 0; no <= row.negatable; no++) {
            snprintf(name, sizeof name, "--%s%s", no ? "no-" : "", row.name);
            offer("", name, strlen(name), typed, row.help);
        }
}

/* The values of an option, if it is a choice. `before` goes before each of them. */
static void offer_values(const basin_option_set *set, const void *values, const char *option,
                         size_t length, const char *before, const char *typed) {
    basin_option_row row;
    for (int i = 0; basin_option_row_at(&row, set, values, i); i++) {
        char name[80], letter[] = {'-', row.letter ? row.letter : '-', 0};
        snprintf(name, sizeof name, "--%s", row.name);
        bool same = length == strlen(name) && !strncmp(name, option, length);
        if (!row.choice || (!same && (length != 2 || strncmp(letter, option, 2) != 0))) continue;
        for (const char *at = row.value; *at;
             at += at[strcspn(at, "|")] ? strcspn(at, "|") + 1 : strcspn(at, "|"))
            offer(before, at, strcspn(at, "|"), typed, "");
    }
}

static void offer_for(const basin_command *command, const char *before, const char *typed) {
    void *values = basin_command_values(command);
    basin_option_set set = basin_command_options(command);
    const char *equals = strchr(typed, '=');
    char option[80];
    if (!values) return;
    snprintf(option, sizeof option, "%.*s", equals ? (int)(equals + 1 - typed) : 0, typed);
    if (begins(typed, "--") && equals)
        offer_values(&set, values, typed, (size_t)(equals - typed), option, equals + 1);
    else if (*typed == '-')
        offer_options(&set, values, typed);
    else if (*before == '-')
        offer_values(&set, values, before, strlen(before), "", typed);
    basin_command_values_free(command, values);
}

/* bash makes three words of --backend=c. */
static int join_equals(int count, char **word) {
    if (count > 1 && !strcmp(word[count - 1], "=")) word[count - 1] = "";
    if (count > 2 && !strcmp(word[count - 2], "=")) {
        word[count - 2] = word[count - 1];
        count--;
    }
    return count;
}

void basin_complete(int count, char **word) {
    int used;
    basin_error error;
    count = join_equals(count, word);
    if (count < 1) return;
    const char *typed = word[count - 1];
    if (count == 1) {
        offer_firsts(typed);
        return;
    }
    const basin_command *command = basin_command_find(&used, count - 1, word, &error);
    if (command) offer_for(command, count > used + 1 ? word[count - 2] : "", typed);
    if (!command && count == 2) offer_verbs(word[0], typed);
    if (command == &basin_command_help && *typed != '-' && *word[count - 2] != '-') {
        if (count == 2) offer_firsts(typed);
        if (count == 3) offer_verbs(word[1], typed);
    }
}
