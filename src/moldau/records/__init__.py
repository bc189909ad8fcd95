"""One record batch: its header, its records, its compression, and what it looks like as rows and as columns."""
