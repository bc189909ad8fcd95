"""`moldau log repair`: repair damaged metadata or log folders, so that their broker can start again.

The changes are shown first; `--execute` carries them out. Nothing is changed while a decision is left to a person.
"""

from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.log.files import FilesOnly
from moldau.cli.options import Json
from moldau.cli.output import note, print_json
from moldau.errors import ConfigError
from moldau.files.repairing import Repair
from moldau.names import TopicPartition
from moldau.runtime import Runtime

EVERYTHING = "all"


def repair(
    folders: Annotated[list[Path], Argument("DIR...", help="Every log folder of one stopped broker.")],
    accept_empty: Annotated[
        list[str] | None,
        Option(metavar="TOPIC-N", help="A lost partition (or a topic, or `all`) that starts empty; repeatable."),
    ] = None,
    node_id: Annotated[int | None, Option(help="The broker's node.id, used only if no file names it.")] = None,
    execute: Annotated[bool, Option("--execute", help="Carry out the changes; otherwise they are only shown.")] = False,
    as_json: Json = False,
) -> int:
    """
    Make the log folders of a stopped broker agree, so that it can start again.

    Damaged metadata is replaced by its copy, or rebuilt from the partitions' own files; topics that it does not know
    are added. A damaged meta.properties is written again. Records are never changed. If a decision is left to you, the
    exit code is 1 and nothing is changed.

    Examples:

      moldau log repair moldau-data

      moldau log repair /disk1/moldau /disk2/moldau --accept-empty events-3 --execute
    """
    names, used = set(accept_empty or ()), set[str]()

    def accepted(tp: TopicPartition) -> bool:
        said = names & {EVERYTHING, tp.topic, str(tp)}
        used.update(said)
        return bool(said)

    with Repair(folders, Runtime(disk=FilesOnly())) as repairing:
        plan = repairing.plan(accepted, node_id)
        unused = sorted(names - used - {EVERYTHING})
        if unused:
            raise ConfigError(f"--accept-empty {unused[0]}: no such partition has lost its folder")
        done = execute and not plan.problems
        if done:
            repairing.carry_out(plan)
    if as_json:
        print_json({"changes": plan.changes, "problems": plan.problems, "executed": done})
    else:
        for sentence in plan.changes:
            print(sentence)
        for sentence in plan.problems:
            print(f"problem: {sentence}")
        if not plan.changes and not plan.problems:
            print("nothing to repair")
    if plan.problems:
        note("nothing was changed: solve the problems first")
    elif plan.changes and not execute:
        note("nothing was changed: add --execute to carry it out")
    return 1 if plan.problems else 0
