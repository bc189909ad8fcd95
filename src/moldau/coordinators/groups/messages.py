"""What the group coordinator answers about groups of every kind."""

from typing import NamedTuple


class ListedGroup(NamedTuple):
    """A group in ListGroups; `group_type` is the name of its kind."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str
