#!/bin/sh
# README, CONTRIBUTING, CHANGELOG and the pages under docs/, examples/ and bench/ name only files
# that the tree has; docs.awk has the rules.
#
#   tests/base/test_docs.sh [ROOT]     another tree than this one
set -eu
rules=$(cd "$(dirname "$0")" && pwd)/docs.awk
cd "${1:-$(dirname "$0")/../..}"

LC_ALL=C
export LC_ALL
files=$(find . -path './build*' -prune -o -path ./.git -prune -o -type f -print |
    sed 's,^\./,,' | sort)
pages=$(printf '%s\n' "$files" | grep '\.md$')
printf '%s\n' "$files" | awk -f "$rules" - $pages
echo "every file that the documents name is there"
