"""Numbers out of Python objects, in one pass over the objects. Marshalling only, no formulas."""

from cpython.object cimport PyObject

import numpy as np


cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(list, Py_ssize_t) noexcept
    Py_ssize_t PyList_GET_SIZE(list) noexcept
    bint PyFloat_CheckExact(PyObject*) noexcept
    double PyFloat_AS_DOUBLE(PyObject*) noexcept


def number_columns(list records not None, tuple names not None):
    """float64 [names, records]: each named attribute of each record, NaN where it is None."""
    cdef Py_ssize_t row, column
    cdef Py_ssize_t n_rows = len(records), n_columns = len(names)
    columns = np.empty((n_columns, n_rows), np.float64)
    cdef double[:, ::1] out = columns
    cdef object value
    for row in range(n_rows):
        for column in range(n_columns):
            value = getattr(records[row], names[column])
            out[column, row] = float("nan") if value is None else value
    return columns


def float_rows(list rows not None, Py_ssize_t width, str name not None):
    """float32 [rows, width] of lists of numbers; the first that is not such a list is refused by its number."""
    cdef Py_ssize_t i, j, n = len(rows)
    matrix = np.empty((n, width), np.float32)
    cdef float[:, ::1] out = matrix
    cdef list row
    cdef PyObject* value
    for i in range(n):
        if type(rows[i]) is not list:
            raise TypeError(f"{name}[{i}] must be a list of numbers, not {type(rows[i]).__name__}")
        row = rows[i]
        for j in range(width):
            if PyList_GET_SIZE(row) != width:  # a number of the user's may change the list while it is asked for its value
                raise ValueError(f"{name}[{i}] has {len(row)} numbers; {name}[0] has {width}")
            value = PyList_GET_ITEM(row, j)
            if PyFloat_CheckExact(value):
                out[i, j] = <float>PyFloat_AS_DOUBLE(value)
            else:
                out[i, j] = <float>_number(<object>value, name, i, j)
        if len(row) != width:
            raise ValueError(f"{name}[{i}] has {len(row)} numbers; {name}[0] has {width}")
    return matrix


cdef double _number(value, str name, Py_ssize_t i, Py_ssize_t j) except? -1.0:
    if not isinstance(value, (bool, str, bytes)):
        try:
            return float(value)
        except (TypeError, OverflowError):
            pass
    raise TypeError(f"{name}[{i}][{j}] must be a number, not {type(value).__name__}")
