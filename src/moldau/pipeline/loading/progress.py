"""How far a running load is, for whoever watches it: counted in Spark's tasks, read by any thread of the driver."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext

Pair = tuple[int, int]


class LoadProgress:
    """The records and bytes of files that tasks of the current load have finished, and the offsets it has to load."""

    def __init__(self) -> None:
        self.planned = 0
        self._context: SparkContext | None = None
        self._accumulator: Any = None
        self._before: Pair = (0, 0)

    def begin(self, planned: int) -> None:
        """A load of this number of offsets begins."""
        self.planned = planned
        self._before = self._total()

    def end(self) -> None:
        """All is written; offsets without a record, and rejected records, are no longer waited for."""
        self.planned = self.records

    def accumulator(self, context: "SparkContext") -> "Accumulator[Pair]":
        """What tasks add to; one for each Spark, which keeps every accumulator it has made."""
        if self._context is not context:
            self._context, self._accumulator = context, context.accumulator((0, 0), _pairs())
            self._before = (0, 0)
        return self._accumulator  # type: ignore[no-any-return]

    @property
    def records(self) -> int:
        return self._total()[0] - self._before[0]

    @property
    def bytes(self) -> int:
        return self._total()[1] - self._before[1]

    def _total(self) -> Pair:
        return (0, 0) if self._accumulator is None else self._accumulator.value


def _pairs() -> Any:
    from pyspark.accumulators import AccumulatorParam

    class Pairs(AccumulatorParam[Pair]):
        def zero(self, value: Pair) -> Pair:
            return (0, 0)

        def addInPlace(self, value1: Pair, value2: Pair) -> Pair:  # noqa: N802
            return value1[0] + value2[0], value1[1] + value2[1]

    return Pairs()
