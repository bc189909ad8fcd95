"""Ctrl-C ends a call that waits, and the client can be used and closed afterwards."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import moldau
from harness.patience import wait_until
from moldau import TopicPartition

LONG_MS = 3_600_000
WAITING: dict[str, Callable[[moldau.Consumer, str], Any]] = {
    "poll": lambda consumer, topic: consumer.poll(LONG_MS),
    "poll_table": lambda consumer, topic: consumer.poll_table(LONG_MS),
    "iteration": lambda consumer, topic: next(iter(consumer)),
    "process": lambda consumer, topic: consumer.process(print, idle_ms=LONG_MS),
}


def press() -> None:
    """Ctrl-C: a signal to the main thread, which waits."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.mark.parametrize("call", WAITING)
def test_ctrl_c_ends_a_waiting_call_and_the_consumer_goes_on(bootstrap: str, topic: str, call: str) -> None:
    with moldau.Admin(bootstrap) as admin:
        admin.create_topic(topic)
    with moldau.Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        interrupts = threading.Thread(target=lambda: wait_until(lambda: consumer._thread._wakes) and press())
        interrupts.start()
        with pytest.raises(KeyboardInterrupt):
            WAITING[call](consumer, topic)
        interrupts.join()
        with moldau.Producer(bootstrap) as producer:
            producer.send(topic, b"x")
        assert [record.value for record in consumer.poll(LONG_MS)] == [b"x"]


def test_ctrl_c_ends_a_flush_and_the_producer_goes_on(bootstrap: str, topic: str) -> None:
    with moldau.Producer(bootstrap) as producer:
        producer.send(topic, b"x").result()
        interrupts = threading.Thread(target=press)
        with pytest.raises(KeyboardInterrupt):
            _flush_while(producer, interrupts)
        assert producer.send(topic, b"y").result().offset == 1


def _flush_while(producer: moldau.Producer, interrupts: threading.Thread) -> None:
    interrupts.start()
    try:
        while True:
            producer.flush()
    finally:
        interrupts.join()


@pytest.mark.parametrize("client", [moldau.Producer, moldau.Consumer, moldau.Admin])
def test_a_signal_handler_may_close_a_client_that_is_closing(bootstrap: str, client: Callable[[str], Any]) -> None:
    one = client(bootstrap)
    loop_thread = one._thread._thread
    join, closed = loop_thread.join, []

    def interrupted() -> None:
        signal.raise_signal(signal.SIGUSR1)
        join()

    before = signal.signal(signal.SIGUSR1, lambda *_: closed.append(one.close()))
    loop_thread.join = interrupted
    try:
        one.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert closed == [None]
