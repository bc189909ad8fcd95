"""Producers that a program does not close: what arrives, and what the program is told. Each program is a process."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from harness.brokers import SOURCE
from harness.patience import stretched
from moldau.client.background import LoopThread
from moldau.client.producing.producer import _finish
from tests.client.producing.beside import values


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=stretched(60),
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
    )


FORGETFUL = """
import sys
from moldau import Producer
producer = Producer(sys.argv[1], linger_ms=60_000)
for number in range(1000):
    producer.send(sys.argv[2], str(number))
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_program_that_ends_without_close_delivers_its_records_and_is_told_to_close(
    bootstrap: str, topic: str, host: str
) -> None:
    ended = run(FORGETFUL, bootstrap.replace("127.0.0.1", host), topic)
    assert "1000 records that are not delivered yet" in ended.stderr
    assert "use it in a with-statement" in ended.stderr
    assert (ended.returncode, values(bootstrap, topic)) == (0, [b"%d" % number for number in range(1000)])


def test_a_producer_that_went_out_of_sight_delivers_at_exit(bootstrap: str, topic: str) -> None:
    program = FORGETFUL.replace("producer =", "def work():\n  producer =").replace("for n", "  for n")
    program = program.replace("    producer.send", "    producer.send") + "work()\n"
    assert run(program, bootstrap, topic).returncode == 0
    assert len(values(bootstrap, topic)) == 1000


def test_threads_that_are_no_daemons_go_on_sending_after_the_main_thread_ended(bootstrap: str, topic: str) -> None:
    program = """
import sys, threading
from moldau import Producer
producer = Producer(sys.argv[1], linger_ms=60_000)
producer.send(sys.argv[2], "main")
def work():
    threading.main_thread().join()
    producer.send(sys.argv[2], "thread")
threading.Thread(target=work).start()
"""
    assert run(program, bootstrap, topic).returncode == 0
    assert values(bootstrap, topic) == [b"main", b"thread"]


def test_records_that_a_program_loses_at_exit_are_counted(bootstrap: str, topic: str) -> None:
    program = """
import sys
from moldau import Producer
from moldau.client import unclosed
from moldau.client.producing import sending
unclosed.EXIT_S = 0.2
producer = Producer(sys.argv[1])
producer.send(sys.argv[2], "x").result()
sending.Sender._send_to = lambda self, leader, ready: False
for _ in range(3):
    producer.send(sys.argv[2], "x")
"""
    ended = run(program, bootstrap, topic)
    assert "3 records were lost" in ended.stderr


def test_a_producer_is_refused_in_a_forked_child_and_goes_on_in_the_parent(bootstrap: str, topic: str) -> None:
    program = """
import os, sys
from moldau import Producer
from moldau.errors import ClientClosed
with Producer(sys.argv[1], linger_ms=3_000) as producer:
    producer.send(sys.argv[2], "parent")
    producer.flush()
    waiting = producer.send(sys.argv[2], "parent, later")
    child = os.fork()
    if not child:
        for use in (lambda: producer.send(sys.argv[2], "child"), producer.flush, waiting.result):
            try:
                use()
            except ClientClosed as refused:
                print(refused, flush=True)
        producer.close()
        sys.exit(7)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 7, status
    again = producer.send(sys.argv[2], "parent again")
    producer.flush(30)
    again.result(0)
"""
    ended = run(program, bootstrap, topic)
    assert ended.stdout.count("this client was made before the process forked: make a new one") == 3
    assert (ended.returncode, ended.stderr) == (0, "")
    assert values(bootstrap, topic) == [b"parent", b"parent, later", b"parent again"]


@pytest.mark.parametrize("loops", [False, True])
def test_a_consumer_hands_out_in_the_parent_alone_what_was_fetched_before_the_fork(
    bootstrap: str, topic: str, loops: bool
) -> None:
    program = """
import os, sys
from moldau import Consumer, Producer
from moldau.errors import ClientClosed
with Producer(sys.argv[1]) as producer:
    for number in range(5):
        producer.send(sys.argv[2], str(number))
with Consumer(sys.argv[1]) as consumer:
    consumer.assign([(sys.argv[2], 0)])
    consumer.seek_to_beginning()
    loop = iter(consumer)
    ask = (lambda: [next(loop)]) if len(sys.argv) > 3 else lambda: consumer.poll(30_000, 1)
    got = [ask()[0].value]
    child = os.fork()
    if not child:
        try:
            print(ask(), flush=True)
        except ClientClosed as refused:
            print(refused, flush=True)
        consumer.close()
        sys.exit(7)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 7, status
    while len(got) < 5:
        got += [record.value for record in ask()]
    print(got)
"""
    ended = run(program, bootstrap, topic, *(["loops"] if loops else []))
    refused, got = ended.stdout.splitlines()
    assert refused.startswith("this client was made before the process forked: make a new one")
    assert (ended.returncode, ended.stderr, got) == (0, "", str([b"%d" % number for number in range(5)]))


def test_a_stream_is_refused_in_a_forked_child(bootstrap: str, topic: str, group: str) -> None:
    program = """
import os, sys
from moldau import Consumer, Producer
from moldau.errors import ClientClosed
with Producer(sys.argv[1]) as producer:
    for number in range(5):
        producer.send(sys.argv[2], str(number))
with Consumer(sys.argv[1], group_id=sys.argv[3], auto_offset_reset="earliest") as consumer:
    loop = iter(consumer.create_message_streams({sys.argv[2]: 1})[sys.argv[2]][0])
    got = [next(loop).value]
    child = os.fork()
    if not child:
        try:
            print(next(loop), flush=True)
        except ClientClosed as refused:
            print(refused, flush=True)
        os._exit(7)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 7, status
    print(got + [next(loop).value for _ in range(4)])
"""
    ended = run(program, bootstrap, topic, group)
    refused, got = ended.stdout.splitlines()
    assert refused.startswith("this client was made before the process forked: make a new one")
    assert (ended.returncode, ended.stderr, got) == (0, "", str([b"%d" % number for number in range(5)]))


def test_an_asyncio_program_that_ends_without_close_is_told_what_it_lost(bootstrap: str, topic: str) -> None:
    program = """
import asyncio, sys
from moldau.aio import Producer
async def main():
    producer = Producer(sys.argv[1], linger_ms=60_000)
    await producer.start()
    for _ in range(10):
        await producer.send(sys.argv[2], "x")
asyncio.run(main())
"""
    assert "the event loop ended with 10 records that are not delivered" in run(program, bootstrap, topic).stderr


def test_a_producer_whose_close_a_signal_has_ended_says_nothing_more_at_exit(caplog: pytest.LogCaptureFixture) -> None:
    thread = LoopThread("closed")
    thread.start()
    thread.stop()
    core: Any = SimpleNamespace(
        accumulator=SimpleNamespace(records=1),
        settings=SimpleNamespace(client_id="c"),
        unseen=SimpleNamespace(failure=lambda: None),
    )
    _finish(core, thread, 1.0)
    assert caplog.text == ""
