"""Which rights of the user each page needs besides those to connect: refusals name them. Pure."""

_TOPIC, _GROUP, _CLUSTER = "on the topic {}", "on the group {}", "on the cluster"
RIGHTS = {
    ("GET", "/brokers"): f"Describe {_CLUSTER}",
    ("GET", "/brokers/{}"): f"DescribeConfigs {_CLUSTER}",
    ("GET", "/brokers/{}/folders"): f"Describe {_CLUSTER}",
    ("POST", "/brokers/{}/settings"): f"AlterConfigs {_CLUSTER}",
    ("POST", "/new-topic"): f"Create {_CLUSTER}, or on a topic of that name",
    ("GET", "/topics/{}"): f"Describe {_TOPIC}",
    ("GET", "/topics/{}/pulse"): f"Describe {_TOPIC}",
    ("GET", "/topics/{}/messages"): f"Read {_TOPIC}",
    ("GET", "/topics/{}/search"): f"Read {_TOPIC}",
    ("GET", "/topics/{}/tail"): f"Read {_TOPIC}",
    ("GET", "/topics/{}/export"): f"Read {_TOPIC}",
    ("GET", "/topics/{}/records/{}/{}"): f"Read {_TOPIC}",
    ("GET", "/topics/{}/produce"): f"Describe {_TOPIC}",
    ("POST", "/topics/{}/produce"): f"Write {_TOPIC}",
    ("GET", "/topics/{}/groups"): f"Describe {_TOPIC}",
    ("GET", "/topics/{}/settings"): f"DescribeConfigs {_TOPIC}",
    ("POST", "/topics/{}/settings"): f"AlterConfigs {_TOPIC}",
    ("POST", "/topics/{}/partitions"): f"Alter {_TOPIC}",
    ("POST", "/topics/{}/delete"): f"Delete {_TOPIC}",
    ("GET", "/groups/{}"): f"Describe {_GROUP}",
    ("POST", "/groups/{}/reset"): f"Read {_GROUP} and on its topics",
    ("GET", "/groups/{}/delete-offsets"): f"Describe {_GROUP}",
    ("POST", "/groups/{}/delete-offsets"): f"Delete {_GROUP} and Read on the topic",
    ("POST", "/groups/{}/delete"): f"Delete {_GROUP}",
    ("GET", "/transactions/{}"): "Describe on the transactional id {}",
    ("GET", "/hanging"): "Read on the topic",
    ("POST", "/hanging/abort"): f"Alter {_CLUSTER}",
    ("GET", "/acls"): f"Describe {_CLUSTER}",
    ("POST", "/acls"): f"Alter {_CLUSTER}",
    ("POST", "/acls/remove"): f"Alter {_CLUSTER}",
    ("GET", "/quotas"): f"DescribeConfigs {_CLUSTER}",
    ("POST", "/quotas"): f"AlterConfigs {_CLUSTER}",
    ("GET", "/moves"): f"Describe {_CLUSTER}",
    ("POST", "/moves/cancel"): f"Alter {_CLUSTER}",
}
"""Method and pattern of a page -> the right, as Kafka names it; `{}` is the first name in the path."""


def right_for(method: str, pattern: str, names: tuple[str, ...]) -> str:
    """The right that the page needs, "" if it shows to everybody what each may see."""
    return RIGHTS.get((method, pattern), "").replace("{}", names[0] if names else "")
