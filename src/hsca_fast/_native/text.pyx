"""The text kernels. Marshalling only, no formulas."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.span cimport span
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from hsca_fast._native.strings cimport StringColumn

import numpy as np

ctypedef const string_view const_string_view


cdef extern from "hsca/text/unicode.hpp" namespace "hsca" nogil:
    enum class CharClass:
        pass
    CharClass c_char_class "hsca::char_class"(uint32_t) noexcept
    string_view c_unicode_version "hsca::unicode_version"() noexcept


cdef extern from "hsca/text/function_words.hpp" namespace "hsca" nogil:
    span[const_string_view] c_function_words "hsca::function_words"() noexcept


cdef extern from "hsca/text/byte_class.hpp" namespace "hsca" nogil:
    enum class SimdLevel:
        scalar
        baseline
    string_view c_simd_name "hsca::simd_name"() noexcept


cdef extern from "hsca/parallel.hpp" namespace "hsca" nogil:
    cppclass Stop:
        Stop(cbool (*poll)() noexcept nogil)


cdef extern from "hsca/text/segment.hpp" namespace "hsca" nogil:
    cppclass Segments:
        vector[int64_t] words
        vector[int64_t] sentences
        vector[int64_t] paragraphs
    cbool c_segment "hsca::segment"(string_view, SimdLevel, Segments&, Stop*) except +


cdef extern from "hsca/text/relational.hpp" namespace "hsca" nogil:
    cppclass RelationalConfig:
        size_t window
    cppclass BlockFactors:
        int64_t n_sentences
        int64_t n_tokens
        double breadth
        double clustering
        double carriage
        double continuity
        double strength
    cppclass RelationalDetail:
        RelationalDetail()
        vector[double] sentence_scores
        vector[int64_t] token_words
        vector[int64_t] token_sentences
        vector[int64_t] token_stems
        vector[double] stem_scores
        vector[BlockFactors] blocks


cdef extern from "hsca/text/score_text.hpp" namespace "hsca" nogil:
    cppclass CScoringConfig "hsca::ScoringConfig":
        CScoringConfig()
        RelationalConfig relational
        SimdLevel simd
    cppclass TextScores:
        TextScores()
        double layer1
        int32_t n_sentences
        int32_t n_words
        cbool is_short
    cppclass TextScorer:
        TextScorer(const CScoringConfig&) except +
        cbool score(string_view, Stop&, TextScores&, RelationalDetail*) except +
    cppclass ScoreColumns:
        ScoreColumns()
        span[double] layer1_score
        span[int32_t] n_sentences
        span[int32_t] n_words
        span[uint8_t] is_short
    cbool c_score_texts "hsca::score_texts"(
        span[const_string_view], const CScoringConfig&, size_t, cbool (*poll)() noexcept nogil, const ScoreColumns&
    ) except +


cdef extern from "hsca/floor.hpp" namespace "hsca" nogil:
    uint64_t c_split_and_hash "hsca::split_and_hash"(span[const_string_view]) noexcept


cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1


cdef cbool _interrupted() noexcept nogil:
    # The exception waits in _pending: the caller raises it once the native code has returned.
    with gil:
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            _pending.append(error)
            return True
    return False


_pending = []

_LEVELS = {"scalar": <int>SimdLevel.scalar, "baseline": <int>SimdLevel.baseline}


def simd_level():
    """Name of the instructions that classify bytes here."""
    cdef string_view name = c_simd_name()
    return name.data()[:name.size()].decode()


def unicode_version():
    """Unicode version of the character tables."""
    cdef string_view version = c_unicode_version()
    return version.data()[:version.size()].decode()


def char_class(uint32_t code_point):
    """Number of the code point's CharClass."""
    if code_point > 0x10FFFF:
        raise ValueError(f"code_point must be at most 0x10FFFF, not {code_point:#x}")
    return <int>c_char_class(code_point)


def function_words():
    """All listed function words."""
    cdef span[const_string_view] words = c_function_words()
    return tuple(words[i].data()[:words[i].size()].decode() for i in range(words.size()))


cdef object _to_array(vector[int64_t]& values):
    cdef int64_t[::1] out
    array = np.empty(values.size(), dtype=np.int64)
    cdef size_t i
    if values.size():
        out = array
        for i in range(values.size()):
            out[i] = values[i]
    return array


cdef object _to_floats(vector[double]& values):
    cdef double[::1] out
    array = np.empty(values.size(), dtype=np.float64)
    cdef size_t i
    if values.size():
        out = array
        for i in range(values.size()):
            out[i] = values[i]
    return array


def segment(bytes text not None, str simd="baseline"):
    """(paragraphs, sentences, words) of UTF-8 text: int64[n, 2] arrays of byte offsets."""
    cdef string_view view = string_view(<const char*>text, <size_t>len(text))
    cdef SimdLevel level = <SimdLevel><int>_LEVELS[simd]
    cdef Segments found
    cdef cbool finished
    cdef Stop* stop = new Stop(&_interrupted)
    try:
        with nogil:
            finished = c_segment(view, level, found, stop)
    finally:
        del stop
    if not finished:
        raise _pending.pop() if _pending else KeyboardInterrupt
    return (
        _to_array(found.paragraphs).reshape(-1, 2),
        _to_array(found.sentences).reshape(-1, 2),
        _to_array(found.words).reshape(-1, 2),
    )


cdef CScoringConfig _config(Py_ssize_t window, str simd) except *:
    cdef CScoringConfig config
    config.relational.window = <size_t>window
    config.simd = <SimdLevel><int>_LEVELS[simd]
    return config


def score_texts(
    StringColumn column not None, Py_ssize_t window, Py_ssize_t threads, double[::1] layer1_score not None,
    int32_t[::1] n_sentences not None, int32_t[::1] n_words not None, uint8_t[::1] is_short not None,
    str simd="baseline",
):
    """Scores every row of `column` into the given arrays. KeyboardInterrupt stops it."""
    cdef size_t n = column.views.size()
    if n == 0:
        return
    if not (layer1_score.shape[0] == n_sentences.shape[0] == n_words.shape[0] == is_short.shape[0] == <Py_ssize_t>n):
        raise ValueError("every column must have one element a text")
    cdef CScoringConfig config = _config(window, simd)
    cdef ScoreColumns out
    cdef cbool finished
    out.layer1_score = span[double](&layer1_score[0], n)
    out.n_sentences = span[int32_t](&n_sentences[0], n)
    out.n_words = span[int32_t](&n_words[0], n)
    out.is_short = span[uint8_t](&is_short[0], n)
    with nogil:
        finished = c_score_texts(
            span[const_string_view](column.views.data(), n), config, <size_t>threads, &_interrupted, out
        )
    if not finished:
        raise _pending.pop() if _pending else KeyboardInterrupt


def relational_detail(bytes text not None, Py_ssize_t window):
    """Everything Layer 1 knows of one text, as a dict of arrays."""
    cdef string_view view = string_view(<const char*>text, <size_t>len(text))
    cdef CScoringConfig config = _config(window, "baseline")
    cdef TextScores scores
    cdef RelationalDetail detail
    cdef cbool finished
    cdef Stop* stop = new Stop(&_interrupted)
    cdef TextScorer* scorer = NULL
    try:
        scorer = new TextScorer(config)
        with nogil:
            finished = scorer.score(view, stop[0], scores, &detail)
    finally:
        del scorer
        del stop
    if not finished:
        raise _pending.pop() if _pending else KeyboardInterrupt
    return {
        "layer1_score": scores.layer1,
        "is_short": scores.is_short,
        "sentence_scores": _to_floats(detail.sentence_scores),
        "token_words": _to_array(detail.token_words),
        "token_sentences": _to_array(detail.token_sentences),
        "token_stems": _to_array(detail.token_stems),
        "stem_scores": _to_floats(detail.stem_scores),
        "blocks": [
            (b.n_sentences, b.n_tokens, b.breadth, b.clustering, b.carriage, b.continuity, b.strength)
            for b in detail.blocks
        ],
    }


def split_and_hash(StringColumn column not None):
    """The benchmark's floor: lower-case, split and hash every row in a plain loop."""
    cdef uint64_t total
    with nogil:
        total = c_split_and_hash(span[const_string_view](column.views.data(), column.views.size()))
    return total


def segment_rows(StringColumn column not None):
    """Number of words, sentences and paragraphs over all rows, by way of their offset arrays; for the benchmarks."""
    cdef Segments found
    cdef size_t i, words = 0, sentences = 0, paragraphs = 0
    with nogil:
        for i in range(column.views.size()):
            c_segment(column.views[i], SimdLevel.baseline, found, NULL)
            words += found.words.size() // 2
            sentences += found.sentences.size() // 2
            paragraphs += found.paragraphs.size() // 2
    return words, sentences, paragraphs
