"""`moldau pipeline load`: plan ranges of offsets, have Spark tasks write them as Parquet, commit them to Delta tables.

`load` is the driver's part, `portions` cuts the ranges into tasks, `tasks` and `writing` run in Spark's workers.
`decoding` is the seam at which values become columns. `removed_rows` compares the offsets of tables with their rows.
With `--upsert` the tasks keep the newest record of each key (`upserting`), and the driver replaces rows (`merging`).
"""
