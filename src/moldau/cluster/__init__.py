"""What the cluster knows about itself: a store of facts, a picture of them, and pure decisions about changing them."""
