"""The tables of one topic during a load: the one with its records, and the one with those that were rejected.

Both are held open between the commits of a continuous load, since opening a table costs more than a commit.

Rejected records are committed first. A load that dies between the two commits leaves the topic's offsets where they
were, while the table of rejected records is ahead; the next load leaves out exactly the records that it finds there
(`_quarantined`), and so none is lost and none is in both tables, even if it decodes differently.
"""

import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from moldau.names import TopicPartition
from moldau.pipeline.loading.decoding import ValueDecoder
from moldau.pipeline.loading.merging import Staged, upsert
from moldau.pipeline.loading.removed_rows import Standing, settle, standing, standing_of_rejected
from moldau.pipeline.loading.requeueing import Tables, finish
from moldau.pipeline.loading.settings import Commit, Settings
from moldau.pipeline.loading.target import Quarantined, Target
from moldau.pipeline.loading.tasks import PortionResult
from moldau.pipeline.positions import DataLost, Offsets
from moldau.pipeline.tables.columns import KEY, REJECTED, TableError, check_decoded, in_files, of_table
from moldau.pipeline.tables.committing import LeaderEpochs, LoadedTable, LoadedWarehouse, commit, epochs_of, short_id
from moldau.pipeline.tables.data_file import DataFile
from moldau.pipeline.tables.newest import check_key_columns
from moldau.pipeline.tables.own_partitions import check_own
from moldau.pipeline.tables.requeued import unfinished
from moldau.pipeline.tables.storage import Location


class TopicTables:
    """The tables of one topic, as they were when `refresh` ran last."""

    def __init__(self, topic: str, warehouse: LoadedWarehouse, settings: Settings):
        self.topic = topic
        self._warehouse = warehouse
        self._settings = settings
        self.table: LoadedTable | None = None
        self._rejected: LoadedTable | None = None
        self._looked_for_rejected = False
        self._columns = in_files()
        self._key_columns: tuple[str, ...] = ()
        self._partitions: Sequence[TopicPartition] = ()
        self._topic_id: uuid.UUID | None = None
        self.loaded: dict[TopicPartition, int] = {}
        self.epochs: dict[TopicPartition, int] = {}
        self._standing: list[tuple[LoadedTable, Standing]] = []

    def refresh(self, partitions: Sequence[TopicPartition], topic_id: uuid.UUID | None) -> None:
        """See what was committed since. Raises `DataLost` if the rows are from an earlier topic of this name, and
        `RowsRemoved` unless the user has accepted that."""
        if self.table is None:
            self.table = self._warehouse.table(self.topic)
        else:
            self.table.refresh()
        self._partitions = partitions
        self._topic_id = topic_id
        if self.table is not None and self._is_of_another_topic(self.table):
            raise DataLost(
                f"The warehouse has records of an earlier topic {self.topic}: the topic was deleted and created again, "
                "so load it into another warehouse."
            )
        self._check_kind()
        self._see_rejected(again=not self._looked_for_rejected)
        self._stand()

    def _is_of_another_topic(self, table: LoadedTable) -> bool:
        known = table.topic_id(self.topic)
        return known is not None and self._topic_id is not None and known != short_id(self._topic_id)

    def _check_kind(self) -> None:
        """Raise TableError if the table has all records and should have one row per key, or the reverse."""
        if self.table is None or bool(self.table.key_columns) == self._settings.upsert:
            return
        if self._settings.upsert:
            raise TableError(
                f"{self.table.name} has every record, because it was begun without --upsert: leave --upsert out, or "
                "load into another warehouse."
            )
        raise TableError(
            f"{self.table.name} has one row per key, because it was begun with --upsert: load it with --upsert, or "
            "into another warehouse."
        )

    def _check_keys(self, decoder: ValueDecoder | None) -> None:
        """Raise TableError unless the keys of this load can be compared with those of the table."""
        self._key_columns = tuple(decoder.keys.names) if decoder and decoder.keys else (KEY,)
        check_key_columns(self._columns, self._key_columns)
        if self.table is not None and self.table.key_columns != self._key_columns:
            raise TableError(
                f"The key of {self.table.name} is {', '.join(self.table.key_columns)} and would now be "
                f"{', '.join(self._key_columns)}: decode keys as before, or load into another warehouse."
            )

    def _stand(self) -> None:
        """Compare the offsets of both tables with what happened to them since the last load."""
        how = self._settings.removed_rows
        self.loaded, self.epochs, self._standing = {}, {}, []
        if self.table is None:
            return
        status = standing(self.table, self.topic, self._partitions, how)
        self.loaded = dict(status.offsets)
        self.epochs = epochs_of(self.table, status.epochs_hold)
        self._standing.append((self.table, status))
        if self._rejected is not None:
            status = standing_of_rejected(self._rejected, self.topic, self._partitions, how)
            self._standing.append((self._rejected, status))

    def _see_rejected(self, again: bool) -> None:
        """See what was committed to the table of rejected records; look for one that was not there only if `again`.
        Raises `DataLost` if it is of an earlier topic: records of the new one at its offsets would be left out."""
        if self._rejected is not None:
            self._rejected.refresh()
        elif again:
            self._rejected = self._warehouse.rejected(self.topic)
            self._looked_for_rejected = True
        if self._rejected is not None and self._is_of_another_topic(self._rejected):
            raise DataLost(
                f"{self._rejected.name} has rejected records of an earlier topic {self.topic}: the topic was deleted "
                "and created again, so move that table away too, or load into another warehouse."
            )

    @property
    def notes(self) -> list[str]:
        """A sentence for each removal of rows that the user has accepted."""
        return [status.sentence for _, status in self._standing if status.sentence]

    def settle(self, new_id: Callable[[], str]) -> None:
        """Note in the tables what the user has accepted. Raises Conflict."""
        for table, status in self._standing:
            settle(table, status, new_id())
        self._standing = []

    def check(self, decoder: ValueDecoder | None) -> None:
        """Raise `TableError` if the table cannot take what this decoder makes of values."""
        if decoder:
            check_decoded(decoder.schema, decoder.keys)
        self._columns = in_files(decoder.schema, decoder.keys) if decoder else in_files()
        wanted = self._settings.partition_by if self.table is None else self.table.partition_by
        table = self.topic if self.table is None else self.table.name
        check_own(self._columns, wanted, table, exists=self.table is not None)
        if self._settings.upsert:
            self._check_keys(decoder)
        if self.table:
            self.table.lacking(self._columns)

    def target(self, bootstrap: str, load_id: str, decoder: ValueDecoder | None) -> Target:
        """What the tasks need to know; creates the table of a new topic."""
        wanted = self._settings.partition_by
        if self.table is None:
            columns = of_table(self._columns, wanted)
            self.table = self._warehouse.create(self.topic, columns, wanted, self._key_columns)
            self._check_kind()
            self.check(decoder)  # another load may have made it, in another way
        self._see_rejected(again=True)
        self._finish_requeue(load_id)
        return Target(
            self.topic, bootstrap, self._settings.isolation_level, load_id, self._settings.compression,
            self.table.where, self._place_of_rejected(decoder), self.table.partition_by, decoder, self._quarantined(),
            self._topic_id, self.table.table_format, self._settings.rejected_max, self._key_columns,
            self._settings.fail_on_data_loss,
        )  # fmt: skip

    def _finish_requeue(self, load_id: str) -> None:
        """End a requeue that died after it had committed to the topic's table."""
        assert self.table is not None
        if self._rejected is not None and unfinished(self.table, self._rejected, self.topic):
            numbers = itertools.count()
            tables = Tables(self.topic, self.table, self._rejected, self.loaded, self._settings.compression)
            finish(tables, lambda: f"{load_id}-{next(numbers)}")

    def _place_of_rejected(self, decoder: ValueDecoder | None) -> Location:
        """Where tasks write rejected records; a load that decodes nothing and compares no keys rejects nothing."""
        assert self.table is not None
        if self._rejected is not None:
            return self._rejected.where
        rejects = decoder is not None or self._settings.upsert
        return self._warehouse.place_of_rejected(self.topic) if rejects else self.table.where

    def commit(
        self, load_id: str, outcomes: Sequence[PortionResult], end: Offsets, epochs: LeaderEpochs | None = None
    ) -> Commit:
        """Commit the rejected records first, then the others together with the topic's offsets and id, and the leader
        epochs of the records before the offsets."""
        assert self.table is not None
        files = [file for outcome in outcomes for file in outcome.files]
        rejected = [file for outcome in outcomes for file in outcome.rejected]
        ids = {} if self._topic_id is None else {self.topic: short_id(self._topic_id)}
        if rejected:
            self._commit_rejected(load_id, rejected, end, ids)
        self.table.add_columns(self._columns)
        count = sum(file.records for file in rejected)
        if self._settings.upsert:
            staged = Staged(files, [file for outcome in outcomes for file in outcome.tombstones])
            done = upsert(self.table, load_id, staged, self.loaded, end, ids, self._settings.compression, epochs)
            self.loaded |= end
            return replace(done, rejected=count)
        version = commit(self.table, load_id, files, self.loaded, end, ids, epochs)
        self.loaded |= end
        size = sum(file.bytes for file in files)
        return Commit(self.topic, version, len(files), sum(file.records for file in files), size, count)

    def _commit_rejected(self, load_id: str, files: Sequence[DataFile], end: Offsets, ids: Mapping[str, int]) -> None:
        if self._rejected is None:
            self._rejected = self._warehouse.create_rejected(self.topic)
            ahead: dict[TopicPartition, int] = {}
        else:
            ahead = self._rejected.offsets(list(end))
            self._rejected.add_columns(of_table(REJECTED, "none"))  # one of an earlier version has no rule and field
        commit(self._rejected, load_id, files, ahead, {tp: max(at, ahead.get(tp, 0)) for tp, at in end.items()}, ids)

    def _quarantined(self) -> Quarantined:
        """The rejected records that a load has committed without the topic's offsets: it died in between."""
        if self._rejected is None:
            return {}
        ahead = {
            tp: (self.loaded.get(tp, 0), at)
            for tp, at in self._rejected.offsets(self._partitions).items()
            if at > self.loaded.get(tp, 0)
        }
        return {
            tp.partition: frozenset(self._rejected.offsets_in(tp.partition, start, end))
            for tp, (start, end) in ahead.items()
        }
