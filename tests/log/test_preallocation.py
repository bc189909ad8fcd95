"""`preallocate`: a new segment's file has its full size at once, and exactly its records when it is closed."""

from pathlib import Path

from harness.logs import append, config, names, open_log, read_all
from moldau.names import Offset

SEGMENT = 4000


def sizes(folder: Path) -> list[int]:
    return [(folder / name).stat().st_size for name in names(folder, ".log")]


def test_the_room_of_a_segment_is_made_at_once_and_given_back_when_it_is_closed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(preallocate=True, segment_bytes=SEGMENT))
    assert sizes(log.folder) == [SEGMENT]
    while len(log.segments) < 3:
        append(log, 5)
        assert len(read_all(log)) == log.log_end_offset
    written = [segment.size for segment in log.segments]
    assert sizes(log.folder) == [*written[:-1], SEGMENT]
    assert log.size == sum(written)
    log.close()
    assert sizes(log.folder) == written


def test_what_was_only_made_room_for_is_cut_off_after_a_crash(tmp_path: Path) -> None:
    settings = config(preallocate=True, segment_bytes=SEGMENT)
    log = open_log(tmp_path / "p", config=settings)
    append(log, 5)
    append(log, 7)
    log.abandon()
    again = open_log(log.folder, clean=False, config=settings)
    assert again.log_end_offset == Offset(12)
    assert append(again, 1).base_offset == 12
    assert [record.offset for record in read_all(again)] == list(range(13))
    again.close()
    assert sizes(log.folder) == [again.size]


def test_without_it_a_file_is_what_was_written(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=SEGMENT))
    append(log, 5)
    assert sizes(log.folder) == [log.size]
    log.close()
