"""The settings of a broker that are only set while it runs, as in Kafka: its properties file has none of them.

They have no default, and are described only if they are set. The rates throttle replication (KIP-73), and the replicas
that reassignments add (KIP-542, which Kafka does not have); the settings in `kafka_names.KEPT` have no effect.
"""

from moldau.config.kafka_names import KEPT
from moldau.config.setting import Setting, SettingType

RATES = {
    setting.name: setting
    for setting in (
        Setting(
            "follower.reassignment.throttled.rate",
            SettingType.LONG,
            None,
            "The most bytes a second that this broker fetches for those of its replicas that a reassignment adds and "
            "that are not in sync yet. Set for one broker, it is removed when no reassignment is under way any more.",
            low=0,
        ),
        Setting(
            "follower.replication.throttled.rate",
            SettingType.LONG,
            None,
            "The most bytes a second that this broker fetches for those of its replicas that are not in sync and that "
            "follower.replication.throttled.replicas lists.",
            low=0,
        ),
        Setting(
            "leader.reassignment.throttled.rate",
            SettingType.LONG,
            None,
            "The most bytes a second that this broker sends to replicas that a reassignment adds and that are not in "
            "sync yet. Set for one broker, it is removed when no reassignment is under way any more.",
            low=0,
        ),
        Setting(
            "leader.replication.throttled.rate",
            SettingType.LONG,
            None,
            "The most bytes a second that this broker sends to followers that are not in sync, from those of its "
            "replicas that leader.replication.throttled.replicas lists.",
            low=0,
        ),
        Setting(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            SettingType.LONG,
            None,
            "The most bytes a second that this broker copies for replicas that move between its log folders.",
            low=0,
        ),
    )
}
WHILE_RUNNING = KEPT | RATES
