"""`moldau pipeline`: load topics into Delta tables with Spark, and the demo; Spark is imported late."""

import contextlib
import importlib.util
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from moldau.cli.command_line import Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, StorageOption, pairs, partitioning
from moldau.cli.output import print_json
from moldau.cli.pipeline_audit import audit
from moldau.cli.pipeline_tables import compact, convert, history, vacuum
from moldau.errors import ConfigError
from moldau.names import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.pipeline.decoding.choosing import Decoding
    from moldau.pipeline.loading.load import Settings
    from moldau.pipeline.tables.warehouse import Warehouse

app = Group("pipeline")
app.command()(audit)

for tables_command in (compact, vacuum, history, convert):
    app.command()(tables_command)


@app.command()
def load(
    topics: Annotated[str, Option(metavar="TOPIC,...", help="The topics, separated by commas.")],
    warehouse: Annotated[str, Option(help="The warehouse's folder or URL; it is created if missing.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    master: Annotated[str, Option(help="Spark's master: local[*], or spark://HOST:PORT.")] = "local[*]",
    allow_data_loss: Annotated[
        bool, Option("--allow-data-loss", help="Go on if records expired before they were loaded.")
    ] = False,
    compression: Annotated[str, Option(help="lz4, snappy, zstd or none.")] = "lz4",
    isolation_level: Annotated[
        str, Option(help="read_committed leaves out records of open and aborted transactions.")
    ] = "read_committed",
    partition_by: Annotated[
        str, Option(help="How the tables of new topics are partitioned: date, hour (UTC) or none.")
    ] = "date",
    decode: Annotated[
        str, Option(help="Values become columns: json, avro, text; none keeps them as they are.")
    ] = "none",
    schema: Annotated[
        str, Option(metavar="FILE", help="The columns: JSON Schema or Spark's DDL for json, an Avro schema for avro.")
    ] = "",
    schema_registry: Annotated[
        str, Option(metavar="URL,...", help="A schema registry like Confluent's; user:password@ in the URL if needed.")
    ] = "",
    event_time: Annotated[
        str, Option(metavar="FIELD", help="The decoded field with the time that rows are dated by.")
    ] = "",
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """
    Load everything new since the last load, each record exactly once, into a Delta table for each topic.

    Examples:

      moldau pipeline load --topics flights,weather --warehouse /data/warehouse

      moldau pipeline load --topics flights --warehouse w -b broker1:9092 --master 'local[4]' --json

      moldau pipeline load --topics clicks --warehouse w --decode json --event-time at

      moldau pipeline load --topics flights --warehouse s3://lake/kafka --storage-option AWS_REGION=eu-central-1
    """
    names = [name.strip() for name in topics.split(",") if name.strip()]
    if not names:
        raise ConfigError("--topics names no topic")
    options = pairs(storage_option or [], "--storage-option")
    _require("pyspark", "pyarrow", "deltalake")
    from moldau.pipeline.tables.warehouse import Warehouse

    decoding = _decoding(decode, schema, schema_registry, event_time)
    settings = _settings(compression, isolation_level, partition_by, allow_data_loss)
    result = _load(names, Warehouse(warehouse, options), bootstrap_server, master, settings, decoding)
    if as_json:
        print_json(result)
    else:
        _print_loaded(result)


@app.command()
def demo(
    folder: Annotated[Path, Option(help="The folder for all results; its content is deleted first.")] = Path(
        "build", "demo"
    ),
) -> int:
    """
    The whole journey on real data: broker, replay, load, streams, books and a report.

    Example:

      moldau pipeline demo --folder build/demo
    """
    _require("pyspark", "pyarrow", "rich", extra="demo")
    from moldau.demo.run import run

    return run(folder)


def _settings(compression: str, isolation_level: str, partition_by: str, allow_data_loss: bool) -> "Settings":
    """The settings of a load. Raises `ConfigError`."""
    from moldau.client.fetching import isolation_number
    from moldau.pipeline.loading.load import Settings
    from moldau.pipeline.loading.writing import COMPRESSIONS

    if compression not in COMPRESSIONS:
        raise ConfigError(f"--compression {compression!r} is none of {', '.join(COMPRESSIONS)}")
    isolation_number(isolation_level)
    return Settings(not allow_data_loss, compression, isolation_level, partitioning(partition_by))


def _print_loaded(result: dict[str, Any]) -> None:
    if result["tables"]:
        print(
            f"loaded {counted(result['records'], 'record')} "
            f"({result['bytes'] / 1e6:,.1f} MB, files: {result['files']:,}) in "
            f"{result['seconds']:.1f} s, {result['records_per_second']:,.0f} records/s: "
            + ", ".join(f"{topic} version {table['version']}" for topic, table in result["tables"].items())
        )
    else:
        print("nothing new to load")
    if result["rejected"]:
        print(f"{counted(result['rejected'], 'record')} could not be decoded: WAREHOUSE/_quarantine has the reasons")


def _decoding(kind: str, schema: str, registry: str, event_time: str) -> "Decoding":
    """How values are decoded. Raises `ConfigError`."""
    from moldau.client.registry.schema_registry import SchemaRegistry
    from moldau.pipeline.decoding.choosing import Decoding

    text = ""
    if schema:
        try:
            text = Path(schema).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--schema {schema} cannot be read: {error}") from None
        if not text:
            raise ConfigError(f"--schema {schema} is empty")
    if kind == "avro":
        _require("fastavro", extra="avro")
    decoding = Decoding(kind, text, SchemaRegistry(registry) if registry else None, event_time)
    decoding.check()
    return decoding


def _load(
    topics: list[str],
    warehouse: "Warehouse",
    bootstrap: str,
    master: str,
    settings: "Settings",
    decoding: "Decoding",
) -> dict[str, Any]:
    """Load, with a Spark of our own if there is something to load; the result as plain values."""
    from moldau.pipeline.loading.decoders import decoders
    from moldau.pipeline.loading.load import load as load_topics
    from moldau.pipeline.session import check_java, start_session

    check_java()
    with contextlib.ExitStack() as stack:

        def session() -> "SparkSession":
            scratch = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="moldau-spark-", ignore_cleanup_errors=True)
            )
            spark = start_session("moldau pipeline load", master, Path(scratch))
            stack.callback(spark.stop)
            return spark

        warehouse.check()
        found = decoders(bootstrap, topics, warehouse, decoding, settings.isolation_level)
        loaded = load_topics(session, bootstrap, topics, warehouse, replace(settings, decoders=found))
    return {
        "records": loaded.records,
        "rejected": loaded.rejected,
        "bytes": loaded.bytes,
        "files": loaded.files,
        "seconds": round(loaded.seconds, 3),
        "records_per_second": round(loaded.records_per_second),
        "tables": {
            commit.topic: {"version": commit.version, "records": commit.records, "files": commit.files}
            for commit in loaded.commits
        },
    }


def _require(*modules: str, extra: str = "spark") -> None:
    """ConfigError that says how to install what is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"the pipeline needs {module}: install it with 'pip install moldau[{extra}]'")
