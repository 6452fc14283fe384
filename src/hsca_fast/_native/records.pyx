"""Numbers out of Python objects, in one pass over the objects. Marshalling only, no formulas."""

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
