"""What a partition knows of its producers, in memory and in snapshots: epochs, sequences, open transactions."""
