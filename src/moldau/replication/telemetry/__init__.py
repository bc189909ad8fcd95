"""What clients have pushed (KIP-714), on its way into a topic."""
