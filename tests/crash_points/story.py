"""What a seed makes of everything that can be done to a log folder: a story, with deaths and restarts in it."""

import random
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from moldau.config import TopicConfig
from moldau.names import TopicPartition
from moldau.records.batch import Row
from moldau.simulation.faults import DiskFault, PowerLoss
from tests.crash_points.machine import HOUR_MS, Machine
from tests.crash_points.model import Replayed, Written

STEPS = 40
PARTITIONS = (TopicPartition("events", 0), TopicPartition("latest", 0))
PLAIN, TRANSACTIONAL = (7, 8), (17, 18)
"""Producers."""


def draw_config(tp: TopicPartition, seed: random.Random) -> TopicConfig:
    compacted = seed.choice((("compact",), ("compact",), ("compact", "delete")))
    return TopicConfig(
        cleanup_policy=compacted if tp.topic == "latest" else ("delete",),
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=seed.choice((0, HOUR_MS // 4)),
        retention_ms=-1,
        segment_bytes=seed.choice((1500, 3000, 6000)),
        index_interval_bytes=seed.choice((0, 300, 1500)),
        segment_index_bytes=seed.choice((60, 1000)),
        segment_ms=seed.choice((2 * HOUR_MS, 2**40)),
        message_timestamp_type=seed.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        file_delete_delay_ms=0,
    )


WEIGHTS: Final = {
    "append": 40, "burst": 10, "again": 4, "roll": 6, "flush": 6, "flush_closed": 4, "delete_records": 5, "retain": 6,
    "checkpoint": 6, "transaction": 6, "compact": 8, "remove_due": 3, "delete": 1, "restart": 3, "kill": 2,
    "lose_power": 3,
}  # fmt: skip


FOLLOWER_WEIGHTS: Final = {"follow": 30, "truncate": 16}
FOLLOWERS = 2
"""Every second story is one of a follower, too."""

Favours: TypeAlias = Mapping[str, float] | None
"""What a story does more or less often than the seed says."""


class Script:
    """One seed's story. `step` does the next thing that the seed says."""

    def __init__(self, seed: int, favours: Favours = None):
        self.seed = random.Random(f"script {seed}")
        self.machine = Machine(random.Random(f"machine {seed}"))
        drawn = {name: self.seed.choice((0.3, 1, 1, 4)) for name in WEIGHTS} | dict(favours or {})
        weights: dict[str, float] = {**WEIGHTS}
        if seed % FOLLOWERS == 0 or FOLLOWER_WEIGHTS.keys() & drawn.keys():
            weights |= FOLLOWER_WEIGHTS
        self.weights = {name: weight * drawn.get(name, 1) for name, weight in weights.items()}
        self.epochs: dict[TopicPartition, int] = {}
        self.sequences: dict[int, int] = {}

    def run(self, steps: int = STEPS) -> None:
        """All of it, to a clean end."""
        self._surviving(self.machine.start)
        for _ in range(steps):
            self._surviving(self.step)
        self.machine.faults.plan.clear()
        self.machine.stop()
        self.machine.start()

    def _surviving(self, act: Callable[[], None]) -> None:
        """Do something; if the power fails meanwhile, come back, however often that takes."""
        while True:
            try:
                act()
                return
            except PowerLoss:
                self.machine.lose_power()
                act = self.machine.start

    def step(self) -> None:
        machine, seed = self.machine, self.seed
        tp = seed.choice(PARTITIONS)
        if tp not in machine.model.partitions:
            machine.create(tp, draw_config(tp, seed))
            return
        act = seed.choices(list(self.weights), list(self.weights.values()))[0]
        getattr(self, f"_{act}")(tp)
        if seed.random() < 0.2:
            machine.clock.ms += seed.randrange(HOUR_MS)

    def _rows(self, keyed: bool) -> list[Row]:
        seed, now = self.seed, self.machine.clock.ms
        size = seed.choice((5, 5, 50, 300, 1200))
        return [
            Row(
                seed.choice((b"a" if keyed else None, b"a", b"b", b"c", b"d", b"e", b"%d" % seed.randrange(20))),
                seed.choice((None, seed.randbytes(size), seed.randbytes(size), b"z" * size)),
                now - seed.randrange(HOUR_MS),
                [("h", b"1")] if seed.random() < 0.2 else (),
            )
            for _ in range(seed.choice((1, 1, 2, 5)))
        ]

    def _append(self, tp: TopicPartition) -> None:
        seed, machine = self.seed, self.machine
        batch: dict[str, int] = {"codec": seed.choice((0, 0, 0, 1, 2, 3, 4))}
        if seed.random() < 0.4:
            producer_id = seed.choice(PLAIN + TRANSACTIONAL)
            state = machine.model.partitions[tp].replayed(2**62).producers.get(producer_id)
            epoch, sequence = (0, 0) if state is None else (state.epoch, state.next_sequence)
            if state is not None and state.transaction_start < 0 and seed.random() < 0.1:
                epoch, sequence = epoch + 1, 0
            batch["transactional"] = producer_id in TRANSACTIONAL
            batch |= {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        self.epochs[tp] = self.epochs.get(tp, 0) + (seed.random() < 0.1)
        machine.append(tp, self._rows(machine.model.partitions[tp].config.compacts), self.epochs[tp], **batch)

    def _burst(self, tp: TopicPartition) -> None:
        for _ in range(self.seed.randrange(2, 8)):
            self._append(tp)

    def _follow(self, tp: TopicPartition) -> None:
        """What a leader wrote: compaction may have left gaps in it."""
        seed, machine = self.seed, self.machine
        partition = machine.model.partitions[tp]
        state, base = partition.replayed(2**62), partition.end
        self.epochs[tp] = self.epochs.get(tp, 0) + (seed.random() < 0.1)
        batches: list[Written] = []
        for _ in range(seed.choice((1, 2, 4))):
            base += seed.randrange(4) if seed.random() < 0.2 else 0
            batches.append(self._as_leader(tp, state, base))
            state.add(batches[-1])
            base = batches[-1].last + 1
        machine.follow(tp, batches, self.epochs[tp])

    def _as_leader(self, tp: TopicPartition, state: Replayed, base: int) -> Written:
        seed, machine, epoch = self.seed, self.machine, self.epochs[tp]
        producer_id = seed.choice((-1, -1, *PLAIN, *TRANSACTIONAL))
        producer = state.producers.get(producer_id)
        if producer is not None and producer.transaction_start >= 0 and seed.random() < 0.4:
            return machine.marker(tp, base, epoch, producer_id, producer.epoch, seed.random() < 0.5)
        batch: dict[str, int] = {}
        if producer_id >= 0:
            known = (0, 0) if producer is None else (producer.epoch, producer.next_sequence)
            batch = {"producer_id": producer_id, "producer_epoch": known[0], "base_sequence": known[1]}
            batch["transactional"] = producer_id in TRANSACTIONAL
        return machine.written(tp, base, epoch, self._rows(machine.model.partitions[tp].config.compacts), **batch)

    def _truncate(self, tp: TopicPartition) -> None:
        """Never below what was compacted: only what is below the high watermark is."""
        partition = self.machine.model.partitions[tp]
        low = max(partition.start, min(partition.compacted, partition.end))
        near = max(low, partition.end - 6)
        offset = self.seed.choice((self.seed.randint(low, partition.end), self.seed.randint(near, partition.end)))
        self.epochs[tp] = self.epochs.get(tp, 0) + 1
        self.machine.truncate(tp, offset, self.epochs[tp])
        self.epochs[tp] += 1

    def _again(self, tp: TopicPartition) -> None:
        """In a compacted log, only the last batch of each producer: nothing may be left of older ones, and a restart
        forgets those."""
        partition, log = self.machine.model.partitions[tp], self.machine.log(tp)
        producers = partition.replayed(2**62).producers.items()
        if partition.compacted:
            sent = {b.base for number, p in producers if number not in partition.cut_producers for b in p.batches[-1:]}
        else:
            sent = {b.base for _, p in producers for b in p.batches}
        first = log.segments[0].base_offset
        known = [batch for batch in partition.batches if batch.base in sent and batch.base >= first]
        if known:
            self.machine.send_again(tp, self.seed.choice(known))

    def _transaction(self, tp: TopicPartition) -> None:
        """Write in one, or end one that is open."""
        seed, state = self.seed, self.machine.model.partitions[tp].replayed(2**62)
        for producer_id in seed.sample(TRANSACTIONAL, 2):
            producer = state.producers.get(producer_id)
            if producer is not None and producer.transaction_start >= 0:
                self.machine.end_transaction(tp, producer_id, producer.epoch, seed.random() < 0.5)
                return
        self._append(tp)

    def _compact(self, _: TopicPartition) -> None:
        self.machine.compact()

    def _roll(self, tp: TopicPartition) -> None:
        self.machine.roll(tp)

    def _flush(self, tp: TopicPartition) -> None:
        self.machine.flush(tp)

    def _flush_closed(self, tp: TopicPartition) -> None:
        self.machine.flush_closed(tp)

    def _delete_records(self, tp: TopicPartition) -> None:
        partition = self.machine.model.partitions[tp]
        self.machine.delete_records(tp, self.seed.randint(partition.start, partition.end))

    def _retain(self, tp: TopicPartition) -> None:
        seed = self.seed
        self.machine.retain(tp, seed.choice((-1, HOUR_MS, 3 * HOUR_MS)), seed.choice((-1, -1, 0, 3000, 8000)))

    def _checkpoint(self, _: TopicPartition) -> None:
        self.machine.checkpoint()

    def _remove_due(self, _: TopicPartition) -> None:
        self.machine.remove_due()

    def _delete(self, tp: TopicPartition) -> None:
        self.machine.delete(tp)

    def _restart(self, _: TopicPartition) -> None:
        self.machine.stop()
        if self.seed.random() < 0.5:
            self.machine.lose_power()
        else:
            self.machine.kill()
        self.machine.start()

    def _kill(self, _: TopicPartition) -> None:
        self.machine.kill()
        self.machine.start()

    def _lose_power(self, _: TopicPartition) -> None:
        """Now, or in the middle of what comes next; perhaps again while it comes back."""
        faults = self.machine.faults
        if self.seed.random() < 0.5:
            self.machine.lose_power()
            self.machine.start()
        for _turn in range(self.seed.choice((0, 1, 1, 2))):
            faults.plan[faults.calls + self.seed.randrange(1, 60)] = DiskFault.POWER_LOSS
