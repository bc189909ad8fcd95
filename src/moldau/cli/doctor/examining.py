"""The whole examination: gathers the facts, and hands them to the checks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.cli.doctor.brokers import ClusterFacts, cluster_facts
from moldau.cli.doctor.checks.addresses import of_addresses
from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, sentence, sorted_by_severity
from moldau.cli.doctor.checks.log_folders import AREA as FOLDERS
from moldau.cli.doctor.checks.log_folders import of_served
from moldau.cli.doctor.checks.machines import CLOCK, of_clocks
from moldau.cli.doctor.checks.replicas import AREA as REPLICAS
from moldau.cli.doctor.checks.replicas import of_replicas
from moldau.cli.doctor.clock_watch import ClockWatch
from moldau.cli.doctor.facts import plain

if TYPE_CHECKING:
    from moldau.cli.doctor.checks.same_broker import OwnBroker

ADDRESSES = "addresses"


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
    own: OwnBroker | None = None
    if properties is not None:
        from moldau.cli.doctor.own_broker import examine_settings  # needs all settings of a broker

        own = await examine_settings(properties, found, facts, examined)
    if bootstrap is not None:
        cluster = await cluster_facts(bootstrap)
        facts["cluster"] = plain(cluster)
        _cluster(cluster, found, examined)
        if own is not None:
            from moldau.cli.doctor.checks.same_broker import of_same_broker

            asked = next((str(one) for one in cluster.addresses.bootstrap if one.works), "")
            found += of_same_broker(own, asked, cluster.addresses.cluster_id)
    clock = watch.facts()._replace(ahead_ms={} if own is None else own.ahead_ms)
    facts["clock"] = plain(clock)
    found += of_clocks(clock)
    return Examination(sorted_by_severity(found), [*dict.fromkeys([*examined, CLOCK])], facts)


def _cluster(cluster: ClusterFacts, found: list[Diagnosis], examined: list[str]) -> None:
    found += of_addresses(cluster.addresses)
    examined.append(ADDRESSES)
    for error in cluster.errors:
        advice = "Act on the reason, then run the doctor again."
        found.append(Diagnosis(Severity.WARNING, REPLICAS, sentence(error), advice))
    if cluster.status is not None:
        from moldau.cli.doctor.checks.configuration import AREA as CONFIGURATION
        from moldau.cli.doctor.checks.configuration import of_brokers  # needs all settings of a broker

        found += of_replicas(cluster.status, cluster.moving, cluster.single)
        found += [*of_served(cluster.folders), *of_brokers(cluster.settings)]
        examined += [REPLICAS, FOLDERS, CONFIGURATION]
