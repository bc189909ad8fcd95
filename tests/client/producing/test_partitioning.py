import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from moldau.client.producing.appending import chooser
from moldau.client.producing.partitioning import Sticky, choose_by_load, murmur2, positive_hash

WHERE_KAFKAS_OWN_PRODUCER_PUT_IT = {
    "": 35,
    "k": 50,
    "ab": 36,
    "abc": 77,
    "abcd": 5,
    "key-5": 14,
    "N14228": 0,
    "0123456789abcdef": 84,
    "česká řeka": 69,
}
"""Partitions of a topic with 97, as the console producer of Apache Kafka 4.3.1 chose them."""


class Dice:
    """A seeded `Random`."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)

    def uuid(self) -> None:
        raise AssertionError("nobody asks for this")

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def test_a_key_goes_where_javas_client_puts_it() -> None:
    for key, partition in WHERE_KAFKAS_OWN_PRODUCER_PUT_IT.items():
        assert positive_hash(key.encode()) % 97 == partition


@given(st.binary(max_size=100))
def test_a_hash_has_32_bits_and_its_positive_form_lacks_the_sign(key: bytes) -> None:
    assert 0 <= murmur2(key) < 1 << 32
    assert positive_hash(key) == murmur2(key) % (1 << 31)


def test_librdkafkas_name_of_javas_partitioner_is_the_default() -> None:
    assert chooser(None) is chooser("murmur2_random") is None
    assert chooser("round_robin") is not None


def test_records_without_a_key_stay_until_a_batch_is_full_and_then_go_elsewhere() -> None:
    sticky = Sticky(Dice(1), 1000)
    chosen = [sticky.partition(4, 100) for _ in range(100)]
    runs = [chosen[at : at + 10] for at in range(0, 100, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(before[0] != after[0] for before, after in itertools.pairwise(runs))


@given(st.integers(0, 1000))
def test_every_partition_gets_its_share_of_records_without_a_key(seed: int) -> None:
    sticky = Sticky(Dice(seed), 1)
    chosen = [sticky.partition(3, 1) for _ in range(300)]
    assert all(chosen.count(partition) > 50 for partition in range(3))


def test_a_single_partition_takes_everything() -> None:
    sticky = Sticky(Dice(0), 1)
    assert {sticky.partition(1, 10) for _ in range(10)} == {0}


def test_a_topic_that_shrank_is_never_sent_to_a_partition_it_lost() -> None:
    sticky = Sticky(Dice(3), 10_000)
    for _ in range(20):
        sticky.partition(8, 10)
    assert all(sticky.partition(2, 10) < 2 for _ in range(20))


def test_partitions_with_fewer_waiting_batches_get_more_records() -> None:
    waiting = [5, 0, 2]
    drawn = [choose_by_load(waiting, lambda total, number=number: number) for number in range(10)]  # type: ignore[misc]
    assert drawn == [0, 1, 1, 1, 1, 1, 1, 2, 2, 2]
    assert choose_by_load(waiting, lambda total: total - 1) == 2


def test_partitions_that_wait_alike_get_equal_shares() -> None:
    assert choose_by_load([3, 3, 3], lambda total: 0) is None
    assert choose_by_load([0], lambda total: 0) is None


def test_the_sticky_partitioner_asks_for_the_load_when_it_switches() -> None:
    asked: list[int] = []

    def waiting(partitions: int) -> list[int]:
        asked.append(partitions)
        return [9_999, 0, 9_999]

    sticky = Sticky(Dice(7), 100, waiting)  # type: ignore[arg-type]
    chosen = [sticky.partition(3, 50) for _ in range(20)]
    assert (chosen.count(1) > 15, len(asked)) == (True, 10)
