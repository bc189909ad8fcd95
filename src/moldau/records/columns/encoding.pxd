# What `filling` shares with `encoding` where both are compiled; interpreted, it imports the same names.

cdef Py_ssize_t put_varint(unsigned char* out, Py_ssize_t at, long long value) noexcept nogil
cdef Py_ssize_t size_of_varint(long long value) noexcept nogil
cdef Py_ssize_t copy(
    unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start, Py_ssize_t length
) noexcept nogil
cdef Py_ssize_t put_prefix(
    unsigned char* out, Py_ssize_t at, long long length, long long timestamp_delta, long long offset_delta
) noexcept nogil
cdef long long size_of(
    long long timestamp_delta, long long offset_delta, long long key, long long value, long long headers
) noexcept nogil
cdef bint too_far(long long timestamp, long long base) noexcept nogil
