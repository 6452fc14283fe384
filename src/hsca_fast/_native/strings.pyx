"""Texts as views of UTF-8 bytes, from Python sequences and from Arrow producers. Marshalling only, no formulas."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.unicode cimport PyUnicode_AsUTF8String
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset
from libcpp.span cimport span
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector


cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    bint PyUnicode_Check(PyObject* text)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject* text)
    PyObject** PySequence_Fast_ITEMS(object sequence)


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define HSCA_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define HSCA_PREFETCH(address) ((void)(address))
    #endif
    """
    void HSCA_PREFETCH(const void* address) nogil
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef extern from "hsca/arrow.hpp" nogil:
    cppclass ArrowSchema:
        const char* format
        const char* name
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept

    cppclass ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_children
        ArrowArray** children
        void (*release)(ArrowArray*) noexcept

    cppclass ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept
        const char* (*get_last_error)(ArrowArrayStream*) noexcept
        void (*release)(ArrowArrayStream*) noexcept


cdef extern from "hsca/arrow.hpp" namespace "hsca" nogil:
    enum class StringLayout:
        offsets32
        offsets64
        views
        unknown
    StringLayout string_layout(string_view) noexcept
    void check_string_array(const ArrowArray&, StringLayout) except +
    void read_strings(const ArrowArray&, StringLayout, int64_t, span[string_view], span[uint8_t]) except +


cdef class _OwnedSchema:
    cdef ArrowSchema schema

    def __cinit__(self):
        memset(&self.schema, 0, sizeof(ArrowSchema))

    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)


cdef class _OwnedArray:
    cdef ArrowArray array

    def __cinit__(self):
        memset(&self.array, 0, sizeof(ArrowArray))

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


def text_lengths(texts not None, int64_t[::1] out not None):
    """Writes the number of characters of each text of a list or tuple, without a look at the characters."""
    cdef Py_ssize_t n = out.shape[0], row
    cdef PyObject** items
    if type(texts) not in (list, tuple):  # what inherits from them may say another length than it holds
        raise TypeError(f"texts must be a list or tuple, not {type(texts).__name__}")
    # Neither copied nor counted as used: each would go to every text, and that journey is all the time there is.
    with cython.critical_section(texts):
        if len(texts) != n:
            raise ValueError(f"out must have {len(texts)} elements, not {n}")
        items = PySequence_Fast_ITEMS(texts)
        for row in range(n):
            HSCA_PREFETCH(items[row + 24 if row + 24 < n else n - 1])
            if not PyUnicode_Check(items[row]):
                text = <object>items[row]
                raise TypeError(f"texts[{row}] must be str, not {type(text).__name__}")
            out[row] = PyUnicode_GET_LENGTH(items[row])


@cython.final
cdef class StringColumn:
    """Rows of text that the native code may read without the interpreter's lock while this object lives."""

    def __cinit__(self):
        self.owners = []
        self.replaced = 0
        self.n_bytes = 0

    def __len__(self):
        return self.views.size()

    @property
    def has_nulls(self):
        return self.valid.size() != 0

    def validity(self):
        """One byte a row, 0 for a null row; empty when there is none."""
        return bytes(<const uint8_t[:self.valid.size()]>self.valid.data()) if self.valid.size() else b""

    def text(self, Py_ssize_t row):
        """A row as str; bytes that are no UTF-8 are replaced, a null row is empty."""
        if not 0 <= row < <Py_ssize_t>self.views.size():
            raise IndexError(f"row {row} of {self.views.size()}")
        return self.views[row].data()[:self.views[row].size()].decode("utf-8", "replace")

    def to_list(self):
        """The rows as str; malformed bytes become U+FFFD and a null row the empty text."""
        return [self.text(row) for row in range(len(self))]

    @staticmethod
    def from_sequence(tuple texts, Py_ssize_t start, Py_ssize_t max_bytes):
        """Rows from `start` on until they hold `max_bytes`. ASCII strings are read in place, others from a copy."""
        cdef StringColumn column = StringColumn.__new__(StringColumn)
        cdef Py_ssize_t row = start, size = 0
        cdef const char* data
        column.owners.append(texts)
        while row < len(texts) and column.n_bytes < max_bytes:
            text = texts[row]
            if not isinstance(text, str):
                raise TypeError(f"texts[{row}] must be str, not {type(text).__name__}")
            if PyUnicode_IS_ASCII(text):
                data = PyUnicode_AsUTF8AndSize(text, &size)
            else:
                encoded, replaced = encode(text)
                column.replaced += replaced
                column.owners.append(encoded)
                data = PyBytes_AS_STRING(encoded)
                size = PyBytes_GET_SIZE(encoded)
            column.views.push_back(string_view(data, <size_t>size))
            column.n_bytes += size
            row += 1
        return column

    @staticmethod
    def from_arrow(producer):
        """All rows of an Arrow producer (`__arrow_c_stream__` or `__arrow_c_array__`), read in place."""
        cdef StringColumn column = StringColumn.__new__(StringColumn)
        if hasattr(producer, "__arrow_c_stream__"):
            _read_stream(column, producer.__arrow_c_stream__())
        else:
            schema, array = producer.__arrow_c_array__()
            _read_capsules(column, schema, array)
        for view in column.views:
            column.n_bytes += <Py_ssize_t>view.size()
        return column


def encode(str text not None):
    """UTF-8 of `text`, and how many lone surrogates in it became U+FFFD; one for one, so offsets in characters stay true."""
    try:
        return PyUnicode_AsUTF8String(text), 0
    except UnicodeEncodeError:
        clean = "".join(["\ufffd" if "\ud800" <= ch <= "\udfff" else ch for ch in text])
        return clean.encode("utf-8"), clean.count("\ufffd") - text.count("\ufffd")


cdef _read_stream(StringColumn column, capsule):
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    cdef _OwnedSchema schema = _OwnedSchema.__new__(_OwnedSchema)
    cdef _OwnedArray owned
    cdef int code
    if stream.release == NULL:
        raise ValueError("texts: the Arrow stream has already been consumed")
    code = stream.get_schema(stream, &schema.schema)
    if code != 0:
        raise _stream_error(stream, code)
    while True:
        owned = _OwnedArray.__new__(_OwnedArray)
        code = stream.get_next(stream, &owned.array)
        if code != 0:
            raise _stream_error(stream, code)
        if owned.array.release == NULL:
            break
        _append(column, &schema.schema, &owned.array)
        column.owners.append(owned)
    if column.views.size() == 0:
        _text_child(&schema.schema)  # an empty column of the wrong type is still the wrong type
    # Buffers may belong to the stream as well as to its arrays.
    column.owners.append(capsule)


cdef _read_capsules(StringColumn column, schema_capsule, array_capsule):
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(schema_capsule, "arrow_schema")
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(array_capsule, "arrow_array")
    if schema.release == NULL or array.release == NULL:
        raise ValueError("texts: the Arrow array has already been consumed")
    _append(column, schema, array)
    column.owners.append((schema_capsule, array_capsule))


cdef _append(StringColumn column, ArrowSchema* schema, ArrowArray* array):
    cdef ArrowSchema* text_schema = _text_child(schema)
    cdef ArrowArray* text = array
    cdef StringLayout layout = string_layout(string_view(text_schema.format))
    cdef size_t before = column.views.size()
    cdef size_t i
    cdef ArrowArray child
    if text_schema != schema:
        if array.n_children != 1 or array.children == NULL or array.children[0] == NULL:
            raise ValueError("texts: the Arrow record batch does not match its schema")
        child = array.children[0][0]  # never released: the record batch owns it
        if array.offset < 0 or array.length < 0 or child.length < array.offset + array.length:
            raise ValueError("texts: the Arrow record batch is longer than its column")
        child.offset += array.offset
        child.length = array.length
        text = &child
    check_string_array(text[0], layout)
    if text.length == 0:
        return
    cdef vector[uint8_t] valid
    valid.resize(<size_t>text.length)
    column.views.resize(before + <size_t>text.length)
    read_strings(text[0], layout, <int64_t>before, span[string_view](&column.views[before], <size_t>text.length),
                 span[uint8_t](valid.data(), valid.size()))
    cdef bint any_null = False
    for i in range(valid.size()):
        any_null |= valid[i] == 0
    if any_null or column.valid.size():
        column.valid.resize(before, 1)
        column.valid.insert(column.valid.end(), valid.begin(), valid.end())


cdef ArrowSchema* _text_child(ArrowSchema* schema) except NULL:
    """The string column: the schema itself, or the only column of a record batch."""
    if schema.format == NULL:
        raise ValueError("texts: the Arrow schema has no format")
    cdef str kind = schema.format.decode("utf-8", "replace")
    if kind == "+s" and schema.n_children == 1 and schema.children != NULL and schema.children[0] != NULL:
        if string_layout(string_view(schema.children[0].format)) != StringLayout.unknown:
            return schema.children[0]
        return _text_child(schema.children[0])  # says what is wrong with it
    if kind == "+s":
        names = ", ".join(
            repr(schema.children[i].name.decode("utf-8", "replace")) for i in range(schema.n_children)
            if schema.children[i].name != NULL
        )
        raise TypeError(f"texts has {schema.n_children} Arrow columns ({names}); pass one of them, as in table['text']")
    if schema.dictionary != NULL:
        raise TypeError("texts is a dictionary-encoded Arrow column; cast it to a string type first")
    if string_layout(string_view(schema.format)) == StringLayout.unknown:
        raise TypeError(f"texts is an Arrow column of format {kind!r}; a string column (utf8, large_utf8, utf8_view) is needed")
    return schema


cdef _stream_error(ArrowArrayStream* stream, int code):
    cdef const char* message = stream.get_last_error(stream) if stream.get_last_error != NULL else NULL
    said = message.decode("utf-8", "replace") if message != NULL else "no message"
    return OSError(code, f"texts: the Arrow producer failed: {said}")
