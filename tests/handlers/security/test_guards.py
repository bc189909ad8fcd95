"""A broker without security imports none of it."""

import subprocess
import sys
from pathlib import Path

START = """
import asyncio, sys
from moldau.broker import Broker
from moldau.config import broker_config
from moldau.runtime import Runtime

async def main():
    broker = Broker(broker_config({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": sys.argv[1]})[0], Runtime())
    await broker.start()
    print(*(name for name in sys.modules if name.startswith(("moldau.", "cryptography"))))
    await broker.stop()

asyncio.run(main())
"""
OF_SECURITY = (
    "cryptography",
    "moldau.handlers.security",
    "moldau.net.acceptor",
    "moldau.net.admission",
    "moldau.requests.authentication",
    "moldau.requests.logins",
    "moldau.security",
    "moldau.transport",
)


def test_a_broker_without_security_imports_none_of_it(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", START, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "moldau.net.accepted" in done.stdout.split()
    assert [name for name in done.stdout.split() if name.startswith(OF_SECURITY)] == []
