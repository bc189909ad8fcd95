"""Builds the one compiled extension: each file of `moldau/records/columns`, which is Python that Cython understands.

Without a compiler the same files run interpreted, so a failing build is not a failing install. MOLDAU_INTERPRETED=1
compiles nothing. Everything else is in pyproject.toml.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, PlatformError

COLUMNS = Path("src/moldau/records/columns")
FLAGS = [
    "-O3",
    "-g0",  # Python's own flags ask for debugging information, which would be four fifths of the files in a wheel
    # Errors from gcc 14 on: an older compiler must not accept what a newer one refuses.
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-Werror=implicit-function-declaration",
]

EARLIEST_ZIP_TIME = "315532800"
"""1980-01-01. The same sources make the same wheel, byte for byte, so its files need one time."""


class BuildColumns(build_ext):
    """Compiles all files or none: compiled files call each other as C functions, which interpreted ones do not have."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (CompileError, LinkError, PlatformError) as error:
            self.warn(f"records/columns is not compiled and will run interpreted: {error}")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def extensions() -> list[Extension]:
    sources = [file for file in sorted(COLUMNS.glob("*.py")) if file.name != "__init__.py"]
    if not sources or os.environ.get("MOLDAU_INTERPRETED"):
        return []
    from Cython.Build import cythonize

    return cythonize(
        [Extension(f"moldau.records.columns.{file.stem}", [str(file)], extra_compile_args=FLAGS) for file in sources],
        build_dir="build/cython",
        language_level=3,
        quiet=True,
    )


os.environ.setdefault("SOURCE_DATE_EPOCH", EARLIEST_ZIP_TIME)
setup(ext_modules=extensions(), cmdclass={"build_ext": BuildColumns})
