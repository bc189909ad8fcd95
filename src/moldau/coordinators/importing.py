"""The modules of the coordinators, which are imported when the first client needs one.

Any thread may import them: on the loop they held all other clients for 60 ms on an idle machine, and for 0.1 s and more
on a busy one. An import opens files, so it fails in a process that has no file descriptor left: then it is tried again,
and what was imported stays.
"""

import contextlib
import importlib
from typing import Final

from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

MODULES: Final = {
    OFFSETS_TOPIC: ("moldau.coordinators.groups.coordinator", "moldau.coordinators.groups.settings"),
    TRANSACTIONS_TOPIC: ("moldau.coordinators.transactions.coordinator", "moldau.replication.markers"),
}
"""By the internal topic of the coordinator."""


def import_for(topic: str) -> None:
    """Import what the coordinator of this internal topic needs. Blocks."""
    for module in MODULES[topic]:
        importlib.import_module(module)
    if topic == OFFSETS_TOPIC:  # for members that subscribe by an expression
        with contextlib.suppress(ImportError):
            importlib.import_module("re2")
