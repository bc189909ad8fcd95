"""Moves of replicas between the log folders of their brokers: begun, and cancelled."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from moldau.cli.output import note
from moldau.client.administration.admin import Admin
from moldau.client.administration.cluster import LogDir
from moldau.errors import ErrorCode
from moldau.names import TopicPartition, counted

FolderMoves: TypeAlias = Mapping[tuple[int, TopicPartition], str]
"""(broker, partition) -> the path of a log folder."""


def begin_folder_moves(admin: Admin, moves: FolderMoves) -> bool:
    """Ask the brokers; replicas that are still to come will be made there. Returns whether any was refused, which is
    said."""
    refused = False
    for (broker, tp), error in (admin.alter_replica_log_dirs(moves) if moves else {}).items():
        if error is not None and error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            why = f"{error}; broker {broker} logs why" if error.code is ErrorCode.KAFKA_STORAGE_ERROR else error
            note(f"{tp} on broker {broker} does not move to {moves[broker, tp]}: {why}")
            refused = True
    return refused


def cancel_folder_moves(admin: Admin, moves: FolderMoves) -> None:
    """End those of these moves that are under way."""
    if not moves:
        return
    found = admin.describe_log_dirs({broker for broker, _ in moves}, topics={tp.topic for _, tp in moves})
    back = {
        (broker, tp): now
        for (broker, tp), path in moves.items()
        if (now := _source_of(tp, path, found[broker])) is not None
    }
    if back:
        admin.alter_replica_log_dirs(back)
        note(f"cancelled the moves of {counted(len(back), 'replica')} between log folders")


def _source_of(tp: TopicPartition, path: str, folders: Sequence[LogDir]) -> str | None:
    """Where a replica is that moves to this path; None if it does not."""
    is_moving = any(one.path == path and tp in one.replicas and one.replicas[tp].is_future for one in folders)
    now = (one.path for one in folders if tp in one.replicas and not one.replicas[tp].is_future)
    return next(now, None) if is_moving else None
