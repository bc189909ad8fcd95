"""The settings of the group coordinator: those of each kind of group, and those of committed offsets."""

from dataclasses import dataclass, field

from moldau.coordinators.classic.messages import ClassicGroupSettings
from moldau.coordinators.consumer.messages import ConsumerGroupSettings
from moldau.coordinators.offsets.messages import OffsetSettings


@dataclass(frozen=True, slots=True)
class GroupCoordinatorSettings:
    classic: ClassicGroupSettings = field(default_factory=ClassicGroupSettings)
    consumer: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    offsets: OffsetSettings = field(default_factory=OffsetSettings)
