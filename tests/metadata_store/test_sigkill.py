"""A real process and a real SIGKILL: what a broker answered is in the store, and no producer id comes twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, itertools, sys
from pathlib import Path
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import NewTopic
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.cluster.state.image import Endpoint
from moldau.config import broker_config
from moldau.runtime import Runtime

async def main():
    store = EmbeddedSession(EmbeddedStore(Path(sys.argv[1])), Runtime())
    cluster = await Cluster.open(store, broker_config({})[0], Runtime())
    await cluster.registration.register([Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)])
    print("topics", *cluster.image.topics, flush=True)
    for number in itertools.count():
        taken = cluster.producer_ids.next()
        print("id", taken if isinstance(taken, int) else await taken, flush=True)
        if number % 50 == 0:
            name = f"{sys.argv[2]}-{number}"
            await cluster.topics.create([NewTopic(name, 3)])
            print("made", name, flush=True)

asyncio.run(main())
"""
ROUNDS = 4


def run_and_kill(folder: Path, number: int, lines: int) -> list[list[str]]:
    """What the process had said when it was killed after `lines` lines."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), f"round{number}"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [line.split() for line in said if line.endswith("\n")]


def test_a_killed_process_loses_no_topic_and_repeats_no_producer_id(tmp_path: Path) -> None:
    ids: list[int] = []
    made: list[str] = []
    for number in range(ROUNDS):
        said = run_and_kill(tmp_path, number, 40 + 517 * number)
        assert said[0][0] == "topics"
        assert set(made) <= set(said[0][1:])
        ids += [int(words[1]) for words in said if words[0] == "id"]
        made += [words[1] for words in said if words[0] == "made"]
    assert len(ids) > 500
    assert len(made) > ROUNDS
    assert len(set(ids)) == len(ids)
