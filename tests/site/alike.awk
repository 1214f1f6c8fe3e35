# Whether each line of the first file occurs in the second, in this order; runs of digits, points,
# signs and spaces count as equal, since figures differ between processors.

function form(line) {
    gsub(/[-+]?[0-9][0-9.]*(e[-+]?[0-9]+)?/, "N", line)
    gsub(/[ \t]+/, " ", line)
    return line
}

FNR == 1 { file++ }
file == 1 { if ($0 != "...") wanted[++lines] = $0; next }
at < lines && form($0) == form(wanted[at + 1]) { at++ }
END {
    if (at < lines) print "not printed: " wanted[at + 1]
    exit at < lines
}
