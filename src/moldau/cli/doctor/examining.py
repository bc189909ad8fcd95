"""The whole examination: gathers the facts, and hands them to the checks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moldau.cli.doctor.brokers import ClusterFacts, cluster_facts
from moldau.cli.doctor.checks.addresses import of_addresses
from moldau.cli.doctor.checks.configuration import AREA as CONFIGURATION
from moldau.cli.doctor.checks.configuration import of_brokers, of_settings
from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, sentence, sorted_by_severity
from moldau.cli.doctor.checks.disks import AREA as DISK
from moldau.cli.doctor.checks.disks import of_disks
from moldau.cli.doctor.checks.log_folders import AREA as FOLDERS
from moldau.cli.doctor.checks.log_folders import of_served, of_stopped
from moldau.cli.doctor.checks.machines import CLOCK, DESCRIPTORS, of_clocks, of_descriptors
from moldau.cli.doctor.checks.replicas import AREA as REPLICAS
from moldau.cli.doctor.checks.replicas import of_replicas
from moldau.cli.doctor.checks.zookeeper import AREA as ZOOKEEPER
from moldau.cli.doctor.checks.zookeeper import of_zookeeper
from moldau.cli.doctor.ensemble import zookeeper_facts
from moldau.cli.doctor.log_folders import folder_facts
from moldau.cli.doctor.machine import ClockWatch, descriptor_facts, disk_facts
from moldau.config import BrokerConfig, broker_config
from moldau.errors import ConfigError

ADDRESSES = "addresses"
LARGEST = 20
"""The partitions whose sizes are in the facts, of each log folder."""


class Examination(NamedTuple):
    """What was found, the areas that were looked at, and all facts, ready to be JSON."""

    found: list[Diagnosis]
    examined: list[str]
    facts: dict[str, Any]


async def examine(bootstrap: str | None, properties: Mapping[str, str] | None) -> Examination:
    """Look at the cluster behind these brokers, at a broker of this machine by its settings, or at both. Raises
    `ConfigError` if `bootstrap` is not an address."""
    watch, found, facts = ClockWatch(), list[Diagnosis](), dict[str, Any]()
    examined: list[str] = []
    ahead_ms: dict[int, int] = {}
    if properties is not None:
        ahead_ms = await _settings(properties, found, facts, examined)
    if bootstrap is not None:
        cluster = await cluster_facts(bootstrap)
        facts["cluster"] = plain(cluster)
        _cluster(cluster, found, examined)
    clock = watch.facts()._replace(ahead_ms=ahead_ms)
    facts["clock"] = plain(clock)
    found += of_clocks(clock)
    return Examination(sorted_by_severity(found), [*dict.fromkeys([*examined, CLOCK])], facts)


async def _settings(
    properties: Mapping[str, str], found: list[Diagnosis], facts: dict[str, Any], examined: list[str]
) -> dict[int, int]:
    """The parts that a broker's settings lead to. Returns what ZooKeeper knows of the brokers' clocks."""
    found += of_settings(properties)
    config = _config(properties)
    folders = [Path(one).absolute() for one in config.data_folders]
    disks, descriptors = [disk_facts(one) for one in folders], descriptor_facts(folders)
    there = {one: folder_facts(one) for one in folders if one.is_dir()}
    stopped = [folder for folder, _ in there.values()]
    facts["disks"], facts["descriptors"] = plain(disks), plain(descriptors)
    facts["folders"] = [
        plain(folder)
        | {"largest": {str(tp): size for tp, size in sorted(sizes.items(), key=lambda one: -one[1])[:LARGEST]}}
        for folder, sizes in there.values()
    ]
    names_one = {"broker.id", "node.id", "brokerid"} & properties.keys()
    found += [
        *of_disks(disks),
        *of_descriptors(descriptors),
        *of_stopped(stopped, config.node_id if names_one else None),
    ]
    examined += [CONFIGURATION, DISK, DESCRIPTORS, FOLDERS]
    zookeeper, ahead_ms = await zookeeper_facts(config, properties)
    if zookeeper is not None:
        facts["zookeeper"], facts["clocks_ahead_ms"] = plain(zookeeper), plain(ahead_ms)
        found += of_zookeeper(zookeeper)
        examined.append(ZOOKEEPER)
    return ahead_ms


def _config(properties: Mapping[str, str]) -> BrokerConfig:
    """The settings; where they are wrong, those that lead to other parts of the examination."""
    try:
        return broker_config(properties)[0]
    except ConfigError:
        pass
    kept: dict[str, str] = {}
    for name in ("node.id", "broker.id", "log.dirs", "log.dir", "zookeeper.connect"):
        if name in properties:
            try:
                broker_config({**kept, "broker.id": "0", name: properties[name]})
            except ConfigError:
                continue
            kept[name] = properties[name]
    return broker_config({"broker.id": "0", **kept} if "node.id" not in kept else kept)[0]


def _cluster(cluster: ClusterFacts, found: list[Diagnosis], examined: list[str]) -> None:
    found += of_addresses(cluster.addresses)
    examined.append(ADDRESSES)
    for error in cluster.errors:
        advice = "Act on the reason, then run the doctor again."
        found.append(Diagnosis(Severity.WARNING, REPLICAS, sentence(error), advice))
    if cluster.status is not None:
        found += of_replicas(cluster.status, cluster.moving, cluster.single)
        found += [*of_served(cluster.folders), *of_brokers(cluster.settings)]
        examined += [REPLICAS, FOLDERS, CONFIGURATION]


def plain(facts: Any) -> Any:
    """Facts as JSON has them: tuples with names are objects."""
    if isinstance(facts, tuple) and hasattr(facts, "_asdict"):
        return {name: plain(value) for name, value in facts._asdict().items()}
    if isinstance(facts, Mapping):
        return {str(name): plain(value) for name, value in facts.items()}
    if isinstance(facts, list | tuple | set | frozenset):
        return [plain(one) for one in facts]
    return facts
