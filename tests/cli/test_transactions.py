"""`moldau transactions`: what is open is listed and described, what hangs is found and aborted, what lives is left."""

from collections.abc import Callable, Iterator

import pytest

from harness.brokers import Broker
from tests.cli.conftest import Moldau
from tests.raw_transactions import Producer

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that lets old clients begin transactions nobody knows of, as Kafka did before 3.6."""
    settings = {
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": "2",
        "num.partitions": "2",
    }
    ours = Broker(tmp_path_factory.mktemp("broker"), settings)
    ours.start()
    yield ours
    ours.stop()


Begin = Callable[..., Producer]


@pytest.fixture
def begin(broker: Broker) -> Iterator[Begin]:
    begun: list[Producer] = []

    def start(transactional_id: str | None = None) -> Producer:
        begun.append(Producer(broker.address, transactional_id))
        return begun[-1]

    yield start
    for one in begun:
        one.close()


@pytest.fixture
def filled(moldau: Moldau, fresh: Callable[[], str]) -> str:
    name = fresh()
    moldau("topics", "create", name, "--partitions", "2")
    return name


@pytest.mark.re2
def test_transactions_are_listed_by_state_producer_duration_and_name(
    moldau: Moldau, begin: Begin, filled: str, fresh: Callable[[], str]
):
    name = fresh()
    idle, busy = begin(f"{name}-idle"), begin(f"{name}-busy")
    busy.write(filled)

    def names(*options: str) -> list[str]:
        found = moldau("transactions", "list", "--json", "--transactional-id-pattern", f"{name}.*", *options).json
        return [one["transactional_id"].removeprefix(f"{name}-") for one in found]

    assert names() == ["busy", "idle"]
    assert names("--state", "Ongoing") == ["busy"]
    assert names("--state", "Empty", "--state", "Ongoing") == ["busy", "idle"]
    assert names("--producer-id", str(idle.producer_id)) == ["idle"]
    assert names("--duration-filter", "3000000", "--state", "Ongoing") == []
    table = moldau("transactions", "list", "--transactional-id-pattern", f"{name}-busy").lines
    assert table[0].split("  ")[0] == "TRANSACTIONAL ID"
    assert table[1].split() == [f"{name}-busy", "1", str(busy.producer_id), "Ongoing"]
    assert "invalid regular expression" in moldau("transactions", "list", "--transactional-id-pattern", "(").error
    assert "not a state of transactions: open" in moldau("transactions", "list", "--state", "open").error


def test_a_transaction_is_described_with_its_partitions(
    moldau: Moldau, begin: Begin, filled: str, fresh: Callable[[], str]
):
    name = fresh()
    idle, busy = begin(f"{name}-idle"), begin(f"{name}-busy")
    busy.write(filled, 1)
    empty, ongoing = moldau("transactions", "describe", f"{name}-idle", f"{name}-busy", "--json").json
    assert (empty["state"], empty["started"], empty["seconds"], empty["partitions"]) == ("Empty", None, None, [])
    assert empty["producer_id"] == idle.producer_id
    assert (ongoing["state"], ongoing["timeout_ms"], ongoing["producer_epoch"]) == ("Ongoing", 600_000, 0)
    assert ongoing["partitions"] == [{"topic": filled, "partition": 1}]
    assert ongoing["seconds"] >= 0 and ongoing["started"]
    assert moldau("transactions", "describe", f"{name}-busy").lines[1].split()[-1] == f"{filled}-1"
    assert "transactional id not found" in moldau("transactions", "describe", f"{name}-nobody").error


def test_producers_of_a_partition_are_described(moldau: Moldau, begin: Begin, filled: str, fresh: Callable[[], str]):
    busy = begin(fresh())
    busy.write(filled, 1)
    ask = ("transactions", "describe-producers", "--topic", filled, "--partition")
    [one] = moldau(*ask, "1", "--json").json
    assert (one["producer_id"], one["last_sequence"], one["start_offset"]) == (busy.producer_id, 0, 0)
    assert moldau(*ask, "0", "--json").json == []
    assert moldau(*ask, "1", "--broker-id", "1").lines[1].split()[0] == str(busy.producer_id)
    assert f"topic {filled} has no partition 7" in moldau(*ask, "7").error


def test_what_hangs_is_found_and_aborted_and_what_its_coordinator_knows_is_not(
    moldau: Moldau, begin: Begin, filled: str, fresh: Callable[[], str]
):
    known, hanging, young = begin(fresh()), begin(), begin()
    known.write(filled, 0, age_ms=2 * HOUR_MS)
    hanging.write(filled, 0, age_ms=2 * HOUR_MS, version=9)
    young.write(filled, 1, version=9)
    find = ("transactions", "find-hanging", "--json")
    for where in (["--topic", filled], ["--topic", filled, "--partition", "0"], ["--broker-id", "1"]):
        [one] = moldau(*find, *where).json
        assert (one["topic"], one["partition"], one["producer_id"]) == (filled, 0, hanging.producer_id)
        assert (one["start_offset"], one["coordinator_epoch"], one["minutes"]) == (1, -1, 120)
    assert moldau(*find, "--topic", filled, "--partition", "1").json == []
    assert moldau(*find, "--topic", filled, "--max-transaction-timeout", "130").json == []

    abort = ("transactions", "abort", "--topic", filled, "--partition", "0", "--start-offset")
    assert "started at offset 5" in moldau(*abort, "5").error
    assert f"producer {hanging.producer_id}" in moldau(*abort, "1").err
    assert moldau(*find, "--topic", filled).json == []
    assert "started at offset 1" in moldau(*abort, "1").error


def test_a_transaction_is_aborted_by_its_producer_and_epochs(moldau: Moldau, begin: Begin, filled: str):
    hanging = begin()
    hanging.write(filled, version=9)
    abort = ("transactions", "abort", "--topic", filled, "--partition", "0", "--producer-id", str(hanging.producer_id))
    assert moldau(*abort, "--producer-epoch", "2", "--coordinator-epoch", "4").code == 0
    late = moldau(*abort, "--producer-epoch", "1", "--coordinator-epoch", "4")
    assert "invalid producer epoch" in late.error
    fenced = moldau(*abort, "--producer-epoch", "2", "--coordinator-epoch", "3")
    assert "transaction coordinator fenced" in fenced.error


@pytest.mark.parametrize(
    "arguments",
    [
        ["find-hanging"],
        ["find-hanging", "--broker-id", "9"],
        ["find-hanging", "--broker-id", "1", "--partition", "0"],
        ["find-hanging", "--topic", "nothing-at-all"],
        ["find-hanging", "--topic", "{}", "--partition", "9"],
        ["abort", "--topic", "{}"],
        ["abort", "--topic", "{}", "--partition", "0"],
        ["abort", "--topic", "{}", "--partition", "9", "--start-offset", "0"],
        ["abort", "--topic", "{}", "--partition", "0", "--start-offset", "0", "--producer-id", "1"],
        ["abort", "--topic", "{}", "--partition", "0", "--start-offset", "0", "--producer-epoch", "1"],
        ["abort", "--topic", "{}", "--partition", "0", "--producer-id", "1"],
        ["abort", "--topic", "{}", "--partition", "0", "--producer-id", "1", "--producer-epoch", "70000"],
        ["list", "--duration-filter", "-1"],
        ["describe"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(arguments: list[str], moldau: Moldau, filled: str):
    assert moldau("transactions", *(one.format(filled) for one in arguments)).error
