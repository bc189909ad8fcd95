"""`moldau cluster`: run a cluster of brokers on this machine, and show how a cluster is."""

import asyncio
import contextlib
import json
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

from moldau.cli.cluster.adopt import adopt
from moldau.cli.cluster.api_versions import api_versions, features
from moldau.cli.cluster.elect_leaders import elect_leaders
from moldau.cli.cluster.moving import commands as moving
from moldau.cli.cluster.moving.log_dirs import log_dirs
from moldau.cli.cluster.status import MIN_IN_SYNC, is_well, print_status, sick_topics, status_of
from moldau.cli.cluster.unregister import unregister
from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, pairs, reachable
from moldau.cli.output import note, time_text
from moldau.cli.until_signal import until_signal
from moldau.client.administration.admin import Admin, EligibleLeaders
from moldau.config import broker_config, read_properties
from moldau.errors import KafkaError
from moldau.names import INTERNAL_TOPICS, TopicPartition
from moldau.notices import log_to_stderr
from moldau.zookeeper.ensemble import Ensemble
from moldau.zookeeper.java import find_java
from moldau.zookeeper.local_cluster import ZOOKEEPER_FOLDER, LocalCluster

PAUSE_S = 1.0
OF_ONE_BROKER = {"broker.id", "node.id", "zookeeper.connect", "log.dir", "log.dirs"}
HINT_MS = 2000
"""How long a broker is asked for its settings, which only hints need: it may have died just now."""
ATTEMPT_MS = 30_000
BROKERS_MAX = 9

app = Group("cluster")
app.command()(adopt)
app.command("elect-leaders")(elect_leaders)
app.command()(moving.reassign)
app.command("drain-broker")(moving.drain_broker)
app.command("replace-broker")(moving.replace_broker)
app.command("add-broker")(moving.add_broker)
app.command()(moving.balance)
app.command("log-dirs")(log_dirs)
app.command()(unregister)
app.command("api-versions")(api_versions)
app.command()(features)


@app.command()
def start(
    file: Annotated[
        Path | None, Argument("[FILE.properties]", help="Settings of all brokers, as for server start.")
    ] = None,
    brokers: Annotated[int, Option(min=1, max=BROKERS_MAX, help="The number of brokers.")] = 3,
    host: Annotated[str, Option(help="The host that clients connect to.")] = "localhost",
    port: Annotated[
        int, Option(min=0, max=65_535 - BROKERS_MAX, help="The port of the first broker; 0 takes free ones.")
    ] = 9092,
    data_dir: Annotated[Path, Option(metavar="DIR", help="The folder of all data.")] = Path("moldau-cluster"),
    settings: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="A setting of all brokers; repeatable.")
    ] = None,
    embedded: Annotated[bool, Option("--embedded", help="Use a file in DIR instead of ZooKeeper.")] = False,
) -> int:
    """
    Run a cluster on this machine until it is told to stop: ZooKeeper and several brokers, each a process of its own. It
    needs Java, the jars that come with PySpark, and the extra `cluster`; with --embedded, none of them.

    When all brokers serve it prints `listening on HOST:PORT,HOST:PORT,...`. A process that ends is started again; the
    logs are in DIR. SIGTERM and Ctrl-C stop them all.

    Examples:

      moldau cluster start

      moldau cluster start --embedded

      moldau cluster start server.properties

      moldau cluster start --brokers 5 --data-dir /var/lib/moldau --set num.partitions=5
    """
    log_to_stderr()
    given, of_file = pairs(settings or [], "--set"), {} if file is None else read_properties(str(file))
    for name in sorted((given.keys() | of_file.keys()) & OF_ONE_BROKER):
        where = f"--set {name}" if name in given else f"{name} in {file}"
        raise UsageError(f"{where} belongs to one broker: this command chooses a value for each of its brokers")
    broker_config({**of_file, **given, "broker.id": "1"})  # refuses what no broker takes, before anything is started
    zookeeper = None if embedded else Ensemble(find_java(), data_dir / ZOOKEEPER_FOLDER, "localhost", 0, 1)
    return asyncio.run(until_signal(LocalCluster(zookeeper, data_dir, host, port, brokers, settings or (), file)))


@app.command()
def status(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    watch: Annotated[bool, Option("--watch", help="Print it again whenever it changes, until Ctrl-C.")] = False,
    wait: Annotated[
        int | None, Option("--wait", metavar="SECONDS", min=0, help="Wait up to this time until all is well.")
    ] = None,
    as_json: Json = False,
) -> int:
    """
    Show the brokers that are up, which of them is the controller (*), how many partitions each leads and has a replica
    of, and the partitions that have no leader or are under-replicated. MIN IN SYNC is min.insync.replicas, with ! if
    fewer are in sync: writes with acks=all are refused. ELIGIBLE are replicas that may lead without being in sync.

    With `--wait`, it is shown when every partition has a leader and all its replicas in sync; the exit code is 1 if
    that takes longer. With `--watch --json`, each state is one line.

    Examples:

      moldau cluster status

      moldau cluster status --wait 300

      moldau cluster status --watch -b localhost:9092,localhost:9093
    """
    if watch and wait is not None:
        raise UsageError("--watch goes on until Ctrl-C, and --wait ends: give one of them")
    with Admin(bootstrap_server, default_api_timeout_ms=HINT_MS) as brief:
        if wait is not None:  # brokers that are being restarted may not listen yet
            found = _awaited(bootstrap_server, brief, wait)
            print_status(found, as_json)
            return 0 if is_well(found) else 1
        with Admin(reachable(bootstrap_server)) as admin:
            if watch:
                _watch(admin, brief, as_json)
            print_status(_look(admin, brief), as_json)
    return 0


def _watch(admin: Admin, brief: Admin, as_json: bool) -> NoReturn:
    before: dict[str, Any] | None = None
    while True:
        now = _look_again(admin, brief)
        if now is not None and now != before:
            _print_change(now, as_json, is_first=before is None)
            before = now
        time.sleep(PAUSE_S)


def _awaited(bootstrap_server: str, brief: Admin, wait_s: int) -> dict[str, Any]:
    """The state when all is well, or after that time. Raises `KafkaError` if no broker answers then."""
    end_s = time.monotonic() + wait_s
    attempt_ms = min(max(wait_s * 1000, HINT_MS), ATTEMPT_MS)
    with Admin(bootstrap_server, default_api_timeout_ms=attempt_ms) as admin:
        while True:
            try:
                found = _look(admin, brief)
            except KafkaError:
                if time.monotonic() >= end_s:
                    raise
            else:
                if is_well(found) or time.monotonic() >= end_s:
                    return found
            time.sleep(PAUSE_S)


def _look(admin: Admin, brief: Admin) -> dict[str, Any]:
    cluster, topics = admin.describe_cluster(include_fenced=True), admin.list_topics(internal=True)
    settings: dict[str, str | None] = {}
    if len(cluster.brokers) > 1 and INTERNAL_TOPICS & topics.keys():
        with contextlib.suppress(KafkaError):  # that broker may have died just now
            entries = brief.configs.describe("broker", str(min(cluster.brokers)))
            settings = {entry.name: entry.value for entry in entries}
    return status_of(cluster, topics, settings, *_about_sick(brief, [*sick_topics(topics)]))


def _about_sick(brief: Admin, names: list[str]) -> tuple[dict[str, int], dict[TopicPartition, EligibleLeaders]]:
    """The `min.insync.replicas` of these topics, and who may lead their partitions; without what is not answered."""
    min_in_sync: dict[str, int] = {}
    eligible: dict[TopicPartition, EligibleLeaders] = {}
    with contextlib.suppress(KafkaError):  # some may be deleted by now, or not be for this user
        eligible = brief.describe_eligible_leaders(names)
    for name in names:
        with contextlib.suppress(KafkaError):
            entries = brief.topic_configs(name)
            min_in_sync[name] = next(int(one.value or 1) for one in entries if one.name == MIN_IN_SYNC)
    return min_in_sync, eligible


def _look_again(admin: Admin, brief: Admin) -> dict[str, Any] | None:
    """None while no broker answers, with a line for people."""
    try:
        return _look(admin, brief)
    except KafkaError as failure:
        note(f"no broker answers: {failure}")
        return None


def _print_change(status: dict[str, Any], as_json: bool, *, is_first: bool) -> None:
    now_ms = int(time.time() * 1000)
    if as_json:
        print(json.dumps({"time_ms": now_ms, **status}, ensure_ascii=False), flush=True)
        return
    print(f"{'' if is_first else chr(10)}{time_text(now_ms)}")
    print_status(status, as_json=False)
