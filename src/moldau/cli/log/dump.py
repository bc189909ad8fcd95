"""`moldau log dump`: what is in the files of a broker that does not run."""

import enum
import sys
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.log.columns import topic_of, write_columns
from moldau.cli.log.files import FilesOnly, Force, files_of, refuse_if_used
from moldau.cli.log.lines import json_line, text_line
from moldau.cli.options import Json
from moldau.cli.output import note
from moldau.files.inspection.decoding import DECODERS, OF_TOPIC
from moldau.files.inspection.documents import documents
from moldau.names import counted
from moldau.runtime import RealDisk


class RecordKind(enum.StrEnum):
    """Whose records they are."""

    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"


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
    if arrow or parquet:
        for option, is_given in (("--records", records), ("--decoder", decoder), ("--json", as_json)):
            if is_given:
                raise UsageError(f"{option} cannot be combined with --arrow and --parquet, which have all records")
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
