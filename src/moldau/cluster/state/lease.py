"""How long a broker may go on as a leader while it cannot know whether another one was elected. Pure.

The lease decides only what a leader that may have been replaced still answers: acks=0 and acks=1, reads, and requests
to its coordinators. acks=all never rests on it, because a commit needs the followers.

A broker is replaced for two reasons: its session in the store has ended, or it has asked the controller for no changes
for `replica.lag.time.max.ms`. The lease holds while neither can have happened:

    store        the store's leader answered a question in the session of this registration; the session lives for its
                 time-out from when that question was sent
    controller   the controller answered a question for changes; it waits for the next one for its limit, from then on

Both count for a registration that the image shows only: with it, the image shows every leader that was elected before.

Without the lease a broker still leads a partition if it has the only replica of it, since no other broker can be
elected, and if every replica that can be elected asked it for records in this leader epoch within half of the session's
time-out, and within a few waits of a fetch: one that leads asks nobody. So clients are served while ZooKeeper is away,
and a leader that is cut off from a replica in sync stops, also if another follower is cut off with it. Until then, for
a few seconds, it may serve beside a successor that has just ceased to ask. Half, because the session of a process that
stands still ends sooner than the time-out after its followers' last requests: it counts from the broker's own last sign
of life.

Times are seconds of a clock that never jumps, and goes on while the process or the machine stands still.
"""

from math import inf
from typing import Final

NEVER_S: Final = -inf
FOLLOWED_SHARE: Final = 0.5
FETCHES: Final = 6
FOLLOWED_S_MIN: Final = 1.0
"""The time of a request is known only by the answer before: two waits pass without any delay."""
NOT_REGISTERED: Final = -1


class Lease:
    """`session_s` is the time-out that the session asks for, `silence_s` the controller's limit. A follower asks again
    after `fetch_s` at the latest."""

    __slots__ = ("_broker_epoch", "_controller_s", "_fetch_s", "_session_s", "_silence_s", "_store_s")

    def __init__(self, session_s: float, silence_s: float, fetch_s: float = inf):
        self._fetch_s = fetch_s
        self._session_s = session_s
        self._silence_s = silence_s
        self._broker_epoch = NOT_REGISTERED
        self._store_s = self._controller_s = NEVER_S

    def session_lasts(self, session_s: float) -> None:
        """The time-out of the session, as the store has granted it."""
        self._session_s = session_s

    def store_answered(self, broker_epoch: int, asked_s: float) -> None:
        """The store's leader answered a question that was sent at `asked_s`, in the session of the registration with
        that broker epoch."""
        if broker_epoch != self._broker_epoch:
            self._broker_epoch, self._store_s = broker_epoch, NEVER_S
        self._store_s = max(self._store_s, asked_s)

    def controller_answered(self, asked_s: float) -> None:
        """The controller answered a question for changes that was sent at `asked_s`."""
        self._controller_s = max(self._controller_s, asked_s)

    def controller_silent_s(self, now_s: float) -> float:
        """How long ago the last question was sent that the controller has answered."""
        return now_s - self._controller_s

    def holds(self, shown_epoch: int, now_s: float) -> bool:
        """Whether no other broker can have been elected in this one's place. `shown_epoch` is this broker's epoch in
        the image it acts by."""
        return (
            shown_epoch == self._broker_epoch != NOT_REGISTERED
            and now_s <= self._store_s + self._session_s
            and now_s <= self._controller_s + self._silence_s
        )

    def may_lead(self, shown_epoch: int, now_s: float, followers_silent_s: float) -> bool:
        """Whether this broker may lead a partition that the image says it leads, and that has other replicas.
        `followers_silent_s`: how long ago the last of the replicas that can be elected asked for records, in this
        leader epoch."""
        followed_s = min(FOLLOWED_SHARE * self._session_s, max(FETCHES * self._fetch_s, FOLLOWED_S_MIN))
        return followers_silent_s <= followed_s or self.holds(shown_epoch, now_s)
