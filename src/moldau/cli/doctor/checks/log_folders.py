"""Diagnoses of log folders: of a running broker, by what it says of them, and of a stopped one, by what is in them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, some_of
from moldau.cli.doctor.checks.disks import USABLE_BYTES_MIN, size_text
from moldau.names import counted

AREA: Final = "folders"
USED_SHARE_MANY: Final = 0.85


class ServedFolder(NamedTuple):
    """A log folder that a running broker has; `error` is "" if it is online. Sizes are in bytes, -1 if unknown."""

    broker: int
    path: str
    error: str = ""
    total: int = -1
    usable: int = -1
    replicas: int = 0
    size: int = 0
    arriving: int = 0


class StoppedFolder(NamedTuple):
    """A log folder as it is on the disk. `in_use`: a broker runs with it now. `owner` is the broker and `cluster_id`
    the cluster in meta.properties, "" if it has none. `strange` are names of unknown files and folders, `lost`
    partitions that checkpoints mention and whose folder is missing, `leftovers` what deletions and moves have left."""

    path: str
    in_use: bool = False
    was_clean: bool = True
    owner: str = ""
    cluster_id: str = ""
    error: str = ""
    partitions: int = 0
    size: int = 0
    strange: Sequence[str] = ()
    lost: Sequence[str] = ()
    leftovers: int = 0


def of_served(folders: Collection[ServedFolder]) -> list[Diagnosis]:
    found = []
    for one in folders:
        if one.error:
            problem = f"The log folder {one.path} of broker {one.broker} is offline: {one.error}."
            advice = "Repair or replace its disk, then restart the broker (docs/cluster-operations.md, a disk lost)."
            found.append(Diagnosis(Severity.ERROR, AREA, problem, advice))
        elif 0 <= one.usable < max(one.total * (1 - USED_SHARE_MANY), USABLE_BYTES_MIN):
            problem = (
                f"The disk of {one.path} of broker {one.broker} is nearly full: {size_text(one.usable)} of"
                f" {size_text(one.total)} are left; {counted(one.replicas, 'replica')} take {size_text(one.size)}."
            )
            advice = (
                "Move replicas away (`moldau cluster balance`, `moldau cluster log-dirs --move`), or lower retention."
            )
            found.append(Diagnosis(Severity.WARNING, AREA, problem, advice))
        if one.arriving:
            problem = f"{counted(one.arriving, 'replica')} on the way to {one.path} of broker {one.broker}."
            found.append(Diagnosis(Severity.NOTE, AREA, problem, "`moldau cluster log-dirs` shows what is left."))
    return found


def of_stopped(folders: Collection[StoppedFolder], broker_id: int | None = None) -> list[Diagnosis]:
    """`broker_id`: the broker that the settings name, None if they name none."""
    found = [one for folder in folders for one in _of_stopped(folder, broker_id)]
    clusters = sorted({one.cluster_id for one in folders if one.cluster_id})
    if len(clusters) > 1:
        problem = f"The log folders belong to different clusters: {', '.join(clusters)}."
        found.append(Diagnosis(Severity.ERROR, AREA, problem, "Name the log folders of one broker in log.dirs."))
    return found


def _of_stopped(folder: StoppedFolder, broker_id: int | None) -> Iterator[Diagnosis]:
    path = folder.path
    if folder.error:
        yield Diagnosis(Severity.ERROR, AREA, f"{path}: {folder.error}.", "Run `moldau log verify` on the folder.")
    if broker_id is not None and folder.owner and folder.owner != str(broker_id):
        problem = f"The log folder {path} belongs to broker {folder.owner}, and the settings are those of {broker_id}."
        yield Diagnosis(Severity.ERROR, AREA, problem, "Correct broker.id or log.dirs.")
    if folder.strange:
        problem = (
            f"{path} has {counted(len(folder.strange), 'name')} that no broker has made: {some_of(folder.strange)}."
        )
        yield Diagnosis(Severity.WARNING, AREA, problem, "Move them to another place; they are not served.")
    if folder.lost:
        problem = f"{path} lacks the folders of {counted(len(folder.lost), 'partition')}: {some_of(folder.lost)}."
        yield Diagnosis(
            Severity.ERROR, AREA, problem, "Look whether files were moved or deleted by hand; restore them."
        )
    if folder.in_use:
        return
    if not folder.was_clean:
        problem = f"The last stop left {path} in the middle of its work (a kill, or a power loss)."
        yield Diagnosis(Severity.NOTE, AREA, problem, "Nothing: the next start recovers its logs, which takes longer.")
    if folder.leftovers:
        problem = f"{path} has {counted(folder.leftovers, 'folder')} left by deletions and moves."
        yield Diagnosis(Severity.NOTE, AREA, problem, "Nothing: the next start finishes or removes them.")
