"""`moldau cluster log-dirs`: the log folders of brokers, and replicas that move between those of one broker."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from moldau.cli.cluster.moving.folder_moves import begin_folder_moves
from moldau.cli.cluster.moving.shown_plan import size_text
from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, pairs, reachable
from moldau.cli.output import note, print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.cluster import LogDir
from moldau.errors import ConfigError
from moldau.log.folders.folder_names import partition_of
from moldau.names import TopicPartition, counted

HEADERS = ["BROKER", "PATH", "ERROR", "REPLICAS", "BYTES", "MOVING HERE", "LEFT", "DISK", "FREE"]


def log_dirs(
    brokers: Annotated[list[int] | None, Argument("[BROKER...]", help="Brokers; all by default.")] = None,
    move: Annotated[
        list[str] | None,
        Option(
            "--move",
            metavar="TOPIC-N=PATH",
            help="Move that partition's replica on the broker to this log folder of it; repeatable.",
        ),
    ] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Show the log folders of brokers: how many replicas and bytes they hold, what moves to them, and the space on their
    disks.

    --move begins to move replicas between the log folders of one broker, while they are used; LEFT is how many offsets
    the copies lack. Naming the folder that a replica is in cancels its move. The setting
    replica.alter.log.dirs.io.max.bytes.per.second of the broker limits the rate.

    Examples:

      moldau cluster log-dirs

      moldau cluster log-dirs 1 2 --json

      moldau cluster log-dirs 1 --move events-0=/disks/b/moldau
    """
    wanted = {_partition(name): path for name, path in pairs(move or [], "--move").items()}
    if wanted and len(brokers or ()) != 1:
        raise UsageError("--move needs one broker")
    refused = False
    with Admin(reachable(bootstrap_server)) as admin:
        if wanted and brokers:
            refused = _begun(admin, brokers[0], wanted)
        found = admin.describe_log_dirs(brokers or None)
    if wanted and brokers and not refused:
        _tell_moves(brokers[0], wanted, found[brokers[0]])
    shown: list[dict[str, Any]] = [
        {
            "broker": broker,
            "path": one.path,
            "error": None if one.error is None else str(one.error),
            "replicas": sum(not replica.is_future for replica in one.replicas.values()),
            "bytes": sum(replica.size_bytes for replica in one.replicas.values()),
            "moving_here": sum(replica.is_future for replica in one.replicas.values()),
            "offsets_left": sum(replica.offset_lag for replica in one.replicas.values() if replica.is_future),
            "disk_bytes": one.total_bytes,
            "free_bytes": one.usable_bytes,
        }
        for broker, folders in sorted(found.items())
        for one in folders
    ]
    if as_json:
        print_json(shown)
        return int(refused)
    table = [[size_text(value) if "bytes" in name and value else value for name, value in row.items()] for row in shown]
    print_table(HEADERS, table)
    return int(refused)


def _begun(admin: Admin, broker: int, wanted: Mapping[TopicPartition, str]) -> bool:
    """Whether any of these moves was refused."""
    topics = admin.list_topics(internal=True)
    for tp in wanted:
        if tp.topic not in topics or tp.partition not in topics[tp.topic].partitions:
            raise ConfigError(f"the cluster does not have {tp}")
    return begin_folder_moves(admin, {(broker, tp): path for tp, path in wanted.items()})


def _tell_moves(broker: int, wanted: Mapping[TopicPartition, str], folders: Sequence[LogDir]) -> None:
    held = {tp for one in folders for tp in one.replicas}
    if moving := held & wanted.keys():
        note(f"{counted(len(moving), 'replica')} will be in the log folder that you named")
    for tp in wanted.keys() - held:
        note(f"{tp} has no replica on broker {broker}: if it gets one, that will be in {wanted[tp]}")


def _partition(name: str) -> TopicPartition:
    if (tp := partition_of(name)) is None:
        raise UsageError(f"--move {name!r} is not TOPIC-N=PATH")
    return tp
