"""One record batch: its header, its records, its compression, and its conversion to rows and to columns."""
