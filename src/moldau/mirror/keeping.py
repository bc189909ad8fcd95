"""What workers of both kinds of mirrors do again and again: tell, compare, and keep a topic of the target."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.planning import TopicPlan
from moldau.notices import Notices

logger = logging.getLogger(__name__)
notices = Notices(logger)
TOLD_EACH_S = 60.0


async def tell_progress(told: Callable[[], str]) -> NoReturn:
    """Log each minute what `told` says."""
    while True:
        await asyncio.sleep(TOLD_EACH_S)
        logger.info("mirroring: %s", told())


async def keep(what: Callable[[], Awaitable[None]], every_s: float, compared: str) -> NoReturn:
    """Do it again and again. A `KafkaError` is logged: what is `compared` cannot be, now."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await what()
        except KafkaError as failure:
            notices.warning("", "%s cannot be compared now: %s", compared, failure)


async def carry_out(
    end: ClusterEnd, name: str, partitions: int, wanted: TopicPlan, replication_factor: int, begun: str
) -> None:
    """Do what is planned for a topic of the target; `begun` is said of one that is made. Raises `KafkaError`."""
    if wanted.make:
        try:
            await end.admin.create_topic(
                name, partitions=partitions, replication_factor=replication_factor, configs=wanted.changes
            )
        except KafkaError as failure:
            if failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another worker was faster
                raise
        logger.info("%s from now on", begun)
        return
    if wanted.expand_to is not None:
        await end.admin.create_partitions(name, wanted.expand_to)
        logger.info("%s has %d partitions now, as in the source cluster", name, wanted.expand_to)
    if wanted.changes:
        await end.admin.alter_topic_configs(name, wanted.changes)
        logger.info("%s: settings changed as in the source cluster: %s", name, ", ".join(sorted(wanted.changes)))
