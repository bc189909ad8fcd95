"""The same operations in whatever order hypothesis likes, with a fault in the middle of any of them.

The driver of `python -m tests.crash_points` counts exact points; this looks for stories that no weights would tell, and
shrinks them.
"""

import random
from collections.abc import Callable
from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.tiers import LONG
from moldau.names import TopicPartition
from moldau.records.batch import Row
from moldau.simulation.faults import DiskFault, PowerLoss
from tests.crash_points.machine import HOUR_MS, Machine, Offline
from tests.crash_points.model import Partition, ProducerState
from tests.crash_points.story import PARTITIONS, PLAIN, TRANSACTIONAL, draw_config

PARTITION = st.sampled_from(PARTITIONS)
FAULTS = st.sampled_from([DiskFault.POWER_LOSS, DiskFault.POWER_LOSS, DiskFault.IO_ERROR, DiskFault.NO_SPACE])


class LogFolderUnderFire(RuleBasedStateMachine):
    """Each rule is an operation of the machine, which knows what it has to come to."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.seed = random.Random(seed)
        self.machine = Machine(random.Random(seed + 1))
        self.machine.start()

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            self.machine.dispose()

    def act(self, operation: Callable[[], None]) -> None:
        """Do it; whatever fails meanwhile, come back."""
        machine = self.machine
        while True:
            try:
                operation()
                return
            except PowerLoss:
                machine.lose_power()
                operation = machine.start
            except Offline:
                operation = machine.come_back

    @precondition(lambda self: not self.machine.faults.plan)
    @rule(fault=FAULTS, calls=st.integers(1, 40))
    def fail_soon(self, fault: DiskFault, calls: int) -> None:
        self.machine.faults.plan = {self.machine.faults.calls + calls: fault}

    @rule(tp=PARTITION)
    def create_or_delete(self, tp: TopicPartition) -> None:
        if tp not in self.machine.model.partitions:
            self.act(lambda: self.machine.create(tp, draw_config(tp, self.seed)))
        elif self.seed.random() < 0.2:
            self.act(lambda: self.machine.delete(tp))

    def there(self, draw: int) -> Partition | None:
        found = [self.machine.model.partitions[tp] for tp in PARTITIONS if tp in self.machine.model.partitions]
        return found[draw % len(found)] if found else None

    @rule(
        which=st.integers(0, 1),
        keys=st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4),
        value=st.sampled_from([None, b"v", b"v" * 700]),
        producer=st.sampled_from([None, *PLAIN, *TRANSACTIONAL]),
        codec=st.integers(0, 4),
    )
    def append(self, which: int, keys: list[bytes], value: bytes | None, producer: int | None, codec: int) -> None:
        partition, machine = self.there(which), self.machine
        if partition is None:
            return
        names: dict[str, int] = {"codec": codec}
        if producer is not None:
            state = partition.replayed(2**62).producers.get(producer) or ProducerState(0)
            names |= {"producer_id": producer, "producer_epoch": state.epoch, "base_sequence": state.next_sequence}
            names["transactional"] = producer in TRANSACTIONAL
        rows = [Row(key, value, machine.clock.ms - self.seed.randrange(HOUR_MS)) for key in keys]
        epoch = machine.latest_epoch(partition.tp) + (self.seed.random() < 0.1)
        self.act(lambda: machine.append(partition.tp, rows, epoch, **names))

    @rule(which=st.integers(0, 1), commits=st.booleans())
    def end_transaction(self, which: int, commits: bool) -> None:
        partition = self.there(which)
        if partition is not None:
            producers = partition.replayed(2**62).producers.items()
            for number, epoch in [(number, state.epoch) for number, state in producers if state.transaction_start >= 0]:
                self.act(partial(self.machine.end_transaction, partition.tp, number, epoch, commits))
                return

    @rule(
        which=st.integers(0, 1),
        what=st.sampled_from(["roll", "flush", "flush_closed"]),
    )
    def one_log(self, which: int, what: str) -> None:
        partition = self.there(which)
        if partition is not None:
            self.act(lambda: getattr(self.machine, what)(partition.tp))

    @rule(what=st.sampled_from(["checkpoint", "remove_due", "compact"]))
    def all_logs(self, what: str) -> None:
        self.act(getattr(self.machine, what))

    @rule(which=st.integers(0, 1), share=st.floats(0, 1))
    def delete_records(self, which: int, share: float) -> None:
        partition = self.there(which)
        if partition is not None:
            offset = partition.start + int(share * (partition.end - partition.start))
            self.act(lambda: self.machine.delete_records(partition.tp, offset))

    @rule(which=st.integers(0, 1), hours=st.sampled_from([-1, 1]), size=st.sampled_from([-1, 0, 3000]))
    def retain(self, which: int, hours: int, size: int) -> None:
        partition = self.there(which)
        if partition is not None:
            self.act(lambda: self.machine.retain(partition.tp, hours * HOUR_MS if hours > 0 else -1, size))

    @rule(clean=st.booleans(), power_loss=st.booleans())
    def restart(self, clean: bool, power_loss: bool) -> None:
        def again() -> None:
            if clean:
                self.machine.stop()
            if power_loss:
                self.machine.lose_power()
            else:
                self.machine.kill()
            self.machine.start()

        self.act(again)

    @rule(hours=st.floats(0, 3))
    def wait(self, hours: float) -> None:
        self.machine.clock.ms += int(hours * HOUR_MS)

    @invariant()
    def everything_is_served(self) -> None:
        assert not hasattr(self, "machine") or self.machine.serving


LogFolderUnderFire.TestCase.settings = settings(
    max_examples=2000 if LONG else 60, stateful_step_count=40, deadline=None
)
TestLogFolderUnderFire = LogFolderUnderFire.TestCase
