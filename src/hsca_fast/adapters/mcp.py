"""An index behind the Model Context Protocol: search, compression, explanation and status as tools.

Tools take no paths and read one index. Without `allow_write` nothing is written, not even that a record was used.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from hsca_fast.adapters.frontends import require

require("mcp")

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from hsca_fast.assembly.context import assemble
from hsca_fast.memory.turns import Turn
from hsca_fast.retrieval.compress import ChunkResult, compress
from hsca_fast.retrieval.pipeline import RetrievalPipeline
from hsca_fast.retrieval.results import RetrievedRecord

if TYPE_CHECKING:
    from hsca_fast.memory.index import SemanticIndex

MAX_QUERY = 8_192  # characters
MAX_RESPONSE = 200_000  # characters of what the store gives to one answer
_MAX_METADATA = 20_000
_SESSION_TURNS = 1_000
_LISTS = ("candidates", "groups", "archived", "summaries", "warnings")  # of a plan, as long as the store is large

Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="Natural language query")]
TopN = Annotated[int, Field(ge=1, le=100, description="Maximum results to return")]
ChunkId = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The chunk_id of a result")]
Tokens = Annotated[int, Field(ge=1, le=100_000, description="Hard limit on the tokens returned")]
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)


class IndexTools:
    """The tools over one index; each is a method, so that they can be called without a server.

    Parameters
    ----------
    index
        Open with mode "r" unless `allow_write`.
    allow_write
        Note what was returned, and let `compaction_plan` carry out its plan.
    """

    def __init__(self, index: SemanticIndex, *, allow_write: bool = False) -> None:
        self._index = index
        self._write = allow_write
        self._pipeline = RetrievalPipeline(index)
        self._lock = threading.Lock()  # tools run on threads; one retrieval at a time

    def query_documents(self, query: Query, top_n: TopN = 5) -> dict[str, Any]:
        """Search the index. Returns results, best first, each with its chunk_id, score and content."""
        found = self._run(query, top_n)
        kept, truncated = _within([_chunk(each) for each in found.results], found.truncated)
        return {"results": kept, "truncated": truncated, "warnings": found.warnings}

    def query_documents_compressed(
        self,
        query: Query,
        top_n: TopN = 5,
        min_score: Annotated[float, Field(ge=0.0, le=1.0, description="Minimum relevance score")] = 0.3,
        similarity_threshold: Annotated[
            float, Field(ge=0.5, le=1.0, description="Cosine above which two results are duplicates")
        ] = 0.85,
        max_tokens: Tokens | None = None,
    ) -> dict[str, Any]:
        """Search with context compression: leaves out results of low relevance and semantic duplicates."""
        found = self._run(query, min(100, 4 * top_n))
        results = [ChunkResult(**_chunk(each)) for each in found.results]
        vectors = self._index.vectors([each.chunk_id for each in results])
        kept, stats = compress(
            results,
            vectors,
            min_score=min_score,
            similarity_threshold=similarity_threshold,
            top_n=top_n,
            max_tokens=max_tokens,
        )
        told, truncated = _within([asdict(each) for each in kept], stats.truncated)
        return {
            "results": told,
            "compression_stats": stats.to_dict(),
            "truncated": truncated,
            "warnings": found.warnings,
        }

    def expand_chunk(self, chunk_id: ChunkId) -> dict[str, Any]:
        """The whole text of a chunk, with its metadata."""
        record = self._record(chunk_id)
        room = MAX_RESPONSE - _MAX_METADATA
        small = _size(record.metadata) <= _MAX_METADATA
        return {
            "chunk_id": record.id,
            "content": record.text[:room],
            "truncated": len(record.text) > room or not small,
            "turn_id": record.turn_id,
            "role": record.role,
            "timestamp": record.timestamp,
            "status": record.status,
            "metadata": record.metadata if small else {},
        }

    def explain_result(self, query: Query, chunk_id: ChunkId, top_n: TopN = 5) -> dict[str, Any]:
        """Why a chunk is where it is for a query: what each phase added to its score, or where it was left out and why."""
        self._record(chunk_id)
        with self._lock:
            found = self._pipeline.run(query, k=top_n, explain=True, candidate_trace=True, dry_run=True)
        trace = found.pipeline_trace
        answer: dict[str, Any] = {"chunk_id": chunk_id, "rank": None, "phases": trace["phases_applied"]}
        for rank, each in enumerate(found.results, 1):
            if each.id == chunk_id:
                return answer | {"rank": rank, "score": each.score, "score_breakdown": each.score_breakdown}
        for entry in trace["candidate_trace"]:
            if entry.get("drawer_id") == chunk_id and "dropped_at" in entry:
                return answer | {"left_out": entry, "score_breakdown": trace["candidate_scores"].get(chunk_id)}
        return answer | {"left_out": {"dropped_at": "recall", "reason": "not among the candidates of this query"}}

    def session_context(
        self,
        session: Annotated[str, Field(min_length=1, max_length=256, description="Value of the metadata key `session`")],
        max_tokens: Tokens = 2_000,
    ) -> dict[str, Any]:
        """The latest turns of a session that fit a token budget, oldest first."""
        n_turns = 0
        latest: deque[Turn] = deque(maxlen=_SESSION_TURNS)  # of a session of any length
        for records in self._index.iter_records(_SESSION_TURNS, where={"session": session}):
            n_turns += len(records)
            latest += [Turn(record.text, record.role, record.id, record.timestamp) for record in records]
        context = assemble("", budget=max_tokens, turns=list(latest), fractions=(0.0, 0.0, 1.0))
        return {
            "text": context.text,
            "total_tokens": context.total_tokens,
            "turns": n_turns,
            "degraded": context.degraded,
            "reasons": list(context.reasons),
        }

    def compaction_plan(self, dry_run: bool = True) -> dict[str, Any]:
        """What adaptive compaction would archive or consolidate, and why. Carried out only where the server allows writing."""
        if not dry_run and not self._write:
            raise ValueError("this server does not write: start it with --allow-write, or ask with dry_run true")
        with self._lock:
            plan = self._pipeline.run_compaction(dry_run=dry_run).to_dict()
        share, truncated = MAX_RESPONSE // len(_LISTS), False
        for name in _LISTS:
            plan[name], cut = _within(plan[name], False, share)
            truncated |= cut
        plan["scan"] = plan["scan"] and {name: value for name, value in plan["scan"].items() if name != "batches"}
        return plan | {"truncated": truncated}

    def index_status(self) -> dict[str, Any]:
        """Exact counts of records, what compaction would do, the model behind the vectors, and the generation of the store."""
        index = self._index
        live = index.count()
        suggested = {}
        if self._pipeline.resolve().profile.consolidation_suggestions_in_status:
            with self._lock:
                plan = self._pipeline.run_compaction(dry_run=True)
            suggested = {"would_archive": plan.would_archive, "would_create_summaries": plan.would_create_summaries}
        return {
            "records_live": live,
            "records_archived": index.count(include_archived=True) - live,
            "generation": index.generation,
            "model": {"name": index.model.name, "dim": index.model.dim, "fingerprint": index.model.fingerprint},
            "store_id": index.store_id,
            "allow_write": self._write,
            **suggested,
        }

    def _run(self, query: str, k: int) -> Any:
        with self._lock:
            return self._pipeline.run(query, k=k, dry_run=not self._write)

    def _record(self, chunk_id: str) -> Any:
        try:
            return self._index.get(chunk_id)
        except KeyError:
            raise ValueError(f"there is no chunk {chunk_id}") from None


def mcp_server(index: SemanticIndex, *, allow_write: bool = False) -> MCPServer[Any]:
    """A server with the tools of `IndexTools`; run it with `server.run("stdio")`."""
    from importlib.metadata import version

    tools = IndexTools(index, allow_write=allow_write)
    server: MCPServer[Any] = MCPServer(
        "hsca_fast",
        version=version("hsca_fast"),
        instructions="Search a memory of texts. query_documents_compressed saves tokens; expand_chunk gives a whole text.",
        log_level="WARNING",
    )
    for tool in (
        tools.query_documents,
        tools.query_documents_compressed,
        tools.expand_chunk,
        tools.explain_result,
        tools.session_context,
        tools.compaction_plan,
        tools.index_status,
    ):
        writes = allow_write and tool == tools.compaction_plan
        server.add_tool(_with_reasons(tool), annotations=None if writes else _READS)
    return server


def _with_reasons(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A tool whose errors reach the client; the server keeps the text of any other exception to itself."""

    @wraps(tool)
    def call(*args: Any, **arguments: Any) -> dict[str, Any]:
        try:
            return tool(*args, **arguments)
        except Exception as error:
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ToolError(reason) from error

    return call


def _chunk(each: RetrievedRecord) -> dict[str, Any]:
    def named(name: str) -> str:
        value = each.metadata.get(name, "")
        return value if isinstance(value, str) else ""

    return {
        "chunk_id": each.id,
        "doc_id": named("doc_id"),
        "score": min(max(each.score, 0.0), 1.0),
        "header_path": named("header_path"),
        "file_path": named("file_path"),
        "content": each.text,
    }


def _size(value: object) -> int:
    """Characters of its JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def _within(entries: Sequence[Any], truncated: bool, room: int = MAX_RESPONSE) -> tuple[list[Any], bool]:
    """The first entries that fit an answer."""
    kept: list[Any] = []
    left = room
    for each in entries:
        left -= _size(each)
        if left < 0:
            return kept, True
        kept.append(each)
    return kept, truncated
