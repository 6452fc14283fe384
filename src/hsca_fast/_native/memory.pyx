"""Brightness and pruning of a conversation's chunks. Marshalling only, no formulas."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.span cimport span
from libcpp.vector cimport vector

import numpy as np

ctypedef const int32_t const_int32
ctypedef const int64_t const_int64
ctypedef const uint8_t const_uint8
ctypedef const float const_float
ctypedef const double const_double

ctypedef fused real:
    float
    double


cdef extern from "hsca/memory/brightness.hpp" namespace "hsca" nogil:
    enum class Sink:
        first
        largest
    enum class StepOutcome:
        scored
        unchanged
        refused
    cppclass BrightnessRule:
        BrightnessRule()
        Sink sink
        int32_t most
    cppclass ConversationChunks:
        ConversationChunks()
        span[const_int64] offsets
        span[const_uint8] live
    StepOutcome score_floats "hsca::score_step<float>"(
        span[const_float], size_t, const ConversationChunks&, size_t, const BrightnessRule&,
        span[int32_t], span[int32_t]) except +
    StepOutcome score_doubles "hsca::score_step<double>"(
        span[const_double], size_t, const ConversationChunks&, size_t, const BrightnessRule&,
        span[int32_t], span[int32_t]) except +


cdef extern from "hsca/memory/pruning.hpp" namespace "hsca" nogil:
    cppclass PruneRule:
        PruneRule()
        cbool anchors
        size_t keep
    cppclass PruneCandidates:
        PruneCandidates()
        ConversationChunks chunks
        span[const_uint8] exempt
        span[const_int32] peaks
        span[const_int64] message_of
        span[const_int64] first_chunk
        span[const_int64] partner
    vector[int64_t] c_plan_prune "hsca::plan_prune"(const PruneCandidates&, size_t, const PruneRule&) except +


_SINKS = {"first": <int>Sink.first, "largest": <int>Sink.largest}


cdef ConversationChunks _chunks(const int64_t[::1] offsets, const uint8_t[::1] live) noexcept:
    cdef ConversationChunks chunks
    if offsets.shape[0]:
        chunks.offsets = span[const_int64](&offsets[0], <size_t>offsets.shape[0])
    if live.shape[0]:
        chunks.live = span[const_uint8](&live[0], <size_t>live.shape[0])
    return chunks


cdef span[int32_t] _written(int32_t[::1] values) noexcept:
    cdef span[int32_t] none
    return span[int32_t](&values[0], <size_t>values.shape[0]) if values.shape[0] else none


cdef span[const_int64] _numbers(const int64_t[::1] values) noexcept:
    cdef span[const_int64] none
    return span[const_int64](&values[0], <size_t>values.shape[0]) if values.shape[0] else none


def score_step(
    const real[::1] attention not None, Py_ssize_t prefix, const int64_t[::1] offsets not None,
    const uint8_t[::1] live not None, Py_ssize_t n_scored, str sink not None, int32_t most,
    int32_t[::1] brightness not None, int32_t[::1] peaks not None,
):
    """Scores live tokens in place. True when scored, False when the step says nothing, None for a refused attention."""
    if prefix < 0 or n_scored < 0:
        raise ValueError(f"prefix and n_scored must not be negative, not {prefix} and {n_scored}")
    cdef ConversationChunks chunks = _chunks(offsets, live)
    cdef BrightnessRule rule
    rule.sink = <Sink><int>_SINKS[sink]
    rule.most = most
    cdef span[int32_t] tokens = _written(brightness)
    cdef span[int32_t] largest = _written(peaks)
    cdef const real* first = &attention[0] if attention.shape[0] else NULL
    cdef size_t n = attention.shape[0]
    cdef StepOutcome outcome
    with nogil:
        if real is float:
            outcome = score_floats(span[const_float](first, n), <size_t>prefix, chunks, <size_t>n_scored, rule, tokens, largest)
        else:
            outcome = score_doubles(
                span[const_double](first, n), <size_t>prefix, chunks, <size_t>n_scored, rule, tokens, largest)
    return None if outcome == StepOutcome.refused else outcome == StepOutcome.scored


def plan_prune(
    const int64_t[::1] offsets not None, const uint8_t[::1] live not None, const uint8_t[::1] exempt not None,
    const int32_t[::1] peaks not None, const int64_t[::1] message_of not None, const int64_t[::1] first_chunk not None,
    const int64_t[::1] partner not None, Py_ssize_t budget, bint anchors, Py_ssize_t keep,
):
    """Numbers of the chunks that go, in order."""
    if budget < 0 or keep < 0:
        raise ValueError(f"budget and keep must not be negative, not {budget} and {keep}")
    cdef PruneCandidates candidates
    candidates.chunks = _chunks(offsets, live)
    if exempt.shape[0]:
        candidates.exempt = span[const_uint8](&exempt[0], <size_t>exempt.shape[0])
    if peaks.shape[0]:
        candidates.peaks = span[const_int32](&peaks[0], <size_t>peaks.shape[0])
    candidates.message_of = _numbers(message_of)
    candidates.first_chunk = _numbers(first_chunk)
    candidates.partner = _numbers(partner)
    cdef PruneRule rule
    rule.anchors = anchors
    rule.keep = <size_t>keep
    cdef vector[int64_t] planned
    with nogil:
        planned = c_plan_prune(candidates, <size_t>budget, rule)
    numbers = np.empty(planned.size(), np.int64)
    cdef int64_t[::1] out = numbers
    cdef size_t i
    for i in range(planned.size()):
        out[i] = planned[i]
    return numbers
