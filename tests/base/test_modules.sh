#!/bin/sh
# Reads the includes of src/ and include/ and fails on one that is no arrow of
# docs/architecture.md; modules.awk has this and the other rules.
#
#   tests/base/test_modules.sh [ROOT]     another tree than this one
set -eu
rules=$(cd "$(dirname "$0")" && pwd)/modules.awk
cd "${1:-$(dirname "$0")/../..}"

LC_ALL=C
export LC_ALL
files=$(find src include -type f '(' -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' ')' | sort)
awk -f "$rules" docs/architecture.md tests/base/modules.allow $files
echo "every include follows docs/architecture.md"
