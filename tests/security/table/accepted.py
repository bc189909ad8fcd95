"""Where our answers are other ones than Kafka's, and why."""

ACCEPTED: dict[tuple[str, str, str], str] = {}
"""By API, case and rights."""
