"""A setting that nobody reads would be a promise that nobody keeps: it belongs into the list of what we do not have."""

from pathlib import Path

import pytest

from moldau.config import GROUP_SETTINGS, SETTINGS, TOPIC_SETTINGS
from tests.source_rules import read_all

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.together("source")  # which is parsed once
BEHIND_PROPERTIES = {
    "listeners": "client_listeners",
    "advertised.listeners": "client_listeners",
    "listener.security.protocol.map": "client_listeners",
    "inter.broker.listener.name": "client_listeners",
    "security.inter.broker.protocol": "client_listeners",
    "controller.listener.names": "client_listeners",
    "log.dir": "data_folders",
    "log.dirs": "data_folders",
    "broker.id": "node_id",
    "replica.selector.class": "reads_near",
    "super.users": "privileged",
}
BEHIND_PROPERTIES |= {  # they are bounds of that one, and of nothing else
    f"group.consumer.{bound}.{what}.ms": f"consumer_{what.replace('.', '_')}_ms"
    for what in ("session.timeout", "heartbeat.interval", "assignment.interval")
    for bound in ("min", "max")
}


def attributes_read() -> set[str]:
    """Every name that follows a dot anywhere outside of the settings themselves and the client's side."""
    apart = tuple(f"src/moldau/{name}/" for name in ("config", "client", "pipeline", "cli"))
    return {
        name
        for source in read_all(ROOT, "src")
        if source.path.startswith("src/moldau/") and not source.path.startswith(apart)
        for name in source.facts.names_after_dots
    }


def test_every_setting_of_a_broker_is_read_by_someone_or_inherited_by_topics_or_groups() -> None:
    read = attributes_read()
    inherited = {
        name for setting in (*TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()) for name in setting.broker_names
    }
    unread = [
        name
        for name, setting in SETTINGS.items()
        if name not in inherited and BEHIND_PROPERTIES.get(name, setting.field) not in read
    ]
    assert not unread
