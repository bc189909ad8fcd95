# What `filling` shares with `hashing` where both are compiled; interpreted, it imports the same name.

cdef unsigned long long hashed(const unsigned char* p, Py_ssize_t start, Py_ssize_t length) noexcept nogil
