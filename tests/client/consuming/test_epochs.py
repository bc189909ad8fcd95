"""What a reader remembers of the leader epochs of the records that it has read."""

from moldau.client.consuming.fetched.epochs import KEPT_MAX, RecordEpochs


def read(*batches: tuple[int, int, int], start: RecordEpochs | None = None) -> RecordEpochs:
    """Epochs after batches of (first offset, end, epoch)."""
    epochs = start or RecordEpochs()
    for first, end, epoch in batches:
        epochs.note(first, epoch)
        epochs.end = end
    return epochs


def of(epochs: RecordEpochs, *offsets: int) -> list[int | None]:
    return [epochs.of(offset) for offset in offsets]


def test_each_record_has_the_epoch_of_its_batch_and_those_not_read_have_none() -> None:
    epochs = read((3, 5, 0), (5, 8, 0), (8, 10, 2), start=RecordEpochs.before(3, None))
    assert of(epochs, 2, 3, 7, 8, 9, 10) == [None, 0, 0, 2, 2, None]
    assert (epochs.first_above(0), epochs.first_above(1), epochs.first_above(2)) == (8, 8, None)


def test_a_position_of_elsewhere_knows_only_the_record_before_it() -> None:
    epochs = RecordEpochs.before(15, 4)
    assert of(epochs, 13, 14, 15) == [None, 4, None]
    assert of(RecordEpochs.before(15, None), 14) == of(RecordEpochs.before(15, -1), 14) == [None]
    assert of(read((12, 20, 5), start=epochs), 14, 15) == [4, 5], "a batch does not change what was read before"


def test_reading_again_from_an_offset_forgets_what_follows_but_not_for_records_that_were_read() -> None:
    epochs = read((0, 5, 0), (5, 9, 1))
    again = read((5, 9, 3), start=epochs.until(5))
    assert of(again, 4, 5) == [0, 3]
    assert of(epochs, 4, 5) == [0, 1]
    assert of(epochs.until(7), 6, 7) == [1, None]


def test_batches_without_an_epoch_or_with_an_older_one_tell_nothing_of_those_before() -> None:
    assert of(read((0, 5, 3), (5, 9, -1)), 4, 8) == [None, None]
    assert of(read((0, 5, 3), (5, 9, 1)), 4, 8) == [None, 1]


def test_a_broker_that_changes_epochs_with_each_batch_takes_no_more_memory() -> None:
    epochs = read(*((number, number + 1, number) for number in range(10 * KEPT_MAX)))
    assert len(epochs._begins) == KEPT_MAX
    assert of(epochs, 0, 10 * KEPT_MAX - 1) == [None, 10 * KEPT_MAX - 1]
