# Ctrl-C in native code: `interrupted` is the poll of hsca/parallel.hpp. It leaves the handler's exception set in the calling
# thread; once the native code has returned, raise_interrupt raises it.
from libcpp cimport bool as cbool


cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept
    void* PyErr_Occurred() noexcept


cdef inline cbool interrupted() noexcept nogil:
    with gil:
        return PyErr_CheckSignals() != 0


cdef inline int raise_interrupt() except -1:
    if PyErr_Occurred() == NULL:
        raise KeyboardInterrupt
    return -1
