"""Our source and sink beside Spark's own Kafka connector: the answer to each question that a migrating job has is the
one that was recorded of the connector, or a difference that is listed with its reason."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.source.schema import SCHEMA
from tests.pipeline.beside.__main__ import recorded
from tests.pipeline.beside.differences import DIFFERENCES
from tests.pipeline.beside.playing import Answer, Player, dotted
from tests.pipeline.beside.questions import CASES
from tests.pipeline.source.restarts import Checkpoint, Killed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = recorded()
QUESTIONS_MIN = 37


class OurPlayer(Player):
    """Streams are read as Spark reads them, but below Spark, which starts a process for each."""

    def __init__(self, spark: "SparkSession", bootstrap: str, folder: Path):
        super().__init__(spark, "moldau", bootstrap, folder)
        self._checkpoints: dict[Path, Checkpoint] = {}

    def run(self, name: str = "query", *, dies: bool = False, **options: str) -> Answer:
        given = {"kafka.bootstrap.servers": self.bootstrap, **dotted(options)}
        checkpoint = self._checkpoints.setdefault(self.checkpoint(name), Checkpoint())
        before = checkpoint.commits
        with contextlib.suppress(Killed):
            checkpoint.run(MoldauSource(given).streamReader(SCHEMA), kill="before commits/0" if dies else "")
        return [values for number, values in sorted(checkpoint.batches.items()) if number >= before and values]


@pytest.fixture(scope="module")
def player(spark: "SparkSession", bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> OurPlayer:
    return OurPlayer(spark, bootstrap, tmp_path_factory.mktemp("beside"))


def alike(ours: Answer, other: Answer, beginning: bool = False) -> bool:
    """Whether answers are the same. Each source refuses in a sentence of its own; with `beginning` ours begins with
    that of `other`."""
    if isinstance(ours, dict) and isinstance(other, dict):
        if "refuses" in ours and "refuses" in other:
            return not beginning or ours["refuses"].startswith(other["refuses"])
        return ours.keys() == other.keys() and all(alike(ours[name], other[name], beginning) for name in ours)
    return bool(ours == other)


def test_every_question_is_recorded_and_every_difference_is_one() -> None:
    assert RECORDED.keys() == CASES.keys() and len(CASES) >= QUESTIONS_MIN
    assert DIFFERENCES.keys() <= CASES.keys()


@pytest.mark.check
@pytest.mark.parametrize("question", CASES)
def test_a_job_is_answered_as_by_the_connector(player: OurPlayer, question: str) -> None:
    answer = player.play(question, CASES[question])
    theirs = RECORDED[question]
    if question not in DIFFERENCES:
        assert alike(answer, theirs), f"the connector answers {theirs}"
        return
    ours, reason = DIFFERENCES[question]
    assert alike(answer, ours, beginning=True), f"not as listed: {reason}"
    assert not alike(answer, theirs), "this is no difference any more"
