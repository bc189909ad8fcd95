"""What a mirror into a foreign Kafka is told."""

import hashlib
import re
from dataclasses import dataclass, field

from moldau.mirror.foreign.copy_positions import LANES
from moldau.mirror.foreign.offset_syncs import LAG_MAX
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.sharing import MemberOptions


@dataclass(frozen=True)
class ForeignSettings:
    """`topics`: those of the source whose whole names match are mirrored. `policy`: their names in the target.
    `groups`: whose positions are told in the target, each `checkpoints_s`, and with `sync_groups` committed there.
    `lag_max`: of pairs of offsets. `source_heartbeats`: heartbeats are written to the source as well. `lanes`: how many
    the positions topic is made with. `refresh_s`: how often topics and settings are compared. `member`: how this worker
    takes part in the group of the workers."""

    topics: re.Pattern[str]
    policy: ReplicationPolicy = field(default_factory=ReplicationPolicy)
    replication_factor: int = -1
    refresh_s: float = 10.0
    groups: re.Pattern[str] = re.compile(".*")
    acls: bool = False
    sync_groups: bool = False
    lag_max: int = LAG_MAX
    checkpoints_s: float = 60.0
    heartbeats_s: float = 1.0
    source_heartbeats: bool = False
    lanes: int = LANES
    compression: str = "none"
    member: MemberOptions = MemberOptions()

    @property
    def digest(self) -> str:
        """Of the options that all workers of one mirror must have alike, since any of them may get any lane."""
        alike = (
            self.topics.pattern, self.policy, self.groups.pattern, self.acls, self.sync_groups, self.lag_max,
            self.source_heartbeats,
        )  # fmt: skip
        return hashlib.sha256(repr(alike).encode()).hexdigest()[:8]
