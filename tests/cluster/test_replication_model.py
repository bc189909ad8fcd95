"""The rules of `eligibility` and `isr_changes` keep what is committed, whatever happens; and each of them is needed."""

from collections.abc import Callable
from typing import Any

import pytest

from moldau.cluster.state import elections, eligibility, isr_changes
from moldau.cluster.state.image import PartitionImage
from moldau.cluster.state.isr_changes import ProposedIsr
from tests.cluster.replication_model import Broken, Host, Model

SEEDS, STEPS = 150, 500
SEEDS_UNTIL_FOUND = 400


def test_isr_and_elr_have_everything_below_the_high_watermark() -> None:
    moves = 0
    for seed in range(SEEDS):
        model = Model(seed)
        for _ in range(STEPS):
            model.step()
        moves += model.moves
    assert moves > 2 * SEEDS, "the watermark moved"


def without_elr_in_view(self: Model, host: Host, part: PartitionImage) -> bool:
    return len(part.isr) >= min(host.least, len(part.replicas))


def trusting(self: Model, host: Host) -> None:
    self.elect({host.id: ("",)})


def anybody(part: PartitionImage, can_lead: Callable[[int], bool], least: int) -> PartitionImage:
    after = ELECTED(part, can_lead, least)
    if after.leader < 0 and (alive := [one for one in part.replicas if can_lead(one)]):
        return after._replace(leader=alive[0], leader_epoch=part.leader_epoch + 1, isr=(alive[0],))
    return after


def of_any_epoch(broker: Any, epoch: int, away: Any, part: PartitionImage, replica: int) -> bool:
    return broker is not None


def at_any_partition_epoch(part: PartitionImage, sender: int, proposal: ProposedIsr) -> Any:
    return OUTDATED(part, sender, proposal._replace(partition_epoch=part.partition_epoch))


ELECTED = eligibility.elected
OUTDATED = isr_changes._outdated


@pytest.mark.parametrize(
    "bug",
    [
        [(Model, "may_advance", without_elr_in_view)],
        [(Model, "register", trusting)],
        [(elections, "elected", anybody)],
        [(isr_changes, "_is_eligible", of_any_epoch)],
        [(isr_changes, "_outdated", at_any_partition_epoch)],
    ],
    ids=[
        "the watermark moves in spite of eligible leaders",
        "power loss is taken for kept",
        "somebody out of ISR and ELR is elected",
        "no broker epoch in AlterPartition",
        "no partition epoch in AlterPartition",
    ],
)
def test_the_model_finds_a_rule_that_is_missing(
    bug: list[tuple[Any, str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name, wrong in bug:
        monkeypatch.setattr(owner, name, wrong)
    for seed in range(SEEDS_UNTIL_FOUND):
        model = Model(seed)
        try:
            for _ in range(STEPS):
                model.step()
        except Broken:
            return
    pytest.fail("not found")
