# Which commands and options the documents name that the program does not have. Input:
# what `basin help --markdown` prints, then the documents. test_docs.sh calls it,
# test_docs_catches.sh breaks each rule once.
#
# A line of code that begins with basin must go on with a command; what begins with -- behind a
# command, there or in a span, must be an option of it; a span that begins with -- must be an option
# of some command, or of a program that is called beside basin. After calls=1 such spans are not looked at, and
# $basin stands for basin.

function complain(text) { print FILENAME ":" FNR ": " text; failed = 1 }

# A row of a command's table: `-o, --output FILE`, `--[no-]flip`.
function keep_row(cell,    name) {
    sub(/`[^`]*$/, "", cell)
    while (match(cell, /--(\[no-\])?[a-z0-9-]+/)) {
        name = substr(cell, RSTART, RLENGTH)
        cell = substr(cell, RSTART + RLENGTH)
        if (sub(/\[no-\]/, "", name)) keep_option("--no-" substr(name, 3))
        keep_option(name)
    }
}

function keep_option(name) { option[command, name] = any[name] = 1 }

# What stands behind "basin": a command and its words, up to a comment or another program.
function check_call(text, strict,    word, words, i, name) {
    gsub(/(;| (#|\||&&|>)).*/, "", text)
    words = split(text, word, " ")
    name = word[1] " " word[2]
    if (!(name in commands)) name = word[1]
    if (!(name in commands)) {
        if (strict && !(name in group) && name !~ /^["$-]/) complain("no command " name)
        return
    }
    for (i = 2; i <= words; i++) {
        if (word[i] == "--") return
        if (match(word[i], /^--[a-z][a-z0-9-]*/)) check_option(name, substr(word[i], 1, RLENGTH))
    }
}

function check_option(name, word) {
    if (!((name, word) in option) && word !~ /^--help(-all)?$/) complain("basin " name " has no option " word)
}

function check_span(span,    word) {
    if (match(span, /^--[a-z][a-z0-9-]*/)) {
        if (calls) return
        word = substr(span, 1, RLENGTH)
        if (!(word in any) && !(word in elsewhere)) complain("no command has the option " word)
    } else {
        if (match(span, /(^|[ \/])basin [a-z]/)) span = substr(span, RSTART + RLENGTH - 1)
        check_call(span, 0)
    }
}

BEGIN {
    split("version help help-all map-by bind-to mpi mca no-install-recommends compile", name, " ") # mpirun, .., rivals
    for (i in name) elsewhere["--" name[i]] = 1
}
FNR == 1 { part++ }
part == 1 && /^## basin / {
    command = substr($0, 10)
    commands[command] = group[$3] = 1
}
part == 1 && /^\| `-/ { keep_row(substr($0, 4)) }
part == 1 { next }
/\\$/ { start = start substr($0, 1, length($0) - 1); next }
{
    line = start $0
    start = ""
    if (calls) sub(/^ *(show "|step [a-z]+ )?"?\$basin"? /, "    basin ", line)
}
line ~ /^ *(\$ )?((mpirun|srun) .*)?(build\/)?basin [a-z-]/ {
    match(line, /basin [a-z-]/)
    check_call(substr(line, RSTART + 6), line ~ (calls ? "^    " : "^(    |basin)"))
    next
}
{
    while (match(line, /`[^`]+`/)) {
        span = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        check_span(span)
    }
}
END { exit failed }
