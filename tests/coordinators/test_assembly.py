"""The coordinators' modules are imported when their topic is made, and never by the loop."""

import subprocess
import sys
from pathlib import Path

from harness.patience import stretched

SCRIPT = """
import asyncio, sys, threading
from pathlib import Path
from moldau.protocol import apis
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.handlers.living import living

imported = []

def note(event, arguments):
    if event == "import" and arguments[0].startswith("moldau.coordinators."):
        imported.append((arguments[0], threading.current_thread() is threading.main_thread()))

async def scene():
    async with living(Path(sys.argv[1]), offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1) as one:
        wire = await one.dial()
        sys.addaudithook(note)
        for kind in (0, 1):
            await wire.ask(apis.FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=kind, coordinator_keys=["a"]))
        print({name for name, by_loop in imported if by_loop})
        print(sorted({name.split(".")[2] for name, by_loop in imported if not by_loop}))

asyncio.run(scene())
"""


def test_the_first_group_and_the_first_transaction_do_not_hold_the_loop(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=stretched(60), check=True).stdout.splitlines()
    assert said[0] == "set()"
    assert {"groups", "transactions"} <= set(said[1].replace("'", "").strip("[]").split(", "))
