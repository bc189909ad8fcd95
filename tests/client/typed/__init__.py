"""A user's program, checked by mypy and pyright in their strict modes."""
