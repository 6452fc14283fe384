"""tools/plan_corpus.py: a plan keeps within what no machine can beat."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TOOL = Path(__file__).parents[2] / "tools" / "plan_corpus.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("plan_corpus", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["plan_corpus"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["plan_corpus"]


@pytest.fixture(scope="module")
def even(tool):
    """One TB in 1,000 equal files on 10 workers of 50 MB/s: 2,000 s, and nothing else."""
    return tool.Figures(1.0, 5, 2, 50.0, 1000.0, 0.0, 0.0, 0.0, 1.0, 1e9, 500.0, 3.6)


def test_equal_files_divide_evenly(tool, even):
    found = tool.plan(even)
    assert (found.n_files, found.seconds, found.tail) == (1000, pytest.approx(2000), pytest.approx(0, abs=1e-6))
    assert (found.cost, found.node_memory_gb, found.dominant) == (pytest.approx(10), 1.0, "scoring")


def test_what_dominates(tool, even):
    assert tool.plan(replace(even, storage_gb_per_second=0.1)).seconds == pytest.approx(10_000)
    assert tool.plan(replace(even, storage_gb_per_second=0.1)).dominant == "storage"
    assert tool.plan(replace(even, file_mb=1.0, file_seconds=0.1)).dominant == "small files"
    assert tool.plan(replace(even, nodes=500, skew=1.5)).dominant == "skew"
    assert tool.plan(replace(even, start_seconds=1e5)).dominant == "start"


@given(st.integers(1, 400), st.floats(0, 2), st.floats(0, 1), st.floats(100, 20_000))
@settings(max_examples=30)
def test_no_plan_beats_the_bounds(tool, even, nodes, skew, file_seconds, file_mb):
    figures = replace(even, nodes=nodes, skew=skew, file_seconds=file_seconds, file_mb=file_mb)
    found = tool.plan(figures)
    parts = found.compute + found.storage + found.files + found.tail + found.start
    assert found.seconds == pytest.approx(parts)
    assert found.seconds >= found.largest_mb / 50 - 1e-6
    assert found.tail >= -1e-6
    # What any schedule needs, plus one file at most, is what a greedy one needs.
    assert found.seconds <= found.compute + found.files + found.largest_mb / 50 + file_seconds + 1e-6


def test_a_petabyte_is_planned_in_part(tool, even):
    found = tool.plan(replace(even, terabytes=1000.0, nodes=1000))
    assert (found.n_files, found.seconds) == (1_000_000, pytest.approx(10_000, rel=0.02))


def test_command():
    printed = subprocess.run(
        [sys.executable, TOOL, "--terabytes", "1", "--nodes", "1", "8"], capture_output=True, text=True, check=True
    ).stdout
    assert printed.count("\n") == 4
