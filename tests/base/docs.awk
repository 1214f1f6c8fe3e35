# Which files the documents, and comments in C, name that the tree does not have. Input: the list of
# the tree's files, then documents and sources. test_docs.sh calls it, test_docs_catches.sh breaks each
# rule once.
#
# A word that ends like a source file (graph.c) must be a file, or the end of one's path; a path
# from the root (scripts/bench) must be a file or a folder; so must the target of a link, except
# in ../shared, which lies beside the tree. * stands for anything, and so do NAME, MODULE and NN. A
# tutorial may name the files that its own blocks make (```c wells.c).

function complain(text) { print text; failed = 1 }

function keep_path(path,    end) {
    for (end = path; end != ""; ) {
        known[end] = 1
        if (!sub(/^[^\/]*\//, "", end)) end = ""
    }
    tree[++paths] = path
    whole[path] = 1
    while (sub(/\/[^\/]*$/, "", path)) folder[path] = 1
    top[path] = 1
}

function has_pattern(word,    i) {
    gsub(/NAME|MODULE|NN/, "*", word)
    if (!index(word, "*")) return 0
    gsub(/[.+]/, "\\\\&", word)
    gsub(/\*+/, ".*", word)
    for (i = 1; i <= paths; i++) {
        if (tree[i] ~ ("(^|/)" word "$")) return 1
    }
    return 0
}

function check_name(word) {
    if (!(word in known) && !(word in outside) && !((FILENAME, word) in made) && !has_pattern(word)) {
        complain(FILENAME ":" FNR ": no file " word)
    }
}

function check_path(word) {
    sub(/\/$/, "", word)
    if (!(word in folder) && !(word in whole) && !has_pattern(word)) {
        complain(FILENAME ":" FNR ": no file or folder " word)
    }
}

function check_word(word,    first) {
    sub(/[.,\/]+$/, "", word)
    first = word
    sub(/\/.*/, "", first)
    if (first == "..") check_link(word)
    else if (first != word && first in top) check_path(word)
    else if (word ~ /[^.]\.(c|h|cu|cuh|py|md|sh|cmake|awk|out)$/) check_name(word)
}

function check_words(line,    word) {
    gsub(/[a-z]+:\/\/[^ )>]*/, "", line)
    while (match(line, /[A-Za-z0-9_.*+\/-]+/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        check_word(word)
    }
}

function check_link(target,    path) {
    if (target ~ /^([a-z]+:|#)/ || target ~ /^\.\.\/shared(\/|$)/) return
    sub(/#.*/, "", target)
    path = FILENAME
    if (!sub(/\/[^\/]*$/, "", path)) path = ""
    while (sub(/^\.\.\//, "", target)) {
        if (!sub(/\/[^\/]*$/, "", path)) path = ""
    }
    path = path == "" ? target : path "/" target
    sub(/\/$/, "", path)
    if (!(path in whole) && !(path in folder)) complain(FILENAME ":" FNR ": no file " path)
}

# Links are checked where they point to, and taken out of the line.
function check_links(line,    target) {
    while (match(line, /\]\([^)]*\)/)) {
        target = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, 1, RSTART) substr(line, RSTART + RLENGTH)
        check_link(target)
    }
    return line
}

# A comment's own lines: names of sources, of three letters and more (o.c may be a member).
function check_comment(line,    word) {
    if (line !~ /^ *(\/\*| \*)/) return
    while (match(line, /[A-Za-z0-9_.*\/-]+/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/\.+$/, "", word)
        if (word ~ /^[a-z][A-Za-z0-9_\/-]*[a-z0-9_][a-z0-9_][a-z0-9_]\.(c|h|cu)$/) check_name(word)
    }
}

BEGIN { outside["cblas.h"] = outside["stdio.h"] = outside["stdlib.h"] = 1 } # of the system
FNR == 1 { part++ }
part == 1 { keep_path($0); next }
FILENAME ~ /\.(c|h|cu)$/ { check_comment($0); next }
/^```[a-z]+ [^ ]+$/ { made[FILENAME, $2] = 1; next }
{ check_words(check_links($0)) }
END { exit failed }
