"""What a live Kafka says against what was recorded of it; and how a recording is made, from two plays."""

import datetime
from collections.abc import Sequence

from tests.differential import recording
from tests.differential.digests import digests
from tests.differential.normalising import normalised
from tests.differential.playing import Outcome
from tests.differential.recording import ANY, Recording, encode
from tests.differential.running import Run, judged, play_to_kafka, play_until_sure
from tests.differential.script import Step, steps_of
from tests.differential.steps import SCRIPT


def command(version: str) -> str:
    return f"make referee VERSION={version} WRITE=1"


def record(version: str) -> Recording:
    """Play the script to two fresh Kafkas, one after the other. What they say alike is certain."""
    steps = steps_of(version, SCRIPT)
    plays = [play_to_kafka(version, steps) for _ in range(2)]
    return recorded(version, steps, *plays)


def recorded(version: str, steps: Sequence[Step], one: Sequence[Outcome], other: Sequence[Outcome]) -> Recording:
    """The recording of two plays of these steps."""
    rules: set[str] = set()
    outcomes = {
        step.name: recording.certain(*(normalised(step.api.name, outcome, rules) for outcome in both))
        for step, *both in zip(steps, one, other, strict=True)
    }
    saved = {
        step.name: {name: encode(outcome.variables[name]) for name in step.save if name in outcome.variables}
        for step, outcome in zip(steps, one, strict=True)
        if step.save
    }
    header = {
        "kafka": version,
        "recorded": datetime.date.today().isoformat(),
        "command": command(version),
        "steps": len(steps),
        "uncertain": sum(recording.uncertain(outcome.tree) for outcome in outcomes.values()),
        "rules": sorted(rules),
    }
    return Recording(version, header, outcomes, digests(saved), saved)


def referee(version: str) -> list[Run]:
    """Plays of the script to a live Kafka of this version, each beside the recording, until it is sure."""
    known, steps = recording.read(version), steps_of(version, SCRIPT)
    return play_until_sure(lambda: judged(known, steps, play_to_kafka(version, steps), ours=False))


def where_uncertain(known: Recording) -> list[str]:
    """The steps whose answer has a place that two plays left open."""
    return [name for name, outcome in known.outcomes.items() if ANY in str(outcome.tree) or outcome.tree is ANY]
