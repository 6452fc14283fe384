"""Parquet datasets beside the scorer in memory, on this machine and on local clusters; see bench/README.md.

Clusters are started before the clock; what a start costs is printed as `extra_info`. HSCA_BENCH_CORPUS=FILE takes your text.
"""

import os
import shutil
import sys
import time
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hsca_fast import ArrowScorer, score_dataset, score_texts
from hsca_fast.evals import speed

MEGABYTES = float(os.environ.get("HSCA_BENCH_MEGABYTES", "64"))
N_FILES = 16
N_WORKERS = min(2, os.cpu_count() or 1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of Parquet files, its texts as one Arrow column, and their bytes."""
    folder = tmp_path_factory.mktemp("corpus")
    given = os.environ.get("HSCA_BENCH_CORPUS")
    text = Path(given).read_text(encoding="utf-8") if given else speed.sample_text()
    chunks = speed.make_corpus(text, MEGABYTES)
    n = -(-len(chunks) // N_FILES)
    for i in range(N_FILES):
        rows = chunks[i * n : (i + 1) * n]
        pq.write_table(pa.table({"id": range(i * n, i * n + len(rows)), "text": rows}), folder / f"{i:02}.parquet")
    texts = pa.array(chunks)
    return folder, texts, sum(len(chunk.encode()) for chunk in chunks)


def timed(benchmark, n_bytes, run, rounds=3):
    benchmark.group = "corpus"
    benchmark.pedantic(run, rounds=rounds, warmup_rounds=1)
    benchmark.extra_info["mb_per_second"] = n_bytes / benchmark.stats.stats.min / 1e6


@pytest.mark.parametrize("threads", [1, N_WORKERS])
def test_in_memory(benchmark, corpus, threads):
    _, texts, n_bytes = corpus
    timed(benchmark, n_bytes, lambda: score_texts(texts, threads=threads))


def check(folder, out, columns):
    """No speed is reported for a wrong result."""
    name = "07.parquet"
    want = ArrowScorer()(pq.read_table(folder / name))
    assert pq.read_table(out / name).equals(want if columns is None else want.drop_columns(["text"]))
    assert sum(pq.read_metadata(path).num_rows for path in out.glob("*.parquet")) == sum(
        pq.read_metadata(path).num_rows for path in folder.glob("*.parquet")
    )


@pytest.mark.parametrize("columns", [None, ["id"]], ids=["text", "no-text"])
@pytest.mark.parametrize("workers", [1, N_WORKERS])
def test_local(benchmark, corpus, tmp_path, workers, columns):
    folder, _, n_bytes = corpus
    out = tmp_path / "out"
    timed(benchmark, n_bytes, lambda: score_dataset(folder, out, workers=workers, columns=columns, overwrite=True))
    check(folder, out, columns)


@contextmanager
def _ray():
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=N_WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _dask():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": N_WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        yield


@contextmanager
def _spark():
    sql = pytest.importorskip("pyspark.sql")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("no Java runtime for Spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = sql.SparkSession.builder.master(f"local[{N_WORKERS}]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        yield
    finally:
        session.stop()


@pytest.mark.parametrize(
    ("engine", "cluster"), [("ray", _ray), ("dask", _dask), ("spark", _spark)], ids=lambda v: str(v)
)
def test_cluster(benchmark, corpus, tmp_path, engine, cluster):
    folder, _, n_bytes = corpus
    out = tmp_path / "out"
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # theirs
        started = time.perf_counter()
        stack.enter_context(cluster())
        first = folder / "00.parquet"
        score_dataset(first, tmp_path / "first", engine=engine, workers=N_WORKERS)
        benchmark.extra_info["seconds_to_first_file"] = time.perf_counter() - started
        timed(benchmark, n_bytes, lambda: score_dataset(folder, out, engine=engine, workers=N_WORKERS, overwrite=True))
        benchmark.extra_info["seconds_per_job"] = _empty_job(engine, tmp_path)
    check(folder, out, None)


def _empty_job(engine, tmp_path):
    """What a job costs that has next to nothing to do."""
    pq.write_table(pa.table({"text": ["A short text."]}), tmp_path / "one.parquet")
    started = time.perf_counter()
    score_dataset(tmp_path / "one.parquet", tmp_path / "empty", engine=engine, workers=N_WORKERS)
    return time.perf_counter() - started
