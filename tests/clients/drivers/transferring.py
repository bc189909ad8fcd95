"""confluent-kafka moves money between accounts in transactions: `python transferring.py BOOTSTRAP TOPIC JSON`.

JSON has `transactional.id`, `transaction.timeout.ms`, `name` (what its transactions' names begin with), `seed`,
`accounts`, `partitions`, `deposit` (more than 0: it opens the accounts with that and ends), `stalls` (of which
transactions it stalls until it must be timed out) and `linger_ms`. An account is in the partition of its number. It
prints `ready`, `began NAME`, `wrote NAME`, and `committed NAME`, `aborted NAME` or `failed NAME`. It ends with code 3
if it was fenced, and with 0 when its input is closed.
"""

import json
import random
import sys
import time
from typing import Any

from confluent_kafka import KafkaException, Producer
from transacting import Fenced, insist, run, say

SECONDS = 20


class Teller:
    def __init__(self, bootstrap: str, topic: str, asked: dict[str, Any]):
        self.topic = topic
        self.asked = asked
        self.chance = random.Random(asked["seed"])
        own = {name: asked[name] for name in ("transactional.id", "transaction.timeout.ms")}
        reconnect = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, "log_level": 3}
        self.producer = Producer({**reconnect, **own, "linger.ms": 0})
        insist(lambda: self.producer.init_transactions(SECONDS))
        say("ready")

    def transfers(self) -> list[tuple[int, int]]:
        """Accounts and amounts of one transaction, 0 together."""
        found = []
        for _ in range(self.chance.choice((1, 1, 1, 4))):
            giver, taker = self.chance.sample(range(self.asked["accounts"]), 2)
            amount = self.chance.randint(1, 50)
            found += [(giver, -amount), (taker, amount)]
        return found

    def transact(self, number: int) -> None:
        name = f"{self.asked['name']}-{number}"
        stalls = number in self.asked["stalls"]
        doomed = stalls or self.chance.random() < 0.25
        try:
            say(f"began {name}")
            self.producer.begin_transaction()
            self.write(name, self.transfers(), doomed)
            say(f"wrote {name}")
            self.linger()
            if stalls:
                time.sleep(self.asked["transaction.timeout.ms"] / 1000 + 2)
            if doomed and not stalls:
                insist(lambda: self.producer.abort_transaction(SECONDS))
                say(f"aborted {name}")
            else:
                insist(lambda: self.producer.commit_transaction(SECONDS))
                say(f"committed {name}")
        except KafkaException as failure:
            error = failure.args[0]
            print(name, error, file=sys.stderr, flush=True)
            if not error.txn_requires_abort():
                raise Fenced(str(error)) from failure
            insist(lambda: self.producer.abort_transaction(SECONDS))
            say(f"failed {name}")

    def write(self, name: str, rows: list[tuple[int, int]], doomed: bool) -> None:
        for account, amount in rows:
            value = {"transaction": name, "amount": amount, "of": len(rows), "doomed": doomed}
            partition = account % self.asked["partitions"]
            self.producer.produce(self.topic, json.dumps(value), str(account), partition=partition)
        self.producer.flush(SECONDS)

    def linger(self) -> None:
        time.sleep(self.chance.uniform(0, self.asked["linger_ms"]) / 1000)

    def open_accounts(self, deposit: int) -> None:
        self.producer.begin_transaction()
        name = f"{self.asked['name']}-open"
        self.write(name, [(account, deposit) for account in range(self.asked["accounts"])], doomed=False)
        insist(lambda: self.producer.commit_transaction(SECONDS))
        say(f"committed {name}")


def main() -> None:
    bootstrap, topic, asked = sys.argv[1:]
    teller = Teller(bootstrap, topic, json.loads(asked))
    if deposit := teller.asked["deposit"]:
        teller.open_accounts(deposit)
        return
    number = 0
    while True:
        teller.transact(number)
        teller.linger()
        number += 1


run(main)
