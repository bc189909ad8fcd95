"""`moldau.testing.Broker`: a broker in the test's process that starts, restarts, crashes and leaves nothing behind."""

import asyncio
import gc
import logging
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.patience import wait_until
from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.errors import ConfigError, ErrorCode, KafkaError, MoldauError
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.testing import Broker, BrokerFailed


def values(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    """The values of the topic's first `count` records."""
    found: list[bytes | None] = []
    with Consumer(broker.address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert wait_until(lambda: found.extend(r.value for r in consumer.poll(100)) or len(found) >= count)
    return found


def send(broker: Broker, topic: str, *sent: bytes) -> None:
    with Producer(broker.address) as producer:
        for value in sent:
            producer.send(topic, value)


def open_files() -> set[str]:
    """What the process has open, by descriptor: files with their paths, sockets with their numbers."""
    gc.collect()
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name}: {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:  # the descriptor that listed the folder
            pass
    return found


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as dialling:
        return dialling.connect_ex((host, int(port))) == 0


def test_records_written_are_read() -> None:
    with Broker() as broker:
        send(broker, "t", b"one", b"two")
        assert values(broker, "t", 2) == [b"one", b"two"]


def test_several_brokers_share_nothing() -> None:
    with Broker() as one, Broker() as other:
        assert one.address != other.address
        one.create_topic("only-here")
        with Admin(one.address) as admin, Admin(other.address) as other_admin:
            assert list(admin.list_topics()) == ["only-here"]
            assert list(other_admin.list_topics()) == []


def test_settings_have_kafkas_names_or_underscores(tmp_path: Path) -> None:
    settings = {"num.partitions": 4, "auto.create.topics.enable": False}
    with Broker(settings, data_dir=tmp_path, log_retention_ms=5000, log_cleanup_policy=["delete", "compact"]) as broker:
        broker.create_topic("t")
        broker.create_topic("u", partitions=2, retention_ms=77)
        with Admin(broker.address) as admin:
            assert [len(topic.partitions) for topic in admin.list_topics().values()] == [4, 2]
            configs = {entry.name: entry.value for entry in admin.topic_configs("u")}
            assert (configs["retention.ms"], configs["cleanup.policy"]) == ("77", "delete,compact")
            with pytest.raises(KafkaError, match="unknown"):
                admin.describe_topics(["not-created"])


def test_a_wrong_setting_is_refused_when_the_broker_is_built() -> None:
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        Broker(num_partition=4)
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker({"num.partitions": 0})


def test_a_topic_that_exists_is_not_created_again() -> None:
    with Broker() as broker:
        assert broker.create_topic("t") == "t"
        with pytest.raises(KafkaError) as refused:
            broker.create_topic("t")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_nothing_is_left_behind(end: str) -> None:
    with Broker():
        pass  # what is imported, or opened once for all, is there now
    threads, files = set(threading.enumerate()), open_files()
    broker = Broker().start()
    folder, address = broker.data_dir, broker.address
    send(broker, "t", b"x")
    assert values(broker, "t", 1) == [b"x"]
    with socket.create_connection(("127.0.0.1", broker.port)):
        getattr(broker, end)()
        broker.stop()
    assert not set(threading.enumerate()) - threads
    assert not open_files() - files
    assert not folder.exists()
    assert not listens(address)


def test_a_data_folder_is_kept_and_stopped_cleanly(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        send(broker, "t", b"x")
    assert (tmp_path / CLEAN_MARKER).exists()
    with Broker(data_dir=tmp_path) as again:
        assert values(again, "t", 1) == [b"x"]


def test_a_restart_keeps_the_address_the_records_and_the_clients() -> None:
    with Broker() as broker, Producer(broker.address) as producer:
        address = broker.address
        producer.send("t", b"before").result()
        broker.restart()
        assert broker.address == address
        producer.send("t", b"after").result()
        assert values(broker, "t", 2) == [b"before", b"after"]


def test_a_killed_broker_keeps_its_files_and_recovers_from_them(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        send(broker, "t", b"written")
        broker.kill()
        assert not broker.running and not listens(broker.address)
        assert not (tmp_path / CLEAN_MARKER).exists()
        broker.start()
        assert values(broker, "t", 1) == [b"written"]


def test_only_a_broker_with_a_data_folder_flushes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a temporary broker has written survives a kill without it."""
    flushed = list[int]()
    monkeypatch.setattr(os, "fsync", flushed.append)
    with Broker() as broker:
        send(broker, "t", b"written")
        broker.restart()
        broker.kill()
        broker.start()
        assert values(broker, "t", 1) == [b"written"]
    assert not flushed
    with Broker(data_dir=tmp_path):
        pass
    assert flushed


def test_a_request_in_flight_is_not_answered_by_a_killed_broker() -> None:
    """A member waits for its group for as long as the rebalance takes; the kill ends its connection instead."""
    with Broker(group_initial_rebalance_delay_ms=600_000) as broker, Consumer(broker.address, group_id="g") as consumer:
        broker.create_topic("t")
        consumer.subscribe(["t"])
        consumer.poll(0)
        broker.kill()
        assert not broker.running


def test_what_fails_because_the_broker_is_killed_is_no_fault_of_it() -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            logging.getLogger("moldau.work").error("cut off", exc_info=RuntimeError("cut off"))

    with Broker() as broker:
        life = broker._life
        assert life is not None
        life._loop.call_soon_threadsafe(lambda: life._loop.create_task(work()))
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), life._loop).result()
        broker.kill()
        assert not broker.running


def test_a_broker_is_used_from_asyncio() -> None:
    async def scenario() -> list[bytes | None]:
        async with Broker() as broker:
            await asyncio.to_thread(send, broker, "t", b"x")
            return await asyncio.to_thread(values, broker, "t", 1)

    assert asyncio.run(scenario()) == [b"x"]


def test_a_failure_of_the_start_is_raised_where_it_was_asked_for() -> None:
    with Broker() as broker:
        with pytest.raises(OSError, match="in use by another process"):
            Broker(listeners=f"PLAINTEXT://127.0.0.1:{broker.port}").start()


def test_a_failed_start_leaves_no_folder_and_can_be_repeated(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    broker = Broker(data_dir=occupied / "data")
    with pytest.raises(OSError, match="file"):
        broker.start()
    occupied.unlink()
    with broker:
        assert broker.running


def test_a_fault_in_the_brokers_thread_is_raised_in_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.log.log import Log

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug of the broker")

    broker = Broker().start()
    broker.create_topic("t")
    with monkeypatch.context() as patched, Producer(broker.address, delivery_timeout_ms=2000) as producer:
        patched.setattr(Log, "append", broken)
        with pytest.raises(KafkaError):
            producer.send("t", b"x").result()
    with pytest.raises(BrokerFailed, match="a bug of the broker") as failed:
        broker.stop()
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert not broker.running


def test_a_broker_that_loses_its_folder_has_failed(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path / "data").start()
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    broker.clock.advance(minutes=5)
    assert wait_until(lambda: not broker.running)
    with pytest.raises(BrokerFailed, match="has ended"):
        broker.create_topic("t")
    broker.clock.advance(minutes=5)
    with pytest.raises(BrokerFailed, match="lost its data folder"):
        broker.stop()
    broker.stop()
    with broker:
        assert broker.running


def test_a_broker_that_ends_meanwhile_keeps_no_caller_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    async def endless(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    broker = Broker().start()
    monkeypatch.setattr("moldau.cluster.controlling.topic_changes.TopicChanges.create", endless)
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(broker.create_topic, "t")
        assert begun.wait(60)
        broker.kill()
        with pytest.raises(BrokerFailed, match="has ended"):
            waiting.result(60)
    broker.stop()


def test_a_reset_broker_is_as_the_next_test_expects_it() -> None:
    with Broker() as broker:
        broker.create_topic("kept")
        broker.fault("Metadata", drop="before")
        broker.clock.advance(days=1)
        broker.clock._loop.call_soon_threadsafe(lambda: 1 / 0)  # type: ignore[union-attr]
        broker.clock.advance(ms=1)
        with pytest.raises(BrokerFailed, match="ZeroDivisionError"):
            broker.reset()
        broker.kill()
        for _ in range(2):
            broker.reset()
            assert broker.running and not broker.clock.ahead_s
        with Admin(broker.address, default_api_timeout_ms=20_000) as admin:
            assert "kept" in admin.list_topics()


def test_a_broker_says_in_one_sentence_that_it_does_not_run() -> None:
    broker = Broker()
    assert repr(broker) == "<moldau.testing.Broker, not started>"
    for use in (lambda: broker.address, lambda: broker.data_dir, broker.kill, broker.restart):
        with pytest.raises(MoldauError, match="broker"):
            use()
    with pytest.raises(MoldauError, match="does not run"):
        broker.create_topic("t")
    with broker, pytest.raises(MoldauError, match="runs already"):
        broker.start()
    broker.stop()
