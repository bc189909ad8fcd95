"""One world of groups from start to end: a time of trouble, a calm one, and the end.

The seed draws the groups, the settings, the weather, and how likely each event is (many do not happen at all).
"""

import asyncio

from moldau.client.administration.admin import AsyncAdmin
from moldau.simulation.world import World
from tests.worlds.groups.calm import Calm
from tests.worlds.groups.stage import BROKER, GroupStage
from tests.worlds.groups.trouble import Trouble


async def live_groups(world: World, power_loss: bool) -> None:
    """Raises `Broken` if an invariant does not hold."""
    stage = GroupStage(world, power_loss, Trouble.events())
    await stage.start_broker()
    supervisor = world.loop.create_task(stage.supervise())
    await live_through(stage, Trouble, Calm(stage))
    supervisor.cancel()
    stage.ledger.check()
    await world.stop_broker(BROKER)


async def live_through(stage: GroupStage, trouble: type[Trouble], calm: Calm) -> None:
    """From the topics' creation to the end of the calm."""
    world = stage.world
    async with AsyncAdmin(stage.scene.bootstrap, runtime=world.runtime(world.host("admin"))) as admin:
        for topic, count in stage.partitions.items():
            await admin.create_topic(topic, partitions=count)
        stage.ids = {topic: view.id for topic, view in stage.broker.cluster.image.topics.items()}
        outsider = world.loop.create_task(world.on("outsider", stage.outsider.live()))
        try:
            await trouble(stage, admin).live_through()
            await calm.settle()
        finally:
            outsider.cancel()
            await asyncio.gather(outsider, return_exceptions=True)
        await calm.end()
