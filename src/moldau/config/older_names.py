"""What Kafka 0.7 called the settings of a broker, and how its releases before 3.0 named the address of their only
listener.

    hostname, port                             0.7: the address that clients are told; all interfaces are listened on
    host.name, port                            before 3.0: the address that is listened on, if `listeners` is not set
    advertised.host.name, advertised.port      before 3.0: the address that clients are told, if `advertised.listeners`
                                               is not set
    enable.zookeeper=false                     0.7: the broker runs alone, whatever `zk.connect` says

Source: the configuration pages of Kafka 0.7 and 2.8.
"""

from collections.abc import Mapping

from moldau.errors import ConfigError

_RENAMED = {
    "brokerid": "broker.id",
    "log.default.flush.interval.ms": "log.flush.interval.ms",
    "log.default.flush.scheduler.interval.ms": "log.flush.scheduler.interval.ms",
    "log.file.size": "log.segment.bytes",
    "log.flush.interval": "log.flush.interval.messages",
    "log.retention.size": "log.retention.bytes",
    "max.socket.request.bytes": "socket.request.max.bytes",
    "num.threads": "num.io.threads",
    "socket.receive.buffer": "socket.receive.buffer.bytes",
    "socket.send.buffer": "socket.send.buffer.bytes",
    "zk.connect": "zookeeper.connect",
    "zk.connectiontimeout.ms": "zookeeper.connection.timeout.ms",
    "zk.sessiontimeout.ms": "zookeeper.session.timeout.ms",
    "zk.synctime.ms": "zookeeper.sync.time.ms",
}
_CLEANUP_MINUTES = "log.cleanup.interval.mins"
_HAS_ZOOKEEPER = "enable.zookeeper"
_LISTENED_ON = ("host.name", "port")
_ADVERTISED = ("hostname", "advertised.host.name", "advertised.port")
NAMES = frozenset({*_RENAMED, _CLEANUP_MINUTES, _HAS_ZOOKEEPER, *_LISTENED_ON, *_ADVERTISED})
DEFAULT_PORT = "9092"


def listener(properties: Mapping[str, str]) -> str | None:
    """The listener that the older names ask for; None if they name none."""
    if not any(name in properties for name in (*_LISTENED_ON, "hostname")):
        return None
    return _address(properties.get("host.name", ""), properties.get("port", DEFAULT_PORT))


def current(properties: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings by today's names, and a notice of those that had older ones. Raises `ConfigError` if a setting has
    another value by its older name."""
    older = NAMES & properties.keys()
    if not older:
        return dict(properties), []
    settings = {name: text for name, text in properties.items() if name not in older}
    said = []
    for name in sorted(older & _RENAMED.keys()):
        _set(settings, _RENAMED[name], properties[name], name)
        said.append(f"{name} is {_RENAMED[name]}")
    if _CLEANUP_MINUTES in older:
        minutes = properties[_CLEANUP_MINUTES].strip()
        if not (minutes.isascii() and minutes.isdigit()):
            raise ConfigError(f"{_CLEANUP_MINUTES} must be a whole number, not {minutes[:60]!r}")
        _set(settings, "log.retention.check.interval.ms", str(int(minutes[:12]) * 60_000), _CLEANUP_MINUTES)
        said.append(f"{_CLEANUP_MINUTES} is log.retention.check.interval.ms")
    if _HAS_ZOOKEEPER in older:
        said.append(_with_zookeeper(settings, properties[_HAS_ZOOKEEPER]))
    said += _with_listener(settings, properties)
    return settings, [f"some settings have other names today: {', '.join(said)}"] if said else []


def _set(settings: dict[str, str], name: str, text: str, older: str) -> None:
    if settings.setdefault(name, text).strip() != text.strip():
        raise ConfigError(f"{older} is an older name of {name}, and they differ: give one of them, or the same to both")


def _with_zookeeper(settings: dict[str, str], text: str) -> str:
    answer = text.strip().lower()
    if answer not in ("true", "false"):
        raise ConfigError(f"{_HAS_ZOOKEEPER} must be true or false, not {text[:60]!r}")
    if answer == "false":
        settings.pop("zookeeper.connect", None)
        return f"{_HAS_ZOOKEEPER}=false is no zookeeper.connect"
    if not settings.get("zookeeper.connect", "").strip():
        raise ConfigError(f"{_HAS_ZOOKEEPER} is true, but zookeeper.connect names no server")
    return f"{_HAS_ZOOKEEPER} is zookeeper.connect"


def _with_listener(settings: dict[str, str], properties: Mapping[str, str]) -> list[str]:
    said = []
    asked, port = listener(properties), properties.get("port", DEFAULT_PORT)
    if "listeners" in settings:
        port = "0"  # the listener's own
    elif asked is not None:
        settings["listeners"] = asked
        said = [f"{name} is listeners" for name in _LISTENED_ON if name in properties]
    if "advertised.listeners" not in settings and any(name in properties for name in _ADVERTISED):
        hosts = [properties.get(name, "") for name in ("advertised.host.name", "hostname", "host.name")]
        host = next(filter(None, hosts), "")
        settings["advertised.listeners"] = _address(host, properties.get("advertised.port", port))
        said += [f"{name} is advertised.listeners" for name in _ADVERTISED if name in properties]
    return said


def _address(host: str, port: str) -> str:
    host = host.strip()
    return f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port.strip()}"
