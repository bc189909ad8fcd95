"""`moldau pipeline`: load topics into a Parquet warehouse with Spark, and the demo; Spark is imported late."""

import contextlib
import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from moldau.cli.command_line import Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json
from moldau.cli.output import print_json
from moldau.cli.pipeline_audit import audit
from moldau.errors import ConfigError
from moldau.names import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = Group("pipeline")
app.command()(audit)


@app.command()
def load(
    topics: Annotated[str, Option(metavar="TOPIC,...", help="The topics, separated by commas.")],
    warehouse: Annotated[Path, Option(help="The warehouse's folder; it is created if missing.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    master: Annotated[str, Option(help="Spark's master: local[*], or spark://HOST:PORT.")] = "local[*]",
    allow_data_loss: Annotated[
        bool, Option("--allow-data-loss", help="Go on if records expired before they were loaded.")
    ] = False,
    compression: Annotated[str, Option(help="lz4, snappy, zstd or none.")] = "lz4",
    isolation_level: Annotated[
        str, Option(help="read_committed leaves out records of open and aborted transactions.")
    ] = "read_committed",
    as_json: Json = False,
) -> None:
    """
    Load everything new since the last load, each record exactly once, by topic and event date (UTC).

    Examples:

      moldau pipeline load --topics flights,weather --warehouse /data/warehouse

      moldau pipeline load --topics flights --warehouse w -b broker1:9092 --master 'local[4]' --json
    """
    names = [name.strip() for name in topics.split(",") if name.strip()]
    if not names:
        raise ConfigError("--topics names no topic")
    _require("pyspark", "pyarrow")
    from moldau.client.fetching import isolation_number
    from moldau.pipeline.writing import COMPRESSIONS

    if compression not in COMPRESSIONS:
        raise ConfigError(f"--compression {compression!r} is none of {', '.join(COMPRESSIONS)}")
    isolation_number(isolation_level)
    how = {"fail_on_data_loss": not allow_data_loss, "compression": compression, "isolation_level": isolation_level}
    result = _load(names, warehouse, bootstrap_server, master, how)
    if as_json:
        print_json(result)
    elif result["manifest"]:
        print(
            f"loaded {counted(result['records'], 'record')} "
            f"({result['bytes'] / 1e6:,.1f} MB, files: {result['files']:,}) in "
            f"{result['seconds']:.1f} s, {result['records_per_second']:,.0f} records/s: {result['manifest']}"
        )
    else:
        print("nothing new to load")


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


def _load(topics: list[str], folder: Path, bootstrap: str, master: str, how: dict[str, Any]) -> dict[str, Any]:
    """Load, with a Spark of our own if there is something to load; the result as plain values."""
    from moldau.pipeline.load import load as load_topics
    from moldau.pipeline.manifest import file_name
    from moldau.pipeline.session import check_java, start_session
    from moldau.pipeline.warehouse import Warehouse

    check_java()
    with contextlib.ExitStack() as stack:

        def session() -> "SparkSession":
            scratch = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="moldau-spark-", ignore_cleanup_errors=True)
            )
            spark = start_session("moldau pipeline load", master, Path(scratch))
            stack.callback(spark.stop)
            return spark

        loaded = load_topics(
            session,
            bootstrap,
            topics,
            Warehouse(folder),
            **how,
        )
    manifest = loaded.manifest
    return {
        "records": loaded.records,
        "bytes": loaded.bytes,
        "files": len(manifest.files) if manifest else 0,
        "seconds": round(loaded.seconds, 3),
        "records_per_second": round(loaded.records_per_second),
        "manifest": file_name(manifest.number) if manifest else None,
        "taken_back": loaded.taken_back,
    }


def _require(*modules: str, extra: str = "spark") -> None:
    """ConfigError that says how to install what is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"the pipeline needs {module}: install it with 'pip install moldau[{extra}]'")
