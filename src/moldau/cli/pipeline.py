"""`moldau pipeline`: load topics into tables with Spark, and the demo; Spark is imported late."""

from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Group, Option
from moldau.cli.dead_letters.rejected import rejected
from moldau.cli.pipeline_audit import audit
from moldau.cli.pipeline_load import load
from moldau.cli.pipeline_needs import need
from moldau.cli.pipeline_requeue import requeue
from moldau.cli.pipeline_tables import compact, convert, history, vacuum
from moldau.cli.pipeline_widen import widen

app = Group("pipeline")
app.command()(load)
app.command()(rejected)
app.command()(requeue)
app.command()(audit)

for tables_command in (compact, vacuum, history, widen, convert):
    app.command()(tables_command)


@app.command()
def demo(
    folder: Annotated[Path, Option(help="The folder for all results; its content is deleted first.")] = Path(
        "build", "demo"
    ),
) -> int:
    """
    Run the demo on real data: broker, replay, loads, streams, audit, books and a report.

    Examples:

      moldau pipeline demo --folder build/demo
    """
    need("pyspark", "pyarrow", "rich", "fastavro", "uvicorn", "httptools", extra="demo")
    from moldau.demo.run import run

    return run(folder)
