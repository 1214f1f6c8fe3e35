# basin data get: public sets, fetched by curl and checked by SHA-256. The program hands this text to
# sh, with its options in the environment (output, mirror, quiet, list: text, json or nothing) and the
# names of sets as arguments.
#
# A digest stands here only where it is published or agreed on widely; otherwise the digest of the
# first fetch is kept in FILE.sha256, and later ones must match it. Nothing is copied or served by
# Basin, and each set's licence is its source's.

# A set per line: name | URL of its files, or of a page where there are none | files | their digests |
# what to unpack from the first | how to go on: basin data convert .. | what it is.
sets() {
    dgl=https://data.dgl.ai/dataset
    drive=https://drive.google.com/drive/folders/1PpNwvZx_YRSCDiHaBUmRIS3x1rZR7fMr
    mixed=https://github.com/yandex-research/heterophilous-graphs/raw/main/data
    tu=https://www.chrsmrrs.com/graphkerneldatasets
    cat <<END
amazon|$dgl|FraudAmazon.zip||Amazon.mat|Amazon.npz amazon.basin --unlabelled-first 3305 (npz: share/basin/mat.py)|reviewers of musical instruments, three relations, 11,944 nodes (CARE-GNN)
yelp|$dgl|FraudYelp.zip||YelpChi.mat|YelpChi.npz yelp.basin (npz: share/basin/mat.py)|reviews of hotels and restaurants, three relations, 45,954 nodes (CARE-GNN)
tfinance|$drive||||tfinance.npz tfinance.basin (npz: share/basin/dgl.py)|accounts and transactions, 39,357 nodes, 21 million edges (BWGNN)
tsocial|$drive||||tsocial.npz tsocial.basin (npz: share/basin/dgl.py)|accounts and friendships, 5.8 million nodes, 73 million edges (BWGNN)
tolokers|$mixed|tolokers.npz|||tolokers.npz tolokers.basin|crowd workers, 11,758 nodes, ten splits (heterophilous graphs)
questions|$mixed|questions.npz|||questions.npz questions.basin|users of a question site, 48,921 nodes, ten splits (heterophilous graphs)
mutag|$tu|MUTAG.zip||||188 molecules (TUDataset)
enzymes|$tu|ENZYMES.zip||||600 proteins in six classes (TUDataset)
proteins|$tu|PROTEINS.zip||||1,113 proteins (TUDataset)
dd|$tu|DD.zip||||1,178 large proteins (TUDataset)
nci1|$tu|NCI1.zip||||4,110 molecules (TUDataset)
nci109|$tu|NCI109.zip||||4,127 molecules (TUDataset)
mutagenicity|$tu|Mutagenicity.zip||||4,337 molecules (TUDataset)
frankenstein|$tu|FRANKENSTEIN.zip||||4,337 molecules with 780 features (TUDataset)
mnist|https://storage.googleapis.com/cvdf-datasets/mnist|train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz|440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6 f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6|||70,000 handwritten digits
cifar10|https://www.cs.toronto.edu/~kriz|cifar-10-binary.tar.gz|c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd|||60,000 small photographs in ten classes
END
}

fail() { printf 'basin: %s\n' "$1" >&2; exit "${2:-1}"; }
note() { [ "$quiet" ] || printf '%s\n' "$1" >&2; }
digest_of() { sum=$(sha256sum <"$1") || exit 1; printf '%s' "${sum%% *}"; }

list_sets() { # as a table, or as JSON
    sets | awk -F'|' -v json="$1" '
        function text(s) { return s == "" ? "null" : "\"" s "\"" }
        BEGIN {
            if (json) printf "{\n  \"sets\": ["
            else printf "  %-12s  %-18s  %s\n", "name", "check", "what"
        }
        {
            check = $3 == "" ? "by hand" : $4 == "" ? "first fetch counts" : "known digest"
            if (!json) { printf "  %-12s  %-18s  %s\n", $1, check, $7; next }
            printf "%s\n    {\n      \"name\": %s,\n      \"check\": %s,\n", (NR > 1 ? "," : ""), text($1), text(check)
            printf "      \"what\": %s,\n      \"by_hand\": %s,\n", text($7), text($3 == "" ? $2 : "")
            printf "      \"files\": ["
            count = split($3, file, " ")
            for (i in digest) delete digest[i]
            split($4, digest, " ")
            for (i = 1; i <= count; i++)
                printf "%s\n        {\n          \"name\": %s,\n          \"url\": %s,\n          \"sha256\": %s\n        }", (i > 1 ? "," : ""), text(file[i]), text($2 "/" file[i]), text(digest[i])
            printf count ? "\n      ]\n    }" : "]\n    }"
        }
        END { if (json) printf "\n  ]\n}\n" }'
}

# Into a file that is made anew: a link that lies there is removed, not followed.
download() { # PART URL
    case $2 in https:*) then_="=https" ;; *) then_="=http,https" ;; esac
    [ -t 2 ] && [ ! "$quiet" ] && show=--progress-bar || show=--silent
    command -v curl >/dev/null || fail "$2: the program curl cannot be run: No such file or directory"
    rm -f "$1"
    (set -C; : >"$1") 2>/dev/null || fail "$1: cannot write"
    curl --fail --location --proto =http,https,file --proto-redir "$then_" --connect-timeout 30 \
        --speed-limit 1 --speed-time 60 --max-filesize 8589934592 "$show" -- "$2" >"$1"
    status=$?
    [ $status = 0 ] && { sync "$1" 2>/dev/null || :; } && return
    rm -f "$1"
    case $status in
    6) why="the name of the server is not found; is there a network?" ;;
    7) why="the server cannot be reached" ;;
    22) why="the server has no such file, or refuses it" ;;
    28) why="the server did not answer in time" ;;
    *) why="curl failed" ;;
    esac
    fail "$2: $why (status $status of curl)"
}

# Whether it begins as web pages do: a login, a notice, an error that came with success.
is_page() {
    start=$(head -c 512 "$1" | tr -d '\0\r\n\t ' | tr A-Z a-z | cut -c 1-20)
    case ${start#"$(printf '\357\273\277')"} in '<!doctype'* | '<html'*) return 0 ;; esac
    return 1
}

fetch() { # PATH URL WANTED: sets digest
    part=$1.part
    download "$part" "$2"
    digest=$(digest_of "$part")
    if [ "$3" ] && [ "$digest" != "$3" ]; then
        rm -f "$part"
        fail "$2: came with SHA-256 $digest, wanted $3; removed"
    elif [ ! "$3" ] && is_page "$part"; then
        rm -f "$part"
        fail "$2: a web page came, wanted a file; removed"
    fi
    mv "$part" "$1" || exit 1
}

get_file() { # NAME URL DIGEST
    path=$output/$1 wanted=$3
    record=$path.sha256
    if [ ! "$wanted" ] && [ -f "$record" ]; then
        wanted=$(head -c 64 "$record")
        case $wanted in *[!0-9a-f]* | '') wanted= ;; esac
    fi
    if [ -e "$path" ]; then
        digest=$(digest_of "$path")
        [ ! "$wanted" ] || [ "$digest" = "$wanted" ] ||
            fail "$path: is there with SHA-256 $digest, wanted $wanted; remove it to fetch it again"
        note "$path: was there already"
    else
        fetch "$path" "$2" "$wanted"
    fi
    printf '%s  %s\n' "$digest" "$path"
    [ "$wanted" ] && return
    note "$path: Basin knows no digest of this file; the one above is kept in $record and counts from now on"
    printf '%s  %s\n' "$digest" "$1" >"$record.part" && mv "$record.part" "$record" || exit 1
}

get_set() { # NAME
    row=$(sets | awk -F'|' -v name="$1" '$1 == name { print; found = 1 } END { exit !found }') ||
         fail "data get: no set '$1'; 'basin data get --list' names them (see 'basin help data get')" 2
    IFS='|' read -r name folder files digests member convert what <<END
$row
END
    [ "$files" ] || fail "$name: no link leads to the file itself; get it with a browser from $folder, then: basin data convert $convert"
    [ ! -e "$output" ] || [ -d "$output" ] || fail "$output: is a file, not a folder"
    [ -d "$output" ] || mkdir "$output" || exit 1
    for file in $files; do
        get_file "$file" "${mirror:-$folder}/$file" "${digests%% *}"
        case $digests in *' '*) digests=${digests#* } ;; *) digests= ;; esac
    done
    if [ "$member" ]; then
        archive=$output/${files%% *}
        command -v unzip >/dev/null || fail "$archive: the program unzip cannot be run: No such file or directory"
        unzip -o -q -j "$archive" "$member" -d "$output" >&2 || fail "$archive: unzip failed with status $?"
        printf '%s/%s\n' "$output" "$member"
    fi
    [ ! "$convert" ] || note "next: basin data convert $convert"
}

case $list in
text) list_sets '' ;;
json) list_sets 1 ;;
*) for set; do get_set "$set"; done ;;
esac
