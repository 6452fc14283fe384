"""`ArrowScorer`: the same scores as `score_texts`, whatever holds the texts."""

import pickle
import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import ArrowScorer, ScoringConfig, score_texts
from hsca_fast.text.supervisor import ModelWarning

TEXTS = [
    "The river rose in the night. By morning the river had reached the bridge. The bridge held.",
    None,
    "",
    "You might wait, perhaps. Zażółć gęślą jaźń. 漢字と仮名。",
]
TABLE = pa.table({"id": [1, 2, 3, 4], "text": TEXTS})


def expected(texts) -> dict:
    """Plain columns, nulls where there is no text."""
    scores = score_texts(["" if text is None else text for text in texts])
    rows = scores.to_dict()
    rows["domain_tags"] = [scores.domain_tags(i) for i in range(len(texts))]
    rows["nuance_flags"] = [scores.nuance_flags(i) for i in range(len(texts))]
    return {name: [v if t is not None else None for v, t in zip(rows[name], texts, strict=True)] for name in rows}


def test_columns_are_appended_in_order():
    scored = ArrowScorer()(TABLE)
    assert scored.column_names == [
        *("id", "text", "layer1_score", "coherence_score", "domain_tags", "nuance_flags", "assessed_bits"),
        *("sentiment_score", "n_sentences", "n_words", "short_chunk"),
    ]
    assert scored.select(["id", "text"]).equals(TABLE)
    want = expected(TEXTS)
    for name in scored.column_names[2:]:
        assert scored[name].to_pylist() == want[name]
    assert scored.schema.field("domain_tags").type == pa.list_(pa.string())


def test_tags_as_bits():
    scored = ArrowScorer(tags="bits")(TABLE)
    want = expected(TEXTS)
    assert scored["domain_bits"].to_pylist() == want["domain_bits"]
    assert scored["nuance_bits"].to_pylist() == want["nuance_bits"]
    assert (scored["domain_bits"].type, scored["nuance_bits"].type) == (pa.uint16(), pa.uint32())
    assert "domain_tags" not in scored.column_names


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
        TABLE.slice(0, 4),
        pl.from_arrow(TABLE),
        pd.DataFrame({"id": [1, 2, 3, 4], "text": pd.array(TEXTS, dtype="str")}),
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=2)),
        TABLE.set_column(1, "text", TABLE["text"].dictionary_encode()),
        TABLE.set_column(1, "text", TABLE["text"].cast(pa.large_string())),
        TABLE.set_column(1, "text", TABLE["text"].cast(pa.string_view())),
    ],
    ids="table batch chunks slice polars pandas reader dictionary large view".split(),
)
def test_whatever_holds_the_texts(data):
    scored = ArrowScorer()(data)
    assert isinstance(scored, pa.Table)
    assert scored.drop_columns(["id", "text"]).equals(ArrowScorer()(TABLE).drop_columns(["id", "text"]))


@given(st.lists(st.none() | st.text(max_size=60), max_size=12), st.integers(1, 3), st.integers(1, 5))
def test_neither_threads_nor_batches_change_a_bit(texts, threads, size):
    table = pa.table({"text": pa.array(texts, pa.string())})
    whole = ArrowScorer()(table)
    parts = ArrowScorer(threads=threads).iter_batches(table.to_batches(max_chunksize=size))
    assert pa.Table.from_batches(parts, whole.schema).equals(whole)


def test_empty_in_empty_out():
    scorer = ArrowScorer()
    assert scorer(TABLE.slice(0, 0)).num_rows == 0
    assert scorer(TABLE.schema.empty_table()).schema == scorer(TABLE).schema == scorer.schema(TABLE.schema)
    assert list(scorer.iter_batches([])) == []
    (batch,) = scorer.iter_batches([pa.record_batch({"text": pa.array([], pa.string())})])
    assert batch.num_rows == 0


def test_metadata_is_kept():
    schema = pa.schema([pa.field("text", pa.string(), metadata={"lang": "en"})], {"made": "by hand"})
    scored = ArrowScorer()(pa.table({"text": ["A."]}, schema=schema))
    assert scored.schema.metadata[b"made"] == b"by hand"
    assert scored.schema.field("text").metadata == {b"lang": b"en"}
    (batch,) = ArrowScorer().iter_batches(pa.table({"text": ["A."]}, schema=schema).to_batches())
    assert batch.schema.equals(scored.schema, check_metadata=True)


def test_bytes_that_are_no_utf8_are_replaced():
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a\xffb. Fine.", b"ok"]).buffers())
    batch, scores = ArrowScorer().score_batch(pa.record_batch({"text": broken}))
    assert scores.replaced == 1
    assert batch["layer1_score"].to_pylist() == score_texts(["a\ufffdb. Fine.", "ok"]).layer1_score.tolist()
    assert batch["text"].equals(broken)


def test_pickle_holds_options_only():
    scorer = ArrowScorer(ScoringConfig(window=7), text_column="body", tags="bits", threads=2)
    scorer(pa.table({"body": ["Some text."]}))
    data = pickle.dumps(scorer)
    assert len(data) < 1000
    assert pickle.loads(data) == scorer
    code = (
        f"import pickle, pyarrow; print(pickle.loads({data!r})(pyarrow.table({{'body': ['One. Two.']}})).num_columns)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"10\n"


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (pa.table({"id": [1], "body": ["x"]}), ValueError, "no column 'text'; it has 'id', 'body'"),
        (pa.table({"text": [1]}), TypeError, "column 'text' has type int64, expected text"),
        (pa.table({"text": [b"x"]}), TypeError, "column 'text' has type binary, expected text"),
        (pa.table([["a"], ["b"]], names=["text", "text"]), ValueError, "more than one column 'text'"),
        (pa.table({"text": ["x"], "n_words": [1]}), ValueError, "a column 'n_words' already"),
        (["a text"], TypeError, "data must be Arrow data .* not list"),
    ],
)
def test_wrong_data(table, error, message):
    with pytest.raises(error, match=message):
        ArrowScorer()(table)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"config": 5}, TypeError, "config must be a ScoringConfig, not int"),
        ({"text_column": None}, TypeError, "text_column must be a str, not NoneType"),
        ({"tags": "names"}, ValueError, "tags must be 'list' or 'bits', not 'names'"),
        ({"threads": -1}, ValueError, "threads must be between 0"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        ArrowScorer(**options)


def raises(texts):
    raise RuntimeError("no model today")


def test_a_model_that_fails_is_warned_of():
    scorer = ArrowScorer(ScoringConfig(domain_model=raises))
    with pytest.warns(ModelWarning, match="no model today"):
        scored = scorer(TABLE)
    assert scored["domain_tags"].to_pylist()[0] == ["unclassified"]
    with pytest.warns(ModelWarning, match="no model today"):
        list(scorer.iter_batches(TABLE.to_batches()))
