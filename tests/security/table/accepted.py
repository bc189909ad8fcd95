"""Where our answers are other ones than Kafka's, and why."""

ACCEPTED = {
    ("CreateAcls", "of unknown kinds", "cluster alter"): "Kafka fails with an unknown error; ours says what is wrong",
}
"""By API, case and rights."""
