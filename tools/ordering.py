"""In which order groups of tests go to workers. Pure.

Some tests keep a processor busy, others wait for a time-out or for other processes. If the first ones run after the
others, processors are idle in one half of the run and contended for in the other. So the groups that keep a processor
busiest are at one end of the order, those that wait at the other, and workers begin at both ends (tools/forks.py).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SHORTEST_S = 0.01


@dataclass(frozen=True)
class Expected:
    """Of a group: its seconds, and those in which it uses a processor."""

    seconds: float
    used_s: float

    @property
    def share(self) -> float:
        return self.used_s / max(self.seconds, SHORTEST_S)


def folder_by_folder(groups: Mapping[str, Expected], folder_of: Callable[[str], str]) -> list[str]:
    """The folder with most to do first, so that folders are done one after the other, and in it the longest group."""
    folders: dict[str, float] = defaultdict(float)
    for name, expected in groups.items():
        folders[folder_of(name)] += expected.seconds
    return sorted(groups, key=lambda name: (-folders[folder_of(name)], folder_of(name), -groups[name].seconds, name))


def from_both_ends(groups: Mapping[str, Expected], folder_of: Callable[[str], str]) -> list[str]:
    """From the front those that use most of a processor, for half of all seconds; from the back those that wait. Each
    half is in the order of `folder_by_folder`, seen from its end."""
    busy: dict[str, Expected] = {}
    left_s = sum(expected.seconds for expected in groups.values()) / 2
    for name in sorted(groups, key=lambda name: (-groups[name].share, name)):
        if left_s <= 0:
            break
        busy[name] = groups[name]
        left_s -= groups[name].seconds
    waiting = {name: expected for name, expected in groups.items() if name not in busy}
    return folder_by_folder(busy, folder_of) + folder_by_folder(waiting, folder_of)[::-1]
