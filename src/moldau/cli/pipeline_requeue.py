"""`moldau pipeline requeue`: rejected records decoded again, into the tables of their topics; it needs no Spark."""

from functools import partial
from typing import Annotated

from moldau.cli.command_line import Option
from moldau.cli.options import Json, StorageOption
from moldau.cli.output import note, print_json
from moldau.cli.pipeline_load import (
    CatalogOption,
    CatalogProperty,
    CompressionOption,
    EventTime,
    FormatOption,
    Namespace,
    RegistryOption,
    SchemaFile,
    Topics,
    TypeShare,
    WarehouseOption,
    compression_of,
    decoding_of,
    delta_tables,
    iceberg_tables,
    need,
)
from moldau.errors import ConfigError
from moldau.names import counted
from moldau.runtime import Runtime

FormatOfValues = Annotated[str, Option(help="How values are decoded: json, avro or text.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only count what would be moved.")]


def requeue(
    topics: Topics,
    decode: FormatOfValues,
    warehouse: WarehouseOption = "",
    schema: SchemaFile = "",
    schema_registry: RegistryOption = "",
    event_time: EventTime = "",
    type_share: TypeShare = 0.99,
    dry_run: DryRun = False,
    compression: CompressionOption = "lz4",
    storage_option: StorageOption = None,
    table_format: FormatOption = "delta",
    catalog: CatalogOption = "",
    catalog_property: CatalogProperty = None,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """
    Decode rejected records again and move those that pass to the topic's table, each exactly once.

    Loads may run meanwhile. If it is killed, run it again, or the next load finishes it.

    Examples:

      moldau pipeline requeue --topics clicks --warehouse w --decode json --schema mended.ddl --dry-run

      moldau pipeline requeue --topics clicks --warehouse w --decode json --event-time created
    """
    need("pyarrow", "deltalake")
    from moldau.pipeline.loading.requeueing import requeue

    names = list(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
    if not names:
        raise ConfigError("--topics names no topic")
    if decode == "none":
        raise ConfigError("--decode none rejects nothing, so there is nothing to decode again: give json, avro or text")
    decoding, compression = (
        decoding_of(decode, schema, schema_registry, event_time, type_share),
        compression_of(compression),
    )
    open_tables = (
        partial(iceberg_tables, namespace) if table_format == "iceberg" else partial(delta_tables, table_format)
    )
    tables, _ = open_tables(warehouse, storage_option or [], catalog, catalog_property or [])
    random = Runtime().random
    found = {}
    for topic in names:
        done = requeue(tables, topic, decoding, lambda: random.uuid().hex[:12], compression, dry_run=dry_run)
        for sentence in done.notes:
            note(sentence)
        found[topic] = {
            "moved": done.moved, "rejected": done.rejected.records, "waiting": done.waiting,
            "already_moved": done.already, "version": done.version,
        }  # fmt: skip
        if not as_json:
            moved = f"{counted(done.moved, 'record')} {'would be ' if dry_run else ''}moved"
            print(f"{topic}: {moved}, {done.rejected.records:,} still rejected" + _rest(done.waiting, done.already))
            for record in done.rejected.first:
                note(f"{topic}: still rejected, {record}")
    if as_json:
        print_json(found)


def _rest(waiting: int, already: int) -> str:
    left = f", {waiting:,} of a load that has not ended yet" if waiting else ""
    return left + (f", {already:,} taken out that the table had already" if already else "")
