"""The differences between Kafka's answers and ours that we stand by: at most 25, each used, each with its reason."""

from tests.differential.comparing import Accepted

ACCEPTED_MAX = 25
ACCEPTED: tuple[Accepted, ...] = ()
