"""Fixtures of the tests that need Spark: one session and one broker for all of them; each test has topics of its own.

A test that starts a JVM itself says why with `@pytest.mark.own_jvm(WHY)`. These tests and those of the session get the
marker `spark` by `pytest_itemcollected`: one worker runs them all.
`tests/conftest.py` imports this before it is decided how columns run, so fixtures import `moldau` themselves.
"""

import contextlib
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import tiers
from harness.quick_jvm import QUICK_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000
Record = tuple[bytes | None, bytes | None, int]
CUSTOMIZED = """
import os, pathlib, sys, time

slow_once = pathlib.Path(__file__).with_name("slow_once")
if any("streaming_source" in argument for argument in sys.orig_argv) and slow_once.exists():
    slow_once.unlink()
    time.sleep(11)
if "pyspark.daemon" in sys.orig_argv and not os.environ.get("MOLDAU_NOT_PRELOADED"):
    from moldau.pipeline.worker_daemon import PRELOADED, preload, without_archives

    sys.path[:] = without_archives(sys.path)
    if not preload((*PRELOADED, *(f"pyspark.sql.worker.{name}" for name in WORKERS))):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "MOLDAU_NOT_PRELOADED": "1"})
"""
"""`sitecustomize` of Spark's Python processes. The next process of a streaming source starts slower than Spark waits if
the file `slow_once` is beside it. The daemons that Spark forks for each plan of a source import its modules once, as
`moldau.pipeline.worker_daemon` does for what runs tasks; in the long tier each plan imports them, as a user's does."""
WORKERS = (
    "create_data_source",
    "lookup_data_sources",
    "plan_data_source_read",
    "data_source_pushdown_filters",
    "write_into_data_source",
    "commit_data_source_write",
)


@pytest.fixture(scope="session")
def slow_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("customized")
    (folder / "sitecustomize.py").write_text(CUSTOMIZED.replace("WORKERS", repr(WORKERS)))
    with pytest.MonkeyPatch.context() as patch:
        if tiers.LONG:
            patch.setenv("MOLDAU_NOT_PRELOADED", "1")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))))
        yield folder / "slow_once"


def pytest_itemcollected(item: pytest.Item) -> None:
    """A hook for the conftest of a folder with Spark in it."""
    if item.get_closest_marker("own_jvm") or "spark" in getattr(item, "fixturenames", ()):
        item.add_marker("spark")
        item.add_marker(pytest.mark.together("spark"))


@pytest.fixture(scope="session", autouse=True)
def quick_jvms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`QUICK_JVM` for every Spark of these tests, also that of a command, as a user would set them: in a file."""
    folder = tmp_path_factory.mktemp("spark-conf")
    temporary = f"-Djava.io.tmpdir={tempfile.gettempdir()}"  # by itself Java knows no TMPDIR
    (folder / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {' '.join(QUICK_JVM)} {temporary}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield


@pytest.fixture(scope="session")
def spark(slow_once: Path, quick_jvms: None) -> Iterator["SparkSession"]:
    from moldau.pipeline.session import ctrl_c_stays, start_session

    with tempfile.TemporaryDirectory(
        prefix="spark-", dir="/tmp"
    ) as short:  # sockets do not take every path of pytest's
        with ctrl_c_stays():
            session = start_session("tests", "local[2]", Path(short))
        yield session
        session.stop()


@contextlib.contextmanager
def setting_of(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Another value of a setting of the session, in this block. Afterwards the setting has the value it had: `unset`
    would give it Spark's default, not that of the session's start."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def run_example(code: str, names: dict[str, Any]) -> None:
    """Run an example of a page; again if the Python process of a streaming source started too slowly for Spark."""
    from moldau.pipeline.streams.running import STARTED_TOO_SLOWLY, STARTS_MAX

    for start in range(1, STARTS_MAX + 1):
        try:
            exec(code, names)
        except Exception as error:
            if start == STARTS_MAX or STARTED_TOO_SLOWLY not in str(error):
                raise
        else:
            return


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real broker in a process of its own."""
    from moldau.demo.broker_process import running_broker

    folder = tmp_path_factory.mktemp("broker")
    with running_broker(folder / "data", folder / "broker.pid", folder / "broker.log") as address:
        yield address


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def new_topic(bootstrap: str, numbers: Iterator[int]) -> Callable[..., str]:
    """Creates a topic with a name of its own that keeps records of any age."""
    from moldau.client.administration.admin import Admin

    def create(partitions: int = 1, name: str = "events") -> str:
        topic = f"{name}-{next(numbers)}"
        with Admin(bootstrap) as admin:
            configs = {"retention.ms": "-1", "segment.ms": str(100 * 365 * DAY_MS)}
            admin.create_topic(topic, partitions=partitions, replication_factor=1, configs=configs)
        return topic

    return create


@pytest.fixture(scope="session")
def produce(bootstrap: str) -> Callable[..., None]:
    """Sends (key, value, timestamp) records to one partition, and waits for the broker."""
    from moldau.client.producing.producer import Producer

    def send(topic: str, records: Sequence[Record], partition: int = 0, **settings: Any) -> None:
        with Producer(bootstrap, **settings) as producer:
            sent = [
                producer.send(topic, value, key, partition=partition, timestamp_ms=at) for key, value, at in records
            ]
            producer.flush()
        for delivery in sent:
            delivery.result()

    return send


@pytest.fixture
def half_open(bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]) -> Iterator[tuple[str, Any]]:
    """A topic with v0 to v4, v10 to v12 of an aborted transaction, v5 to v9, and v20 of an open transaction, and the
    producer of the open transaction."""
    from harness.patience import wait_until
    from moldau.client.fetching import LATEST, list_offsets
    from moldau.names import TopicPartition
    from tests import raw_transactions

    topic = new_topic()
    tp = TopicPartition(topic, 0)

    def end(isolation_level: str) -> int:
        return list_offsets(bootstrap, {tp: LATEST}, isolation_level=isolation_level)[tp]

    produce(topic, [(None, b"v%d" % n, 1_000 + n) for n in range(5)])
    aborted, still_open = (raw_transactions.Producer(bootstrap, f"{topic}-{which}") for which in ("aborted", "open"))
    aborted.write_values(topic, [b"v10", b"v11", b"v12"])
    produce(topic, [(None, b"v%d" % n, 1_000 + n) for n in range(5, 10)])
    aborted.end(commits=False)
    assert wait_until(lambda: end("read_committed") == end("read_uncommitted") == 14)
    still_open.write_values(topic, [b"v20"])
    yield topic, still_open
    aborted.close()
    still_open.close()


@pytest.fixture(scope="session")
def moldau_command() -> list[str]:
    return [sys.executable, "-m", "moldau"]
