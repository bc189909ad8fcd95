"""Diagnoses where the brokers of `-b` and the settings of `--config` do not belong together: each half is then true of
another broker."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity
from moldau.cli.doctor.checks.log_folders import AREA, StoppedFolder

ADVICE: Final = "Give -b the address and --config the settings of one broker; else read their findings apart."


class OwnBroker(NamedTuple):
    """The broker that the settings describe. `is_alone`: it is the only broker of its cluster.
    `ahead_ms`: how far the brokers' clocks were ahead, as ZooKeeper knows."""

    folders: Sequence[StoppedFolder] = ()
    is_alone: bool = True
    ahead_ms: Mapping[int, int] = {}


def of_same_broker(own: OwnBroker, asked: str, cluster_id: str | None) -> list[Diagnosis]:
    """`asked` is the address that -b names, `cluster_id` the cluster that answers there, None if none does."""
    if cluster_id is None:
        return []
    clusters = sorted({one.cluster_id for one in own.folders if one.cluster_id})
    answers = f"The broker at {asked} is not the one that --config describes:"
    if clusters and cluster_id not in clusters:
        why = f"it belongs to cluster {cluster_id}, and the log folders of --config to {', '.join(clusters)}."
    elif own.is_alone and not clusters:
        why = "no broker has started with the log folders of --config yet."
    elif own.is_alone and not any(one.in_use for one in own.folders):
        why = "no broker of this machine uses the log folders of --config now. They may be a copy."
    else:
        return []
    return [Diagnosis(Severity.WARNING, AREA, f"{answers} {why}", ADVICE)]
