"""Groups in a real ZooKeeper, of our consumers and of a program that is written with kazoo alone."""
