"""Where a load goes on with a table from which another tool removed rows: it does not, unless the user said how.

The recorded offsets stay in a table that was set back to an earlier version, in Delta's application transactions as in
Iceberg's properties. So each plan compares them with what happened to the table since the last load.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from moldau.names import TopicPartition
from moldau.pipeline.positions import Offsets
from moldau.pipeline.tables.committing import LoadedTable, commit, epochs_of
from moldau.pipeline.tables.removals import Removed, RowsRemoved

RemovedRows = Literal["refuse", "accept", "reload"]
"""What a load does about them: it ends with a sentence, goes on from its recorded offsets, or takes those of the rows
that are left."""
OFFSET_MAX: Final = 2**63 - 1


class Standing(NamedTuple):
    """Where a load of a table goes on: the offsets that the table has, those to go on from, and the removal or lack of
    offsets that the user has accepted, which `settle` notes in the table; `sentence` says so."""

    recorded: Offsets
    offsets: Offsets
    removed: Removed | None = None
    sentence: str = ""

    @property
    def epochs_hold(self) -> list[TopicPartition]:
        """The partitions whose offset, and so the leader epoch beside it, is the recorded one."""
        return [tp for tp, at in self.offsets.items() if self.recorded.get(tp) == at]


def standing(table: LoadedTable, topic: str, partitions: Sequence[TopicPartition], how: RemovedRows) -> Standing:
    """Where to go on with the table of a topic. Raises RowsRemoved."""
    recorded = table.offsets(partitions)
    if not recorded:
        return _without_offsets(table, partitions, how)
    removed = table.removed(topic, recorded)
    if removed is None:
        return Standing(recorded, recorded)
    if how == "refuse" and removed.back:
        raise RowsRemoved(
            f"{table.name} has rows again that loads had replaced or deleted: {removed}; load what followed again with "
            "--offsets-from-table, or keep them with --accept-removed."
        )
    if how == "refuse":
        raise RowsRemoved(
            f"{table.name} has lost rows of earlier loads: {removed}; load them again with --offsets-from-table, or "
            "go on without them with --accept-removed."
        )
    if how == "accept":
        them = "with" if removed.back else "without"
        return Standing(recorded, recorded, removed, f"{table.name}: {removed}; the load goes on {them} them.")
    offsets, again, kept_out = dict(recorded), [], False
    for tp, at in recorded.items():
        lost = None if table.key_columns else removed.lost  # a tombstone that was undone has left no row
        if lost is None or tp.partition in lost:
            least = 0 if lost is None else lost[tp.partition].least
            last = table.last_offset(tp.partition, least, at)
            offsets[tp] = least if last is None else last + 1
            kept_out |= last is not None and not removed.back
        if offsets[tp] < at:
            again.append(f"; partition {tp.partition} is loaded again from offset {offsets[tp]}")
    left = "; removed rows before rows that are still there stay removed" if kept_out else ""
    return Standing(recorded, offsets, removed, f"{table.name}: {removed}{''.join(again)}{left}.")


def standing_of_rejected(
    table: LoadedTable, topic: str, partitions: Sequence[TopicPartition], how: RemovedRows
) -> Standing:
    """As `standing`, for the table of rejected records: what is missing there is loaded again only with the others.
    Raises RowsRemoved."""
    recorded = table.offsets(partitions)
    removed = table.removed(topic, recorded) if recorded else None
    if removed is None:
        return Standing(recorded, recorded)
    if how == "refuse":
        raise RowsRemoved(
            f"{table.name} has lost rejected records of earlier loads: {removed}; go on without them with "
            "--accept-removed."
        )
    left = "the load goes on without them" if how == "accept" else "those below the offsets of the load stay removed"
    return Standing(recorded, recorded, removed, f"{table.name}: {removed}; {left}.")


def _without_offsets(table: LoadedTable, partitions: Sequence[TopicPartition], how: RemovedRows) -> Standing:
    """A table that no load of this topic has committed to, or whose offsets another tool has removed."""
    if how == "accept" or not table.count():
        return Standing({}, {})
    last = {tp: table.last_offset(tp.partition, 0, OFFSET_MAX) for tp in partitions}
    offsets = {tp: at + 1 for tp, at in last.items() if at is not None}
    if offsets and how == "refuse":
        raise RowsRemoved(
            f"{table.name} has rows of this topic's partitions, but no offsets of loads: go on behind these rows with "
            "--offsets-from-table, or load the topic from its beginning beside them with --accept-removed."
        )
    return Standing({}, offsets, None, f"{table.name}: offsets are those of its rows." if offsets else "")


def settle(table: LoadedTable, standing: Standing, load_id: str) -> None:
    """Note in the table that the user has accepted what `standing` says, in a commit without files; the offsets are
    those to go on from afterwards. Raises Conflict."""
    if standing.sentence:
        epochs = epochs_of(table, standing.epochs_hold)
        commit(table, load_id, [], standing.recorded, standing.offsets, epochs=epochs, accepted=standing.removed)
