#!/bin/sh
# scripts/abi finds a changed type, a removed function, a grown struct and an added function, and takes what is
# declared in another order or with other names of parameters for the same.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/scripts" "$work/include/basin"
cp "$source/scripts/abi" "$work/scripts"

# declare TEXT: the header, with TEXT in it.
declare() {
    printf '#define BASIN_API __attribute__((visibility("default")))\n%s\n' "$1" >"$work/include/basin/basin.h"
}
# ends STATUS TEXT: what checking such a header ends with.
ends() {
    declare "$2"
    status=0
    "$work/scripts/abi" check >"$work/log" 2>&1 || status=$?
    [ $status = "$1" ] || {
        echo "status $status, expected $1, for: $2" >&2
        cat "$work/log" >&2
        exit 1
    }
}

pair='typedef struct basin_pair { int a, b; } basin_pair;'
add='BASIN_API int basin_add(const basin_pair *pair);'
name='BASIN_API extern const char *const basin_name[2];'
declare "$pair $add $name"
"$work/scripts/abi" write || exit $? # 77 where there are no tools
ends 0 "$pair $add $name"
ends 0 "$pair $name BASIN_API int basin_add(const basin_pair *);"
ends 1 "$pair $add"
ends 1 "$pair BASIN_API int basin_add(basin_pair *pair, int more); $name"
ends 1 "$pair BASIN_API long basin_add(const basin_pair *pair); $name"
ends 1 "typedef struct basin_pair { int a, b, c; } basin_pair; $add $name"
ends 1 "$pair $add $name BASIN_API void basin_more(void);"
