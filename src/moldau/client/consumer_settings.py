"""The settings of a consumer."""

from moldau.client.fetching import ISOLATION_LEVELS
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.settings import ClientSettings, one_of, setting, settings

RESETS = {"earliest": EARLIEST, "latest": LATEST}


@settings
class ConsumerSettings(ClientSettings):
    """The settings of a consumer; sizes are in bytes, times in ms. `subscribe` and `commit` need a `group_id`."""

    group_id: str | None = setting(default=None, about="The consumer group, whose members share the partitions.")
    group_instance_id: str | None = setting(
        default=None, about="A name that makes this a static member: a restart within the session moves no partition."
    )
    auto_offset_reset: str = setting(
        default="latest", about="Where to start without a committed offset: earliest, latest or none (an error)."
    )
    isolation_level: str = setting(
        default="read_uncommitted", about="read_committed leaves out records of open and aborted transactions."
    )
    enable_auto_commit: bool = setting(default=True, about="Commit the offsets of processed records automatically.")
    auto_commit_interval_ms: int = setting(default=5_000, low=0, about="The time between automatic commits.")
    session_timeout_ms: int = setting(
        default=45_000, low=1, about="A member that sends no heartbeat for this long is taken out of the group."
    )
    heartbeat_interval_ms: int = setting(default=3_000, low=1, about="The time between heartbeats.")
    max_poll_interval_ms: int = setting(
        default=300_000, low=1, about="A member that does not poll for this long leaves the group."
    )
    max_poll_records: int = setting(default=500, low=1, about="The most records that one `poll` returns.")
    fetch_max_bytes: int = setting(default=50 * 1024 * 1024, low=1, about="The most that one Fetch returns.")
    max_partition_fetch_bytes: int = setting(
        default=1024 * 1024, low=1, about="The most that one Fetch returns of a partition."
    )
    fetch_min_bytes: int = setting(default=1, low=0, about="A Fetch waits until this many bytes are there.")
    fetch_max_wait_ms: int = setting(default=500, low=0, about="A Fetch waits at most this long for `fetch_min_bytes`.")
    metadata_max_age_ms: int = setting(default=60_000, low=0, about="Look this often for new topics and partitions.")

    def check(self) -> None:
        one_of("auto_offset_reset", self.auto_offset_reset, (*RESETS, "none"))
        one_of("isolation_level", self.isolation_level, ISOLATION_LEVELS)

    @property
    def committed(self) -> bool:
        """Whether the consumer reads with isolation level read_committed."""
        return self.isolation_level == ISOLATION_LEVELS[1]
