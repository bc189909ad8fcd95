"""All partitions this broker hosts, kept in step with the cluster's image.

`follow` creates and opens the logs of partitions that became ours, hands changed settings and leaderships on, and removes what
is gone. The look-up by name or id is what every request pays, so it is two subscripts and makes no object.
"""

import logging
from collections.abc import Callable, Iterator

from moldau.cluster.image import Image, TopicImage
from moldau.config import BrokerConfig, topic_config
from moldau.log.folder import LogFolder
from moldau.names import BrokerId, TopicPartition
from moldau.replication.hosted import Hosted
from moldau.replication.partition import Partition
from moldau.runtime import Runtime

log = logging.getLogger(__name__)


class Partitions:
    def __init__(self, local: BrokerId, config: BrokerConfig, folder: LogFolder, runtime: Runtime):
        self._local = local
        self._config = config
        self._folder = folder
        self._runtime = runtime
        self._by_name: dict[str, list[Hosted | None]] = {}
        self._names: dict[bytes, str] = {}
        self.on_storage_failure: Callable[[OSError], None] = lambda error: None

    def find(self, name: str | None, topic_id: bytes | None, index: int) -> Hosted | None:
        """The partition of the topic of that id, or of that name where the id is None; None if it is not here."""
        if topic_id is not None:
            name = self._names.get(topic_id)
        hosts = self._by_name.get(name)  # type: ignore[arg-type]
        if hosts is None or not 0 <= index < len(hosts):
            return None
        return hosts[index]

    def knows(self, topic_id: bytes) -> bool:
        return topic_id in self._names

    def __iter__(self) -> Iterator[Hosted]:
        for hosts in list(self._by_name.values()):
            yield from (hosted for hosted in hosts if hosted is not None)
