"""Real local clusters: the same bytes as this machine alone, and no hole when a worker dies.

pip install '.[test,ray,dask,spark]' && pytest -m engines
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hsca_fast import ArrowScorer, EngineError, score_dataset
from hsca_fast.corpus.engines import engine

pytestmark = pytest.mark.engines

_MODULES = {"ray": "ray", "dask": "distributed", "spark": "pyspark"}
ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed"))
    for name, module in _MODULES.items()
]
JAVA = pytest.mark.skipif(not (shutil.which("java") or os.environ.get("JAVA_HOME")), reason="no Java runtime for Spark")
CLUSTERS = [pytest.param(*p.values, marks=[*p.marks, JAVA]) if "spark" in p.values else p for p in ENGINES]
TEXT = "The keeper lit the lamp. The lamp lit the harbour. Perhaps boats came into the harbour, {i} of them."


@pytest.fixture
def corpus(tmp_path):
    for i in range(6):
        path = tmp_path / "in" / f"part={i % 2}" / f"{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [None if row % 5 == 4 else TEXT.format(i=row) * (1 + row % 4) for row in range(50 * i, 50 * i + 50)]
        pq.write_table(pa.table({"id": range(50), "text": texts}), path, row_group_size=20)
    return tmp_path / "in"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def python(code, *arguments, timeout=240):
    """In a process of its own: what a cluster leaves in this one is not ours to judge."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize("name", CLUSTERS)
def test_same_bytes_as_local(corpus, tmp_path, name):
    score_dataset(corpus, tmp_path / "local")
    (tmp_path / "cluster").mkdir()
    done = "part=1/3.parquet"  # from an earlier, local run
    (tmp_path / "cluster" / "part=1").mkdir()
    shutil.copy2(tmp_path / "local" / done, tmp_path / "cluster" / done)
    command = ["-m", "hsca_fast", "score", corpus, "-o", tmp_path / "cluster", "--engine", name, "--workers", "2"]
    result = subprocess.run([sys.executable, *command, "--resume"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == ""
    assert "6 files, 1 of them done before, 300 rows, 60 without a text" in result.stderr
    assert contents(tmp_path / "cluster") == contents(tmp_path / "local")


KILLED = """
import json, os, signal, sys
from hsca_fast import ArrowScorer, ScoringConfig, score_dataset

source, output, engine, mode = sys.argv[1:]

def model(texts):
    if any("201" in text for text in texts):
        if mode == "once":
            try:
                os.close(os.open(output + ".killed", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return [["legal"]] * len(texts)
        os.kill(os.getpid(), signal.SIGKILL)
    return [["legal"]] * len(texts)

if __name__ == "__main__":
    scorer = ArrowScorer(ScoringConfig(domain_model=model))
    report = score_dataset(source, output, scorer=scorer, engine=engine, workers=2)
    print(json.dumps([report.n_rows, [[p.name, p.error] for p in report.failed]]))
"""


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_worker_killed_in_the_midst_is_made_good(corpus, tmp_path, name):
    out = tmp_path / "out"
    assert json.loads(python(KILLED, corpus, out, name, "once").splitlines()[-1]) == [300, []]
    assert (tmp_path / "out.killed").exists()
    for path in corpus.rglob("*.parquet"):
        written = pq.read_table(out / path.relative_to(corpus), partitioning=None)
        assert written.select(["id", "text"]).equals(pq.read_table(path, partitioning=None))
        assert set(map(tuple, written["domain_tags"].drop_null().to_pylist())) == {("legal",)}
    assert not list(out.rglob("*.tmp"))


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_partition_that_kills_every_worker_is_named(corpus, tmp_path, name):
    out = tmp_path / "out"
    n_rows, failures = json.loads(python(KILLED, corpus, out, name, "always").splitlines()[-1])
    assert "part=0/4.parquet" in [failed for failed, _ in failures]
    assert all(error.startswith("its worker failed: ") for _, error in failures)
    # Every file is either there, whole, or named.
    assert set(contents(out)) == set(contents(corpus)) - {failed for failed, _ in failures}
    assert n_rows == 50 * len(contents(out)) > 0
    if name != "spark":  # there, a task that fails for good ends the job
        assert len(failures) == 1
    assert not list(out.rglob("*.tmp"))


RAY_DATASET = """
import sys, ray, pyarrow as pa, pyarrow.parquet as pq
from hsca_fast.corpus.engines.ray import map_dataset
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
table = map_dataset(ray.data.from_arrow(pq.read_table(sys.argv[1], partitioning=None)), workers=1)
pq.write_table(pa.concat_tables(ray.get(table.to_arrow_refs())), sys.argv[2])
"""

DASK_FRAME = """
import sys, dask, dask.dataframe as dd, pyarrow as pa, pyarrow.parquet as pq
from hsca_fast.corpus.engines.dask import map_frame
frame = map_frame(dd.read_parquet(sys.argv[1]))
pq.write_table(pa.Table.from_pandas(frame.compute(), preserve_index=False), sys.argv[2])
assert list(frame.columns) == list(frame.compute().columns)
"""

SPARK_FRAME = """
import os, sys, pyarrow as pa, pyarrow.parquet as pq
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from hsca_fast.corpus.engines.spark import map_frame
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
pq.write_table(map_frame(spark.read.parquet(sys.argv[1])).toArrow(), sys.argv[2])
"""


@pytest.mark.parametrize("name", CLUSTERS)
def test_tables_of_an_engine(corpus, tmp_path, name):
    code = {"ray": RAY_DATASET, "dask": DASK_FRAME, "spark": SPARK_FRAME}[name]
    path = tmp_path / "one.parquet"  # of whose directories no engine makes a column
    shutil.copy(corpus / "part=0" / "2.parquet", path)
    python(code, path, tmp_path / "scored.parquet")
    scored = pq.read_table(tmp_path / "scored.parquet")
    want = ArrowScorer()(pq.read_table(path, partitioning=None))
    assert scored.column_names == want.column_names
    assert scored.to_pylist() == want.to_pylist()


@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_no_dask_scheduler(corpus, tmp_path):
    with pytest.raises(EngineError, match="no Dask scheduler can be reached at 'tcp:"):
        score_dataset(corpus, tmp_path / "out", engine="dask", address="tcp://127.0.0.1:1")


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_no_ray_cluster(corpus, tmp_path, address):
    with pytest.raises(EngineError, match=f"no Ray cluster can be reached at '{address}': .*refused"):
        score_dataset(corpus, tmp_path / "out", engine="ray", address=address)
    assert not list((tmp_path / "out").iterdir())


def test_no_java(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EngineError, match="Spark needs a Java runtime"):
        list(engine("spark")(None, [], workers=1, address=None))
