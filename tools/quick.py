"""Runs the most telling tests in less than a minute on two idle cores (`make quick`): for between two edits.

usage: quick.py [PYTEST-OPTIONS]

They need neither Java nor programs of other projects, start no broker process, and run no long simulation. What CI runs
is in `tools/stages.py`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/assignors",
    "tests/cluster",
    "tests/config",
    "tests/coordinators",
    "tests/handlers/fetching/test_fetch.py",
    "tests/handlers/producing/test_produce.py",
    "tests/log/test_slicing.py",
    "tests/log/test_log.py",
    "tests/log/recovering/test_recovery.py",
    "tests/metadata_store/test_embedded.py",
    "tests/metadata_store/test_steps.py",
    "tests/metadata_store/test_store.py",
    "tests/net",
    "tests/peers",
    "tests/protocol/test_codec.py",
    "tests/protocol/test_hot_fetch.py",
    "tests/protocol/test_hot_produce.py",
    "tests/records/test_batch.py",
    "tests/records/test_validation.py",
    "tests/replication",
    "tests/requests",
    "tests/security/test_authorizer.py",
    "tests/security/test_rules.py",
    "tests/security/test_selecting.py",
    "tests/test_documents.py",
    "tests/test_quick.py",
    "tests/test_readme.py",
    "tests/test_source.py",
)
"""Folders and files; `tests/test_quick.py` says what may be among them."""
OPTIONS = ("-q", "-n", "2", "--dist", "loadfile", "-m", "not check and not long")


def main(arguments: Sequence[str]) -> None:
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *OPTIONS, *arguments, *TESTS])


if __name__ == "__main__":
    main(sys.argv[1:])
