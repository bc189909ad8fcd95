"""What producers have reported of one topic: what was in time, late, or replayed. Pure: values in, values out.

A record is late if it was acknowledged more than one window after the end of its own. A producer that reads old events
from a file or a table sends nothing but late records, whose delays say nothing of the way from it to the cluster. So an
instance is a replay of a topic if more than half of the records it sent there are older than itself: their windows had
ended more than one window before it started. All its late records there count as replayed, and their delays are left
out. A producer that runs for long and gets some records late is no replay, and neither is one that has a backlog when
it starts, once it has sent as many newer records.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.pipeline.audit.windows import Digests
from moldau.records.digests import Delays, Digest, added


class ReplayReport(NamedTuple):
    """What one instance has replayed of a topic: the number of records, and the times between which their windows are,
    in ms since 1970."""

    producer: str
    server: str
    started_ms: int
    records: int
    first_ms: int
    end_ms: int


@dataclass
class Sent:
    """What one instance has sent to one topic, by windows of `window_ms`. Windows with a late record are kept apart."""

    window_ms: int
    in_time: Digests = field(default_factory=dict)
    late: Digests = field(default_factory=dict)
    delays: Counter[int] = field(default_factory=Counter)
    late_delays: Counter[int] = field(default_factory=Counter)

    def add(self, start_ms: int, digest: Digest) -> None:
        """Add a report of one window. Delays are added up over all windows: each by itself would need more memory."""
        windows, delays = (self.late, self.late_delays) if digest.late else (self.in_time, self.delays)
        windows[start_ms] = windows.get(start_ms, Digest()) + digest._replace(delays=())
        delays.update(dict(digest.delays))

    def is_replay(self, started_ms: int) -> bool:
        """Whether an instance that started then has replayed the topic."""
        total = sum(digest.records for windows in (self.in_time, self.late) for digest in windows.values())
        older = sum(digest.records for at, digest in self.late.items() if at + 2 * self.window_ms <= started_ms)
        return 2 * older > total


@dataclass(frozen=True)
class Reported:
    """What all producers have reported of one topic: digests by window without delays, the delays of all records that
    were not replayed, and by window the number of those that were."""

    windows: Digests = field(default_factory=dict)
    delays: Delays = ()
    replayed: dict[int, int] = field(default_factory=dict)
    replays: Sequence[ReplayReport] = ()


def report_of(instances: Iterable[tuple[str, str, int, Sent]], length_ms: int) -> Reported:
    """Add up what instances have sent, each with its producer, server and start, in windows of this length."""
    windows: Digests = {}
    delays: list[Delays] = []
    replayed, replays = Counter[int](), []
    for producer, server, started_ms, sent in instances:
        is_replay = sent.is_replay(started_ms)
        delays.append(tuple(sent.delays.items()))
        if is_replay:
            records = sum(digest.late for digest in sent.late.values())
            ends = min(sent.late), max(sent.late) + sent.window_ms
            replays.append(ReplayReport(producer, server, started_ms, records, *ends))
        else:
            delays.append(tuple(sent.late_delays.items()))
        for held, old in ((sent.in_time, False), (sent.late, is_replay)):
            for at, digest in held.items():
                start = at // length_ms * length_ms
                if old:
                    replayed[start] += digest.late
                    digest = Digest(digest.records, digest.hash_sum)
                windows[start] = windows.get(start, Digest()) + digest
    return Reported(windows, added(delays), dict(replayed), tuple(sorted(replays)))
