"""The kit of what a log does, on every kind of disk."""

from pathlib import Path

import pytest

from tests.grounds import Ground, real, simulated
from tests.log.behaviour import LogBehaviour


class TestOnTheRealDisk(LogBehaviour):
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        return real(tmp_path)


class TestOnTheSimulatedDisk(LogBehaviour):
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        return simulated(tmp_path)
