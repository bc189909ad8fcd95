"""`moldau log`: what is in the files of a broker that does not run."""

import enum
import sys
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.log.adopt import adopt
from moldau.cli.log.columns import topic_of, write_columns
from moldau.cli.log.files import FilesOnly, Force, files_of, refuse_if_used
from moldau.cli.log.importing import import_files
from moldau.cli.log.lines import (
    finding_as_json,
    finding_as_text,
    json_line,
    seen_as_json,
    seen_as_text,
    text_line,
)
from moldau.cli.log.repair import repair
from moldau.cli.options import Json
from moldau.cli.output import note
from moldau.errors import ConfigError
from moldau.files.inspection.decoding import DECODERS, OF_TOPIC
from moldau.files.inspection.documents import documents
from moldau.files.inspection.findings import CheckedTotals
from moldau.files.inspection.log_folders import holds_log
from moldau.files.inspection.log_folders import verify as verify_folder
from moldau.log.folders.identity import META_PROPERTIES
from moldau.metadata_store.embedded import FILE_NAME as STORE_FILE
from moldau.names import counted
from moldau.runtime import RealDisk

app = Group("log")
app.command()(adopt)
app.command("import")(import_files)
app.command()(repair)


class RecordKind(enum.StrEnum):
    """Whose records they are."""

    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"


@app.command()
def dump(
    paths: Annotated[list[Path], Argument("PATH...", help="Files, partitions' folders, log folders.")],
    records: Annotated[bool, Option("--records", "-r", help="Also print every record.")] = False,
    decoder: Annotated[
        RecordKind | None, Option(help="Decode the records of __consumer_offsets or __transaction_state.")
    ] = None,
    arrow: Annotated[Path | None, Option(metavar="FILE", help="Write the records as columns to an Arrow file.")] = None,
    parquet: Annotated[
        Path | None, Option(metavar="FILE", help="Write the records as columns to a Parquet file.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """
    Print the content of log files: batches, records, indexes, producer snapshots, checkpoints.

    With --json each line is one object; what is not UTF-8 is base64. In the folders of __consumer_offsets and
    __transaction_state records are decoded without --decoder. The exit code is 1 if something cannot be read.

    Examples:

      moldau log dump moldau-data/events-0

      moldau log dump moldau-data/events-0/00000000000000000000.log --records --json

      moldau log dump moldau-data/events-0 --parquet events.parquet
    """
    disk = FilesOnly()
    for path in paths:
        refuse_if_used(path, force)
    files = [file for path in paths for file in files_of(disk, path)]
    if arrow or parquet:
        return _dump_columns(disk, files, arrow, parquet)
    write, out = json_line if as_json else text_line, sys.stdout.buffer
    bad = 0
    for path in files:
        chosen = DECODERS[decoder] if decoder else OF_TOPIC.get(topic_of(path).topic)
        for document in documents(disk, path, with_records=records or decoder is not None, decoder=chosen):
            out.write(write(document))
            bad += document["type"] == "problem"
    out.flush()
    return 1 if bad else 0


def _dump_columns(disk: RealDisk, files: list[Path], arrow: Path | None, parquet: Path | None) -> int:
    problems: list[str] = []
    for target, is_parquet in ((arrow, False), (parquet, True)):
        if target is not None:
            problems.clear()
            count = write_columns(disk, files, target, parquet=is_parquet, say=problems.append)
            note(f"{counted(count, 'record')}: {target}")
    for problem in problems:
        note(problem)
    return 1 if problems else 0


@app.command()
def verify(
    folders: Annotated[list[Path], Argument("FOLDER...", help="Log folders, or partitions' folders.")],
    strict: Annotated[bool, Option("--strict", help="Treat notes as errors.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """
    Check log folders: every batch and record, offsets, indexes, snapshots, checkpoints.

    Each line is one finding: an error, or a note. Damage by an unclean stop that the next start repairs is a note. The
    exit code is 0 if there is no error, else 1. With --json each line is one object.

    Examples:

      moldau log verify moldau-data

      moldau log verify moldau-data/events-0 moldau-data/events-1 --strict
    """
    disk, seen = FilesOnly(), CheckedTotals()
    for folder in folders:
        refuse_if_used(folder, force)
        if not holds_log(disk, folder):
            raise ConfigError(f"{folder} is not a log folder: it holds no partition and no {META_PROPERTIES}")
    errors = notes = 0
    out = sys.stdout.buffer
    for folder in folders:
        for finding in verify_folder(disk, folder, seen, others=[STORE_FILE]):
            errors, notes = errors + finding.wrong, notes + (not finding.wrong)
            out.write((finding_as_json if as_json else finding_as_text)(finding))
    out.write((seen_as_json if as_json else seen_as_text)(seen, errors, notes))
    out.flush()
    return 1 if errors or (strict and notes) else 0
