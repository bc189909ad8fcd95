# Functions of Python's C API whose declarations in Cython do not match Python's headers, which gcc 14 and newer refuse.

cdef extern from "Python.h":
    object PyType_GenericAlloc(type kind, Py_ssize_t items)  # Cython declares `object kind`
