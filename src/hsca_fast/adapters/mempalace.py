"""MemPalace: a storage backend, `hsca`, of its backend interface 1.0, found through the entry point `mempalace.backends`.

    MEMPALACE_BACKEND=hsca mempalace mine notes/

Every collection is a `SemanticIndex` in the folder `hsca` of the palace.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from hsca_fast.adapters.frontends import require

require("mempalace")

from mempalace.backends import (
    BackendClosedError,
    BackendError,
    BaseBackend,
    BaseCollection,
    CollectionNotInitializedError,
    DimensionMismatchError,
    GetResult,
    HealthStatus,
    LexicalHit,
    LexicalResult,
    PalaceNotFoundError,
    PalaceRef,
    QueryResult,
    UnsupportedFilterError,
)
from mempalace.backends.base import EmbedderIdentity, recency_sort_key

from hsca_fast.adapters.drawers import Drawer, DrawerStore
from hsca_fast.files import replacing
from hsca_fast.memory.filters import check_where
from hsca_fast.memory.store_files import StoreLocked
from hsca_fast.vectors.arrays import Float32, refuse_infinite, stack_rows
from hsca_fast.vectors.storage import DamagedIndexError

FOLDER = "hsca"
_ABOUT = "collection.json"
_LONGEST_NAME = 200  # of a folder; file systems allow 255 bytes
_OPERATORS = frozenset({"$eq", "$ne", "$in", "$nin", "$contains", "$gt", "$gte", "$lt", "$lte", "$exists"})
_TEXT_OPERATORS = frozenset({"$contains", "$not_contains"})


class HSCABackend(BaseBackend):
    """Palaces whose collections are semantic indexes."""

    name = "hsca"
    spec_version = "1.0"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {
            "local_mode",
            "requires_explicit_embeddings",
            "supports_embeddings_in",
            "supports_embeddings_out",
            "supports_embeddings_passthrough",
            "supports_lexical_search",
            "supports_metadata_facets",
            "supports_metadata_filters",
            "supports_migration_export",
            "supports_range_filters",
            "supports_recency_order",
        }
    )

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stores: dict[tuple[str, str, bool], DrawerStore] = {}
        self._collections: dict[str, list[HSCACollection]] = {}
        self._closed = False

    def get_collection(
        self, *, palace: PalaceRef, collection_name: str, create: bool = False, options: Mapping[str, Any] | None = None
    ) -> HSCACollection:
        """A collection of a palace; `options`: `read_only`, and `timeout`, the seconds to wait for another writer."""
        self._check_open()
        self.require_namespace_support(palace)
        if palace.local_path is None:
            raise PalaceNotFoundError(f"the palace {palace.id!r} has no local path")
        options = options or {}
        read_only = bool(options.get("read_only", False))
        root = Path(palace.local_path)
        folder = root / FOLDER / _folder_name(collection_name)
        with self._lock:
            if not (folder / _ABOUT).is_file():
                if not create or read_only:
                    if (root / FOLDER).is_dir():
                        raise CollectionNotInitializedError(f"no collection {collection_name!r}")
                    raise PalaceNotFoundError(f"no palace of the backend {self.name} at {root}")
                _make_private(root)
                folder.mkdir(parents=True, exist_ok=True)
                _write_about(folder, {"name": collection_name})
            key = (os.path.realpath(root), collection_name, read_only)
            store = self._stores.get(key)
            if store is None:
                model = (_read_about(folder).get("embedder") or {}).get("model_name", "mempalace")
                timeout = float(options.get("timeout", 10.0))
                store = DrawerStore(folder / "store", model=model, read_only=read_only, timeout=timeout)
                self._stores[key] = store
            collection = HSCACollection(self, folder, collection_name, store)
            self._collections.setdefault(key[0], []).append(collection)
            return collection

    def delete_collection(self, palace_path: str, collection_name: str) -> None:
        """Remove a collection and all it holds."""
        self._check_open()
        folder = Path(palace_path) / FOLDER / _folder_name(collection_name)
        if not (folder / _ABOUT).is_file():
            raise CollectionNotInitializedError(f"no collection {collection_name!r}")
        self._release(os.path.realpath(palace_path), collection_name)
        (folder / _ABOUT).unlink()  # from here on it is not there
        shutil.rmtree(folder)

    def close_palace(self, palace: PalaceRef | str) -> None:
        """Let go of a palace's files; its collections are closed."""
        path = palace if isinstance(palace, str) else palace.local_path
        if path is not None:
            self._release(os.path.realpath(path))

    def close(self) -> None:
        """Let go of everything; the backend is not used again."""
        with self._lock:
            self._closed = True
            for path in {key[0] for key in self._stores}:
                self._release(path)

    def health(self, palace: PalaceRef | None = None) -> HealthStatus:
        """Whether the backend is open, and the collections of `palace` can be read."""
        if self._closed:
            return HealthStatus.unhealthy("the backend is closed")
        if palace is None or palace.local_path is None:
            return HealthStatus.healthy()
        for about in sorted((Path(palace.local_path) / FOLDER).glob(f"*/{_ABOUT}")):
            name = _read_about(about.parent).get("name", about.parent.name)
            status = self.get_collection(palace=palace, collection_name=name).health()
            if not status.ok:
                return status
        return HealthStatus.healthy()

    @classmethod
    def detect(cls, path: str) -> bool:
        """Whether there is a palace of this backend."""
        return any((Path(path) / FOLDER).glob(f"*/{_ABOUT}"))

    def _release(self, path: str, name: str | None = None) -> None:
        with self._lock:
            for key in [key for key in self._stores if key[0] == path and name in (None, key[1])]:
                self._stores.pop(key).close()
            kept = []
            for collection in self._collections.pop(path, []):
                if name in (None, collection.name):
                    collection._closed = True
                else:
                    kept.append(collection)
            if kept:
                self._collections[path] = kept

    def _check_open(self) -> None:
        if self._closed:
            raise BackendClosedError(f"the backend {self.name} is closed")


class HSCACollection(BaseCollection):
    """Drawers of one collection: exact cosines, filters before ranking, one writing process at a time."""

    def __init__(self, backend: HSCABackend, folder: Path, name: str, store: DrawerStore) -> None:
        self._backend, self.name = backend, name  # MemPalace asks for `_backend` to see what it can do
        self._folder, self._store = folder, store
        self._closed = False

    # ---- writing

    def add(
        self,
        *,
        documents: list[str],
        ids: list[str],
        metadatas: list[dict[str, Any]] | None = None,
        embeddings: list[list[float]] | None = None,
    ) -> None:
        """Write new drawers; ids that are there already, or twice, are refused, and then nothing is written."""
        documents, ids, metadata, vectors = self._checked(documents, ids, metadatas, embeddings)
        seen: set[str] = set()
        for i, drawer in enumerate(ids):
            if drawer in seen or drawer in self._store:
                raise ValueError(f"ids[{i}] is {drawer!r}, which is there already: use upsert")
            seen.add(drawer)
        self._put(ids, documents, metadata, vectors)

    def upsert(
        self,
        *,
        documents: list[str],
        ids: list[str],
        metadatas: list[dict[str, Any]] | None = None,
        embeddings: list[list[float]] | None = None,
    ) -> None:
        """Write drawers, in place of those of the same ids."""
        documents, ids, metadata, vectors = self._checked(documents, ids, metadatas, embeddings)
        last = {drawer: i for i, drawer in enumerate(ids)}
        rows = sorted(last.values())
        self._put([ids[i] for i in rows], [documents[i] for i in rows], [metadata[i] for i in rows], vectors[rows])

    def update(
        self,
        *,
        ids: list[str],
        documents: list[str] | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        embeddings: list[list[float]] | None = None,
    ) -> None:
        """Change parts of drawers that are there; metadata is merged. Ids that are not there are left out."""
        if documents is None and metadatas is None and embeddings is None:
            raise ValueError("update requires at least one of documents, metadatas, embeddings")
        for name, column in (("documents", documents), ("metadatas", metadatas), ("embeddings", embeddings)):
            if column is not None and len(column) != len(ids):
                raise ValueError(f"{name} length {len(column)} does not match ids length {len(ids)}")
        found = self._open().get(ids)
        rows = [i for i, drawer in enumerate(ids) if drawer in found]
        if not rows:
            return
        olds = [found[ids[i]] for i in rows]
        vectors = self._store.vectors(olds) if embeddings is None else self._vectors([embeddings[i] for i in rows])
        self._put(
            [old.id for old in olds],
            [old.text if documents is None else documents[i] for i, old in zip(rows, olds, strict=True)],
            [
                old.metadata if metadatas is None else {**old.metadata, **(metadatas[i] or {})}
                for i, old in zip(rows, olds, strict=True)
            ],
            vectors,
        )

    def delete(self, *, ids: list[str] | None = None, where: dict[str, Any] | None = None) -> None:
        """Delete drawers by id, by filter, or by both."""
        if ids is None and where is None:
            raise ValueError("delete requires ids or where")
        store = self._open()
        if where:
            wanted = None if ids is None else set(ids)
            ids = [
                drawer.id for drawer in store.matching(_checked_where(where)) if wanted is None or drawer.id in wanted
            ]
        if ids:
            self._writing(store.remove, list(ids))

    def _put(self, ids: list[str], texts: list[str], metadata: list[dict[str, Any]], vectors: Float32) -> None:
        self._writing(self._store.put, ids, texts, metadata, vectors)

    def _writing(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except StoreLocked as error:
            raise BackendError(f"collection {self.name!r}: {error}") from error

    def _checked(
        self, documents: Any, ids: Any, metadatas: Any, embeddings: Any
    ) -> tuple[list[str], list[str], list[dict[str, Any]], Float32]:
        self._open()
        documents, ids = _as_list(documents), _as_list(ids)
        metadata = [{} for _ in ids] if metadatas is None else [each or {} for each in _as_list(metadatas)]
        if embeddings is None:
            raise ValueError(
                f"{self._backend.name} needs embeddings: open the collection with mempalace.palace.get_collection"
            )
        for name, column in (("documents", documents), ("metadatas", metadata), ("embeddings", embeddings)):
            if len(column) != len(ids):
                raise ValueError(f"{name} length {len(column)} does not match ids length {len(ids)}")
        for i, each in enumerate(metadata):
            if not isinstance(each, Mapping) or not all(isinstance(key, str) for key in each):
                raise TypeError(f"metadatas[{i}] must be a mapping with keys that are str, not {each!r:.80}")
        return documents, ids, metadata, self._vectors(embeddings)

    def _vectors(self, embeddings: Sequence[Any]) -> Float32:
        try:
            rows = stack_rows(list(embeddings), "embeddings")
        except ValueError as error:
            raise DimensionMismatchError(f"the collection {self.name!r} cannot mix vectors: {error}") from error
        refuse_infinite(rows, "embeddings")
        dim = self._store.dim
        if dim is not None and len(rows) and rows.shape[1] != dim:
            raise DimensionMismatchError(
                f"the collection {self.name!r} has vectors of {dim} dimensions, and {rows.shape[1]} are given"
            )
        return rows

    # ---- reading

    def query(
        self,
        *,
        query_texts: list[str] | None = None,
        query_embeddings: list[list[float]] | None = None,
        n_results: int = 10,
        where: dict[str, Any] | None = None,
        where_document: dict[str, Any] | None = None,
        include: list[str] | None = None,
    ) -> QueryResult:
        """The drawers of the highest cosines to each vector, among those that pass the filters."""
        store = self._open()
        if query_embeddings is None or query_texts is not None:
            raise ValueError(
                f"{self._backend.name} needs query_embeddings: open the collection with mempalace.palace.get_collection"
            )
        if not len(query_embeddings):
            raise ValueError("query_embeddings is empty: there is nothing to ask")
        wanted = _Include(include, ("documents", "metadatas", "distances"))
        conditions = {"where": _checked_where(where), "text": _checked_text_where(where_document)}
        found = [store.nearest(row, n_results, **conditions) for row in self._vectors(query_embeddings)]
        lists = [[each.drawer for each in one] for one in found]
        return QueryResult(
            ids=[[drawer.id for drawer in one] for one in lists],
            documents=[[drawer.text for drawer in one] if wanted.documents else [] for one in lists],
            metadatas=[[drawer.metadata for drawer in one] if wanted.metadatas else [] for one in lists],
            distances=[[1.0 - each.score for each in one] if wanted.distances else [] for one in found],
            embeddings=[store.vectors(one).tolist() for one in lists] if wanted.embeddings else None,
        )

    def get(
        self,
        *,
        ids: list[str] | None = None,
        where: dict[str, Any] | None = None,
        where_document: dict[str, Any] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        include: list[str] | None = None,
    ) -> GetResult:
        """Drawers by id, in that order, or in the order of writing."""
        store = self._open()
        where, text = _checked_where(where), _checked_text_where(where_document)
        if ids is None and where is None and text is None and (limit or 0) >= 0 and (offset or 0) >= 0:
            return self._result(store.page(offset or 0, limit), include)
        if ids is None:
            drawers = list(store.matching(where, text))
        else:
            found = store.get(ids)
            if where is not None or text is not None:
                passing = {drawer.id for drawer in store.matching(where, text)}
                found = {drawer: each for drawer, each in found.items() if drawer in passing}
            drawers = [found[drawer] for drawer in ids if drawer in found]
        start = offset or 0  # below 0 it counts from the end, as in MemPalace's own backends
        return self._result(drawers[start:] if limit is None else drawers[start:][:limit], include)

    def get_all_rows(self, where: dict[str, Any] | None = None, include: list[str] | None = None) -> GetResult:
        """Every drawer that passes, in one pass."""
        return self._result(list(self._open().matching(_checked_where(where))), include or ["metadatas"])

    def get_all_metadata(self, where: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The metadata of every drawer that passes, in one pass."""
        return [drawer.metadata for drawer in self._open().matching(_checked_where(where))]

    def get_recent(
        self,
        *,
        limit: int,
        where: dict[str, Any] | None = None,
        order_field: str = "filed_at",
        include: list[str] | None = None,
    ) -> GetResult:
        """The newest of all drawers that pass, by a time in their metadata."""
        drawers = self._open().matching(_checked_where(where))
        return self._result(
            nlargest(max(0, limit), drawers, key=lambda drawer: recency_sort_key(drawer.metadata, order_field)), include
        )

    def facet_counts(self, field: str, where: dict[str, Any] | None = None, limit: int = 1000) -> dict[str, int]:
        """How many drawers have each value of a metadata key; the most frequent first."""
        where = _checked_where(where)
        counts = None if where else self._open().facets(field)
        if counts is None:
            values = (drawer.metadata.get(field) for drawer in self._open().matching(where))
            counts = Counter(str(value) for value in values if value is not None)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def lexical_search(self, *, query: str, n_results: int = 10, where: dict[str, Any] | None = None) -> LexicalResult:
        """The drawers whose words fit best (BM25)."""
        found = self._open().with_words(query, n_results, where=_checked_where(where))
        return LexicalResult(
            [LexicalHit(each.drawer.id, each.drawer.text, each.drawer.metadata, each.score) for each in found]
        )

    def count(self) -> int:
        """Drawers."""
        return len(self._open())

    def _result(self, drawers: list[Drawer], include: list[str] | None) -> GetResult:
        wanted = _Include(include, ("documents", "metadatas"))
        return GetResult(
            ids=[drawer.id for drawer in drawers],
            documents=[drawer.text for drawer in drawers] if wanted.documents else [],
            metadatas=[drawer.metadata for drawer in drawers] if wanted.metadatas else [],
            embeddings=self._store.vectors(drawers).tolist() if wanted.embeddings else None,
        )

    # ---- the collection itself

    def close(self) -> None:
        """Let go of this handle; others of the same collection stay open."""
        self._closed = True

    def health(self) -> HealthStatus:
        """Whether the collection is open and can be read."""
        try:
            n = self.count()
        except (BackendError, DamagedIndexError, OSError) as error:
            return HealthStatus.unhealthy(str(error))
        return HealthStatus.healthy(f"{n} drawers")

    def maintenance_state(self) -> dict[str, Any]:
        """Number of drawers, and what tells one state from the next."""
        store = self._open()
        return {"row_count": len(store), "index": "exact", "consistency_token": store.generation}

    def get_stored_embedder_identity(self) -> EmbedderIdentity | None:
        """The model that the collection remembers."""
        stored = _read_about(self._folder).get("embedder")
        if not stored:
            return None
        return EmbedderIdentity(model_name=stored["model_name"], dimension=stored["dimension"])

    def set_embedder_identity(self, identity: EmbedderIdentity) -> None:
        """Remember a model."""
        if identity is None or not identity.model_name:
            return
        stored = {"model_name": identity.model_name, "dimension": int(identity.dimension or 0)}
        _write_about(self._folder, {**_read_about(self._folder), "embedder": stored})
        self._store.name_model(identity.model_name)

    def _open(self) -> DrawerStore:
        self._backend._check_open()
        if self._closed:
            raise BackendClosedError(f"the collection {self.name!r} is closed")
        return self._store


class _Include:
    def __init__(self, include: Iterable[str] | None, default: tuple[str, ...]) -> None:
        wanted = default if include is None else set(include)
        self.documents = "documents" in wanted
        self.metadatas = "metadatas" in wanted
        self.distances = "distances" in wanted
        self.embeddings = "embeddings" in wanted


def _checked_where(where: Any) -> dict[str, Any] | None:
    """`where`, if every operator is known; none is ever left out in silence."""
    if not where:
        return None
    if not isinstance(where, Mapping):
        raise UnsupportedFilterError(f"where must be a mapping, not {type(where).__name__}")
    for key, condition in where.items():
        if key in ("$and", "$or"):
            _check_parts(key, condition, _checked_where)
        elif not isinstance(key, str) or key.startswith("$"):
            raise UnsupportedFilterError(f"the operator {key!r} is not supported; there are $and and $or")
        elif condition is not None:
            _check_condition(key, condition)
    return dict(where)


def _check_condition(key: str, condition: Any) -> None:
    operators = condition if isinstance(condition, Mapping) else {"$eq": condition}
    unknown = set(operators) - _OPERATORS
    if unknown or not operators:
        raise UnsupportedFilterError(
            f"{key}: the operators {sorted(map(str, unknown))} are not supported; there are {sorted(_OPERATORS)}"
        )
    for operator, operand in operators.items():
        if operator == "$contains":
            if not isinstance(operand, (str, int, float)):
                raise UnsupportedFilterError(f"{key}: $contains wants a str or a number, not {operand!r}")
        else:
            try:
                check_where({"": {operator: operand}}, key)
            except (TypeError, ValueError) as error:
                raise UnsupportedFilterError(str(error).replace(f"{key}['']", repr(key), 1)) from error


def _checked_text_where(where: Any) -> dict[str, Any] | None:
    if not where:
        return None
    if not isinstance(where, Mapping):
        raise UnsupportedFilterError(f"where_document must be a mapping, not {type(where).__name__}")
    for key, condition in where.items():
        if key in ("$and", "$or"):
            _check_parts(key, condition, _checked_text_where)
        elif key not in _TEXT_OPERATORS or not isinstance(condition, str):
            raise UnsupportedFilterError(f"where_document {key!r}: {condition!r} is not supported")
    return dict(where)


def _check_parts(key: str, parts: Any, check: Any) -> None:
    if (
        not isinstance(parts, (list, tuple))
        or not parts
        or not all(isinstance(part, Mapping) and part for part in parts)
    ):
        raise UnsupportedFilterError(f"{key} wants a list of one or more filters, not {parts!r}")
    for part in parts:
        check(part)


def _as_list(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, dict)) else list(value)


def _folder_name(collection: str) -> str:
    if not collection:
        raise ValueError("a collection needs a name")
    folder = quote(collection, safe="").replace(".", "%2E")
    if len(folder) <= _LONGEST_NAME:
        return folder
    return f"{folder[:100]}-{hashlib.blake2b(collection.encode(), digest_size=16).hexdigest()}"


def _make_private(root: Path) -> None:
    if not root.is_dir():
        root.mkdir(parents=True)
        root.chmod(0o700)


def _write_about(folder: Path, about: dict[str, Any]) -> None:
    with replacing(folder / _ABOUT) as file:
        file.write(json.dumps(about, ensure_ascii=False).encode())


def _read_about(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((folder / _ABOUT).read_bytes())
    return about
