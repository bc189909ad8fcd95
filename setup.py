"""Builds the one compiled extension: each file of `moldau/records/columns`, which is Python that Cython understands.

Without a compiler the same files run interpreted, so a failing build is no failing install. Everything else is in
pyproject.toml.
"""

from pathlib import Path

from setuptools import Extension, setup

COLUMNS = Path("src/moldau/records/columns")
FLAGS = ["-O3", "-g0"]
"""Without information for debuggers, which Python's own flags ask for: it is four fifths of the files in a wheel."""


def extensions() -> list[Extension]:
    sources = [file for file in sorted(COLUMNS.glob("*.py")) if file.name != "__init__.py"]
    if not sources:
        return []
    from Cython.Build import cythonize

    return cythonize(
        [
            Extension(f"moldau.records.columns.{file.stem}", [str(file)], extra_compile_args=FLAGS, optional=True)
            for file in sources
        ],
        build_dir="build/cython",
        language_level=3,
        quiet=True,
    )


setup(ext_modules=extensions())
