"""What happened to a Delta table since the last load: its log's entries, and the files that they removed and added.

A load notes in its entry the version up to which it had looked (`moldauSeen`), so that the next load reads the entries
behind that version only: usually one, its own. A load with `--upsert` replaces rows, but only in the version after the
one that it had looked at, so nothing up to its entry is looked at again. An entry of an earlier version of Moldau has
no such note; then all entries after it count.
"""

import json
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow.dataset as dataset

from moldau.pipeline.tables.committing import LOAD_ID
from moldau.pipeline.tables.removals import PLACES, REQUEUE, PlaceBatches, Removed, compared, time_text
from moldau.pipeline.tables.storage import Location, errors_in_a_sentence, files_below
from moldau.pipeline.tables.widening import WIDENED

SEEN: Final = "moldauSeen"
"""The key under which a load's entry names the version up to which the load had looked."""
Key = tuple[str, str]
"""A path as the log has it, and the deletion vector that hides rows of that file; empty without one."""


class Entry(NamedTuple):
    """One entry of the log. `removes_rows` are the keys that it removed with a change of data."""

    version: int
    info: Mapping[str, Any]
    removed: tuple[Key, ...]
    removes_rows: frozenset[Key]
    added: tuple[Key, ...]
    changes_data: bool

    @property
    def of_load(self) -> bool:
        return LOAD_ID in self.info

    @property
    def of_requeue(self) -> bool:
        """Whether a requeue took the removed files out of a table of rejected records, and put back what is left."""
        return REQUEUE in self.info

    @property
    def adds_rows(self) -> bool:
        """Whether another tool may have added rows."""
        return self.changes_data and not self.of_load

    @property
    def operation(self) -> str:
        """As a sentence names it: `WRITE (Overwrite) in version 3 of 2026-11-27T21:50:00Z`."""
        name = self.info.get("operation")
        parameters = self.info.get("operationParameters")
        mode = parameters.get("mode") if isinstance(parameters, dict) else None
        named = f"{name or 'an operation without a name'}{f' ({mode})' if mode else ''}"
        return f"{named} in version {self.version}{time_text(self.info.get('timestamp'))}"


class LogTail(NamedTuple):
    """The entries since the last load, oldest first; not `whole` if the log no longer has all of them."""

    entries: Sequence[Entry]
    whole: bool


def since(where: Location, checked: int | None, newest: int) -> LogTail:
    """The entries after version `checked`; None: after what the newest entry of a load had seen."""
    entries: list[Entry] = []
    version = newest
    while version >= 0 and (checked is None or version > checked):
        entry = _entry(where, version)
        if entry is None:
            return LogTail(entries[::-1], False)
        seen = entry.info.get(SEEN)
        if entry.of_load and entry.removes_rows and seen == version - 1:
            break  # `--upsert` replaced rows of a version that it had looked at
        entries.append(entry)
        if checked is None and entry.of_load:
            checked = seen if type(seen) is int and 0 <= seen < version else version - 1
        version -= 1
    return LogTail(entries[::-1], True)


def removed(where: Location, window: LogTail, recorded: Mapping[int, int], unique: bool = False) -> Removed | None:
    """What the entries removed of the records that loads had added; None if nothing. In a table with one row per key
    (`unique`) it also counts if they brought records back that loads had replaced or deleted."""
    entries = [entry for entry in window.entries if not entry.of_requeue]
    suspect = next((entry for entry in entries if entry.removes_rows or (unique and entry.adds_rows)), None)
    if suspect is None:
        return None
    gone, came = _exchanged(window.entries)
    gone_keys = set(gone)
    others = (entry for entry in window.entries if not entry.of_requeue)
    named = next((entry for entry in others if entry.removes_rows & gone_keys), suspect)
    if any(vector for _, vector in came):
        return Removed(named.operation, None)  # which rows a deletion vector hides is not known here

    def of_partition(keys: Sequence[Key], partition: int, least: int, greatest: int) -> PlaceBatches:
        from pyarrow.dataset import field

        at = field("_offset")
        return _rows(where, keys, (field("_partition") == partition) & (at >= least) & (at <= greatest))

    with errors_in_a_sentence(f"What removed rows from {where.uri}"):
        loss = compared(named.operation, _rows(where, gone), partial(of_partition, came), recorded)
        if loss is None and unique:
            back = compared(suspect.operation, _rows(where, came), partial(of_partition, gone), recorded)
            loss = back and back._replace(back=True)
        return loss


def _exchanged(entries: Iterable[Entry]) -> tuple[list[Key], list[Key]]:
    """The files that were there before, or that a load added, and are gone; and those that others added and are there.

    A file that another tool has both added and removed is in neither: what it had came from files that are in one.
    What a requeue took out counts as another tool's, so that it may be gone, and is found if a restore brings it back.
    """
    theirs: dict[Key, bool] = {}
    there: dict[Key, bool] = {}
    for entry in entries:
        again = not entry.changes_data and not entry.removed  # statistics of files that are there are written anew
        for key in entry.removed:
            theirs.setdefault(key, False)
            theirs[key] |= entry.of_requeue
            there[key] = False
        for key in entry.added:
            theirs.setdefault(key, not entry.of_load and not again)
            there[key] = True
    gone = [key for key, present in there.items() if not present and not theirs[key]]
    came = [key for key, present in there.items() if present and theirs[key]]
    return gone, came


def _rows(where: Location, keys: Sequence[Key], wanted: Any = None) -> Iterator[Any]:
    """The places of the rows in these files. Raises FileNotFoundError."""
    paths = list(dict.fromkeys(urllib.parse.unquote(path) for path, _ in keys))
    if paths:
        files = dataset.FileSystemDataset.from_paths(
            paths, schema=PLACES, format=dataset.ParquetFileFormat(), filesystem=files_below(where)
        )
        yield from files.to_batches(filter=wanted, batch_readahead=1, fragment_readahead=1)


def _entry(where: Location, version: int) -> Entry | None:
    """An entry; None if the log no longer has it."""
    path = f"_delta_log/{version:020d}.json"
    with errors_in_a_sentence(where.uri):
        try:
            with files_below(where).open_input_stream(path) as stream:
                actions = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
        except FileNotFoundError:
            return None
        if not all(isinstance(one, dict) and all(isinstance(two, dict) for two in one.values()) for one in actions):
            raise ValueError(f"{path} is not an entry of a log")
        infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
        removes = [action["remove"] for action in actions if "remove" in action]
        adds = [action["add"] for action in actions if "add" in action]
        if not all(isinstance(one.get("path"), str) for one in removes + adds):
            raise ValueError(f"{path} names a file without a path")
    rewrites = bool(infos) and WIDENED in infos[0]  # has the same records in other files: `deltalake` notes a change
    changing = [] if rewrites else [one for one in removes if one.get("dataChange", True)]
    return Entry(
        version, infos[0] if infos else {}, tuple(map(_key, removes)), frozenset(map(_key, changing)),
        tuple(map(_key, adds)), any(one.get("dataChange", True) for one in adds),
    )  # fmt: skip


def _key(action: Mapping[str, Any]) -> Key:
    vector = action.get("deletionVector")
    return action["path"], json.dumps(vector, sort_keys=True) if vector else ""
