"""The users of the cluster, as the metadata store keeps them."""
