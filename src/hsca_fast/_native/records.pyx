"""Numbers out of Python objects, in one pass over the objects. Marshalling only, no formulas."""

cimport cython

import numpy as np


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


@cython.boundscheck(True)  # a number of the user's may change the list while it is asked for its value
def float_rows(list rows not None, Py_ssize_t width, str name not None):
    """float32 [rows, width] of lists of numbers; the first that is not such a list is refused by its number."""
    cdef Py_ssize_t i, j, n = len(rows)
    matrix = np.empty((n, width), np.float32)
    cdef float[:, ::1] out = matrix
    cdef list row
    for i in range(n):
        if type(rows[i]) is not list:
            raise TypeError(f"{name}[{i}] must be a list of numbers, not {type(rows[i]).__name__}")
        row = rows[i]
        if len(row) != width:
            raise ValueError(f"{name}[{i}] has {len(row)} numbers; {name}[0] has {width}")
        for j in range(width):
            value = row[j]
            if type(value) is not float:
                if isinstance(value, (bool, str, bytes)):
                    raise TypeError(f"{name}[{i}][{j}] must be a number, not {type(value).__name__}")
                try:
                    value = float(value)
                except (TypeError, OverflowError):
                    raise TypeError(f"{name}[{i}][{j}] must be a number, not {type(value).__name__}") from None
            out[i, j] = <float><double>value
    return matrix
