#!/usr/bin/env bash
# What: `cpython.type` of Cython declares the first argument of PyType_GenericAlloc as `object`, where Python's header has
#   PyTypeObject*. A call with a variable of type `type` compiles on gcc 12 with a warning, and not at all on gcc 14.
# Guess: what Cython ships for Python's C API matches Python's headers, so code that uses only it compiles everywhere.
# Seen: Cython 3.3.1 on Python 3.11.7 with gcc 12.2, 2026-11-27: a warning, and an error with
#   -Werror=incompatible-pointer-types, which is gcc 14's default. A declaration of one's own with `type` compiles.
# Source: met as a failed installation on Debian 13; https://gcc.gnu.org/gcc-14/porting_to.html for the default.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet cython==3.3.1
cd "$folder"
include=$("$folder/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
cat >shipped.pyx <<'CYTHON'
from cpython.type cimport PyType_GenericAlloc

def made(type kind, Py_ssize_t items):
    return PyType_GenericAlloc(kind, items)
CYTHON
cat >own.pyx <<'CYTHON'
cdef extern from "Python.h":
    object PyType_GenericAlloc(type kind, Py_ssize_t items)

def made(type kind, Py_ssize_t items):
    return PyType_GenericAlloc(kind, items)
CYTHON
outcome() { # outcome NAME: what a compiler that knows the rules of gcc 14 says
    "$folder/venv/bin/python" -m cython -3 "$1.pyx"
    if gcc -I"$include" -fPIC -c -Werror=incompatible-pointer-types "$1.c" -o "$1.o" 2>"$1.log"; then
        echo compiles
    else
        grep --only-matching --max-count=1 "incompatible-pointer-types\|incompatible pointer type" "$1.log" | head -n 1
    fi
}
shipped=$(outcome shipped)
own=$(outcome own)
echo "with the shipped declaration: $shipped"
echo "with a declaration of its own: $own"
[[ $shipped == incompatible* ]] && [ "$own" = compiles ]
