"""Says at the end which differences came up in one play only: they count for nothing, but somebody may wonder."""

import pytest

ONCE = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    once = config.stash.get(ONCE, [])
    if once:
        terminalreporter.section("differences of one play that no other confirmed")
        for line in once:
            terminalreporter.write_line(line)
