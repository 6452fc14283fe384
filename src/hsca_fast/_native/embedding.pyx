"""Tokenizer and static model. Marshalling only, no formulas."""

cimport cython
from libc.stdint cimport int8_t, int32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport make_unique, unique_ptr
from libcpp.span cimport span
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from hsca_fast._native.interrupt cimport interrupted, raise_interrupt
from hsca_fast._native.strings cimport StringColumn

import numpy as np

ctypedef const string_view const_string_view
ctypedef const int8_t const_int8_t
ctypedef const float const_float


cdef extern from "hsca/parallel.hpp" namespace "hsca" nogil:
    cppclass Stop:
        Stop(cbool (*poll)() noexcept nogil)


cdef extern from "hsca/vectors/wordpiece.hpp" namespace "hsca" nogil:
    cppclass CWordPiece "hsca::WordPiece":
        CWordPiece(span[const_string_view]) except +
        size_t size() noexcept
        cbool encode(string_view, vector[int32_t]&, Stop&) except +


cdef extern from "hsca/vectors/static_model.hpp" namespace "hsca" nogil:
    cppclass StaticModel:
        StaticModel()
        span[const_int8_t] rows
        span[const_float] scales
        size_t width
    cbool c_embed_texts "hsca::embed_texts"(
        const CWordPiece&, const StaticModel&, span[const_string_view], size_t, size_t,
        cbool (*poll)() noexcept nogil, span[float]
    ) except +


@cython.final
cdef class WordPiece:
    """BERT's uncased WordPiece over a vocabulary given in the order of its ids."""

    cdef CWordPiece* tokenizer

    def __cinit__(self, StringColumn tokens not None):
        self.tokenizer = new CWordPiece(span[const_string_view](tokens.views.data(), tokens.views.size()))

    def __dealloc__(self):
        del self.tokenizer

    def __len__(self):
        return self.tokenizer.size()

    def encode(self, StringColumn column not None):
        """(ids int32, ends int64): the tokens of row i end before ids[ends[i]]."""
        cdef vector[int32_t] found
        cdef size_t i
        cdef cbool finished = True
        cdef unique_ptr[Stop] stop = make_unique[Stop](&interrupted)
        ends = np.empty(column.views.size(), dtype=np.int64)
        cdef long long[::1] c_ends = ends
        with nogil:
            for i in range(column.views.size()):
                finished = self.tokenizer.encode(column.views[i], found, stop.get()[0])
                if not finished:
                    break
                c_ends[i] = <long long>found.size()
        if not finished:
            raise_interrupt()
        ids = np.empty(found.size(), dtype=np.int32)
        cdef int32_t[::1] c_ids = ids
        for i in range(found.size()):
            c_ids[i] = found[i]
        return ids, ends


def embed_texts(
    WordPiece tokenizer not None, const int8_t[:, ::1] rows not None, const float[::1] scales not None,
    StringColumn column not None, Py_ssize_t threads, float[:, ::1] out not None,
):
    """Unit vectors of every row of `column` into `out`, whose width is the prefix wanted. KeyboardInterrupt stops it."""
    cdef size_t n = column.views.size()
    if out.shape[0] != <Py_ssize_t>n or rows.shape[0] != scales.shape[0]:
        raise ValueError("out must have one row a text, and the model one scale a row")
    if n == 0 or scales.shape[0] == 0:
        return
    cdef StaticModel model
    cdef cbool finished
    cdef size_t dim = <size_t>out.shape[1]
    model.rows = span[const_int8_t](&rows[0, 0], <size_t>(rows.shape[0] * rows.shape[1]))
    model.scales = span[const_float](&scales[0], <size_t>scales.shape[0])
    model.width = <size_t>rows.shape[1]
    with nogil:
        finished = c_embed_texts(
            tokenizer.tokenizer[0], model, span[const_string_view](column.views.data(), n), dim, <size_t>threads,
            &interrupted, span[float](&out[0, 0], n * dim)
        )
    if not finished:
        raise_interrupt()
