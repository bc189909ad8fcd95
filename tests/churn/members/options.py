"""What aiokafka and kafka-python are asked for alike: their options have the same names."""

from collections.abc import Mapping
from typing import Any

from noting import asked


def options(strategies: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a consumer; `strategies` are the client's own ways to share out partitions."""
    return {
        "bootstrap_servers": asked.bootstrap,
        "group_id": asked.group,
        "client_id": asked.client,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": asked.session_ms,
        "heartbeat_interval_ms": asked.heartbeat_ms,
        "partition_assignment_strategy": [strategies[asked.strategy]],
        "fetch_max_wait_ms": 100,
    }
