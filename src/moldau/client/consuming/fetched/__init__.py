"""Records that were fetched for a partition, with their epochs and positions, until the application gets them."""
