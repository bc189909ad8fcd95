"""The warehouse as Delta tables: one table for each topic, and one beside it for the rejected records of that topic.

Nothing here knows a broker or Spark. `columns` says what a table holds, `data_file` describes one file of it, `table`
commits files and offsets in one atomic step, `warehouse` names the tables, `storage` is where they lie.
"""
