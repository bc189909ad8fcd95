#!/usr/bin/env bash
# What: a kazoo client with several ZooKeeper servers waits for each TCP connection as long as the whole session
#   time-out. One server whose machine is off (its packets are dropped, nothing is refused) takes all the time in which
#   another one could have kept the session, so the loss of a single server of three can end the session.
# Guess: the servers share the session time-out, as in ZooKeeper's Java client, and as in kazoo's own next step: it waits
#   for the answer to the session request only for the time-out divided by the number of servers.
# Seen: kazoo 2.11.0, Python 3.11, Linux, 2026-11-28: with three silent servers and a session time-out of 3 s each
#   dial took 3.0 s instead of 1.0 s.
# Source: met as brokers that lost their sessions when one machine of an ensemble was switched off; the time-out that
#   kazoo/protocol/connection.py hands to `create_connection`, beside the one that it reads the answer with.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet kazoo==2.11.0
cat >dials.py <<'PYTHON'
import contextlib
import logging
import socket
import sys
import time

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler

logging.disable(logging.CRITICAL)
SESSION_S, SERVERS, DIALS = 3.0, 3, 2
dials = []


class Watched(SequentialThreadingHandler):
    """Dials as ever, and notes how long each dial took."""

    def create_connection(self, *args, **kwargs):
        began = time.monotonic()
        try:
            return super().create_connection(*args, **kwargs)
        finally:
            dials.append(time.monotonic() - began)


with contextlib.ExitStack() as stack:
    hosts = []
    for _ in range(SERVERS):
        # Nobody accepts, and the queue is full: further connections are dropped without an answer.
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        hosts.append("127.0.0.1:%d" % server.getsockname()[1])
    client = KazooClient(",".join(hosts), timeout=SESSION_S, handler=Watched())
    with contextlib.suppress(KazooTimeoutError):
        client.start(timeout=SESSION_S * DIALS + 1)
    client.stop()
    client.close()

whole = dials[:DIALS]
print(f"session time-out {SESSION_S:.0f} s, {SERVERS} silent servers: a dial took", *(f"{s:.1f} s" for s in whole))
print(f"guess: {SESSION_S / SERVERS:.1f} s each")
sys.exit(len(whole) < DIALS or min(whole) < SESSION_S * 0.9)
PYTHON
venv/bin/python dials.py
