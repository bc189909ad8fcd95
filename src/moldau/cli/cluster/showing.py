"""`moldau cluster status`: shows how a cluster is: once, when all is well, or at each change."""

import contextlib
import json
import time
from typing import Annotated, Any, NoReturn

from moldau.cli.cluster.status import MIN_IN_SYNC, is_well, print_status, sick_topics, status_of
from moldau.cli.command_line import Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, time_text
from moldau.client.administration.admin import Admin, EligibleLeaders
from moldau.errors import KafkaError
from moldau.names import INTERNAL_TOPICS, TopicPartition, counted

PAUSE_S = 1.0
HINT_MS = 2000
"""How long a broker is asked for its settings, which only hints need: it may have died just now."""
ATTEMPT_MS = 30_000


def status(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    watch: Annotated[bool, Option("--watch", help="Print it again whenever it changes, until Ctrl-C.")] = False,
    wait: Annotated[
        int | None,
        Option(
            metavar="SECONDS", min=0, help="Wait up to this time until all brokers are up and all replicas in sync."
        ),
    ] = None,
    brokers: Annotated[
        int | None,
        Option(min=1, help="With --wait: how many brokers must be up. Without it, all that the cluster knows."),
    ] = None,
    as_json: Json = False,
) -> int:
    """
    Show the brokers that are up, which of them is the controller (*), how many partitions each leads and has a replica
    of, and the partitions that have no leader or are under-replicated. MIN IN SYNC is min.insync.replicas, with ! if
    fewer are in sync: writes with acks=all are refused. ELIGIBLE are replicas that may lead without being in sync.

    With `--wait`, it is shown when all brokers are up, and every partition has a leader and all its replicas in sync;
    the exit code is 1 if that takes longer. The cluster knows a broker from its first start until `moldau cluster
    unregister`; give `--brokers` while new ones start. With `--watch --json`, each state is one line.

    Examples:

      moldau cluster status

      moldau cluster status --wait 300

      moldau cluster status --wait 60 --brokers 3

      moldau cluster status --watch -b localhost:9092,localhost:9093
    """
    if watch and wait is not None:
        raise UsageError("--watch goes on until Ctrl-C, and --wait ends: give one of them")
    if brokers is not None and wait is None:
        raise UsageError("--brokers says what --wait waits for: give both")
    with Admin(bootstrap_server, default_api_timeout_ms=HINT_MS) as brief:
        if wait is not None:  # brokers that are being restarted may not listen yet
            found = _awaited(bootstrap_server, brief, wait, brokers)
            print_status(found, as_json)
            if brokers is not None and (up := len(found["brokers"])) < brokers:
                note(f"{up} of {counted(brokers, 'broker')} {'is' if up == 1 else 'are'} up")
            return 0 if is_well(found, brokers) else 1
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


def _awaited(bootstrap_server: str, brief: Admin, wait_s: int, brokers: int | None) -> dict[str, Any]:
    """The state when all is well and that many brokers are up (None: all that are known), or after that time. Raises
    `KafkaError` if no broker answers then."""
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
                if is_well(found, brokers) or time.monotonic() >= end_s:
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
