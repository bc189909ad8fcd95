"""What a mirror of another cluster's topic does otherwise than a topic that clients write to."""
