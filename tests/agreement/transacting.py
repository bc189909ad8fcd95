"""`python -m tests.agreement.transacting FOLDER stopped` leaves in that folder what a broker of ours has when it had
transactions of every kind, in virtual time, and was stopped (or `killed`): the same bytes each time.

The steps of the script take their times from the clock when they are loaded; in this process the clock stands still.
"""

import sys
from pathlib import Path

from harness.listening import Broker as Address
from moldau.protocol.apis import FIND_COORDINATOR
from moldau.simulation.ports import START_MS
from moldau.simulation.world import PORT
from tests.agreement.standing import DAY_MS, HOST, InVirtualTime
from tests.differential import batches
from tests.differential.brokers import SETTINGS
from tests.differential.playing import Player
from tests.differential.script import Step, step


def steps() -> list[Step]:
    """Transactions of every kind; loaded when they are asked for."""
    from tests.differential.steps import transaction_lives, transaction_offsets, transactions

    return [
        step("a coordinator of groups", FIND_COORDINATOR, 3, {"key": "g", "key_type": 0}),
        *transactions.STEPS,
        *transaction_offsets.STEPS,
        *transaction_lives.STEPS,
    ]


def leave(folder: Path, is_stopped: bool) -> None:
    broker = InVirtualTime(SETTINGS)
    try:
        broker.start()
        player = Player(Address("Moldau", HOST, PORT), stretch=lambda seconds: seconds)
        outcomes = broker.run(player.play(steps()))
        assert {outcome.kind for outcome in outcomes} == {"reply"}
        if is_stopped:
            broker.stop()
        else:
            broker.kill()
        broker.copy(folder)
    finally:
        broker.close()


if __name__ == "__main__":
    batches.NOW, batches.T0 = START_MS, START_MS - DAY_MS
    leave(Path(sys.argv[1]), sys.argv[2] == "stopped")
