# The fenced blocks of a page as files in the folder `parts`, numbered: NN.sh to be run, NN.text to be
# compared, NN.file (its name, then its lines) to be written. Other languages need a name.

function begin(info,    word, count) {
    count = split(substr(info, 4), word, " ")
    kind = word[1]
    inside = 1
    blocks++
    if (count == 2) suffix = "file"
    else if (kind == "sh" || kind == "text") suffix = kind
    else {
        print FILENAME ":" FNR ": a block of " kind " without the name of its file"
        exit 1
    }
    path = sprintf("%s/%02d.%s", parts, blocks, suffix)
    printf "" > path
    if (suffix == "file") print word[2] > path
}

/^```/ && !inside { begin($0); next }
/^```/ { inside = 0; close(path); next }
inside { print > path }
