"""A change that is larger than ZooKeeper takes at once, cut into steps in which every beginning is valid. Pure.

Whoever becomes the controller completes what the one before it has left half done:

- A topic is created with its settings and its node first, then its partitions and their states: as many partitions
  exist as have states, and the rest follows (see `wishes`).
- A topic is deleted with its entry among the deleted topics first: from then on it does not exist, and what is left of
  it is removed.
- A partition that loses replicas has its new state first: its leader and its ISR are among the replicas it had, too.
"""

from collections.abc import Iterator, Sequence

from moldau.metadata_store.store import NodeOperation, Set, check_size, size_of

STEP_OPERATIONS = 500
STEP_BYTES = 512 * 1024


def in_steps(operations: Sequence[NodeOperation]) -> list[list[NodeOperation]]:
    """The operations in their order, in steps of at most `STEP_OPERATIONS` and `STEP_BYTES`, unless one alone is
    larger. Raises `StorageError` if ZooKeeper would not take one of them."""
    steps: list[list[NodeOperation]] = []
    size = 0
    for together in _inseparable(operations):
        more = sum(map(size_of, together))
        if not steps or len(steps[-1]) + len(together) > STEP_OPERATIONS or size + more > STEP_BYTES:
            steps.append([])
            size = 0
        steps[-1] += together
        size += more
    for step in steps:
        check_size(step)
    return steps


def _inseparable(operations: Sequence[NodeOperation]) -> Iterator[list[NodeOperation]]:
    """A topic's node is made with its settings and log folders: without it nobody would know whose they are."""
    together: list[NodeOperation] = []
    for operation in operations:
        if together and not _is_head(operation, together[-1]):
            yield together
            together = []
        together.append(operation)
    if together:
        yield together


def _is_head(operation: NodeOperation, before: NodeOperation) -> bool:
    """Whether it makes or removes a topic's node, the one above its partitions, or that of its log folders together
    with its settings."""
    if isinstance(operation, Set):
        return False
    match operation.path.split("/")[1:]:
        case ["brokers", "topics", _] | ["brokers", "topics", _, "partitions"]:
            return True
        case ["moldau", "directories", name]:
            return before.path == f"/config/topics/{name}"
    return False
