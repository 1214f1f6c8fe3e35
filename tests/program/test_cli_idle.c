/* Options that others make idle, options given twice or without their value, and files that would
 * be written over: refused in a line, or told of in one, before anything is done. */
#include <math.h>
#include <stdbool.h>

#include "base/needs.h"
#include "program/cli.h"
#include "program/program.h"

/* ---- without effect ---- */

TEST_WITH(idle_options_are_refused, folder_new, program_teardown) {
    static const char *const line[][2] = {
        {"image complete x.png --plain --smooth", "--smooth has no effect with --plain"},
        {"image eval m x --hold-out 4 --part test", "--part has no effect with --hold-out 4"},
        {"image report m x --hold-out 4 --part all", "--part has no effect with --hold-out 4"},
        {"image train x --hold-out 4 --test y", "--test has no effect with --hold-out 4"},
        {"anomaly train x --validation 0 --threshold-for recall=0.9",
         "--threshold-for has no effect with --validation 0"},
        {"anomaly score m x --reasons 3", "--reasons has no effect without --explain"},
        {"anomaly score x", "needs MODEL FILE..."},
        {"anomaly score --in-context x --parts 2", "--parts has no effect with --in-context"},
        {"anomaly eval x --split masks --ratio 0.4", "--ratio has no effect with --split masks"},
        {"anomaly eval x --split masks --split-seed 1", "--split-seed has no effect with --split"},
        {"node eval x --model m --runs 10", "--runs has no effect with --model m"},
        {"node eval x --split masks --ratio 0.6", "--ratio has no effect with --split masks"},
        {"graph cv x --index y --folds 10", "--folds has no effect with --index y"},
        {"graph cv x --protocol paper --fold 2", "--fold has no effect with --protocol paper"},
        {"descend x --no-hopfield --hopfield-kind relu", "has no effect with --no-hopfield"},
        {"descend x --hopfield-power 4", "--hopfield-power has no effect without --hopfield-kind "
                                         "power"},
        {"descend x --no-attention --self", "--self has no effect with --no-attention"},
        {"descend x --seed 1", "--seed has no effect without --noise"},
        {"data convert x y --missing zero --keep-gaps", "--keep-gaps has no effect with --missing"},
        {"data get --list --mirror y", "--mirror has no effect with --list"},
        {"data get --list x", "takes no names"},
        {"verify x --narrow-all", "--narrow-all has no effect without --dtype bf16|fp8"},
        {"bench --shape amazon --batch 4", "--batch has no effect with --shape amazon"},
        {"bench --nodes 9", "--nodes has no effect without --shape amazon|"},
        {"bench --calls --json", "--json has no effect with --calls"},
        {"help image train --markdown", "--markdown has no effect with image"},
        {"help --markdown --completion zsh", "--markdown has no effect with --completion"},
    };
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        assert_error(run(state, "%s", line[i][0]), 2, line[i][1]);
}

/* Whether an option can have this value: one word of a condition. */
static bool can_be(const basin_option *o, const char *word, size_t length) {
    char text[80];
    union {
        double number;
        int64_t integer;
        const char *word;
        bool on;
    } value;
    basin_setting_entry entry = {.is = o->entry.is};
    entry.is.low = fmin(entry.is.low, o->initial);
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    if (entry.is.kind >= BASIN_SETTING_CHOICE && !*text) return true;
    return !basin_setting_parse(&value, &entry, text, NULL);
}

/* A condition on a name or a value that does not exist would be passed over. */
static bool is_possible(const basin_command *command, const char *condition) {
    size_t length;
    bool equal, possible = true;
    const char *words = basin_needs_words(condition, &length, &equal), *end = words + length;
    const basin_option *o = basin_option_find(command, condition, strcspn(condition, "!="));
    if (!o) return basin_needs_names(condition, "OPERAND");
    do {
        length = strcspn(words, "|, ");
        possible = possible && can_be(o, words, length);
        words += length;
    } while (words < end && *words++ == '|');
    return possible;
}

TEST(conditions_can_be_met) {
    for (const basin_command *const *at = basin_commands; *at; at++) {
        int count = 0;
        assert_true((*at)->size >= sizeof(basin_args));
        for (const basin_option *o = (*at)->option; o->entry.is.name; o++, count++)
            for (const char *c = o->needs; c && *(c += strspn(c, ", ")); c += strcspn(c, ", "))
                if (!is_possible(*at, c))
                    fail_msg("%s --%s needs %s", (*at)->name, o->entry.is.name, c);
        assert_true(count <= BASIN_MAX_OPTIONS);
    }
}

/* ---- twice, or without a value ---- */

TEST_WITH(the_last_of_two_counts_and_is_told, folder_new, program_teardown) {
    const program *p = run(state, "image train --epochs 3 --epochs 4 --flip --no-flip "
                                  "--size 32 --size 32 --print-config");
    assert_string_equal(
        p->err, "basin: note: --epochs was given more than once; the last value is used: 4\n"
                "basin: note: --flip was given more than once; the last value is used: off\n");
    cJSON *tree = run_json(p);
    assert_true(json_number(tree, "settings.epochs") == 4);
    p = run(state, "image train -q --quiet --epochs 3 --epochs 4 --print-config");
    assert_string_equal(p->err, "");
}

TEST_WITH(an_option_is_no_value, folder_new, program_teardown) {
    assert_error(run(state, "image train x --log --resume"), 2,
                 "--log needs a value: FILE; found '--resume' (write --log=--resume");
    assert_error(run(state, "image train x -o -q"), 2, "-o needs a value: FILE; found '-q'");
    assert_error(run(state, "image train x --epochs -- y"), 2, "--epochs needs a value");
    assert_error(run(state, "image train x --epochs"), 2, "--epochs needs a value");
    assert_error(run(state, "image train x --rate-last -0.5,"), 2, "-0.5,");
    assert_error(run(state, "descend x --quiet=1"), 2, "--quiet takes no value, found '1'");
    assert_error(run(state, "descend x -qw"), 2, "-q takes no value, found 'w'");
    assert_error(run(state, "descend --weights=--x nowhere"), 1, "nowhere");
}

/* ---- files ---- */

static void assert_text(void **state, const char *name, const char *text) {
    char found[200];
    slurp(found, sizeof found, folder_path(state, name));
    assert_string_equal(found, text);
}

TEST_WITH(what_is_read_is_not_written_over, folder_new, program_teardown) {
    static const char table[] = "id,label,x\na,0,1\nb,1,2\n";
    folder_put(state, "nodes.csv", table);
    folder_put(state, "edges.csv", "source,target\na,b\n");
    static const char *const line[][2] = {
        {"anomaly train nodes.csv edges.csv -o nodes.csv",
         "--output nodes.csv would overwrite nodes.csv"},
        {"anomaly train nodes.csv edges.csv --log ./nodes.csv",
         "overwrite nodes.csv, which is read"},
        {"anomaly score m.st edges.csv nodes.csv -o nodes.csv", "name another file"},
        {"image train nodes.csv --checkpoint nodes.csv", "--checkpoint nodes.csv would overwrite"},
        {"image train x -o m.st --log ./m.st", "--output and --log are both ./m.st"},
        {"data convert edges.csv nodes.csv", "'nodes.csv' comes last"},
    };
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        assert_error(run(state, "%s", line[i][0]), 2, line[i][1]);
    assert_text(state, "nodes.csv", table);
    const program *p = run(state, "data part nodes.csv edges.csv -n 50 -q");
    assert_error(p, 1, "of 50 parts of 2 nodes one is empty, expected fewer parts");
    assert_string_equal(p->out, "");
    assert_error(run(state, "image train x -o /dev/null --log /dev/null"), 1, "x: ");
}

/* Nothing is read or computed for a file that cannot be written. */
TEST_WITH(what_cannot_be_written_is_told_first, folder_new, program_teardown) {
    static const char *const line[] = {
        "anomaly score m.st x.csv -o nowhere/s.csv", "anomaly report m.st x.csv -o nowhere/p.html",
        "image report m.st x -o nowhere/p.html", "descend x -o nowhere/c.npz"};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        assert_error(run(state, "%s", line[i]), 1, ": cannot write: No such file or directory");
    assert_error(run(state, "descend x -o ."), 1, ".: is a folder, not a file");
    folder_put(state, "file", "");
    assert_error(run(state, "data get mutag -o file"), 1, "file: is a file, not a folder");
}
