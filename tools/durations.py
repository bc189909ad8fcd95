"""How long each file of tests takes: `tests/durations.tsv` has its seconds in `make test` and in `make check`, and what
it uses of a processor.

They decide in which order files go to workers, and what is said about the time that is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "durations.tsv"
TIERS = ("test", "check")
USED = " processor"
"""Behind the name of a tier: the column of what its files use of a processor."""
COLUMNS = tuple(f"{tier}{kind}" for tier in TIERS for kind in ("", USED))
UNKNOWN_TEST_S = 0.05
"""What is expected of a test in a file that the table does not have."""
UNKNOWN_SHARE = 0.5
"""The part of its time in which such a file uses a processor."""

BUSY = 0.9
"""The part of its time in which a processor is used, however many workers there are."""


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@dataclass
class Durations:
    """Seconds by column and file."""

    seconds: dict[str, dict[str, float]] = field(default_factory=lambda: {name: {} for name in COLUMNS})

    def of(self, tier: str, file: str, tests: int) -> float:
        """What that many tests of a file are expected to take. The long tier has no column: it is like `check`."""
        known = self.seconds[tier if tier in TIERS else TIERS[-1]]
        return known.get(file, tests * UNKNOWN_TEST_S)

    def used(self, tier: str, file: str, tests: int) -> float:
        """What they are expected to use of a processor."""
        known = self.seconds[(tier if tier in TIERS else TIERS[-1]) + USED]
        return known.get(file, self.of(tier, file, tests) * UNKNOWN_SHARE)

    def expected_s(self, tier: str, tests: Mapping[str, int], workers: int, processors: int) -> float:
        """How long these numbers of tests of files take together: the workers wait for each other, and for processors,
        of which they use `BUSY` at best."""
        seconds = sum(self.of(tier, file, number) for file, number in tests.items())
        used = sum(self.used(tier, file, number) for file, number in tests.items())
        return max(seconds / workers, used / (processors * BUSY))

    def take(self, tier: str, measured: Mapping[str, float], used: Mapping[str, float]) -> None:
        """Files that are gone are forgotten."""
        self.seconds[tier].update(measured)
        self.seconds[tier + USED].update(used)
        for known in self.seconds.values():
            for file in [file for file in known if not (ROOT / file).exists()]:
                del known[file]


def read(path: Path = TABLE) -> Durations:
    durations = Durations()
    head, *lines = path.read_text().splitlines() if path.exists() else [""]
    _, *names = head.split("\t")
    for line in lines:
        file, *cells = line.split("\t")
        for name, cell in zip(names, cells, strict=True):
            if cell:
                durations.seconds[name][file] = float(cell)
    return durations


def write(durations: Durations, path: Path = TABLE) -> None:
    columns = [durations.seconds[name] for name in COLUMNS]
    lines = [
        "\t".join([file, *(f"{known[file]:.1f}" if file in known else "" for known in columns)])
        for file in sorted({file for known in columns for file in known})
    ]
    path.write_text("\n".join(["\t".join(["file", *COLUMNS]), *lines]) + "\n")
