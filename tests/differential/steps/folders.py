"""In which log folder each partition is, and how many bytes it has there. Paths and volumes are each broker's own."""

from moldau.protocol.apis import DESCRIBE_LOG_DIRS, PRODUCE
from tests.differential.batches import batch
from tests.differential.script import Step, Tree, step
from tests.differential.steps.produce import to
from tests.differential.steps.topics import made, new


def of(*topics: tuple[str, list[int]]) -> Tree:
    return {"topics": [{"topic": name, "partitions": partitions} for name, partitions in topics]}


CREATING = made("for folders", new("kept-here", 3, 1), new("empty-here", 1, 1))

STEPS: tuple[Step, ...] = (
    *CREATING,
    step("a record in one of three partitions", PRODUCE, 8, to("kept-here", batch(b"here"), 1)),
    *(
        step(f"the folders of two topics, version {version}", DESCRIBE_LOG_DIRS, version,
             of(("kept-here", [0, 1, 2]), ("empty-here", [0])))
        for version in range(1, 6)
    ),
    step("the folder of a partition that is not there", DESCRIBE_LOG_DIRS, 4, of(("kept-here", [1, 9, -1]))),
    step("the folder of a topic that is not there", DESCRIBE_LOG_DIRS, 4, of(("absent", [0]))),
    step("the folder of a topic without a name", DESCRIBE_LOG_DIRS, 4, of(("", [0]))),
    step("the folder of a topic without partitions", DESCRIBE_LOG_DIRS, 1, of(("kept-here", []))),
    step("the folder of a topic named twice", DESCRIBE_LOG_DIRS, 2, of(("kept-here", [1, 1]), ("kept-here", [0]))),
    step("the folders of nothing", DESCRIBE_LOG_DIRS, 3, {"topics": []}),
)  # fmt: skip
