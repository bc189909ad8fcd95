"""Bugs of the coordinators that simulated worlds must find: small edits of the production code, made in memory.

How edits are made and undone is `crash_points.mutations`'. With `power` the worlds are those whose power fails; `kind`
says what they are of.
"""

import logging
from typing import NamedTuple

from moldau.simulation.scenarios import live
from tests.crash_points.mutations import Edit, mutated

SEEDS_MAX = 300
"""Within so many seeds each mutation is caught."""
FIRST_SEED = 50_000
FIRST_SEEDS = {
    "a fenced member is taken for the one that fenced it": 50_050,
    "the end of a transaction is told before it is committed": 50_075,
    "who waits in a group that goes on to the newer protocol is forgotten": 50_038,
    "parked requests are forgotten at a resignation": 50_027,
    "decisions on their way are forgotten at a resignation": 50_023,
}
"""Where to begin with what few worlds find."""


class Mutation(NamedTuple):
    edits: list[Edit]
    power: bool = False
    kind: str = "groups"


HOST = "moldau.coordinators.host:Host"
GROUPS = "moldau.coordinators.classic.groups:Groups"
REBALANCE = "moldau.coordinators.classic.rebalance:Rebalance"
GROUP = "moldau.coordinators.classic.group:Group"
CONSUMERS = "moldau.coordinators.consumer.groups:ConsumerGroups"
MIXED = "moldau.coordinators.consumer.mixed_groups:MixedGroups"
RECONCILING = "moldau.coordinators.consumer.reconciling"
OFFSETS = "moldau.coordinators.groups.offsets:Offsets"
APPEND = "        await self._log.append(hosted.partition, batch)\n"
APPLY = "        for record in records:\n            self._answer(hosted.machine.apply(record, now))"

MUTATIONS: dict[str, Mutation] = {
    "records are applied before they are committed": Mutation(
        [
            Edit(
                f"{HOST}._commit",
                APPEND,
                "        for record in records:\n"
                "            self._answer(hosted.machine.apply(record, self.now()))\n" + APPEND,
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
        [Edit(f"{HOST}._carry_out", "hosted.queue.append(outcome)", "hosted.queue.insert(0, outcome)")]
    ),
    "parked requests are forgotten at a resignation": Mutation(
        [Edit(f"{HOST}.resign", "self._answer(hosted.machine.stop(error))", "hosted.machine.stop(error)")]
    ),
    "decisions on their way are forgotten at a resignation": Mutation(
        [Edit(f"{HOST}.resign", "self._refuse(outcome, error)", "pass")]
    ),
    "a coordinator begins without what was not flushed": Mutation(
        [
            Edit(
                "moldau.replication.internal_topic:InternalTopic.read_all",
                "while offset < hosted.log.log_end_offset",
                "while offset < hosted.log.log_end_offset - 1",
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
        [Edit(f"{OFFSETS}._is_old", "stamp_ms - since_ms >=", "4 * (stamp_ms - since_ms) >=")]
    ),
    "offsets are never forgotten": Mutation([Edit(f"{OFFSETS}._is_old", "stamp_ms - since_ms >=", "-1 >=")]),
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
        [Edit(f"{GROUPS}.check_delete", "if group.state is State.EMPTY else", "if True else")]
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
            Edit(f"{GROUPS}.sync", "    out = Outcome()\n", "    out = Outcome()\n    self.early = []\n"),
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
        [Edit(f"{MIXED}._turn_back", "settled = not leaving and group.state is State.STABLE", "settled = True")]
    ),
    "classic members are not told what is new in a newer group": Mutation(
        [Edit(f"{MIXED}.heartbeat", "if not due:", "if True:")]
    ),
}

SHARD = "moldau.coordinators.transactions.transactions:TransactionShard"


def _of_transactions(where: str, old: str, new: str, power: bool = False) -> Mutation:
    return Mutation([Edit(where, old, new)], power, "transactions")


MUTATIONS |= {
    "open transactions are shown": _of_transactions(
        "moldau.log.log:Log.last_stable_offset", "if self.producers.unsettled:", "if False:"
    ),
    "what was aborted is not told": _of_transactions(
        "moldau.replication.hosted:Hosted.read_committed", "log.aborted_in(offset, records)", "[]"
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
        f"{SHARD}._markers", "transaction.state is State.PREPARE_COMMIT", "True"
    ),
    "one partition of a transaction gets no marker": _of_transactions(
        f"{SHARD}._markers", "tuple(transaction.partitions)", "tuple(transaction.partitions)[1:]"
    ),
    "transactions are not replayed in recovery": _of_transactions(
        "moldau.log.producers:Producers.replay", "elif header.producer_id >= 0:", "elif header.producer_id < -1:"
    ),
}


def caught_after(name: str, seeds: int = SEEDS_MAX) -> tuple[int, str] | None:
    """After how many seeds a mutation is caught, and by which sentence; None if it is not."""
    mutation = MUTATIONS[name]
    logging.disable(logging.WARNING)
    try:
        with mutated(mutation.edits):
            for number in range(seeds):
                lived = live(FIRST_SEEDS.get(name, FIRST_SEED) + number, mutation.kind, mutation.power)
                if lived.failure is not None:
                    return number + 1, lived.failure
    finally:
        logging.disable(logging.NOTSET)
    return None
