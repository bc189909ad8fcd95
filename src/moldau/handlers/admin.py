"""The handlers that need nothing but the cluster: which API is answered by whom."""

from collections.abc import Callable
from typing import Any

from moldau.cluster.cluster import Cluster
from moldau.handlers.api_versions import api_versions
from moldau.handlers.cluster import DescribeCluster
from moldau.handlers.configs import Configs
from moldau.handlers.metadata import Metadata
from moldau.handlers.producer_ids import InitProducerId
from moldau.handlers.topics import Topics
from moldau.protocol import apis


def admin_handlers(cluster: Cluster) -> dict[int, Callable[..., Any]]:
    """By API key; each is called with the request's message and its `Context`."""
    topics, configs = Topics(cluster), Configs(cluster)
    return {
        apis.API_VERSIONS.key: api_versions,
        apis.METADATA.key: Metadata(cluster),
        apis.DESCRIBE_CLUSTER.key: DescribeCluster(cluster),
        apis.CREATE_TOPICS.key: topics.create,
        apis.DELETE_TOPICS.key: topics.delete,
        apis.CREATE_PARTITIONS.key: topics.create_partitions,
        apis.DESCRIBE_CONFIGS.key: configs.describe,
        apis.INCREMENTAL_ALTER_CONFIGS.key: configs.alter,
        apis.INIT_PRODUCER_ID.key: InitProducerId(cluster),
    }
