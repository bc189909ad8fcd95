"""What an admin client says of a broker that it knew, and that has died."""

import pytest

from moldau import Admin
from moldau.errors import BrokerNotAvailable
from moldau.testing import Cluster

HOUR_MS = 3_600_000


def test_a_broker_is_not_asked_for_longer_than_the_cluster_has_it() -> None:
    with Cluster(brokers=2) as cluster, Admin(cluster.address, default_api_timeout_ms=HOUR_MS) as admin:
        assert sorted(admin.describe_log_dirs()) == [1, 2]
        cluster.brokers[1].kill()
        with pytest.raises(BrokerNotAvailable, match=r"^broker 2 is not up$"):
            admin.describe_log_dirs([2])
        assert sorted(admin.describe_log_dirs()) == [1]
