"""Settings of the group coordinator by name alone, whichever part of it they belong to."""

from dataclasses import fields

from moldau.coordinators.classic.messages import ClassicGroupSettings
from moldau.coordinators.consumer.messages import ConsumerGroupSettings
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.offsets.messages import OffsetSettings

CLASSIC = {one.name for one in fields(ClassicGroupSettings)}


def group_settings(consumer: ConsumerGroupSettings | None = None, **named: int) -> GroupCoordinatorSettings:
    """`named` are fields of `ClassicGroupSettings`, and fields of `OffsetSettings` behind `offsets_`."""
    classic = {name: value for name, value in named.items() if name in CLASSIC}
    offsets = {name.removeprefix("offsets_"): value for name, value in named.items() if name not in CLASSIC}
    return GroupCoordinatorSettings(
        classic=ClassicGroupSettings(**classic),
        consumer=consumer or ConsumerGroupSettings(),
        offsets=OffsetSettings(**offsets),
    )
