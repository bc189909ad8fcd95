"""Slices of a segment's file for replies, and where the readers of a segment go on.

A reader's next request mostly begins where its last slice ended. Its place is remembered, so that `Segment.find` need
not search for it:

    tail    a slice that ends with the log's last batch: the position where the next batch will be written (`stops`)
    ahead   a slice that cuts a batch off: that batch, looked for while the slice is being sent (`ahead`)

Both are few for each segment, by next offset, and only a hint: `find` searches where they do not help.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from moldau.log.failures import damaged
from moldau.log.segment import Segment
from moldau.log.walking import first_batch
from moldau.replies import FileSlice

READERS_MAX: Final = 8
"""Readers of one segment whose next place is remembered, at its tail and ahead."""


def slice_of(
    segment: Segment, position: int, length: int, is_cut: bool, tail: int | None, fail: Callable[[OSError], object]
) -> FileSlice:
    """A part of a segment's file for a reply. If it cuts a batch off, `look_ahead` prepares the reader's next request.
    If it ends with the last batch, whose next offset is `tail`, the reader's next request needs no search. `fail` is
    called if the disk fails while the slice is sent."""
    if segment.cannot_send is None:  # kept, as a slice is made for every request
        segment.cannot_send = partial(_unsendable, segment, fail)
    ahead = partial(look_ahead, segment, position + length) if is_cut else None
    if tail is not None and tail not in (stops := segment.stops):
        if len(stops) == READERS_MAX:
            del stops[next(iter(stops))]
        stops[tail] = position + length
    file = segment.log.file or segment.log.get()
    return tuple.__new__(FileSlice, (file, position, length, ahead, segment.cannot_send, None))


def _unsendable(segment: Segment, fail: Callable[[OSError], object], error: OSError) -> None:
    # Without an error number, the system has not failed: the file was shorter than the slice.
    if error.errno is None:
        if not segment.deleted:  # else it was cut under a slow reader
            damaged(segment.log.path, error)
    else:
        fail(OSError(error.errno, error.strerror, str(segment.log.path)))


def look_ahead(segment: Segment, end: int) -> None:
    """Find the batch that a slice ending at this position has cut off, before its reader asks for it: that reader goes
    on there, if it goes on. Nothing is done where that takes a search, or the disk fails: `find` will."""
    # A file that was let go was not used lately, or is gone: it is not opened for a guess.
    file = segment.log.file
    if file is None or segment.deleted:
        return
    try:
        entry = segment.offsets.near(end)
        if entry is None or not segment.is_right(entry):
            return
        batch = first_batch(file, entry.value, segment.size, 0, end)
    except OSError:
        return
    if batch is not None:
        ahead = segment.ahead = segment.ahead or {}
        if len(ahead) >= READERS_MAX:
            del ahead[next(iter(ahead))]
        ahead[batch.header.base_offset] = batch
