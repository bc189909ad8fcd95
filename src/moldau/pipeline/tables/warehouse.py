"""A warehouse: a folder or URL with one Delta table for each topic, and one for the rejected records of a topic.

    WAREHOUSE/flights/                      the table of topic flights
        _delta_log/                         its log: which files are in it, and the next offset of each partition
        _date=2013-01-01/part-....parquet   its data files
    WAREHOUSE/_quarantine/flights/          records of the topic that could not be decoded

A warehouse of format 1, with manifests of our own, is refused until it was converted (`pipeline/conversion`).
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow

from moldau.pipeline.tables.columns import REJECTED, TableError, names_of_partitions, of_table
from moldau.pipeline.tables.storage import Location, check_writable, location
from moldau.pipeline.tables.table import Table

QUARANTINE = "_quarantine"
STATE_OF_FORMAT_1 = "_moldau"
NOT_FOR_TOPICS = (QUARANTINE, STATE_OF_FORMAT_1)


class Warehouse:
    """The tables of a warehouse, by topic."""

    def __init__(self, of: str | Path, storage_options: Mapping[str, str] | None = None):
        self.where = location(of, storage_options)

    def check(self) -> None:
        """Raise TableError if the warehouse has format 1, or is a table itself."""
        names = self.where.folders()
        if "_delta_log" in names:
            raise TableError(f"{self.where.uri} is a table; name the folder that it is in.")
        if STATE_OF_FORMAT_1 in names and any(name.startswith("topic=") for name in names):
            raise TableError(
                f"The warehouse {self.where.uri} has the format of an earlier version: convert it once with 'moldau "
                f"pipeline convert {self.where.uri}'."
            )

    def check_exists(self) -> None:
        """For commands that only read: raise TableError if the warehouse is no folder or does not exist, or for what
        `check` refuses. In an object store a folder exists if it has objects."""
        if self.where.is_local and os.path.exists(self.where.uri) and not os.path.isdir(self.where.uri):
            raise TableError(f"The warehouse {self.where.uri} is not a folder.")
        self.check()
        if not (os.path.isdir(self.where.uri) if self.where.is_local else self.where.folders()):
            raise TableError(f"The warehouse {self.where.uri} does not exist.")

    def check_writable(self, topic: str, rejects: bool) -> None:
        """Raise TableError if this process may not write to the local folders of a load, or create them."""
        for table in [self.place(topic), *([self.place_of_rejected(topic)] if rejects else [])]:
            check_writable(table)
            check_writable(table / "_delta_log")

    def place(self, topic: str) -> Location:
        """Where the table of a topic is, or would be."""
        if topic in NOT_FOR_TOPICS:
            raise TableError(f"A topic named {topic} cannot be loaded: the warehouse keeps this name for itself.")
        return self.where / topic

    def place_of_rejected(self, topic: str) -> Location:
        return self.where / QUARANTINE / topic

    def table(self, topic: str) -> Table | None:
        """The table of a topic; None if nothing was ever loaded."""
        return Table.open(self.place(topic))

    def create(self, topic: str, columns: pyarrow.Schema, partition_by: str, key_columns: Sequence[str] = ()) -> Table:
        """Open the table of a topic, or create it with these columns, partition columns among them."""
        return Table.create(self.place(topic), columns, names_of_partitions(partition_by), key_columns)

    def rejected(self, topic: str) -> Table | None:
        """The table of the rejected records of a topic; None if none was ever rejected."""
        return Table.open(self.place_of_rejected(topic))

    def create_rejected(self, topic: str) -> Table:
        """Open the table of the rejected records of a topic, or create it."""
        return Table.create(self.place_of_rejected(topic), of_table(REJECTED, "none"), [])

    def tables(self) -> dict[str, Location]:
        """Every table by its name, those of rejected records included; a table itself if the warehouse is one. Raises
        TableError if there is none."""
        if Table.exists(self.where):
            return {self.where.uri.rpartition("/")[2]: self.where}
        tables = {topic: self.where / topic for topic in self.topics()}
        for topic in self.place_of_rejected("").folders():
            tables[f"{QUARANTINE}/{topic}"] = self.place_of_rejected(topic)
        if not tables and "metadata" in self.where.folders():
            raise TableError(
                f"{self.where.uri} is an Iceberg table: Spark's procedures rewrite_data_files, expire_snapshots and "
                "remove_orphan_files keep it healthy, and its metadata table snapshots is its history."
            )
        if not tables:
            raise TableError(f"{self.where.uri} has no table.")
        return tables

    def topics(self) -> list[str]:
        """The topics that have a table."""
        names = [name for name in self.where.folders() if name not in NOT_FOR_TOPICS]
        return [name for name in names if Table.exists(self.where / name)]
