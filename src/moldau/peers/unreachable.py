"""The line about another broker of the cluster that cannot be reached: one in 30 s, whichever part of this one asks it.

That broker may have been killed, and nothing is wrong with this one: it is a warning.
"""

import logging
from typing import Final

from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices

NOT_REACHED: Final = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
"""The errors of a connection: the broker itself has not answered."""
NO_CONTROLLER: Final = (*NOT_REACHED, ErrorCode.NOT_CONTROLLER)
"""The errors of a request to the controller while another one takes over. `cluster.following` asks it all the time, and
is the one that tells."""

notices = Notices(logging.getLogger(__name__))


def tell_unreachable(broker_id: int, error: KafkaError) -> None:
    """`error` is one of `NOT_REACHED`, and the request is sent again."""
    notices.warning(
        str(broker_id),
        "broker %d cannot be reached: %s. It is asked again; if its session ends (zookeeper.session.timeout.ms), other "
        "brokers take over what it leads",
        broker_id,
        error,
    )
