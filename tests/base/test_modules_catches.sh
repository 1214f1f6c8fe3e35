#!/bin/sh
# Breaks each rule of modules.awk once, in a small tree of its own, and checks that it is reported.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# A tree of three modules that breaks no rule.
build() {
    rm -rf "$tree"
    mkdir -p "$tree/docs" "$tree/tests/base" "$tree/src/cli" "$tree/src/upper/left" \
        "$tree/src/upper/right" "$tree/src/lower/deep" "$tree/include/basin"
    cd "$tree"
    cat >docs/architecture.md <<'END'
```arrows
cli   -> upper
upper -> lower, lower/deep/open.h!
lower ->
private lower/deep
lower declares basin/status.h
```
END
    echo '# nothing' >tests/base/modules.allow
    echo '#include "upper/upper.h"' >src/cli/main.c
    echo 'char *a = "--batch";' >>src/cli/main.c
    echo '#include "lower/lower.h"' >src/upper/upper.h
    echo '#include "lower/deep/open.h"' >>src/upper/upper.h
    echo '#include <basin/lower.h>' >>src/upper/upper.h
    echo '#include "upper/upper.h"' >src/upper/left/left.h
    echo 'int right;' >src/upper/right/right.h
    echo '#include "basin/status.h"' >src/lower/lower.h
    echo '/* --batch, "--batch" */ int x = '"'\"'"'; // "--batch"' >>src/lower/lower.h
    echo 'int deep;' >src/lower/deep/open.h
    echo 'int status;' >include/basin/status.h
    echo '#include "basin/status.h"' >include/basin/lower.h
    echo 'int upper;' >include/basin/upper.h
    echo '#include "basin/upper.h"' >include/basin/basin.h
}

# wants TEXT: the rules must refuse the tree and say TEXT.
wants() {
    if said=$("$here/test_modules.sh" "$tree"); then
        echo "not noticed: $1"
        failed=1
    elif ! printf '%s\n' "$said" | grep -qF -- "$1"; then
        printf 'wanted: %s\nfound:  %s\n' "$1" "$said"
        failed=1
    fi
    build
}

build
"$here/test_modules.sh" "$tree" >/dev/null || { "$here/test_modules.sh" "$tree"; failed=1; }

echo '#include "lower/lower.h"' >src/cli/main.c
wants 'src/cli/main.c:1: cli -> lower/lower.h is no arrow'
echo '#include "upper/upper.h"' >src/lower/lower.c
wants 'src/lower/lower.c:1: lower -> upper/upper.h is no arrow'
echo '#include "basin/upper.h"' >src/lower/lower.c
wants 'src/lower/lower.c:1: lower -> basin/upper.h is no arrow'
echo '#include "basin/upper.h"' >>include/basin/status.h
wants 'include/basin/status.h:2: lower -> basin/upper.h is no arrow'
echo '#include "basin/basin.h"' >src/upper/upper.c
wants 'src/upper/upper.c:1: upper -> basin/basin.h is no arrow'
echo '#include "basin/other.h"' >src/upper/upper.c
wants 'src/upper/upper.c:1: basin/other.h belongs to no module'
echo '#include "lower/deep/shut.h"' >src/upper/upper.c
wants 'src/upper/upper.c:1: upper -> lower/deep/shut.h is no arrow'
echo '#include "upper/right/right.h"' >src/upper/left/left.c
wants 'src/upper/left/left.c:1: upper -> upper/right/right.h is no arrow'
sed -i 's/^lower ->$/lower -> upper/' docs/architecture.md
echo '#include "upper/upper.h"' >src/lower/lower.c
wants 'docs/architecture.md: lower -> upper goes up'
echo 'int main;' >src/cli/main.c
wants 'docs/architecture.md: cli -> upper is no include any more'
mkdir src/new && echo 'int x;' >src/new/new.c
wants 'src/new: no line in the arrows'
rm -r src/cli
wants 'docs/architecture.md: no folder src/cli'
sed -i 's/declares/declares basin\/gone.h,/' docs/architecture.md
wants 'docs/architecture.md: no file include/basin/gone.h'
echo 'char *a = "x" /* */ "wanted \" a smaller --batch";' >src/lower/lower.c
wants 'src/lower/lower.c:1: --batch is a flag of the program'
echo 'flag src/lower/lower.h' >>tests/base/modules.allow
wants '"flag src/lower/lower.h" is not needed any more'
sed -i 's/```arrows/```/' docs/architecture.md
wants 'no block "```arrows"'

[ $failed = 0 ] && echo "every rule catches"
exit $failed
