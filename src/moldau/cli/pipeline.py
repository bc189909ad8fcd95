"""`moldau pipeline`: load topics into a Parquet warehouse with Spark, and the demo. What it needs is imported when it runs."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from moldau.errors import MoldauError

app = typer.Typer(no_args_is_help=True, help="Load topics into Parquet with Spark; the demo on real data.")

LOAD_EXAMPLES = """
Examples:

  moldau pipeline load --topics flights,weather --warehouse /data/warehouse

  moldau pipeline load --topics flights --warehouse w --bootstrap-server broker1:9092 --master 'local[4]' --json
"""


@app.command(epilog=LOAD_EXAMPLES)
def load(
    topics: Annotated[str, typer.Option(help="Topics to load, separated by commas.")],
    warehouse: Annotated[Path, typer.Option(help="The warehouse's folder; made if it is not there.")],
    bootstrap_server: Annotated[
        str, typer.Option(envvar="MOLDAU_BOOTSTRAP_SERVER", help="HOST:PORT of any broker.")
    ] = "localhost:9092",
    master: Annotated[str, typer.Option(help="Spark's master: local[*], or spark://HOST:PORT.")] = "local[*]",
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="Go on when records expired before they were loaded.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Load everything new since the last load, exactly once, by topic and event date (UTC)."""
    names = [name.strip() for name in topics.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("names no topic", param_hint="--topics")
    try:
        result = _load(names, warehouse, bootstrap_server, master, not allow_data_loss)
    except MoldauError as error:
        typer.echo(f"moldau: {error}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(result))
    elif result["manifest"]:
        typer.echo(
            f"Loaded {result['records']:,} records into {result['files']:,} files ({result['bytes'] / 1e6:,.1f} MB) in "
            f"{result['seconds']:.1f} s, {result['records_per_second']:,.0f} records/s: {result['manifest']}"
        )
    else:
        typer.echo("Nothing new to load.")


@app.command(epilog="Example:\n\n  moldau pipeline demo --folder build/demo")
def demo(
    folder: Annotated[Path, typer.Option(help="Where everything is left; emptied first.")] = Path("build", "demo"),
) -> None:
    """The whole journey on real data: broker, replay, load, streams, books and a report."""
    from moldau.pipeline.demo import run

    raise typer.Exit(run(folder))


def _load(
    topics: list[str], folder: Path, bootstrap_server: str, master: str, fail_on_data_loss: bool
) -> dict[str, object]:
    """Start Spark, load, stop Spark; the result as plain values."""
    try:
        from moldau.pipeline.load import load as load_topics
        from moldau.pipeline.session import start_session
        from moldau.pipeline.warehouse import Warehouse
    except ImportError as error:
        raise MoldauError(f"The pipeline needs {error.name}: install it with 'pip install moldau[spark]'.") from None
    with tempfile.TemporaryDirectory(prefix="moldau-spark-") as scratch:
        spark = start_session("moldau pipeline load", master, Path(scratch))
        try:
            loaded = load_topics(spark, bootstrap_server, topics, Warehouse(folder), fail_on_data_loss)
        finally:
            spark.stop()
    manifest = loaded.manifest
    return {
        "records": loaded.records,
        "bytes": loaded.bytes,
        "files": len(manifest.files) if manifest else 0,
        "seconds": round(loaded.seconds, 3),
        "records_per_second": round(loaded.records_per_second),
        "manifest": f"manifest-{manifest.number:06d}.json" if manifest else None,
        "taken_back": loaded.taken_back,
    }
