"""What an operator does to three brokers with Kafka's tools, in order; the same for Kafka's brokers and for ours.

Each step is one call of a tool. What it prints is compared without what is drawn anew each time: ports, paths, sizes,
ids, and the order of lines that come out of a hash map.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.patience import Deadline
from moldau import Producer
from tests.clients.kafka_tools import ELECTION, LOG_DIRS, REASSIGN, TOPICS, Tools

CLUSTER = "org.apache.kafka.tools.ClusterTool"
FOLDERS = ("a", "b")
"""The log folders of each broker, below a folder of its own."""
BYTES, THROTTLE, MORE = 3_000_000, "1000", "2000"
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Brokers(Protocol):
    """The cluster that is operated. `root` is above the log folders of all brokers."""

    root: Path

    @property
    def address(self) -> str:
        """Of the brokers that are up."""

    def kill(self, broker: int) -> None: ...


class ToolStep(NamedTuple):
    """A call of a tool. `plan`: the document of the file that follows the options. `until`: call again until this is in
    what it prints. `places`: the log folder counts, which a broker chooses by itself else."""

    name: str
    tool: str
    options: tuple[str, ...]
    plan: object = None
    code: int = 0
    until: str = ""
    places: bool = False


class Kill(NamedTuple):
    broker: int


class Fill(NamedTuple):
    """Produce some megabytes."""

    topic: str


def plan(*rows: tuple[str, int, list[int]], folders: Sequence[str] = ()) -> dict[str, object]:
    partitions = [
        {"topic": topic, "partition": number, "replicas": replicas, **({"log_dirs": [*folders]} if folders else {})}
        for topic, number, replicas in rows
    ]
    return {"version": 1, "partitions": partitions}


def topics(name: str, *options: str, **more: int | str) -> ToolStep:
    return ToolStep(name, TOPICS, options, **more)  # type: ignore[arg-type]


def reassign(name: str, document: object, *options: str, code: int = 0, until: str = "") -> ToolStep:
    return ToolStep(name, REASSIGN, (*options, "--reassignment-json-file"), document, code, until)


def elect(name: str, *options: str, code: int = 0) -> ToolStep:
    return ToolStep(name, ELECTION, ("--election-type", *options), None, code)


def log_dirs(name: str, *options: str, code: int = 0, places: bool = False) -> ToolStep:
    return ToolStep(name, LOG_DIRS, ("--describe", *options), None, code, places=places)


def unregister(name: str, broker: int, code: int = 0) -> ToolStep:
    return ToolStep(name, CLUSTER, ("unregister", "--id", str(broker)), None, code)


SWAPPED = plan(("t", 0, [2, 3]), ("t", 1, [3, 1]))
FAR = plan(("big", 0, [2]))
FURTHER = plan(("wide", 0, [3]))


def script(root: Path) -> list[ToolStep | Kill | Fill]:
    """`root` as in `Brokers`."""
    here, there, nowhere = ([str(root / "1" / name)] for name in ("a", "b", "c"))
    moved, away, back = (plan(("in-folder", 0, [1]), folders=one) for one in (there, nowhere, here))
    return [
        topics("make a topic", "--create", "--topic", "t", "--replica-assignment", "1:2,2:3"),
        topics("make a large one", "--create", "--topic", "big", "--replica-assignment", "1"),
        topics("make another large one", "--create", "--topic", "wide", "--replica-assignment", "1"),
        topics("make one for folders", "--create", "--topic", "in-folder", "--replica-assignment", "1"),
        topics("describe it", "--describe", "--topic", "t"),
        ToolStep(
            "generate a plan",
            REASSIGN,
            ("--generate", "--broker-list", "1,2,3", "--topics-to-move-json-file"),
            {"version": 1, "topics": [{"topic": "t"}]},
        ),
        reassign("move it with a throttle", SWAPPED, "--execute", "--throttle", "5000000"),
        reassign("verify that", SWAPPED, "--verify", until="Clearing topic-level throttles"),
        topics("describe it where it is now", "--describe", "--topic", "t"),
        reassign("move it to a broker that is not there", plan(("t", 0, [9])), "--execute", code=1),
        reassign("move a topic that is not there", plan(("none", 0, [1])), "--execute", code=1),
        reassign("cancel what has ended", SWAPPED, "--cancel"),
        Fill("big"),
        Fill("wide"),
        reassign("move much with a small throttle", FAR, "--execute", "--throttle", THROTTLE),
        ToolStep("list what moves", REASSIGN, ("--list",)),
        reassign("verify what is in progress", FAR, "--verify"),
        reassign("move more meanwhile", FURTHER, "--execute", "--throttle", MORE, code=1),
        reassign("move more in addition", FURTHER, "--execute", "--additional", "--throttle", MORE),
        reassign("cancel one of them", FAR, "--cancel", "--preserve-throttles"),
        reassign("cancel the other", FURTHER, "--cancel"),
        ToolStep("list that nothing moves", REASSIGN, ("--list",), None, 0, "No partition reassignments found"),
        reassign("verify what was cancelled", FAR, "--verify"),
        elect("elect the preferred leader", "preferred", "--topic", "t", "--partition", "0"),
        elect("elect it again", "preferred", "--topic", "t", "--partition", "0"),
        elect("elect for a topic that is not there", "preferred", "--topic", "none", "--partition", "0", code=1),
        elect("elect uncleanly where there is a leader", "unclean", "--topic", "t", "--partition", "0"),
        log_dirs("describe log folders", "--broker-list", "1,2", "--topic-list", "in-folder"),
        log_dirs("describe log folders of a broker that is not there", "--broker-list", "1,9", code=1),
        reassign("move to a folder", moved, "--execute"),
        reassign("verify that it is there", moved, "--verify", until="completed successfully"),
        reassign("move to another folder", back, "--execute"),
        reassign("verify that it is in that one", back, "--verify", until="completed successfully"),
        log_dirs("describe where it is now", "--broker-list", "1", "--topic-list", "in-folder", places=True),
        reassign("move to a folder that is not there", away, "--execute", code=1),
        reassign("verify a folder that is not there", away, "--verify"),
        unregister("unregister a broker that was never there", 99, code=1),
        Kill(3),
        topics(
            "describe what has too few replicas", "--describe", "--under-replicated-partitions", until="Partition: 1"
        ),
        elect("elect a preferred leader that is dead", "preferred", "--topic", "t", "--partition", "1", code=1),
        topics("describe what is unavailable", "--describe", "--unavailable-partitions"),
        unregister("unregister the dead broker", 3),
        unregister("unregister it again", 3, code=1),
    ]


def play(brokers: Brokers, tools: Tools, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The name of each step, and the lines that its tool printed, comparable."""
    given = folder / "plan.json"
    for step in script(brokers.root):
        if isinstance(step, Kill):
            brokers.kill(step.broker)
        elif isinstance(step, Fill):
            fill(brokers.address, step.topic)
        else:
            options = ["--bootstrap-server", brokers.address, *step.options]
            if step.tool == CLUSTER:
                options = [step.options[0], "--bootstrap-server", brokers.address, *step.options[1:]]
            if step.plan is not None:
                given.write_text(json.dumps(step.plan))
                options.append(str(given))
            yield step.name, comparable(_called(tools, step, options), brokers.root, step.places)


def _called(tools: Tools, step: ToolStep, options: Sequence[str]) -> str:
    deadline = Deadline()
    while True:
        said = tools.run(step.tool, *options, code=step.code)
        if step.until in said or deadline.passed:
            return said
        time.sleep(0.2)


def fill(address: str, topic: str) -> None:
    with Producer(address) as producer:
        for _ in range(BYTES // 10_000):
            producer.send(topic, b"x" * 10_000, partition=0)


DRAWN: tuple[tuple[str, str], ...] = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r'"(size|totalBytes|usableBytes)":-?\d+', r'"\1":0'),
    (r"\t?(Elr|LastKnownElr): (N/A)?(?=\t|$)", r"\t\1: "),
)
OF_STACK = re.compile(r"\s+at |\s*\.\.\. \d+ more|\[20")


def comparable(said: str, root: Path, places: bool = False) -> list[str]:
    """The lines of a tool, with names for what is drawn. Traces of Java's stack say where its code is, and go."""
    text = said.replace(str(root), "ROOT")
    for pattern, name in DRAWN if places else (*DRAWN, (r"(ROOT/\d)/[ab]", r"\1/FOLDER")):
        text = re.sub(pattern, name, text)
    text = re.sub(r"(?<=\tIsr: )[\d,]+", lambda isr: ",".join(sorted(isr[0].split(","))), text)
    lines = (line.rstrip() for line in text.splitlines() if line.strip() and not OF_STACK.match(line))
    return [_sorted(line) for line in lines]


def _sorted(line: str) -> str:
    """JSON with its lists of topics, partitions and folders in one order, and no brokers of a plan that was drawn."""
    if not line.startswith("{"):
        return line
    try:
        document = json.loads(line)
    except ValueError:
        return line
    for one in document.get("partitions", ()):
        if set(one.get("log_dirs", ())) == {"any"}:
            one["replicas"] = len(one["replicas"])
    return json.dumps(_ordered(document), sort_keys=True)


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {name: _ordered(one) for name, one in value.items()}
    if isinstance(value, list):
        ordered = [_ordered(one) for one in value]
        return sorted(ordered, key=json.dumps) if all(isinstance(one, dict) for one in ordered) else ordered
    return value
