#!/usr/bin/env bash
# usage: tools/install.sh VENV
# Makes the virtual environment with the pinned packages and this project in it, with a Python >= 3.11 that it finds itself
# (or the one named by $PYTHON). What is missing on the machine is said in one sentence.
set -euo pipefail
venv=$1

say() { echo "moldau: $*" >&2; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        new_enough "$PYTHON" && { echo "$PYTHON"; return; }
        say "PYTHON=$PYTHON is not a Python 3.11 or newer: give the path of one that is, or leave PYTHON unset."
        return 1
    fi
    for candidate in python3.13 python3.12 python3.11 python3.14 python3.15 python3 python; do
        new_enough "$candidate" && { echo "$candidate"; return; }
    done
    say "Python 3.11 or newer was not found: install it, for example with 'apt-get install python3 python3-venv'."
    return 1
}

if ! new_enough "$venv/bin/python"; then
    python=$(find_python)
    rm -rf "$venv"
    if ! output=$("$python" -m venv "$venv" 2>&1); then
        rm -rf "$venv"
        say "$python cannot make a virtual environment: install its venv module, for example with 'apt-get install python3-venv'."
        say "It said: $(tail -n 1 <<<"$output")"
        exit 1
    fi
fi

say "installing the pinned packages into $venv, once (some minutes on a slow line)"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input install --quiet --constraint constraints.txt)
# The columns are compiled afterwards, by tools/compile_columns.sh.
if ! { "${pip[@]}" setuptools cython && MOLDAU_INTERPRETED=1 "${pip[@]}" --no-build-isolation --editable '.[dev]'; }; then
    say "the packages could not be installed: see above, then run make again."
    exit 1
fi
# pip compiles what it installs, but not what it installs as editable: a broker would start in 0.4 s instead of 0.2, the
# first time only, or every time where PYTHONDONTWRITEBYTECODE is set.
"$venv/bin/python" -m compileall -q src
touch "$venv/installed"
