"""`moldau cluster reassign`, `drain-broker`, `replace-broker`, `add-broker`, `balance`."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from moldau.cli.cluster.moving.balancing import balanced, relieved, spread_to
from moldau.cli.cluster.moving.carrying_out import GONE, Course, MovingPace, carried_out
from moldau.cli.cluster.moving.cluster_layout import ClusterLayout, MovePlan, changed
from moldau.cli.cluster.moving.folder_moves import begin_folder_moves, cancel_folder_moves
from moldau.cli.cluster.moving.looking import read_layout
from moldau.cli.cluster.moving.plan_file import read_plan, wanted_folders, write_plan
from moldau.cli.cluster.moving.replacing import drained, replaced
from moldau.cli.cluster.moving.shown_plan import HEADERS, rows, sentence, summary
from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.errors import ConfigError
from moldau.names import TopicPartition, counted

Throttle = Annotated[
    int | None,
    Option(
        "--throttle", metavar="RATE", min=1, help="The most bytes a second that each broker copies; none by default."
    ),
]
AtATime = Annotated[int, Option("--at-a-time", min=1, help="How many partitions are moved at a time.")]
MaxBytes = Annotated[int | None, Option("--max-bytes", min=0, help="The most bytes to copy.")]
AT_A_TIME = 20
ROUNDS_MAX = 5
"""How often replicas of topics that were created meanwhile are moved."""


class HowToMove(NamedTuple):
    """The options of commands that make a plan."""

    dry_run: Annotated[bool, Option(help="Show the plan and write it; move nothing.")] = False
    plan: Annotated[Path, Option(metavar="FILE", help="Where the plan is kept.")] = Path("plan.json")
    at_a_time: AtATime = AT_A_TIME
    throttle: Throttle = None

    @property
    def pace(self) -> MovingPace:
        return MovingPace(self.at_a_time, self.throttle)


AS_USUAL = HowToMove()


def reassign(
    plan: Annotated[Path, Argument("PLAN", help="A file with a plan.")],
    cancel: Annotated[bool, Option("--cancel", help="Cancel what is under way of the plan.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what the plan does; move nothing.")] = False,
    at_a_time: AtATime = AT_A_TIME,
    throttle: Throttle = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Move partitions as a plan says, or go on with a plan that was left half done. A plan is a file that another command
    of `moldau cluster` has written, or one for Kafka's `kafka-reassign-partitions`, whose "log_dirs" are followed too:
    `moldau cluster log-dirs` shows how far those moves are.

    Partitions of topics that were deleted meanwhile are left out, and named.

    `--throttle` limits what is copied; followers that are in sync are never slowed. The cluster removes the limit by
    itself half a minute after the last move has ended. The exit code is 1 if a partition could not be moved.

    Examples:

      moldau cluster reassign plan.json --throttle 50000000

      moldau cluster reassign plan.json --cancel
    """
    if cancel and (dry_run or throttle is not None):
        raise UsageError(f"--cancel takes no {'--dry-run' if dry_run else '--throttle'}")
    wanted, folders = read_plan(plan), wanted_folders(plan)
    with Admin(reachable(bootstrap_server)) as admin:
        if cancel:
            cancel_folder_moves(admin, folders)
            return _cancel(admin, wanted, as_json)
        layout = read_layout(admin)
        gone = {tp: GONE for tp in wanted if tp not in layout.partitions}
        wanted = {tp: replicas for tp, replicas in wanted.items() if tp not in gone}
        _check(layout, wanted, gone)
        if dry_run:
            _show(summary(layout, changed(layout, wanted)), as_json)
            _tell_left(gone)
            return 0
        refused = begin_folder_moves(admin, {(one, tp): path for (one, tp), path in folders.items() if tp not in gone})
        course = _carried_out(admin, layout, wanted, plan, MovingPace(at_a_time, throttle))
        return _tell(len(course.done), gone | course.left, as_json) or int(refused)


def drain_broker(
    brokers: Annotated[list[int], Argument("BROKER...", help="Brokers to empty.")],
    how: HowToMove = AS_USUAL,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Move every replica away from brokers, so that they can be stopped for good. A broker may be down already: its
    partitions are copied from their other replicas. Replicas of topics that are created meanwhile are moved, too.

    Examples:

      moldau cluster drain-broker 3 --dry-run

      moldau cluster drain-broker 3
    """
    with Admin(reachable(bootstrap_server)) as admin:
        layout = read_layout(admin)
        for broker in brokers:
            _check_known(layout, broker)
        planned = partial(drained, brokers=brokers)
        outcome = _run(admin, layout, planned, how, as_json)
    if outcome == 0 and not how.dry_run:
        note(f"no replica is left on {_named(brokers)}: it can be stopped for good")
    return outcome


def replace_broker(
    old: Annotated[int, Argument("OLD", help="The broker to empty.")],
    new: Annotated[int, Argument("NEW", help="The running broker that gets its replicas.")],
    how: HowToMove = AS_USUAL,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Move every replica of one broker to another one, which may have none yet. The old broker may be down already.

    Examples:

      moldau cluster replace-broker 3 4
    """
    if old == new:
        raise UsageError("OLD and NEW are the same broker")
    with Admin(reachable(bootstrap_server)) as admin:
        layout = read_layout(admin)
        _check_known(layout, old)
        _check_running(layout, new)
        planned = partial(replaced, old=old, new=new)
        return _run(admin, layout, planned, how, as_json)


def add_broker(
    brokers: Annotated[list[int], Argument("BROKER...", help="Running brokers that get their share.")],
    max_bytes: MaxBytes = None,
    how: HowToMove = AS_USUAL,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Give new brokers their share of the replicas and leaders. Start them first: a broker joins a cluster by being
    started, and holds nothing then. Replicas move to the new brokers only.

    Examples:

      moldau cluster add-broker 4
    """
    with Admin(reachable(bootstrap_server)) as admin:
        layout = read_layout(admin)
        for broker in brokers:
            _check_running(layout, broker)
        wanted = spread_to(layout, brokers, max_bytes)
        return _run(admin, layout, lambda _: wanted, how, as_json, once=True)


def balance(
    max_bytes: MaxBytes = None,
    only_full: Annotated[
        str | None,
        Option("--only-full", metavar="PERCENT", help="Only relieve brokers whose disks are used to more than this."),
    ] = None,
    how: HowToMove = AS_USUAL,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Even out the bytes and leaders of the brokers, and copy as few bytes as that takes.

    Examples:

      moldau cluster balance --dry-run

      moldau cluster balance --max-bytes 50000000000

      moldau cluster balance --only-full 80%
    """
    full = None if only_full is None else _share(only_full)
    with Admin(reachable(bootstrap_server)) as admin:
        layout = read_layout(admin)
        wanted = balanced(layout, max_bytes) if full is None else relieved(layout, full, max_bytes)
        return _run(admin, layout, lambda _: wanted, how, as_json, once=True)


def _run(
    admin: Admin,
    layout: ClusterLayout,
    planned: Callable[[ClusterLayout], MovePlan],
    how: HowToMove,
    as_json: bool,
    *,
    once: bool = False,
) -> int:
    """Show the plan for this layout and keep it; carry it out unless it is only to be shown. Unless that is done
    `once`, it is planned and carried out again for what new topics have brought meanwhile."""
    wanted = planned(layout)
    shown = summary(layout, wanted)
    if how.dry_run or not as_json:
        _show(shown, as_json)
    if wanted:
        write_plan(how.plan, wanted)
    if how.dry_run:
        if wanted:
            note(f"the plan is in {how.plan}: `moldau cluster reassign {how.plan}` carries it out")
        return 0
    moved, left = 0, dict[TopicPartition, str]()
    for number in range(1 if once else ROUNDS_MAX):
        if not wanted:
            break
        if number:
            note(f"{counted(len(wanted), 'partition')} of new topics to move, too")
            write_plan(how.plan, wanted)
        course = _carried_out(admin, layout, wanted, how.plan, how.pace)
        moved += len(course.done)
        left = {tp: why for tp, why in course.left.items() if why != GONE}
        if left or once:
            break
        layout = read_layout(admin)
        wanted = planned(layout)
    else:
        left = dict.fromkeys(wanted, "new topics are created all the time: run the command again")
    return _tell(moved, left, as_json)


def _show(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(shown)
        return
    print(sentence(shown))
    if shown["plan"]:
        print_table(HEADERS, rows(shown))


def _carried_out(admin: Admin, layout: ClusterLayout, wanted: MovePlan, path: Path, pace: MovingPace) -> Course:
    try:
        return carried_out(admin, wanted, layout, pace, _progress)
    except KeyboardInterrupt:
        note(f"what has begun goes on in the cluster; `moldau cluster reassign {path}` goes on with the rest")
        raise


def _tell(moved: int, left: Mapping[TopicPartition, str], as_json: bool) -> int:
    if as_json:
        rows_left = [{"topic": tp.topic, "partition": tp.partition, "reason": why} for tp, why in left.items()]
        print_json({"moved": moved, "left": rows_left})
    _tell_left(left)
    return int(bool(left))


def _tell_left(left: Mapping[TopicPartition, str]) -> None:
    for tp, why in left.items():
        note(f"{tp} was not moved: {why}")


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _cancel(admin: Admin, wanted: MovePlan, as_json: bool) -> int:
    under_way = admin.list_reassignments(wanted)
    outcomes = admin.alter_reassignments(dict.fromkeys(under_way)) if under_way else {}
    failed: dict[TopicPartition, str] = {tp: str(error) for tp, error in outcomes.items() if error is not None}
    cancelled = len(outcomes) - len(failed)
    if as_json:
        left = [{"topic": tp.topic, "partition": tp.partition, "reason": why} for tp, why in failed.items()]
        print_json({"cancelled": cancelled, "left": left})
    else:
        print(f"cancelled the moves of {counted(cancelled, 'partition')}")
    for tp, why in failed.items():
        note(f"the move of {tp} was not cancelled: {why}")
    return int(bool(failed))


def _check(layout: ClusterLayout, wanted: MovePlan, gone: Mapping[TopicPartition, str]) -> None:
    if gone and not wanted:
        raise ConfigError(f"the cluster has none of the partitions that the plan moves, such as {next(iter(gone))}")
    for tp, replicas in wanted.items():
        for broker in replicas:
            if broker not in layout.partitions[tp].replicas:
                _check_running(layout, broker)


def _check_running(layout: ClusterLayout, broker: int) -> None:
    if broker not in layout.brokers:
        running = ", ".join(map(str, layout.brokers))
        raise ConfigError(f"broker {broker} is not running: {running} {'is' if len(layout.brokers) == 1 else 'are'}")


def _check_known(layout: ClusterLayout, broker: int) -> None:
    if broker not in layout.replicas_by_broker():
        _check_running(layout, broker)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0.01 <= share < 1:  # 0.8 is meant as 80%
        raise UsageError(f"--only-full {text!r} is not a percentage between 0 and 100, such as 80%")
    return share


def _named(brokers: list[int]) -> str:
    return f"broker {brokers[0]}" if len(brokers) == 1 else f"brokers {', '.join(map(str, brokers))}"
