"""`moldau pipeline load`: topics into tables with Spark, once or until it is stopped; Spark is imported late."""

import contextlib
import re
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Option
from moldau.cli.moments import moment_ms, short_duration_ms
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, StorageOption, pairs, reachable
from moldau.cli.pipeline_decoding import decodings_of
from moldau.cli.pipeline_needs import need
from moldau.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.pipeline.loading.load import Loader
    from moldau.pipeline.loading.removed_rows import RemovedRows
    from moldau.pipeline.loading.settings import Settings
    from moldau.pipeline.options import TopicSelection
    from moldau.pipeline.tables.committing import LoadedWarehouse

    MakeLoader = Callable[[contextlib.ExitStack], tuple[Loader, Callable[[], SparkSession]]]

EVERY_MS_MIN = 100
RECORDS_MAX = 10_000_000
UPSERT_RECORDS_MAX = 5_000_000
"""Their keys need about 1.3 GB of the driver's memory."""

Topics = Annotated[str, Option(metavar="TOPIC,...", help="The topics, separated by commas.")]
Pattern = Annotated[str, Option(metavar="REGEX", help="Instead of --topics: all whose whole name matches.")]
WarehouseOption = Annotated[
    str,
    Option(help="The warehouse's folder or URL, created if missing; with iceberg a property of the catalog."),
]
FormatOption = Annotated[str, Option("--format", help="The table format: delta, or iceberg in a catalog.")]
CatalogOption = Annotated[
    str, Option("--catalog", metavar="NAME", help="With iceberg: a catalog of pyiceberg, as in ~/.pyiceberg.yaml.")
]
CatalogProperty = Annotated[
    list[str] | None,
    Option("--catalog-property", metavar="KEY=VALUE", help="A property of the catalog, such as uri; repeatable."),
]
Namespace = Annotated[str, Option(help="With iceberg: the namespace of the tables, created if missing.")]
Every = Annotated[str, Option(metavar="30s", help="Load again and again, this often, until Ctrl-C or SIGTERM.")]
Since = Annotated[str, Option(metavar="TIME", help="Where new partitions begin: 2h, 7d or 2026-11-21T08:00:00.")]
Until = Annotated[str, Option(metavar="TIME", help="End before the first record of this time or a later one.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only show what would be loaded.")]
Master = Annotated[str, Option(help="Spark's master: local[*], or spark://HOST:PORT.")]
AllowDataLoss = Annotated[bool, Option("--allow-data-loss", help="Go on if records expired, or a log was truncated.")]
OffsetsFromTable = Annotated[
    bool, Option("--offsets-from-table", help="If another tool removed rows: go on behind the rows that are left.")
]
AcceptRemoved = Annotated[bool, Option("--accept-removed", help="If another tool removed rows: go on without them.")]
GroupOption = Annotated[
    str, Option("--group", help="A consumer group to commit the offsets to as well, for tools that show lag.")
]
MaxRecords = Annotated[
    int | None,
    Option(min=1, metavar="N", help="With --every: records of a commit at most, 10 million; with --upsert 5 million."),
]
CompactAfter = Annotated[
    int | None, Option(min=0, metavar="N", help="Compact a table with N (50) small files in a partition; 0 for never.")
]
CompressionOption = Annotated[str, Option(help="lz4, snappy, zstd or none.")]
IsolationLevel = Annotated[str, Option(help="read_committed leaves out records of open and aborted transactions.")]
PartitionBy = Annotated[
    str,
    Option(help="How new tables are partitioned: date (with --upsert none), hour (UTC), none, or by decoded columns."),
]
Upsert = Annotated[
    bool,
    Option("--upsert", help="Tables with one row per key, its newest; a tombstone deletes it."),
]
Decode = Annotated[str, Option(help="Values become columns: json, avro, protobuf, text; none keeps them as they are.")]
SchemaFile = Annotated[
    str, Option(metavar="FILE", help="The columns: JSON Schema or Spark's DDL for json, an Avro schema, a .proto file.")
]
RegistryOption = Annotated[
    str, Option(metavar="URL,...", help="A schema registry like Confluent's; user:password@ in the URL if needed.")
]
Envelope = Annotated[
    str, Option(metavar="debezium", help="Values are change events of Debezium: their rows become the columns.")
]
DecodeKey = Annotated[
    str, Option("--decode-key", help="Keys become columns: json, avro, protobuf, text; none keeps them as they are.")
]
KeySchemaFile = Annotated[str, Option("--key-schema", metavar="FILE", help="The columns of keys, as --schema.")]
EventTime = Annotated[str, Option(metavar="FIELD", help="The decoded field, or its path (a.b), whose time dates rows.")]

TypeShare = Annotated[
    float,
    Option("--type-share", metavar="0.99", help="Inferred columns: the share of records whose type a new field takes."),
]
OnReject = Annotated[str, Option("--on-reject", help="quarantine, or fail: the load commits nothing.")]
MaxRejected = Annotated[
    int | None, Option(min=0, metavar="N", help="Fail, and commit nothing, if a load rejects more records.")
]


def load(
    warehouse: WarehouseOption = "",
    topics: Topics = "",
    pattern: Pattern = "",
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    every: Every = "",
    since: Since = "",
    until: Until = "",
    dry_run: DryRun = False,
    group: GroupOption = "",
    master: Master = "local[*]",
    allow_data_loss: AllowDataLoss = False,
    offsets_from_table: OffsetsFromTable = False,
    accept_removed: AcceptRemoved = False,
    max_records: MaxRecords = None,
    compact_after: CompactAfter = None,
    compression: CompressionOption = "lz4",
    isolation_level: IsolationLevel = "read_committed",
    partition_by: PartitionBy = "",
    upsert: Upsert = False,
    decode: Decode = "none",
    schema: SchemaFile = "",
    decode_key: DecodeKey = "none",
    key_schema: KeySchemaFile = "",
    schema_registry: RegistryOption = "",
    event_time: EventTime = "",
    type_share: TypeShare = 0.99,
    on_reject: OnReject = "quarantine",
    max_rejected: MaxRejected = None,
    envelope: Envelope = "",
    storage_option: StorageOption = None,
    table_format: FormatOption = "delta",
    catalog: CatalogOption = "",
    catalog_property: CatalogProperty = None,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """
    Load everything new since the last load, each record exactly once, into a Delta or Iceberg table for each topic.

    Examples:

      moldau pipeline load --pattern 'clicks-.*' --warehouse s3://lake/kafka --every 30s --group warehouse

      moldau pipeline load --topics customers --warehouse w --decode json --upsert --envelope debezium
    """
    need("pyspark", "pyarrow", "deltalake")
    from moldau.pipeline.loading.settings import Settings

    every_ms, of_keys = _every_ms(every, max_records, until, dry_run, upsert), (decode_key, key_schema, envelope)
    values, keys = decodings_of(decode, schema, schema_registry, event_time, type_share, *of_keys, bootstrap_server)
    settings = Settings(
        not allow_data_loss, compression_of(compression), _isolation(isolation_level),
        _partitions(partition_by, upsert), values, moment_ms(since, "--since") if since else None,
        moment_ms(until, "--until") if until else None, _records_max(max_records, every_ms, upsert),
        _small_files(compact_after, table_format), group or None, _removed_rows(offsets_from_table, accept_removed),
        _rejected_max(on_reject, max_rejected), keys, upsert,
    )  # fmt: skip
    opened = open_tables(table_format, warehouse, storage_option, catalog, catalog_property, namespace)
    _load(bootstrap_server, _subscription(topics, pattern), *opened, master, settings, every_ms, dry_run, as_json)


def _partitions(partition_by: str, upsert: bool) -> str:
    """How new tables are partitioned. Raises `ConfigError`."""
    names = [name.strip() for name in (partition_by or ("none" if upsert else "date")).split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise ConfigError(
            f"--partition-by {partition_by!r} is none of date, hour, none, nor columns such as region,day"
        )
    return ",".join(names)


def _records_max(max_records: int | None, every_ms: int, upsert: bool) -> int | None:
    """How many records a commit takes at most; None for all."""
    return max_records or (UPSERT_RECORDS_MAX if upsert else RECORDS_MAX if every_ms else None)


def open_tables(
    table_format: str,
    warehouse: str,
    storage_option: list[str] | None,
    catalog: str,
    catalog_property: list[str] | None,
    namespace: str,
) -> "tuple[LoadedWarehouse, str]":
    """The warehouse that options name, and where its rejected records are. Raises `ConfigError`."""
    open_them = partial(_iceberg, namespace) if table_format == "iceberg" else partial(_delta, table_format)
    return open_them(warehouse, storage_option or [], catalog, catalog_property or [])


def _removed_rows(offsets_from_table: bool, accept_removed: bool) -> "RemovedRows":
    """Raises `ConfigError`."""
    if offsets_from_table and accept_removed:
        raise ConfigError("give one of --offsets-from-table and --accept-removed: they load removed rows again, or not")
    return "reload" if offsets_from_table else "accept" if accept_removed else "refuse"


def _rejected_max(on_reject: str, max_rejected: int | None) -> int | None:
    """Raises `ConfigError`."""
    if on_reject not in ("quarantine", "fail"):
        raise ConfigError(f"--on-reject {on_reject!r} is none of quarantine, fail")
    if on_reject == "fail" and max_rejected:
        raise ConfigError("--on-reject fail allows no rejected record: leave it out, or --max-rejected")
    return 0 if on_reject == "fail" else max_rejected


def _small_files(compact_after: int | None, table_format: str) -> int:
    """Raises `ConfigError`."""
    from moldau.pipeline.tables.small_files import SMALL_FILES_MAX

    if compact_after and table_format == "iceberg":
        raise ConfigError("--compact-after is for Delta tables: Iceberg's are compacted by rewrite_data_files")
    return SMALL_FILES_MAX if compact_after is None else compact_after


def _delta(
    table_format: str, warehouse: str, options: list[str], catalog: str, properties: list[str]
) -> "tuple[LoadedWarehouse, str]":
    """A warehouse of Delta tables, and where its rejected records are. Raises `ConfigError`."""
    from moldau.pipeline.tables.warehouse import Warehouse

    if table_format != "delta":
        raise ConfigError(f"--format {table_format!r} is none of delta, iceberg")
    if catalog or properties:
        raise ConfigError(f"--catalog{'' if catalog else '-property'} needs --format iceberg: Delta needs no catalog")
    if not warehouse:
        raise ConfigError("--warehouse is missing: name a folder or URL")
    tables = Warehouse(warehouse, pairs(options, "--storage-option"))
    return tables, tables.place_of_rejected("").uri.rstrip("/")


def _iceberg(
    namespace: str, warehouse: str, options: list[str], catalog: str, properties: list[str]
) -> "tuple[LoadedWarehouse, str]":
    """A namespace of Iceberg tables, and where its rejected records are. Raises `ConfigError`."""
    need("pyiceberg", extra="iceberg")
    from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse

    if not catalog:
        raise ConfigError(
            "--format iceberg needs --catalog: one of ~/.pyiceberg.yaml, or any name with --catalog-property uri=..."
        )
    if options:
        raise ConfigError("--storage-option is for Delta tables: options of Iceberg's stores are --catalog-property")
    if not namespace:
        raise ConfigError("--namespace is empty")
    given = pairs(properties, "--catalog-property") | ({"warehouse": warehouse} if warehouse else {})
    tables = IcebergWarehouse(catalog, given, namespace)
    return tables, tables.quarantine


def _load(
    bootstrap: str,
    subscription: "TopicSelection",
    tables: "LoadedWarehouse",
    quarantine: str,
    master: str,
    settings: "Settings",
    every_ms: int,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Load, with a Spark of our own that starts once there is something to load."""
    from moldau.cli.load_report import print_loaded, print_plan, progress_line
    from moldau.pipeline.session import check_java

    made = partial(_loader, reachable(bootstrap), subscription, tables, settings, master)
    if every_ms:
        _load_continuously(made, every_ms, as_json)
        return
    with contextlib.ExitStack() as stack:
        if not dry_run:
            check_java()
        loader, _ = made(stack)
        planned = loader.plan()
        if dry_run:
            print_plan(planned, as_json)
            return
        with progress_line(loader.progress):
            loaded = loader.load(planned)
        print_loaded(loaded, as_json, quarantine)


def _load_continuously(made: "MakeLoader", every_ms: int, as_json: bool) -> None:
    """Load until a signal comes; what was started has ended when this returns."""
    from moldau.cli.load_report import ContinuousReport, progress_line
    from moldau.pipeline.loading.continuous import load_continuously
    from moldau.pipeline.loading.stopping import Stopping
    from moldau.pipeline.session import check_java

    report = ContinuousReport(as_json)
    with Stopping() as stopping:
        with stopping.ended(), contextlib.ExitStack() as stack:
            check_java()
            loader, session = made(stack)
            loader.compacting.compacted = report.compacted
            loader.plan()  # what cannot be loaded is said before Spark starts
            loader.check_writable()
            with progress_line(loader.progress):
                session()
                load_continuously(loader, every_ms / 1000, stopping, report)
        report.stopped()


def _loader(
    bootstrap: str,
    subscription: "TopicSelection",
    tables: "LoadedWarehouse",
    settings: "Settings",
    master: str,
    stack: contextlib.ExitStack,
) -> "tuple[Loader, Callable[[], SparkSession]]":
    """A loader and what starts its Spark; the stack ends both."""
    from moldau.pipeline.loading.load import Loader

    session = _session(stack, master)
    return stack.enter_context(Loader(session, bootstrap, subscription, tables, settings)), session


def _session(stack: contextlib.ExitStack, master: str) -> "Callable[[], SparkSession]":
    """Starts Spark when it is called first; the stack ends it."""
    from moldau.pipeline.session import own_session

    return cache(lambda: stack.enter_context(own_session("moldau pipeline load", master)))


def _subscription(topics: str, pattern: str) -> "TopicSelection":
    from moldau.pipeline.options import TopicSelection

    names = tuple(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
    if bool(topics) == bool(pattern):
        raise ConfigError("give one of --topics and --pattern")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"--pattern {pattern!r} is not a regular expression: {error}") from None
    elif not names:
        raise ConfigError("--topics names no topic")
    return TopicSelection(topics=names, pattern=pattern)


def _every_ms(every: str, max_records: int | None, until: str, dry_run: bool, upsert: bool) -> int:
    """The time between loads, 0 for one load. Raises `ConfigError`."""
    if not every:
        if max_records is not None and not upsert:
            raise ConfigError("--max-records needs --every or --upsert: one load is one commit of everything new")
        return 0
    if until or dry_run:
        raise ConfigError(f"--every does not end by itself, so it excludes {'--until' if until else '--dry-run'}")
    every_ms = short_duration_ms(every) or 0
    if every_ms < EVERY_MS_MIN:
        raise ConfigError(f"--every {every!r} is not a duration such as 30s or 5m, of at least {EVERY_MS_MIN} ms")
    return every_ms


def compression_of(name: str) -> str:
    from moldau.pipeline.loading.writing import COMPRESSIONS

    if name not in COMPRESSIONS:
        raise ConfigError(f"--compression {name!r} is none of {', '.join(COMPRESSIONS)}")
    return name


def _isolation(level: str) -> str:
    from moldau.client.fetching import isolation_number

    isolation_number(level)
    return level
