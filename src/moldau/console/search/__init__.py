"""Searching the records of a topic: what is wanted, in which order it is looked for, what matches, what is hidden."""
