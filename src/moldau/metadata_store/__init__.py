"""Stores for the metadata of a cluster: sessions in ZooKeeper, or in a SQLite file."""
