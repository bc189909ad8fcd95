"""The demo's report: one self-contained HTML page.

`page` puts it together from sections: `answers` (of the streams), `measures` (delay, lag, bytes, partitions, stages,
books) and `tables` (schemas, queries, what is where). Pure: `contents` in, text out. Every chart has its numbers in its
description or in a table beneath it.
"""
