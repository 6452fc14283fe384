"""The ranking kernels. Marshalling only, no formulas.

Functions over candidates return False when they refuse an input (not finite, or an unknown scope): the caller knows the
names and says which.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional
from libcpp.span cimport span
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from hsca_fast._native.interrupt cimport interrupted, raise_interrupt
from hsca_fast._native.strings cimport StringColumn

import numpy as np

ctypedef const string_view const_string_view
ctypedef const double const_double
ctypedef const int64_t const_int64

ctypedef fused real:
    float
    double

ctypedef fused cost:
    int32_t
    int64_t
    double


cdef extern from "hsca/isa.hpp" namespace "hsca" nogil:
    enum class Isa:
        baseline
        avx2
        avx512
    cbool has_isa(Isa) noexcept
    Isa best_isa() noexcept
    string_view isa_name(Isa) noexcept


cdef extern from "hsca/ranking/candidate_blocks.hpp" namespace "hsca" nogil:
    enum class Outcome:
        done
        refused
        stopped
    cppclass Workers:
        Workers()
        size_t threads
        cbool (*poll)() noexcept nogil
        Isa isa
    cppclass ScoredRow[T]:
        T score
        int64_t row
    cppclass BestCandidates[T]:
        vector[ScoredRow[T]] rows
        Outcome outcome


cdef extern from "hsca/portable_math.hpp" namespace "hsca" nogil:
    double portable_log(double) noexcept


cdef extern from "hsca/ranking/decay.hpp" namespace "hsca" nogil:
    Outcome c_recency "hsca::recency"[T](const T*, size_t, T, const Workers&, T*) except +


cdef extern from "hsca/ranking/hybrid.hpp" namespace "hsca" nogil:
    cppclass HybridTerms[T]:
        HybridTerms()
    cppclass HybridCandidates[T]:
        HybridCandidates()
        const T* cosine
        const T* age
        const uint8_t* scope
        const T* decay_rate
        size_t n
    void set_hybrid_terms[T](
        const double*, double, const double*, const double*, size_t, HybridTerms[T]&) except +
    Outcome c_hybrid_scores "hsca::hybrid_scores"[T](
        const HybridCandidates[T]&, const HybridTerms[T]&, const Workers&, T*) except +
    BestCandidates[T] c_hybrid_top_k "hsca::hybrid_top_k"[T](
        const HybridCandidates[T]&, const HybridTerms[T]&, size_t, const Workers&) except +


cdef extern from "hsca/ranking/two_pass.hpp" namespace "hsca" nogil:
    cppclass AuthorityTerms[T]:
        T recency_weight
        T frequency_weight
        T authored_weight
        T decay
        T max_access
    cppclass AuthorityColumns[T]:
        AuthorityColumns()
        const T* age
        const T* access
        const T* authored
        size_t n
    cppclass SecondPassColumns[T]:
        SecondPassColumns()
        const T* similarity
        const T* authority
        const T* coverage
        size_t n
    Outcome c_authority_weights "hsca::authority_weights"[T](
        const AuthorityColumns[T]&, const AuthorityTerms[double]&, const Workers&, T*) except +
    Outcome c_second_pass_scores "hsca::second_pass_scores"[T](
        const SecondPassColumns[T]&, double, const Workers&, T*) except +
    BestCandidates[T] c_second_pass_top_k "hsca::second_pass_top_k"[T](
        const SecondPassColumns[T]&, double, size_t, const Workers&) except +
    BestCandidates[T] c_top_similarities "hsca::top_similarities"[T](const T*, size_t, size_t, const Workers&) except +


cdef extern from "hsca/ranking/budget.hpp" namespace "hsca" nogil:
    enum class FitPolicy:
        prefix
        first_fit
    optional[vector[int64_t]] c_fit_budget "hsca::fit_budget"[C](const C*, size_t, double, FitPolicy) except +
    optional[vector[int64_t]] c_fit_budget_scored "hsca::fit_budget_scored"[T, C](
        const T*, const C*, size_t, double, FitPolicy) except +


cdef extern from "hsca/ranking/tokens.hpp" namespace "hsca" nogil:
    enum class TokenRule:
        host
        sidecar
        fitted
    size_t kTokenFeatures
    cppclass TokenCounts "std::array<std::size_t, hsca::kTokenFeatures>":
        size_t operator[](size_t)
    TokenCounts count_features(string_view) noexcept
    span[const_double] fitted_coefficients() noexcept
    cbool c_estimate_tokens "hsca::estimate_tokens"(
        span[const_string_view], TokenRule, size_t, cbool (*poll)() noexcept nogil, span[int32_t]) except +


cdef extern from "hsca/ranking/keywords.hpp" namespace "hsca" nogil:
    enum class TermKind:
        ascii
        unicode
    vector[string] c_extract_keywords "hsca::extract_keywords"(string_view, TermKind, size_t) except +
    cppclass KeywordSet:
        KeywordSet(span[const_string_view], TermKind) except +
    cbool c_keyword_coverage "hsca::keyword_coverage"(
        const KeywordSet&, span[const_string_view], size_t, cbool (*poll)() noexcept nogil, span[double]) except +


cdef extern from "hsca/ranking/gating.hpp" namespace "hsca" nogil:
    size_t kGatingPatterns
    cppclass PatternCounts:
        PatternCounts()
        uint32_t* data "counts.data"()
    cppclass PatternScanner:
        PatternScanner()
        PatternCounts scan(string_view, cbool) except +
    string_view strip_white_space(string_view) noexcept
    cppclass GatingTerms:
        GatingTerms()
        double[3] conversational_weights
        double[3] technical_weights
        double technical_norm
        double repeat_threshold
        double repeat_cap
        double saturation_threshold
        double saturation_cap
        cbool strict
    cppclass GatingSignals:
        pass
    cppclass HitScores:
        HitScores()
        span[const_double] values
        span[const_int64] offsets
    cbool c_gating_signals "hsca::gating_signals"(
        span[const_string_view], const HitScores&, const HitScores&, const GatingTerms&, size_t,
        cbool (*poll)() noexcept nogil, span[GatingSignals]) except +


cdef extern from "hsca/floor.hpp" namespace "hsca" nogil:
    void c_stream_columns "hsca::stream_columns"(
        const float*, const float*, const float*, const uint8_t*, size_t, float*) noexcept


_ISAS = {"baseline": <int>Isa.baseline, "avx2": <int>Isa.avx2, "avx512": <int>Isa.avx512}
_RULES = {"host": <int>TokenRule.host, "sidecar": <int>TokenRule.sidecar, "fitted": <int>TokenRule.fitted}
_KINDS = {"ascii": <int>TermKind.ascii, "unicode": <int>TermKind.unicode}
_POLICIES = {"prefix": <int>FitPolicy.prefix, "first_fit": <int>FitPolicy.first_fit}


def isa_levels():
    """Names of the instruction sets that this machine and build have kernels for, the widest last."""
    return tuple(name for name, level in _ISAS.items() if has_isa(<Isa><int>level))


cdef Workers _workers(Py_ssize_t threads, str isa) except *:
    cdef Workers workers
    workers.threads = <size_t>threads
    workers.poll = &interrupted
    workers.isa = best_isa() if isa is None else <Isa><int>_ISAS[isa]
    if not has_isa(workers.isa):
        raise ValueError(f"isa must be one of {isa_levels()}, not {isa!r}")
    return workers


cdef bint _finished(Outcome outcome) except -1:
    if outcome == Outcome.stopped:
        raise_interrupt()
    return outcome == Outcome.done


cdef _check_length(Py_ssize_t n, Py_ssize_t found):
    if n != found:
        raise ValueError(f"every column must have {n} elements, not {found}")


cdef object _best(vector[ScoredRow[real]]& found, real unused):
    rows = np.empty(found.size(), np.int64)
    scores = np.empty(found.size(), np.float32 if real is float else np.float64)
    cdef int64_t[::1] to_rows = rows
    cdef real[::1] to_scores = scores
    cdef size_t i
    for i in range(found.size()):
        to_rows[i] = found[i].row
        to_scores[i] = found[i].score
    return rows, scores


cdef object _rows(vector[int64_t]& found):
    rows = np.empty(found.size(), np.int64)
    cdef int64_t[::1] out = rows
    cdef size_t i
    for i in range(found.size()):
        out[i] = found[i]
    return rows


def recency(const real[::1] age not None, double decay, Py_ssize_t threads, real[::1] out not None, str isa=None):
    """Writes the recency of each age."""
    cdef size_t n = age.shape[0]
    cdef Workers workers = _workers(threads, isa)
    cdef Outcome outcome
    _check_length(age.shape[0], out.shape[0])
    if n == 0:
        return True
    with nogil:
        outcome = c_recency(&age[0], n, <real>decay, workers, &out[0])
    return _finished(outcome)


cdef HybridCandidates[real] _hybrid_columns(
    const real[::1] cosine, const real[::1] age, const uint8_t[::1] scope, const real[::1] decay_rate
) except *:
    cdef HybridCandidates[real] columns
    cdef size_t n = cosine.shape[0]
    for length in (age.shape[0], scope.shape[0], decay_rate.shape[0] or n):
        _check_length(cosine.shape[0], length)
    columns.cosine = &cosine[0]
    columns.age = &age[0]
    columns.scope = &scope[0]
    columns.decay_rate = &decay_rate[0] if decay_rate.shape[0] else NULL
    columns.n = n
    return columns


def log_counts(const double[::1] counts):
    """ln(1 + n) of counts that are not negative."""
    result = np.empty(counts.shape[0], np.float64)
    cdef double[::1] out = result
    cdef Py_ssize_t i
    for i in range(counts.shape[0]):
        out[i] = portable_log(1.0 + counts[i])
    return result


def hybrid_scores(
    const real[::1] cosine not None, const real[::1] age not None, const uint8_t[::1] scope not None,
    const real[::1] decay_rate not None, const double[::1] weights not None, double delta,
    const double[::1] decays not None, const double[::1] scope_weights not None, Py_ssize_t threads,
    real[::1] out not None, str isa=None,
):
    """Writes the hybrid score of each candidate; an empty `decay_rate` means none."""
    cdef size_t n = cosine.shape[0]
    cdef Workers workers = _workers(threads, isa)
    cdef Outcome outcome
    _check_length(cosine.shape[0], out.shape[0])
    _check_length(3, weights.shape[0])
    _check_length(decays.shape[0], scope_weights.shape[0])
    if n == 0:
        return True
    cdef HybridCandidates[real] columns = _hybrid_columns[real](cosine, age, scope, decay_rate)
    cdef HybridTerms[real] terms
    set_hybrid_terms(&weights[0], delta, &decays[0], &scope_weights[0], <size_t>decays.shape[0], terms)
    with nogil:
        outcome = c_hybrid_scores(columns, terms, workers, &out[0])
    return _finished(outcome)


def hybrid_top_k(
    const real[::1] cosine not None, const real[::1] age not None, const uint8_t[::1] scope not None,
    const real[::1] decay_rate not None, const double[::1] weights not None, double delta,
    const double[::1] decays not None, const double[::1] scope_weights not None, Py_ssize_t k, Py_ssize_t threads,
    str isa=None,
):
    """(rows, scores) of the k best candidates, best first; None for a refused input."""
    cdef Workers workers = _workers(threads, isa)
    cdef BestCandidates[real] best
    _check_length(3, weights.shape[0])
    _check_length(decays.shape[0], scope_weights.shape[0])
    if cosine.shape[0] == 0:
        return _best[real](best.rows, 0)
    cdef HybridCandidates[real] columns = _hybrid_columns[real](cosine, age, scope, decay_rate)
    cdef HybridTerms[real] terms
    set_hybrid_terms(&weights[0], delta, &decays[0], &scope_weights[0], <size_t>decays.shape[0], terms)
    with nogil:
        best = c_hybrid_top_k(columns, terms, <size_t>k, workers)
    return _best[real](best.rows, 0) if _finished(best.outcome) else None


def authority_weights(
    const real[::1] age not None, const real[::1] access not None, const real[::1] authored not None,
    const double[::1] weights not None, double decay, double max_access, real[::1] out not None, str isa=None,
):
    """Writes the authority weight of each document."""
    cdef size_t n = age.shape[0]
    cdef Workers workers = _workers(1, isa)
    cdef AuthorityColumns[real] columns
    cdef AuthorityTerms[double] terms
    cdef Outcome outcome
    for length in (access.shape[0], authored.shape[0], out.shape[0]):
        _check_length(age.shape[0], length)
    _check_length(3, weights.shape[0])
    if n == 0:
        return True
    columns.age = &age[0]
    columns.access = &access[0]
    columns.authored = &authored[0]
    columns.n = n
    terms.recency_weight, terms.frequency_weight, terms.authored_weight = weights[0], weights[1], weights[2]
    terms.decay = decay
    terms.max_access = max_access
    with nogil:
        outcome = c_authority_weights(columns, terms, workers, &out[0])
    return _finished(outcome)


cdef SecondPassColumns[real] _second_pass_columns(
    const real[::1] similarity, const real[::1] authority, const real[::1] coverage
) except *:
    cdef SecondPassColumns[real] columns
    cdef size_t n = similarity.shape[0]
    for length in (authority.shape[0], coverage.shape[0]):
        _check_length(similarity.shape[0], length)
    columns.similarity = &similarity[0]
    columns.authority = &authority[0]
    columns.coverage = &coverage[0]
    columns.n = n
    return columns


def second_pass_scores(
    const real[::1] similarity not None, const real[::1] authority not None, const real[::1] coverage not None,
    double kappa, Py_ssize_t threads, real[::1] out not None, str isa=None,
):
    """Writes the second-pass score of each candidate."""
    cdef size_t n = similarity.shape[0]
    cdef Workers workers = _workers(threads, isa)
    cdef Outcome outcome
    _check_length(similarity.shape[0], out.shape[0])
    if n == 0:
        return True
    cdef SecondPassColumns[real] columns = _second_pass_columns[real](similarity, authority, coverage)
    with nogil:
        outcome = c_second_pass_scores(columns, kappa, workers, &out[0])
    return _finished(outcome)


def second_pass_top_k(
    const real[::1] similarity not None, const real[::1] authority not None, const real[::1] coverage not None,
    double kappa, Py_ssize_t k, Py_ssize_t threads, str isa=None,
):
    """(rows, scores) of the k best candidates, best first; None for a refused input."""
    cdef Workers workers = _workers(threads, isa)
    cdef BestCandidates[real] best
    if similarity.shape[0] == 0:
        return _best[real](best.rows, 0)
    cdef SecondPassColumns[real] columns = _second_pass_columns[real](similarity, authority, coverage)
    with nogil:
        best = c_second_pass_top_k(columns, kappa, <size_t>k, workers)
    return _best[real](best.rows, 0) if _finished(best.outcome) else None


def top_similarities(const real[::1] similarity not None, Py_ssize_t k, str isa=None):
    """(rows, similarities) of the k highest similarities; None for a refused input."""
    cdef Workers workers = _workers(1, isa)
    cdef BestCandidates[real] best
    if similarity.shape[0] == 0:
        return _best[real](best.rows, 0)
    with nogil:
        best = c_top_similarities(&similarity[0], <size_t>similarity.shape[0], <size_t>k, workers)
    return _best[real](best.rows, 0) if _finished(best.outcome) else None


def fit_budget(const cost[::1] costs not None, double budget, str policy not None):
    """Rows that fit, in rank order; None when a cost is out of its domain."""
    cdef FitPolicy c_policy = <FitPolicy><int>_POLICIES[policy]
    cdef optional[vector[int64_t]] found
    cdef vector[int64_t] none
    if costs.shape[0] == 0:
        return _rows(none)
    with nogil:
        found = c_fit_budget(&costs[0], <size_t>costs.shape[0], budget, c_policy)
    return _rows(found.value()) if found.has_value() else None


def fit_budget_scored(const real[::1] scores not None, const cost[::1] costs not None, double budget, str policy not None):
    """Rows that fit when ranked by score; None when a cost or score is out of its domain."""
    cdef FitPolicy c_policy = <FitPolicy><int>_POLICIES[policy]
    cdef optional[vector[int64_t]] found
    cdef vector[int64_t] none
    _check_length(scores.shape[0], costs.shape[0])
    if costs.shape[0] == 0:
        return _rows(none)
    with nogil:
        found = c_fit_budget_scored(&scores[0], &costs[0], <size_t>costs.shape[0], budget, c_policy)
    return _rows(found.value()) if found.has_value() else None


def estimate_tokens(StringColumn column not None, str kind not None, Py_ssize_t threads, int32_t[::1] out not None):
    """Writes the estimate for each row."""
    cdef TokenRule rule = <TokenRule><int>_RULES[kind]
    cdef size_t n = column.views.size()
    cdef cbool finished
    _check_length(<Py_ssize_t>n, out.shape[0])
    if n == 0:
        return
    with nogil:
        finished = c_estimate_tokens(
            span[const_string_view](column.views.data(), n), rule, <size_t>threads, &interrupted,
            span[int32_t](&out[0], n))
    _finished(Outcome.done if finished else Outcome.stopped)


def token_features(StringColumn column not None):
    """int64[n, features] of what the fitted rule counts."""
    features = np.empty((column.views.size(), kTokenFeatures), np.int64)
    cdef int64_t[:, ::1] out = features
    cdef TokenCounts counts
    cdef size_t i, j
    for i in range(column.views.size()):
        counts = count_features(column.views[i])
        for j in range(kTokenFeatures):
            out[i, j] = <int64_t>counts[j]
    return features


def token_coefficients():
    """Tokens per feature of the fitted rule."""
    cdef span[const_double] coefficients = fitted_coefficients()
    return [coefficients[i] for i in range(kTokenFeatures)]


def extract_keywords(bytes text not None, str kind not None, Py_ssize_t min_length):
    """Keywords of a UTF-8 text in order of first occurrence."""
    cdef string_view view = string_view(<const char*>text, <size_t>len(text))
    cdef TermKind c_kind = <TermKind><int>_KINDS[kind]
    cdef vector[string] found
    with nogil:
        found = c_extract_keywords(view, c_kind, <size_t>min_length)
    return [word.decode("utf-8", "replace") for word in found]


def keyword_coverage(
    StringColumn keywords not None, StringColumn texts not None, str kind not None, Py_ssize_t threads,
    double[::1] out not None,
):
    """Writes the share of the keywords that each text holds."""
    cdef size_t n = texts.views.size()
    cdef cbool finished
    cdef TermKind c_kind = <TermKind><int>_KINDS[kind]
    cdef KeywordSet* known
    _check_length(<Py_ssize_t>n, out.shape[0])
    if n == 0:
        return
    with nogil:
        known = new KeywordSet(span[const_string_view](keywords.views.data(), keywords.views.size()), c_kind)
    try:
        with nogil:
            finished = c_keyword_coverage(
                known[0], span[const_string_view](texts.views.data(), n), <size_t>threads, &interrupted,
                span[double](&out[0], n))
    finally:
        del known
    _finished(Outcome.done if finished else Outcome.stopped)


cdef HitScores _hits(const double[::1] values, const int64_t[::1] offsets) except *:
    cdef HitScores hits
    if offsets.shape[0]:
        hits.offsets = span[const_int64](&offsets[0], <size_t>offsets.shape[0])
    if values.shape[0]:
        hits.values = span[const_double](&values[0], <size_t>values.shape[0])
    return hits


def gating_signals(
    StringColumn texts not None, const double[::1] memory_values not None, const int64_t[::1] memory_offsets not None,
    const double[::1] turn_values not None, const int64_t[::1] turn_offsets not None, dict terms not None,
    Py_ssize_t threads, double[:, ::1] out not None,
):
    """Writes the signals of each text, one row each; empty offsets mean no hits."""
    cdef size_t n = texts.views.size()
    cdef cbool finished
    cdef GatingTerms c_terms
    cdef int i
    _check_length(<Py_ssize_t>n, out.shape[0])
    _check_length(<Py_ssize_t>(sizeof(GatingSignals) // sizeof(double)), out.shape[1])
    for i in range(3):
        c_terms.conversational_weights[i] = terms["conversational_weights"][i]
        c_terms.technical_weights[i] = terms["technical_weights"][i]
    c_terms.technical_norm = terms["technical_norm"]
    c_terms.repeat_threshold = terms["repeat_threshold"]
    c_terms.repeat_cap = terms["repeat_cap"]
    c_terms.saturation_threshold = terms["saturation_threshold"]
    c_terms.saturation_cap = terms["saturation_cap"]
    c_terms.strict = terms["strict"]
    cdef HitScores memory = _hits(memory_values, memory_offsets), turns = _hits(turn_values, turn_offsets)
    if n == 0:
        return
    with nogil:
        finished = c_gating_signals(
            span[const_string_view](texts.views.data(), n), memory, turns, c_terms, <size_t>threads, &interrupted,
            span[GatingSignals](<GatingSignals*>&out[0, 0], n))
    _finished(Outcome.done if finished else Outcome.stopped)


def gating_patterns(StringColumn texts not None, bint strict):
    """uint32[n, patterns]: matches of each pattern in each text."""
    found = np.empty((texts.views.size(), kGatingPatterns), np.uint32)
    cdef uint32_t[:, ::1] out = found
    cdef PatternScanner scanner
    cdef PatternCounts counts
    cdef size_t i, j
    for i in range(texts.views.size()):
        counts = scanner.scan(strip_white_space(texts.views[i]), strict)
        for j in range(kGatingPatterns):
            out[i, j] = counts.data()[j]
    return found


def stream_columns(
    const float[::1] first not None, const float[::1] second not None, const float[::1] third not None,
    const uint8_t[::1] scope not None, float[::1] out not None,
):
    """The benchmark's floor: reads the columns that are not empty and writes one, with next to no arithmetic."""
    cdef size_t n = out.shape[0]
    for length in (first.shape[0], second.shape[0], third.shape[0] or n, scope.shape[0] or n):
        _check_length(<Py_ssize_t>n, length)
    if n:
        with nogil:
            c_stream_columns(&first[0], &second[0], &third[0] if third.shape[0] else NULL,
                             &scope[0] if scope.shape[0] else NULL, n, &out[0])
