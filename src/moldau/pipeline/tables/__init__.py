"""The warehouse as Delta or Iceberg tables: one table for each topic, and one beside it for its rejected records.

Nothing here knows a broker or Spark. `columns` says what a table holds, `data_file` describes one file of it,
`committing` is how a load commits files and offsets in one atomic step, `table` and `warehouse` do it with Delta,
`iceberg_table` and `iceberg_warehouse` with Iceberg, `storage` is where tables lie. `removals` says which records other
tools have removed since the last load; `delta_log` and `iceberg_lineage` say in which files to look. `newest` says
which record of a key counts in a table with one row per key, `own_partitions` how users partition.
"""
