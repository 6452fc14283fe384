"""The tools through the SDK's own client: in memory, over standard input and output, over HTTP."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("mcp", reason="mcp is not installed: pip install '.[mcp]'")

from mcp import Client, StdioServerParameters

from hsca_fast import SemanticIndex, default_embedder
from hsca_fast.adapters.mcp import MAX_QUERY, MAX_RESPONSE, mcp_server

TEXTS = [
    "The lamp in the tower is broken.",
    "The lamp of the tower is broken.",
    "Oil for the lamp is in the shed.",
    "We sail at dawn with the tide.",
    "The cook bakes bread on Mondays.",
]


@pytest.fixture
def path(tmp_path):
    with SemanticIndex.open(tmp_path / "talk", embedder=default_embedder()) as index:
        index.append(TEXTS, role="user", metadata={"session": "s1", "file_path": "log.md", "doc_id": "d1"})
    return tmp_path / "talk"


@pytest.fixture
def call(path):
    """Calls tools of a server over the index, in memory; gives (is_error, answer)."""

    def run(*calls, allow_write=False):
        async def go():
            found = []
            async with Client(mcp_server(index, allow_write=allow_write)) as client:
                for name, arguments in calls:
                    found.append(answer_of(await client.call_tool(name, arguments)))
            return found

        with SemanticIndex.open(path, embedder=default_embedder(), mode="a" if allow_write else "r") as index:
            return asyncio.run(go())

    return run


def answer_of(result):
    text = "".join(block.text for block in result.content if block.type == "text")
    return bool(result.is_error), text if result.is_error else json.loads(text)


def test_tools_and_their_bounds(path):
    async def go():
        with SemanticIndex.open(path, embedder=default_embedder(), mode="r") as index:
            async with Client(mcp_server(index)) as client:
                return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = asyncio.run(go())
    assert set(tools) == {
        "query_documents", "query_documents_compressed", "expand_chunk", "explain_result", "session_context",
        "compaction_plan", "index_status",
    }  # fmt: skip
    given = tools["query_documents_compressed"].input_schema["properties"]
    assert (given["top_n"]["default"], given["top_n"]["minimum"], given["top_n"]["maximum"]) == (5, 1, 100)
    assert (given["min_score"]["default"], given["min_score"]["minimum"], given["min_score"]["maximum"]) == (0.3, 0, 1)
    threshold = given["similarity_threshold"]
    assert (threshold["default"], threshold["minimum"], threshold["maximum"]) == (0.85, 0.5, 1)
    assert all(tool.description for tool in tools.values())


def test_search_expand_and_explain(call):
    ((error, found),) = call(("query_documents", {"query": "broken lamp", "top_n": 3}))
    assert not error
    first = found["results"][0]
    assert "broken" in first["content"]
    assert (first["file_path"], first["doc_id"]) == ("log.md", "d1")
    assert len(found["results"]) == 3
    sail = next(i for i, text in enumerate(TEXTS) if "sail" in text)
    ((_, status), (_, whole), (_, why), (_, other)) = call(
        ("index_status", {}),
        ("expand_chunk", {"chunk_id": first["chunk_id"]}),
        ("explain_result", {"query": "broken lamp", "chunk_id": first["chunk_id"]}),
        ("query_documents", {"query": "at dawn we sail", "top_n": 1}),
    )
    assert status["records_live"] == len(TEXTS)
    assert status["records_archived"] == 0
    assert whole["content"] == first["content"]
    assert why["rank"] == 1
    parts = why["score_breakdown"]
    assert sum(value for name, value in parts.items() if name != "final_score") == why["score"]
    assert other["results"][0]["content"] == TEXTS[sail]
    ((_, absent),) = call(
        ("explain_result", {"query": "broken lamp", "chunk_id": other["results"][0]["chunk_id"], "top_n": 1})
    )
    assert absent["rank"] is None
    assert absent["left_out"]["reason"]


def test_compressed(call):
    arguments = {"query": "broken lamp", "min_score": 0.0}
    ((_, plain), (_, less)) = call(
        ("query_documents", {"query": "broken lamp"}), ("query_documents_compressed", arguments)
    )
    assert {*less["compression_stats"]} >= {"original_count", "after_threshold", "after_dedup", "clusters_merged"}
    assert less["compression_stats"]["clusters_merged"] == 1
    assert len(less["results"]) == len(plain["results"]) - 1
    ((_, nothing), (_, few)) = call(
        ("query_documents_compressed", arguments | {"min_score": 1.0}),
        ("query_documents_compressed", arguments | {"max_tokens": 10}),
    )
    assert nothing["results"] == []
    assert few["truncated"]
    assert len(few["results"]) == 1


def test_session_context(call):
    ((_, found), (_, none), (_, small)) = call(
        ("session_context", {"session": "s1"}),
        ("session_context", {"session": "nobody"}),
        ("session_context", {"session": "s1", "max_tokens": 30}),
    )
    assert all(text in found["text"] for text in TEXTS)
    assert found["total_tokens"] <= 2000
    assert (none["text"], none["turns"]) == ("", 0)
    assert small["total_tokens"] <= 30


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("query_documents", {}, "Field required"),
        ("query_documents", {"query": ""}, "at least 1 character"),
        ("query_documents", {"query": "x" * (MAX_QUERY + 1)}, f"at most {MAX_QUERY} characters"),
        ("query_documents", {"query": 5}, "valid string"),
        ("query_documents", {"query": "x", "top_n": 0}, "greater than or equal to 1"),
        ("query_documents", {"query": "x", "top_n": 101}, "less than or equal to 100"),
        ("query_documents_compressed", {"query": "x", "min_score": -0.1}, "greater than or equal to 0"),
        ("query_documents_compressed", {"query": "x", "min_score": 1.1}, "less than or equal to 1"),
        ("query_documents_compressed", {"query": "x", "similarity_threshold": 0.4}, "greater than or equal to 0.5"),
        ("query_documents_compressed", {"query": "x", "max_tokens": 0}, "greater than or equal to 1"),
        ("expand_chunk", {"chunk_id": "../../etc/passwd"}, "match pattern"),
        ("expand_chunk", {"chunk_id": "0" * 32}, f"there is no chunk {'0' * 32}"),
        ("explain_result", {"query": "x", "chunk_id": "f" * 32}, f"there is no chunk {'f' * 32}"),
        ("session_context", {"session": ""}, "at least 1 character"),
        ("session_context", {"session": "s" * 257}, "at most 256 characters"),
        ("session_context", {"session": "s1", "max_tokens": 10**9}, "less than or equal to 100000"),
        ("compaction_plan", {"dry_run": False}, "start it with --allow-write"),
    ],
)
def test_bad_calls_are_answered(call, name, arguments, reason):
    ((error, text), (_, status)) = call((name, arguments), ("index_status", {}))
    assert error
    assert reason in text
    assert status["records_live"] == len(TEXTS)  # the server lives on


def test_answers_are_bounded(path, call):
    with SemanticIndex.open(path, embedder=default_embedder()) as index:
        index.append([f"lamp {i} " + "oil " * 30_000 for i in range(3)])
    ((_, found),) = call(("query_documents", {"query": "lamp oil", "top_n": 5}))
    assert found["truncated"]
    assert sum(len(each["content"]) for each in found["results"]) <= MAX_RESPONSE


def test_metadata_and_plans_are_bounded_too(path, call):
    with SemanticIndex.open(path, embedder=default_embedder()) as index:
        (big,) = index.append(["a rope"], metadata={"header_path": "h" * MAX_RESPONSE, "more": "m" * MAX_RESPONSE})
        index.append(["a line"], metadata={"session": "s2"})
        old = index.append(
            [f"The old note {i} says much about nothing. It was corrected long ago." for i in range(400)],
            metadata=[{"session": f"old {i}"} for i in range(400)],
            timestamps=[float(i) for i in range(400)],
        )
        for each in old:
            index.supersede(each, big)
    ((_, found), (_, whole), (_, plan)) = call(
        ("query_documents", {"query": "a rope", "top_n": 3}),
        ("expand_chunk", {"chunk_id": big}),
        ("compaction_plan", {}),
    )
    assert found["truncated"]
    assert whole["truncated"]
    assert whole["content"] == "a rope"
    assert plan["truncated"]
    assert plan["would_archive"] >= 0
    assert 0 < len(plan["candidates"]) < 400
    assert all(len(json.dumps(answer)) < 1.2 * MAX_RESPONSE for answer in (found, whole, plan))


def test_the_status_suggests_what_the_plan_would_do(path, call):
    with SemanticIndex.open(path, embedder=default_embedder()) as index:
        (now,) = index.append(["The lamp is repaired."])
        old = index.append(
            [f"The lamp on the tower was broken on day {i}. Nobody had repaired it." for i in range(30)],
            metadata={"session": "old"},
            timestamps=[float(i) for i in range(30)],
        )
        for each in old:
            index.supersede(each, now)
    ((_, status), (_, plan)) = call(("index_status", {}), ("compaction_plan", {}))
    assert status["would_archive"] == plan["would_archive"] > 0
    assert status["would_create_summaries"] == plan["would_create_summaries"] > 0


def test_an_error_of_the_store_is_named(call, monkeypatch):
    monkeypatch.setattr(SemanticIndex, "count", lambda *args, **options: 1 / 0)
    ((error, text),) = call(("index_status", {}))
    assert error
    assert "ZeroDivisionError: division by zero" in text


def test_nothing_is_written_unless_allowed(path, call):
    def references():
        with SemanticIndex.open(path, embedder=default_embedder(), mode="r") as index:
            return sum(record.reference_count for records in index.iter_records() for record in records)

    call(("query_documents", {"query": "broken lamp"}), ("compaction_plan", {}))
    assert references() == 0
    call(("query_documents", {"query": "broken lamp", "top_n": 2}), allow_write=True)
    assert references() == 2


# ---- the command


def test_over_standard_input_and_output(path):
    server = StdioServerParameters(command=sys.executable, args=["-m", "hsca_fast", "mcp", "--index", str(path)])

    async def go():
        async with Client(server) as client:
            found = answer_of(await client.call_tool("query_documents", {"query": "broken lamp", "top_n": 1}))
            bad = answer_of(await client.call_tool("query_documents", {"query": ""}))
            return found, bad

    (error, found), (bad, _) = asyncio.run(go())
    assert not error
    assert "broken" in found["results"][0]["content"]
    assert bad


def test_only_the_protocol_is_on_standard_output(path):
    command = [sys.executable, "-m", "hsca_fast", "mcp", "--index", str(path)]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
    done = subprocess.run(command, input=json.dumps(hello) + "\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)


def test_a_client_that_goes_away(path):
    server = subprocess.Popen(
        [sys.executable, "-m", "hsca_fast", "mcp", "--index", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "query_documents", "arguments": {"query": "lamp"}}},
    ]  # fmt: skip
    server.stdin.write("".join(json.dumps(message) + "\n" for message in messages).encode())
    server.stdin.close()
    server.stdout.close()
    server.wait(timeout=60)
    with SemanticIndex.open(path, embedder=default_embedder()) as index:  # it let go of the store
        assert index.verify().ok


def test_over_http_on_this_machine(path):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "hsca_fast", "mcp", "--index", str(path), "--http", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)

        async def go():
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                return answer_of(await client.call_tool("index_status", {}))

        error, status = asyncio.run(go())
        assert not error
        assert status["records_live"] == len(TEXTS)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)


def test_an_index_that_cannot_be_opened(tmp_path):
    command = [sys.executable, "-m", "hsca_fast", "mcp", "--index", str(tmp_path / "none")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "none" in done.stderr
    assert not os.path.exists(tmp_path / "none")
