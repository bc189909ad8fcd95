"""Asks a live Apache Kafka, and Spark's connector for it, again for everything that is recorded of them, and says what
they answer differently.

usage: referee.py VERSION [--write]

The script of requests has a recording for each version. All else (assignors, the dump tool, folders that Kafka wrote)
is recorded of one version (`tests/refereed.py`), and every other one must say the same. `--write` records anew. Needs
mvn, java and about ten minutes; the exit code is 1 if anything differs.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/differential/test_assignments_against_kafka.py",
    "tests/differential/test_assignors_against_java.py",
    "tests/agreement",
    "tests/zookeeper/test_kafka_alike.py",
)


def commands(version: str, write: bool) -> list[tuple[dict[str, str], list[str]]]:
    """Each with the environment that it needs beside ours."""
    script = [sys.executable, "-m", "tests.differential", "--short", "--referee", version]
    asking = {"MOLDAU_REFEREE": "rewrite" if write else "live", "MOLDAU_KAFKA": version, "MOLDAU_TIER": "check"}
    return [
        ({}, [*script, "--write"] if write else script),
        (asking, [sys.executable, "-m", "pytest", "-q", "--timeout=0", *TESTS]),
        ({}, [sys.executable, "-m", "tests.pipeline.beside", *(["--write"] if write else [])]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="ask a live Kafka what is recorded of it")
    parser.add_argument("version", help="4.3.1 or 4.4.0")
    parser.add_argument("--write", action="store_true", help="record anew")
    asked = parser.parse_args()
    codes = []
    for environment, command in commands(asked.version, asked.write):
        print("#", *command, flush=True)
        codes.append(subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}).returncode)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
