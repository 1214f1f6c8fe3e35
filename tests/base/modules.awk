# Rules over the files of src/ and include/: every include is an arrow of docs/architecture.md, and
# no text outside src/program names a flag of the program. Input, in this order: docs/architecture.md,
# tests/base/modules.allow, the files. Plain POSIX awk; test_modules.sh calls it,
# test_modules_catches.sh breaks each rule once.

function complain(text) { print text; failed = 1 }

# ---- the map: the block "```arrows" of docs/architecture.md

function read_list(text, item,    n, i) {
    gsub(/[ \t]/, "", text)
    n = split(text, item, ",")
    if (n == 1 && item[1] == "") n = 0
    return n
}

function read_arrows(module, text,    item, n, i, to, marked) {
    rank[module] = ++modules
    n = read_list(text, item)
    for (i = 1; i <= n; i++) {
        to = item[i]
        marked = sub(/!$/, "", to)
        arrow[module, to] = 1
        mark[module, to] = marked
    }
}

function read_map_line(text,    head, item, n, i) {
    head = text
    sub(/[ \t].*/, "", head)
    if (text ~ /^[^ \t]+[ \t]+->/) {
        sub(/^[^>]*>/, "", text)
        read_arrows(head, text)
    } else if (text ~ /^[^ \t]+[ \t]+declares[ \t]/) {
        sub(/^[^ \t]+[ \t]+declares/, "", text)
        n = read_list(text, item)
        for (i = 1; i <= n; i++) module_of_header[item[i]] = head
    } else if (head == "private") {
        sub(/^private/, "", text)
        n = read_list(text, item)
        for (i = 1; i <= n; i++) private_folder[item[i]] = 1
    } else if (text !~ /^[ \t]*$/) {
        complain(FILENAME ":" FNR ": no arrow, no \"declares\", no \"private\": " text)
    }
}

function read_map() {
    if (/^```/) in_map = /^```arrows/
    else if (in_map) read_map_line($0)
}

# ---- what is still allowed: lines "flag FILE"; # begins a comment

function read_allowed() {
    sub(/#.*/, "")
    if (NF == 2 && $1 == "flag") allowed[$1, $2] = 1
    else if (NF) complain(FILENAME ":" FNR ": wanted \"flag FILE\": " $0)
}

function refuse(kind, path, text) {
    if ((kind, path) in allowed) allowed[kind, path] = 2
    else complain(text)
}

# ---- where a path belongs

# basin.h and tasks.h include everything. basin/NAME.h belongs to engine/NAME, basin/tasks/NAME.h to
# tasks/NAME, unless a module declares it.
function module_of_public(path,    name) {
    if (path in module_of_header) return module_of_header[path]
    if (path == "basin/basin.h" || path == "basin/tasks/tasks.h") return "all"
    name = path
    sub(/^basin\//, "", name)
    sub(/\.h$/, "", name)
    return name ~ /^tasks\// ? name : "engine/" name
}

# The first `count` parts of a path.
function head(path, count,    part, n, i, out) {
    n = split(path, part, "/")
    out = part[1]
    for (i = 2; i <= count && i < n; i++) out = out "/" part[i]
    return out
}

# Modules of the engine and of the tasks are the folders below these two.
function levels(path) { return path ~ /^(engine|tasks)\// ? 2 : 1 }

function module_of(path) {
    if (path ~ /^basin\//) return module_of_public(path)
    if (path in rank) return path
    return head(path, levels(path))
}

# The folder within its module that a file lies in; "" directly in it.
function folder_of(path,    folder) {
    if (path ~ /^basin\//) return ""
    folder = head(path, levels(path) + 1)
    return folder == module_of(path) ? "" : folder
}

function height(module) { return module == "all" ? rank["program"] + 0.5 : rank[module] }

# ---- includes

function has_arrow(from, to) {
    if (!((from, to) in arrow)) return 0
    used[from, to] = 1
    return 1
}

function permitted(from, path,    module, to, folder) {
    module = module_of(from)
    to = module_of(path)
    folder = folder_of(path)
    if (path ~ /^basin\//) {
        if (module == "base") return to ~ /^engine\//
        return height(module) <= height(to) || has_arrow(module, path)
    }
    if (module == to) {
        return folder == "" || folder == folder_of(from) || has_arrow(module, folder) ||
               has_arrow(folder_of(from), folder)
    }
    if (has_arrow(module, path)) return 1
    if (folder in private_folder) return 0
    return has_arrow(module, to) || (folder != "" && has_arrow(module, folder))
}

function check_include(place, from, path,    to) {
    to = module_of(path)
    if (to != "all" && !(to in rank)) {
        complain(place ": " path " belongs to no module; wanted a folder of src, or a line " \
                 "\"ROOM declares " path "\" in docs/architecture.md")
    } else if (module_of(from) != "all" && !permitted(from, path)) {
        complain(place ": " module_of(from) " -> " path " is no arrow of docs/architecture.md")
    }
}

# ---- texts

# Takes comments out of a line and gives what stands between its double quotes.
function quoted(line,    out, c) {
    out = ""
    while (line != "") {
        if (in_comment) {
            if (!(c = index(line, "*/"))) return out
            line = substr(line, c + 2)
            in_comment = 0
        } else if (!match(line, /"|'|\/\*|\/\//)) {
            return out
        } else {
            c = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            if (c == "//") return out
            if (c == "/*") {
                in_comment = 1
            } else {
                if (c == "'") match(line, /^([^'\\]|\\.)*/)
                else match(line, /^([^"\\]|\\.)*/)
                if (c == "\"") out = out "\n" substr(line, 1, RLENGTH)
                line = substr(line, RLENGTH + 2)
            }
        }
    }
    return out
}

function check_text(place, file, line,    text) {
    text = quoted(line)
    if (match(text, /(^|[^-a-zA-Z0-9])--[a-z][-a-z]*/)) {
        text = substr(text, RSTART, RLENGTH)
        sub(/^[^-]*/, "", text)
        refuse("flag", file, place ": " text " is a flag of the program; outside src/program a message " \
               "names the setting")
    }
}

# ---- one file after the other

function begin_file() {
    file = FILENAME
    sub(/^\.\//, "", file)
    in_comment = 0
    from = file
    sub(/^(src|include)\//, "", from)
    if (file ~ /^src\//) {
        seen_module[module_of(from)] = 1
    } else {
        seen_header[from] = 1
    }
}

function check_line(    path) {
    if (match($0, /^[ \t]*#[ \t]*include[ \t]*("|<basin\/)/)) {
        path = $0
        sub(/^[^"<]*["<]/, "", path)
        sub(/[">].*/, "", path)
        check_include(file ":" FNR, from, path)
    } else if (file ~ /^src\// && file !~ /^src\/program\// && (in_comment || /["\/]/)) {
        check_text(file ":" FNR, file, $0)
    }
}

FNR == 1 { part++ }
part == 1 { read_map(); next }
part == 2 { read_allowed(); next }
FNR == 1 { begin_file() }
{ check_line() }

# ---- the map against what was seen

function check_modules(    module, header) {
    for (module in seen_module) {
        if (!(module in rank)) complain("src/" module ": no line in the arrows of docs/architecture.md")
    }
    for (module in rank) {
        if (!(module in seen_module)) complain("docs/architecture.md: no folder src/" module)
    }
    for (header in module_of_header) {
        if (!(header in seen_header)) complain("docs/architecture.md: no file include/" header)
    }
}

function check_arrows(    key, end, down) {
    for (key in arrow) {
        split(key, end, SUBSEP)
        down = height(module_of(end[1])) < height(module_of(end[2])) || !(end[1] in rank) ||
               index(end[2], end[1] "/") == 1 # a module uses a folder of its own
        if (!down && !mark[key]) {
            complain("docs/architecture.md: " end[1] " -> " end[2] " goes up")
        }
        if (!(key in used)) {
            complain("docs/architecture.md: " end[1] " -> " end[2] " is no include any more; " \
                     "take it out")
        }
    }
}

function check_allowed(    key, end) {
    for (key in allowed) {
        split(key, end, SUBSEP)
        if (allowed[key] == 1) {
            complain("tests/base/modules.allow: \"" end[1] " " end[2] "\" is not needed any more; " \
                     "take it out")
        }
    }
}

END {
    check_modules()
    check_arrows()
    check_allowed()
    if (modules == 0) complain("docs/architecture.md: no block \"```arrows\"")
    exit failed
}
