"""`moldau log repair`: let a broker start again whose metadata or log folders were damaged.

What it would do is shown; `--execute` does it. Nothing is done as long as something is left that only a person can
decide.
"""

from pathlib import Path
from typing import Annotated

import typer

from moldau.cli.log_files import FilesOnly
from moldau.cli.options import Json
from moldau.cli.output import note, print_json
from moldau.cluster.repairing import Repair
from moldau.errors import ConfigError
from moldau.names import TopicPartition
from moldau.runtime import Runtime

EVERYTHING = "all"


def repair(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="All log folders of one stopped broker.")],
    accept_empty: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC-N", help="This lost partition (a topic, or `all`) begins anew, empty; repeatable."),
    ] = None,
    node_id: Annotated[
        int | None, typer.Option(help="The broker's node.id, where nothing is left that says it.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; otherwise it is only shown.")] = False,
    as_json: Json = False,
) -> int:
    """
    Make the log folders of a stopped broker agree, so that it can start again.

    Damaged metadata are replaced by their copy, or made anew of the partitions' own files; topics that they do not
    know are taken in. A damaged meta.properties is written anew. Records are never changed. The exit code is 1 if
    something is left to decide: then nothing is done.

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
            print("nothing is wrong")
    if plan.problems:
        note("nothing was changed: solve the problems first")
    elif plan.changes and not execute:
        note("nothing was changed: add --execute to do it")
    return 1 if plan.problems else 0
