"""Spark's part in a load, played in the process of a test: its tasks run one after the other, without a JVM."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class LocalSpark:
    """A session and its context in one, as far as a load needs them. `before_task` is called before each task, with its
    number among all tasks so far."""

    def __init__(self, before_task: Callable[[int], None] = lambda number: None, cores: int = 2):
        self.sparkContext = self
        self.defaultParallelism = cores
        self._before_task = before_task
        self._tasks = 0
        self._partitions: Sequence[Any] = ()
        self._work: Callable[[Any], Iterable[Any]] = iter
        self.value = (0, 0)

    def accumulator(self, value: tuple[int, int], how: object) -> "LocalSpark":
        return self

    def add(self, pair: tuple[int, int]) -> None:
        self.value = self.value[0] + pair[0], self.value[1] + pair[1]

    def parallelize(self, partitions: Sequence[Any], count: int) -> "LocalSpark":
        assert len(partitions) == count
        self._partitions = partitions
        return self

    def flatMap(self, work: Callable[[Any], Iterable[Any]]) -> "LocalSpark":
        self._work = work
        return self

    def collect(self) -> list[Any]:
        outcomes = []
        for given in self._partitions:
            self._before_task(self._tasks)
            self._tasks += 1
            outcomes += self._work(pickle.loads(pickle.dumps(given)))
        return pickle.loads(pickle.dumps(outcomes))  # type: ignore[no-any-return]
