"""Bugs of classic groups that worlds of groups must find (`mutations`)."""

from dataclasses import replace
from typing import Any

from moldau.coordinators.classic.group import ClassicGroupState as State
from moldau.coordinators.classic.messages import Joined
from moldau.coordinators.classic.rebalance import JOIN, SESSION, SYNC
from moldau.errors import ErrorCode
from tests.replacing import Instead, nothing, returns, unless
from tests.worlds.changed_answers import Do

CLASSIC = "moldau.coordinators.classic.groups:ClassicGroups"
JOINING = "moldau.coordinators.classic.joining:Joining"
CLASSIC_GROUP = "moldau.coordinators.classic.group:ClassicGroup"
REBALANCE = "moldau.coordinators.classic.rebalance:Rebalance"


def of_any_generation(original: Do, self: Any, group_id: str, generation: int, *rest: Any) -> Any:
    group = self.live.get(group_id)
    if group is not None and 0 <= generation < group.generation:
        generation = group.generation
    return original(self, group_id, generation, *rest)


def commit_of_any_generation(original: Do, self: Any, ask: Any, now: Any) -> Any:
    group = self.live.get(ask.group_id)
    if group is not None and 0 <= ask.generation < group.generation:
        ask = replace(ask, generation=group.generation)
    return original(self, ask, now)


def with_no_record(original: Do, self: Any, group: Any, *rest: Any) -> None:
    *_, out = rest
    count = len(out.records)
    original(self, group, *rest)
    del out.records[count:]


def keeping_deleted(apply: Do, self: Any, record: Any, now: Any) -> Any:
    before = self.stored.get(record.group)
    replies = apply(self, record, now)
    if record.value is None and before is not None:
        self.stored[record.group] = before
    return replies


def same_generation(begin: Do, self: Any, stamp_ms: int) -> None:
    before = self.generation
    begin(self, stamp_ms)
    self.generation = max(before, 1)


def for_its_holder(
    beat: Do, self: Any, group_id: str, generation: int, member_id: str, instance_id: Any, now: Any
) -> Any:
    group = self.live.get(group_id)
    if group is not None and instance_id in group.statics:
        member_id = group.statics[instance_id]
    return beat(self, group_id, generation, member_id, instance_id, now)


def without_joins(give_up: Do, self: Any, group: Any, error: Any, out: Any) -> None:
    give_up(self, group, error, out)
    out.replies[:] = [reply for reply in out.replies if not isinstance(reply[1], Joined)]


def always_settled(adopt: Do, self: Any, group: Any, _: bool, now: Any, out: Any) -> None:
    adopt(self, group, True, now, out)


def without_a_deadline(start: Do, self: Any, group: Any, now: Any, out: Any) -> None:
    first = group.state is State.EMPTY
    start(self, group, now, out)
    if not first and group.state is State.PREPARING_REBALANCE:
        self.deadlines.cancel((JOIN, group.group_id, ""))


def is_first(group: Any) -> bool:
    return bool(group.state is State.PREPARING_REBALANCE and group.before is State.EMPTY)


def put_off(passed: Do, self: Any, key: Any, group: Any, now: Any, out: Any) -> None:
    grew, left_ms = group.grew, group.delay_left_ms
    passed(self, key, group, now, out)
    if key[0] == JOIN and is_first(group):
        group.grew, group.delay_left_ms = grew, left_ms


def empty_unrecorded(complete: Do, self: Any, group: Any, now: Any, out: Any) -> None:
    count = len(out.records)
    complete(self, group, now, out)
    if group.state is State.EMPTY:
        del out.records[count:]


def other_protocol(elected: Do, self: Any) -> Any:
    return "" if self.state is State.STABLE else elected(self)


def static_stays(leave: Do, self: Any, group: Any, leaver: Any, out: Any) -> Any:
    if not leaver.member_id and leaver.instance_id in group.statics:
        return ErrorCode.NONE
    return leave(self, group, leaver, out)


def unknown_taken(beat: Do, self: Any, group_id: str, *rest: Any) -> Any:
    error = beat(self, group_id, *rest)
    return ErrorCode.NONE if error is ErrorCode.UNKNOWN_MEMBER_ID and group_id in self.live else error


def joining(_: Do, self: Any) -> bool:
    return bool(self.joining > 0)


def rebalanced(revive: Do, self: Any, group_id: str, value: Any, now: Any, out: Any) -> None:
    revive(self, group_id, value, now, out)
    group = self.live[group_id]
    if group.members and group.state is State.STABLE:
        self._rebalance.start(group, now, out)


def with_a_leader(value: Do, self: Any) -> Any:
    written = value(self)
    written.leader = next(iter(self.members), None)
    return written


CLASSIC_GROUPS: dict[str, list[Instead]] = {
    "tombstones of groups are skipped": [Instead(f"{CLASSIC}.apply", keeping_deleted)],
    "a heartbeat does not keep a member": [Instead(f"{REBALANCE}.keep_alive", nothing, within=f"{CLASSIC}.heartbeat")],
    "a commit does not keep a member": [Instead(f"{REBALANCE}.keep_alive", nothing, within=f"{CLASSIC}.check_commit")],
    "the session of a dead member never ends": [
        Instead(f"{REBALANCE}.passed", unless(lambda _, key, *__: key[0] == SESSION))
    ],
    "sessions begin anew only for some after a start": [
        Instead(f"{REBALANCE}.keep_alive", nothing, within=f"{CLASSIC}.start")
    ],
    "the generation is not counted up": [Instead(f"{CLASSIC_GROUP}.begin_generation", same_generation)],
    "a fenced member is taken for the one that fenced it": [Instead(f"{CLASSIC}.heartbeat", for_its_holder)],
    "commits of an older generation are taken": [Instead(f"{CLASSIC}.check_commit", commit_of_any_generation)],
    "heartbeats of an older generation are taken": [Instead(f"{CLASSIC}.heartbeat", of_any_generation)],
    "heartbeats of unknown members are taken": [Instead(f"{CLASSIC}.heartbeat", unknown_taken)],
    "a rebalance has no deadline": [Instead(f"{REBALANCE}.start", without_a_deadline)],
    "a rebalance waits for ever for a busy member": [
        Instead(f"{REBALANCE}.passed", unless(lambda _, key, group, *__: key[0] == JOIN and not is_first(group)))
    ],
    "an assignment that nobody gives is waited for for ever": [
        Instead(f"{REBALANCE}.passed", unless(lambda _, key, *__: key[0] == SYNC))
    ],
    "a first rebalance is put off for ever": [Instead(f"{REBALANCE}.passed", put_off)],
    "a group that becomes empty is not written to the log": [Instead(f"{REBALANCE}.complete", empty_unrecorded)],
    "a rebalance goes on without members that are missing": [Instead(f"{CLASSIC_GROUP}.all_joined", joining)],
    "a static member is replaced without its record": [Instead(f"{JOINING}._replace_static", with_no_record)],
    "a static member keeps its member id when it is replaced": [Instead(f"{CLASSIC_GROUP}.rename", nothing)],
    "a static member that comes back makes all join again": [
        Instead(f"{CLASSIC_GROUP}.elected_protocol", other_protocol, within=f"{JOINING}._replace_static")
    ],
    "a static member that an administrator removes stays": [Instead(f"{CLASSIC}._leave_one", static_stays)],
    "a member that leaves stays until its session ends": [
        Instead(f"{REBALANCE}.drop", nothing, within=f"{CLASSIC}.leave")
    ],
    "a group takes more members than it may": [Instead(f"{JOINING}.has_room", returns(True))],
    "too many members stay after a start": [
        Instead(f"{REBALANCE}.start", unless(lambda _, group, *__: group.leader is not None), within=f"{CLASSIC}.start")
    ],
    "a group that is loaded begins a rebalance": [Instead(f"{CLASSIC}._revive", rebalanced)],
}
