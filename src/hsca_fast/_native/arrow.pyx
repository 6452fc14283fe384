"""Columns handed to Arrow consumers through the C stream interface, in place. Marshalling only, no formulas."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EINVAL
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset


cdef extern from "hsca/arrow.hpp" nogil:
    cppclass ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept
        void* private_data

    cppclass ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept
        void* private_data

    cppclass ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept
        const char* (*get_last_error)(ArrowArrayStream*) noexcept
        void (*release)(ArrowArrayStream*) noexcept
        void* private_data


cdef class _Table:
    """What a stream exports: kept alive by every structure handed out."""
    cdef list columns      # (name, format, buffers) with buffers a list of contiguous buffers or None, children a list
    cdef int64_t length
    cdef bint delivered


cdef class _Node:
    """One schema or array structure: owns the strings, buffers and child structures it points at."""
    cdef object keep
    cdef list views
    cdef const void** buffers
    cdef void** children
    cdef int64_t n_children
    cdef bint is_schema

    def __cinit__(self):
        self.views = []
        self.buffers = NULL
        self.children = NULL
        self.n_children = 0

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.n_children):
            if self.children[i] != NULL:
                if self.is_schema:
                    _release_schema_now(<ArrowSchema*>self.children[i])
                else:
                    _release_array_now(<ArrowArray*>self.children[i])
                free(self.children[i])
        free(self.children)
        free(<void*>self.buffers)


cdef void _release_schema_now(ArrowSchema* schema) noexcept:
    # A consumer may have moved the child away: then its release is NULL and it is not ours any more.
    if schema.release != NULL:
        schema.release(schema)


cdef void _release_array_now(ArrowArray* array) noexcept:
    if array.release != NULL:
        array.release(array)


cdef void _release_schema(ArrowSchema* schema) noexcept with gil:
    schema.release = NULL
    Py_DECREF(<object>schema.private_data)


cdef void _release_array(ArrowArray* array) noexcept with gil:
    array.release = NULL
    Py_DECREF(<object>array.private_data)


cdef int _fill_schema(ArrowSchema* out, bytes name, bytes format, list children) except -1:
    cdef _Node node = _Node()
    cdef int64_t i
    node.is_schema = True
    node.keep = (name, format)
    memset(out, 0, sizeof(ArrowSchema))
    if children:
        node.children = <void**>calloc(len(children), sizeof(void*))
        if node.children == NULL:
            raise MemoryError
        node.n_children = len(children)
        for i in range(len(children)):
            node.children[i] = calloc(1, sizeof(ArrowSchema))
            if node.children[i] == NULL:
                raise MemoryError
            child = children[i]
            _fill_schema(<ArrowSchema*>node.children[i], child[0], child[1], child[3])
    out.name = <const char*>name
    out.format = <const char*>format
    out.flags = 2  # nullable
    out.n_children = node.n_children
    out.children = <ArrowSchema**>node.children
    out.release = _release_schema
    out.private_data = <void*>node
    Py_INCREF(node)
    return 0


cdef int _fill_array(ArrowArray* out, int64_t length, list buffers, list children) except -1:
    cdef _Node node = _Node()
    cdef int64_t i
    cdef const unsigned char[::1] view
    memset(out, 0, sizeof(ArrowArray))
    node.buffers = <const void**>calloc(max(1, len(buffers)), sizeof(void*))
    if node.buffers == NULL:
        raise MemoryError
    for i in range(len(buffers)):
        if buffers[i] is not None:
            view = memoryview(buffers[i]).cast("B")
            node.views.append(view)
            node.buffers[i] = <const void*>&view[0] if view.shape[0] else NULL
    if children:
        node.children = <void**>calloc(len(children), sizeof(void*))
        if node.children == NULL:
            raise MemoryError
        node.n_children = len(children)
        for i in range(len(children)):
            node.children[i] = calloc(1, sizeof(ArrowArray))
            if node.children[i] == NULL:
                raise MemoryError
            child = children[i]
            _fill_array(<ArrowArray*>node.children[i], child[4], child[2], child[3])
    out.length = length
    out.null_count = -1 if buffers and buffers[0] is not None else 0
    out.n_buffers = len(buffers)
    out.buffers = node.buffers
    out.n_children = node.n_children
    out.children = <ArrowArray**>node.children
    out.release = _release_array
    out.private_data = <void*>node
    Py_INCREF(node)
    return 0


cdef int _get_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef _Table table = <_Table>stream.private_data
    try:
        _fill_schema(out, b"", b"+s", table.columns)
    except BaseException:
        return EINVAL
    return 0


cdef int _get_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef _Table table = <_Table>stream.private_data
    if table.delivered:
        memset(out, 0, sizeof(ArrowArray))
        return 0
    try:
        _fill_array(out, table.length, [None], table.columns)
    except BaseException:
        return EINVAL
    table.delivered = True
    return 0


cdef const char* _get_last_error(ArrowArrayStream* stream) noexcept nogil:
    return NULL


cdef void _release_stream(ArrowArrayStream* stream) noexcept with gil:
    stream.release = NULL
    Py_DECREF(<object>stream.private_data)


cdef void _free_capsule(object capsule) noexcept:
    if not PyCapsule_IsValid(capsule, "arrow_array_stream"):
        return
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


def export_stream(list columns not None, Py_ssize_t length):
    """Capsule of a stream with one record batch of `length` rows.

    A column is (name: bytes, format: bytes, buffers: list, children: list of columns, length: int); buffers are
    contiguous or None and are not copied.
    """
    cdef _Table table = _Table()
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError
    table.columns = columns
    table.length = length
    table.delivered = False
    stream.get_schema = _get_schema
    stream.get_next = _get_next
    stream.get_last_error = _get_last_error
    stream.release = _release_stream
    stream.private_data = <void*>table
    Py_INCREF(table)
    return PyCapsule_New(stream, "arrow_array_stream", _free_capsule)
