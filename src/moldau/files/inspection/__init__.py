"""Looking into the files of a stopped broker without touching them: what is in a file, and whether a folder holds.

Files are opened for reading only, no lock is taken, and memory does not grow with a file. Whatever the bytes are, the
outcome is a document or a finding, never an exception other than `OSError`.
"""
