"""A broker of this machine, running or stopped, by its settings: they lead to its disks, log folders and ZooKeeper."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.cli.doctor.certificates import certificate_facts
from moldau.cli.doctor.checks.certificates import AREA as CERTIFICATES
from moldau.cli.doctor.checks.certificates import of_certificates
from moldau.cli.doctor.checks.configuration import AREA as CONFIGURATION
from moldau.cli.doctor.checks.configuration import of_settings
from moldau.cli.doctor.checks.diagnosis import Diagnosis
from moldau.cli.doctor.checks.disks import AREA as DISK
from moldau.cli.doctor.checks.disks import of_disks
from moldau.cli.doctor.checks.log_folders import AREA as FOLDERS
from moldau.cli.doctor.checks.log_folders import of_stopped
from moldau.cli.doctor.checks.machines import DESCRIPTORS, of_descriptors
from moldau.cli.doctor.checks.same_broker import OwnBroker
from moldau.cli.doctor.checks.zookeeper import AREA as ZOOKEEPER
from moldau.cli.doctor.checks.zookeeper import of_zookeeper
from moldau.cli.doctor.ensemble import zookeeper_facts
from moldau.cli.doctor.facts import plain
from moldau.cli.doctor.log_folders import folder_facts
from moldau.cli.doctor.machine import descriptor_facts, disk_facts
from moldau.config import BrokerConfig, broker_config
from moldau.errors import ConfigError
from moldau.runtime import RealClock

LARGEST: Final = 20
"""The partitions whose sizes are in the facts, of each log folder."""


async def examine_settings(
    properties: Mapping[str, str], found: list[Diagnosis], facts: dict[str, Any], examined: list[str]
) -> OwnBroker:
    """The parts that a broker's settings lead to."""
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
    if certificates := certificate_facts(config, RealClock().now_ms()):
        facts["certificates"] = plain(certificates)
        found += of_certificates(certificates)
        examined.append(CERTIFICATES)
    zookeeper, ahead_ms = await zookeeper_facts(config, properties)
    if zookeeper is not None:
        facts["zookeeper"], facts["clocks_ahead_ms"] = plain(zookeeper), plain(ahead_ms)
        found += of_zookeeper(zookeeper)
        examined.append(ZOOKEEPER)
    return OwnBroker(stopped, not config.zookeeper_connect, ahead_ms)


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
