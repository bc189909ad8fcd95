"""Somebody who is in no group: commits, reads and deletes offsets, deletes groups and throws members out, as
administrators' tools do."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from moldau.client.failures import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import DELETE_GROUPS, LEAVE_GROUP, OFFSET_DELETE
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.worlds.groups.ledger import GroupLedger
from tests.worlds.groups.member import CALL_MS, PERHAPS, GroupCaller, GroupScene, Seat
from tests.worlds.groups.plan import SESSION_MS
from tests.worlds.groups.register import Write

PAUSE_S_MAX = 3.0


class Outsider:
    """`groups` are those it looks after. While it `interferes` it does what members may have to get over."""

    def __init__(self, scene: GroupScene, groups: list[str], seats: list[Seat], seed: random.Random):
        self._scene = scene
        self._groups = groups
        self._instances = [(seat.group, seat.instance_id) for seat in seats if seat.instance_id is not None]
        self._random = seed
        self.is_calm = self.interferes = False

    async def live(self) -> None:
        callers = {group: GroupCaller(self._scene, "outsider", group) for group in self._groups}
        gentle: list[Callable[[GroupCaller], Awaitable[None]]] = [self._commits, self.reads]
        rough = [self._deletes_group, self._deletes_offsets, self._throws_out]
        try:
            while True:
                await asyncio.sleep(self._random.random() * PAUSE_S_MAX)
                self.interferes = not self.is_calm and self._random.random() < 0.4
                act = self._random.choice(rough if self.interferes else gentle)
                with contextlib.suppress(KafkaError):
                    await act(callers[self._random.choice(self._groups)])
                self.interferes = False
        except Exception as error:
            self._scene.ledger.broken(f"the outsider failed: {error!r}")
            raise
        finally:
            for caller in callers.values():
                await caller.close()

    def _everywhere(self) -> list[TopicPartition]:
        return [TopicPartition(t, number) for t, count in self._scene.partitions.items() for number in range(count)]

    async def _commits(self, caller: GroupCaller) -> None:
        await caller.commit([place for place in self._everywhere() if self._random.random() < 0.3])

    async def reads(self, caller: GroupCaller) -> None:
        await caller.fetch(self._everywhere())

    async def deletes(self, groups: list[str]) -> None:
        """Those that are empty are deleted, with their offsets."""
        for group in groups:
            caller = GroupCaller(self._scene, "outsider", group)
            with contextlib.suppress(KafkaError):
                await self._scene.world.on("outsider", self._deletes_group(caller))
            await self._scene.world.on("outsider", caller.close())

    async def _deletes_group(self, caller: GroupCaller) -> None:
        ledger, group = self._scene.ledger, caller.group
        places = dict.fromkeys([*ledger.places_of(group), *self._everywhere()])  # it may arrive behind later commits
        writes = {place: ledger.writes(group, place, None) for place in places}
        reply = await caller.call(DELETE_GROUPS, DeleteGroupsRequest(groups_names=[group]), purpose="commits")
        _note(ledger, group, writes, caller.understood(reply.results[0].error_code))

    async def _deletes_offsets(self, caller: GroupCaller) -> None:
        ledger, place = self._scene.ledger, self._random.choice(self._everywhere())
        writes = {place: ledger.writes(caller.group, place, None)}
        part = OffsetDeleteRequestPartition(partition_index=place.partition)
        topic = OffsetDeleteRequestTopic(name=place.topic, partitions=[part])
        request = OffsetDeleteRequest(group_id=caller.group, topics=[topic])
        reply = await caller.call(OFFSET_DELETE, request, purpose="commits")
        error = reply.error_code or reply.topics[0].partitions[0].error_code
        _note(ledger, caller.group, writes, caller.understood(error))

    async def _throws_out(self, caller: GroupCaller) -> None:
        instances = [instance_id for group, instance_id in self._instances if group == caller.group]
        if not instances:
            return
        instance_id, ledger = self._random.choice(instances), self._scene.ledger
        identity = MemberIdentity(member_id="", group_instance_id=instance_id)
        request = LeaveGroupRequest(group_id=caller.group, members=[identity])
        sent_s = caller.now
        ledger.may_be_out(caller.group, instance_id)
        try:
            reply = await caller.call(LEAVE_GROUP, request, purpose="commits")
        except KafkaError:
            ledger.is_out(caller.group, instance_id, None, caller.now + CALL_MS / 1000)
            raise
        error = caller.understood(reply.error_code) or error_of(reply.members[0].error_code)
        if error is ErrorCode.NONE:
            ledger.is_out(caller.group, instance_id, sent_s, caller.now + SESSION_MS / 1000)
        else:
            ledger.is_out(caller.group, instance_id, None, caller.now + (CALL_MS / 1000 if error in PERHAPS else 0.0))


def _note(ledger: GroupLedger, group: str, writes: dict[TopicPartition, Write], error: ErrorCode) -> None:
    for place, write in writes.items():
        if error is ErrorCode.NONE:
            ledger.wrote(group, place, write)
        elif error not in PERHAPS:
            ledger.did_not_write(group, place, write)
