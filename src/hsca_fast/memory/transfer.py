"""Stores as files that travel: JSON lines or Parquet, with the vectors only when asked for.

    {"format": "hsca-export", "version": 1, "model": ..., "embeddings": false, "n_records": 2}
    {"id": ..., "text": ..., "turn_id": ..., ..., "compacted_into": null}            a line a record
    {"access": [at, query, session, ids]}   {"summary": [summary_id, session, id]}
    {"end": "<sha256 of the lines before>"}

Nothing in such a file names a path, and nothing in it is executed or mapped: text, numbers and vectors, each checked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from hsca_fast.files import replacing, sync_directory
from hsca_fast.memory.catalog import STATUSES, Access, State, Tip
from hsca_fast.memory.records import (
    Incoming,
    Record,
    as_json,
    checked_text,
    finite,
    id_bytes,
    whole,
)
from hsca_fast.memory.segments import Float32
from hsca_fast.vectors.embedder import Embedder, Progress
from hsca_fast.vectors.guard import ModelStamp, check_model
from hsca_fast.vectors.storage import DamagedIndexError

if TYPE_CHECKING:
    from hsca_fast.memory.index import SemanticIndex

FORMAT = "hsca-export"
VERSION = 1
MAX_LINE_BYTES = 64 << 20
_BATCH = 2000
_SEAL = FORMAT + "-sha256"
_FIELDS = tuple(field.name for field in fields(Record) if field.name != "sequence")
_LATER_FIELDS = {"reason"}  # the first exports do not have it
_NUMBER_FIELDS = ("sentence_id", "n_tokens", "reference_count", "timestamp", "last_access")
_TEXT_FIELDS = tuple(name for name in _FIELDS if name not in _NUMBER_FIELDS)


class ImportRefusedError(ValueError):
    """A file that is not an export of ours, is damaged, or asks for what no export does. Nothing was made."""


def file_format(path: str | os.PathLike[str]) -> str:
    """ "jsonl" or "parquet", by the name."""
    name = os.fspath(path)
    for ending in ("jsonl", "parquet"):
        if name.lower().endswith("." + ending):
            return ending
    raise ValueError(f"{name}: exports are .jsonl or .parquet files")


# ---- out


def export_store(index: SemanticIndex, path: str | os.PathLike[str], *, embeddings: bool, include_deleted: bool) -> int:
    """Writes the file, whole or not at all; returns how many records are in it."""
    from hsca_fast.memory.index import SemanticIndex

    kind = file_format(path)
    index._store.check_open()
    # A reader of its own, in one transaction: nobody waits, and the file is one state of the store.
    with SemanticIndex.open(index.path, embedder=None, mode="r") as reader, reader._store.reading() as tip:
        return _export(reader, tip, path, kind, embeddings=embeddings, include_deleted=include_deleted)


def _export(
    index: SemanticIndex, tip: Tip, path: str | os.PathLike[str], kind: str, *, embeddings: bool, include_deleted: bool
) -> int:
    kept = np.flatnonzero(index._store.view.status() < (3 if include_deleted else 2)) + 1
    summaries = index._store.catalog.summaries(tip)
    exported = set(kept.tolist())
    header = {
        "format": FORMAT,
        "version": VERSION,
        "store_id": index.store_id,
        "model": asdict(index.model),
        "embeddings": embeddings,
        "n_records": len(kept),
    }
    batches = _exported(index, kept.tolist(), embeddings)
    extras = _extras(index, tip.n_accesses, summaries, exported)
    with replacing(path) as stream:
        if kind == "jsonl":
            _write_jsonl(stream, header, batches, extras)
        else:
            _write_parquet(stream, header, batches, extras)
    return len(kept)


def _exported(
    index: SemanticIndex, sequences: list[int], embeddings: bool
) -> Iterator[tuple[list[Record], Float32 | None]]:
    for begin in range(0, len(sequences), _BATCH):
        part = sequences[begin : begin + _BATCH]
        vectors = index._store.view.segments().take(np.array(part, np.int64)) if embeddings else None
        yield index._records(part), vectors


def _extras(
    index: SemanticIndex, n_accesses: int, summaries: dict[str, tuple[str, int]], exported: set[int]
) -> Iterator[dict[str, Any]]:
    """Accesses and names of summaries, of the records that are exported."""
    catalog = index._store.catalog
    wanted = [sequence for _, sequence in summaries.values() if sequence in exported]
    ids = {row.sequence: row.id.hex() for row in catalog.rows_at(wanted)}
    for summary_id, (session, sequence) in summaries.items():
        if sequence in exported:
            yield {"summary": [summary_id, session, ids[sequence]]}
    for begin in range(0, n_accesses, _BATCH):
        accesses = catalog.accesses(begin, min(n_accesses, begin + _BATCH))
        used = sorted({s for access in accesses for s in access.sequences if s in exported})
        names = {row.sequence: row.id.hex() for row in catalog.rows_at(used)}
        for access in accesses:
            yield {
                "access": [access.at, access.query, access.session, [names[s] for s in access.sequences if s in names]]
            }


def _as_dict(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _FIELDS}


def _write_jsonl(
    stream: BinaryIO,
    header: dict[str, Any],
    batches: Iterator[tuple[list[Record], Float32 | None]],
    extras: Iterator[dict[str, Any]],
) -> None:
    digest = hashlib.sha256()

    def write(content: dict[str, Any]) -> None:
        line = json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        digest.update(line)
        stream.write(line)

    write(header)
    for records, vectors in batches:
        for i, record in enumerate(records):
            content = _as_dict(record)
            if vectors is not None:
                content["vector"] = base64.b64encode(vectors[i].astype("<f4").tobytes()).decode()
            write(content)
    for extra in extras:
        write(extra)
    stream.write(json.dumps({"end": digest.hexdigest()}).encode() + b"\n")


def _write_parquet(
    stream: BinaryIO,
    header: dict[str, Any],
    batches: Iterator[tuple[list[Record], Float32 | None]],
    extras: Iterator[dict[str, Any]],
) -> None:
    pa, pq = _pyarrow()
    text, whole_number, real = pa.string(), pa.int64(), pa.float64()
    types = dict.fromkeys(_FIELDS, text) | {
        "sentence_id": whole_number, "n_tokens": whole_number, "reference_count": whole_number, "timestamp": real,
        "last_access": real,
    }  # fmt: skip
    columns = [pa.field(name, kind) for name, kind in types.items()]
    if header["embeddings"]:
        columns.append(pa.field("vector", pa.list_(pa.float32(), header["model"]["dim"])))
    told = json.dumps(header | {"extras": list(extras)}, ensure_ascii=False, allow_nan=False)
    seal = hashlib.sha256(told.encode()).hexdigest()
    schema = pa.schema(columns, metadata={FORMAT: told, _SEAL: seal})
    with pq.ParquetWriter(stream, schema, write_page_checksum=True) as writer:
        for records, vectors in batches:
            rows = [_as_dict(record) | {"metadata": as_json(record.metadata, "metadata")} for record in records]
            arrays = [pa.array([row[name] for row in rows], kind) for name, kind in types.items()]
            if vectors is not None:
                arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install 'hsca_fast[arrow]'") from None
    return pyarrow, pyarrow.parquet


# ---- in


@dataclass(frozen=True, slots=True)
class _Source:
    header: dict[str, Any]
    records: Iterator[dict[str, Any]]
    extras: list[dict[str, Any]]  # complete when the records are read


def import_store(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    embedder: Embedder,
    *,
    regenerate: bool,
    progress: Progress | None,
) -> None:
    """A new store at `path` from an export; it is there whole, or not at all."""
    target = os.path.abspath(os.fspath(path))
    if os.path.lexists(target):
        raise FileExistsError(f"{target} is there already; an import makes a new store")
    if not stat.S_ISREG(os.stat(source).st_mode):
        raise ImportRefusedError(f"{os.fspath(source)} is not a file")
    kind = file_format(source)
    beside = f"{target}.importing-{os.getpid()}"
    shutil.rmtree(beside, ignore_errors=True)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        with open(source, "rb") as stream:
            read = _read_jsonl(stream) if kind == "jsonl" else _read_parquet(stream)
            _fill(beside, read, embedder, regenerate, progress)
        os.rename(beside, target)
        sync_directory(os.path.dirname(target))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, (ImportRefusedError, DamagedIndexError)) or type(error).__name__ == "ModelMismatchError":
            raise
        raise ImportRefusedError(f"{os.fspath(source)}: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _fill(folder: str, source: _Source, embedder: Embedder, regenerate: bool, progress: Progress | None) -> None:
    from hsca_fast.memory.index import SemanticIndex

    header = source.header
    use_vectors = header["embeddings"] and not regenerate
    if use_vectors:
        check_model(ModelStamp(**header["model"]), ModelStamp.of(embedder), strict=True)
    n, done = header["n_records"], 0
    with SemanticIndex.open(folder, embedder=embedder) as index:
        for batch in _in_batches(source.records):
            done += len(batch)
            if done > n:
                raise ImportRefusedError(f"there are more than the {n} records that the header tells of")
            new = _incoming(batch, done - len(batch))
            vectors = _vectors(batch, index.model.dim, done - len(batch)) if use_vectors else None
            if vectors is not None:
                vectors = index._given_vectors(vectors, len(batch))
            _append(
                index, new, vectors, [_state(record, row) for row, record in enumerate(batch, start=done - len(batch))]
            )
            if progress is not None:
                progress(done, n)
        if done != n:
            raise ImportRefusedError(f"there are {done} records; the header tells of {n}")
        _add_extras(index, source.extras)


def _in_batches(records: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Of so many records, or so many characters: a file may be as large as it likes, but not in memory."""
    batch: list[dict[str, Any]] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(str(record.get("text"))) if isinstance(record, dict) else 0
        if len(batch) == _BATCH or size > MAX_LINE_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _append(index: SemanticIndex, new: Incoming, vectors: Float32 | None, states: list[State]) -> None:
    store = index._store
    with store.mutex:
        tip = store.view.refresh()
        assert new.ids is not None
        known = [id_ for id_, found in zip(new.ids, store.view.find(new.ids), strict=True) if found is not None]
        if known or len(set(new.ids)) != len(new.ids):
            twice = known[0] if known else max(new.ids, key=new.ids.count)
            raise ImportRefusedError(f"the id {twice.hex()} is there twice")

        def also(tip: Tip, first: int) -> dict[str, int]:
            numbered = [
                State(sequence, *(getattr(state, name) for name in _STATE_REST))
                for sequence, state in enumerate(states, start=first)
            ]
            changed = [state for state in numbered if state != State(state.sequence)]
            return {"states_digest": tip.states_digest ^ store.catalog.put_states(changed, tip.generation + 1)}

        store.append(tip, new, index._pieces(new.texts, vectors, None), also)


_STATE_REST = tuple(field.name for field in fields(State) if field.name != "sequence")


def _add_extras(index: SemanticIndex, extras: list[dict[str, Any]]) -> None:
    store = index._store
    with store.writing() as tip:
        digest, n_accesses = tip.summaries_digest, tip.n_accesses
        for extra in extras:
            if "summary" in extra:
                summary_id, session, id_ = extra["summary"]
                (sequence,) = index._sequences([id_])
                digest ^= store.catalog.put_summary(
                    checked_text(summary_id, "summary"), checked_text(session, "session"), sequence
                )
            else:
                at, query, session, ids = extra["access"]
                n_accesses += 1
                access = Access(
                    finite(at, "access"), checked_text(query, "query"), checked_text(session, "session"),
                    tuple(index._sequences(ids)),
                )  # fmt: skip
                store.catalog.log_access(n_accesses, access)
        store.catalog.advance(tip, summaries_digest=digest, n_accesses=n_accesses)


def _incoming(batch: list[dict[str, Any]], row: int) -> Incoming:
    columns: dict[str, list[Any]] = {name: [] for name in _FIELDS}
    for i, record in enumerate(batch, start=row):
        if not isinstance(record, dict) or record.keys() - {"vector"} | _LATER_FIELDS != set(_FIELDS):
            raise ImportRefusedError(f"record {i} does not have just the fields of a record")
        where = f"record {i}: "
        columns["id"].append(id_bytes(record["id"], where + "id"))
        for name in ("text", "turn_id", "role"):
            columns[name].append(checked_text(record[name], where + name))
        for name in ("sentence_id", "n_tokens"):
            columns[name].append(whole(record[name], where + name))
        columns["timestamp"].append(finite(record["timestamp"], where + "timestamp"))
        columns["metadata"].append(as_json(record["metadata"], where + "metadata"))
    new = Incoming(
        columns["text"], columns["turn_id"], columns["sentence_id"], columns["role"], columns["timestamp"],
        columns["metadata"], columns["n_tokens"], columns["id"],
    )  # fmt: skip
    for i in new.too_large():
        raise ImportRefusedError(f"record {row + i} is larger than a record may be")
    return new


def _state(record: dict[str, Any], row: int) -> State:
    where = f"record {row}: "

    def other(name: str) -> bytes | None:
        return None if record[name] is None else id_bytes(record[name], where + name)

    last = record["last_access"]
    if record["status"] not in STATUSES:
        raise ImportRefusedError(f"{where}status must be one of {', '.join(STATUSES)}, not {record['status']!r}")
    return State(
        0,
        whole(record["reference_count"], where + "reference_count"),
        None if last is None else finite(last, where + "last_access"),
        STATUSES.index(record["status"]),
        checked_text(record.get("reason", ""), where + "reason"),
        other("superseded_by"),
        other("compacted_into"),
    )


def _vectors(batch: list[dict[str, Any]], dim: int, row: int) -> Float32:
    vectors = np.empty((len(batch), dim), np.float32)
    for i, record in enumerate(batch):
        value = record["vector"]
        if isinstance(value, str):
            value = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        if np.shape(value) != (dim,):
            raise ImportRefusedError(
                f"record {row + i} has a vector of shape {np.shape(value)}; the model has {dim} values"
            )
        vectors[i] = value
    return vectors


def _header(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ImportRefusedError("it is not an export: its header is missing")
    if content.get("version") != VERSION:
        raise ImportRefusedError(f"its format version is {content.get('version')!r}; this release reads {VERSION}")
    n = content.get("n_records")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0 or not isinstance(content.get("embeddings"), bool):
        raise ImportRefusedError("its header is damaged")
    ModelStamp(**content["model"])
    return content


def _read_jsonl(stream: BinaryIO) -> _Source:
    digest = hashlib.sha256()

    def lines() -> Iterator[Any]:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise ImportRefusedError(f"line {number} is longer than {MAX_LINE_BYTES} bytes")
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):
                raise ImportRefusedError(f"line {number} is not JSON") from None
            if isinstance(content, dict) and content.keys() == {"end"}:
                if content["end"] != digest.hexdigest() or stream.read(1):
                    raise ImportRefusedError("its checksum does not match: the file is damaged")
                return
            digest.update(line)
            yield content
        raise ImportRefusedError("it is cut off: its last line is missing")

    every = lines()
    header = _header(next(every, None))
    extras: list[dict[str, Any]] = []

    def records() -> Iterator[dict[str, Any]]:
        for content in every:
            if isinstance(content, dict) and content.keys() in ({"access"}, {"summary"}):
                extras.append(content)
            elif extras:
                raise ImportRefusedError("a record comes behind the accesses")
            else:
                yield content

    return _Source(header, records(), extras)


def _read_parquet(stream: BinaryIO) -> _Source:
    pa, pq = _pyarrow()
    try:
        # Repeated text stays one text until it was weighed: a few kilobytes of Parquet can stand for terabytes.
        there = set(pq.read_schema(stream).names)
        as_codes = [name for name in _TEXT_FIELDS if name in there]
        file = pq.ParquetFile(stream, page_checksum_verification=True, read_dictionary=as_codes)
        metadata = file.schema_arrow.metadata or {}
        told = metadata.get(FORMAT.encode(), b"null")
        if told != b"null" and hashlib.sha256(told).hexdigest().encode() != metadata.get(_SEAL.encode()):
            raise ImportRefusedError("its checksum does not match: the file is damaged")
        header = _header(json.loads(told))
    except (pa.ArrowException, OSError) as error:
        raise ImportRefusedError(f"it is not a Parquet file: {error}") from None
    if file.metadata.num_rows != header["n_records"]:
        raise ImportRefusedError(
            f"there are {file.metadata.num_rows} records; the header tells of {header['n_records']}"
        )

    def records() -> Iterator[dict[str, Any]]:
        row = 0
        try:
            for batch in file.iter_batches(_BATCH):
                for part in _light_parts(batch, row):
                    for record in part.to_pylist():
                        if not isinstance(record.get("metadata"), str):
                            raise ImportRefusedError(f"record {row}: metadata is missing")
                        yield record | {"metadata": json.loads(record["metadata"])}
                        row += 1
        except (pa.ArrowException, OSError) as error:
            raise ImportRefusedError(f"it is damaged: {error}") from None

    return _Source(header, records(), header["extras"])


def _light_parts(batch: Any, row: int) -> Iterator[Any]:
    """The rows of a batch, as many at a time as memory should hold; `row` is the number of its first."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        lengths = _text_bytes(column)
        if lengths is not None:
            sizes += lengths
    for i in np.flatnonzero(sizes > MAX_LINE_BYTES).tolist():
        raise ImportRefusedError(f"record {row + i} has more than {MAX_LINE_BYTES} bytes")
    begin = 0
    while begin < batch.num_rows:
        n = max(1, int(np.searchsorted(np.cumsum(sizes[begin:]), MAX_LINE_BYTES, side="right")))
        yield batch.slice(begin, n)
        begin += n


def _text_bytes(column: Any) -> Any:
    """Bytes of each text in a column, None if it holds none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column.validate(full=True)  # codes without a text
        lengths = pc.fill_null(pc.binary_length(column.dictionary), 0).to_numpy(zero_copy_only=False)
        codes = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
        return np.append(lengths, 0)[codes]  # -1, of a null, is the 0 at the end
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return None
