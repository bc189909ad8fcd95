"""`moldau pipeline compact|vacuum|history|convert`: what keeps the tables of a warehouse; none of them needs Spark."""

from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.options import Json, StorageOption, pairs
from moldau.cli.output import print_json, print_table, time_text
from moldau.cli.pipeline_needs import need
from moldau.cli.terminated import killable
from moldau.names import counted

if TYPE_CHECKING:
    from moldau.pipeline.tables.storage import Location

Tables = Annotated[str, Argument("WAREHOUSE-or-TABLE", help="All tables of a warehouse, or one; a folder or URL.")]


def compact(of: Tables, storage_option: StorageOption = None, as_json: Json = False) -> None:
    """
    Write the small files of each table together; no row changes, and loads may run meanwhile.

    The replaced files stay for time travel until 'vacuum' removes them.

    Examples:

      moldau pipeline compact /data/warehouse
    """
    need("pyarrow", "deltalake", extra="lake")
    from moldau.pipeline.tables.maintenance import compact

    tables = _tables(of, storage_option)
    with killable():
        done = {name: compact(where) for name, where in tables.items()}
    if as_json:
        print_json({name: {"files_removed": one.removed, "files_added": one.added} for name, one in done.items()})
    for name, one in [] if as_json else done.items():
        became = f"{counted(one.removed, 'file')} became {one.added:,}"
        print(f"{name}: {became if one.removed else 'nothing to compact'}")


def vacuum(
    of: Tables,
    retention_hours: Annotated[
        int | None, Option(min=0, metavar="N", help="Keep files of the last N hours; 168, or the table's property.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only count the files.")] = False,
    force: Annotated[
        bool, Option("--force", help="Allow a shorter retention than the table's; no load may run meanwhile.")
    ] = False,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """
    Remove files that no version of the last 7 days needs: replaced ones, and those that dead loads left.

    Examples:

      moldau pipeline vacuum /data/warehouse --dry-run
    """
    need("pyarrow", "deltalake", extra="lake")
    from moldau.pipeline.tables.maintenance import vacuum

    tables = _tables(of, storage_option)
    with killable():
        done = {name: vacuum(where, retention_hours, dry_run=dry_run, force=force) for name, where in tables.items()}
    if as_json:
        print_json({name: {"files": count, "removed": not dry_run} for name, count in done.items()})
    for name, count in [] if as_json else done.items():
        print(f"{name}: {counted(count, 'file')} {'would be ' if dry_run else ''}removed")


def history(
    of: Tables,
    limit: Annotated[int, Option(min=1, metavar="N", help="The newest N versions of each table.")] = 20,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """
    Print the versions of each table, newest first: the time, the operation or load, and the number of records that it
    changed.

    Examples:

      moldau pipeline history /data/warehouse/flights --limit 5
    """
    need("pyarrow", "deltalake", extra="lake")
    from moldau.pipeline.tables.maintenance import history

    histories = {name: history(where, limit, count=True) for name, where in _tables(of, storage_option).items()}
    if as_json:
        print_json({name: [one._asdict() for one in versions] for name, versions in histories.items()})
        return
    rows = [
        [name, one.version, time_text(one.timestamp_ms), one.operation, one.load_id, *one[4:]]
        for name, versions in histories.items()
        for one in versions
    ]
    print_table(["TABLE", "VERSION", "TIME", "OPERATION", "LOAD", "ADDED", "UPDATED", "REMOVED"], rows)


def convert(
    warehouse: Annotated[str, Argument("WAREHOUSE", help="The folder of a warehouse of the earlier format.")],
    partition_by: Annotated[str, Option(help="How the tables are partitioned: date, hour (UTC) or none.")] = "date",
    as_json: Json = False,
) -> None:
    """
    Turn a warehouse of the earlier format, with manifests, into Delta tables; once, losing nothing.

    It may be killed and run again. The old files are removed when every record is in a table.

    Examples:

      moldau pipeline convert /data/warehouse
    """
    need("pyarrow", "deltalake", extra="lake")
    from moldau.cli.options import partitioning
    from moldau.pipeline.conversion.converting import convert
    from moldau.pipeline.tables.warehouse import Warehouse

    converted = convert(Warehouse(warehouse), partitioning(partition_by))
    if as_json:
        print_json({topic: {"records": records} for topic, records in converted.items()})
    for topic, records in [] if as_json else converted.items():
        print(f"{topic}: {counted(records, 'record')}")


def _tables(of: str, storage_option: list[str] | None) -> "dict[str, Location]":
    """The tables that a command means, by the name that it prints."""
    from moldau.pipeline.tables.warehouse import Warehouse

    return Warehouse(of, pairs(storage_option or [], "--storage-option")).tables()
