"""Search by cosine over prefix tiers: early exit, funnel, and exact.

    queries ─► rotate ─► u_64, u_256, u_768 ─► tier 64 ─► tier 256 ─► full width ─► ids, scores

The full-width vectors are the truth. A tier is derived from them: codes of one byte a coordinate with a bound of what
they leave out, so that its best rows by float32 score are found without reading most rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast._native.inputs import thread_count
from hsca_fast._native.vectors import NO_ROW
from hsca_fast.vectors import storage
from hsca_fast.vectors.arrays import Float32, Int64, as_count, as_dims, as_ids, as_number, as_rows
from hsca_fast.vectors.calibration import Calibration, Model, exit_candidates, measure
from hsca_fast.vectors.full_index import FaissTier
from hsca_fast.vectors.prefix import EPS, prefix_tiers
from hsca_fast.vectors.results import BackfillReport, ResultArrays, SearchResult
from hsca_fast.vectors.rotation import Rotation

Mode = Literal["early_exit", "funnel", "exact"]
MODES = ("early_exit", "funnel", "exact")

# The leading codes hold this share of the energy: with less, too many rows survive them.
_LEADING_SHARE = 0.75
# Own rows that stand in for queries where there is no calibration.
_OWN_QUERIES = 256
# So few vectors all go through the funnel.
_NO_FUNNEL = 1000


class CascadeIndex:
    """Vectors under ids, searched by cosine through prefix tiers.

    Parameters
    ----------
    dims
        Widths of the tiers, strictly increasing; the last is the vectors' own.
    thresholds
        For each tier but the last, the best score above which `mode="early_exit"` stops there. Those of the document
        are for one model: `calibrate_thresholds` finds yours.
    rotation
        Applied to vectors and queries (`fit_rotation`); for models that were not trained for prefixes.
    full_factory
        "Flat", or a FAISS factory string for the full-width tier of `mode="early_exit"`.
    threads
        Worker threads of a search; 0 takes every usable CPU. Results are the same for every number.
    calibration
        From `calibrate_thresholds`; brings thresholds and funnel sizes.
    model
        What made the vectors, as plain values (name, dimension, fingerprint): stored with the index, compared with the
        calibration's.

    Examples
    --------
    >>> index = CascadeIndex((2, 4))
    >>> index.add([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]], ids=[7, 9]).tolist()
    [7, 9]
    >>> index.search([1.0, 0.0, 0.0, 0.9], k=1, mode="exact").ids.tolist()
    [[7]]
    """

    def __init__(
        self,
        dims: Sequence[int] = (64, 256, 768),
        *,
        thresholds: Sequence[float] | None = None,
        rotation: Rotation | None = None,
        full_factory: str = "Flat",
        threads: int = 1,
        calibration: Calibration | None = None,
        model: Model | None = None,
    ) -> None:
        self._dims = as_dims(dims)
        if rotation is not None and not isinstance(rotation, Rotation):
            raise TypeError(f"rotation must be a Rotation, not {type(rotation).__name__}")
        if rotation is not None and rotation.dim != self.width:
            raise ValueError(f"rotation is for vectors of {rotation.dim} values; the last of dims is {self.width}")
        self._rotation = rotation
        self._model = None if model is None else dict(model)
        self._threads = thread_count(threads)
        self._calibration: Calibration | None = None
        self._own_calibration: Calibration | None = None
        if calibration is not None:
            calibration.check(dims=self._dims, model=self._model, rotation=self._rotation_fingerprint)
            self._calibration = calibration
            thresholds = calibration.thresholds if thresholds is None else thresholds
        if thresholds is None:
            thresholds = _default_thresholds(len(self._dims) - 1)
        self._thresholds = tuple(as_number(t, "thresholds", low=0.0, high=1.0) for t in thresholds)
        if len(self._thresholds) != len(self._dims) - 1:
            raise ValueError(
                f"thresholds has {len(self._thresholds)} values; dims {self._dims} needs one fewer than widths"
            )
        if not isinstance(full_factory, str):
            raise TypeError(f"full_factory must be a str, not {type(full_factory).__name__}")
        self._full_factory = full_factory
        self._faiss = None if full_factory == "Flat" else FaissTier(full_factory, self.width)
        self._n = 0
        self._vectors: Float32 = np.empty((0, self.width), np.float32)
        self._ids: Int64 = np.empty(0, np.int64)
        self._row_of: dict[int, int] = {}
        self._next_id = 0
        self._tiers: list[_native.TierCodes | None] = [None] * len(self._dims)
        self._led_at = [0] * len(self._dims)
        self._dirty: list[set[int]] = [set() for _ in self._dims]

    @property
    def dims(self) -> tuple[int, ...]:
        """Widths of the tiers."""
        return self._dims

    @property
    def width(self) -> int:
        """Width of the vectors."""
        return self._dims[-1]

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Of the early exits."""
        return self._thresholds

    @property
    def rotation(self) -> Rotation | None:
        """Applied to vectors and queries."""
        return self._rotation

    @property
    def calibration(self) -> Calibration | None:
        """The one that was given."""
        return self._calibration

    @property
    def model(self) -> dict[str, str | int] | None:
        """What made the vectors."""
        return None if self._model is None else dict(self._model)

    @property
    def ntotal(self) -> int:
        """How many vectors there are."""
        return self._n

    @property
    def ids(self) -> Int64:
        """Of the vectors, in no particular order."""
        return self._ids[: self._n].copy()

    @property
    def dirty(self) -> dict[int, int]:
        """For each width, how many rows its tier lacks."""
        return {width: len(marked) for width, marked in zip(self._dims, self._dirty, strict=True)}

    def __len__(self) -> int:
        return self._n

    def __contains__(self, id_: int) -> bool:
        return id_ in self._row_of

    @property
    def _rows(self) -> Float32:
        return self._vectors[: self._n]

    @property
    def _rotation_fingerprint(self) -> str | None:
        return None if self._rotation is None else self._rotation.fingerprint

    # ---- changing

    def add(self, vectors: npt.ArrayLike, ids: npt.ArrayLike | None = None) -> Int64:
        """Adds rows; all of them or, if anything is wrong with one, none.

        The vectors are in the index once they are in its full-width rows. A tier that cannot take them (out of memory) is
        marked and does without: `backfill` repairs it.

        Parameters
        ----------
        ids
            Not negative, none twice; by default the numbers behind the greatest so far.

        Returns
        -------
        int64 array
            The ids.
        """
        rows = self._prepared(vectors, "vectors")
        if ids is None:
            new_ids = np.arange(self._next_id, self._next_id + len(rows), dtype=np.int64)
        else:
            new_ids = as_ids(ids, "ids")
            if len(new_ids) != len(rows):
                raise ValueError(f"ids has {len(new_ids)} elements; vectors has {len(rows)} rows")
            self._refuse_known(new_ids)
        begin, end = self._n, self._n + len(rows)
        if end >= NO_ROW:
            raise ValueError(f"an index holds fewer than {NO_ROW} vectors")
        self._make_room(end)
        self._vectors[begin:end] = rows
        self._ids[begin:end] = new_ids
        self._row_of.update(zip(new_ids.tolist(), range(begin, end), strict=True))
        self._next_id = max(self._next_id, int(new_ids.max(initial=-1)) + 1)
        self._n = end
        self._encode_tiers([(begin, end)])
        if self._faiss is not None:
            self._faiss.extend(self._rows)
        return new_ids

    def remove(self, ids: npt.ArrayLike) -> int:
        """Removes the vectors of `ids`; KeyError, and nothing removed, if one is not there. Returns how many."""
        wanted = np.unique(as_ids(ids, "ids"))
        missing = [i for i in wanted.tolist() if i not in self._row_of]
        if missing:
            raise KeyError(f"ids not in the index: {', '.join(map(str, missing[:10]))}")
        if not wanted.size:
            return 0
        gone = np.array([self._row_of[i] for i in wanted.tolist()])
        left = self._n - len(gone)
        self._make_room(self._n)  # mapped vectors cannot be changed
        # The last rows move into the holes.
        holes = np.sort(gone[gone < left])
        movers = np.setdiff1d(np.arange(left, self._n), gone)
        self._vectors[holes] = self._vectors[movers]
        self._ids[holes] = self._ids[movers]
        for i in wanted.tolist():
            del self._row_of[i]
            for marked in self._dirty:
                marked.discard(i)
        self._row_of.update(zip(self._ids[holes].tolist(), holes.tolist(), strict=True))
        self._n = left
        for codes in self._tiers:
            if codes is not None:
                codes.truncate(left)
        self._encode_tiers(_runs(holes.tolist()))
        if self._faiss is not None:
            self._faiss.forget()
        return len(gone)

    def backfill(self) -> BackfillReport:
        """Rebuilds what tiers lack from the full-width vectors. What fails again stays marked."""
        rebuilt = {}
        for number, width in enumerate(self._dims):
            marked = self._dirty[number]
            before = len(marked)
            rows = sorted(self._row_of[i] for i in marked)
            for begin, end in _runs(rows):
                self._encode(number, begin, end)
            rebuilt[width] = before - len(marked)
        return BackfillReport(rebuilt, self.dirty)

    def _prepared(self, vectors: npt.ArrayLike, name: str) -> Float32:
        rows = as_rows(vectors, name, width=self.width)
        if self._rotation is not None:
            rows = self._rotation.apply(rows, threads=self._threads)
        return prefix_tiers(rows, (self.width,), threads=self._threads)[0]

    def _refuse_known(self, new_ids: Int64) -> None:
        unique, counts = np.unique(new_ids, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"ids has {int(unique[counts > 1][0])} more than once")
        known = [i for i in new_ids.tolist() if i in self._row_of]
        if known:
            shown = ", ".join(map(str, known[:10]))
            raise ValueError(f"ids already in the index: {shown}; remove them first")

    def _make_room(self, n: int) -> None:
        if n <= len(self._vectors) and self._vectors.flags.writeable:
            return
        room = n if not self._n else max(n, self._n + self._n // 2)
        vectors = np.empty((room, self.width), np.float32)
        ids = np.empty(room, np.int64)
        vectors[: self._n] = self._rows
        ids[: self._n] = self._ids[: self._n]
        self._vectors, self._ids = vectors, ids

    def _encode_tiers(self, runs: list[tuple[int, int]]) -> None:
        """Ranges of rows in every tier. All are marked before any is made: an interrupt leaves no tier unmarked."""
        for marked in self._dirty:
            for begin, end in runs:
                marked.update(self._ids[begin:end].tolist())
        for number in range(len(self._dims) - 1, -1, -1):  # widest first, as the document has it
            for begin, end in runs:
                self._encode(number, begin, end)

    def _encode(self, number: int, begin: int, end: int) -> None:
        """Rows [begin, end) of a tier, which are marked; a failure of one tier is no other's."""
        marked = self._dirty[number]
        try:
            codes = self._codes_to_fill(number)
            if codes is not self._tiers[number]:  # new ones hold nothing yet
                begin, end = 0, self._n
            codes.encode(self._rows, begin, end, EPS)
        except Exception as error:
            warnings.warn(
                f"tier {self._dims[number]} lacks {len(marked)} vectors ({error or type(error).__name__}); "
                "backfill() rebuilds them",
                RuntimeWarning,
                stacklevel=3,
            )
            return
        self._tiers[number] = codes
        marked.difference_update(self._ids[begin:end].tolist())

    def _codes_to_fill(self, number: int) -> _native.TierCodes:
        """The tier's codes; new ones where it has grown so much that other segments should lead."""
        codes = self._tiers[number]
        if codes is not None and self._n < 2 * self._led_at[number]:
            return codes
        width = self._dims[number]
        lead = _native.leading_segments(self._rows, width, _LEADING_SHARE)
        self._led_at[number] = self._n
        return codes if codes is not None and codes.lead == lead else _native.TierCodes(width, lead)

    def _complete(self, number: int) -> _native.TierCodes | None:
        """A tier that holds every record."""
        codes = self._tiers[number]
        return codes if codes is not None and not self._dirty[number] and codes.n == self._n else None

    # ---- searching

    def search(
        self,
        queries: npt.ArrayLike,
        k: int = 10,
        *,
        mode: Mode = "early_exit",
        allowed_ids: npt.ArrayLike | None = None,
        recall: float = 0.95,
    ) -> SearchResult:
        """The `k` best of each query by cosine, ties by id.

        Parameters
        ----------
        queries
            One vector or a matrix of them.
        mode
            "exact": provably the rows that a scan of every full-width vector finds.
            "funnel": the best of each tier are scored at the next; how many is chosen for `recall`.
            "early_exit": the narrowest tier whose best score exceeds its threshold decides; its best are scored at full
            width. A tier that lacks records never decides. The last tier is exact.
        allowed_ids
            Only these are looked at; ids that are not in the index are ignored.
        recall
            For "funnel": the share of the true neighbours that should be found, by the calibration given, else by one
            on the index's own vectors.
        """
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        k = as_count(k, "k")
        recall = as_number(recall, "recall", low=0.0, high=1.0)
        rows = as_rows(queries, "queries", width=self.width)
        if self._rotation is not None:
            rows = self._rotation.apply(rows, threads=self._threads)
        tiers = prefix_tiers(rows, self._dims, threads=self._threads)
        allowed = self._allowed_rows(allowed_ids)
        out = ResultArrays(len(rows), k, len(self._dims))
        if len(rows) and self._n:
            if mode == "funnel":
                self._funnel(tiers, k, allowed, recall, out)
            else:
                self._cascade(tiers, k, allowed, out, early=mode == "early_exit")
        ids = np.full(out.rows.shape, -1, np.int64)
        found = out.rows != NO_ROW
        ids[found] = self._ids[out.rows[found]]
        return SearchResult(out.scores, ids, out.tier, out.best)

    def _allowed_rows(self, allowed_ids: npt.ArrayLike | None) -> npt.NDArray[np.uint8] | None:
        if allowed_ids is None:
            return None
        wanted = as_ids(allowed_ids, "allowed_ids")
        if 8 * len(wanted) > self._n:
            return np.isin(self._ids[: self._n], wanted).view(np.uint8)
        allowed = np.zeros(self._n, np.uint8)
        rows = [row for row in map(self._row_of.get, wanted.tolist()) if row is not None]
        allowed[rows] = 1
        return allowed

    def _cascade(
        self,
        tiers: tuple[Float32, ...],
        k: int,
        allowed: npt.NDArray[np.uint8] | None,
        out: ResultArrays,
        *,
        early: bool,
    ) -> None:
        waiting = np.arange(len(tiers[0]))
        last = len(self._dims) - 1
        for number in range(last if early else 0):
            codes = self._complete(number)
            if codes is None or not waiting.size:
                continue
            candidates, scores = self._search_codes(
                codes, tiers[number][waiting], exit_candidates(k), allowed, candidates=True
            )
            best = np.maximum(scores[:, 0], 0.0)
            out.best[waiting, number] = best
            done = best > self._thresholds[number]
            if done.any():
                leaving = waiting[done]
                found = self._narrow(candidates[done], last, tiers[last][leaving], k)
                out.put(leaving, number, *found)
                waiting = waiting[~done]
        if waiting.size:
            found = self._full_width(tiers[last][waiting], k, allowed, early=early)
            out.put(waiting, last, *found)
            if k:
                out.best[waiting, last] = np.maximum(found[1][:, 0], 0.0)

    def _full_width(
        self, queries: Float32, k: int, allowed: npt.NDArray[np.uint8] | None, *, early: bool
    ) -> tuple[npt.NDArray[np.uint32], Float32]:
        last = len(self._dims) - 1
        if early and self._faiss is not None and k:
            candidates = self._faiss.candidates(self._rows, queries, min(exit_candidates(k), self._n), allowed)
            if candidates is not None:
                return self._narrow(candidates, last, queries, k)
        codes = self._complete(last)
        if codes is not None:
            return self._search_codes(codes, queries, k, allowed)
        return _native.scan(
            self._rows,
            self._inverse(last),
            queries,
            k,
            ids=self._ids[: self._n],
            allowed=allowed,
            threads=self._threads,
        )

    def _search_codes(
        self,
        codes: _native.TierCodes,
        queries: Float32,
        k: int,
        allowed: npt.NDArray[np.uint8] | None,
        *,
        candidates: bool = False,
    ) -> tuple[npt.NDArray[np.uint32], Float32]:
        return codes.search(
            self._rows,
            queries,
            k,
            ids=self._ids[: self._n],
            allowed=allowed,
            candidates=candidates,
            threads=self._threads,
        )

    def _inverse(self, number: int) -> Float32:
        codes = self._complete(number)
        if codes is not None:
            return codes.inverse
        return _native.prefix_inverse(self._rows, self._dims[number], EPS)

    def _narrow(
        self, candidates: npt.NDArray[np.uint32], number: int, queries: Float32, keep: int, *, further: bool = False
    ) -> tuple[npt.NDArray[np.uint32], Float32]:
        return _native.narrow(
            self._rows, self._inverse(number), self._ids[: self._n], queries, candidates, keep, further, self._threads
        )

    def _funnel(
        self,
        tiers: tuple[Float32, ...],
        k: int,
        allowed: npt.NDArray[np.uint8] | None,
        recall: float,
        out: ResultArrays,
    ) -> None:
        last = len(self._dims) - 1
        everyone = np.arange(len(tiers[0]))
        first = next((number for number in range(last) if self._complete(number) is not None), None)
        if first is None or not k:
            self._cascade(tiers, k, allowed, out, early=False)
            return
        sizes = self._funnel_sizes(recall, k)
        codes = self._complete(first)
        assert codes is not None
        candidates, scores = self._search_codes(codes, tiers[first], sizes[first], allowed, candidates=True)
        out.best[:, first] = np.maximum(scores[:, 0], 0.0)
        for number in range(first + 1, last):
            candidates, scores = self._narrow(candidates, number, tiers[number], sizes[number], further=True)
            out.best[:, number] = np.maximum(scores[:, 0], 0.0)
        found = self._narrow(candidates, last, tiers[last], k)
        out.put(everyone, last, *found)
        out.best[:, last] = np.maximum(found[1][:, 0], 0.0)

    # ---- calibrating

    def _funnel_sizes(self, recall: float, k: int) -> tuple[int, ...]:
        calibration = self._calibration
        if calibration is None and self._n <= _NO_FUNNEL:
            return (self._n,) * (len(self._dims) - 1)
        if calibration is None:
            own = self._own_calibration
            if own is None or not own.n_vectors <= self._n <= 2 * own.n_vectors or k > own.k:
                own = self._own_calibration = self.calibrate(k=max(k, 10))
            calibration = own
        sizes = calibration.funnel_sizes(recall, n_vectors=self._n)
        wider = max(1.0, k / calibration.k)
        return tuple(min(self._n, max(k, int(np.ceil(size * wider)))) for size in sizes)

    def calibrate(self, queries: npt.ArrayLike | None = None, *, recall: float = 0.99, k: int = 10) -> Calibration:
        """Thresholds and funnel sizes for the vectors of this index, from exact search.

        Without `queries`, some of the index's own vectors ask for their neighbours, themselves apart. The index is not
        changed: give the result to a new one, or read its numbers.
        """
        recall = as_number(recall, "recall", low=0.0, high=1.0)
        k = as_count(k, "k", least=1)
        if queries is None:
            own = np.arange(0, self._n, max(1, -(-self._n // _OWN_QUERIES)))
            unit = np.ascontiguousarray(self._rows[own])
        else:
            own = None
            unit = self._prepared(queries, "queries")
        if not len(unit) or not self._n:
            raise ValueError("calibration needs vectors and queries")
        tiers = prefix_tiers(unit, self._dims, threads=self._threads)
        truth = self._truth(tiers[-1], k, own)
        return measure(
            self._rows,
            [self._inverse(number) for number in range(len(self._dims) - 1)],
            tiers,
            truth,
            own,
            recall=recall,
            k=k,
            model=self.model,
            rotation=self._rotation_fingerprint,
            threads=self._threads,
        )

    def _truth(self, queries: Float32, k: int, own: Int64 | None) -> npt.NDArray[np.uint32]:
        """Rows of the k true neighbours of each query, without its own."""
        k = min(k, self._n - (own is not None))
        if own is None:
            return self._full_width(queries, k, None, early=False)[0]
        found = self._full_width(queries, k + 1, None, early=False)[0]
        return np.array([line[line != row][:k] for line, row in zip(found, own, strict=True)], np.uint32).reshape(
            len(own), k
        )

    # ---- keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index into the folder `path`, in one step: a reader sees the old one or the new one.

        Vectors, ids and rotation are stored with checksums; a FAISS tier is stored as a cache. Tiers are not: they are
        made again on load.
        """
        meta: dict[str, Any] = {
            "dims": list(self._dims),
            "thresholds": list(self._thresholds),
            "full_factory": self._full_factory,
            "n": self._n,
            "next_id": self._next_id,
            "model": self._model,
            "calibration": None if self._calibration is None else self._calibration.to_dict(),
        }
        arrays: dict[str, npt.NDArray[Any]] = {"vectors": self._rows, "ids": self._ids[: self._n]}
        if self._rotation is not None:
            arrays["rotation"] = self._rotation.matrix
        blob = None if self._faiss is None else self._faiss.to_bytes()
        storage.write_folder(os.fspath(path), meta, arrays, {} if blob is None else {"full": blob})

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, mmap: bool = False, backfill: bool = True, threads: int = 1
    ) -> CascadeIndex:
        """Reads what `save` wrote.

        Parameters
        ----------
        mmap
            Map the vectors instead of reading them; the first change copies them into memory.
        backfill
            Make the tiers now. If not, every row is marked, and searches scan full width until `backfill()`.

        Raises
        ------
        DamagedIndexError
            A file is missing, cut, altered or another's. Nothing of it has been parsed. A damaged FAISS cache is no
            error: it is made again from the vectors.
        """
        folder = os.fspath(path)
        manifest = storage.read_manifest(folder)
        n, width = manifest["n"], manifest["dims"][-1]
        rotation = None
        if "rotation" in manifest["files"]:
            matrix = storage.load_array(folder, manifest, "rotation", np.float32, (width, width), mmap=False)
            rotation = Rotation(matrix)
        stored = manifest["calibration"]
        index = cls(
            tuple(manifest["dims"]),
            thresholds=tuple(manifest["thresholds"]),
            rotation=rotation,
            full_factory=manifest["full_factory"],
            threads=threads,
            calibration=None if stored is None else Calibration.from_dict(stored),
            model=manifest["model"],
        )
        vectors = storage.load_array(folder, manifest, "vectors", np.float32, (n, width), mmap=mmap)
        index._ids = storage.load_array(folder, manifest, "ids", np.int64, (n,), mmap=False)
        index._vectors = vectors.view(np.ndarray)
        index._n = n
        index._next_id = manifest["next_id"]
        index._row_of = dict(zip(index._ids.tolist(), range(n), strict=True))
        for marked in index._dirty:
            marked.update(index._row_of)
        if index._faiss is not None and "full" in manifest["files"]:
            try:
                with open(storage.checked_path(folder, manifest, "full"), "rb") as stream:
                    index._faiss.from_checked_bytes(stream.read(), n)
            except storage.DamagedIndexError as error:
                warnings.warn(f"{error}; it is made again from the vectors", RuntimeWarning, stacklevel=2)
        if backfill:
            index.backfill()
        return index


def _default_thresholds(n: int) -> tuple[float, ...]:
    """The document's 0.65 and 0.75; with another number of tiers the last are as strict as its last."""
    return (0.65, 0.75)[:n] + (0.75,) * (n - 2)


def _runs(rows: list[int]) -> list[tuple[int, int]]:
    """Sorted numbers as half-open ranges."""
    runs: list[tuple[int, int]] = []
    for row in rows:
        if runs and runs[-1][1] == row:
            runs[-1] = (runs[-1][0], row + 1)
        else:
            runs.append((row, row + 1))
    return runs


def calibrate_thresholds(
    vectors: npt.ArrayLike,
    queries: npt.ArrayLike,
    *,
    dims: Sequence[int],
    recall: float = 0.99,
    k: int = 10,
    rotation: Rotation | None = None,
    model: Model | None = None,
    threads: int = 1,
) -> Calibration:
    """Early-exit thresholds and funnel sizes of a model, from full-width ground truth.

    Parameters
    ----------
    vectors, queries
        Samples of what the index will hold and be asked; queries that are not near-copies of vectors.
    recall
        The share of the `k` true neighbours that queries which exit shall find.
    rotation, model
        Those of the index; it refuses the calibration if they differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> calibration = calibrate_thresholds(rng.normal(size=(500, 8)), rng.normal(size=(50, 8)), dims=(4, 8), recall=0.9)
    >>> calibration.funnel_sizes(0.5) <= calibration.funnel_sizes(0.9)
    True
    """
    index = CascadeIndex(dims, rotation=rotation, model=model, threads=threads)
    index.add(vectors)
    return index.calibrate(queries, recall=recall, k=k)
