# Whether each line of the first file occurs in the second, in this order; runs of digits, points,
# signs and spaces count as equal, and sets of classes (0|1), since figures differ between processors. With -v record=1 the
# lines are printed as the second file has them.

function form(line) {
    gsub(/[-+]?[0-9][0-9.]*(e[-+]?[0-9]+)?/, "N", line)
    gsub(/N([|]N)+/, "N", line)
    gsub(/[ \t]+/, " ", line)
    return line
}

function skip_left_out() {
    while (at < lines && wanted[at + 1] == "...") {
        at++
        if (record) print "..."
    }
}

FNR == 1 { file++ }
file == 1 { wanted[++lines] = $0; next }
{ skip_left_out() }
at < lines && form($0) == form(wanted[at + 1]) {
    at++
    if (record) print
}
END {
    skip_left_out()
    if (at < lines) print "not printed: " wanted[at + 1]
    exit at < lines
}
