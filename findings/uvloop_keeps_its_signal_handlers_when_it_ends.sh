#!/usr/bin/env bash
# What: a handler that a program gave to `loop.add_signal_handler` is gone when `asyncio.run` has ended, and Ctrl-C raises
#   KeyboardInterrupt again. After `uvloop.run` uvloop's handler stays, with a loop that is closed: Ctrl-C does nothing.
# Guess: uvloop stands in for asyncio's loop, so what the loop has changed in the process ends with it in the same way.
# Seen: uvloop 0.23.0, CPython 3.11.7 on Linux, 2026-11-28: after asyncio `KeyboardInterrupt`, after uvloop `nothing`.
# Source: met when tests of Ctrl-C waited for ever in a process in which a server had run, and ended, before.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet uvloop==0.23.0
cat >ctrl_c.py <<'PYTHON'
import asyncio
import signal
import time

import uvloop

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C


async def serve():
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, print)


def after(run):
    run(serve())
    try:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    return "nothing"


print("asyncio", after(asyncio.run))
print("uvloop", after(uvloop.run))
PYTHON
venv/bin/python ctrl_c.py | tee seen
[[ $(<seen) == $'asyncio KeyboardInterrupt\nuvloop nothing' ]]
