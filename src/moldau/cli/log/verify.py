"""`moldau log verify`: whether the log folders of a broker that does not run are sound."""

import sys
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.log.files import FilesOnly, Force, refuse_if_used
from moldau.cli.log.lines import finding_as_json, finding_as_text, seen_as_json, seen_as_text
from moldau.cli.options import Json
from moldau.errors import ConfigError
from moldau.files.inspection.findings import CheckedTotals
from moldau.files.inspection.log_folders import holds_log
from moldau.files.inspection.log_folders import verify as verify_folder
from moldau.log.folders.identity import META_PROPERTIES
from moldau.metadata_store.embedded import FILE_NAME as STORE_FILE


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
