"""One partition on one disk: segments and their indexes, producers, epochs, recovery, retention; and the folder that
holds them."""
