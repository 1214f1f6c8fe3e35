#!/bin/sh
# README, CONTRIBUTING, CHANGELOG, the pages under docs/, examples/ and bench/, and comments in C name
# only files that the tree has (docs.awk has the rules); README, the guides, and lines that call the program in other
# documents and scripts name only commands and options that it has (options.awk); and CITATION.cff states the version.
#
#   tests/base/test_docs.sh [ROOT]     another tree than this one
#
# The program is the one that BASIN names, or build/basin.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$(dirname "$0")/../..}"

LC_ALL=C
export LC_ALL
files=$(find . -path './build*' -prune -o -path ./.git -prune -o -type f -print |
    sed 's,^\./,,' | sort)
pages=$(printf '%s\n' "$files" | grep '\.md$')
sources=$(printf '%s\n' "$files" | grep -E '^(src|include|examples)/.*\.(c|h|cu)$' || true)
printf '%s\n' "$files" | awk -f "$here/docs.awk" - $pages $sources

# The laboratory diary and the changelog tell of options that were renamed since; the long examples
# and what stands in the other folders are programs of their own: of them only calls of Basin count.
guides=$(printf '%s\n' "$pages" | grep -E '^(README.md|models/|paper/|docs/)' |
    grep -vE '^docs/(lab/|(sudoku|memories)\.md)')
callers=$(printf '%s\n' "$files" | grep -E '^((bench|debian|examples|packaging|python|scripts|share|tests)/|docs/(sudoku|memories)|[A-Z]+\.md)' |
    grep -vE '^(README|CHANGELOG)\.md|^tests/base/|\.(c|h)$' | xargs grep -lIE 'basin"? [a-z-]' || true)
manual=$(mktemp)
trap 'rm -f "$manual"' EXIT
${BASIN:-build/basin} help --markdown >"$manual"
awk -f "$here/options.awk" "$manual" $guides calls=1 $callers

# The version stands in version.h; whoever cites Basin should find the same one.
version=$(sed -n 's/.*BASIN_VERSION_STRING "\(.*\)".*/\1/p' include/basin/version.h)
cited=$(sed -n 's/^version: //p' CITATION.cff)
if [ "$version" != "$cited" ]; then
    echo "CITATION.cff: version '$cited', wanted '$version' as in include/basin/version.h"
    exit 1
fi
echo "every file, command and option that the documents name is there"
