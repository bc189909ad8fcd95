"""Tellers move money between 50 accounts in transactions at the same time, abort some, run out of time with others and
are killed, and so is the broker: whoever reads what is committed finds the same sum, whenever.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.patience import Deadline
from harness.tiers import LONG
from moldau.client.administration.admin import Admin
from tests.clients.client import DRIVERS
from tests.clients.referee import BrokerOfATest, kill_and_start, of_its_own, sizes
from tests.clients.transactions.conftest import KILLS
from tests.clients.transactions.judging import Books, entries, faults_of_an_audit, faults_of_the_end
from tests.clients.transactions.reading import contents
from tests.clients.transactions.workers import FENCED, Worker
from tests.environments import python_with
from tests.versions import CONFLUENT

pytestmark = pytest.mark.check

TOPIC, PARTITIONS = "transfers", 5
ACCOUNTS, DEPOSIT = 50, 100
TOTAL = ACCOUNTS * DEPOSIT
TELLERS = 3
TIMEOUT_MS = 2000
SETTLED_SECONDS_MAX = 60
BROKER = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.num.partitions": "4",
}


@dataclass
class Bank:
    broker: BrokerOfATest
    folder: Path
    chance: random.Random
    started: int = 0
    timed_out: int = 0
    tellers: list[Worker] = field(default_factory=list)
    everyone: list[Worker] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def start(self, transactional_id: str, deposit: int = 0, stalls: tuple[int, ...] = ()) -> Worker:
        self.started += 1
        asked = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "name": f"t{self.started}",
            "seed": self.chance.random(),
            "accounts": ACCOUNTS,
            "partitions": PARTITIONS,
            "deposit": deposit,
            "stalls": stalls,
            "linger_ms": 20,
        }
        command = [python_with(CONFLUENT), DRIVERS / "transferring.py", self.broker.address, TOPIC]
        worker = Worker([*command, json.dumps(asked)], self.folder / f"teller-{self.started}.log")
        self.everyone.append(worker)
        return worker

    def open(self) -> None:
        opening = self.start("opening", DEPOSIT)
        assert opening.wait_for_its_end(60) == 0, opening.errors()
        opening.end()
        self.tellers = [self.start(f"teller-{number}", stalls=(5,)) for number in range(TELLERS)]

    def strike(self, number: int) -> None:
        """Kill one of them in the middle of what it does; another takes over its transactional id, or lets it time
        out."""
        place = self.chance.randrange(TELLERS)
        self.tellers[place].wait_until_it_speaks(10)
        time.sleep(self.chance.uniform(0, 0.03))
        self.tellers[place].kill()
        if number % 4 == 1:
            kill_and_start(self.broker)
        fresh = self.chance.random() < 0.4
        self.tellers[place] = self.start(f"teller-{place}{f'-{self.started}' if fresh else ''}", stalls=(20,))

    def revive(self) -> None:
        """A teller that ran out of time was fenced, and another takes its place."""
        for place, teller in enumerate(self.tellers):
            if teller.ended:
                if (code := teller.wait_for_its_end(0)) != FENCED:
                    self.faults.append(f"a teller ended with {code}: {teller.errors()}")
                teller.kill()
                self.timed_out += 1
                self.tellers[place] = self.start(f"teller-{place}", stalls=(5,))

    def told(self, what: str) -> list[str]:
        """The transactions of which the tellers say that they did that."""
        lines = [line.partition(" ") for teller in self.everyone for line in list(teller.said)]
        return [name for verb, _, name in lines if verb == what]

    def has_done_enough(self) -> bool:
        """Some of each: commits, aborts, and transactions that ran out of time."""
        over_time = self.timed_out + len(self.told("failed"))
        return len(self.told("committed")) > 5 * KILLS and len(self.told("aborted")) > KILLS and over_time > 0

    def books(self) -> Books:
        return entries(contents(self.broker.address, TOPIC, PARTITIONS))

    def end(self) -> None:
        for teller in self.everyone:
            teller.kill()


@pytest.fixture(params=sizes(3))
def bank(request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> Iterator[Bank]:
    broker = of_its_own(tmp_path, BROKER, request.param)
    broker.start()
    ours = Bank(broker, tmp_path, random.Random(seed))
    try:
        yield ours
    finally:
        ours.end()
        broker.kill()


@pytest.mark.timeout(0 if LONG else 300)
def test_the_sum_of_all_accounts_is_the_same_whenever_it_is_read(bank: Bank, seed: int) -> None:
    with Admin(bank.broker.address) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
    bank.open()
    seen: Books = {}
    faults: list[str] = []
    for number in range(KILLS):
        bank.strike(number)
        bank.revive()
        now = bank.books()
        faults += faults_of_an_audit(now, TOTAL, seen)
        seen = now
    until = Deadline(SETTLED_SECONDS_MAX)
    while not (enough := bank.has_done_enough()) and not until.passed:
        bank.revive()
        time.sleep(0.05)
    bank.end()
    committed = bank.told("committed")
    until = Deadline(SETTLED_SECONDS_MAX)
    while faults_of_the_end(seen := bank.books(), TOTAL, committed) and not until.passed:
        time.sleep(0.2)
    faults += bank.faults + faults_of_the_end(seen, TOTAL, committed)
    assert not faults, "\n".join([f"MOLDAU_SEED={seed}", *faults])
    assert enough, "too little happened to show anything"
    everything = entries(contents(bank.broker.address, TOPIC, PARTITIONS, "read_uncommitted"))
    assert any(entry.doomed for rows in everything.values() for entry in rows)
    bank.broker.stop()
