"""When a controller gives its office up because it hears from too few of the other brokers. Pure.

A controller that sees the store, and that the other brokers cannot reach, would take them for silent and pull all
leaderships to itself, although they hear each other. So it gives way to another one, which takes it for silent instead.

The store has the brokers that have given way one after the other. They let the others stand first. One that becomes the
controller all the same stays, since nobody else stood; so does one to which all others have given way. The list begins
anew when a controller has heard from enough brokers.
"""

from collections.abc import Collection

from moldau.cluster.state.layout import GivenWay

GRACE_S = 1.5
"""The sessions of brokers that have died should end before they are missed."""
LETS_STAND_S = 3.0
"""How long a broker that has given way lets others stand: they hear at once that the office is vacant."""


def is_isolated(registered: int, heard: int) -> bool:
    """Whether it hears from no other broker, or is in a minority with those that it hears from. Both numbers include
    itself."""
    return registered > 1 and (heard <= 1 or 2 * heard < registered)


def is_last(me: int, registered: Collection[int], gave_way: Collection[int]) -> bool:
    """Whether there is nobody to give way to."""
    return me in gave_way or not {*registered} - {me, *gave_way}


def who_gave_way(latest: GivenWay | None, controller_epoch: int) -> tuple[int, ...]:
    """The brokers that have given way one after the other, the last one in that epoch."""
    return latest.brokers if latest is not None and latest.controller_epoch == controller_epoch else ()


def hearing_s(session_s: float, silence_s: float, poll_s: float) -> float:
    """After how long without a question a broker counts as not heard from: the session's time-out, at least two of its
    questions, and never later than it is taken for silent."""
    return min(max(session_s + GRACE_S, 2 * poll_s), silence_s)
