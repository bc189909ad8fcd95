"""The dashboards and alerts that people have ask for what a broker serves: by their names, with their labels.

`dashboards.json` has what each of them asks for: names of metrics with the labels of selectors and groupings, taken
from the published files. `names.txt` is the stored scrape: every name of ours with its type and labels.
"""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from harness.patience import within
from moldau.metrics.families import OPEN_METRICS
from moldau.metrics.own_names import VALUES
from tests.handlers.living import living
from tests.metrics.scraping import ScrapedSample, get, samples, value
from tests.metrics.traffic import GROUP, READ, RECORDS, TOPIC, some_traffic

HERE = Path(__file__).parent
OF_OTHERS = ("jvm_", "container_", "kubelet_", "up")
"""Metrics of the JVM, of Kubernetes, and of Prometheus itself."""
TARGET_LABELS = frozenset(
    {"namespace", "strimzi_io_cluster", "strimzi_io_name", "kubernetes_pod_name", "pod", "container", "instance", "job"}
)
"""Labels that Prometheus gives to all that it scrapes from a target (docs/metrics.md says how)."""
NAMES = HERE / "names.txt"


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A scrape of a broker under a little traffic."""

    async def scenario() -> str:
        async with living(tmp_path_factory.mktemp("data"), metrics_port=0, metrics_host="127.0.0.1") as alive:
            await some_traffic(alive)
            assert alive.broker.metrics is not None
            return (await get(alive.broker.metrics.port)).text

    return asyncio.run(within(scenario()))


def dashboards() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((HERE / "dashboards.json").read_text())
    return found


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda one: one["dashboard"])
def test_every_expression_of_a_dashboard_finds_a_series_with_its_labels(
    dashboard: dict[str, Any], scraped: str
) -> None:
    found = samples(scraped)
    asked = [one for one in dashboard["asks"] if not one["metric"].startswith(OF_OTHERS)]
    assert len(asked) >= 3
    missing = [one for one in asked if not _is_answered(one["metric"], set(one["labels"]) - TARGET_LABELS, found)]
    assert not missing


def _is_answered(name: str, labels: set[str], found: list[ScrapedSample]) -> bool:
    return any(one.name == name and labels <= set(one.labels) for one in found)


def test_our_own_dashboard_asks_for_what_there_is(scraped: str) -> None:
    found = samples(scraped)
    shown = json.loads((Path(__file__).parents[2] / "docs" / "grafana" / "moldau.json").read_text())
    asked = [target["expr"] for panel in shown["panels"] for target in panel.get("targets", ())]
    asked += [one["definition"] for one in shown["templating"]["list"] if "definition" in one]
    assert len(asked) > 25
    of_workers = (Path(__file__).parents[2] / "docs" / "mirror.md").read_text()
    named = r"\b((?:kafka|moldau|process)_[a-z_]+)(?:\{([^}]*)\})?"
    for expression in asked:
        metrics = re.findall(named, expression)
        assert metrics, expression
        by = {one.strip() for some in re.findall(r"by \(([^)]*)\)", expression) for one in some.split(",")}
        for name, selector in metrics:
            labels = by | set(re.findall(r"(\w+)(?:=~|!=|=)", selector))
            if name.startswith("moldau_mirror_"):  # the workers of mirrors tell these
                assert re.search(rf"`{name}(\{{topic, partition\}})?`", of_workers), name
            elif name.startswith("moldau_client_metrics_"):  # told from the first client on that asks which to push
                assert name.removesuffix("_total") in {row.name for row in VALUES}, name
            else:
                assert _is_answered(name, labels - TARGET_LABELS, found), (name, labels)


def test_the_dashboards_show_the_traffic_that_there_was(scraped: str) -> None:
    found = samples(scraped)
    of_topic = "kafka_server_brokertopicmetrics_"
    assert value(found, f"{of_topic}messagesin_total", topic=TOPIC) == RECORDS
    assert value(found, f"{of_topic}bytesin_total", topic=TOPIC) == value(
        found, "kafka_log_log_size", topic=TOPIC, partition=0
    )
    assert value(found, f"{of_topic}bytesout_total", topic=TOPIC) >= READ
    assert value(found, f"{of_topic}failedproducerequests_total", topic=TOPIC) == 0
    total = value(found, f"{of_topic}messagesin_total")
    assert total == sum(one.value for one in found if one.name == f"{of_topic}messagesin_total" and one.labels)
    assert value(found, "kafka_topic_partition_current_offset", topic=TOPIC, partition=0) == RECORDS
    assert value(found, "kafka_topic_partition_current_offset", topic=TOPIC, partition=1) == 0
    group = {"consumergroup": GROUP, "topic": TOPIC}
    assert value(found, "kafka_consumergroup_current_offset", **group, partition=0) == READ
    assert value(found, "kafka_consumergroup_lag", **group, partition=0) == RECORDS - READ
    assert value(found, "kafka_consumergroup_lag_sum", **group) == RECORDS - READ
    assert value(found, "kafka_consumergroup_members", consumergroup=GROUP) == 0
    assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(found, "kafka_brokers") == 1
    assert value(found, "moldau_transactional_ids", state="CompleteCommit") == 1


def test_all_names_with_their_types_and_labels_are_those_that_are_stored(scraped: str) -> None:
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", scraped, re.MULTILINE))
    labels: dict[str, set[str]] = {}
    for one in samples(scraped):
        family = one.name if one.name in kinds else re.sub("_(bucket|count|sum)$", "", one.name)
        labels.setdefault(family, set()).update(one.labels)
    assert set(labels) == set(kinds), "a family has no sample, or a sample no family"
    lines = [f"{name} {kind} {','.join(sorted(labels[name])) or '-'}" for name, kind in sorted(kinds.items())]
    if os.environ.get("WRITE"):  # WRITE=1 pytest tests/metrics/test_dashboards.py
        NAMES.write_text("\n".join(lines) + "\n")
    stored = NAMES.read_text().splitlines()
    # The operating system tells less in some containers.
    assert [line for line in stored if "disk_" not in line] == [line for line in lines if "disk_" not in line]
    assert OPEN_METRICS.startswith("application/openmetrics-text")
