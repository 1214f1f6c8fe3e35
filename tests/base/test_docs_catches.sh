#!/bin/sh
# Names missing files in each way that docs.awk knows, and missing commands and options in each way
# that options.awk knows, in a small tree of its own, and wants them noticed, and nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

mkdir -p "$tree/src/engine/expr" "$tree/scripts" "$tree/docs" "$tree/include/basin"
cd "$tree"
echo '#define BASIN_VERSION_STRING "1.2.3"' >include/basin/version.h
echo 'version: 1.2.3' >CITATION.cff
touch src/engine/expr/graph_avx2.c scripts/bench docs/guide.md
printf '/* See expr/graph.c, stdio.h\n * and o.c. */\nint x = gone.c;\n' >src/engine/expr/graph.c
cat >README.md <<'END'
`graph.c`, expr/graph.c, src/engine/expr/graph.c, `src/engine/expr/`, scripts/bench. `*_avx2.c`, `src/MODULE/NAME.c`
[guide](docs/guide.md#part), https://example.org/other.py, build/scripts/gone, ../shared/other.py, `.out`
END
cat >manual <<'END'
## basin image train

| option | default | |
|---|---|---|
| `-o, --output FILE` | model | The file to write. |
| `--[no-]flip` | on | Mirror half of the pictures. |

## basin info
END
printf '#!/bin/sh\ncat "%s/manual"\n' "$tree" >basin
chmod +x basin
export BASIN="$tree/basin"
cat >>README.md <<'END'
`--no-flip`, `--version`, `basin image`, `mpirun -n 2 basin image train x --flip`, `basin info FILE`

    $ basin image train photos --flip \
          --output m | tool --other      # --more
END
"$here/test_docs.sh" "$tree" >/dev/null

echo 'version: 1.2.4' >CITATION.cff
if "$here/test_docs.sh" "$tree" >/dev/null; then
    echo "test_docs.sh passed another version in CITATION.cff"
    exit 1
fi

cat >docs/guide.md <<'END'
[home](../README.md), [gone](gone.md)
other.py
`expr/other.c`
src/engine/plan/
scripts/gone.
src/*_avx512.c
../GONE.md
END
printf '/* See graph_avx2.c,\n * other/gone.h. */\n' >src/engine/expr/graph.c
cat >wanted <<'END'
docs/guide.md:1: no file docs/gone.md
docs/guide.md:2: no file other.py
docs/guide.md:3: no file expr/other.c
docs/guide.md:4: no file or folder src/engine/plan
docs/guide.md:5: no file or folder scripts/gone
docs/guide.md:6: no file or folder src/*_avx512.c
docs/guide.md:7: no file GONE.md
src/engine/expr/graph.c:2: no file other/gone.h
END
if "$here/test_docs.sh" "$tree" >found; then
    echo "test_docs.sh passed a tree with missing files"
    exit 1
fi
diff wanted found
printf '' >src/engine/expr/graph.c

cat >docs/guide.md <<'END'
`--gone`, `basin image train x --gone=2`

    basin picture train x
    basin image train photos \
        --flips
    mpirun -n 2 basin info FILE --output m
END
cat >wanted <<'END'
docs/guide.md:1: no command has the option --gone
docs/guide.md:1: basin image train has no option --gone
docs/guide.md:3: no command picture
docs/guide.md:5: basin image train has no option --flips
docs/guide.md:6: basin info has no option --output
END
if "$here/test_docs.sh" "$tree" >found; then
    echo "test_docs.sh passed a tree with commands and options that are not there"
    exit 1
fi
diff wanted found
printf '' >docs/guide.md

# Elsewhere only calls count, by any name that scripts have for the program.
mkdir paper bench
echo 'In `graph.c`: `basin image train x --old`, `info --old`' >paper/README.md
printf 'basin is\n`--mode`\n    basin image train x --older\n' >bench/README.md
printf 'show "$basin image train x \\\\\n    --oldest"\n"$basin" "$task" x --y\n' >scripts/bench
cat >wanted <<'END'
paper/README.md:1: basin image train has no option --old
paper/README.md:1: basin info has no option --old
bench/README.md:3: basin image train has no option --older
scripts/bench:2: basin image train has no option --oldest
END
if "$here/test_docs.sh" "$tree" >found; then
    echo "test_docs.sh passed calls with options that are not there"
    exit 1
fi
diff wanted found
echo "every missing file, command and option is noticed"
