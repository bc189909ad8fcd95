"""Reads the files of a stopped broker without changing them: shows the contents of files and checks log folders.

Files are opened for reading only, no lock is taken, and memory does not grow with the size of a file. Any bytes lead to
a document or a finding; the only exception is `OSError`.
"""
