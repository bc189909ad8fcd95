import pytest

from moldau.log.epochs import Epochs


def test_epochs_know_who_wrote_an_offset() -> None:
    epochs = Epochs([(0, 0), (2, 10), (5, 30)])
    assert [epochs.epoch_at(offset) for offset in (0, 9, 10, 29, 30, 1000)] == [0, 0, 2, 2, 5, 5]
    assert Epochs().epoch_at(3) == -1
    assert Epochs([(1, 5)]).epoch_at(4) == -1


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 10)), (1, (0, 10)), (2, (2, 30)), (4, (2, 30)), (5, (5, 44)), (6, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_one_began(epoch: int, answer: tuple[int, int]) -> None:
    assert Epochs([(0, 0), (2, 10), (5, 30)]).end_of(epoch, 44) == answer


def test_an_epoch_before_the_oldest_known_ended_where_that_one_began() -> None:
    assert Epochs([(3, 20), (5, 30)]).end_of(1, 44) == (1, 20)


def test_a_new_leader_removes_what_contradicts_it() -> None:
    epochs = Epochs([(0, 0), (2, 10), (5, 30)])
    epochs.assign(4, 20)
    assert epochs.starts == ((0, 0), (2, 10), (4, 20))
    assert epochs.latest == 4
    epochs.assign(4, 25)
    assert epochs.starts[-1] == (4, 20)


def test_truncation_keeps_the_epochs_within_the_log() -> None:
    epochs = Epochs([(0, 0), (2, 10), (5, 30)])
    epochs.truncate_from_start(12)
    assert epochs.starts == ((2, 12), (5, 30))
    epochs.truncate_from_end(30)
    assert epochs.starts == ((2, 12),)
    assert epochs.latest == 2
    epochs.truncate_from_end(0)
    assert (epochs.starts, epochs.latest) == ((), -1)


def test_only_changes_make_them_dirty() -> None:
    epochs = Epochs([(0, 0)])
    assert not epochs.dirty
    epochs.assign(0, 7)
    epochs.truncate_from_start(0)
    epochs.truncate_from_end(5)
    assert not epochs.dirty
    epochs.assign(1, 7)
    assert epochs.dirty


def test_epochs_that_ended_where_the_log_now_starts_are_forgotten() -> None:
    epochs = Epochs([(0, 0), (1, 5), (2, 9)])
    epochs.truncate_from_start(5)
    assert epochs.starts == ((1, 5), (2, 9))
    epochs.dirty = False
    epochs.truncate_from_start(5)
    assert epochs.starts == ((1, 5), (2, 9)) and not epochs.dirty
