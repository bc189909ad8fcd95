#!/usr/bin/env bash
# What: `cythonize` returns other Extension objects than it was given, without their `optional=True`. A package that means
#   to run without its compiled part then cannot be installed where there is no C compiler.
# Guess: `cythonize` passes every argument of an Extension on, as it does with `extra_compile_args`.
# Seen: Cython 3.3.1 with setuptools 84.2.1 on Python 3.11.7, 2026-11-27: `optional` is True before and False behind it,
#   `extra_compile_args` is the same; a build with a compiler that fails ends with an error. Set again: the build passes.
# Source: met in an installation without a compiler; Cython/Build/Dependencies.py copies a fixed list of settings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
python=$folder/venv/bin/python
"$python" -m pip install --quiet cython==3.3.1 setuptools==84.2.1
cd "$folder"
echo "def one(): return 1" >part.py
cat >setup.py <<'PYTHON'
import os

from Cython.Build import cythonize
from setuptools import Extension, setup

given = Extension("part", ["part.py"], extra_compile_args=["-O1"], optional=True)
(returned,) = cythonize([given], language_level=3, quiet=True)
print("given:   ", given.optional, given.extra_compile_args, flush=True)
print("returned:", returned.optional, returned.extra_compile_args, flush=True)
if os.environ.get("SET_AGAIN"):
    returned.optional = True
setup(name="whole", py_modules=["part"], ext_modules=[returned])
PYTHON
build() { CC=/bin/false "$python" setup.py --quiet build_ext 2>/dev/null; }
if build; then as_returned=passes; else as_returned=fails; fi
if SET_AGAIN=1 build; then set_again=passes; else set_again=fails; fi
echo "a build with a compiler that fails: $as_returned; with optional set again: $set_again"
[ "$as_returned" = fails ] && [ "$set_again" = passes ]
