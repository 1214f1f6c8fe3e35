# The rules of the house, over the files of src/ and include/: every include is an arrow of
# docs/architecture.md, folders and files stay small, and no text below src/cli names a flag of
# the program. Input, in this order: docs/architecture.md, tests/base/house.allow, the files.
# Plain POSIX awk; test_house.sh calls it, test_house_catches.sh breaks each rule once.

function complain(text) { print text; failed = 1 }

# ---- the map: the block "```arrows" of docs/architecture.md

function read_list(text, item,    n, i) {
    gsub(/[ \t]/, "", text)
    n = split(text, item, ",")
    if (n == 1 && item[1] == "") n = 0
    return n
}

function read_arrows(room, text,    item, n, i, to, marked) {
    rank[room] = ++rooms
    n = read_list(text, item)
    for (i = 1; i <= n; i++) {
        to = item[i]
        marked = sub(/!$/, "", to)
        arrow[room, to] = 1
        mark[room, to] = marked
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
        for (i = 1; i <= n; i++) room_of_header[item[i]] = head
    } else if (head == "private") {
        sub(/^private/, "", text)
        n = read_list(text, item)
        for (i = 1; i <= n; i++) private_floor[item[i]] = 1
    } else if (text !~ /^[ \t]*$/) {
        complain(FILENAME ":" FNR ": no arrow, no \"declares\", no \"private\": " text)
    }
}

function read_map() {
    if (/^```/) in_map = /^```arrows/
    else if (in_map) read_map_line($0)
}

# ---- what is still allowed: lines "flag FILE", "files FOLDER", "lines FILE"; # begins a comment

function read_allowed() {
    sub(/#.*/, "")
    if (NF == 2 && $1 ~ /^(flag|files|lines)$/) allowed[$1, $2] = 1
    else if (NF) complain(FILENAME ":" FNR ": wanted \"flag|files|lines PATH\": " $0)
}

function refuse(kind, path, text) {
    if ((kind, path) in allowed) allowed[kind, path] = 2
    else complain(text)
}

# ---- where a path belongs

# basin.h and tasks.h open all doors: they stand between the program and the rooms.
function room_of_public(path,    name) {
    if (path in room_of_header) return room_of_header[path]
    if (path == "basin/basin.h" || path == "basin/tasks.h" || path == "basin/tasks/tasks.h") {
        return "doors"
    }
    if (path ~ /^basin\/tasks\//) return "task"
    name = path
    sub(/^basin\//, "", name)
    sub(/\.h$/, "", name)
    return name
}

function room_of(path) {
    if (path ~ /^basin\//) return room_of_public(path)
    sub(/\/.*/, "", path)
    return path
}

function floor_of(path,    part, n) {
    n = split(path, part, "/")
    return n > 2 && part[1] != "basin" ? part[1] "/" part[2] : ""
}

function height(room) { return room == "doors" ? rank["cli"] + 0.5 : rank[room] }

# ---- includes

function has_arrow(from, to) {
    if (!((from, to) in arrow)) return 0
    used[from, to] = 1
    return 1
}

function permitted(from, path,    room, to, floor) {
    room = room_of(from)
    to = room_of(path)
    floor = floor_of(path)
    if (path ~ /^basin\//) return height(room) <= height(to) || has_arrow(room, path)
    if (room == to) {
        return floor == "" || floor == floor_of(from) || has_arrow(room, floor) ||
               has_arrow(floor_of(from), floor)
    }
    if (has_arrow(room, path)) return 1
    if (floor in private_floor) return 0
    return has_arrow(room, to) || (floor != "" && has_arrow(room, floor))
}

function check_include(place, from, path,    to) {
    to = room_of(path)
    if (to != "doors" && !(to in rank)) {
        complain(place ": " path " belongs to no room; wanted a folder of src, or a line " \
                 "\"ROOM declares " path "\" in docs/architecture.md")
    } else if (room_of(from) != "doors" && !permitted(from, path)) {
        complain(place ": " room_of(from) " -> " path " is no arrow of docs/architecture.md")
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
        refuse("flag", file, place ": " text " is a flag of the program; below src/cli a message " \
               "names the setting")
    }
}

# ---- one file after the other

function begin_file(    folder) {
    file = FILENAME
    sub(/^\.\//, "", file)
    folder = file
    sub(/\/[^\/]*$/, "", folder)
    in_comment = 0
    from = file
    sub(/^(src|include)\//, "", from)
    if (file ~ /^src\//) {
        files[folder]++
        seen_room[room_of(from)] = 1
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
    } else if (file ~ /^src\// && file !~ /^src\/cli\// && (in_comment || /["\/]/)) {
        check_text(file ":" FNR, file, $0)
    }
    if (file ~ /^src\// && FNR == 501) {
        refuse("lines", file, file ": more than 500 lines")
    }
}

FNR == 1 { part++ }
part == 1 { read_map(); next }
part == 2 { read_allowed(); next }
FNR == 1 { begin_file() }
{ check_line() }

# ---- the map against what was seen

function check_rooms(    room, header) {
    for (room in seen_room) {
        if (!(room in rank)) complain("src/" room ": no line in the arrows of docs/architecture.md")
    }
    for (room in rank) {
        if (!(room in seen_room)) complain("docs/architecture.md: no folder src/" room)
    }
    for (header in room_of_header) {
        if (!(header in seen_header)) complain("docs/architecture.md: no file include/" header)
    }
}

function check_arrows(    key, end, down) {
    for (key in arrow) {
        split(key, end, SUBSEP)
        down = height(room_of(end[1])) < height(room_of(end[2])) || end[1] ~ /\// ||
               index(end[2], end[1] "/") == 1 # a room uses a floor of its own
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
            complain("tests/base/house.allow: \"" end[1] " " end[2] "\" is not needed any more; " \
                     "take it out")
        }
    }
}

END {
    for (folder in files) {
        if (files[folder] > 25) {
            refuse("files", folder, folder ": " files[folder] " files, wanted at most 25")
        }
    }
    check_rooms()
    check_arrows()
    check_allowed()
    if (rooms == 0) complain("docs/architecture.md: no block \"```arrows\"")
    exit failed
}
