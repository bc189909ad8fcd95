"""`moldau pipeline widen`: wider types for columns of a Delta table."""

from typing import Annotated

from moldau.cli.command_line import Argument
from moldau.cli.options import Json, StorageOption, pairs
from moldau.cli.output import print_json
from moldau.cli.pipeline_needs import need
from moldau.errors import ConfigError
from moldau.names import counted


def widen(
    table: Annotated[str, Argument("TABLE", help="A Delta table; a folder or URL.")],
    changes: Annotated[
        list[str],
        Argument("COLUMN=TYPE...", help="long (int, short) or double; a field by its path: place.lat=double."),
    ],
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """
    Give columns of a table wider types: short, int or long for a shorter whole number, double for float.

    All files of the table are rewritten, and take the place of the others in one commit. No value changes, and loads
    may go on meanwhile. Iceberg tables need no such command: loads widen their columns.

    Examples:

      moldau pipeline widen /data/warehouse/orders quantity=long place.lat=double
    """
    need("pyarrow", "deltalake", extra="lake")
    from moldau.pipeline.loading.widening import widen
    from moldau.pipeline.tables.storage import location

    named: dict[str, str] = {}
    for change in changes:
        path, _, kind = change.rpartition("=")
        if not path or not kind:
            raise ConfigError(f"{change!r} is not of the form COLUMN=TYPE")
        if named.setdefault(path, kind) != kind:
            raise ConfigError(f"{path} is named twice, with the types {named[path]} and {kind}")
    done = widen(location(table, pairs(storage_option or [], "--storage-option")), named)
    if as_json:
        print_json({"version": done.version, "files": done.files})
    elif done.version is None:
        print(f"{table}: nothing to widen")
    else:
        print(f"{table}: widened in version {done.version}, {counted(done.files, 'file')} rewritten")
