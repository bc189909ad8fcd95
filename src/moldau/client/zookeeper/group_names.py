"""The names that groups in ZooKeeper have, and whose layout their nodes follow. Pure."""

import re
from enum import Enum

from moldau.errors import ConfigError

_UNFIT = "[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]"
"""What ZooKeeper does not take in the name of a node."""


class GroupLayout(Enum):
    """Whose paths and texts a group has."""

    KAFKA_0_8 = "0.8"
    KAFKA_0_7 = "0.7"


def check_group(group: str) -> None:
    """Raise `ConfigError` unless the id can be the name of a node."""
    if group in (".", "..") or re.search(_UNFIT, group):
        raise ConfigError(f"group_id={group!r} cannot be the name of a node in ZooKeeper, for example because of a /")
