"""Plays the cases to Spark's own Kafka connector, and prints its answers as JSON. Runs in an environment that has the
PySpark of the connector.

usage: python -m tests.pipeline.beside.connector BOOTSTRAP CLASS_PATH [WORDS OF A QUESTION]
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tests.pipeline.beside.playing import Player
from tests.pipeline.beside.questions import CASES

POLL_MS = "10000"
"""How long a task of the connector waits for records that are gone; 120 s by default."""


def main() -> None:
    bootstrap, class_path, *words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        builder = SparkSession.builder.master("local[2]").config("spark.jars", class_path)
        for name, value in (
            ("spark.ui.enabled", "false"), ("spark.sql.session.timeZone", "UTC"),
            ("spark.sql.shuffle.partitions", "2"), ("spark.local.dir", folder),
            ("spark.sql.warehouse.dir", f"{folder}/warehouse"), ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.driver.host", "127.0.0.1"),
        ):  # fmt: skip
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        player = Player(spark, "kafka", bootstrap, Path(folder), kafkaConsumer__pollTimeoutMs=POLL_MS)
        answers = {name: player.play(name, case) for name, case in CASES.items() if " ".join(words) in name}
        spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
