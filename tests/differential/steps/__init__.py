"""The script: every area's steps, in the order they are played. Later areas use topics and ids of earlier ones."""

from tests.differential.script import Step
from tests.differential.steps import (
    codecs,
    configs,
    described,
    epochs,
    fetch,
    fetch_sessions,
    folders,
    forged,
    groups,
    hostile,
    offsets,
    positions,
    produce,
    storage,
    together,
    topics,
    transactions,
)

SCRIPT: tuple[Step, ...] = (
    *topics.STEPS,
    *configs.STEPS,
    *produce.STEPS,
    *fetch.STEPS,
    *fetch_sessions.STEPS,
    *epochs.STEPS,
    *storage.STEPS,
    *codecs.STEPS,
    *forged.STEPS,
    *positions.STEPS,
    *folders.STEPS,
    *groups.STEPS,
    *described.STEPS,
    *offsets.STEPS,
    *hostile.STEPS,
    *transactions.STEPS,
    *together.STEPS,
    *groups.LAST_STEPS,
    *topics.LAST_STEPS,
)
