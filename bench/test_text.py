"""The text layers beside their peers; see bench/README.md."""

import pytest

from hsca_fast import score_texts
from hsca_fast.evals import speed

CORPUS = speed.make_corpus(speed.sample_text(), 10)
JOBS = {job.name: job for job in speed.jobs(CORPUS)}


@pytest.fixture(scope="module", autouse=True)
def fast_and_right():
    """No speed is reported for a wrong result."""
    sample = CORPUS[:20]
    assert score_texts(sample).layer1_score.tolist() == pytest.approx(speed.reference_layer1(sample), rel=1e-12)


@pytest.mark.parametrize("name", JOBS)
def test_speed(benchmark, name):
    job = JOBS[name]
    benchmark.group = "text"
    benchmark.extra_info["n_bytes"] = job.n_bytes
    benchmark.pedantic(job.run, rounds=5, warmup_rounds=1)
    benchmark.extra_info["mb_per_second"] = job.n_bytes / benchmark.stats.stats.min / 1e6
