"""`moldau cluster`: run a cluster of brokers on this machine, and show how a cluster is."""
