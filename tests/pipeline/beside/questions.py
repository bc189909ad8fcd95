"""All cases, by the question that each one asks."""

from tests.pipeline.beside import read_cases, sink_cases, stream_cases
from tests.pipeline.beside.playing import Case

CASES: dict[str, Case] = {**read_cases.CASES, **stream_cases.CASES, **sink_cases.CASES}
