"""Where our answers are other ones than Kafka's, and why."""

ACCEPTED = {
    ("CreateAcls", "of unknown kinds", "cluster alter"): "Kafka fails with an unknown error; ours says what is wrong",
    ("Metadata", "before the login", "none"): "of a client that has not logged in ours reads only what a login needs",
}
"""By API, case and rights."""
