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
    mkdir -p "$tree/docs" "$tree/tests/base" "$tree/src/program" "$tree/src/tasks/upper/left" \
        "$tree/src/tasks/upper/right" "$tree/src/engine/lower/deep" "$tree/include/basin/tasks"
    cd "$tree"
    cat >docs/architecture.md <<'END'
```arrows
program -> tasks/upper
tasks/upper -> engine/lower, engine/lower/deep/open.h!
engine/lower ->
private engine/lower/deep
engine/lower declares basin/status.h
```
END
    echo '# nothing' >tests/base/modules.allow
    echo '#include "tasks/upper/upper.h"' >src/program/main.c
    echo 'char *a = "--batch";' >>src/program/main.c
    echo '#include "engine/lower/lower.h"' >src/tasks/upper/upper.h
    echo '#include "engine/lower/deep/open.h"' >>src/tasks/upper/upper.h
    echo '#include <basin/lower.h>' >>src/tasks/upper/upper.h
    echo '#include "tasks/upper/upper.h"' >src/tasks/upper/left/left.h
    echo 'int right;' >src/tasks/upper/right/right.h
    echo '#include "basin/status.h"' >src/engine/lower/lower.h
    echo '/* --batch, "--batch" */ int x = '"'\"'"'; // "--batch"' >>src/engine/lower/lower.h
    echo 'int deep;' >src/engine/lower/deep/open.h
    echo 'int status;' >include/basin/status.h
    echo '#include "basin/status.h"' >include/basin/lower.h
    echo 'int upper;' >include/basin/tasks/upper.h
    echo '#include "basin/tasks/upper.h"' >include/basin/basin.h
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

echo '#include "engine/lower/lower.h"' >src/program/main.c
wants 'src/program/main.c:1: program -> engine/lower/lower.h is no arrow'
echo '#include "tasks/upper/upper.h"' >src/engine/lower/lower.c
wants 'src/engine/lower/lower.c:1: engine/lower -> tasks/upper/upper.h is no arrow'
echo '#include "basin/tasks/upper.h"' >src/engine/lower/lower.c
wants 'src/engine/lower/lower.c:1: engine/lower -> basin/tasks/upper.h is no arrow'
echo '#include "basin/tasks/upper.h"' >>include/basin/status.h
wants 'include/basin/status.h:2: engine/lower -> basin/tasks/upper.h is no arrow'
echo '#include "basin/basin.h"' >src/tasks/upper/upper.c
wants 'src/tasks/upper/upper.c:1: tasks/upper -> basin/basin.h is no arrow'
echo '#include "basin/other.h"' >src/tasks/upper/upper.c
wants 'src/tasks/upper/upper.c:1: basin/other.h belongs to no module'
echo '#include "engine/lower/deep/shut.h"' >src/tasks/upper/upper.c
wants 'src/tasks/upper/upper.c:1: tasks/upper -> engine/lower/deep/shut.h is no arrow'
echo '#include "tasks/upper/right/right.h"' >src/tasks/upper/left/left.c
wants 'src/tasks/upper/left/left.c:1: tasks/upper -> tasks/upper/right/right.h is no arrow'
sed -i 's|^engine/lower ->$|engine/lower -> tasks/upper|' docs/architecture.md
echo '#include "tasks/upper/upper.h"' >src/engine/lower/lower.c
wants 'docs/architecture.md: engine/lower -> tasks/upper goes up'
echo 'int main;' >src/program/main.c
wants 'docs/architecture.md: program -> tasks/upper is no include any more'
mkdir src/new && echo 'int x;' >src/new/new.c
wants 'src/new: no line in the arrows'
rm -r src/program
wants 'docs/architecture.md: no folder src/program'
sed -i 's/declares/declares basin\/gone.h,/' docs/architecture.md
wants 'docs/architecture.md: no file include/basin/gone.h'
echo 'char *a = "x" /* */ "wanted \" a smaller --batch";' >src/engine/lower/lower.c
wants 'src/engine/lower/lower.c:1: --batch is a flag of the program'
echo 'flag src/engine/lower/lower.h' >>tests/base/modules.allow
wants '"flag src/engine/lower/lower.h" is not needed any more'
sed -i 's/```arrows/```/' docs/architecture.md
wants 'no block "```arrows"'

[ $failed = 0 ] && echo "every rule catches"
exit $failed
