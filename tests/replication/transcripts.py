"""Replicas of one partition, as readable transcripts: their logs are real, the network between them is a call.

Each line is `event -> outcome`. A log is written as `value/epoch` for each record, from its start on. Events:

    A leads 1 isr A B        the cluster shows leader A in epoch 1, with this ISR, to all brokers that are up
    A writes m1 m2           a producer sends these, each in a batch, to A with acks=1
    B fetches                one Fetch of B from the leader, and all that follows from its answer
    B catches up             as many as it takes until nothing changes; the outcome lists the answers
    B stops, B starts        it is away; what it was told before is all it knows when it is back
    B loses 1                it is away and comes back without its last record, as after a loss of power; its high
                             watermark is the one that it had written down, 0
    A forgets 3              DeleteRecords: the log starts at offset 3
    B has                    its log and its high watermark
"""

import uuid
from pathlib import Path

from harness.logs import NOW_MS, append, config, open_log
from moldau.log import truncation
from moldau.names import BrokerId, LeaderEpoch, Offset, TopicPartition
from moldau.records.batch import Row, batches
from moldau.records.rows import iterate
from moldau.replication.catching_up import Act, LeaderAnswer, apply_answer, position_of, take_answer
from moldau.replication.for_followers import Asker, FollowerRead, read_for
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replication.replica import Replica
from moldau.runtime import Runtime

TP = TopicPartition("t", 0)


class Room:
    """`in_sync_min`: `min.insync.replicas`."""

    def __init__(self, folder: Path, names: str = "AB", in_sync_min: int = 1):
        self.ids = {name: BrokerId(number) for number, name in enumerate(names, 1)}
        self.names = {broker: name for name, broker in self.ids.items()}
        settings = config(min_insync_replicas=in_sync_min)
        self.replicas = {
            name: Replica(
                TP, uuid.UUID(int=1), open_log(folder / name), settings, Leadership(broker), Offset(0), Runtime()
            )
            for name, broker in self.ids.items()
        }
        self.away: set[str] = set()
        self.roles = PartitionRoles(BrokerId(-1), LeaderEpoch(-1), (), tuple(self.ids.values()))

    def play(self, script: str) -> str:
        """The script with the outcomes that came of it."""
        lines = []
        for line in script.strip().splitlines():
            event = line.split(" -> ")[0].strip()
            lines.append(f"{event} -> {self._do(*event.split())}" if event else "")
        return "\n".join(lines)

    def _do(self, name: str, verb: str, *rest: str) -> str:
        replica = self.replicas[name]
        match verb:
            case "leads":
                isr = tuple(self.ids[one] for one in rest[2:])
                epochs = LeaderEpoch(int(rest[0])), self.roles.partition_epoch + 1
                self.roles = self.roles._replace(
                    leader=self.ids[name], leader_epoch=epochs[0], isr=isr, partition_epoch=epochs[1]
                )
                for one in self.replicas.keys() - self.away:
                    self.replicas[one].take_roles(self.roles, 0)
                return "ok"
            case "writes":
                for value in rest:
                    records = [Row(None, value.encode(), NOW_MS)]
                    append(replica.log, records, leader_epoch=replica.leadership.leader_epoch)
                replica._reached(replica.log.log_end_offset)
                return self._has(replica)
            case "fetches":
                return self._fetch(replica)
            case "catches":
                said = []
                while (one := self._fetch(replica)) not in said:
                    said.append(one)
                return "; ".join(said)
            case "stops":
                self.away.add(name)
                return "ok"
            case "starts":
                self.away.discard(name)
                replica.take_roles(self.roles, 0)
                return self._has(replica)
            case "loses":
                truncation.truncate_to(replica.log, replica.log.log_end_offset - int(rest[0]), 0, NOW_MS)
                replica.high_watermark = Offset(0)
                self.away.discard(name)
                replica.take_roles(self.roles, 0)
                return self._has(replica)
            case "forgets":
                replica.log.delete_records_before(int(rest[0]))
                return self._has(replica)
            case _:
                return self._has(replica)

    def _has(self, replica: Replica) -> str:
        log = replica.log
        shown = []
        for position, header in batches(data := log.read_batches(log.log_start_offset, 1 << 20)):
            for row in iterate(data[position : position + header.size]):
                shown.append(f"{bytes(row.value or b'').decode()}/{header.partition_leader_epoch}")
        start = f"from {log.log_start_offset}: " if log.log_start_offset else ""
        return start + ", ".join([*([" ".join(shown)] if shown else []), f"hw {replica.high_watermark}"])

    def _fetch(self, replica: Replica) -> str:
        """One exchange with the leader, as far as both can know."""
        leadership = replica.leadership
        leader = self.replicas[self.names[leadership.leader]]
        asked = position_of(replica)
        read = read_for(leader, Asker(leadership.local, 1, True, True), asked, 1 << 20, True, 0)
        rest = take_answer(replica, leadership.leader, asked, _answer(read), NOW_MS)
        if rest.act is Act.TRUNCATE:
            truncation.truncate_to(replica.log, rest.offset, replica.high_watermark, NOW_MS)
            replica.truncated()
        elif rest.act is Act.BEGIN_ANEW:
            truncation.begin_at(replica.log, rest.offset, NOW_MS)
            replica.truncated()
            if rest.answer is not None:
                apply_answer(replica, rest.answer, NOW_MS)
        if rest.error is not None:
            return rest.error.code.name
        if read.diverging is not None:
            return f"diverges {read.diverging.epoch}@{read.diverging.end_offset}, is cut: {self._has(replica)}"
        return f"{'begins anew: ' if rest.act is Act.BEGIN_ANEW else ''}{self._has(replica)}"


def _answer(read: FollowerRead) -> LeaderAnswer:
    piece = read.records
    records = b"" if piece is None else piece.file.read(piece.length, piece.offset)
    return LeaderAnswer(read.error, read.high_watermark, read.log_start_offset, read.diverging, records)
