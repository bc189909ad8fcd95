"""The end of a story: nothing goes wrong any more, and what must be true of groups then.

Every group has to come to rest within a bound and stay there: each partition with one member, nobody turned away. At
last all go, the broker starts once more, and the offsets that were acknowledged are those that are read; or time goes
on until even they are forgotten.
"""

import asyncio

from moldau.names import TopicPartition
from moldau.simulation.groups.classic import ClassicMember
from moldau.simulation.groups.member import Caller
from moldau.simulation.groups.plan import FORGETS_S, RETENTION_S, SESSION_MS
from moldau.simulation.groups.stage import BROKER, Played, Stage
from moldau.simulation.network import Weather

CALM_S = 6.0
QUIET_S = 2.5
"""So long nothing changes in a group that is at rest: longer than an assignment is put off."""
BUSY_SLACK_S = 12.0
BACK_S = 5.0
SLACK_S = 25.0
"""For connections that are dialled again, backoffs, and the rounds of a cooperative rebalance."""


class Rest(Stage):
    async def _calm(self) -> None:
        """Nothing goes wrong any more: all groups come to rest in time, and stay so."""
        faults = self.world.host(BROKER).disk.faults
        if faults is not None:
            faults.watch = None
        self.world.network.weather = Weather(delay_ms_max=10)
        self.world.network.heal()
        self.outsider.is_calm = True
        await asyncio.gather(*self._errands, return_exceptions=True)
        while not self._is_up or self.outsider.interferes:
            await asyncio.sleep(0.1)
        self._living()
        for played in self.seats:
            for process in played.processes[:-1]:
                self._kill(process)
            if not played.processes and not self._members(played.seat.group):
                self._sit(played)
        await self._downgrade()
        for _, process in self._living():
            self._heal(process.host)
            process.member.frozen_until_s = 0.0
        await self._stay_busy()
        for _, process in self._living():
            process.member.busy_until_s = 0.0
        if self._plan.max_size:
            self.max_size, self.scene.is_limited = self._plan.max_size, True
            await self._die_once()
        begun_s = self.world.loop.time()
        bound_s = begun_s + (SESSION_MS + 2 * self._plan.rebalance_ms + self._plan.initial_delay_ms) / 1000 + SLACK_S
        self.settled_after_s = await self._come_to_rest(begun_s, bound_s) - begun_s
        self.ledger.calm_s = self.world.loop.time()
        await self._come_back()
        if self.random.random() < 0.3:
            await self._survive()
        await self._rest()

    async def _come_to_rest(self, begun_s: float, bound_s: float) -> float:
        """Wait until nothing changes any more; since when that is so."""
        epochs, since_s = self._epochs(), begun_s
        while self.world.loop.time() < since_s + QUIET_S:
            restless = self._restless(begun_s)
            if restless is not None or epochs != self._epochs():
                epochs, since_s = self._epochs(), self.world.loop.time()
            if since_s > bound_s:
                raise self.ledger.broken(f"not at rest after {bound_s - begun_s:.0f} s: {restless or epochs}")
            await asyncio.sleep(0.25)
            self.ledger.check()
        return since_s

    async def _stay_busy(self) -> None:
        """Somebody is busy for longer than a rebalance waits, and another one comes: nobody waits for ever. A classic
        member that is not static is out: it was told to join again, and did not, or did not ask for its share."""
        rebalance_s, until_s = self._plan.rebalance_ms / 1000, 0.0
        out: list[tuple[str, str]] = []
        for group in self.groups[1:]:
            self._living()
            played = [one for one in self.seats if one.seat.group == group and one.processes]
            mine = [(one, one.processes[-1]) for one in played]
            if len(mine) < 2 or self.random.random() < 0.5:
                continue
            (_, busy), (place, other) = self.random.sample(mine, 2)
            until_s = self.world.loop.time() + 2 * rebalance_s + BUSY_SLACK_S
            if isinstance(busy.member, ClassicMember) and self.random.random() < 0.5:
                busy.member.stalls_until_s = until_s
            busy.member.busy_until_s = until_s if busy.member.stalls_until_s == 0.0 else 0.0
            dynamic = busy.member.seat.instance_id is None and place.seat.instance_id is None
            if dynamic and isinstance(busy.member, ClassicMember) and busy.member.settled:
                out.append((group, busy.member.member_id))
            await asyncio.sleep(self.random.random() * 2)
            self._kill(other)
            self._sit(place)
        while self.world.loop.time() < until_s - 0.5:
            await asyncio.sleep(0.25)
            self.ledger.check()
        for group, member_id in out:
            self.scene.check_left(group, member_id, until_s)

    async def _downgrade(self) -> None:
        """In some groups all who speak the newer protocol go, if there are others. The broker may die as soon as the
        group is classic."""
        for group in self.groups[1:]:
            mine = [(played, process) for played, process in self._living() if played.seat.group == group]
            newer = [process for played, process in mine if played.seat.kind == "consumer"]
            if 0 < len(newer) < len(mine) and self.random.random() < 0.5:
                for process in newer:
                    self._kill(process)
                if self.random.random() < 0.5:
                    await self._die_once_classic(group)

    async def _die_once_classic(self, group: str) -> None:
        until_s = self.world.loop.time() + SESSION_MS / 1000 + 2
        while self.world.loop.time() < until_s and group not in self.committed.classic(self._broker):
            await asyncio.sleep(0.005)
        await self._die_once()

    async def _die_once(self) -> None:
        self._kill_broker()
        while not self._is_up:
            await asyncio.sleep(0.01)

    def _restless(self, since_s: float = 0.0) -> str | None:
        """What is not yet as it is to be. The dead are missed after a session, and the fenced have to hear of it; each
        time a group changes its protocol its members have a new session, the dead as well."""
        if self.world.loop.time() < since_s + SESSION_MS / 1000 + 1:
            return "it may be quiet only because nobody has noticed yet"
        self._count_partitions()
        for played in self.seats:
            if not self._members(played.seat.group):
                self._sit(played)
        for group in self.groups[1:]:
            members = self._members(group)
            if not members:
                return f"{group} has nobody"
            well = all(member.settled and member.well_s > since_s for member in members)
            if len({member.epoch for member in members}) > 1 or not well:
                said = ", ".join(f"{m.name} at {m.epoch}{'' if m.settled else ' unsettled'}" for m in members)
                return f"{group}: {said}"
            if self.max_size and len(members) > self.max_size and self.scene.is_classic(group):
                return f"{group} has {len(members)} members, and may have {self.max_size}"
            if dead := self.committed.members(self._broker, group) - {member.member_id for member in members}:
                return f"{group} has members that nobody is: {sorted(dead)}"
            topics = dict.fromkeys(topic for member in members for topic in member.seat.topics)
            wanted = sorted(TopicPartition(t, number) for t in topics for number in range(self.partitions[t]))
            owned = sorted(place for member in members for place in member.owned)
            if owned != wanted:
                return f"{group} works on {owned} instead of {wanted}"
        return None

    async def _rest(self) -> None:
        before = self.ledger.errors.copy()
        epochs = self._epochs()
        until_s = self.world.loop.time() + CALM_S
        for _, process in self._living():
            member = process.member
            if isinstance(member, ClassicMember) and member.owned and self.scene.is_classic(member.group):
                if self.random.random() < 0.6:
                    continue
                until_s = self.world.loop.time() + SESSION_MS / 1000 + 2
                member.only_commits_until_s = until_s
        while self.world.loop.time() < until_s:
            await asyncio.sleep(0.5)
            self._look()
            if (restless := self._restless()) is not None:
                raise self.ledger.broken(f"no longer at rest, though all is well: {restless}")
        self.committed.check_settled(self._broker)
        if self.ledger.errors != before:
            raise self.ledger.broken(f"errors though all is well: {self.ledger.errors - before}")
        if self._epochs() != epochs:
            raise self.ledger.broken(f"rebalances though all is well: {epochs} became {self._epochs()}")

    async def _survive(self) -> None:
        """The broker dies once more, and comes back at once: nobody is forgotten, and nobody joins again but for those
        who did not hear from it in time."""
        epochs, late = self._epochs(), self._times_too_late()
        await self._die_once()
        begun_s = self.world.loop.time()
        await self._come_to_rest(begun_s, begun_s + SLACK_S + (SESSION_MS + self._plan.rebalance_ms) / 1000)
        if late == self._times_too_late() and epochs != self._epochs():
            raise self.ledger.broken(f"the broker came back, and {epochs} became {self._epochs()}")

    def _times_too_late(self) -> int:
        return sum(process.member.times_too_late for _, process in self._living())

    async def _come_back(self) -> None:
        """A static member is started again: it has what it had, and nobody else is troubled with it (KIP-345)."""
        for played, process in self._living():
            seat, before = played.seat, process.member
            if seat.instance_id is None or seat.kind == "cooperative" or self.max_size or self.random.random() < 0.5:
                continue
            if seat.kind == "consumer":
                await self._refuses_another(played)
            epochs = self._epochs()
            if seat.kind == "consumer":
                before.leaves = before.for_now = True
                await self._leave(process)
            else:
                self._kill(process)
            self._sit(played)
            back, patient_until_s = played.processes[-1].member, self.world.loop.time() + BACK_S
            while not back.settled or not back.well_s:
                if self.world.loop.time() > patient_until_s:
                    raise self.ledger.broken(f"{back.name} does not get its place back")
                await asyncio.sleep(0.1)
                self.ledger.check()
            epochs[back.name] = epochs.pop(before.name)
            if self._epochs() != epochs:
                raise self.ledger.broken(f"{back.name} came back, and {epochs} became {self._epochs()}")

    async def _refuses_another(self, played: Played) -> None:
        """By the newer protocol nobody takes the place of a static member that has not left."""
        self._sit(played)
        another = played.processes[-1]
        await asyncio.sleep(1.0)
        if another.member.epoch > 0:
            raise self.ledger.broken(f"{another.member.name} has the place of {played.processes[0].member.name}")
        self._kill(another)
        await asyncio.sleep(0.1)
        self._living()

    async def _end(self) -> None:
        """All go; what was acknowledged is there after one more start, and is forgotten when its time has come."""
        goodbyes = []
        left = {group: self._members(group) for group in self.groups[1:]}
        for _, process in self._living():
            if self.random.random() < 0.7:
                goodbyes.append(self._leave(process))
            else:
                self._kill(process)
        await asyncio.gather(*goodbyes)
        for group, members in left.items():
            stored = self.committed.members(self._broker, group)
            if stored and all(member.has_left for member in members):
                raise self.ledger.broken(f"all have left {group}, which has {sorted(stored)} in the log")
        if self.random.random() < 0.4:
            await self.outsider.deletes(self.groups[1:])
        await self._stop_cleanly()
        while not self._is_up or not self.committed.check_coordinator(self._broker):
            await asyncio.sleep(0.1)
        forgets = self.random.random() < 0.3
        if forgets:
            longest_ms = 2 * SESSION_MS + self._plan.rebalance_ms + self._plan.initial_delay_ms
            await asyncio.sleep(RETENTION_S + 2 * FORGETS_S + longest_ms / 1000)
            self._look()
        for group in self.groups:
            caller = Caller(self.scene, "reader", group)
            await self.world.on("reader", self.outsider.reads(caller))
            await self.world.on("reader", caller.close())
        listed = [listed.group_id for listed in self._broker.coordinators.groups.listed()]
        if forgets and listed:
            raise self.ledger.broken(f"{listed} should be forgotten long ago")
