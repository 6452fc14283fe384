cimport cython
from libc.stdint cimport uint8_t
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

@cython.final
cdef class StringColumn:
    cdef vector[string_view] views
    cdef vector[uint8_t] valid        # empty when no row is null
    cdef list owners                  # what the views point into
    cdef readonly Py_ssize_t replaced # lone surrogates replaced by U+FFFD
    cdef readonly Py_ssize_t n_bytes
