"""Bugs of the coordinators that simulated worlds must find: small edits of the production code, made in memory.

How edits are made and undone is in `edits`. With `power` the worlds are those whose power fails; `kind`
says what they are of.
"""

import logging
from typing import NamedTuple

from moldau.simulation.scenarios import live
from tests.simulation.edits import Edit, mutated
from tests.unlogged import unlogged

SEEDS_MAX = 300
"""Within so many seeds each mutation is caught."""
FIRST_SEED = 50_000
FIRST_SEEDS = {
    "a fenced member is taken for the one that fenced it": 50_050,
    "the end of a transaction is told before it is committed": 50_075,
    "who waits in a group that goes on to the newer protocol is forgotten": 50_038,
    "parked requests are forgotten at a resignation": 50_027,
    "decisions on their way are forgotten at a resignation": 50_023,
    "who replaces a static member is not told apart from it": 50_050,
    "what classic members had is not theirs in the newer group": 50_030,
    "a newer group does not notice that a topic grew": 50_025,
    "the epoch of a group that goes on to the newer protocol is one": 50_070,
    "a classic member that does not join again stays in a newer group": 50_160,
    "a group takes more members than it may": 50_015,
    "too many members stay after a start": 50_015,
}
"""Where to begin with what few worlds find."""


class Mutation(NamedTuple):
    edits: list[Edit]
    power: bool = False
    kind: str = "groups"


HOST = "moldau.coordinators.coordinator_runtime:CoordinatorRuntime"
GROUPS = "moldau.coordinators.classic.groups:ClassicGroups"
REBALANCE = "moldau.coordinators.classic.rebalance:Rebalance"
GROUP = "moldau.coordinators.classic.group:ClassicGroup"
CONSUMERS = "moldau.coordinators.consumer.groups:ConsumerGroups"
MIXED = "moldau.coordinators.consumer.mixed_groups:MixedGroups"
RECONCILING = "moldau.coordinators.consumer.reconciling"
OFFSETS = "moldau.coordinators.offsets.committed:CommittedOffsets"
APPEND = "        await self._log.append(replica.partition, batch)\n"
APPLY = "        for record in records:\n            self._answer(replica.machine.apply(record, now))"

MUTATIONS: dict[str, Mutation] = {
    "records are applied before they are committed": Mutation(
        [
            Edit(
                f"{HOST}._commit",
                APPEND,
                "        for record in records:\n"
                "            self._answer(replica.machine.apply(record, self.now()))\n" + APPEND,
            ),
            Edit(f"{HOST}._commit", "        now = self.now()\n" + APPLY, ""),
        ],
        power=True,
    ),
    "answers go out before the commit": Mutation(
        [
            Edit(
                f"{HOST}._append",
                "        await self._commit(",
                "        [self._answer(outcome.replies) for outcome in outcomes]\n        await self._commit(",
            )
        ],
        power=True,
    ),
    "records of one batch are applied backwards": Mutation(
        [Edit(f"{HOST}._commit", "for record in records:", "for record in reversed(records):")]
    ),
    "records of one batch are written backwards": Mutation(
        [Edit(f"{HOST}._commit", "for record in records])", "for record in reversed(records)])")]
    ),
    "a later decision overtakes an earlier one": Mutation(
        [Edit(f"{HOST}._carry_out", "replica.queue.append(outcome)", "replica.queue.insert(0, outcome)")]
    ),
    "parked requests are forgotten at a resignation": Mutation(
        [Edit(f"{HOST}.resign", "self._answer(replica.machine.stop(error))", "replica.machine.stop(error)")]
    ),
    "decisions on their way are forgotten at a resignation": Mutation(
        [Edit(f"{HOST}.resign", "self._refuse(outcome, error)", "pass")]
    ),
    "a coordinator begins without what was not flushed": Mutation(
        [
            Edit(
                "moldau.replication.internal_topic:InternalTopic.read_all",
                "while offset < replica.log.log_end_offset",
                "while offset < replica.log.log_end_offset - 1",
            )
        ]
    ),
    "tombstones of offsets are skipped": Mutation(
        [Edit(f"{OFFSETS}.apply", "    if value is None:\n", "    if value is None:\n        return None\n")]
    ),
    "tombstones of groups are skipped": Mutation(
        [Edit(f"{GROUPS}.apply", "self.stored.pop(record.group, None)", "pass")]
    ),
    "offsets are forgotten too early": Mutation(
        [Edit(f"{OFFSETS}._is_old", "wall_ms - since_ms >=", "4 * (wall_ms - since_ms) >=")]
    ),
    "offsets are never forgotten": Mutation([Edit(f"{OFFSETS}._is_old", "wall_ms - since_ms >=", "-1 >=")]),
    "a heartbeat does not keep a member": Mutation(
        [Edit(f"{GROUPS}.heartbeat", "self._rebalance.keep_alive(group, group.members[member_id], now)", "pass")]
    ),
    "a heartbeat of the newer protocol does not keep a member": Mutation(
        [Edit(f"{CONSUMERS}._reconcile", "self._keep_alive(group, after, now)", "pass")]
    ),
    "the session of a dead member never ends": Mutation(
        [Edit(f"{REBALANCE}._session_passed", "if member is None or", "if True or")]
    ),
    "sessions begin anew only for some after a start": Mutation(
        [Edit(f"{GROUPS}._revive", "self._rebalance.keep_alive(group, member, now)", "pass")]
    ),
    "sessions of the newer protocol are forgotten at a start": Mutation(
        [Edit(f"{CONSUMERS}._revive", "self._keep_alive(group, member, now)", "pass")]
    ),
    "the generation is not counted up": Mutation(
        [Edit(f"{GROUP}.begin_generation", "self.generation + 1 if", "max(self.generation, 1) if")]
    ),
    "a fenced member is taken for the one that fenced it": Mutation(
        [
            Edit(
                f"{GROUP}.check_member",
                "if holder != member_id:\n            return ErrorCode.FENCED_INSTANCE_ID",
                "return ErrorCode.NONE",
            ),
            Edit(
                f"{GROUPS}.heartbeat",
                "group.members[member_id]",
                "group.members.get(member_id) or [*group.members.values()][0]",
            ),
        ]
    ),
    "commits of an older generation are taken": Mutation(
        [Edit(f"{GROUPS}._check_generation", "generation != group.generation", "generation > group.generation")]
    ),
    "commits at any epoch are taken": Mutation(
        [
            Edit(
                "moldau.coordinators.consumer.rights:check_commit",
                "fine = ask.generation < member.epoch and given is not None and ask.generation >= given",
                "fine = True",
            )
        ]
    ),
    "a group is deleted though it has members": Mutation(
        [Edit(f"{GROUPS}.check_delete", "if group.state is ClassicGroupState.EMPTY else", "if True else")]
    ),
    "the assignment counts before it is committed": Mutation(
        [
            Edit(
                f"{GROUPS}.sync",
                "        generation = group.generation\n",
                "        generation = group.generation\n"
                "        self._rebalance.settle(group, {m.member_id: m.assignment for m in value.members}, now, out)\n"
                "        early, out.replies = out.replies, []\n"
                "        self.early.append(early)\n",
            ),
            Edit(f"{GROUPS}.sync", "    out = Decision()\n", "    out = Decision()\n    self.early = []\n"),
        ],
        power=True,
    ),
    "a revocation is not waited for": Mutation(
        [Edit(f"{RECONCILING}:_next", "if owner(topic, p) is None or", "if True or")]
    ),
    "a member goes on before it has given back": Mutation(
        [Edit(f"{RECONCILING}:_next", "if revoking and _has(reported, revoking):", "if False:")]
    ),
    "the epoch is not counted up when members go": Mutation(
        [
            Edit(
                f"{CONSUMERS}.fence",
                "self._write_epoch(group, metadata_hash(group.subscribed(), self._image()), out)",
                "pass",
            )
        ]
    ),
    "a member that has not given back in time stays": Mutation(
        [Edit(f"{CONSUMERS}.tick", "if what != REVOKE or", "if what != REVOKE and")]
    ),
    "who waits in a group that goes on to the newer protocol is forgotten": Mutation(
        [
            Edit(
                f"{GROUPS}.give_up",
                "out.reply(group.take_join(member), ",
                "(lambda *_: None)(group.take_join(member), ",
            )
        ]
    ),
    "a group that turns classic does not begin anew": Mutation(
        [
            Edit(
                f"{MIXED}._turn_back",
                "settled = not leaving and group.state is ConsumerGroupState.STABLE",
                "settled = True",
            )
        ]
    ),
    "classic members are not told what is new in a newer group": Mutation(
        [Edit(f"{MIXED}.heartbeat", "if not due:", "if True:")]
    ),
}

SHARD_OF_GROUPS = "moldau.coordinators.groups.shard:GroupShard"
CONSUMER_GROUP = "moldau.coordinators.consumer.group:ConsumerGroup"
MIGRATING = "moldau.coordinators.consumer.migration"
TARGET_EPOCH = 'self._write(group, ConsumerRecordType.TARGET_EPOCH, "", value, out)'
TARGET = "self._write(group, ConsumerRecordType.TARGET, member_id, target_of(target), out)"
JOIN_DEADLINE = 'self.deadlines.set((JOIN, group.group_id, ""), now.monotonic_ms + group.rebalance_timeout_ms())'


def _of_groups(where: str, old: str, new: str) -> Mutation:
    return Mutation([Edit(where, old, new)])


MUTATIONS |= {
    "a rebalance has no deadline": _of_groups(f"{REBALANCE}.start", f"    else:\n        {JOIN_DEADLINE}", ""),
    "a rebalance waits for ever for a busy member": _of_groups(
        f"{REBALANCE}._join_passed",
        "    else:\n        self.complete(group, now, out)",
        "    elif group.before is ClassicGroupState.EMPTY:\n        self.complete(group, now, out)",
    ),
    "an assignment that nobody gives is waited for for ever": _of_groups(
        f"{REBALANCE}.passed", "elif group.unsynced:", "elif False:"
    ),
    "a first rebalance is put off for ever": _of_groups(
        f"{REBALANCE}._join_passed", "group.grew = False\n        group.delay_left_ms -= delay_ms", "pass"
    ),
    "that a group is empty is not in the log": _of_groups(
        f"{REBALANCE}.complete", "out.records.append(classic_group_record(group.group_id, group.value()))", "pass"
    ),
    "a static member is replaced without its record": _of_groups(
        f"{GROUPS}._replace_static", "out.records.append(classic_group_record(group.group_id, group.value()))", "pass"
    ),
    "who replaces a static member is not told apart from it": _of_groups(
        f"{GROUPS}._replace_static", "group.rename(member, member_id)", "group.rename(member, old_id)"
    ),
    "a static member that comes back makes all join again": _of_groups(
        f"{GROUPS}._replace_static", "if group.state is not ClassicGroupState.STABLE or", "if True or"
    ),
    "a static member that is thrown out stays": _of_groups(
        f"{GROUPS}._leave_one", "        member_id = holder\n", "        return ErrorCode.NONE\n"
    ),
    "who leaves stays until its session ends": _of_groups(
        f"{GROUPS}._leave_one", "self._rebalance.drop(group, member_id, out)", "pass"
    ),
    "a commit does not keep a member": _of_groups(
        f"{GROUPS}.check_commit", "self._rebalance.keep_alive(group, group.members[member_id], now)", "pass"
    ),
    "heartbeats of unknown members are taken": _of_groups(
        f"{GROUPS}.heartbeat",
        "    if error is not ErrorCode.NONE:\n",
        "    if error is ErrorCode.UNKNOWN_MEMBER_ID:\n        return ErrorCode.NONE\n"
        "    if error is not ErrorCode.NONE:\n",
    ),
    "heartbeats of an older generation are taken": _of_groups(
        f"{GROUPS}.heartbeat",
        "if error is not ErrorCode.NONE:",
        "if error not in (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION):",
    ),
    "a rebalance goes on without those who are missing": _of_groups(
        f"{GROUP}.all_joined", "self.joining >= len(self.members) and not self.expected", "self.joining > 0"
    ),
    "a group takes more members than it may": _of_groups(
        f"{GROUPS}.join", "if not self._has_room(group, ask.member_id):", "if False:"
    ),
    "too many members stay after a start": _of_groups(
        f"{GROUPS}._revive", " or len(group.members) > self.settings.max_size", ""
    ),
    "a group that is loaded begins a rebalance": _of_groups(f"{GROUPS}._revive", "group.leader is None or", "True or"),
    "that a group turned classic has to join again is not in the log": _of_groups(
        f"{GROUPS}.adopt", "group.leader = None", "pass"
    ),
    "that a group turned classic has to join again is not read from the log": _of_groups(
        f"{GROUPS}._revive", "group.leader is None or ", ""
    ),
    "a coordinator that comes back is not loaded": _of_groups(
        f"{HOST}.lead", "if partition not in self._replica:", "if False:"
    ),
    "the offsets of a deleted classic group stay": _of_groups(
        f"{SHARD_OF_GROUPS}.delete_groups",
        "            self.offsets.delete_all(group_id, out)\n            self.groups.delete",
        "            self.groups.delete",
    ),
    "the offsets of a deleted group of the newer protocol stay": _of_groups(
        f"{SHARD_OF_GROUPS}.delete_groups",
        "                self.offsets.delete_all(group_id, out)\n                self.consumers",
        "                self.consumers",
    ),
    "what is still to be given back counts as free": _of_groups(
        f"{CONSUMER_GROUP}._own", "(member.assigned, member.revoking)", "(member.assigned,)"
    ),
    "what is still to be given back is not in the log": _of_groups(
        "moldau.coordinators.consumer.group:current_of", "_stored(member.revoking)", "[]"
    ),
    "the epoch of the target is not in the log": _of_groups(
        f"{CONSUMERS}._assign", TARGET_EPOCH, "group.target_epoch = group.epoch"
    ),
    "the target of a member is not in the log": _of_groups(
        f"{CONSUMERS}._assign", TARGET, "group.targets[member_id] = target"
    ),
    "a static member that is thrown out of a newer group stays": _of_groups(
        f"{CONSUMERS}.leave", "leaving[member.member_id] = member", "pass"
    ),
    "who leaves a newer group stays until its session ends": _of_groups(
        f"{CONSUMERS}._leave", "self.fence(group, [member], out)", "pass"
    ),
    "a static member that leaves for a while is out": _of_groups(
        f"{CONSUMERS}._leave", "if ask.epoch == LEAVES_FOR_NOW:", "if False:"
    ),
    "a static member gets nothing of what it had": _of_groups(
        f"{CONSUMERS}._replace", "target = group.targets.get(left.member_id, {})", "target = {}"
    ),
    "a static member is replaced though it has not left": _of_groups(
        f"{CONSUMERS}._member", "if member.epoch != LEAVES_FOR_NOW and member.classic is None:", "if False:"
    ),
    "the session of a dead member of a newer group never ends": _of_groups(
        f"{CONSUMERS}.tick", "self.fence(group, [member], out)", "pass"
    ),
    "a newer group does not notice that a topic grew": _of_groups(
        f"{CONSUMERS}._bump", "if changed or found != group.metadata_hash:", "if changed:"
    ),
    "a refused commit of a newer group is acknowledged": Mutation(
        [
            Edit(
                f"{SHARD_OF_GROUPS}._commit_newer",
                "    errors = check_commit(group, ask)\n",
                "    errors = check_commit(group, ask)\n    given = [ErrorCode.NONE] * len(errors)\n",
            ),
            Edit(f"{SHARD_OF_GROUPS}._commit_newer", "out.reply(ticket, errors)", "out.reply(ticket, given)"),
        ]
    ),
    "a classic member that does not join again stays in a newer group": _of_groups(
        f"{MIXED}._call", "self._deadlines.set(key, now.monotonic_ms + max(member.rebalance_timeout_ms, 0))", "pass"
    ),
    "a classic member that does not sync stays in a newer group": _of_groups(
        f"{MIXED}._join",
        "self._deadlines.set((SYNCS, group.group_id, member.member_id), now.monotonic_ms + ask.rebalance_timeout_ms)",
        "pass",
    ),
    "the epoch of a group that goes on to the newer protocol is one": _of_groups(
        f"{MIGRATING}:consumer_group_of",
        "epoch=group.generation, target_epoch=group.generation)",
        "epoch=1, target_epoch=1)",
    ),
    "what classic members had is not theirs in the newer group": _of_groups(
        f"{MIGRATING}:consumer_group_of", "assigned=owned", "assigned={}"
    ),
}

SHARD = "moldau.coordinators.transactions.shard:TransactionShard"


def _of_transactions(where: str, old: str, new: str, power: bool = False) -> Mutation:
    return Mutation([Edit(where, old, new)], power, "transactions")


MUTATIONS |= {
    "open transactions are shown": _of_transactions(
        "moldau.log.log:Log.last_stable_offset", "if self.producers.unsettled:", "if False:"
    ),
    "what was aborted is not told": _of_transactions(
        "moldau.replication.replica:Replica.read", "log.aborted_in(offset, records)", "[]"
    ),
    "decided transactions are forgotten at a start": _of_transactions(
        f"{SHARD}.start", "self._mark(transactional_id, self._markers(transaction))", "pass"
    ),
    "a transaction never runs out of time": _of_transactions(f"{SHARD}._time_out", "if was is None or", "if True or"),
    "a second instance gets the epoch of the first": _of_transactions(
        f"{SHARD}._initialized",
        "return bumped(was, ask.timeout_ms, recovers, now)",
        "return repeated(was, ask.timeout_ms, now)",
    ),
    "a fenced producer adds partitions": _of_transactions(
        f"{SHARD}._check_add", "if was.epoch == ask.epoch else ErrorCode.PRODUCER_FENCED", "if True else None"
    ),
    "a fenced producer ends the transaction of another": _of_transactions(
        f"{SHARD}._check_end", "if was.epoch != ask.epoch:", "if False:"
    ),
    "the end of a transaction is told before it is committed": Mutation(
        MUTATIONS["answers go out before the commit"].edits, True, "transactions"
    ),
    "offsets count before their transaction has ended": _of_transactions(
        f"{OFFSETS}.apply_pending",
        "self.pending.add(producer_id, group, place, value)",
        "self._by_group.setdefault(group, {})[place] = value",
    ),
    "offsets of aborted transactions count": _of_transactions(
        f"{OFFSETS}.end", "self.pending.end(producer_id, commits)", "self.pending.end(producer_id, True)"
    ),
    "aborted transactions are marked as committed": _of_transactions(
        f"{SHARD}._markers", "transaction.state is TransactionState.PREPARE_COMMIT", "True"
    ),
    "one partition of a transaction gets no marker": _of_transactions(
        f"{SHARD}._markers", "tuple(transaction.partitions)", "tuple(transaction.partitions)[1:]"
    ),
    "transactions are not replayed in recovery": _of_transactions(
        "moldau.log.producers.producers:Producers.replay",
        "elif header.producer_id >= 0:",
        "elif header.producer_id < -1:",
    ),
}


def caught_after(name: str, seeds: int = SEEDS_MAX) -> tuple[int, str] | None:
    """After how many seeds a mutation is caught, and by which sentence; None if it is not."""
    mutation = MUTATIONS[name]
    with unlogged(logging.WARNING), mutated(mutation.edits):
        for number in range(seeds):
            lived = live(FIRST_SEEDS.get(name, FIRST_SEED) + number, mutation.kind, mutation.power)
            if lived.failure is not None:
                return number + 1, lived.failure
    return None
