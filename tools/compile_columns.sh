#!/usr/bin/env bash
# usage: tools/compile_columns.sh VENV
# Compiles records/columns in place, and shows the compiler's warnings. Without a compiler the same files run interpreted;
# either way it says which.
set -euo pipefail
venv=$1
columns=src/moldau/records/columns
log=build/columns.log

mkdir -p build
rm -f "$columns"/*.so "$columns"/compiled_from
"$venv/bin/python" setup.py --quiet build_ext --inplace >$log 2>&1 || true
if compgen -G "$columns/*.so" >/dev/null; then
    cat $log >&2
    "$venv/bin/python" -c "from moldau.records.compiled_from import note; note()"
    echo "moldau: records/columns is compiled"
elif ! grep -q 'No such file or directory' $log; then
    cat $log >&2
    echo "moldau: records/columns could not be compiled (see above). It runs interpreted, which is correct but slow" >&2
else
    echo "moldau: records/columns runs interpreted, which is correct but slow: for speed install a C compiler and Python's" \
        "headers, for example with 'apt-get install gcc python3-dev', and run 'make clean-columns' (see $log)" >&2
fi
touch "$venv/columns"
