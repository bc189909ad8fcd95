"""Asks Spark's own Kafka connector all questions against a broker of ours, and compares the answers with what is
recorded.

usage: python -m tests.pipeline.beside [--write] [--broker HOST:PORT] [--only WORDS]

`--write` records the answers. Needs mvn, java and PyPI the first time; takes some minutes.
"""

import argparse
import contextlib
import datetime
import glob
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from moldau.demo.broker_process import running_broker
from moldau.pipeline.session import python_path
from tests.environments import jars, python_with
from tests.pipeline.beside.playing import Answer

VERSION = "4.2.0"
"""The newest release of the connector, and the Spark that it is for."""
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"
PINS = (f"pyspark=={VERSION}", "pyarrow==20.0.0", "crc32c==2.9.post0", "cramjam==2.14.0", "google-re2==1.1.20251105")
OF_SPARK = ("spark-", "scala-", "hadoop-", "slf4j-", "log4j-", "snappy-java-", "lz4-", "zstd-jni-", "jackson-")
"""Jars that the connector needs and that Spark has."""
RECORDED = Path(__file__).with_name("recordings") / "connector.json"
COMMAND = "python -m tests.pipeline.beside --write"
SECONDS_MAX = 900


def ask(bootstrap: str, words: str = "") -> dict[str, Answer]:
    """The connector's answers to the questions that have these words."""
    wanted = [
        jar for jar in sorted(glob.glob(jars(CONNECTOR)))
        if Path(jar).suffix == ".jar" and (not Path(jar).name.startswith(OF_SPARK) or "kafka" in Path(jar).name)
    ]  # fmt: skip
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [python_with(*PINS), "-m", "tests.pipeline.beside.connector", bootstrap, ",".join(wanted), words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([python_path(), root]), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX, cwd=root,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.returncode)
    answers: dict[str, Answer] = json.loads(done.stdout.splitlines()[-1])
    return answers


def write(answers: dict[str, Answer]) -> None:
    header: dict[str, Any] = {
        "connector": CONNECTOR, "recorded": datetime.date.today().isoformat(), "command": COMMAND
    }  # fmt: skip
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in {**header, **answers}.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def recorded() -> dict[str, Answer]:
    known: dict[str, Answer] = json.loads(RECORDED.read_text())
    return {name: answer for name, answer in known.items() if name not in ("connector", "recorded", "command")}


def main() -> int:
    parser = argparse.ArgumentParser(description="ask Spark's Kafka connector what is recorded of it")
    parser.add_argument("--write", action="store_true", help="record the answers")
    parser.add_argument("--broker", help="another broker than one of ours, such as Apache Kafka")
    parser.add_argument("--only", default="", help="words of the questions to ask")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = running_broker(folder / "data", folder / "pid", folder / "log")
        answers = ask(asked.broker or stack.enter_context(broker), asked.only)
    if asked.write:
        write({**(recorded() if asked.only else {}), **answers})
        return 0
    known = recorded()
    different = [name for name, answer in answers.items() if known.get(name) != answer]
    for name in different:
        print(f"{name}?\n  recorded {known.get(name)}\n  now      {answers[name]}")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
