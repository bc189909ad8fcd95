"""Diagnoses of a broker's settings: unknown names, invalid values, contradictions, and what a start accepts although it
is hardly meant."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Final

from moldau.cli.doctor.checks.addresses import EVERYWHERE, LOOPBACK
from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, sentence
from moldau.config import RATES, SETTINGS, BrokerConfig, broker_config, kafka_names, older_names, with_changes
from moldau.errors import ConfigError
from moldau.names import guess

AREA: Final = "configuration"
_OF_LISTENER: Final = "listener.name."
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run")
_ALIKE: Final = (
    "auto.create.topics.enable", "default.replication.factor", "message.max.bytes", "min.insync.replicas",
    "num.partitions", "offsets.topic.replication.factor", "transaction.state.log.replication.factor",
    "unclean.leader.election.enable",
)  # fmt: skip
"""Settings that are read by whichever broker answers, so a difference looks like chance."""
_CORRECT: Final = "Correct the line in the settings file."


def of_settings(properties: Mapping[str, str]) -> list[Diagnosis]:
    """`properties`: the settings as they are in the file and on the command line."""
    found = [Diagnosis(Severity.ERROR, AREA, sentence(wrong), _CORRECT) for wrong in _wrong_lines(properties)]
    if found:
        return found
    try:
        config, warnings = broker_config(properties)
    except ConfigError as error:
        return [Diagnosis(Severity.ERROR, AREA, sentence(f"the broker would not start: {error}"), _CORRECT)]
    found = [
        Diagnosis(Severity.NOTE, AREA, sentence(warning), "Remove the setting if you rely on it.")
        for warning in warnings
    ]
    return [*found, *(one for rule in _RULES for one in rule(config))]


def of_brokers(settings: Mapping[int, Mapping[str, str | None]]) -> list[Diagnosis]:
    """`settings`: those in force, by broker."""
    found: list[Diagnosis] = []
    for name in _ALIKE:
        values = {broker: own[name] for broker, own in settings.items() if own.get(name) is not None}
        if len({*values.values()}) > 1:
            shown = ", ".join(f"{value} on broker {broker}" for broker, value in values.items())
            problem = f"{name} differs among the brokers: {shown}."
            found.append(Diagnosis(Severity.WARNING, AREA, problem, "Give all brokers of a cluster the same value."))
    for own in settings.values():
        changes = {name: text for name in _ALIKE if (text := own.get(name)) is not None}
        try:
            config = with_changes(BrokerConfig(), changes)
        except ConfigError:  # a broker of Kafka's may allow more
            continue
        found += [*_in_sync(config), *_unclean(config)]
    return list(dict.fromkeys(found))


def _wrong_lines(properties: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with each setting by itself."""
    try:
        current, _ = older_names.current(properties)
    except ConfigError as error:
        yield str(error)
        return
    for name, text in current.items():
        setting = SETTINGS.get(name)
        if kafka_names.is_refused(name, text):
            yield kafka_names.REFUSED[name]
        elif setting is not None:
            try:
                setting.parse(text)
            except ConfigError as error:
                yield str(error)
        elif not (name.startswith(_OF_LISTENER) or name in RATES or kafka_names.known(name)):
            yield f"there is no setting {name!r}{guess(name, [*SETTINGS, *kafka_names.NAMES, *older_names.NAMES])}"


def _in_sync(config: BrokerConfig) -> Iterator[Diagnosis]:
    factor, least = config.default_replication_factor, config.min_insync_replicas
    if least > factor >= 1:
        yield Diagnosis(
            Severity.ERROR,
            AREA,
            f"min.insync.replicas is {least}, and new topics have only {factor} replicas, so no record with acks=all"
            " can be written to them.",
            f"Set default.replication.factor to {least + 1}, or min.insync.replicas to at most {factor}.",
        )
    elif least == factor > 1:
        yield Diagnosis(
            Severity.WARNING,
            AREA,
            f"min.insync.replicas and default.replication.factor are both {factor}, so writes with acks=all stop when"
            " one broker is away.",
            f"Set default.replication.factor to {factor + 1}, or min.insync.replicas to {factor - 1}.",
        )


def _unclean(config: BrokerConfig) -> Iterator[Diagnosis]:
    if config.unclean_leader_election_enable:
        yield Diagnosis(
            Severity.WARNING,
            AREA,
            "unclean.leader.election.enable is true, so a replica that lacks acknowledged records may lead, and they"
            " are lost.",
            "Remove it, and use `moldau cluster elect-leaders --unclean` for the partitions that cannot be helped.",
        )


def _log_folders(config: BrokerConfig) -> Iterator[Diagnosis]:
    for folder in config.data_folders:
        if any(PurePath(folder).is_relative_to(temporary) for temporary in _TEMPORARY):
            yield Diagnosis(
                Severity.WARNING,
                AREA,
                f"The log folder {folder} is in a place that systems empty at a start.",
                "Set log.dirs to a folder on a lasting disk, and move the files there while the broker is stopped.",
            )


def _advertised(config: BrokerConfig) -> Iterator[Diagnosis]:
    for listener in config.client_listeners:
        name = listener.name
        given = listener.advertised
        if given is None:
            continue
        if given.host in EVERYWHERE[1:]:
            yield Diagnosis(
                Severity.ERROR,
                AREA,
                f"The listener {name} tells clients to connect to {given.host}, which is no address of a machine.",
                f"Set advertised.listeners to {name}://HOST:PORT with a name of this machine that clients resolve.",
            )
        elif listener.host in EVERYWHERE and given.host in LOOPBACK:
            yield Diagnosis(
                Severity.WARNING,
                AREA,
                f"The listener {name} accepts connections from everywhere, but tells clients to connect to"
                f" {given.host}, where programs on other machines find themselves.",
                f"Set advertised.listeners to {name}://HOST:PORT with a name of this machine that clients resolve.",
            )
        elif listener.host in EVERYWHERE and not given.host:
            yield Diagnosis(
                Severity.NOTE,
                AREA,
                f"The listener {name} accepts connections from everywhere, and tells clients the name that this machine"
                " has for itself.",
                f"Set advertised.listeners to {name}://HOST:PORT if clients do not resolve that name.",
            )


def _open_to_all(config: BrokerConfig) -> Iterator[Diagnosis]:
    plain = [one.name for one in config.client_listeners if one.protocol == "PLAINTEXT" and one.host not in LOOPBACK]
    if plain and not config.authorizer_class_name:
        yield Diagnosis(
            Severity.NOTE,
            AREA,
            f"Every program that reaches the listener {plain[0]} may read, write and delete everything.",
            "See docs/security.md if others than yours can reach it.",
        )


_RULES: Final[tuple[Callable[[BrokerConfig], Iterator[Diagnosis]], ...]] = (
    _in_sync, _unclean, _log_folders, _advertised, _open_to_all,
)  # fmt: skip
