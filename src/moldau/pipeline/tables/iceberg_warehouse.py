"""A warehouse of Iceberg tables in a catalog: one table for each topic, and one for its rejected records.

    NAMESPACE.flights               the table of topic flights
    NAMESPACE_quarantine.flights    records of the topic that could not be decoded

The catalog is any that pyiceberg knows (REST, SQL, Hive, Glue, ...), by its name and properties.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow

from moldau.pipeline.tables.columns import (
    REJECTED,
    WITH_STATISTICS,
    TableError,
    in_files,
    names_of_partitions,
    of_table,
)
from moldau.pipeline.tables.iceberg_table import KEY_COLUMNS, METRICS, IcebergTable, iceberg_errors_in_a_sentence
from moldau.pipeline.tables.storage import Location, check_writable, location

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CreateTableTransaction

PROPERTIES = {
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    f"{METRICS}.default": "none",
}
"""Of new tables. Without retries, a writer that another commit has overtaken fails: pyiceberg 0.12 and Spark repeat the
append of a snapshot, though with the table properties that they had read before. Without the next two, each commit
would leave files of metadata that nothing removes."""


class IcebergWarehouse:
    """The tables of a namespace, by topic. Raises TableError if the catalog cannot be opened."""

    def __init__(self, catalog: str, properties: Mapping[str, str], namespace: str):
        from pyiceberg.catalog import load_catalog

        self._subject = f"The Iceberg catalog {catalog}"
        self.namespace = namespace
        self.quarantine = f"{namespace}_quarantine"
        with iceberg_errors_in_a_sentence(self._subject):
            self._catalog: Catalog = load_catalog(catalog, **properties)
        where = self._catalog.properties.get("warehouse", "")
        if location(where, of_iceberg=True).is_local and (misread := re.search(r"[#?\x00-\x1f]", where)):
            raise TableError(
                f"{self._subject} cannot have its tables in {where!r}: pyiceberg ends the path at {misread[0]!r}, so "
                "rename the folder."
            )

    def check(self) -> None:
        """Raise TableError if the catalog does not answer. Creates nothing."""
        with iceberg_errors_in_a_sentence(self._subject):
            self._catalog.namespace_exists(self.namespace)

    def check_writable(self, topic: str, rejects: bool) -> None:
        """Raise TableError if this process may not write to the local folders of a load, or create them, or if the
        catalog has no place for a new table. Where that is can be known only if the catalog has the property
        `warehouse`; otherwise this creates the namespace."""
        for namespace in [self.namespace, *([self.quarantine] if rejects else [])]:
            table = self._open(namespace, topic)
            if table is not None:
                check_writable(table.where)
            elif "warehouse" in self._catalog.properties:
                check_writable(location(self._catalog.properties["warehouse"], of_iceberg=True))
            else:
                self._check_place(namespace, topic)

    def table(self, topic: str) -> IcebergTable | None:
        """The table of a topic; None if nothing was ever loaded."""
        return self._open(self.namespace, topic)

    def create(
        self, topic: str, columns: pyarrow.Schema, partition_by: str, key_columns: Sequence[str] = ()
    ) -> IcebergTable:
        """Open the table of a topic, or create it with these columns, partition columns among them."""
        return self._create(self.namespace, topic, columns, partition_by, key_columns)

    def rejected(self, topic: str) -> IcebergTable | None:
        """The table of the rejected records of a topic; None if there is none yet."""
        return self._open(self.quarantine, topic)

    def create_rejected(self, topic: str) -> IcebergTable:
        """Open the table of the rejected records of a topic, or create it."""
        return self._create(self.quarantine, topic, of_table(REJECTED, "none"), "none")

    def place_of_rejected(self, topic: str) -> Location:
        """Where tasks write the rejected records of a topic. Creates their table, because the catalog says where a
        table lies only when it has it."""
        return self.create_rejected(topic).where

    def _open(self, namespace: str, topic: str) -> IcebergTable | None:
        from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchNamespaceError, NoSuchTableError

        with iceberg_errors_in_a_sentence(f"{namespace}.{topic}"):
            try:
                return IcebergTable(self._catalog.load_table((namespace, topic)))
            except NoSuchIcebergTableError:
                raise TableError(f"{namespace}.{topic} is not an Iceberg table.") from None
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def _create(
        self,
        namespace: str,
        topic: str,
        columns: pyarrow.Schema,
        partition_by: str,
        key_columns: Sequence[str] = (),
    ) -> IcebergTable:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        table = self._open(namespace, topic)
        if table is not None:
            return table
        self._make_namespace(namespace)
        partitions = names_of_partitions(partition_by)
        described = [name for name in (*WITH_STATISTICS, *partitions) if name in columns.names]
        properties = PROPERTIES | {f"{METRICS}.column.{name}": "full" for name in described}
        if key_columns:
            properties[KEY_COLUMNS] = ",".join(key_columns)
        with iceberg_errors_in_a_sentence(f"{namespace}.{topic}"):
            try:
                with self._staged(namespace, topic, columns, properties) as creation:
                    with creation.update_spec() as spec:
                        for name in partitions:
                            spec.add_identity(name)
            except (TableAlreadyExistsError, CommitFailedException):
                pass  # another load was first
        table = self._open(namespace, topic)
        if table is None:
            raise TableError(f"{namespace}.{topic} cannot be created: {self._subject} does not show it.")
        return table

    def _staged(
        self, namespace: str, topic: str, columns: pyarrow.Schema, properties: Mapping[str, str]
    ) -> "CreateTableTransaction":
        """The creation of a table; the catalog does not have it before the transaction is committed."""
        try:
            return self._catalog.create_table_transaction(
                (namespace, topic), schema=columns, properties=dict(properties)
            )
        except ValueError as error:
            if "No default path" not in str(error):
                raise
            raise TableError(
                f"{self._subject} does not say where new tables are: name their folder or URL with --warehouse."
            ) from None

    def _check_place(self, namespace: str, topic: str) -> None:
        """Raise TableError if the catalog does not say where this new table would be."""
        from pyiceberg.exceptions import TableAlreadyExistsError

        self._make_namespace(namespace)
        # Another load may have created it since.
        with iceberg_errors_in_a_sentence(f"{namespace}.{topic}"), contextlib.suppress(TableAlreadyExistsError):
            self._staged(namespace, topic, of_table(in_files(), "none"), PROPERTIES)

    def _make_namespace(self, namespace: str) -> None:
        with iceberg_errors_in_a_sentence(f"{self._subject}, namespace {namespace},"):
            if not self._catalog.namespace_exists(namespace):
                self._catalog.create_namespace_if_not_exists(namespace)
