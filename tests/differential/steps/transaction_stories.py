"""Stories told by chance: three producers commit offsets of the same groups in their transactions, members of none
commit beside them, offsets and groups are deleted in between.

What Kafka 4.3.1 does: of two offsets that count the later one in the log wins, whichever transaction ended first, and
a deletion takes along what was written before it, decided or not. The same numbers make the same story everywhere.
"""

import random
from collections.abc import Iterator

from moldau.protocol.apis import DELETE_GROUPS, END_TXN, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH, TXN_OFFSET_COMMIT
from tests.differential.script import Step, V, step
from tests.differential.steps.transaction_requests import commit, described, end, plus, started

SEEDS, LENGTH, PRODUCERS, PARTITIONS = range(3), 60, 3, 2
SHOWN_EVERY = 10


def plain(group: str, partition: int, offset: int) -> dict[str, object]:
    part = {"partition_index": partition, "committed_offset": offset, "committed_metadata": f"plain-{offset}"}
    return {"group_id": group, "topics": [{"name": "tx", "partitions": [part]}]}


def seen(what: str, groups: list[str]) -> Iterator[Step]:
    topics = [{"name": "tx", "partition_indexes": list(range(PARTITIONS))}]
    for stable in (True, False):
        fields = {"groups": [{"group_id": group, "topics": topics} for group in groups], "require_stable": stable}
        yield step(f"{what} {'stable' if stable else 'committed'} offsets", OFFSET_FETCH, 8, fields)


def story(seed: int) -> Iterator[Step]:
    chance, groups = random.Random(seed), [f"tx-story-{seed}-{number}" for number in range(2)]
    names = [f"tx-story-{seed}-{number}" for number in range(PRODUCERS)]
    ended, has_open = dict.fromkeys(names, 0), dict.fromkeys(names, False)
    for name in names:
        yield started(name, 5, name)
    for number in range(LENGTH):
        group, name, partition = chance.choice(groups), chance.choice(names), chance.randrange(PARTITIONS)
        which, me, epoch = f"story {seed}, {number}:", V(name), plus(f"{name}-epoch", ended[name])
        match chance.choices(["transaction", "plain", "end", "offset", "group"], (8, 5, 5, 2, 1))[0]:
            case "transaction":
                has_open[name] = True
                fields = commit(name, me, epoch, group, (partition, number))
                yield step(f"{which} an offset in a transaction", TXN_OFFSET_COMMIT, 5, fields)
            case "plain":
                yield step(f"{which} an offset in none", OFFSET_COMMIT, 8, plain(group, partition, number))
            case "end" if has_open[name]:
                commits = chance.random() < 0.6
                yield step(f"{which} a transaction ends", END_TXN, 5, end(name, me, epoch, commits))
                yield described(f"{which} it ended", [name], "CompleteCommit" if commits else "CompleteAbort")
                ended[name], has_open[name] = ended[name] + 1, False
            case "offset":
                topics = [{"name": "tx", "partitions": [{"partition_index": partition}]}]
                yield step(f"{which} an offset is deleted", OFFSET_DELETE, 0, {"group_id": group, "topics": topics})
            case "group":
                yield step(f"{which} a group is deleted", DELETE_GROUPS, 2, {"groups_names": [group]})
        if number % SHOWN_EVERY == SHOWN_EVERY - 1:
            yield from seen(which, groups)
    for name in names:
        if has_open[name]:
            fields = end(name, V(name), plus(f"{name}-epoch", ended[name]))
            yield step(f"story {seed}: {name} ends", END_TXN, 5, fields)
            yield described(f"story {seed}: {name} ended", [name], "CompleteCommit")
    yield from seen(f"story {seed}, the end:", groups)


STEPS: tuple[Step, ...] = tuple(one for seed in SEEDS for one in story(seed))
