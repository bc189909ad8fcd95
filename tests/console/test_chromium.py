"""The console in a real, headless Chromium: the story of `walk.py`, with no error in the browser's log.

`MOLDAU_SCREENSHOTS=docs/console` writes the pictures of the page about the console anew.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.patience import stretched
from harness.tiers import sized
from moldau import Admin, Producer
from moldau.console.settings import ConsoleSettings
from moldau.testing import Broker
from tests.console.conftest import served
from tests.environments import program, python_with
from tests.versions import PLAYWRIGHT

RECORDS = sized(10_000, 20_000, 1_000_000)
WANTED = RECORDS // 3
PARTITIONS = 4


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics_port=0, metrics_host="127.0.0.1") as made:
        yield made


@pytest.mark.check
def test_a_person_finds_changes_and_watches_by_the_keyboard(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    folder = Path(os.environ.get("MOLDAU_SCREENSHOTS") or tmp_path)
    python, chromium = python_with(PLAYWRIGHT), program("chromium-headless-shell", "chromium-headless-shell")
    for url in served(ConsoleSettings(broker.client_settings(), "localhost", 0, metrics=(broker.metrics_url,))):
        command = [python, Path(__file__).with_name("walk.py"), url, chromium, f"trace: t-{WANTED}", folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as walking:
            assert walking.stdin is not None and walking.stdout is not None
            steps: dict[str, Any] = {}
            for line in walking.stdout:
                step = json.loads(line)
                steps[step.pop("step")] = step
                if "lag" in steps and "fell" not in steps:
                    commit(broker, lag=0)
                    walking.stdin.write("\n")
                    walking.stdin.flush()
            assert walking.wait(stretched(60)) == 0, steps
    assert "partition" in steps["produce"]["text"]
    assert steps["search"]["rows"] == 1 and f"of {RECORDS:,}" in steps["search"]["progress"], steps["search"]
    assert f"t-{WANTED}" in steps["record"]["text"]
    kept = steps["kept"]
    assert kept["rows"] == 1 and kept["left"] == 1 and "Asia/Tokyo" in kept["zone"], kept
    assert datetime.fromisoformat(kept["local"]) - datetime.fromisoformat(kept["utc"]) == timedelta(hours=9)
    assert "at=2026-11-28T00%3A00%3A00.000Z" in steps["zone"]["saved"], "nine in Tokyo"
    assert steps["zone"]["utc"] == "1970-01-01 00:00:00.000"
    away = steps["away"]
    assert "no broker answers" in away["told"] and not away["nothing"], away
    assert "The console does not answer" in away["stale"], away
    assert set(steps["lag"]["lags"]) == {10} and set(steps["fell"]["lags"]) == {0}
    assert sum(steps["reset"]["lags"]) == RECORDS
    dark = steps["dark"]
    assert dark["before"] != dark["after"] == dark["kept"]
    assert steps["narrow"]["wide"] == {}, "pages that are wider than a telephone"
    assert steps["end"]["problems"] == []


def fill(broker: Broker) -> None:
    broker.create_topic("many", PARTITIONS)
    with Producer(broker.address, linger_ms=20) as producer:
        for number in range(RECORDS):
            value = f'{{"order": {number}, "river": "Vltava", "amount": {number % 97}.5}}'
            headers = [("trace", b"t-%d" % number), ("source", b"web")]
            producer.send("many", value, b"customer-%d" % (number % 500), headers=headers)
    commit(broker, lag=10)


def commit(broker: Broker, *, lag: int) -> None:
    with Admin(broker.address) as admin:
        ends = {tp: end for tp, (_, end) in admin.watermarks("many").items()}
        admin.alter_group_offsets("readers", {tp: end - lag for tp, end in ends.items()})
