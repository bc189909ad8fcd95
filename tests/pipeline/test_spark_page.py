"""The pages about Spark's sessions (`PAGES`): their examples run one after another; their tables, and those of
docs/coming-from-spark.md, name every option."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moldau
from moldau.pipeline import options
from moldau.pipeline.sink import options as sink_options
from moldau.pipeline.table_source import options as table_options
from tests.pipeline.tables.test_readers import commit
from tests.spark import run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("spark.md", "spark-write.md", "spark-cluster.md")
TEXT = "".join((DOCS / page).read_text() for page in PAGES)
TABLES = TEXT + (DOCS / "coming-from-spark.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "name", sorted({*options.NAMES, *sink_options.NAMES, *table_options.NAMES} - {"path", "kafka.isolation.level"})
)
def test_every_option_is_in_a_table(name: str) -> None:
    assert re.search(rf"^\|[^|]*`{re.escape(name)}`", TABLES, re.MULTILINE)


@pytest.mark.check
@pytest.mark.timeout(300)
def test_the_examples_run(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with moldau.Producer(bootstrap) as producer:
        producer.send_many("clicks", [f"v{n}" for n in range(50)], [f"k{n}" for n in range(50)])
        producer.send("clicks-copy", "first")
    for start in (0, 10):
        commit(tmp_path / "flights", start, start + 10)
    names = {"spark": spark, "checkpoint": str(tmp_path)}
    for example in EXAMPLES:
        here = example.replace("localhost:9092", bootstrap).replace("WAREHOUSE", str(tmp_path))
        run_example(here, names)
    assert len(moldau.read_table("clicks-copy", bootstrap)) == 1 + 3 * 50
    said = capfd.readouterr().out
    assert "50 50\n" in said and "20 40\n" in said
    with moldau.Admin(bootstrap) as admin:
        (group,) = [one.group_id for one in admin.list_groups() if one.group_id.startswith("copier-")]
        assert sum(lag.records or 0 for lag in admin.group_lag(group).values()) == 0
