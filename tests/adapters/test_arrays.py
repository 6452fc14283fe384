"""Columns of NumPy, pandas, Polars and Arrow in every function that takes arrays, and in place where their layout allows."""

import numpy as np
import pytest
from adapter_cases import needs

needs("pandas", "polars", "pyarrow")

import pandas as pd
import polars as pl
import pyarrow as pa

from hsca_fast import ChunkResult, compress, deduplicate, hybrid_scores, mmr, score_texts
from hsca_fast.ranking.columns import float_columns
from hsca_fast.vectors.arrays import as_rows, as_values

N = 40
RNG = np.random.default_rng(4)
VECTORS = RNG.standard_normal((N, 16)).astype(np.float32)
VECTORS[20:30] = VECTORS[:10] * 2
SCORES = RNG.random(N)
SCOPES = RNG.choice(["session", "user", "global"], N).tolist()
TEXTS = [f"The keeper lit lamp {i}. It burned. Ships saw it." for i in range(N)]

FIXED = pa.list_(pa.float32(), 16)
EMBEDDINGS = {
    "numpy": VECTORS,
    "numpy float64": VECTORS.astype(np.float64),
    "numpy, Fortran order": np.asfortranarray(VECTORS),
    "numpy, every other row": np.repeat(VECTORS, 2, axis=0)[::2],
    "lists": VECTORS.tolist(),
    "tuple of arrays": tuple(VECTORS),
    "pandas frame": pd.DataFrame(VECTORS, index=np.arange(N)[::-1]),
    "pandas series of lists": pd.Series(VECTORS.tolist(), index=np.arange(N)[::-1]),
    "pandas series of arrays": pd.Series([*VECTORS]),
    "pandas series of Arrow lists": pd.Series(pa.array(VECTORS.tolist(), FIXED), dtype=pd.ArrowDtype(FIXED)),
    "polars frame": pl.DataFrame(VECTORS),
    "polars series of Array": pl.Series(VECTORS),
    "polars series of List": pl.Series(VECTORS.tolist(), dtype=pl.List(pl.Float32)),
    "Arrow fixed-size lists": pa.array(VECTORS.tolist(), FIXED),
    "Arrow lists": pa.array(VECTORS.tolist()),
}
NUMBERS = {
    "numpy": SCORES,
    "numpy, every other": np.repeat(SCORES, 2)[::2],
    "list": SCORES.tolist(),
    "pandas": pd.Series(SCORES, index=np.arange(N)[::-1]),
    "pandas Float64": pd.Series(SCORES, dtype="Float64"),
    "pandas Arrow": pd.Series(SCORES, dtype="double[pyarrow]"),
    "polars": pl.Series(SCORES),
    "Arrow": pa.array(SCORES),
    "Arrow chunks": pa.chunked_array([SCORES[:7], SCORES[7:]]),
}
NAMES = {
    "numpy": np.array(SCOPES),
    "numpy objects": np.array(SCOPES, object),
    "pandas": pd.Series(SCOPES, index=np.arange(N)[::-1]),
    "pandas categories": pd.Series(SCOPES, dtype="category"),
    "polars": pl.Series(SCOPES),
    "polars Enum": pl.Series(SCOPES, dtype=pl.Enum(["session", "user", "global"])),
    "Arrow": pa.array(SCOPES),
}
STRINGS = {
    "numpy": np.array(TEXTS),
    "numpy objects": np.array(TEXTS, object),
    "numpy StringDType": np.array(TEXTS, np.dtypes.StringDType()),
    "pandas": pd.Series(TEXTS, index=np.arange(N)[::-1]),
    "pandas objects": pd.Series(TEXTS, dtype=object),
    "pandas Arrow": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series(TEXTS),
    "Arrow": pa.array(TEXTS),
}


@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_embeddings(kind):
    embeddings = EMBEDDINGS[kind]
    own, other = deduplicate(VECTORS, SCORES), deduplicate(embeddings, SCORES)
    assert other.keep.tolist() == own.keep.tolist()
    assert other.labels.tolist() == own.labels.tolist()
    assert mmr(SCORES, embeddings, 9).tolist() == mmr(SCORES, VECTORS, 9).tolist()
    results = [ChunkResult(str(i), "", score, "", "", "text") for i, score in enumerate(SCORES.tolist())]
    assert compress(results, embeddings) == compress(results, VECTORS)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind):
    numbers = NUMBERS[kind]
    assert deduplicate(VECTORS, numbers).keep.tolist() == deduplicate(VECTORS, SCORES).keep.tolist()
    assert mmr(numbers, VECTORS, 9).tolist() == mmr(SCORES, VECTORS, 9).tolist()
    own = hybrid_scores(SCORES, SCORES, SCOPES, decay_rate=SCORES)
    assert hybrid_scores(numbers, numbers, SCOPES, decay_rate=numbers).tolist() == own.tolist()


@pytest.mark.parametrize("kind", NAMES)
def test_names(kind):
    assert hybrid_scores(SCORES, SCORES, NAMES[kind]).tolist() == hybrid_scores(SCORES, SCORES, SCOPES).tolist()
    own = mmr(SCORES, VECTORS, 9, groups=SCOPES, group_weight=0.5)
    assert mmr(SCORES, VECTORS, 9, groups=NAMES[kind], group_weight=0.5).tolist() == own.tolist()


@pytest.mark.parametrize("kind", STRINGS)
def test_texts(kind):
    own, other = score_texts(TEXTS), score_texts(STRINGS[kind])
    assert other.layer1_score.tolist() == own.layer1_score.tolist()
    assert other.nuance_bits.tolist() == own.nuance_bits.tolist()


@pytest.mark.parametrize("kind", ["numpy", "polars series of Array"])
def test_embeddings_are_read_in_place(kind):
    assert np.shares_memory(as_rows(EMBEDDINGS[kind], "x"), np.asarray(EMBEDDINGS[kind]))


def test_a_file_of_embeddings_is_read_in_place(tmp_path):
    np.save(tmp_path / "x.npy", VECTORS)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(as_rows(mapped, "x"), mapped)
    assert deduplicate(mapped, SCORES).keep.tolist() == deduplicate(VECTORS, SCORES).keep.tolist()


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "pandas Arrow", "Arrow"])
def test_numbers_are_read_in_place(kind):
    # Asking twice for an array gives the same memory only if it is the column's own.
    numbers = NUMBERS[kind]
    for array in (as_values(numbers, "x", N), float_columns(x=numbers)[0]):
        assert np.shares_memory(array, np.asarray(numbers))


@pytest.mark.parametrize("kind", ["pandas Float64", "polars"])
def test_a_null_is_refused_by_its_row(kind):
    gap = [0.5, None, 0.7]
    numbers = pd.Series(gap, dtype="Float64") if kind.startswith("pandas") else pl.Series(gap)
    with pytest.raises(ValueError, match=r"scores\[1\] is not finite"):
        deduplicate(VECTORS[:3], numbers)
    with pytest.raises(ValueError, match=r"cosine\[1\] is nan"):
        hybrid_scores(numbers, [1.0, 2.0, 3.0], "user")


@pytest.mark.parametrize("bad", [[[1.0, 2.0], None], [[1.0, 2.0], [1.0]], [[1.0, 2.0], "ab"]])
def test_a_column_of_vectors_that_is_not_one_is_refused_by_its_row(bad):
    with pytest.raises((TypeError, ValueError), match=r"embeddings\[1\]"):
        deduplicate(pd.Series(bad), [0.1, 0.2])
