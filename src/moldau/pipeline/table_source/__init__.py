"""Reading tables of a warehouse, and other Delta tables, with Spark: `option("table", PATH)` of the data source.

`batch.py` plans on the driver and reads in the tasks, `filters.py` turns Spark's filters into Arrow's. Which files a
version of a table has, and what of them to read, is for `tables/versions.py`.
"""
