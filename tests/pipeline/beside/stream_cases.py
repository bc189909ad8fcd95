"""What a job that moves here from Spark's Kafka connector asks of a stream that is read."""

import json

from moldau.client.administration.admin import Admin
from tests.pipeline.beside.playing import Answer, Case, Player

EARLIEST = {"startingOffsets": "earliest"}


def starts_at_latest(player: Player) -> Answer:
    topic = player.topic(1)
    first = player.run(subscribe=topic)
    player.write(topic, 0, range(5, 7))
    return [first, player.run(subscribe=topic)]


def goes_on(player: Player) -> Answer:
    topic = player.topic(1)
    first = player.run(subscribe=topic, **EARLIEST)
    player.write(topic, 0, range(5, 7))
    return [first, player.run(subscribe=topic, **EARLIEST), player.run(subscribe=topic, **EARLIEST)]


def limited(player: Player) -> Answer:
    return [len(batch) for batch in player.run(subscribe=player.topic(), maxOffsetsPerTrigger="3", **EARLIEST)]


def more_partitions(player: Player) -> Answer:
    topic = player.topic(1)
    player.run(subscribe=topic)
    with Admin(player.bootstrap) as admin:
        admin.create_partitions(topic, 2)
    player.write(topic, 1, range(5, 7))
    return player.run(subscribe=topic)


def killed_in_its_first_batch(player: Player) -> Answer:
    topic = player.topic(1)
    player.run(dies=True, subscribe=topic, **EARLIEST)
    with Admin(player.bootstrap) as admin:
        admin.create_partitions(topic, 2)
    player.write(topic, 1, range(5, 7))
    return player.run(subscribe=topic, **EARLIEST)


def killed_and_records_deleted(player: Player) -> Answer:
    topic = player.topic(1)
    player.run(dies=True, subscribe=topic, **EARLIEST)
    player.delete_records(topic, 2)
    return player.each(
        strict=lambda: player.run(subscribe=topic, **EARLIEST),
        lenient=lambda: player.run(subscribe=topic, failOnDataLoss="false", **EARLIEST),
    )


def created_again(player: Player, records: int) -> Answer:
    topic = player.topic(1)
    player.run(subscribe=topic, **EARLIEST)
    player.create_again(topic)
    player.write(topic, 0, range(10, 10 + records))
    return player.each(
        strict=lambda: player.run(subscribe=topic, **EARLIEST),
        lenient=lambda: player.run(subscribe=topic, failOnDataLoss="false", **EARLIEST),
    )


def deleted_records(player: Player) -> Answer:
    topic = player.topic(1)
    player.run(subscribe=topic, **EARLIEST)
    player.write(topic, 0, range(5, 9))
    player.delete_records(topic, 7)
    return player.each(
        strict=lambda: player.run(subscribe=topic, **EARLIEST),
        lenient=lambda: player.run(subscribe=topic, failOnDataLoss="false", **EARLIEST),
    )


def deleted_topic(player: Player) -> Answer:
    gone, kept = player.topic(1, "x"), player.topic(1, "y")
    both = f"{gone},{kept}"
    player.run(subscribe=both, **EARLIEST)
    with Admin(player.bootstrap) as admin:
        admin.delete_topic(gone)
    player.write(kept, 0, range(5, 6))
    return player.each(
        strict=lambda: player.run(subscribe=both, **EARLIEST),
        lenient=lambda: player.run(subscribe=both, failOnDataLoss="false", **EARLIEST),
    )


def beyond_the_end(player: Player) -> Answer:
    topic = player.topic(1)
    start = json.dumps({topic: {"0": 7}})

    def then(name: str, **options: str) -> Answer:
        first = player.run(name, subscribe=topic, startingOffsets=start, **options)
        player.write(topic, 0, range(5, 9))
        return [first, player.run(name, subscribe=topic, startingOffsets=start, **options)]

    return player.each(strict=lambda: then("strict"), lenient=lambda: then("lenient", failOnDataLoss="false"))


def below_the_log_start(player: Player) -> Answer:
    topic = player.topic(1)
    player.delete_records(topic, 3)
    start = json.dumps({topic: {"0": 1}})
    return player.each(
        strict=lambda: player.run("strict", subscribe=topic, startingOffsets=start),
        lenient=lambda: player.run("lenient", subscribe=topic, startingOffsets=start, failOnDataLoss="false"),
    )


def another_topic(player: Player) -> Answer:
    first = player.topic(1, "x")
    pattern = first[:-1] + "[xy]"
    player.run(subscribePattern=pattern)
    player.topic(1, "y")
    return player.run(subscribePattern=pattern)


def by_time(player: Player) -> Answer:
    return player.run(subscribe=player.topic(), startingTimestamp="1003")


CASES: dict[str, Case] = {
    "where does a stream start": starts_at_latest,
    "does a stream go on from its checkpoint": goes_on,
    "how large are batches with maxOffsetsPerTrigger": limited,
    "where does a stream by time start": by_time,
    "are partitions read that are added to a stream": more_partitions,
    "are topics read that match the pattern of a stream later": another_topic,
    "may partitions be added after a stream was killed in its first batch": killed_in_its_first_batch,
    "what if records are deleted after a stream was killed in its first batch": killed_and_records_deleted,
    "what if the topic of a stream is created again with fewer records": lambda player: created_again(player, 3),
    "what if the topic of a stream is created again with more records": lambda player: created_again(player, 8),
    "what if records of a stream are deleted": deleted_records,
    "what if a topic of a stream is deleted": deleted_topic,
    "what if a stream starts beyond the end of the log": beyond_the_end,
    "what if a stream starts below the start of the log": below_the_log_start,
    "may a stream have an end": lambda player: player.run(subscribe=player.topic(1), endingOffsets="latest"),
}
