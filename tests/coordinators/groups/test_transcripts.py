"""Every script in `transcripts/` leaves the trace that is written in it.

`python -m tests.coordinators.groups.test_transcripts` writes the traces anew; read the difference before you keep it.
"""

from pathlib import Path

import pytest

from tests.coordinators.groups.scene import played

SCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_leaves_its_trace(script: Path) -> None:
    text = script.read_text()
    assert played(text) == text


def test_a_wrong_trace_is_noticed() -> None:
    assert (
        played("initial_rebalance_delay_ms = 0\n\nleave a m\n----\na: NONE\n")
        != "initial_rebalance_delay_ms = 0\n\nleave a m\n----\na: NONE\n"
    )


if __name__ == "__main__":
    for path in SCRIPTS:
        path.write_text(played(path.read_text()))
