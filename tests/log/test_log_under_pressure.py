"""A log whose process is killed while it writes, and one that is flushed by another thread while it is written."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from harness.logs import append, config, open_log, read_all

SMALL = config(segment_bytes=20_000, index_interval_bytes=500)
ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from harness.logs import append, open_log
from tests.log.test_log_under_pressure import SMALL
log = open_log(Path(sys.argv[1]), config=SMALL, clean=False)
while True:
    sequence = log.log_end_offset
    answer = append(log, 1, producer_id=7, producer_epoch=0, base_sequence=sequence)
    assert answer.base_offset == sequence and not answer.error, answer
    print(answer.base_offset, flush=True)
"""


def test_nothing_that_was_written_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    acknowledged = -1
    for round_ in range(1, 4):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "p")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                acknowledged = int(line)
                if acknowledged >= 700 * round_:
                    writer.send_signal(signal.SIGKILL)
                    break
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    log = open_log(tmp_path / "p", config=SMALL, clean=False)
    assert log.log_end_offset > acknowledged
    assert [record.offset for record in read_all(log)] == list(range(log.log_end_offset))
    again = append(log, 1, producer_id=7, producer_epoch=0, base_sequence=log.log_end_offset - 1)
    assert (again.duplicate, again.base_offset) == (True, log.log_end_offset - 1)


def test_a_log_can_be_flushed_by_another_thread_while_it_is_written(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=SMALL)
    written = threading.Event()
    failures: list[BaseException] = []

    def flush() -> None:
        try:
            while not written.is_set():
                log.flush()
                assert log.recovery_point <= log.log_end_offset
        except BaseException as failure:
            failures.append(failure)

    flusher = threading.Thread(target=flush)
    flusher.start()
    for number in range(3000):
        append(log, number % 3 + 1, leader_epoch=number // 500)
    written.set()
    flusher.join()
    assert not failures
    log.flush()
    assert log.recovery_point == log.log_end_offset == 6000
    assert all(segment.flushed for segment in log.segments[:-1])
    log.abandon()
    again = open_log(tmp_path / "p", config=SMALL, clean=False, recovery_point=6000)
    assert [record.offset for record in read_all(again)] == list(range(6000))
    assert again.epochs.starts == log.epochs.starts
