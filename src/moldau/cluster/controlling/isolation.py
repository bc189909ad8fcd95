"""When a controller gives its office up because it hears from too few of the other brokers. Pure.

A controller that sees the store, and that the other brokers cannot reach, would take them for silent and pull all
leaderships to itself, although they hear each other. So it gives way, and does not stand again for a while: the next
controller takes it for silent instead. It is noted in the store that it gave way. If nobody hears more, the next
controller must not give way in turn: one that is elected right after another gave way stays, until it has once heard
from enough.
"""


def is_isolated(registered: int, heard: int) -> bool:
    """Whether it hears from no other broker, or is in a minority with those that it hears from. Both numbers include
    itself."""
    return registered > 1 and (heard <= 1 or 2 * heard < registered)


def hearing_s(session_s: float, silence_s: float, poll_s: float) -> float:
    """After how long without a question a broker counts as not heard from: the session's time-out, at least two of its
    questions, and never later than it is taken for silent."""
    return min(max(session_s, 2 * poll_s), silence_s)
