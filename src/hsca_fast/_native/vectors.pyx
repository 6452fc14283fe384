"""The vector kernels. Marshalling only, no formulas."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport make_unique, unique_ptr
from libcpp.span cimport span
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from hsca_fast._native.interrupt cimport interrupted, raise_interrupt

import numpy as np

ctypedef const double const_double
ctypedef const size_t const_size_t
ctypedef const uint32_t const_uint32
ctypedef float* float_pointer
ctypedef float* const const_float_pointer

NO_ROW = 0xFFFFFFFF


cdef extern from "hsca/isa.hpp" namespace "hsca" nogil:
    enum class Isa:
        baseline
        avx2
        avx512
    Isa best_isa() noexcept
    cbool has_isa(Isa) noexcept
    string_view c_isa_name "hsca::isa_name"(Isa) noexcept


cdef extern from "hsca/parallel.hpp" namespace "hsca" nogil:
    cppclass Stop:
        Stop(cbool (*poll)() noexcept nogil)


cdef extern from "hsca/vectors/dot.hpp" namespace "hsca" nogil:
    cppclass Rows:
        Rows()
        const float* data
        size_t n
        size_t dims
        size_t stride
    cbool c_dot_products "hsca::dot_products"(
        const Rows&, const Rows&, size_t, Isa, cbool (*poll)() noexcept nogil, span[float]
    ) except +


cdef extern from "hsca/vectors/prefix_norm.hpp" namespace "hsca" nogil:
    cbool c_prefix_tiers "hsca::prefix_tiers"(
        const Rows&, span[const_size_t], double, size_t, Isa, cbool (*poll)() noexcept nogil, span[const_float_pointer],
        cbool&
    ) except +
    void c_finite_rows "hsca::finite_rows"(const Rows&, span[uint8_t]) except +
    void c_prefix_inverse "hsca::prefix_inverse"(const Rows&, size_t, double, Isa, span[float]) except +


cdef extern from "hsca/vectors/codes.hpp" namespace "hsca" nogil:
    cppclass TierShape:
        TierShape()
        size_t width
        size_t lead
        size_t segments
    size_t segment_count(size_t) noexcept
    size_t c_leading_segments "hsca::leading_segments"(const Rows&, size_t, double) except +
    cppclass TierColumns:
        TierColumns()
        float* inverse
        float* scale
        float* error
        float* lead_residual
        float* residual
        uint8_t* lead
        uint8_t* tail
    cbool c_encode_tier "hsca::encode_tier"(
        const Rows&, size_t, size_t, const TierShape&, double, Isa, Stop&, const TierColumns&
    ) except +


cdef extern from "hsca/vectors/exact_cascade.hpp" namespace "hsca" nogil:
    cppclass Tier:
        Tier()
        TierShape shape
        Rows rows
        const float* inverse
        const float* scale
        const float* error
        const float* lead_residual
        const float* residual
        const uint8_t* lead
        const uint8_t* tail
        const int64_t* ids
        const uint8_t* allowed
    cppclass SearchWork:
        SearchWork()
        uint64_t rows
        uint64_t scored
        uint64_t segments
    cbool c_search_tier "hsca::search_tier"(
        const Tier&, const Rows&, size_t, cbool, size_t, Isa, cbool (*poll)() noexcept nogil, span[uint32_t],
        span[float], SearchWork*
    ) except +
    cbool c_scan_tier "hsca::scan_tier"(
        const Tier&, const Rows&, size_t, size_t, Isa, cbool (*poll)() noexcept nogil, span[uint32_t], span[float]
    ) except +


cdef extern from "hsca/vectors/funnel.hpp" namespace "hsca" nogil:
    cbool c_narrow "hsca::narrow"(
        const Rows&, const float*, const int64_t*, const Rows&, span[const_uint32], size_t, cbool, size_t, Isa,
        cbool (*poll)() noexcept nogil, span[uint32_t], span[float]
    ) except +


cdef extern from "hsca/vectors/mmr.hpp" namespace "hsca" nogil:
    cppclass MmrConfig:
        MmrConfig()
        double lambda_ "lambda"
        double group_weight
    cbool c_mmr "hsca::mmr"(
        const Rows&, span[const_double], span[const_uint32], size_t, const MmrConfig&, Isa,
        cbool (*poll)() noexcept nogil, span[int64_t]
    ) except +


cdef extern from "hsca/vectors/dedup.hpp" namespace "hsca" nogil:
    cbool c_connected_components "hsca::connected_components"(
        const Rows&, double, size_t, Isa, cbool (*poll)() noexcept nogil, span[uint32_t]
    ) except +


_LEVELS = {"baseline": Isa.baseline, "avx2": Isa.avx2, "avx512": Isa.avx512}


cdef Isa _isa(str name) except *:
    if name is None:
        return best_isa()
    cdef Isa isa = <Isa><int>_LEVELS[name]
    if not has_isa(isa):
        raise ValueError(f"this machine has no {name}")
    return isa


def isa_levels():
    """The instruction sets this machine can run, the one that is used last."""
    return tuple(name for name in _LEVELS if has_isa(<Isa><int>_LEVELS[name]))


cdef Rows _rows(const float[:, ::1] matrix, size_t dims) noexcept:
    cdef Rows rows
    rows.n = <size_t>matrix.shape[0]
    rows.dims = dims
    rows.stride = <size_t>matrix.shape[1]
    rows.data = &matrix[0, 0] if matrix.shape[0] and matrix.shape[1] else NULL
    return rows


def dot_products(const float[:, ::1] queries not None, const float[:, ::1] rows not None, Py_ssize_t threads=1,
                 str isa=None):
    """<queries[q], rows[i][:width of the queries]> for all pairs."""
    if queries.shape[1] > rows.shape[1]:
        raise ValueError("dot_products: queries wider than rows")
    out = np.empty((queries.shape[0], rows.shape[0]), np.float32)
    cdef float[:, ::1] view = out
    cdef Rows c_queries = _rows(queries, queries.shape[1]), c_rows = _rows(rows, queries.shape[1])
    cdef Isa level = _isa(isa)
    cdef cbool finished = True
    if out.size:
        with nogil:
            finished = c_dot_products(c_queries, c_rows, threads, level, &interrupted,
                                      span[float](&view[0, 0], c_queries.n * c_rows.n))
    if not finished:
        raise_interrupt()
    return out


def prefix_tiers(const float[:, ::1] rows not None, dims, double eps, Py_ssize_t threads=1, str isa=None, out=None):
    """One matrix of regularised prefixes for each of dims, in `out` if given; None if a value is not finite."""
    cdef vector[size_t] c_dims = dims
    cdef vector[float_pointer] pointers
    cdef float[:, ::1] view
    cdef Rows c_rows = _rows(rows, rows.shape[1])
    cdef Isa level = _isa(isa)
    cdef cbool finished = True
    cdef cbool is_finite = True
    tiers = tuple(np.empty((rows.shape[0], width), np.float32) for width in dims) if out is None else tuple(out)
    if rows.shape[0]:
        for tier, width in zip(tiers, dims, strict=True):
            view = tier
            if view.shape[0] != rows.shape[0] or view.shape[1] != width:
                raise ValueError(f"out: a matrix of {rows.shape[0]} x {width} is wanted, not {tier.shape}")
            pointers.push_back(&view[0, 0])
        with nogil:
            finished = c_prefix_tiers(
                c_rows, span[const_size_t](c_dims.data(), c_dims.size()), eps, threads, level, &interrupted,
                span[const_float_pointer](pointers.data(), pointers.size()), is_finite)
    if not finished:
        raise_interrupt()
    return tiers if is_finite else None


def leading_segments(const float[:, ::1] rows not None, Py_ssize_t width, double share):
    """How many segments of 64 coordinates hold `share` of the rows' energy."""
    return c_leading_segments(_rows(rows, width), width, share)


@cython.final
cdef class TierCodes:
    """The codes of one tier: arrays that grow, and the native view of them. Which rows have codes, the owner knows."""

    cdef readonly Py_ssize_t width, lead, segments
    cdef public object inverse, scale, error, lead_residual, residual, lead_codes, tail_codes

    def __init__(self, Py_ssize_t width, Py_ssize_t lead):
        self.width = width
        self.segments = segment_count(width)
        self.lead = lead
        if not 1 <= lead <= self.segments:
            raise ValueError(f"lead must be between 1 and {self.segments}, not {lead}")
        self._allocate(0)

    def _allocate(self, Py_ssize_t room):
        groups = (room + 15) // 16
        later = self.segments - self.lead
        shapes = {
            "inverse": (groups * 16,), "scale": (groups * 16,), "error": (groups * 16,), "lead_residual": (groups * 16,),
            "residual": (groups * 16, max(later - 1, 0)), "lead_codes": (groups, self.lead * 1024),
            "tail_codes": (groups * 16, later * 64),
        }
        # All are allocated before any is replaced: running out of memory changes nothing.
        new = {}
        for name, shape in shapes.items():
            new[name] = np.zeros(shape, np.uint8 if name.endswith("codes") else np.float32)
            old = getattr(self, name)
            if old is not None:
                new[name][:len(old)] = old
        for name, array in new.items():
            setattr(self, name, array)

    @property
    def nbytes(self):
        return (self.inverse.nbytes + self.scale.nbytes + self.error.nbytes + self.lead_residual.nbytes
                + self.residual.nbytes + self.lead_codes.nbytes + self.tail_codes.nbytes)

    cdef TierShape shape(self) noexcept:
        cdef TierShape shape
        shape.width = self.width
        shape.lead = self.lead
        shape.segments = self.segments
        return shape

    def encode(self, const float[:, ::1] rows not None, Py_ssize_t begin, Py_ssize_t end, double eps, str isa=None):
        """Codes of rows [begin, end); `rows` are all of the index, full width."""
        if not 0 <= begin <= end <= rows.shape[0] or rows.shape[1] < self.width:
            raise ValueError("TierCodes.encode: rows out of range")
        if end > len(self.inverse):
            self._allocate(max(end, len(self.inverse) * 3 // 2))
        cdef Isa level = _isa(isa)
        cdef Rows c_rows = _rows(rows, rows.shape[1])
        cdef TierShape shape = self.shape()
        cdef TierColumns out
        cdef cbool finished = True
        cdef unique_ptr[Stop] stop = make_unique[Stop](&interrupted)
        held = self._columns(&out)  # another thread may replace them meanwhile
        if begin < end:
            with nogil:
                finished = c_encode_tier(c_rows, begin, end, shape, eps, level, stop.get()[0], out)
        if not finished:
            raise_interrupt()

    cdef tuple _columns(self, TierColumns* out):
        """Fills `out`; its addresses hold as long as what is returned."""
        held = (self.inverse, self.scale, self.error, self.lead_residual, self.residual, self.lead_codes, self.tail_codes)
        out.inverse = <float*>_address(held[0])
        out.scale = <float*>_address(held[1])
        out.error = <float*>_address(held[2])
        out.lead_residual = <float*>_address(held[3])
        out.residual = <float*>_address(held[4])
        out.lead = <uint8_t*>_address(held[5])
        out.tail = <uint8_t*>_address(held[6])
        return held

    def search(self, const float[:, ::1] rows not None, const float[:, ::1] queries not None, Py_ssize_t k, *,
               const int64_t[::1] ids=None, const uint8_t[::1] allowed=None, bint candidates=False,
               Py_ssize_t threads=1, str isa=None, dict work=None):
        """The k best rows of each query: row numbers (NO_ROW = none) and scores; as candidates only the best is first."""
        cdef Tier tier
        cdef TierColumns columns
        cdef Rows c_queries = _rows(queries, queries.shape[1])
        cdef Isa level = _isa(isa)
        cdef SearchWork done
        cdef cbool finished = True
        cdef size_t room = <size_t>queries.shape[0] * <size_t>k
        held = self._columns(&columns)  # another thread may replace them meanwhile
        if rows.shape[0] > len(held[0]) or rows.shape[1] < self.width or queries.shape[1] != self.width:
            raise ValueError("TierCodes.search: sizes do not match")
        _check_row_columns(rows.shape[0], ids, allowed)
        found, scores = _empty_result(queries.shape[0], k)
        if not room or not rows.shape[0]:
            return found, scores
        tier.shape = self.shape()
        tier.rows = _rows(rows, rows.shape[1])
        tier.inverse = columns.inverse
        tier.scale = columns.scale
        tier.error = columns.error
        tier.lead_residual = columns.lead_residual
        tier.residual = columns.residual
        tier.lead = columns.lead
        tier.tail = columns.tail
        tier.ids = &ids[0] if ids is not None else NULL
        tier.allowed = &allowed[0] if allowed is not None else NULL
        cdef uint32_t[:, ::1] out_rows = found
        cdef float[:, ::1] out_scores = scores
        with nogil:
            finished = c_search_tier(
                tier, c_queries, k, candidates, threads, level, &interrupted, span[uint32_t](&out_rows[0, 0], room),
                span[float](&out_scores[0, 0], room), &done)
        if not finished:
            raise_interrupt()
        if work is not None:
            work.update(rows=done.rows, scored=done.scored, segments=done.segments)
        return found, scores


def scan(const float[:, ::1] rows not None, const float[::1] inverse not None, const float[:, ::1] queries not None,
         Py_ssize_t k, *, const int64_t[::1] ids=None, const uint8_t[::1] allowed=None, Py_ssize_t threads=1,
         str isa=None):
    """What TierCodes.search finds, by computing every score."""
    cdef Tier tier
    cdef Rows c_queries = _rows(queries, queries.shape[1])
    cdef Isa level = _isa(isa)
    cdef cbool finished = True
    cdef size_t room = <size_t>queries.shape[0] * <size_t>k
    if inverse.shape[0] < rows.shape[0] or rows.shape[1] < queries.shape[1]:
        raise ValueError("scan: sizes do not match")
    _check_row_columns(rows.shape[0], ids, allowed)
    found, scores = _empty_result(queries.shape[0], k)
    if not room or not rows.shape[0]:
        return found, scores
    tier.shape.width = queries.shape[1]
    tier.shape.lead = 1
    tier.shape.segments = segment_count(tier.shape.width)
    tier.rows = _rows(rows, rows.shape[1])
    tier.inverse = &inverse[0]
    tier.ids = &ids[0] if ids is not None else NULL
    tier.allowed = &allowed[0] if allowed is not None else NULL
    cdef uint32_t[:, ::1] out_rows = found
    cdef float[:, ::1] out_scores = scores
    with nogil:
        finished = c_scan_tier(tier, c_queries, k, threads, level, &interrupted, span[uint32_t](&out_rows[0, 0], room),
                               span[float](&out_scores[0, 0], room))
    if not finished:
        raise_interrupt()
    return found, scores


def move_rows(records, float[:, ::1] vectors not None, int64_t[::1] ids not None, const int64_t[::1] holes not None,
              const int64_t[::1] movers not None, Py_ssize_t n):
    """Rows `movers` into `holes`, then `records.n = n`: one step that neither Ctrl-C nor another thread divides."""
    cdef Py_ssize_t i
    if holes.shape[0] != movers.shape[0] or ids.shape[0] != vectors.shape[0]:
        raise ValueError("move_rows: sizes do not match")
    for i in range(holes.shape[0]):
        if not 0 <= holes[i] < n <= movers[i] < vectors.shape[0]:
            raise IndexError("move_rows: a hole is before n, a mover behind")
    for i in range(holes.shape[0]):
        vectors[holes[i]] = vectors[movers[i]]
        ids[holes[i]] = ids[movers[i]]
    records.n = n


def finite_rows(const float[:, ::1] rows not None):
    """For each row, whether every value is finite."""
    out = np.ones(rows.shape[0], np.uint8)
    cdef uint8_t[::1] view = out
    cdef Rows c_rows = _rows(rows, rows.shape[1])
    if rows.size:
        with nogil:
            c_finite_rows(c_rows, span[uint8_t](&view[0], view.shape[0]))
    return out.view(np.bool_)


def prefix_inverse(const float[:, ::1] rows not None, Py_ssize_t width, double eps, str isa=None):
    """1 / sqrt(|row[:width]|^2 + eps^2) for each row, 0 for zeros."""
    out = np.empty(rows.shape[0], np.float32)
    cdef float[::1] view = out
    cdef Isa level = _isa(isa)
    cdef Rows c_rows = _rows(rows, rows.shape[1])
    if out.size:
        with nogil:
            c_prefix_inverse(c_rows, width, eps, level, span[float](&view[0], view.shape[0]))
    return out


cdef _check_row_columns(Py_ssize_t n, const int64_t[::1] ids, const uint8_t[::1] allowed):
    if (ids is not None and ids.shape[0] != n) or (allowed is not None and allowed.shape[0] != n):
        raise ValueError("one id and one flag for each row")


cdef _empty_result(Py_ssize_t n_queries, Py_ssize_t k):
    return np.full((n_queries, k), NO_ROW, np.uint32), np.zeros((n_queries, k), np.float32)


cdef size_t _address(array) except? 0:
    return <size_t>array.ctypes.data


def narrow(const float[:, ::1] rows not None, const float[::1] inverse not None, const int64_t[::1] ids,
           const float[:, ::1] queries not None, const uint32_t[:, ::1] candidates not None, Py_ssize_t keep,
           bint candidates_only=False, Py_ssize_t threads=1, str isa=None):
    """The candidates of each query scored at the queries' width, the best `keep` of them."""
    cdef size_t n = <size_t>queries.shape[0], room = n * <size_t>keep
    cdef Rows c_rows = _rows(rows, rows.shape[1]), c_queries = _rows(queries, queries.shape[1])
    cdef Isa level = _isa(isa)
    cdef cbool finished = True
    if candidates.shape[0] != queries.shape[0] or inverse.shape[0] < rows.shape[0]:
        raise ValueError("narrow: sizes do not match")
    found, scores = _empty_result(n, keep)
    if not room or not candidates.shape[1] or not rows.shape[0]:
        return found, scores
    cdef uint32_t[:, ::1] out_rows = found
    cdef float[:, ::1] out_scores = scores
    cdef const int64_t* c_ids = &ids[0] if ids is not None else NULL
    with nogil:
        finished = c_narrow(
            c_rows, &inverse[0], c_ids, c_queries,
            span[const_uint32](&candidates[0, 0], n * <size_t>candidates.shape[1]), keep, candidates_only, threads, level,
            &interrupted,
            span[uint32_t](&out_rows[0, 0], room), span[float](&out_scores[0, 0], room))
    if not finished:
        raise_interrupt()
    return found, scores


def mmr(const float[:, ::1] rows not None, const double[::1] relevance not None, const uint32_t[::1] groups,
        Py_ssize_t n_groups, Py_ssize_t k, double lambda_, double group_weight, str isa=None):
    """Row numbers in the order they are picked."""
    cdef MmrConfig config
    cdef Rows c_rows = _rows(rows, rows.shape[1])
    cdef Isa level = _isa(isa)
    cdef cbool finished = True
    cdef span[const_uint32] c_groups
    picks = np.empty(min(k, rows.shape[0]), np.int64)
    cdef int64_t[::1] view = picks
    if not picks.size:
        return picks
    config.lambda_ = lambda_
    config.group_weight = group_weight
    if groups is not None and groups.shape[0]:
        c_groups = span[const_uint32](&groups[0], groups.shape[0])
    with nogil:
        finished = c_mmr(c_rows, span[const_double](&relevance[0], relevance.shape[0]), c_groups, n_groups, config,
                         level, &interrupted, span[int64_t](&view[0], view.shape[0]))
    if not finished:
        raise_interrupt()
    return picks


def connected_components(const float[:, ::1] rows not None, double threshold, Py_ssize_t threads=1, str isa=None):
    """For each row the lowest row of its component."""
    cdef Rows c_rows = _rows(rows, rows.shape[1])
    cdef Isa level = _isa(isa)
    cdef cbool finished = True
    component = np.empty(rows.shape[0], np.uint32)
    cdef uint32_t[::1] view = component
    if component.size:
        with nogil:
            finished = c_connected_components(
                c_rows, threshold, threads, level, &interrupted, span[uint32_t](&view[0], view.shape[0]))
    if not finished:
        raise_interrupt()
    return component
