"""A setting that nobody reads would be a promise that nobody keeps: it belongs into the list of what we do not have."""

import ast
from pathlib import Path

import moldau
from moldau.config import GROUP_SETTINGS, SETTINGS, TOPIC_SETTINGS

SOURCE = Path(moldau.__file__).parent
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
    found: set[str] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] not in ("config", "client", "pipeline", "cli"):
            tree = ast.parse(path.read_text())
            found.update(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return found


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
