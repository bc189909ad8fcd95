"""`moldau pipeline requeue`: rejected records decoded again, into the tables of their topics; it needs no Spark."""

from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Option
from moldau.cli.options import Json, StorageOption
from moldau.cli.output import note, print_json
from moldau.cli.pipeline_decoding import decodings_of
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
    open_tables,
)
from moldau.cli.pipeline_needs import need
from moldau.errors import ConfigError
from moldau.names import counted
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.pipeline.loading.requeueing import Requeued

FormatOfValues = Annotated[str, Option(help="How values are decoded: json, avro, protobuf or text.")]
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
    need("pyarrow", "deltalake", extra="lake")
    from moldau.pipeline.loading.requeueing import requeue

    names = list(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
    if not names:
        raise ConfigError("--topics names no topic")
    if decode == "none":
        raise ConfigError(
            "--decode none rejects nothing, so there is nothing to decode again: give json, avro, protobuf or text"
        )
    decoding, _ = decodings_of(decode, schema, schema_registry, event_time, type_share)
    compression = compression_of(compression)
    tables, _ = open_tables(table_format, warehouse, storage_option, catalog, catalog_property, namespace)
    trees, random = {}, Runtime().random
    for topic in names:
        done = requeue(tables, topic, decoding, lambda: random.uuid().hex[:12], compression, dry_run=dry_run)
        trees[topic] = done.to_tree()
        _print(done, dry_run, as_json)
    if as_json:
        print_json(trees)


def _print(done: "Requeued", dry_run: bool, as_json: bool) -> None:
    for sentence in done.notes:
        note(sentence)
    for record in done.rejected.first:
        note(f"{done.topic}: still rejected: {record}")
    if not as_json:
        moved = f"{counted(done.moved, 'record')} {'would be ' if dry_run else ''}moved"
        print(f"{done.topic}: {moved}, {done.rejected.records:,} still rejected{_rest(done.waiting, done.already)}")


def _rest(waiting: int, already: int) -> str:
    left = f", {waiting:,} of a load that has not ended yet" if waiting else ""
    return left + (f", {already:,} taken out that the table had already" if already else "")
