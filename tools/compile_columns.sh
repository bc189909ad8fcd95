#!/usr/bin/env bash
# usage: tools/compile_columns.sh VENV
# Compiles records/columns in place. Without a compiler the same files run interpreted; either way it says which.
set -euo pipefail
venv=$1
columns=src/moldau/records/columns

mkdir -p build
rm -f "$columns"/*.so "$columns"/compiled_from
"$venv/bin/python" setup.py --quiet build_ext --inplace >build/columns.log 2>&1 || true
if compgen -G "$columns/*.so" >/dev/null; then
    "$venv/bin/python" -c "from moldau.records.compiled_from import note; note()"
    echo "moldau: records/columns is compiled"
else
    echo "moldau: records/columns runs interpreted, which is correct but slow: for speed install a C compiler and Python's" \
        "headers, for example with 'apt-get install gcc python3-dev', and run 'make clean-columns' (see build/columns.log)" >&2
fi
touch "$venv/columns"
