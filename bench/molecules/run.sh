#!/bin/bash
# bench/molecules/run.sh PROGRAM DATA OUT: Basin on MoleculeNet's scaffold splits, all sets at once.
# EPOCHS and MEMBERS are other than the defaults, SEED is another run; 16 cores.
basin=${1:?program} data=${2:?folder} out=${3:?folder}
mkdir -p "$out"
train() { # NAME TARGETS THREADS [OPTIONS]
    local name=$1 target=$2 threads=$3
    shift 3
    "$basin" graph train "$data/$name.csv" --target "$target" --split scaffold --threads "$threads" \
        --seed "${SEED:-0}" ${EPOCHS:+--epochs "$EPOCHS"} ${MEMBERS:+--members "$MEMBERS"} -o "$out/$name.safetensors" "$@" >"$out/$name.txt" 2>&1
    "$basin" graph predict "$out/$name.safetensors" "$data/$name.csv" -q -o "$out/$name.csv"
    rm -f "$out/$name.safetensors"*
}
tox=NR-AR,NR-AR-LBD,NR-AhR,NR-Aromatase,NR-ER,NR-ER-LBD,NR-PPAR-gamma,SR-ARE,SR-ATAD5,SR-HSE,SR-MMP,SR-p53
[ -n "${NO_TOX:-}" ] || train tox21 $tox "${THREADS:-6}" &
sider=$(python3 -c 'import csv, sys; print("\n".join(next(csv.reader(open(sys.argv[1])))[1:]))' "$data/sider.csv")
[ -n "${NO_TOX:-}" ] || train sider "$sider" "${THREADS:-2}" &
train bbbp p_np "${THREADS:-4}" &
train clintox CT_TOX "${THREADS:-3}" &
train esol logSolubility "${THREADS:-2}" &
train freesolv freesolv "${THREADS:-1}" &
wait
grep -E "^test|^validation" "$out"/*.txt
