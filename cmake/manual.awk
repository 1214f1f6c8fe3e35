# Man pages from the Markdown that `basin help --markdown` prints: FOLDER/basin.1 and one page for each
# command, FOLDER/basin-image-train.1. Use: basin help --markdown | awk -v version=V -v folder=F -f this

# Text as roff: letters that it would take for something else.
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/`/, "\\(ga", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    gsub(/\|/, "|\\:", text) # a long list of choices may break here
    if (text ~ /^\./) text = "\\&" text
    return text
}

function put(text) { print text > page }

function begin(name, summary) {
    page = folder "/" name ".1"
    put(".TH \"" roff(toupper(name)) "\" 1 \"\" \"Basin " version "\" \"User Commands\"")
    put(".ad l") # long lists of choices have no blanks to stretch
    put(".SH NAME\n" roff(name) " \\- " roff(summary))
}

# The options that every command has.
function options_end() {
    if (part == "text") put(".SH OPTIONS")
    option("| `-h, --help` |  | What most people need. |")
    option("| `--help-all` |  | All options and settings. |")
}

function variable(name, text) { put(".TP\n.B " name "\n" text) }

# see: another page; empty: those of all commands.
function end(see) {
    if (!page) return
    if (part == "text" || part == "options") options_end()
    put(".SH \"EXIT STATUS\"\n0: success. 1: failure. 2: wrong usage. 75: training that a signal other " \
        "than Ctrl\\-C ended\nand that \\-\\-resume goes on with.\nAn error is one line on standard error.")
    put(".SH \"SEE ALSO\"\n" (see ? ".BR " see " (1)" : names))
    close(page)
}

# A row of the table of options: | `-o, --output FILE` | default | help |
function option(line,    cell, name, value) {
    gsub(/\\\|/, "\001", line) # bars inside a cell
    split(line, cell, / \| /)
    name = substr(cell[1], 4, length(cell[1]) - 4)
    sub(/ \|$/, "", cell[3])
    gsub(/\001/, "|", name)
    gsub(/\001/, "|", cell[3])
    if (match(name, /[^,] /)) {
        value = " \\fI" roff(substr(name, RSTART + 2)) "\\fR"
        name = substr(name, 1, RSTART)
    }
    name = roff(name)
    gsub(/, /, "\\fR, \\fB", name)
    sub(/\[no\\-\]/, "\\fR[\\fBno\\-\\fR]\\fB", name)
    put(".TP\n\\fB" name "\\fR" value)
    put(roff(cell[3]) (cell[2] ? " Default: \\fB" roff(cell[2]) "\\fR" : ""))
}

/^## basin / {
    end("basin")
    command = substr($0, 10)
    name = $0
    sub(/^## /, "", name)
    gsub(/ /, "-", name)
    part = "summary"
    next
}
!command { next }
part == "summary" && /: `basin / {
    at = index($0, ": `basin ")
    summary = substr($0, 1, at - 1)
    usage = substr($0, at + 10 + length(command), length($0) - at - 10 - length(command))
    begin(name, summary)
    put(".SH SYNOPSIS\n.B basin " command)
    if (sub(/ \[options\]$/, "", usage)) usage = (usage ? "\\fI" roff(usage) "\\fR\n" : "") "[\\fIoptions\\fR]"
    else usage = roff(usage)
    if (usage) put(usage)
    put(".SH DESCRIPTION")
    list = list ".TP\n.B " command "\n" roff(summary) (summary ~ /[?]$/ ? "" : ".") "\n"
    names = names (names ? ",\n" : "") ".BR " roff(name) " (1)"
    part = "text"
    lines = blank = 0
    next
}
/^\| option \|/ { put(".SH OPTIONS"); part = "options"; next }
/^\|---/ { next }
part == "options" && /^\|/ { option($0); next }
/^```/ {
    if (part != "example") options_end()
    put(part == "example" ? ".fi" : ".SH EXAMPLES\n.nf")
    part = part == "example" ? "done" : "example"
    next
}
part == "example" { sub(/^ +/, ""); put(roff($0)); next }
/^$/ { blank = 1; next }
{
    if (lines++) put(blank ? ".PP" : ".br")
    put(roff($0))
    blank = 0
}
END {
    end("basin")
    part = "overview"
    begin("basin", "Energy Transformers: train, use and inspect them")
    put(".SH SYNOPSIS\n.B basin\n.I command\n[\\fIoperands\\fR] [\\fIoptions\\fR]\n.SH DESCRIPTION")
    put("Basin trains networks that descend an energy, and uses them: on pictures, on the nodes of a network, on sets of graphs.")
    put("Every command takes \\fB\\-h\\fR, \\fB\\-\\-help\\fR and \\fB\\-\\-help\\-all\\fR; it has a page of its own, such as basin\\-image\\-train(1).")
    put("Results go to standard output, progress and errors to standard error.")
    put("Files are written aside and renamed, so that a file is never half there.")
    printf ".SH COMMANDS\n%s", list > page
    put(".SH EXAMPLES\n.nf\nbasin image complete cat.jpg \\-\\-mask 40,60,80,80")
    put("basin anomaly train accounts.csv transfers.csv \\-o model.safetensors")
    put("basin anomaly score model.safetensors accounts.csv transfers.csv \\-\\-top 100 \\-\\-explain")
    put("basin graph train molecules.csv \\-\\-target logS \\-\\-split scaffold \\-o logs.safetensors")
    put("mpirun \\-n 4 basin image train photos/ \\-o photos.safetensors\n.fi")
    put(".SH ENVIRONMENT")
    variable("OMP_NUM_THREADS", "The number of threads, where \\-\\-threads is not given; else the number of processors that the process may use.")
    variable("BASIN_MODELS", "The folder of the models that come with Basin.")
    variable("BASIN_ISA", "portable, avx2, avx512 or neon: compute with that instruction set and no better one.")
    variable("BASIN_CUDA_DEVICE", "The number of the GPU.")
    variable("BASIN_MPI", "The library of MPI that several processes use.")
    put(".SH FILES\n.TP\n.I share/basin/models\nbelow the folder that Basin was installed into: models that come with it, and their cards.")
    end("")
}
