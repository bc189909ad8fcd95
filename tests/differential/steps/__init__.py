"""The script: every area's steps, in the order they are played. Later areas use topics and ids of earlier ones."""

from tests.differential.script import Step
from tests.differential.steps import topics

SCRIPT: tuple[Step, ...] = (*topics.STEPS,)
