# What `plain_batches` shares with `scanning` where both are compiled; interpreted, it imports the same names.

cdef struct Totals:
    long long bad
    long long max_timestamp
    long long min_timestamp
    long long rows
    long long null_keys
    long long key_bytes
    long long null_values
    long long value_bytes
    long long rows_with_headers
    long long headers
    long long header_key_bytes
    long long null_header_values
    long long header_value_bytes

cdef int walk(
    const unsigned char* p, Py_ssize_t at, Py_ssize_t end, long long count, long long last_offset_delta,
    long long base_timestamp, long long low, long long high, Totals* totals
) noexcept nogil
