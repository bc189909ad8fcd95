"""The line about partitions whose log folder is not served: why that may be, and how to go on if it is lost. Pure.

The broker starts all the same, since a folder that is only not mounted looks like one that an empty one replaced: its
partitions are offline, and the others are served.
"""

from collections.abc import Iterable

from moldau.names import counted


def offline_line(count: int, directories: Iterable[str], repair_command: str | None) -> str:
    """`count` partitions are offline; `directories` are the ids of their log folders ("" for one that is not known).
    `repair_command` is that of a broker alone, None for one of several."""
    named = ", ".join(directory or "(not assigned)" for directory in sorted(set(directories)))
    go_on = "start once with --accept-empty all (or TOPIC-N), and they start empty and fetch what other replicas have"
    if repair_command is not None:
        go_on = f"`{repair_command}` can start them empty"
    return (
        f"{counted(count, 'partition')} {'is' if count == 1 else 'are'} offline with the log folder that has "
        f"directory.id={named}: it is offline, not mounted, missing in log.dirs, or was replaced by an empty folder. "
        f"Put it back and restart the broker; if it is lost for good, {go_on}"
    )
