#!/usr/bin/env bash
# What: Cython translates one unchanged file, with untyped local variables that are changed in place (`out += piece`), into
#   different C from run to run. So a package built twice from the same sources can differ, also with SOURCE_DATE_EPOCH.
# Guess: the same Cython and the same source give the same C; at worst PYTHONHASHSEED=0 makes it so.
# Seen: Cython 3.3.1 on Python 3.11.7, 2026-11-27: 24 runs with PYTHONHASHSEED=0 gave 9 different files, which call
#   PyNumber_InPlaceAdd or a function of Cython's own for the same line. With the two variables typed: one file.
# Source: met when two wheels of one commit were not equal; https://github.com/cython/cython/issues/5986 and 8002.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet cython==3.3.1
cd "$folder"

module() { # module TYPE_OF_THE_VARIABLES: twenty functions, so that a few runs are enough to see a difference
    cat <<PYTHON
# cython: language_level=3, boundscheck=False, wraparound=False
import cython


@cython.cfunc
def put(p: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    p[at] = cython.cast(cython.uchar, value)
    return at + 1
PYTHON
    for number in $(seq 20); do
        cat <<PYTHON


def packed_$number(pairs):
    out$1 = bytearray(10)
    room$1 = bytearray(10)
    view: cython.uchar[::1] = room
    p: cython.p_uchar = cython.address(view[0]) if cython.compiled else room
    del out[put(p, 0, len(pairs)) :]
    out[:] = room[: len(out)]
    for key, value in pairs:
        name = key.encode()
        out += room[: put(p, 0, len(name))]
        out += name
        out += room[: put(p, 0, -1 if value is None else len(value))]
        if value is not None:
            out += value
    return bytes(out)
PYTHON
    done
}

different() { # different NAME RUNS: how many different files that many runs write
    for _ in $(seq "$2"); do
        PYTHONHASHSEED=0 "$folder/venv/bin/python" -m cython "$1.py" -o "$1.c" 2>/dev/null
        sha256sum <"$1.c"
    done | sort -u | wc -l
}

module "" >untyped.py
module ": bytearray" >typed.py
untyped=$(different untyped 24)
typed=$(different typed 6)
echo "untyped variables: $untyped different C files in 24 runs with PYTHONHASHSEED=0"
echo "typed variables:   $typed in 6 runs"
[ "$untyped" -gt 1 ] && [ "$typed" -eq 1 ]
