"""Plain data leaves the broker by `sendfile`: counted at the system call, in a broker that runs in this process."""

import asyncio
import os
from pathlib import Path

import pytest

from harness.patience import within
from moldau.broker import Broker
from moldau.config import broker_config
from moldau.runtime import Runtime
from tests.differential.batches import NOW, batch
from tests.end_to_end.raw import Raw

TOTAL_BYTES = 100 << 20
BATCH = batch(bytes(900_000), timestamp=NOW)


def test_nine_tenths_of_a_hundred_megabytes_leave_by_sendfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sent = 0
    sendfile = os.sendfile

    def counting(out_fd: int, in_fd: int, offset: int, count: int) -> int:
        nonlocal sent
        done = sendfile(out_fd, in_fd, offset, count)
        sent += done
        return done

    monkeypatch.setattr(os, "sendfile", counting)
    received = 0

    def read(address: str) -> None:
        nonlocal received
        with Raw(address) as raw:
            raw.create_topic("plain")
            end = TOTAL_BYTES // len(BATCH) + 1
            for _ in range(end):
                assert raw.produce("plain", BATCH)[0] == 0
            offset = 0
            while offset < end:
                records = raw.fetch("plain", offset, max_bytes=10 << 20).records
                received += len(records)
                offset += len(records) // len(BATCH)

    async def scenario() -> None:
        config, _ = broker_config({"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0"})
        broker = Broker(config, Runtime())
        await broker.start()
        try:
            await within(asyncio.to_thread(read, f"127.0.0.1:{broker.port}"), 60)
        finally:
            await broker.stop()

    asyncio.run(scenario())
    assert received >= TOTAL_BYTES
    assert sent >= 0.9 * received
