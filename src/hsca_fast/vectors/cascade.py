"""Search by cosine over prefix tiers: early exit, funnel, and exact.

    queries ─► rotate ─► u_64, u_256, u_768 ─► tier 64 ─► tier 256 ─► full width ─► ids, scores

The full-width vectors are the truth. A tier is derived from them: codes of one byte a coordinate with a bound of what
they leave out, so that its best rows by float32 score are found without reading most rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import thread_count
from hsca_fast._native.vectors import NO_ROW
from hsca_fast.vectors import storage
from hsca_fast.vectors.arrays import Float32, Int64, as_count, as_dims, as_ids, as_number, as_rows
from hsca_fast.vectors.calibration import Calibration, measure
from hsca_fast.vectors.coded_tier import CodedTier, runs_of
from hsca_fast.vectors.embedder import Embedder
from hsca_fast.vectors.full_index import FaissTier
from hsca_fast.vectors.guard import ModelStamp, check_model
from hsca_fast.vectors.prefix import prefix_tiers
from hsca_fast.vectors.records import Records
from hsca_fast.vectors.results import BackfillReport, ResultArrays, SearchResult
from hsca_fast.vectors.rotation import Rotation
from hsca_fast.vectors.snapshot import Mask, Snapshot

Model = ModelStamp | Mapping[str, str | int]
Mode = Literal["early_exit", "funnel", "exact"]
MODES = ("early_exit", "funnel", "exact")

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
        What made the vectors: a `ModelStamp`, or a mapping with its `name`, `dim` and `fingerprint`. Stored with the
        index; compared with the calibration's, and with what `load` and `search` are given.

    Any number of threads may search, also while one adds: a search sees the index as it was when it began. `remove` must
    not run beside a search. Not pickled: `save` and `load`.

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
        self._stamp = None if model is None else _as_stamp(model, self.width)
        self._threads = thread_count(threads)
        self._calibration: Calibration | None = None
        self._own_calibration: Calibration | None = None
        if calibration is not None:
            if not isinstance(calibration, Calibration):
                raise TypeError(f"calibration must be a Calibration, not {type(calibration).__name__}")
            calibration.check(dims=self._dims, model=self.model, rotation=self._rotation_fingerprint)
            self._calibration = calibration
            thresholds = calibration.thresholds if thresholds is None else thresholds
        if thresholds is None:
            thresholds = _default_thresholds(len(self._dims) - 1)
        if not isinstance(thresholds, Iterable):
            raise TypeError(f"thresholds must be a sequence of numbers, not {type(thresholds).__name__}")
        self._thresholds = tuple(as_number(t, "thresholds", low=0.0, high=1.0) for t in thresholds)
        if len(self._thresholds) != len(self._dims) - 1:
            raise ValueError(
                f"thresholds has {len(self._thresholds)} values; dims {self._dims} needs one fewer than widths"
            )
        if not isinstance(full_factory, str):
            raise TypeError(f"full_factory must be a str, not {type(full_factory).__name__}")
        self._full_factory = full_factory
        self._faiss = None if full_factory == "Flat" else FaissTier(full_factory, self.width)
        self._records = Records(self.width)
        self._tiers = [CodedTier(width) for width in self._dims]

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
        stamp = self._stamp
        return None if stamp is None else {"name": stamp.name, "dim": stamp.dim, "fingerprint": stamp.fingerprint}

    @property
    def ntotal(self) -> int:
        """How many vectors there are."""
        return self._records.n

    @property
    def ids(self) -> Int64:
        """Of the vectors, in no particular order."""
        return self._records.view()[1].copy()

    @property
    def dirty(self) -> dict[int, int]:
        """For each width, how many rows its tier lacks."""
        return {tier.width: len(tier.missing(self.ntotal)) for tier in self._tiers}

    def __len__(self) -> int:
        return self.ntotal

    def __contains__(self, id_: int) -> bool:
        return id_ in self._records.row_of

    @property
    def _rotation_fingerprint(self) -> str | None:
        return None if self._rotation is None else self._rotation.fingerprint

    # ---- changing

    def add(self, vectors: npt.ArrayLike, ids: npt.ArrayLike | None = None) -> Int64:
        """Adds rows; all of them or, if anything is wrong with one, none.

        The vectors are in the index once they are in its full-width rows. A tier that cannot take them (out of memory) is
        marked and does without: `backfill` repairs it. Ctrl-C comes before that, and nothing is added, or after, and all
        is: `ntotal` says which, and `backfill` finishes the tiers.

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
            new_ids = self._records.new_ids(len(rows))
        else:
            new_ids = as_ids(ids, "ids")
            if len(new_ids) != len(rows):
                raise ValueError(f"ids has {len(new_ids)} elements; vectors has {len(rows)} rows")
            self._records.refuse_known(new_ids)
        begin, end = self._records.stage(rows, new_ids)
        self._forget(np.arange(begin, end))
        self._records.commit(begin, end)
        self._fill([(begin, end)])
        if self._faiss is not None:
            self._faiss.extend(self._records.view()[0])
        return new_ids

    def remove(self, ids: npt.ArrayLike) -> int:
        """Removes the vectors of `ids`; KeyError, and nothing removed, if one is not there. Returns how many.

        Ctrl-C removes all or none, as with `add`.
        """
        wanted = np.unique(as_ids(ids, "ids"))
        missing = [i for i in wanted.tolist() if i not in self._records.row_of]
        if missing:
            raise KeyError(f"ids not in the index: {', '.join(map(str, missing[:10]))}")
        if not wanted.size:
            return 0
        holes, movers = self._records.plan_removal(wanted)
        self._forget(holes)
        if self._faiss is not None:
            self._faiss.forget()
        self._records.remove(wanted, holes, movers)
        self._fill(runs_of(holes))
        return len(wanted)

    def backfill(self) -> BackfillReport:
        """Rebuilds what tiers lack from the full-width vectors. What fails again stays marked."""
        before = self.dirty
        rows = self._records.view()[0]
        for tier in self._tiers:
            tier.fill(rows, runs_of(tier.missing(len(rows))))
        missing = self.dirty
        return BackfillReport({width: before[width] - missing[width] for width in self._dims}, missing)

    def _forget(self, rows: Int64) -> None:
        """These rows are about to change: no tier has them until it is filled again."""
        for tier in self._tiers:
            tier.forget(rows)

    def _fill(self, runs: Sequence[tuple[int, int]]) -> None:
        rows = self._records.view()[0]
        for tier in reversed(self._tiers):  # widest first, as the document has it
            tier.fill(rows, runs)

    def _prepared(self, vectors: npt.ArrayLike, name: str) -> Float32:
        """Unit vectors in the index's coordinates."""
        unit = prefix_tiers(as_rows(vectors, name, width=self.width), (self.width,), threads=self._threads)[0]
        if self._rotation is None:
            return unit
        turned = self._rotation.apply(unit, threads=self._threads)
        return prefix_tiers(turned, (self.width,), threads=self._threads)[0]

    # ---- searching

    def search(
        self,
        queries: npt.ArrayLike,
        k: int = 10,
        *,
        mode: Mode = "early_exit",
        allowed_ids: npt.ArrayLike | Set[int] | None = None,
        recall: float = 0.95,
        model: Model | None = None,
        strict: bool = False,
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
        model
            What made the queries. If it is not the index's: a warning, or with `strict` ModelMismatchError.
        """
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        k = as_count(k, "k", most=NO_ROW - 1)
        recall = as_number(recall, "recall", low=0.0, high=1.0)
        self._guard(model, strict)
        snapshot = self._snapshot()
        tiers = prefix_tiers(self._prepared(queries, "queries"), self._dims, threads=self._threads)
        allowed = self._allowed_rows(allowed_ids, snapshot.ids)
        n_queries, found = len(tiers[0]), min(k, len(snapshot.rows))
        out = ResultArrays(n_queries, found, len(self._dims))
        if n_queries and len(snapshot.rows):
            if mode == "funnel":
                snapshot.funnel(tiers, found, allowed, self._funnel_sizes(snapshot, recall, found), out)
            else:
                snapshot.cascade(tiers, found, allowed, self._thresholds if mode == "early_exit" else (), out)
        return out.result(snapshot.ids, k)

    def _snapshot(self) -> Snapshot:
        rows, ids = self._records.view()
        codes = tuple(tier.complete(len(rows)) for tier in self._tiers)
        return Snapshot(self._dims, rows, ids, codes, self._faiss, self._threads)

    def _guard(self, model: Model | None, strict: bool) -> None:
        if model is None:
            return
        if self._stamp is None:
            message = "the index does not say which model made its vectors: it cannot be compared"
            if strict:
                raise ValueError(message)
        else:
            message = check_model(self._stamp, _as_stamp(model), strict=strict) or ""
        if message:
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _allowed_rows(self, allowed_ids: npt.ArrayLike | Set[int] | None, ids: Int64) -> Mask:
        if allowed_ids is None:
            return None
        wanted = as_ids(allowed_ids, "allowed_ids")
        if 8 * len(wanted) > len(ids):
            return np.isin(ids, wanted).view(np.uint8)
        allowed = np.zeros(len(ids), np.uint8)
        rows = [row for row in map(self._records.row_of.get, wanted.tolist()) if row is not None and row < len(ids)]
        allowed[rows] = 1
        return allowed

    # ---- calibrating

    def _funnel_sizes(self, snapshot: Snapshot, recall: float, k: int) -> tuple[int, ...]:
        n, calibration = len(snapshot.rows), self._calibration
        if calibration is None and n <= _NO_FUNNEL:
            return (n,) * (len(self._dims) - 1)
        if calibration is None:
            own = self._own_calibration
            if own is None or not own.n_vectors <= n <= 2 * own.n_vectors or k > own.k:
                own = self._own_calibration = self._calibrate(snapshot, None, recall=0.99, k=max(k, 10))
            calibration = own
        sizes = calibration.funnel_sizes(recall, n_vectors=n)
        wider = max(1.0, k / calibration.k)
        return tuple(min(n, max(k, int(np.ceil(size * wider)))) for size in sizes)

    def calibrate(self, queries: npt.ArrayLike | None = None, *, recall: float = 0.99, k: int = 10) -> Calibration:
        """Thresholds and funnel sizes for the vectors of this index, from exact search.

        Without `queries`, some of the index's own vectors ask for their neighbours, themselves apart. The index is not
        changed: give the result to a new one, or read its numbers.
        """
        recall = as_number(recall, "recall", low=0.0, high=1.0)
        k = as_count(k, "k", least=1)
        asked = None if queries is None else self._prepared(queries, "queries")
        return self._calibrate(self._snapshot(), asked, recall=recall, k=k)

    def _calibrate(self, snapshot: Snapshot, queries: Float32 | None, *, recall: float, k: int) -> Calibration:
        own, n = None, len(snapshot.rows)
        if queries is None:
            own = np.arange(0, n, max(1, -(-n // _OWN_QUERIES)))
            queries = np.ascontiguousarray(snapshot.rows[own])
        if not len(queries) or not n:
            raise ValueError("calibration needs vectors and queries")
        tiers = prefix_tiers(queries, self._dims, threads=self._threads)
        return measure(
            snapshot.rows,
            [snapshot.inverse(number) for number in range(len(self._dims) - 1)],
            tiers,
            snapshot.neighbours(tiers[-1], k, own),
            own,
            recall=recall,
            k=k,
            model=self.model,
            rotation=self._rotation_fingerprint,
            threads=self._threads,
        )

    # ---- keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index into the folder `path`, in one step: a reader sees the old one or the new one.

        Vectors, ids and rotation are stored with checksums; a FAISS tier is stored as a cache. Tiers are not: they are
        made again on load.
        """
        vectors, ids = self._records.view()
        meta: dict[str, Any] = {
            "dims": list(self._dims),
            "thresholds": list(self._thresholds),
            "full_factory": self._full_factory,
            "n": len(ids),
            "next_id": self._records.next_id,
            "model": self.model,
            "calibration": None if self._calibration is None else self._calibration.to_dict(),
        }
        arrays: dict[str, npt.NDArray[Any]] = {"vectors": vectors, "ids": ids}
        if self._rotation is not None:
            arrays["rotation"] = self._rotation.matrix
        blob = None if self._faiss is None else self._faiss.to_bytes()
        storage.write_folder(os.fspath(path), meta, arrays, {} if blob is None else {"full": blob})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        mmap: bool = False,
        backfill: bool = True,
        threads: int = 1,
        model: Model | None = None,
        strict: bool = False,
    ) -> CascadeIndex:
        """Reads what `save` wrote; while another process saves, what it wrote before or what it writes now.

        Parameters
        ----------
        mmap
            Map the vectors instead of reading them; the first change copies them into memory.
        backfill
            Make the tiers now. If not, every row is marked, and searches scan full width until `backfill()`.
        model
            What is going to ask. If it did not make the vectors: a warning, or with `strict` ModelMismatchError.

        Raises
        ------
        FileNotFoundError
            There is no index.
        DamagedIndexError
            A file is missing, cut, altered or another's. Nothing of it has been parsed. A FAISS cache that is damaged or
            gone is no error: it is made again from the vectors.
        """
        index = storage.read_folder(os.fspath(path), lambda folder: cls._read(folder, mmap=mmap, threads=threads))
        index._guard(model, strict)
        if backfill:
            index.backfill()
        return index

    @classmethod
    def _read(cls, folder: storage.Folder, *, mmap: bool, threads: int) -> CascadeIndex:
        manifest = folder.manifest
        n, width = manifest["n"], manifest["dims"][-1]
        rotation = None
        if folder.has("rotation"):
            rotation = Rotation(folder.array("rotation", np.float32, (width, width)))
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
        vectors = folder.array("vectors", np.float32, (n, width), mmap=mmap)
        index._records = Records.of(vectors, folder.array("ids", np.int64, (n,)), manifest["next_id"])
        if index._faiss is not None and folder.has("full"):
            try:
                index._faiss.from_checked_bytes(folder.blob("full"), n)
            except storage.DamagedIndexError as error:
                if isinstance(error, storage.MissingFileError) and not folder.is_current():
                    raise  # a writer took it away: there is a newer index to read
                warnings.warn(f"{error}; it is made again from the vectors", RuntimeWarning, stacklevel=5)
        return index


def _as_stamp(model: Model, width: int | None = None) -> ModelStamp:
    if isinstance(model, Mapping):
        if set(model) != {"name", "dim", "fingerprint"}:
            raise ValueError(
                f"model must have name, dim and fingerprint, not {', '.join(map(str, model)) or 'nothing'}"
            )
        model = ModelStamp(**{**model, "dim": as_count(model["dim"], "model: dim", least=1)})  # type: ignore[arg-type]
    if not isinstance(model, ModelStamp):
        hint = ": give ModelStamp.of(it)" if isinstance(model, Embedder) else ""
        raise TypeError(f"model must be a ModelStamp or a mapping, not {type(model).__name__}{hint}")
    if width is not None and model.dim != width:
        raise ValueError(f"model {model.name} makes vectors of {model.dim} values; the last of dims is {width}")
    return model


def _default_thresholds(n: int) -> tuple[float, ...]:
    """The document's 0.65 and 0.75; with another number of tiers the last are as strict as its last."""
    return (0.65, 0.75)[:n] + (0.75,) * (n - 2)


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
