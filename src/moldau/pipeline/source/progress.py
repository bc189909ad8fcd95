"""Publishes what a stream has finished as the committed offsets of a consumer group, so that tools for lag see it.

Spark's checkpoint holds the position; a failure to publish is logged and retried with the next batch.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from moldau.errors import MoldauError
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.pipeline.options import Options

if TYPE_CHECKING:
    from moldau.client.administration.admin import Admin

logger = logging.getLogger(__name__)
PUBLISH_TIMEOUT_MS = 5_000
Positions: TypeAlias = Mapping[TopicPartition, int | OffsetAndMetadata]


class GroupProgress:
    """The group of one query; without a group it publishes nothing."""

    def __init__(self, options: Options):
        self._options = options
        self._published: Positions = {}
        self._admin: Admin | None = None

    def __getstate__(self) -> dict[str, object]:
        """Spark pickles the reader for its tasks, which publish nothing."""
        return {**self.__dict__, "_admin": None}

    def publish(self, offsets: Positions) -> None:
        """Commit these positions, unless they have been committed already."""
        group_id, options = self._options.group_id, self._options
        if group_id is None or offsets == self._published:
            return
        try:
            if self._admin is None:
                from moldau.client.administration.admin import Admin  # takes a while, and most queries have no group

                self._admin = Admin(
                    options.bootstrap_servers, client_id=options.client_id, default_api_timeout_ms=PUBLISH_TIMEOUT_MS
                )
            self._admin.alter_group_offsets(group_id, offsets)
            self._published = dict(offsets)
        except MoldauError as error:
            logger.warning("The progress of group %s was not published: %s", group_id, error)

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None
