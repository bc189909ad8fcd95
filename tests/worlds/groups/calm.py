"""The end of a world of groups: nothing goes wrong any more, and what must be true of groups then.

Every group has to settle within a bound and stay so: each partition with one member, and no member turned away. At the
end all members go, the broker starts once more, and the offsets that were acknowledged are those that are read; or time
goes on until even they are forgotten.
"""

import asyncio

from moldau.names import TopicPartition
from moldau.simulation.network import Weather
from tests.worlds.groups.classic import ClassicMember
from tests.worlds.groups.member import GroupCaller
from tests.worlds.groups.plan import FORGETS_S, RETENTION_S, SESSION_MS
from tests.worlds.groups.stage import BROKER, GroupStage, TakenSeat

CALM_S = 6.0
QUIET_S = 2.5
"""So long nothing changes in a group that is at rest: longer than an assignment is put off."""
BUSY_SLACK_S = 12.0
BACK_S = 5.0
SLACK_S = 25.0
"""For connections that are dialled again, backoffs, and the rounds of a cooperative rebalance."""


class Calm:
    def __init__(self, stage: GroupStage):
        self._stage = stage
        self._world, self._random = stage.world, stage.random
        self._ledger, self._plan = stage.ledger, stage.plan

    async def settle(self) -> None:
        """Nothing goes wrong any more: all groups come to rest in time, and stay so."""
        faults = self._world.host(BROKER).disk.faults
        if faults is not None:
            faults.watch = None
        self._world.network.weather = Weather(delay_ms_max=10)
        self._world.network.heal()
        self._stage.outsider.is_calm = True
        await asyncio.gather(*self._stage.errands, return_exceptions=True)
        while not self._stage.is_up or self._stage.outsider.interferes:
            await asyncio.sleep(0.1)
        self._one_member_a_seat()
        await self._downgrade()
        for _, process in self._stage.living():
            self._stage.heal(process.host)
            process.member.frozen_until_s = 0.0
        await self._stay_busy()
        for _, process in self._stage.living():
            process.member.busy_until_s = 0.0
        if self._plan.max_size:
            self._stage.max_size, self._stage.scene.is_limited = self._plan.max_size, True
            await self._die_once()
        begun_s = self._world.loop.time()
        bound_s = begun_s + (SESSION_MS + 2 * self._plan.rebalance_ms + self._plan.initial_delay_ms) / 1000 + SLACK_S
        await self._come_to_rest(begun_s, bound_s)
        self._ledger.calm_s = self._world.loop.time()
        await self._come_back()
        if self._random.random() < 0.3:
            await self._survive()
        await self._rest()

    def _one_member_a_seat(self) -> None:
        """Of several processes in a seat only the newest one lives on; a group without members gets one."""
        self._stage.living()
        for taken in self._stage.seats:
            for process in taken.processes[:-1]:
                self._stage.kill(process)
            if not taken.processes and not self._stage.members(taken.seat.group):
                self._stage.sit(taken)

    async def _come_to_rest(self, begun_s: float, bound_s: float) -> None:
        """Wait until nothing has changed for `QUIET_S`. Raises `Broken` if the last change is after `bound_s`."""
        epochs, since_s = self._stage.epochs(), begun_s
        while self._world.loop.time() < since_s + QUIET_S:
            restless = self._restless(begun_s)
            if restless is not None or epochs != self._stage.epochs():
                epochs, since_s = self._stage.epochs(), self._world.loop.time()
            if since_s > bound_s:
                raise self._ledger.broken(f"not at rest after {bound_s - begun_s:.0f} s: {restless or epochs}")
            await asyncio.sleep(0.25)
            self._ledger.check()

    async def _stay_busy(self) -> None:
        """Somebody is busy for longer than a rebalance waits, and another one comes: nobody waits for ever. A classic
        member that is not static is out: it was told to join again, and did not, or did not ask for its share."""
        rebalance_s, until_s = self._plan.rebalance_ms / 1000, 0.0
        out: list[tuple[str, str]] = []
        for group in self._stage.groups[1:]:
            self._stage.living()
            taken = [one for one in self._stage.seats if one.seat.group == group and one.processes]
            mine = [(one, one.processes[-1]) for one in taken]
            if len(mine) < 2 or self._random.random() < 0.5:
                continue
            (_, busy), (place, other) = self._random.sample(mine, 2)
            until_s = self._world.loop.time() + 2 * rebalance_s + BUSY_SLACK_S
            if isinstance(busy.member, ClassicMember) and self._random.random() < 0.5:
                busy.member.stalls_until_s = until_s
            busy.member.busy_until_s = until_s if busy.member.stalls_until_s == 0.0 else 0.0
            dynamic = busy.member.seat.instance_id is None and place.seat.instance_id is None
            if dynamic and isinstance(busy.member, ClassicMember) and busy.member.settled:
                out.append((group, busy.member.member_id))
            await asyncio.sleep(self._random.random() * 2)
            self._stage.kill(other)
            self._stage.sit(place)
        while self._world.loop.time() < until_s - 0.5:
            await asyncio.sleep(0.25)
            self._ledger.check()
        for group, member_id in out:
            self._stage.scene.check_left(group, member_id, until_s)

    async def _downgrade(self) -> None:
        """In some groups all who speak the consumer protocol go, if there are others. The broker may die as soon as the
        group is classic."""
        for group in self._stage.groups[1:]:
            mine = [(taken, process) for taken, process in self._stage.living() if taken.seat.group == group]
            newer = [process for taken, process in mine if taken.seat.kind == "consumer"]
            if 0 < len(newer) < len(mine) and self._random.random() < 0.5:
                for process in newer:
                    self._stage.kill(process)
                if self._random.random() < 0.5:
                    await self._die_once_classic(group)

    async def _die_once_classic(self, group: str) -> None:
        until_s = self._world.loop.time() + SESSION_MS / 1000 + 2
        while self._world.loop.time() < until_s and group not in self._stage.committed.classic(self._stage.broker):
            await asyncio.sleep(0.005)
        await self._die_once()

    async def _die_once(self) -> None:
        self._stage.kill_broker()
        while not self._stage.is_up:
            await asyncio.sleep(0.01)

    def _restless(self, since_s: float = 0.0) -> str | None:
        """What is not yet as it is to be. The dead are missed after a session, and the fenced have to hear of it; each
        time a group changes its protocol its members have a new session, the dead as well."""
        if self._world.loop.time() < since_s + SESSION_MS / 1000 + 1:
            return "it may be quiet only because nobody has noticed yet"
        self._stage.count_partitions()
        for taken in self._stage.seats:
            if not self._stage.members(taken.seat.group):
                self._stage.sit(taken)
        for group in self._stage.groups[1:]:
            members = self._stage.members(group)
            if not members:
                return f"{group} has nobody"
            well = all(member.settled and member.well_s > since_s for member in members)
            if len({member.epoch for member in members}) > 1 or not well:
                said = ", ".join(f"{m.name} at {m.epoch}{'' if m.settled else ' unsettled'}" for m in members)
                return f"{group}: {said}"
            if self._stage.max_size and len(members) > self._stage.max_size and self._stage.scene.is_classic(group):
                return f"{group} has {len(members)} members, and may have {self._stage.max_size}"
            if dead := self._stage.committed.members(self._stage.broker, group) - {
                member.member_id for member in members
            }:
                return f"{group} has members that nobody is: {sorted(dead)}"
            topics = dict.fromkeys(topic for member in members for topic in member.seat.topics)
            wanted = sorted(TopicPartition(t, number) for t in topics for number in range(self._stage.partitions[t]))
            owned = sorted(place for member in members for place in member.owned)
            if owned != wanted:
                return f"{group} works on {owned} instead of {wanted}"
        return None

    async def _rest(self) -> None:
        before = self._ledger.errors.copy()
        epochs = self._stage.epochs()
        until_s = self._world.loop.time() + CALM_S
        for _, process in self._stage.living():
            member = process.member
            if isinstance(member, ClassicMember) and member.owned and self._stage.scene.is_classic(member.group):
                if self._random.random() < 0.6:
                    continue
                until_s = self._world.loop.time() + SESSION_MS / 1000 + 2
                member.only_commits_until_s = until_s
        while self._world.loop.time() < until_s:
            await asyncio.sleep(0.5)
            self._stage.look()
            if (restless := self._restless()) is not None:
                raise self._ledger.broken(f"no longer at rest, though all is well: {restless}")
        self._stage.committed.check_settled(self._stage.broker)
        if self._ledger.errors != before:
            raise self._ledger.broken(f"errors though all is well: {self._ledger.errors - before}")
        if self._stage.epochs() != epochs:
            raise self._ledger.broken(f"rebalances though all is well: {epochs} became {self._stage.epochs()}")

    async def _survive(self) -> None:
        """The broker dies once more, and comes back at once: nobody is forgotten, and nobody joins again but for those
        who did not hear from it in time."""
        epochs, late = self._stage.epochs(), self._times_too_late()
        await self._die_once()
        begun_s = self._world.loop.time()
        await self._come_to_rest(begun_s, begun_s + SLACK_S + (SESSION_MS + self._plan.rebalance_ms) / 1000)
        if late == self._times_too_late() and epochs != self._stage.epochs():
            raise self._ledger.broken(f"the broker came back, and {epochs} became {self._stage.epochs()}")

    def _times_too_late(self) -> int:
        return sum(process.member.times_too_late for _, process in self._stage.living())

    async def _come_back(self) -> None:
        """A static member is started again: it has what it had, and nobody else is troubled with it (KIP-345)."""
        for taken, process in self._stage.living():
            seat, before = taken.seat, process.member
            if (
                seat.instance_id is None
                or seat.kind == "cooperative"
                or self._stage.max_size
                or self._random.random() < 0.5
            ):
                continue
            if seat.kind == "consumer":
                await self._refuses_another(taken)
            epochs = self._stage.epochs()
            if seat.kind == "consumer":
                before.leaves = before.for_now = True
                await self._stage.leave(process)
            else:
                self._stage.kill(process)
            self._stage.sit(taken)
            back, patient_until_s = taken.processes[-1].member, self._world.loop.time() + BACK_S
            while not back.settled or not back.well_s:
                if self._world.loop.time() > patient_until_s:
                    raise self._ledger.broken(f"{back.name} does not get its place back")
                await asyncio.sleep(0.1)
                self._ledger.check()
            epochs[back.name] = epochs.pop(before.name)
            if self._stage.epochs() != epochs:
                raise self._ledger.broken(f"{back.name} came back, and {epochs} became {self._stage.epochs()}")

    async def _refuses_another(self, taken: TakenSeat) -> None:
        """By the consumer protocol nobody takes the place of a static member that has not left."""
        self._stage.sit(taken)
        another = taken.processes[-1]
        await asyncio.sleep(1.0)
        if another.member.epoch > 0:
            raise self._ledger.broken(f"{another.member.name} has the place of {taken.processes[0].member.name}")
        self._stage.kill(another)
        await asyncio.sleep(0.1)
        self._stage.living()

    async def end(self) -> None:
        """All go; what was acknowledged is there after one more start, and is forgotten when its time has come."""
        goodbyes = []
        left = {group: self._stage.members(group) for group in self._stage.groups[1:]}
        for _, process in self._stage.living():
            if self._random.random() < 0.7:
                goodbyes.append(self._stage.leave(process))
            else:
                self._stage.kill(process)
        await asyncio.gather(*goodbyes)
        for group, members in left.items():
            stored = self._stage.committed.members(self._stage.broker, group)
            if stored and all(member.has_left for member in members):
                raise self._ledger.broken(f"all have left {group}, which has {sorted(stored)} in the log")
        if self._random.random() < 0.4:
            await self._stage.outsider.deletes(self._stage.groups[1:])
        await self._stage.stop_cleanly()
        while not self._stage.is_up or not self._stage.committed.check_coordinator(self._stage.broker):
            await asyncio.sleep(0.1)
        forgets = self._random.random() < 0.3
        if forgets:
            longest_ms = 2 * SESSION_MS + self._plan.rebalance_ms + self._plan.initial_delay_ms
            await asyncio.sleep(RETENTION_S + 2 * FORGETS_S + longest_ms / 1000)
            self._stage.look()
        for group in self._stage.groups:
            caller = GroupCaller(self._stage.scene, "reader", group)
            await self._world.on("reader", self._stage.outsider.reads(caller))
            await self._world.on("reader", caller.close())
        listed = [listed.group_id for listed in self._stage.broker.coordinators.groups.listed()]
        if forgets and listed:
            raise self._ledger.broken(f"{listed} should be forgotten long ago")
